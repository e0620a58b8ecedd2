"""The terms of all data that the package reads are said in one place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from course_utils.data.texts import STORIES
from tools.notebooks.io import ROOT

SOURCES = ("datasets", "pydoc_data", "sklearn.datasets", "sysconfig")
"""What others' data come from: packages of data, and the standard library's source."""
ON_THE_PAGE = {"load_dataset": "load_translation", "sysconfig": "standard library"}


def sources(tree: ast.AST) -> Iterator[str]:
    """What a module takes from a source of data: the function, or the module itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith(SOURCES))
        elif isinstance(node, ast.ImportFrom) and (node.module or "") in SOURCES:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "pydoc_data.topics":
            yield node.module


def test_all_data_that_the_package_reads_are_listed_with_their_licence():
    page = (ROOT / "book" / "references.md").read_text("utf-8")
    table = page.split("## Data")[1].split("## Papers")[0]
    read = {
        name
        for path in sorted(Path(ROOT, "course_utils").rglob("*.py"))
        for name in sources(ast.parse(path.read_text("utf-8")))
    }
    assert read >= {"load_digits", "load_dataset", "pydoc_data.topics", "sysconfig"}
    missing = {name for name in read if ON_THE_PAGE.get(name, name) not in table}
    assert not missing, f"book/references.md says nothing of {sorted(missing)}"


def test_every_row_of_the_table_has_a_licence():
    page = (ROOT / "book" / "references.md").read_text("utf-8")
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| ")][1:]
    assert rows
    assert all(row[3].strip() for row in rows)


def test_a_text_from_the_network_is_listed_with_its_licence():
    page = (ROOT / "book" / "references.md").read_text("utf-8")
    assert STORIES.partition("/resolve/")[0] in page
    assert "`load_text`" in page
