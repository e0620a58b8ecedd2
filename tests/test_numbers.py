"""Numbers of chapters, figures and theorems, and the links to what they name."""

from __future__ import annotations

import re

import pytest

from tools.files import ROOT, read
from tools.numbers import NO_BREAK, with_figure_numbers, with_links, with_numbers

LINK = re.compile(r'<a href="([^"]*)">(.*?)</a>', re.S)
CHAPTERS = ["book/06_queries", "book/07_set", "book/10_heads", "book/glossary"]


def article(inside: str) -> str:
    return f'<article class="bd-article">{inside}</article>'


def links(inside: str, name: str = "book/06_queries") -> dict[str, str]:
    """What is linked in a text, and where it leads."""
    page = with_links(article(inside), name, CHAPTERS)
    found = re.findall(LINK, page)
    return {words.replace(NO_BREAK, " "): to for to, words in found}


def test_every_chapter_is_named_with_its_number():
    page = (
        '<li class="toctree-l1"><a class="internal" href="05_basic.html">B</a>'
        '<li class="toctree-l1 current"><a class="current" href="#">Queries</a></li>'
        '<li class="toctree-l1"><a class="internal" href="glossary.html">G</a>'
        '<h1>Queries</h1><article class="bd-article"><section><h1>Queries</h1>'
        '<a class="left-prev"\n href="../exercises/05_basic.html"><p '
        'class="prev-next-title">Exercises</p></a>'
        '<a class="right-next"\n href="07_set.html"><p '
        'class="prev-next-title">A set</p></a>'
    )
    number = '<span class="course-number">{} </span>'.format
    expected = page.replace(">B<", f">{number('05')}B<")
    expected = expected.replace('"#">', f'"#">{number("06")}')
    expected = expected.replace(">A set", f">{number('07')}A set")
    line = '<section><p class="course-eyebrow">Chapter 06</p>\n<h1>'
    expected = expected.replace("<section><h1>", line)
    assert with_numbers(page, "book/06_queries", []) == expected
    without = with_numbers(page, "book/glossary", [])
    assert "eyebrow" not in without
    assert number("06") not in without


def test_the_figures_of_a_chapter_are_counted_and_can_be_linked_to():
    figure = '<div class="course-figure"{} style="x"><svg><path/></svg></div>'.format
    page = figure("") + "<p>words</p>" + figure(' id="weights"')
    found = with_figure_numbers(page, "book/06_queries")
    assert re.findall(r'id="([^"]*)"', found) == ["figure-06-1", "weights"]
    assert re.findall(r'<a href="#([^"]*)">([^<]*)', found) == [
        ("figure-06-1", "Figure 06.1"),
        ("weights", "Figure 06.2"),
    ]
    assert found.count("<svg><path/></svg><p ") == 2
    assert with_figure_numbers(page, "book/performance") == page


def test_a_theorem_can_be_linked_to_and_its_own_name_is_no_link():
    said = "<p><strong>Theorem 07.1 (a set).</strong> It is so.</p>"
    page = with_links(article(said), "book/07_set", CHAPTERS)
    assert '<p class="course-theorem" id="theorem-07-1"><strong>Theorem' in page
    assert "<a " not in page


def test_a_theorem_that_is_named_is_linked_each_time():
    named = "<p>By theorem 07.1, and\ntheorem 07.1 again.</p>"
    there = "07_set.html#theorem-07-1"
    page = with_links(article(named), "book/06_queries", CHAPTERS)
    assert page.count(f'<a href="{there}">theorem{NO_BREAK}07.1</a>') == 2
    assert links(named, "book/07_set") == {"theorem 07.1": "#theorem-07-1"}
    assert links(named, "exercises/07_set") == {"theorem 07.1": f"../book/{there}"}


def test_a_chapter_is_linked_where_it_is_named_first():
    assert links("<p>See chapter 07 and chapter 06. Chapter 07 again.</p>") == {
        "chapter 07": "07_set.html"
    }
    assert links("<li>chapters 07 to 10, and chapter 10</li>") == {
        "07": "07_set.html",
        "10": "10_heads.html",
    }
    assert links("<p>chapter\n06</p>", "exercises/06_queries") == {
        "chapter 06": "../book/06_queries.html"
    }
    own = '<p>chapter 07, and <a href="07_set.html">sets</a></p>'
    assert links(own) == {"sets": "07_set.html"}


@pytest.mark.parametrize(
    "inside",
    [
        '<p>chapter 99, chapter 6</p><a href="x"></a>',
        "<code>chapter 07</code>",
        "<h2>After chapter 07</h2>",
        "<figure><figcaption>Chapter 07: 0 of 4 points</figcaption></figure>",
        "<svg><text>chapter 07</text></svg>",
        '<p title="chapter 07">text</p>',
        "<script>'chapter 07'</script>",
    ],
)
def test_nothing_else_becomes_a_link(inside):
    page = article(inside)
    assert with_links(page, "book/06_queries", CHAPTERS) == page


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
