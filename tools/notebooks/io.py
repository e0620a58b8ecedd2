"""Read and write the course's notebooks, and name them in messages."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
CHECKED = "nbval-check-output"  # the tag of a cell whose stored output is compared
FOLDERS = ("book", "exercises", "solutions")


def all_notebooks(root: Path = ROOT) -> list[Path]:
    """Every notebook of the course, in reading order."""
    return [p for folder in FOLDERS for p in sorted((root / folder).glob("*.ipynb"))]


def read(path: Path) -> NotebookNode:
    """Read a notebook; one that is not JSON of nbformat 4 is refused by name."""
    try:
        return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    except Exception as error:
        raise ValueError(
            f"{path} is not a readable notebook ({error}); restore it from git or save "
            "it again from Jupyter."
        ) from error


def dumps(nb: NotebookNode) -> str:
    """The text of a notebook as it stands in git."""
    return nbformat.writes(nb).rstrip("\n") + "\n"


def write_text(path: Path, text: str) -> None:
    """Write all of a file or, if interrupted, none of it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_text(text, encoding="utf-8", newline="\n")
    os.replace(partial, path)


def tags(cell: NotebookNode) -> list[str]:
    """The cell's tags, without repeats."""
    return list(dict.fromkeys(cell.metadata.get("tags", [])))


def name_of(path: Path) -> str:
    """How a message names a file: from the root of the repository where it can."""
    resolved = path.resolve()
    return str(resolved.relative_to(ROOT) if ROOT in resolved.parents else path)


def parse(source: str) -> ast.Module:
    """A code cell's syntax tree, line for line; `%magic` and `!shell` do nothing."""
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.parse(re.sub(r"(?m)^([ \t]*)[%!].*$", r"\1pass", source))


def title(nb: NotebookNode) -> str:
    """The notebook's H1."""
    for cell in nb.cells:
        found = re.search(r"^# (.+)$", cell.source, re.MULTILINE)
        if cell.cell_type == "markdown" and found:
            return found[1].strip()
    return ""


def rewrite(path: Path, text: str) -> None:
    """Write the file if that changes it, and say so."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)
        print(f"wrote {name_of(path)}")
