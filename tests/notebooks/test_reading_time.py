"""A chapter's reading time is computed from its words and printed in its opening."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.notebooks.io import ROOT, dumps, read
from tools.notebooks.normalise import canonical, findings
from tools.notebooks.reading_time import minutes, timed
from tools.notebooks.repo_links import stamped

CHAPTERS = sorted((ROOT / "book").glob("[0-9][0-9]_*.ipynb"))
LONGEST = 55  # minutes that one sitting can hold


def notebook(*cells: NotebookNode) -> NotebookNode:
    """A notebook of these cells."""
    return new_notebook(cells=list(cells))


def test_prose_is_read_twice_as_fast_as_code_and_mathematics() -> None:
    words = 400 * "word "
    assert minutes(notebook(new_markdown_cell(words))) == 2
    assert minutes(notebook(new_code_cell(words))) == 4
    assert minutes(notebook(new_markdown_cell(f"$${words}$$"))) == 4
    mixed = new_markdown_cell(f"{words} ${words}$ {words}")
    assert minutes(notebook(mixed)) == 8


def test_a_cell_that_no_page_shows_takes_no_time() -> None:
    cell = new_code_cell(400 * "word ", metadata={"tags": ["remove-cell"]})
    assert minutes(notebook(cell)) == 0


def test_the_time_line_gets_the_minutes_and_keeps_the_rest() -> None:
    opening = "**Time** about 3 minutes to read; a minute on a CPU, none on a GPU.\n"
    stamped_cell = timed(notebook(new_markdown_cell(opening + 4000 * "word "))).cells[0]
    assert stamped_cell.source.startswith(opening.replace("3", "20"))


def test_a_stale_time_is_found_and_mended_by_stamp(tmp_path: Path) -> None:
    opening = "# T\n\n**Time** about 3 minutes to read; a minute on a CPU or GPU.\n\n"
    long = notebook(new_markdown_cell(opening + 4000 * "word "))
    path = tmp_path / "chapter.ipynb"
    stale = stamped(long, path.parent.name, path.name)
    path.write_text(dumps(canonical(stale)))
    (finding,) = findings(path)
    assert "does not say 20 minutes" in finding
    path.write_text(dumps(canonical(timed(read(path)))))
    assert findings(path) == []


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_can_be_read_in_one_sitting(path: Path) -> None:
    assert round(minutes(read(path))) <= LONGEST
