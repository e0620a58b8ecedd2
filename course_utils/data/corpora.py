"""Larger translation corpora for readers with a GPU, and the local one for all others.

`load_translation()` fetches Multi30k (Elliott et al. 2016: 29,000 captions in English,
German and French) through the optional `datasets` package, checks it, and keeps a copy.
Without network or package it says so in one sentence and returns the course's own
English-French grammar corpus, so that a notebook runs everywhere.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import queue
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from course_utils.data.grammar.sentence_pairs import Pair

Result = TypeVar("Result")
Lines = dict[str, dict[str, list[str]]]  # split, then language, then sentences

SPLITS = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
LANGUAGES = {"fr": "French", "de": "German"}
FILES = (
    "https://raw.githubusercontent.com/multi30k/dataset/"
    "7bee46bc74186b4b6254603143610f730d40bf66/data/task1/tok/{file}.lc.norm.tok.{language}"
)
"""One commit of the authors' repository: lower-case, normalised, tokenised."""

EXPECTED = {
    "train": (29000, {"en": 1837696, "fr": 2198327, "de": 2116499}),
    "validation": (1014, {"en": 64608, "fr": 77007, "de": 76011}),
    "test": (1000, {"en": 63307, "fr": 75145, "de": 70777}),
}
"""Sentences and characters (line ends counted) of every file at that commit."""


class Translation(NamedTuple):
    """A translation corpus: where it is from, and sentence pairs in three parts."""

    name: str
    train: list[Pair]
    validation: list[Pair]
    test: list[Pair]


class CorpusUnavailable(RuntimeError):
    """The corpus can't be had now; the message says why and what to do."""


def local_translation(
    n_train: int = 20_000, n_held_out: int = 500, seed: int = 0
) -> Translation:
    """Return the course's own English-French corpus; no sentence is in two parts.

    Used in chapter 12.
    """
    from course_utils.data.grammar.sentence_pairs import corpus

    held_out = corpus(2 * n_held_out, seed + 10_000)
    train = corpus(n_train, seed, exclude=held_out)
    return Translation("grammar", train, held_out[n_held_out:], held_out[:n_held_out])


def load_translation(
    name: str = "multi30k",
    target: str = "fr",
    *,
    fallback: Callable[[], Translation] | None = local_translation,
    timeout: float = 120.0,
    cache: str | Path | None = None,
) -> Translation:
    """Return English sentences with their translations, from afar if that is possible.

    `name` is "multi30k" or "grammar", the local corpus; `target` is "fr" or "de". When
    Multi30k can't be had within `timeout` seconds, `fallback` is called and a sentence
    says why; with `fallback=None` that is an error. A verified copy is kept in `cache`;
    `datasets` keeps each file it has fetched, so a download that was cut off goes on
    with the missing ones at the next call. Used in chapter 12.
    """
    if name == "grammar":
        return local_translation()
    if name != "multi30k":
        raise ValueError(f"name is {name!r}, expected 'multi30k' or 'grammar'.")
    try:
        return multi30k(target, timeout=timeout, cache=cache)
    except CorpusUnavailable as why:
        if fallback is None:
            raise
        found = fallback()
        print(
            f"{why} Going on with the corpus {found.name!r} instead: "
            f"{len(found.train):,} pairs to train on."
        )
        return found


def multi30k(
    target: str = "fr", *, timeout: float = 120.0, cache: str | Path | None = None
) -> Translation:
    """Return Multi30k, from the verified copy if there is one, else from the network.

    Raises `CorpusUnavailable` when there is neither.
    """
    if target not in LANGUAGES:
        raise ValueError(
            f"target is {target!r}, expected one of {', '.join(LANGUAGES)}."
        )
    if not timeout > 0:
        raise ValueError(f"timeout is {timeout}, expected seconds, more than 0.")
    copy = (Path(cache) if cache else cache_folder()) / f"multi30k-en-{target}.json"
    lines = read_copy(copy)
    if lines is None:
        lines = download(target, timeout)
        write_copy(copy, lines)
    return Translation(
        "multi30k", *(to_pairs(lines[part], target) for part in EXPECTED)
    )


