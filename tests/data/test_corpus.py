"""Text that every Python carries, the vocabulary, byte pairs and batches."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from beartype import beartype
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import jaxtyped

from course_utils.data import corpus, sequences
from course_utils.data.bpe import BytePairEncoder
from course_utils.data.chunks import CHUNK
from course_utils.data.corpus import BOS, EOS, PAD, SPECIALS, UNK, Vocabulary

examples = settings(max_examples=40, deadline=None)
WORDS = st.lists(st.text("abcdé", min_size=1, max_size=4), max_size=8)

# ----------------------------------------------------------------------- help topics


def test_pydoc_text_has_no_paragraph_twice() -> None:
    parts = corpus.paragraphs(corpus.pydoc_text())
    assert len(parts) == len(set(parts)) > 1500


def test_pydoc_text_loses_no_paragraph_of_the_topics() -> None:
    kept = set(corpus.paragraphs(corpus.pydoc_text()))
    assert all(set(corpus.paragraphs(t)) <= kept for t in corpus.topics().values())


def test_holding_out_whole_topics_leaks_most_of_them_or_hardly_anything() -> None:
    texts = list(corpus.topics().values())
    shares = {}
    for first in (6, 7):  # of the ten ways, the best and the worst
        held = "\n\n".join(texts[first::10])
        train = "\n\n".join(t for i, t in enumerate(texts) if i % 10 != first)
        shares[first] = corpus.leaked_share(train, held)
    assert shares[7] > 0.8  # both as chapter 13 says
    assert shares[6] < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_deduplicated_blocks_leak_nothing(seed: int) -> None:
    split = corpus.split_blocks(corpus.pydoc_text(), 0.1, 0.1, seed=seed)
    assert corpus.leaked_share(split.train, split.validation) == 0
    assert corpus.leaked_share(split.train, split.test) == 0
    assert corpus.leaked_share(split.validation, split.test) == 0


def test_leaked_share_counts_characters_not_paragraphs() -> None:
    assert corpus.leaked_share("aaaaaa\n\nbb", "aaaaaa\n\ncc") == 6 / 8


@examples
@given(
    st.lists(st.integers(1, 60), min_size=8, max_size=80),
    st.floats(0, 0.4),
    st.floats(0, 0.4),
    st.integers(0, 5),
)
def test_split_keeps_every_paragraph_once_and_in_order(
    sizes: list[int], validation: float, test: float, seed: int
) -> None:
    parts = [f"{i} " + "x" * size for i, size in enumerate(sizes)]
    split = corpus.split_blocks(parts, validation, test, n_blocks=8, seed=seed)
    found = [corpus.paragraphs(text) for text in split]
    assert Counter(p for part in found for p in part) == Counter(parts)
    for part in found:
        assert part == [p for p in parts if p in set(part)]


@pytest.mark.parametrize("seed", range(5))
def test_something_is_left_to_train_on_beside_a_very_long_paragraph(seed: int) -> None:
    for sizes in ([1, 1, 1000], [1000, 1, 1], [1, 1000, 1], [1000, 900, 1, 1]):
        parts = ["x" * size for size in sizes]
        for share in (0.1, 0.6, 0.9):
            for n_blocks in range(2, len(parts) + 1):
                split = corpus.split_blocks(parts, share, 0.05, n_blocks, seed)
                assert split.train


def test_held_out_shares_are_near_what_was_asked_for() -> None:
    text = corpus.pydoc_text()
    split = corpus.split_blocks(text, 0.1, 0.05)
    assert abs(len(split.validation) / len(text) - 0.1) < 0.02
    assert abs(len(split.test) / len(text) - 0.05) < 0.02
    assert split == corpus.split_blocks(text, 0.1, 0.05)
    assert split.validation != corpus.split_blocks(text, 0.1, 0.05, seed=1).validation


def test_a_share_is_rounded_to_the_nearest_number_of_blocks() -> None:
    parts = [f"paragraph {i:04}" for i in range(1000)]
    for share, blocks in ((0.105, 5), (0.117, 6), (0.0, 0)):
        held = corpus.split_blocks(parts, share, n_blocks=50).validation
        assert len(corpus.paragraphs(held)) == 20 * blocks


def test_what_is_held_out_are_blocks_of_neighbours() -> None:
    parts = [f"paragraph {i:04}" for i in range(1000)]
    held = corpus.paragraphs(corpus.split_blocks(parts, 0.1).validation)
    places = [parts.index(p) for p in held]
    neighbours = sum(b - a == 1 for a, b in pairwise(places))
    assert neighbours > 0.9 * len(places)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: corpus.split_blocks("a\n\nb", 0.6, 0.5), "sum is below 1"),
        (lambda: corpus.split_blocks("a\n\nb", -0.1), "shares from 0"),
        (lambda: corpus.split_blocks("a\n\nb", n_blocks=3), "for 2 paragraphs"),
        (lambda: corpus.split_blocks(["", " "], n_blocks=2), "for 0 paragraphs"),
        (lambda: corpus.leaked_share("a", " \n"), "no paragraph"),
        (lambda: corpus.docstrings("http"), r"write docstrings\(\['http'\]\)"),
        (lambda: corpus.docstrings(["no_such_module"]), "has no source"),
        (lambda: corpus.docstrings(["../http"]), "has no source"),
        (lambda: corpus.module_docstrings(9, 3), "min_words <= max_words"),
    ],
)
def test_bad_text_arguments_are_refused_in_a_sentence(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


# ------------------------------------------------------------------------ docstrings


def test_docstrings_are_what_the_modules_say_of_themselves() -> None:
    import mailbox

    said = {d.name: d.text for d in corpus.docstrings(["mailbox"])}
    assert said["Maildir"] == mailbox.Maildir.__doc__
    assert {d.module for d in corpus.docstrings(["http"])} == {"http"}


def test_mining_docstrings_imports_nothing() -> None:
    code = (
        "import sys; from course_utils.data import corpus; corpus.module_docstrings(); "
        "assert not {'turtle', 'mailbox', 'torch', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture(scope="module")
def documents() -> list[tuple[list[str], int]]:
    return corpus.module_docstrings()


def test_module_docstrings_are_many_distinct_and_of_every_class(documents) -> None:
    assert len(documents) > 1800
    assert len({tuple(tokens) for tokens, _ in documents}) == len(documents)
    counts = Counter(label for _, label in documents)
    assert set(counts) == set(range(12))
    assert max(counts.values()) < 0.2 * len(documents)


def test_no_word_of_a_docstring_names_its_module(documents) -> None:
    names = [name.removeprefix("_py") for name in corpus.MODULES]
    for tokens, _ in documents:
        assert 5 <= len(tokens) <= 80
        assert not [t for t in tokens if t == "tar" or any(n in t for n in names)]


OTHERS = [
    Path("/usr/bin/python3"),
    *Path.home().glob(".pyenv/versions/3.1*/bin/python"),
]
PYTHONS = [Path(sys.executable), *sorted(p for p in OTHERS if p.exists())]


@pytest.mark.slow
@pytest.mark.parametrize("python", PYTHONS, ids=lambda p: p.parts[-3])
def test_the_texts_are_in_every_python_there_is_here(python: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "if sys.version_info >= (3, 11):\n"
        "    from course_utils.data import corpus\n"
        "    assert len(corpus.topics()) > 70 and len(corpus.pydoc_text()) > 300_000\n"
        "    assert {y for _, y in corpus.module_docstrings()} == set(range(12))"
    )
    root = str(Path(corpus.__file__).parents[2])
    subprocess.run([str(python), "-c", code, root], check=True)


# ------------------------------------------------------------------------ vocabulary


@examples
@given(st.lists(WORDS, min_size=1))
def test_vocabulary_round_trips_what_it_has_seen(sentences: list[list[str]]) -> None:
    vocabulary = Vocabulary(sentences)
    for sentence in sentences:
        ids = vocabulary.encode(sentence, bos=True, eos=True)
        assert vocabulary.decode([*ids, PAD, PAD]) == sentence
        assert ids[0] == BOS
        assert ids[-1] == EOS
        assert all(i >= len(SPECIALS) for i in ids[1:-1])


def test_vocabulary_orders_by_frequency_then_alphabet() -> None:
    vocabulary = Vocabulary([["b", "a", "c", "c"], ["rare"]], min_count=1)
    assert vocabulary.tokens[4:] == ("c", "a", "b", "rare")
    assert len(Vocabulary([["c", "c", "a"]], min_count=2)) == 5


def test_unknown_tokens_become_unk_and_show_it() -> None:
    vocabulary = Vocabulary([["the", "cat"]])
    assert vocabulary.encode(["the", "dog"]) == [vocabulary.ids["the"], UNK]
    assert vocabulary.decode([UNK]) == ["<unk>"]
    assert "cat" in vocabulary
    assert "dog" not in vocabulary


def test_a_vocabulary_of_characters_takes_a_string() -> None:
    vocabulary = Vocabulary(["hello"])
    assert "".join(vocabulary.decode(vocabulary.encode("hole"))) == "hole"


def test_decoding_takes_tensors_and_stops_at_the_end() -> None:
    vocabulary = Vocabulary([["a", "b"]])
    assert vocabulary.decode(torch.tensor([BOS, 5, 4, EOS, 5, PAD])) == ["b", "a"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Vocabulary("abc"), r"Vocabulary\(\[text\]\)"),
        (lambda: Vocabulary([["<pad>"]]), "<pad>.*rename"),
        (lambda: Vocabulary([["the", "cat"]]).encode("the cat"), "split it"),
        (lambda: Vocabulary([["a"]]).encode([4, 5]), "ids already"),
        (lambda: Vocabulary([["a"]]).decode([5]), "id 5 .*0 to 4"),
        (lambda: Vocabulary([["a"]]).decode([-1]), "id -1"),
    ],
)
def test_misuse_of_a_vocabulary_is_refused_in_a_sentence(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


# ------------------------------------------------------------------------ byte pairs


@examples
@given(st.text())
def test_chunks_are_the_text_and_nothing_else(text: str) -> None:
    assert "".join(CHUNK.findall(text)) == text


@examples
@given(st.text("ab é…😀\n", max_size=60), st.text(max_size=30), st.integers(256, 290))
def test_byte_pairs_round_trip_any_text(seen: str, unseen: str, n: int) -> None:
    encoder = BytePairEncoder.train(seen, n)
    assert len(encoder) <= n
    for text in (seen, unseen):
        assert encoder.decode(encoder.encode(text)) == text


def naive_merges(text: str, n: int) -> list[tuple[int, int]]:
    """The definition, slowly: count every pair anew before every merge."""
    chunks = [list(chunk.encode()) for chunk in CHUNK.findall(text)]
    merges: list[tuple[int, int]] = []
    while len(merges) < n:
        counts = Counter(pair for ids in chunks for pair in pairwise(ids))
        if not counts:
            break
        best = max(counts, key=lambda pair: (counts[pair], pair))
        if counts[best] < 2:
            break
        for ids in chunks:
            i = 0
            while i < len(ids) - 1:
                if (ids[i], ids[i + 1]) == best:
                    ids[i : i + 2] = [256 + len(merges)]
                i += 1
        merges.append(best)
    return merges


@examples
@given(st.text("aab c", max_size=80), st.integers(0, 20))
def test_merges_are_those_of_counting_anew_each_time(text: str, n: int) -> None:
    assert BytePairEncoder.train(text, 256 + n).merges == naive_merges(text, n)


def test_encoding_replays_training() -> None:
    encoder = BytePairEncoder.train("low lower lowest newer newest " * 5, 300)
    assert len(encoder.encode("lowest")) < len("lowest")
    assert b"lowe" in encoder.pieces or b" lowe" in encoder.pieces
    assert [encoder.pieces[i] for i in encoder.encode("xyz")] == [b"x", b"y", b"z"]


def test_byte_pairs_shorten_the_help_topics() -> None:
    text = corpus.pydoc_text()
    encoder = BytePairEncoder.train(text, 512)
    ids = encoder.encode(text)
    assert len(encoder) == 512
    assert len(text) / len(ids) > 1.9
    assert encoder.decode(ids) == text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BytePairEncoder.train("a", 255), "at least 256"),
        (lambda: BytePairEncoder().decode([256]), "id 256 .*0 to 255"),
    ],
)
def test_misuse_of_byte_pairs_is_refused_in_a_sentence(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


# --------------------------------------------------------------------------- batches


class Sentences(NamedTuple):
    source: tuple[str, ...]
    target: tuple[str, ...]


def test_padding_fills_up_to_the_longest() -> None:
    padded = sequences.pad_batch([[7, 8, 9], [5]])
    assert padded.tolist() == [[7, 8, 9], [5, PAD, PAD]]
    assert padded.dtype == torch.long


def test_a_translation_batch_begins_and_ends_its_target() -> None:
    pairs = [Sentences(("b", "a"), ("x",)), Sentences(("a",), ("x", "x", "y"))]
    source = Vocabulary([p.source for p in pairs])
    target = Vocabulary([p.target for p in pairs])
    sources, targets = sequences.translation_batch(pairs, source, target)
    assert sources.tolist() == [[5, 4, EOS], [4, EOS, PAD]]
    assert targets.tolist() == [[BOS, 4, EOS, PAD, PAD], [BOS, 4, 4, 5, EOS]]


def test_translation_batches_repeat_for_a_step_and_pad_no_source() -> None:
    pairs = [Sentences(("a",) * n, ("x",) * m) for n in (2, 3) for m in (1, 4, 6)]
    source, target = Vocabulary([["a"]]), Vocabulary([["x"]])
    batch = sequences.translation_batches(pairs, source, target, batch_size=3, seed=1)
    seen = set()
    for step in range(2):
        sources, targets = batch(step, torch.Generator())
        assert not (sources == PAD).any()
        assert sorted((targets != PAD).sum(1).tolist()) == [3, 6, 8]
        assert torch.equal(batch(step, torch.Generator())[1], targets)
        seen.add(sources.shape[1])
    assert seen == {3, 4}


def test_rounded_lengths_leave_few_shapes_and_the_same_words() -> None:
    pairs = [
        Sentences(("a",) * n, ("x",) * m) for n in range(1, 20) for m in (1, 9, 17)
    ]
    source, target = Vocabulary([["a"]]), Vocabulary([["x"]])
    batch = sequences.translation_batches(pairs, source, target, 4, multiple=8)
    shapes, words = set(), 0
    for step in range(17):  # 21 pairs to 7 words, 24 to 15, 12 to 19: 6 + 6 + 3 batches
        sources, targets = batch(step, torch.Generator())
        shapes.add((sources.shape[1], targets.shape[1] - 1))
        words += (sources > EOS).sum().item() if step < 15 else 0
    assert all(n % 8 == m % 8 == 0 for n, m in shapes)
    assert len(shapes) <= 9
    assert words == sum(len(pair.source) for pair in pairs)


@examples
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=60),
    st.integers(1, 8),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_an_epoch_is_every_example_once_in_batches_of_one_length(
    lengths: list[int], size: int, seed: int, epoch: int
) -> None:
    dealt = sequences.batches_by_length(lengths, size, seed, epoch)
    assert sorted(i for batch in dealt for i in batch) == list(range(len(lengths)))
    for batch in dealt:
        assert 1 <= len(batch) <= size
        assert len({lengths[i] for i in batch}) == 1
    assert dealt == sequences.batches_by_length(lengths, size, seed, epoch)


def test_another_epoch_or_seed_is_another_order() -> None:
    lengths = [3, 4] * 50
    orders = [
        sequences.batches_by_length(lengths, 8, s, e) for s in (0, 1) for e in (0, 1)
    ]
    assert len({str(order) for order in orders}) == 4
    sets = {frozenset(map(frozenset, order)) for order in orders}
    assert len(sets) == 4  # examples change company, too


@examples
@given(st.integers(0, 200))
def test_a_step_can_be_asked_for_without_those_before_it(step: int) -> None:
    lengths = [2, 3, 3, 4] * 9
    epochs = [sequences.batches_by_length(lengths, 5, 1, epoch) for epoch in range(3)]
    in_order = [batch for epoch in epochs for batch in epoch]
    step = step % len(in_order)
    assert sequences.epochs_by_length(lengths, 5, seed=1)(step) == in_order[step]


def test_global_randomness_is_neither_used_nor_touched() -> None:
    before = torch.random.get_rng_state()
    first = sequences.batches_by_length([1, 2] * 20, 4)
    torch.manual_seed(123)
    assert sequences.batches_by_length([1, 2] * 20, 4) == first
    torch.random.set_rng_state(before)


def test_shapes_are_those_of_the_signatures() -> None:
    checked = {
        name: jaxtyped(typechecker=beartype)(getattr(sequences, name))
        for name in (
            "pad_batch",
            "translation_batch",
            "random_windows",
            "consecutive_windows",
        )
    }
    ids, vocabulary = torch.arange(20), Vocabulary([["a"]])
    pair = Sentences(("a", "a"), ("a",))
    checked["pad_batch"]([[1, 2], [3]])
    checked["translation_batch"]([pair, pair], vocabulary, vocabulary)
    checked["random_windows"](ids, 4, 3, torch.Generator())
    checked["consecutive_windows"](ids, 4)


def test_windows_predict_the_next_token() -> None:
    ids = torch.arange(50)
    generator = torch.Generator().manual_seed(0)
    read, following = sequences.random_windows(ids, 6, 400, generator)
    assert read.shape == (400, 6)
    assert torch.equal(following, read + 1)
    assert set(read[:, 0].tolist()) == set(range(44))  # every window, the last too


@examples
@given(st.integers(2, 60), st.integers(1, 20))
def test_consecutive_windows_predict_each_token_once(n: int, length: int) -> None:
    ids = torch.arange(n)
    if length >= n:
        with pytest.raises(ValueError, match="do not fit"):
            sequences.consecutive_windows(ids, length)
        return
    read, following = sequences.consecutive_windows(ids, length)
    assert torch.equal(following, read + 1)
    assert read.flatten().tolist() == list(range((n - 1) // length * length))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sequences.pad_batch([]), "no sequence"),
        (lambda: sequences.batches_by_length([], 4), "no lengths"),
        (lambda: sequences.batches_by_length([1], 0), "batch of at least 1"),
        (lambda: sequences.batches_by_length([1], 1, epoch=-1), "epoch from 0"),
        (lambda: sequences.epochs_by_length([1], 1)(-1), "step is -1"),
        (
            lambda: sequences.consecutive_windows(torch.zeros(2, 3), 1),
            r"shape \(2, 3\)",
        ),
        (
            lambda: sequences.random_windows(torch.zeros(9), 3, 0, torch.Generator()),
            "batch=0",
        ),
    ],
)
def test_bad_batches_are_refused_in_a_sentence(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
