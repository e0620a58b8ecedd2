"""Cut a text into chunks, before byte pairs are merged: no merge crosses a cut.

Each chunk is then counted and encoded once, however often it occurs. Chapter 13 cuts at
words; GPT-2 also cuts before 's and 'll, and letters from numbers.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable
from functools import lru_cache

# A word with the space before it, a run of signs likewise, or white space.
CHUNK = re.compile(r" ?\w+| ?[^\w\s]+|\s+(?!\S)|\s+")

# White space by Unicode's list, which has no \x1c to \x1f: Python's \s has them.
SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


@lru_cache(maxsize=1)
def number_class() -> str:
    r"""Write Unicode's numbers, \p{N}, as ranges for a character class of `re`.

    Python's `\d` has only some of them (no ½, no Ⅷ), and `re` knows no `\p`.
    """
    ranges: list[list[int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code)).startswith("N"):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


@lru_cache(maxsize=1)
def gpt2_chunk() -> re.Pattern[str]:
    r"""Return GPT-2's pattern, with what `re` has in place of \p{L} and \p{N}.

    A letter is a word character (`\w`) that is neither a number nor the underscore.
    """
    number = number_class()
    return re.compile(
        r"'(?:[sdmt]|ll|ve|re)"
        rf"| ?[^\W_{number}]+"  # letters
        rf"| ?[{number}]+"
        rf"| ?(?:[^\w{SPACE}]|_)+"  # neither space, letter nor number
        rf"|[{SPACE}]+(?![^{SPACE}])|[{SPACE}]+"
    )


CHUNKS: dict[str, Callable[[], re.Pattern[str]]] = {
    "words": lambda: CHUNK,
    "gpt2": gpt2_chunk,
}


@lru_cache(maxsize=1)
def gpt2_bytes() -> dict[int, str]:
    """Return the visible character that stands for each byte in GPT-2's files.

    Visible bytes stand for themselves; the others, a space among them, get the
    characters from 256 on, in order.
    """
    visible = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = [byte for byte in range(256) if byte not in visible]
    letters = {byte: chr(byte) for byte in visible}
    return letters | {byte: chr(256 + i) for i, byte in enumerate(hidden)}
