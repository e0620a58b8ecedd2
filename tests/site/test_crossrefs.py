"""Numbers of chapters and theorems, and the links to what a page names."""

from __future__ import annotations

import re

import pytest

from tools.notebooks.io import ROOT, read
from tools.site.crossrefs import NO_BREAK, chapter_number

slow = pytest.mark.slow


def links(soup):
    """What is linked in an article, and where it leads, in order."""
    found = soup.select("article a.internal:not(.headerlink)")
    return [(a.get_text().replace(NO_BREAK, " "), a["href"]) for a in found]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("book/06_queries", "06"),
        ("exercises/06_queries", "06"),
        ("book/glossary", ""),
        ("book/2017_paper", ""),
    ],
)
def test_a_chapter_and_its_exercise_begin_with_their_number(name, number):
    assert chapter_number(name) == number


@slow
def test_every_chapter_is_named_with_its_number(page):
    soup = page("book/06_queries")
    sidebar = [a.get_text() for a in soup.select(".bd-sidebar-primary .toctree-l1 > a")]
    expected = ["06 Queries", "07 A set", "10 Heads", "06 Exercises: queries", "API"]
    assert sidebar == expected
    ways = [p.get_text() for p in soup.select(".prev-next-title")]
    assert ways == ["Welcome", "07 A set"]
    assert soup.select_one("article > .course-eyebrow").get_text() == "Chapter 06"
    assert not page("book/api").select(".course-eyebrow")


@slow
def test_the_way_on_to_an_exercise_promises_no_chapter(page):
    soup = page("book/10_heads")
    ways = [p.get_text() for p in soup.select(".prev-next-title")]
    assert ways == ["07 A set", "Exercises: queries"]


@slow
def test_a_theorem_can_be_linked_to_and_its_own_name_is_no_link(page):
    (theorem,) = page("book/07_set").select("p.course-theorem")
    assert theorem["id"] == "theorem-07-1"
    assert not theorem.strong.select("a")
    assert theorem.select_one("a[href='#theorem-07-1']").get_text() == (
        f"theorem{NO_BREAK}07.1"
    )


@slow
def test_theorems_are_linked_each_time_and_chapters_where_they_are_named_first(page):
    assert links(page("book/06_queries"))[:5] == [
        ("theorem 07.1", "07_set.html#theorem-07-1"),
        ("theorem 07.1", "07_set.html#theorem-07-1"),
        ("chapter 07", "07_set.html"),
        ("07", "07_set.html"),  # with 10, which is new: of several all, or none
        ("10", "10_heads.html"),
    ]
    assert links(page("book/intro")) == [
        ("06", "06_queries.html"),
        ("07", "07_set.html"),
        ("figure 06.2", "06_queries.html#figure-06-2"),
    ]


@slow
def test_nothing_else_becomes_a_link(page):
    soup = page("book/06_queries")
    for unlinked in ("code", "h2", ".output figure", ".caption-number", "svg", "pre"):
        assert not soup.select(f"article {unlinked} a:not(.headerlink)"), unlinked
    text = " ".join(soup.select_one("article p:not([class])").get_text().split())
    assert "chapter 99, chapter 6 and chapter 10" in text


@slow
def test_an_exercise_links_its_chapter_once_and_theorems_in_the_book(page):
    assert links(page("exercises/06_queries"))[:2] == [
        ("Queries", "../book/06_queries.html"),
        ("theorem 07.1", "../book/07_set.html#theorem-07-1"),
    ]


@slow
def test_what_was_renamed_answers_to_its_old_name(page, small_site):
    assert page("book/07_set").select_one(".course-theorem #a-proof")
    reference = page("book/api")
    for name in ("attention", "class-selfattention"):
        new = reference.find(id=f"course-utils-models-attention-{name}")
        old = reference.find(id=f"course-utils-attention-{name}")
        assert new is not None
        assert old.parent == new or old.find_next(id=new["id"]) == new
    moved = (small_site / "book" / "old.html").read_text("utf-8")
    assert "06_queries.html" in moved
    assert "location.hash" in moved  # the place in the page stays


@slow
def test_every_name_of_the_reference_is_a_heading_with_its_anchor(page):
    found = page("book/api").select("article section > h2")
    headings = {h.get_text().rstrip("#"): h.parent["id"] for h in found}
    layer = "course-utils-models-attention-class-selfattention"
    assert headings["SelfAttention"] == layer
    source = (ROOT / "course_utils" / "models" / "attention.py").read_text("utf-8")
    defined = re.findall(r"^(?:def|class) ([a-zA-Z]\w*)", source, re.M)
    assert [name for name in defined if name not in headings] == []


@slow
def test_the_formulas_of_the_reference_are_set(page):
    reference = page("book/api")
    entry = reference.find(id="course-utils-models-attention-attention")
    assert entry.select_one("span.math svg")
    assert "sqrt(" not in reference.find("article").get_text()


def test_the_theorems_of_each_chapter_are_numbered_in_order_and_those_named_exist():
    stated, named = [], set()
    for path in sorted((ROOT / "book").glob("*.ipynb")):
        cells = [c.source for c in read(path).cells if c.cell_type == "markdown"]
        text = "\n".join(cells)
        assert "**Theorem.**" not in text, f"{path.name}: a theorem without a number"
        own = re.findall(r"\*\*Theorem (\d\d\.\d+)", text)
        assert own == [f"{path.name[:2]}.{i + 1}" for i in range(len(own))]
        stated += own
        named |= set(re.findall(r"theorem\s(\d\d\.\d+)", text))
    assert len(stated) > 4
    assert named
    assert named <= set(stated)
