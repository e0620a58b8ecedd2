"""Byte pairs: ids equal those of Hugging Face's `tokenizers`, from files of either."""

from __future__ import annotations

import json
import random
import sys
import unicodedata
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import regex
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from course_utils.data.bpe import BytePairEncoder
from course_utils.data.chunks import gpt2_bytes, gpt2_chunk
from course_utils.data.corpus import pydoc_text

END = "<|endoftext|>"
GPT2_PATTERN = (
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)
TEXTS = [
    "",
    "don't we'll I'd they've you're it's I'm I'M 'S 'tis rock'n'roll",
    "a  b   c \n\n d\t\te \r\n  ",
    "trailing spaces   ",
    "   leading",
    "x=3.14159; y_2 = __init__(self, *args)  # ½ Ⅷ ² ٣ 四 ௧",
    "naïve café, Ünïcödé, ßtraße, Ελληνικά, русский, עברית, العربية",
    "日本語のテキスト。中文。한국어 हिन्दी ไทย",
    "🙂👍🏽👨‍👩‍👧‍👦 e\u0301 a\u0300\u0316 \u200b\u200d\ufeff",
    "a\u00a0b\u2003c\u3000d\u2028e\x85f\x1cg\x1fh\x0bi",
    f"one{END}two {END}{END} three",
    "\x00\x01 \x7f",
]


def random_texts(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    ranges = [(32, 127), (0, 256), (0x370, 0x600), (0x900, 0xE00), (0x2000, 0x2C00)]
    ranges += [(0x3040, 0x9FFF), (0x1F300, 0x1F700), (9, 14)]
    found = []
    for _ in range(n):
        span = [rng.choice(ranges) for _ in range(rng.randrange(1, 60))]
        drawn = [chr(rng.randrange(*r)) for r in span]
        # libraries differ in how new their Unicode is
        found.append("".join(c for c in drawn if unicodedata.category(c) != "Cn"))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files laid out as GPT-2's are, learned by the library from the help topics."""
    theirs = Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=1000, initial_alphabet=alphabet, show_progress=False
    )
    theirs.train_from_iterator([pydoc_text()[:200_000], *TEXTS], trainer)
    theirs.add_special_tokens([END])
    place = tmp_path_factory.mktemp("gpt2")
    theirs.model.save(str(place))
    return place


def library(folder: Path, special: tuple[str, ...] = (END,)) -> Tokenizer:
    theirs = Tokenizer(
        models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
    )
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.decoder = decoders.ByteLevel()
    theirs.add_special_tokens(list(special))
    return theirs


def with_special(folder: Path, place: Path) -> Path:
    """Add the special token to vocab.json, where GPT-2's has it."""
    text = (folder / "vocab.json").read_text("utf-8")

    vocabulary = json.loads(text)
    vocabulary[END] = len(vocabulary)
    place.mkdir(exist_ok=True)
    (place / "vocab.json").write_text(json.dumps(vocabulary), "utf-8")
    (place / "merges.txt").write_bytes((folder / "merges.txt").read_bytes())
    return place


def test_ids_are_the_librarys_on_every_kind_of_text(folder, tmp_path):
    folder = with_special(folder, tmp_path / "files")
    ours, theirs = BytePairEncoder.load(folder), library(folder)
    assert len(ours) == 1001
    assert ours.special == [END]
    for text in [*TEXTS, *random_texts(400, 0), pydoc_text()[-20_000:]]:
        ids = theirs.encode(text).ids
        assert ours.encode(text) == ids
        assert ours.decode(ids) == text


def test_chunks_are_gpt2s_on_every_character():
    """`re` has no \\p: the pattern built without it cuts as the original does."""
    for text in [*TEXTS, *random_texts(400, 1)]:
        assert gpt2_chunk().findall(text) == regex.findall(GPT2_PATTERN, text)
    version = unicodedata.unidata_version
    differ = [
        chr(c)
        for c in range(sys.maxunicode + 1)
        if unicodedata.category(chr(c)) not in ("Cn", "Cs")  # unassigned, halves
        if gpt2_chunk().findall(f"a{chr(c)}1")
        != regex.findall(GPT2_PATTERN, f"a{chr(c)}1")
    ]
    assert differ == [], f"Unicode {version}"


