"""Byte-pair encoding: a vocabulary of pieces, from single bytes to whole words.

An encoder is kept as GPT-2's is published, in the files vocab.json and merges.txt, so
other libraries read ours, and `BytePairEncoder.load` reads GPT-2's.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from course_utils.data.chunks import CHUNKS, gpt2_bytes
from course_utils.data.corpus import require_counts, require_several, require_text

TIES = ("ids", "bytes")
Pair = tuple[int, int]


def merge_pair(ids: Sequence[int], pair: Pair, new: int) -> list[int]:
    """Replace every occurrence of a pair of neighbours by one new id, left to right.

    Taught in chapter 13.
    """
    merged: list[int] = []
    i = 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) == pair:
            merged.append(new)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


class BytePairEncoder:
    """Pieces of text as ids: the 256 bytes, then the pairs that were merged, in order.

    Training merges the most frequent pair of neighbours, again and again; encoding
    replays the merges. Any text can be encoded, for any text is bytes. Special tokens
    come last; they are found before anything is cut, the longest first.
    `chunks` names how a text is cut ("words" or "gpt2"), `first_bytes` the byte of each
    of the first 256 ids. Used in chapter 13.
    """

    def __init__(
        self,
        merges: Iterable[Pair] = (),
        special: Sequence[str] = (),
        chunks: str = "words",
        first_bytes: Sequence[int] = range(256),
    ):
        if chunks not in CHUNKS:
            raise ValueError(f"chunks is {chunks!r}, expected one of {tuple(CHUNKS)}.")
        self.merges, self.special = list(merges), list(special)
        self.chunks, self.cut = chunks, CHUNKS[chunks]()
        self.ids = {pair: 256 + i for i, pair in enumerate(self.merges)}
        self.pieces = [bytes([byte]) for byte in first_bytes]
        self.byte_ids = {piece[0]: i for i, piece in enumerate(self.pieces)}
        for left, right in self.merges:
            self.pieces.append(self.pieces[left] + self.pieces[right])
        n = len(self.pieces)
        self.special_ids = {token: n + i for i, token in enumerate(self.special)}
        self.pieces += [token.encode("utf-8") for token in self.special]
        self.known: dict[str, list[int]] = {}

    @classmethod
    def train(
        cls,
        text: str,
        n_pieces: int = 512,
        special: Sequence[str] = (),
        chunks: str = "words",
        ties: str = "ids",
    ) -> BytePairEncoder:
        """Learn merges until there are `n_pieces`, or no pair comes twice.

        Of pairs equally frequent the one with the larger ids is merged, or with
        ties="bytes" the one whose bytes come last in the alphabet.
        """
        require_text(text)
        require_counts(n_pieces=n_pieces)
        if n_pieces < 256 + len(special):
            raise ValueError(
                f"train got n_pieces={n_pieces}, expected at least "
                f"{256 + len(special)}: the single bytes come first, merges after them"
                f"{', then special tokens' if special else ''}."
            )
        if ties not in TIES:
            raise ValueError(f"ties is {ties!r}, expected one of {TIES}.")
        cutter = cls((), special, chunks)
        counted = Counter(
            chunk
            for part in cutter.split_special(text)
            if part not in cutter.special_ids
            for chunk in cutter.cut.findall(part)
        )
        spelled = [list(chunk.encode("utf-8")) for chunk in counted]
        times, pieces = list(counted.values()), cutter.pieces[:256]
        counts: Counter[Pair] = Counter()
        where: defaultdict[Pair, set[int]] = defaultdict(set)
        for index, ids in enumerate(spelled):
            for pair in pairwise(ids):
                counts[pair] += times[index]
                where[pair].add(index)
        merges: list[Pair] = []
        while counts and len(merges) < n_pieces - 256 - len(special):
            most = max(counts.values())
            tied = [pair for pair, count in counts.items() if count == most]
            if ties == "bytes":
                best = max(tied, key=lambda pair: (pieces[pair[0]], pieces[pair[1]]))
            else:
                best = max(tied)
            if counts[best] < 2:
                break
            for index in where.pop(best):
                old = spelled[index]
                spelled[index] = merge_pair(old, best, 256 + len(merges))
                for pair in pairwise(old):
                    counts[pair] -= times[index]
                for pair in pairwise(spelled[index]):
                    counts[pair] += times[index]
                    where[pair].add(index)
            del counts[best]
            merges.append(best)
            pieces.append(pieces[best[0]] + pieces[best[1]])
        return cls(merges, special, chunks)

    def __len__(self) -> int:
        return len(self.pieces)

    def split_special(self, text: str) -> list[str]:
        """Cut a text at its special tokens, which stay as parts of their own."""
        if not self.special:
            return [text]
        longest_first = sorted(self.special, key=len, reverse=True)
        return re.split(f"({'|'.join(map(re.escape, longest_first))})", text)

    def encode(self, text: str) -> list[int]:
        """Turn a text into ids of pieces, replaying the merges in the order learned."""
        require_text(text)
        ids: list[int] = []
        for part in self.split_special(text):
            if part in self.special_ids:
                ids.append(self.special_ids[part])
            else:
                for chunk in self.cut.findall(part):
                    ids += self._encode_chunk(chunk)
        return ids

    def _encode_chunk(self, chunk: str) -> list[int]:
        if chunk not in self.known:
            ids = [self.byte_ids[byte] for byte in chunk.encode("utf-8")]
            while len(ids) > 1:
                new = min(self.ids.get(pair, len(self)) for pair in pairwise(ids))
                if new == len(self):
                    break
                ids = merge_pair(ids, self.merges[new - 256], new)
            self.known[chunk] = ids
        return self.known[chunk]

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids back into text; bytes that are no text (a cut letter) become �."""
        require_several("ids", ids)
        found = []
        for i in map(int, ids):
            if not 0 <= i < len(self):
                raise ValueError(
                    f"id {i} is no piece of this encoder, expected 0 to "
                    f"{len(self) - 1}; was it made by another one?"
                )
            found.append(self.pieces[i])
        return b"".join(found).decode("utf-8", errors="replace")

    # ------------------------------------------------------------------------- files

    def save(self, folder: str | Path) -> None:
        """Write vocab.json and merges.txt, as GPT-2's are written.

        Each byte is written as one visible character, a space as Ġ.
        """
        letters = gpt2_bytes()
        n_special = len(self.special)
        n_plain = len(self.pieces) - n_special
        plain = ["".join(letters[b] for b in piece) for piece in self.pieces[:n_plain]]
        names = plain + self.special
        if len(set(names)) < len(names):
            raise ValueError(
                "two merges made the same piece, or a special token is one, so the "
                "file vocab.json could not tell them apart; nothing was written."
            )
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        vocabulary = {name: i for i, name in enumerate(names)}
        text = json.dumps(vocabulary, ensure_ascii=False)
        (folder / "vocab.json").write_text(text, encoding="utf-8")
        lines = [f"{plain[left]} {plain[right]}" for left, right in self.merges]
        head = f"#version: 0.2 chunks={self.chunks}"
        (folder / "merges.txt").write_text("\n".join([head, *lines, ""]), "utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> BytePairEncoder:
        """Read vocab.json and merges.txt: of `save`, or those of GPT-2.

        What the merges do not make is a special token: of GPT-2, <|endoftext|>.
        """
        folder = Path(folder)
        vocabulary = json.loads((folder / "vocab.json").read_text("utf-8"))
        head, *lines = (folder / "merges.txt").read_text("utf-8").split("\n")
        if not head.startswith("#version"):
            lines = [head, *lines]
        chunks = head.rpartition("chunks=")[2] if "chunks=" in head else "gpt2"
        spelled = [tuple(line.split(" ")) for line in lines if line]
        names = sorted(vocabulary, key=vocabulary.__getitem__)
        made = [left + right for left, right in spelled]
        n = 256 + len(spelled)
        bytes_of = {letter: byte for byte, letter in gpt2_bytes().items()}
        in_order = [vocabulary[name] for name in names] == list(range(len(names)))
        if not in_order or set(names[:256]) != set(bytes_of) or names[256:n] != made:
            raise ValueError(
                f"the ids of {folder / 'vocab.json'} are not those of bytes, then of "
                "the merges in merges.txt in their order, then of special tokens."
            )
        merges = [(vocabulary[left], vocabulary[right]) for left, right in spelled]
        first_bytes = [bytes_of[name] for name in names[:256]]
        return cls(merges, names[n:], chunks, first_bytes)
