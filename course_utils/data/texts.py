"""Larger texts for a language model: stories from afar, Python's own sources at home.

`load_text()` fetches the beginning of TinyStories (Eldan and Li, 2023: short stories in
simple words, written by GPT-4). Without a network it says so and returns the sources of
the standard library with the help topics, which every Python carries.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import random
import sysconfig
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from course_utils.data.corpora import CorpusUnavailable, cache_folder, within
from course_utils.data.corpus import Split, topics
from course_utils.doors import check_arguments

STORIES = (
    "https://huggingface.co/datasets/roneneldan/TinyStories/resolve/"
    "f54c09fd23315a6f9c86f9dc80f725de7d8f9c64/TinyStoriesV2-GPT4-train.txt"
)
"""One commit of the authors' repository."""
STORIES_BYTES = 2_227_753_162  # of the whole file at that commit
BETWEEN_STORIES = "<|endoftext|>"
NAMES = ("stories", "library", "help")


class Text(NamedTuple):
    """Where a text is from, and its documents: stories, source files or topics."""

    name: str
    documents: list[str]


def load_text(
    name: str = "stories",
    n_characters: int = 60_000_000,
    *,
    timeout: float = 300.0,
    cache: str | Path | None = None,
) -> Text:
    """Return a text of about `n_characters`, or of all there is if that is less.

    `name` is "stories", "library" (sources of the standard library, help topics first)
    or "help". Stories that can't be had within `timeout` seconds are replaced by the
    library, and a sentence says why. Used in chapter 13.
    """
    if name not in NAMES:
        raise ValueError(f"name is {name!r}, expected one of {NAMES}.")
    if n_characters < 1000:
        raise ValueError(f"n_characters is {n_characters}, expected 1000 or more.")
    if name == "help":
        return Text("help", first_documents(list(topics().values()), n_characters))
    if name == "stories":
        try:
            return Text("stories", stories(n_characters, timeout, cache))
        except CorpusUnavailable as why:
            print(f"{why} Going on with Python's own sources instead.")
    return Text("library", library(n_characters))


def split_documents(
    documents: Sequence[str],
    validation: float = 0.02,
    test: float = 0.02,
    seed: int = 0,
) -> Split:
    """Hold out whole documents, drawn by `seed`; none is in two parts.

    The shares are of characters, as near as documents allow. Used in chapter 13.
    """
    if not (validation > 0 and test > 0 and validation + test < 1):
        raise ValueError(
            f"split_documents got validation={validation} and test={test}, expected "
            "shares above 0 whose sum is below 1."
        )
    if isinstance(documents, str) or not all(isinstance(d, str) for d in documents):
        raise ValueError(
            "split_documents got documents that are no list of texts; expected what "
            "`load_text(…).documents` holds."
        )
    order = list(dict.fromkeys(documents))
    if len(order) < 3:
        raise ValueError(
            f"split_documents got {len(order)} different documents, expected at least "
            "3, one for each part."
        )
    random.Random(seed).shuffle(order)
    total = sum(map(len, order))
    held: dict[str, list[str]] = {"validation": [], "test": []}
    for part, share in (("validation", validation), ("test", test)):
        while not held[part] or (
            sum(map(len, held[part])) < share * total and len(order) > 2
        ):
            held[part].append(order.pop())
    joined = {part: "\n\n".join(found) for part, found in held.items()}
    return Split(train="\n\n".join(order), **joined)


def first_documents(documents: list[str], n_characters: int) -> list[str]:
    """Take documents from the front until there are `n_characters`."""
    taken, length = [], 0
    for document in documents:
        if length >= n_characters:
            break
        taken.append(document)
        length += len(document)
    return taken


# ---------------------------------------------------------------------------- at home


def library(n_characters: int) -> list[str]:
    """Read the help topics and the sources of the standard library, each file once.

    Files come in an order of their own, so that a part of them is a mixture.
    """
    documents = list(topics().values())
    root = Path(sysconfig.get_paths()["stdlib"])
    paths = [p for p in sorted(root.rglob("*.py")) if not is_foreign(p, root)]
    random.Random(0).shuffle(paths)
    length = sum(map(len, documents))
    for path in paths:
        if length >= n_characters:
            break
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):  # some tests are no UTF-8, on purpose
            continue
        documents.append(text)
        length += len(text)
    return first_documents(list(dict.fromkeys(documents)), n_characters)


def is_foreign(path: Path, root: Path) -> bool:
    """Whether a file below the library's folder was installed there by others."""
    return bool({"site-packages", "dist-packages"} & set(path.relative_to(root).parts))


# ------------------------------------------------------------------- from the network


def stories(n_bytes: int, timeout: float, cache: str | Path | None) -> list[str]:
    """Return the first stories, from the kept copy if there is one."""
    copy = (Path(cache) if cache else cache_folder()) / f"stories-{n_bytes}.txt"
    content = read_kept(copy)
    if content is None:
        print(f"Fetching stories, {n_bytes / 1e6:.0f} MB …")
        try:
            content = within(timeout, lambda: fetch(n_bytes, timeout))
        except TimeoutError as error:
            raise CorpusUnavailable(
                f"The stories did not arrive within {timeout:g} s."
            ) from error
        except (OSError, http.client.HTTPException) as error:
            cause = " ".join(str(error).split())[:200]
            raise CorpusUnavailable(
                f"The stories can't be reached ({cause})."
            ) from error
        keep(copy, content)
    text = content.decode("utf-8", errors="ignore")  # the last letter may be cut
    whole = text.split(BETWEEN_STORIES)[:-1]  # and so is the last story
    return [story.strip() for story in whole if story.strip()]


def fetch(n_bytes: int, timeout: float) -> bytes:
    """Fetch the first bytes of the stories, and see that it is the file we know."""
    asked = urllib.request.Request(STORIES, headers={"Range": f"bytes=0-{n_bytes - 1}"})
    with urllib.request.urlopen(asked, timeout=timeout) as answer:
        total = answer.headers.get("Content-Range", "").rpartition("/")[2]
        if total != str(STORIES_BYTES):
            raise CorpusUnavailable(
                f"The stories are another file than expected: {total or 'unknown'} "
                f"bytes in all, expected {STORIES_BYTES}."
            )
        content = answer.read(n_bytes)
    if len(content) != min(n_bytes, STORIES_BYTES):
        raise CorpusUnavailable(
            f"The stories arrived cut: {len(content)} bytes, expected {n_bytes}; call "
            "again."
        )
    return content


def keep(path: Path, content: bytes) -> None:
    """Keep a copy behind its checksum, whole or not at all."""
    part = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            part = Path(file.name)
            file.write(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
        os.replace(part, path)
    except OSError as error:  # a copy is a comfort, no need
        if part is not None:
            part.unlink(missing_ok=True)
        print(f"No copy of the stories was kept in {path.parent}: {error}.")


def read_kept(path: Path) -> bytes | None:
    """Return the kept copy, or None if there is none or it fails its checksum."""
    if not path.is_file():
        return None
    first, _, content = path.read_bytes().partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() == first:
        return content
    print(f"The copy in {path} is damaged; fetching the stories again.")
    return None


check_arguments(__name__)
