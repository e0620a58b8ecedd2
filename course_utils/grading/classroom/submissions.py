"""Find the submissions in a folder and read their cells, trusting neither.

Folders as nbgrader collects them (student/exercise/notebook.ipynb), one folder for each
student, or flat files with the exercise's name in theirs. No link is followed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_utils.grading.questions import EXERCISES
from course_utils.grading.sandbox.wire_format import plain_text

MAX_NOTEBOOK = 50_000_000  # bytes; figures in the outputs may be large
MAX_CODE = 2_000_000  # characters of code
MAX_CELLS = 2_000
MAX_BRACKETS = 2_000_000  # lists and dictionaries: a small file can be much to hold
MAX_DEPTH = 4


@dataclass(frozen=True)
class Submission:
    """One student's notebook for one exercise."""

    student: str
    chapter: str  # "" when the name of no exercise was found
    path: Path
    flags: tuple[str, ...] = ()
    digest: str = ""  # of the file as it was found

    @property
    def exercise(self) -> str:
        return EXERCISES.get(self.chapter, "?")


@dataclass(frozen=True)
class Notebook:
    """The code cells of a submission, or the reason why there are none."""

    cells: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    digest: str = field(default="", compare=False)


def notebooks_under(folder: Path, depth: int = 0) -> list[Path]:
    """List the notebooks in a folder, by name; links are listed, never followed."""
    found: list[Path] = []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
    except OSError:
        if not depth:
            raise
        return [folder]  # a row of its own, whose flag says what is wrong
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if entry.name != ".ipynb_checkpoints" and depth < MAX_DEPTH:
                found += notebooks_under(Path(entry.path), depth + 1)
        elif entry.name.lower().endswith(".ipynb"):
            found.append(Path(entry.path))
    return found


def chapter_in(text: str) -> str:
    """Find which exercise a name speaks of: its whole name, or its two digits."""
    for chapter, exercise in EXERCISES.items():
        if exercise in text:
            return chapter
    numbers = re.findall(r"(?<!\d)(\d\d)(?!\d)(?=[_ -]|$|\.)", text)
    known = [number for number in numbers if number in EXERCISES]
    return known[0] if len(set(known)) == 1 else ""


def shown_name(name: str) -> str:
    """Write a name from the file system so that any file or screen can hold it."""
    return plain_text(os.fsencode(name).decode("utf-8", "replace"))[:200]


def who_and_what(relative: Path, forced: str) -> tuple[str, str]:
    """Read student, as in the file system, and chapter from a path below the folder."""
    *folders, _ = relative.parts
    stem = relative.stem
    chapter = forced or chapter_in(stem)
    for folder in reversed(folders[1:]):
        chapter = chapter or chapter_in(folder)
    if folders:
        return folders[0], chapter
    exercise = EXERCISES.get(chapter, "")
    before, _, after = stem.partition(exercise) if exercise else (stem, "", "")
    rest = f"{before} {after}" if after.strip(" _-") else before
    return rest.strip(" _-") or stem, chapter


def find_submissions(folder: Path, chapter: str = "") -> list[Submission]:
    """List every student's notebook for every exercise, once, in a fixed order."""
    if not folder.is_dir():
        raise ValueError(
            f"{folder} is not a folder; give the folder that holds the submissions."
        )
    groups: dict[tuple[str, str], list[Path]] = {}
    for path in notebooks_under(folder):
        relative = path.relative_to(folder)
        groups.setdefault(who_and_what(relative, chapter), []).append(path)
    found = []
    names = Counter((shown_name(student), number) for student, number in groups)
    for (student, number), paths in sorted(groups.items()):
        exact = [path for path in paths if path.stem == EXERCISES.get(number)]
        chosen = (exact or paths)[0]
        flags = ["unknown exercise"] if not number else []
        if names[shown_name(student), number] > 1:
            flags.append(f"another student's name looks the same: {student!a}")
        if len(paths) > 1:
            name = shown_name(str(chosen.relative_to(folder)))
            flags.append(f"{len(paths)} notebooks, graded {name}")
        shown = shown_name(student)
        found.append(Submission(shown, number, chosen, tuple(flags)))
    return found


def read_bytes(path: Path) -> bytes | str:
    """Read a regular file whole, or say why not."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        return "a link, not a file" if path.is_symlink() else f"{error.strerror}"
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return "not a regular file"
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_size > MAX_NOTEBOOK:
            return f"larger than {MAX_NOTEBOOK // 1_000_000} MB"
        return file.read(MAX_NOTEBOOK + 1)


def decoded(content: bytes) -> tuple[str, tuple[str, ...]]:
    """Decode a notebook; one that is not UTF-8 is read as best it can, and flagged."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if content.startswith(mark):
            return content.decode(encoding, "replace"), (f"encoded as {encoding}",)
    try:
        return content.decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace"), ("not encoded as utf-8",)


def source_of(cell: Any) -> str | None:
    """Return the code of a code cell, of whatever notebook format, or None."""
    if not isinstance(cell, dict) or cell.get("cell_type") != "code":
        return None
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    return source if isinstance(source, str) else None


def read_notebook(path: Path) -> Notebook:
    """Read the code cells of a submission; what cannot be read is said in a flag."""
    content = read_bytes(path)
    if isinstance(content, str):
        return Notebook(flags=(f"not read: {content}",), digest=content)
    digest = hashlib.sha256(content).hexdigest()
    if content.count(b"[") + content.count(b"{") > MAX_BRACKETS:
        return Notebook(flags=("not read: too many lists",), digest=digest)
    text, flags = decoded(content)
    try:
        notebook = json.loads(text)
        cells = notebook.get("cells")
        if cells is None:
            cells = [c for sheet in notebook["worksheets"] for c in sheet["cells"]]
        sources = [source_of(cell) for cell in cells]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Notebook(flags=(*flags, "not read: not a notebook"), digest=digest)
    code = tuple(
        source.encode("utf-8", "replace").decode() for source in sources if source
    )
    if not code:
        return Notebook(flags=(*flags, "not read: no code in it"), digest=digest)
    if len(code) > MAX_CELLS or sum(map(len, code)) > MAX_CODE:
        return Notebook(flags=(*flags, "not read: too much code"), digest=digest)
    return Notebook(code, flags, digest)
