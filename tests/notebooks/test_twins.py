"""What a chapter teaches is what the package runs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import jupytext
import pytest
from nbformat import NotebookNode
from twins import Original, bare, definitions, drift, package, untaught

from tools.notebooks.io import ROOT, read

PACKAGE = '''
"""A module."""

def scale(x: Float[Tensor, "batch d"], factor: float = 2.0) -> Tensor:
    """Make x larger. Taught in chapter 06, its mask in chapter 09."""
    grown: Tensor = x * factor
    return grown


class Layer(nn.Module):
    """A layer. Taught in
    chapter 06."""

    width: int

    def forward(self, x: Tensor) -> Tensor:
        """Go."""
        return scale(x)


def helper(x):
    """Help."""
    return x


def _private():
    """Taught in chapter 06."""
'''
TWIN = """
# %% tags=["twin"]
def scale(x, factor=2.0):
    grown = x * factor  # larger
    return grown

# %% tags=["twin"]
import torch

class Layer(nn.Module):
    def forward(self, x):
        return scale(x)
"""


@pytest.fixture
def originals(tmp_path: Path) -> dict[str, list[Original]]:
    (tmp_path / "things.py").write_text(PACKAGE)
    return package(tmp_path)


def notebook(text: str) -> NotebookNode:
    return jupytext.reads(text, "py:percent")


def chapters() -> dict[str, NotebookNode]:
    paths = sorted((ROOT / "book").glob("[0-9][0-9]_*.ipynb"))
    return {path.name: read(path) for path in paths}


# ----------------------------------------------------------------- the course itself


def test_every_twin_equals_its_original():
    held = package()
    found = [f for name, nb in chapters().items() for f in drift(nb, name, held)]
    assert not found, "\n\n".join(found)


def test_what_the_package_says_is_taught_is_taught():
    found = untaught(chapters(), package())
    assert not found, "\n".join(found)


# ------------------------------------------------------------------------ comparing


NUMBERS = r"\d\d(?:(?:,\s*|\s+and\s+)\d\d)*"
PLACES = rf"(?:Taught|Used)\s+in\s+(?:chapters?\s+({NUMBERS})|`(\w+)`)"


def places(docstring: str) -> list[str]:
    """The notebooks that a docstring says it is taught or used in."""
    said = re.findall(PLACES, docstring)
    return [p for numbers, page in said for p in re.findall(r"\d\d", numbers) or [page]]


def chapter_code() -> dict[str, str]:
    """The code of every notebook of the book, by its number and by its name."""
    code = {}
    for path in sorted((ROOT / "book").glob("*.ipynb")):
        cells = [c.source for c in read(path).cells if c.cell_type == "code"]
        code[path.stem] = code[path.stem[:2]] = "\n".join(cells)
    return code


def test_what_a_docstring_says_is_taught_or_used_in_a_chapter_stands_there():
    code = chapter_code()
    wrong = [
        f"{original.path}: {name} does not stand in {place}"
        for name, originals in package().items()
        for original in originals
        for place in places(ast.get_docstring(original.node) or "")
        if not re.search(rf"\b{name}\b", code.get(place, ""))
    ]
    assert not wrong, "\n".join(wrong)


def test_every_chapter_that_a_docstring_names_is_read():
    assert places("Taught in\nchapters 02, 03 and 12. Used in `a_page`.") == [
        *("02", "03", "12"),
        "a_page",
    ]
    assert places("As in chapter 06. Used in chapter 07, its mask in chapter 09.") == [
        "07"
    ]


def test_docstrings_annotations_and_comments_make_no_drift(originals):
    assert drift(notebook(TWIN), "06_x.ipynb", originals) == []


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("factor=2.0", "factor=3.0"),
        ("x * factor", "factor * x"),
        ("return grown", "return grown + 0"),
        ("(nn.Module)", "(Module)"),
        ("def forward", "@torch.no_grad()\n    def forward"),
        ("x, factor", "x, *, factor"),
    ],
)
def test_drift_is_found_and_both_sources_are_shown(originals, ours, theirs):
    (found,) = drift(notebook(TWIN.replace(ours, theirs)), "06_x.ipynb", originals)
    assert found.startswith("06_x.ipynb: cell ")
    assert "--- course_utils/things.py\n+++ 06_x.ipynb" in found
    removed = [line for line in found.split("\n") if line.startswith(("-", "+"))]
    assert len(removed) >= 3


def test_a_twin_needs_an_original(originals):
    (found,) = drift(notebook(TWIN.replace("scale", "grow", 1)), "06", originals)
    assert "teaches grow, which stands in no module" in found


def test_a_twin_with_two_originals_is_ambiguous(tmp_path):
    (tmp_path / "things.py").write_text(PACKAGE)
    (tmp_path / "others.py").write_text("def scale(x):\n    return x\n")
    (found,) = drift(notebook(TWIN), "06", package(tmp_path))
    assert "stands in course_utils.others, course_utils.things" in found


def test_a_twin_cell_that_defines_nothing_is_named(originals):
    (found,) = drift(notebook('# %% tags=["twin"]\nx = 1\n'), "06", originals)
    assert "tagged twin but defines nothing" in found


def test_a_cell_without_the_tag_is_free_to_differ(originals):
    text = "# %%\ndef scale(x):\n    return 3 * x\n"
    assert drift(notebook(text), "06", originals) == []


def test_a_body_of_docstring_and_annotations_alone_is_empty():
    (node,) = definitions(ast.parse('class A:\n    """A."""\n\n    x: int\n'))
    assert bare(node) == "class A:\n    pass"


# -------------------------------------------------------------------------- teaching


def test_a_definition_taught_in_a_chapter_needs_its_twin_there(originals):
    assert untaught({"06_x.ipynb": notebook(TWIN)}, originals) == []
    found = untaught({"06_x.ipynb": notebook("# %%\n1\n")}, originals)
    assert [line.split(" is taught")[0] for line in found] == [
        "course_utils/things.py says that scale",
        "course_utils/things.py says that Layer",
    ]


def test_only_the_first_chapter_named_teaches_and_only_if_it_is_there(originals):
    assert untaught({"09_x.ipynb": notebook("# %%\n1\n")}, originals) == []
    assert untaught({}, originals) == []
