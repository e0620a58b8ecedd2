"""Every letter of a formula is on the notation page, in one sense."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tests import notation
from tests.notation import Row, formulas, rows, symbols
from tools.notebooks.io import ROOT, read

CHAPTERS = {
    path.stem[:2]: read(path)
    for path in sorted((ROOT / "book").glob("[0-9][0-9]_*.ipynb"))
}
SOLUTIONS = sorted((ROOT / "solutions").glob("[0-9][0-9]_*.ipynb"))
PAGE = rows((ROOT / "book" / "notation.md").read_text(encoding="utf-8"))
SMALL = r"""
| maths | code | meaning |
|---|---|---|
| $A = \operatorname{softmax}(S)$, $a_j$ | `weights` | the weights |
| $d_{\text{model}}$ | `d_model` | a width |

| maths | chapters | meaning |
|---|---|---|
| $\lambda$ | 03, 05 | a decay |

| code | meaning |
|---|---|
| $Z$ | not a table of symbols |
"""


def notebook(text: str) -> NotebookNode:
    """A notebook with this text, and a formula in code that is none."""
    return new_notebook(cells=[new_markdown_cell(text), new_code_cell("'$Q$'")])


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_uses_the_letters_of_the_notation_page(chapter: str) -> None:
    assert notation.strangers(chapter, CHAPTERS[chapter], PAGE) == []


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_an_exercise_uses_the_letters_of_its_chapter(path: Path) -> None:
    assert notation.strangers(path.stem[:2], read(path), PAGE) == []


def test_no_letter_has_two_senses_in_a_chapter() -> None:
    assert PAGE
    assert notation.clashes(PAGE) == []


def test_every_local_letter_is_used_where_the_page_says() -> None:
    assert notation.leftovers(CHAPTERS, PAGE) == []


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (r"S_{ij} = q_i \cdot k_j", {"S", "i", "j", "q", "k"}),
        (r"\frac{\partial h_t}{\partial h_{t-1}}", {"h", "t"}),
        (r"d_{\text{model}} / H", {"d_model", "H"}),
        (r"h^{\text{dec}}_{t-1}", {"h_dec", "t"}),
        (r"\mathrm{PE}_{t,2i} = \sin(t\,\omega_i)", {"t", "i", r"\omega"}),
        (r"\operatorname{softmax}(X X^\top)", {"X"}),
        (r"\mathbb{E}[x]", {r"\mathbb{E}", "x"}),
        (r"\begin{aligned} a &= 1 \\ \ell &= 2 \end{aligned}", {"a", r"\ell"}),
        (r"e^{\mathrm i \varphi}", {"e", r"\varphi"}),
    ],
)
def test_symbols_are_the_letters_of_a_formula(formula: str, expected: set[str]) -> None:
    assert symbols(formula) == expected


def test_formulas_stand_between_dollars_and_outside_code() -> None:
    text = "a $x$ b `$y$` c\n\n$$z$$\n\n```python\n$w$\n```\n"
    assert formulas(text) == ["x", "z"]


def test_a_table_of_the_page_defines_what_heads_its_formulas() -> None:
    assert rows(SMALL) == [
        Row("A", "the weights"),
        Row("a", "the weights"),
        Row("d_model", "a width"),
        Row(r"\lambda", "a decay", ("03", "05")),
    ]


def test_a_letter_that_the_page_lacks_is_found_with_its_formula() -> None:
    (found,) = notation.strangers("03", notebook("$a$ and $A_b$"), rows(SMALL))
    assert found.startswith("b in $A_b$ is not on the notation page")


def test_a_local_letter_is_known_in_its_chapters_alone() -> None:
    page = rows(SMALL)
    assert notation.strangers("03", notebook(r"$\lambda$"), page) == []
    assert len(notation.strangers("04", notebook(r"$\lambda$"), page)) == 1


def test_a_named_letter_may_stand_for_its_letter() -> None:
    page = rows(SMALL)
    assert notation.strangers("03", notebook(r"$A_{\text{rp}}$"), page) == []
    assert len(notation.strangers("03", notebook(r"$d_{\text{other}}$"), page)) == 1


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        (Row("A", "weights"), Row("A", "links"), 1),
        (Row("A", "weights"), Row("A", "links", ("03",)), 1),
        (Row("z", "gate", ("02", "03")), Row("z", "mean", ("03",)), 1),
        (Row("z", "gate", ("02",)), Row("z", "mean", ("14",)), 0),
        (Row("v", "values"), Row("v_score", "a vector"), 0),
    ],
)
def test_two_senses_of_one_letter_clash_where_they_meet(
    one: Row, other: Row, count: int
) -> None:
    assert len(notation.clashes([one, other])) == count


def test_a_letter_that_is_no_longer_used_is_a_leftover() -> None:
    chapters = {"03": notebook(r"$\lambda$"), "05": notebook("$a$")}
    (found,) = notation.leftovers(chapters, rows(SMALL))
    assert "is listed for chapter 05" in found