# ------------------------------------------------------------------- from the network


def download(target: str, timeout: float) -> Lines:
    """Fetch and verify both languages, or raise `CorpusUnavailable` with the reason."""
    print(f"Fetching Multi30k, English and {LANGUAGES[target]}: about 4 MB …")
    try:
        from datasets import load_dataset

        def fetch() -> Lines:
            lines: Lines = {part: {} for part in SPLITS}
            for language in ("en", target):
                files = {
                    part: FILES.format(file=file, language=language)
                    for part, file in SPLITS.items()
                }
                loaded = load_dataset("text", data_files=files)
                for part in SPLITS:
                    lines[part][language] = list(loaded[part]["text"])
            return lines

        lines = within(timeout, fetch)
    except ImportError as error:
        raise CorpusUnavailable(
            f"Multi30k needs a package that is missing ({error}): "
            "pip install datasets aiohttp requests."
        ) from error
    except TimeoutError as error:
        raise CorpusUnavailable(
            f"Multi30k did not arrive within {timeout:g} s; call again to go on, with "
            "a longer timeout if the network is slow."
        ) from error
    except Exception as error:  # whatever the network and its libraries may raise
        cause = " ".join(str(error).split())[:200]
        raise CorpusUnavailable(
            f"Multi30k can't be reached ({type(error).__name__}: {cause})."
        ) from error
    verify(lines)
    return lines


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """Wait for `work` so long and no longer: then `TimeoutError`.

    The work goes on in the background, for what it still fetches is of use to the next
    call, and ends with the program.
    """
    done: queue.Queue[tuple[Result | None, BaseException | None]] = queue.Queue()

    def run() -> None:
        try:
            done.put((work(), None))
        except BaseException as error:  # handed to the one who waits
            done.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        result, error = done.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no result within {seconds:g} s") from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


def verify(lines: Lines) -> None:
    """Refuse what is not the corpus as its authors published it, line for line."""
    for part, (rows, sizes) in EXPECTED.items():
        for language, sentences in lines[part].items():
            got = (len(sentences), sum(len(s) + 1 for s in sentences))
            if got != (rows, sizes[language]):
                raise CorpusUnavailable(
                    f"Multi30k arrived damaged: {part} ({language}) has {got[0]} "
                    f"sentences and {got[1]} characters, expected {rows} and "
                    f"{sizes[language]}; empty the cache of `datasets` and call again."
                )


def to_pairs(lines: dict[str, list[str]], target: str) -> list[Pair]:
    """Turn two lists of tokenised lines into pairs; alignments are not known."""
    from course_utils.data.grammar.sentence_pairs import Pair

    def tokens(line: str) -> tuple[str, ...]:
        return tuple(html.unescape(line).split())

    none: frozenset[Any] = frozenset()
    return [
        Pair(tokens(english), tokens(other), none, none)
        for english, other in zip(lines["en"], lines[target])
    ]


# ------------------------------------------------------------------------ the kept copy


def cache_folder() -> Path:
    """Say where copies are kept: in `$XDG_CACHE_HOME`, or else `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "course_utils"


def checksum(lines: Lines) -> str:
    """Return the SHA-256 of every sentence, in order."""
    text = json.dumps(lines, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def write_copy(path: Path, lines: Lines) -> None:
    """Keep a copy with its checksum; it appears whole or not at all.

    A folder that can't be written to is no reason to stop: then nothing is kept.
    """
    text = json.dumps({"sha256": checksum(lines), "lines": lines}, ensure_ascii=False)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, suffix=".part", delete=False
        ) as file:
            temporary = Path(file.name)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        print(f"No copy of the corpus was kept in {path.parent}: {error}.")


def read_copy(path: Path) -> Lines | None:
    """Return the kept copy, or None if there is none or it fails its checksum."""
    if not path.is_file():
        return None
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if checksum(kept["lines"]) == kept["sha256"]:
            return kept["lines"]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    print(f"The copy in {path} is damaged; fetching the corpus again.")
    return None