def test_a_saved_encoder_is_loaded_and_read_by_the_library(tmp_path):
    for chunks in ("words", "gpt2"):
        special = [END, "<|end|>"]
        ours = BytePairEncoder.train(pydoc_text()[:50_000], 400, special, chunks)
        ours.save(tmp_path / chunks)
        again = BytePairEncoder.load(tmp_path / chunks)
        assert (again.merges, again.pieces) == (ours.merges, ours.pieces)
        assert (again.special, again.chunks) == (special, chunks)
        for text in TEXTS:
            assert again.encode(text) == ours.encode(text)
    theirs = library(tmp_path / "gpt2", tuple(special))
    for text in [*TEXTS, pydoc_text()[-20_000:]]:
        assert ours.encode(text) == theirs.encode(text).ids


def test_special_tokens_are_whole_and_the_longest_wins():
    encoder = BytePairEncoder.train("ab ab ab", 259, special=["<a>", "<a><a>"])
    assert len(encoder) == 259
    assert encoder.encode("<a><a><a>") == [258, 257]
    assert encoder.encode("b<a>b") == [98, 257, 98]
    assert encoder.decode([98, 257, 98]) == "b<a>b"
    assert BytePairEncoder().encode("<a>") == [60, 97, 62]


def test_no_merge_is_learned_from_a_special_token():
    text = f"{END}low{END}low{END}" * 9
    plain = BytePairEncoder.train(text, 300)
    encoder = BytePairEncoder.train(text, 300, special=[END])
    assert any(b"end" in piece for piece in plain.pieces)
    assert [p for p in encoder.pieces[256:] if p != END.encode()] == [b"ow", b"low"]


def reference_merges(text: str, n: int) -> list[tuple[bytes, bytes]]:
    """Count all pairs anew for every merge; ties go to the bytes that come last."""
    words = [
        [bytes([b]) for b in w.encode()] for w in regex.findall(GPT2_PATTERN, text)
    ]
    merges = []
    for _ in range(n):
        counts = Counter(pair for word in words for pair in pairwise(word))
        best = max(counts, key=lambda pair: (counts[pair], pair))
        if counts[best] < 2:
            break
        merges.append(best)
        for i, word in enumerate(words):
            j, merged = 0, []
            while j < len(word):
                both = tuple(word[j : j + 2]) == best
                merged.append(b"".join(best) if both else word[j])
                j += 2 if both else 1
            words[i] = merged
    return merges


@pytest.mark.parametrize("start", [0, 5_000, 90_000])
def test_with_ties_by_bytes_the_merges_are_those_counted_anew(start):
    text = pydoc_text()[start : start + 3_000] + "".join(TEXTS)
    encoder = BytePairEncoder.train(text, 256 + 120, chunks="gpt2", ties="bytes")
    pieces = encoder.pieces
    found = [(pieces[left], pieces[right]) for left, right in encoder.merges]
    assert found == reference_merges(text, 120)
    by_ids = BytePairEncoder.train(text, 256 + 120, chunks="gpt2")
    assert by_ids.merges != encoder.merges  # the choice matters


def test_every_byte_has_one_visible_character():
    letters = gpt2_bytes()
    assert set(letters.values()) == set(pre_tokenizers.ByteLevel.alphabet())
    assert letters[ord(" ")] == "Ġ"


def test_files_that_do_not_fit_are_refused(folder, tmp_path):
    (tmp_path / "vocab.json").write_bytes((folder / "vocab.json").read_bytes())
    merges = (folder / "merges.txt").read_text("utf-8").split("\n")
    merges[1], merges[2] = merges[2], merges[1]
    (tmp_path / "merges.txt").write_text("\n".join(merges), "utf-8")
    with pytest.raises(ValueError, match="are not those of bytes"):
        BytePairEncoder.load(tmp_path)
    twice = BytePairEncoder([(97, 98), (256, 99), (98, 99), (97, 258)])
    assert twice.pieces[257] == twice.pieces[259] == b"abc"
    with pytest.raises(ValueError, match="two merges made the same piece"):
        twice.save(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(ValueError, match="chunks is 'lines'"):
        BytePairEncoder(chunks="lines")
    with pytest.raises(ValueError, match="ties is 'luck'"):
        BytePairEncoder.train("low", ties="luck")
