"""One student's notebook, and how its cells are read, trusting nothing in it.

`layouts` finds them. No link is followed.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from course_utils.grading.questions import EXERCISES
from course_utils.grading.sandbox.wire_format import is_much, plain_text

MAX_NOTEBOOK = 50_000_000  # bytes; figures in the outputs may be large
MAX_CODE = 2_000_000  # characters of code
MAX_CELLS = 2_000


@dataclass(frozen=True)
class Submission:
    """One student's notebook for one exercise."""

    student: str
    chapter: str  # "" when the name of no exercise was found
    path: Path
    flags: tuple[str, ...] = ()
    number: str = ""  # that Canvas or Moodle gave the student
    time: datetime | None = None  # when it was handed in, if that is known

    @property
    def exercise(self) -> str:
        return EXERCISES.get(self.chapter, "?")


@dataclass(frozen=True)
class Notebook:
    """The code cells of a submission, or the reason why there are none."""

    cells: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    digest: str = field(default="", compare=False)
    numbers: tuple[int, ...] = ()  # of the code cells among all, from 1

    def number(self, index: int) -> int:
        """Where a code cell stands in the notebook, as one counts there."""
        return self.numbers[index] if index < len(self.numbers) else index + 1


def shown_name(name: str) -> str:
    """Write a name from the file system so that any file or screen can hold it."""
    return plain_text(os.fsencode(name).decode("utf-8", "replace"))[:200]


def read_bytes(path: Path, most: int = MAX_NOTEBOOK) -> bytes | str:
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
        if status.st_size > most:
            return f"larger than {most / 1_000_000:g} MB"
        return file.read(most + 1)


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
    if is_much(content):
        return Notebook(flags=("not read: too many lists",), digest=digest)
    text, flags = decoded(content)
    try:
        notebook = json.loads(text)
        cells = notebook.get("cells")
        if cells is None:
            cells = [c for sheet in notebook["worksheets"] for c in sheet["cells"]]
        if not isinstance(cells, list):
            raise ValueError("no list of cells")
        sources = [source_of(cell) for cell in cells]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Notebook(flags=(*flags, "not read: not a notebook"), digest=digest)
    code = tuple(
        source.encode("utf-8", "replace").decode() for source in sources if source
    )
    numbers = tuple(i for i, source in enumerate(sources, start=1) if source)
    if not code:
        return Notebook(flags=(*flags, "not read: no code in it"), digest=digest)
    if len(code) > MAX_CELLS or sum(map(len, code)) > MAX_CODE:
        return Notebook(flags=(*flags, "not read: too much code"), digest=digest)
    return Notebook(code, flags, digest, numbers)
