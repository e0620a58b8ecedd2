"""What cells show: numbered figures, lines that may break, interactives made light."""

from __future__ import annotations

import pytest
from small_site import PRINTED

from course_utils.display.interactive import style

pytestmark = pytest.mark.slow


def test_the_figures_of_a_chapter_are_counted_and_can_be_linked_to(page):
    figures = page("book/06_queries").select("article figure.course-figure")
    assert [figure["id"] for figure in figures] == [
        "figure-06-1",
        "weights",
        "figure-06-3",
    ]
    assert figures[1].find(id="figure-06-2")  # also where a figure has a name
    numbers = [figure.select_one(".caption-number").get_text() for figure in figures]
    assert [number.strip(". ") for number in numbers] == [
        "Figure 06.1",
        "Figure 06.2",
        "Figure 06.3",
    ]
    assert all(figure.svg["aria-label"] == "A drawing." for figure in figures)
    assert figures[2]["class"][:2] == ["course-figure", "course-diagram"]


def test_a_caption_is_text_of_the_page_with_its_formulas_set(page):
    _, figure, _ = page("book/06_queries").select("article figure.course-figure")
    assert figure.figcaption.select_one("mjx-container mjx-assistive-mml msub")
    for formula in figure.select("mjx-container"):
        formula.replace_with("§")
    words = " ".join(figure.select_one(".caption-text").get_text().split())
    assert words == "Figure 06.2. Weights by §, as < in chapter 10."
    assert not figure.has_attr("style")  # a notebook's; the site has its own


@pytest.mark.parametrize(("printed", "wraps"), PRINTED.items())
def test_sentences_wrap_and_columns_keep_their_lines(page, printed, wraps):
    outputs = page("book/06_queries").select(".output.stream")
    (output,) = [out for out in outputs if out.get_text().strip() == printed]
    assert ("wraps" in output["class"]) == wraps


def test_code_keeps_only_the_spans_that_have_a_colour(page):
    code = page("book/06_queries").select_one(".cell_input pre")
    assert code.get_text().strip() == "x = f(1)"
    assert [span.get_text() for span in code.select("span") if span.text] == ["1"]


def test_an_interactive_leaves_its_style_to_the_site(page, small_site):
    soup = page("book/06_queries")
    assert soup.select_one("#press.course-widget")
    assert not soup.select("article style")
    assert (small_site / "_static" / "interactive.css").read_text("utf-8") == style()


def test_weights_lie_in_a_file_of_their_own(page, small_site):
    element = page("book/06_queries").select_one("[data-weights=live]")
    assert not element.get_text()
    weights = small_site / "book" / element["data-src"]
    assert weights.read_text() == '(window.courseWeights ||= {})["live"] = {"a":1};\n'
