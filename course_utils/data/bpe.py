"""Byte-pair encoding: a vocabulary of pieces, from single bytes to whole words."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from course_utils.data.corpus import require_counts, require_several, require_text

Pair = tuple[int, int]

# A word with the space before it, a run of signs likewise, or white space. No merge
# crosses these chunks, so each is counted and encoded once, however often it occurs.
CHUNK = re.compile(r" ?\w+| ?[^\w\s]+|\s+(?!\S)|\s+")


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
    replays the merges. Any text can be encoded, for any text is bytes.
    Used in chapter 13.
    """

    def __init__(self, merges: Iterable[Pair] = ()):
        self.merges = list(merges)
        self.ids = {pair: 256 + i for i, pair in enumerate(self.merges)}
        self.pieces = [bytes([i]) for i in range(256)]
        for left, right in self.merges:
            self.pieces.append(self.pieces[left] + self.pieces[right])
        self.known: dict[str, list[int]] = {}

    @classmethod
    def train(cls, text: str, n_pieces: int = 512) -> BytePairEncoder:
        """Learn merges until there are `n_pieces`, or no pair comes twice."""
        require_text(text)
        require_counts(n_pieces=n_pieces)
        if n_pieces < 256:
            raise ValueError(
                f"train got n_pieces={n_pieces}, expected at least 256: the single "
                "bytes come first, merges after them."
            )
        chunks = Counter(CHUNK.findall(text))
        spelled = [list(chunk.encode("utf-8")) for chunk in chunks]
        times = list(chunks.values())
        counts: Counter[Pair] = Counter()
        where: defaultdict[Pair, set[int]] = defaultdict(set)
        for index, ids in enumerate(spelled):
            for pair in pairwise(ids):
                counts[pair] += times[index]
                where[pair].add(index)
        merges: list[Pair] = []
        while counts and len(merges) < n_pieces - 256:
            best = max(counts, key=lambda pair: (counts[pair], pair))
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
        return cls(merges)

    def __len__(self) -> int:
        return len(self.pieces)

    def encode(self, text: str) -> list[int]:
        """Turn a text into ids of pieces, replaying the merges in the order learned."""
        require_text(text)
        return [i for chunk in CHUNK.findall(text) for i in self._encode_chunk(chunk)]

    def _encode_chunk(self, chunk: str) -> list[int]:
        if chunk not in self.known:
            ids = list(chunk.encode("utf-8"))
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
