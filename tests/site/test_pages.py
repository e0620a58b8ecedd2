"""What the build adds to the theme: formulas, the reference, mended pages."""

from __future__ import annotations

import ast
import inspect
import posixpath
import re

import pytest
import yaml
from PIL import Image
from small_site import build, card_faults

from tools.notebooks.io import ROOT
from tools.notebooks.repo_links import published
from tools.notebooks.toc import entries
from tools.site.browser import LAUNCH, chromium
from tools.site.mathematics import SVG, _engine, one_path, typeset, width
from tools.site.pages import HOW_TO_ANSWER
from tools.site.reference import WIDTH, public, signature, taught

slow = pytest.mark.slow


def test_a_formula_is_drawn_by_one_path_and_said():
    drawn = typeset(r"\frac{q \cdot k}{\sqrt{d_k}}", True)
    assert drawn.count("<path") == 1
    assert "<g" not in drawn
    assert "<mfrac>" in drawn  # for those who listen
    assert "\\" not in drawn


def test_a_glyph_is_the_same_text_wherever_it_stands():
    (path,) = re.findall(r' d="([^"]*)"', typeset("x + x", False))
    first, plus, last = re.findall(r"M(-?\d+)-?\d+([^M]*)", path)
    assert first[1] == last[1] != plus[1]
    assert 0 <= int(first[0]) < int(plus[0]) < int(last[0])


def corners(path: str) -> list[tuple[float, float]]:
    """The points at which a path's commands end, counted from the formula's corner."""
    x = y = 0.0
    found, start = [], (0.0, 0.0)
    for command, numbers in re.findall(r"([a-zA-Z])([^a-zA-Z]*)", path):
        at = [float(n) for n in re.findall(r"-?[\d.]+", numbers)]
        match command:
            case "M":
                x, y = start = (at[0], at[1])
            case "m":
                x, y = start = (x + at[0], y + at[1])
            case "h":
                x += at[0]
            case "v":
                y += at[0]
            case "z":
                x, y = start
            case _:
                x, y = x + at[-2], y + at[-1]
        found.append((x, y))
    return found


def test_outlines_stand_where_mathjax_puts_them():
    """Scaled and moved groups, and a bar, worked out by hand."""
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">'
        '<g transform="scale(1,-1)"><g transform="translate(100,40) scale(0.5)">'
        '<path d="M10 20L30 20Q40 40 50 60ZM2 4H8"/></g>'
        '<rect x="5" y="6" width="7" height="8"/></g></svg>'
    )
    (path,) = re.findall(r' d="([^"]*)"', one_path(drawing))
    glyph = [(105, -50), (115, -50), (125, -70), (105, -50), (101, -42), (104, -42)]
    assert corners(path) == [*glyph, (5, -6), (5, -14), (12, -14), (12, -6), (5, -6)]


@pytest.mark.parametrize(
    "source",
    [r"\left(\begin{matrix} a\\b\\c\\d\\e\\f \end{matrix}\right)", r"\text{ü}"],
)
def test_what_is_no_plain_outline_stays_as_mathjax_drew_it(source):
    drawn = typeset(source, True)
    assert "<g" in drawn
    assert "<text" in drawn or drawn.count("<svg") > 1


FORMULAS = (
    r"h_j = [\,\overrightarrow{h_j} \,;\, \overleftarrow{h_j}\,]",
    r"\frac{1}{\sqrt{d_{\text{model}}}} \sum_{i=1}^{n} \exp(q \cdot k_i)",
    r"\begin{aligned} S_{rp} &> S_{rs}, \\ \hat{x} &= \mathbb{E}[x] \end{aligned}",
    r"\left(\begin{matrix} \cos k\omega & -\sin k\omega \\ 0 & 1 \end{matrix}\right)",
)
PIXELS = r"""async ([one, other]) => {
  const inked = async (svg) => {
    const sized = svg.replace(/="([\d.]+)ex"/g, (_, ex) => `="${24 * ex}"`)
      .replace(/ xmlns="[^"]*"/, "")
      .replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"');
    const image = new Image();
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(sized);
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const pen = canvas.getContext("2d");
    pen.drawImage(image, 0, 0);
    return pen.getImageData(0, 0, image.width, image.height).data;
  };
  const [a, b] = [await inked(one), await inked(other)];
  let ink = 0, apart = a.length === b.length ? 0 : a.length;
  for (let i = 3; i < a.length; i += 4) {
    ink += a[i] > 128;
    apart += Math.abs(a[i] - b[i]) > 100;
  }
  return [ink, apart];
}"""


@pytest.mark.browser
def test_one_path_draws_what_mathjax_draws():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=LAUNCH)
        page = browser.new_page()
        for source in FORMULAS:
            drawn = SVG.search(_engine().call("typeset", source, True))[0]
            ink, apart = page.evaluate(PIXELS, [drawn, one_path(drawn)])
            assert ink > 1000
            assert apart <= ink / 500, source
        browser.close()


def test_a_colour_is_kept():
    svg = '<svg xmlns="http://www.w3.org/2000/svg">'
    red = f'{svg}<g fill="red"><path d="M1 2"/></g></svg>'
    assert one_path(red) == red


@pytest.mark.parametrize("wrong", [r"\nosuchcommand", r"\frac{1}", "x^{2", "}"])
def test_a_formula_that_can_not_be_read_is_an_error(wrong):
    with pytest.raises(ValueError, match="MathJax can't read"):
        typeset(wrong, False)


def test_the_width_of_a_formula_is_that_of_its_drawing_and_0_if_there_is_none():
    assert 1 < width("x") < width("x + x")
    assert width(r"\nosuchcommand") == 0


# ------------------------------------------------------------------- on a built page


def without_formulas(element) -> str:
    """The words of an element, a sign in place of each formula."""
    for formula in element.select("mjx-container"):
        formula.replace_with("§")
    return element.get_text()


@slow
def test_a_formula_keeps_its_punctuation_its_bracket_and_its_ending(page):
    kept = page("book/06_queries").select("article .keep")
    assert [without_formulas(x) for x in kept][:3] == ["(§),", "§-th", "§."]


@slow
def test_the_end_of_a_proof_stands_behind_its_last_word(page):
    section = page("book/06_queries").select_one("#after-chapter-10 > p")
    assert without_formulas(section).endswith("It is so.\N{NO-BREAK SPACE}§")


@slow
def test_the_theme_is_mended_on_every_page(page):
    for name in ("book/intro", "book/06_queries", "search"):
        soup = page(name)
        assert soup.select_one("[role=complementary][aria-label=Pages] .bd-links")
        assert not soup.select("[data-bs-spy], [src*=fontawesome], [rel=preload]")


@slow
def test_an_exercise_says_where_it_can_be_answered(page):
    time, note = page("exercises/06_queries").select("section > p")[1:3]
    assert time.get_text().startswith("Time")
    assert note.get_text().startswith(HOW_TO_ANSWER)
    assert not page("book/06_queries").find(string=re.compile(HOW_TO_ANSWER[:20]))


@slow
def test_chapter_and_exercise_end_with_what_the_chapter_teaches(page):
    for name, where in (("book", "#exercises"), ("exercises", "article section")):
        soup = page(f"{name}/06_queries")
        line = soup.select(f"{where} > .course-see")[-1]
        assert line.get_text().startswith("In the package: ")
        link = line.find("a", string="attention")
        assert link["href"].endswith("api.html#course-utils-models-attention-attention")
        assert line.find_next_sibling() is None


# ----------------------------------------------------------- the card that a link shows


@slow
def test_a_page_names_its_card_by_its_title(page, small_site):
    head = page("book/06_queries").head
    alt = head.select_one('meta[property="og:image:alt"]')
    assert alt["content"] == "Queries"
    image = head.select_one('meta[property="og:image"]')["content"]
    assert image.startswith(published())
    assert (small_site / image.removeprefix(published())).is_file()


@slow
def test_nothing_is_drawn_on_a_card_beside_its_words(small_site):
    cards = [*(small_site / "_images" / "social_previews").glob("*.png")]
    assert len(cards) == 6
    assert not [fault for card in cards for fault in card_faults(card)]


def test_a_card_that_is_printed_over_or_says_nothing_is_seen(tmp_path):
    for colour, faults in (("black", 6), ("white", 1)):
        Image.new("L", (1146, 600), colour).save(tmp_path / "card.png")
        assert len(card_faults(tmp_path / "card.png")) == faults


# --------------------------------------------------------------- what was not found

BROKEN = {
    "book/intro": "# Welcome\n",
    "book/06_queries": "# Queries\n\nNo place for the names.\n",
    "exercises/06_queries": "# Exercises\n\n*Another title*\n",
    "book/api": "# API\n\n```{reference} course_utils.models.attention\n```\n",
    "book/drawn": '# Drawn\n\n<div class="course-figure"><svg></svg></div>\n\n'
    '<div class="course-widget"></div>\n',
}


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    """What the build says of pages in which nothing is where it should be."""
    renamed = {"book/api": {"old-name": "no-such-name"}}
    return build(tmp_path_factory.mktemp("broken"), BROKEN, renamed_anchors=renamed)


@slow
@pytest.mark.parametrize(
    "says",
    [
        "there is no section ## Exercises on this page",
        "there is no *Queries*, the chapter's title on this page",
        "there is no paragraph **Time** on this page",
        "leads from 'old-name' to 'no-such-name', which is not on the page",
        "a figure that figure_html did not write",
        "an interactive without the style of all",
    ],
)
def test_what_is_looked_for_and_not_found_is_a_warning_and_so_stops_the_build(
    complaints, says
):
    assert says in complaints


def test_redirects_lead_from_pages_that_are_gone_to_pages_that_are_there():
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    pages = {entry.removesuffix(".md") for entry in entries(toc)}
    settings = config["sphinx"]["config"]
    for old, new in settings["redirects"].items():
        there = posixpath.normpath(posixpath.join(posixpath.dirname(old), new))
        assert old not in pages
        assert there.removesuffix(".html") in pages
    assert set(settings["renamed_anchors"]) <= pages


# ---------------------------------------------------------------------- the reference


def test_the_reference_shows_definitions_as_they_are_called():
    source = inspect.cleandoc('''
        def attend(x: int, scale: float = 1.0) -> int:
            """Look."""

        class Layer(Module):
            """Hold."""

            def __init__(self, d_model: int, bias: bool = True):
                pass

        class Pair:
            """Two."""

            left: int
            right: int = 0

        def _private(): ...
    ''')
    found = public(ast.parse(source).body)
    assert [signature(node, source.splitlines()) for node in found] == [
        "def attend(x: int, scale: float = 1.0) -> int",
        "class Layer(d_model: int, bias: bool = True)",
        "class Pair(left: int, right: int = 0)",
    ]


def test_every_chapter_leads_to_what_it_teaches_in_the_reference():
    found = taught(ROOT / "book" / "api.md", ROOT)
    assert sorted(found) == sorted(p.name[:2] for p in ROOT.glob("book/[0-9]*.ipynb"))
    assert ("attention", "course-utils-models-attention-attention") in found["06"]
    room = "course-utils-models"
    assert ("linear_scan", f"{room}-recurrences-linear-scan") in found["15"]
    assert ("Residual", f"{room}-blocks-class-residual") in found["11"]


def test_a_class_of_many_fields_stands_on_several_lines():
    fields = [f"field_{i}: tuple[int, ...] = ()" for i in range(5)]
    source = ["class Many:", *(f"    {field}" for field in fields)]
    (node,) = public(ast.parse("\n".join(source)).body)
    lines = signature(node, source).splitlines()
    assert lines == ["class Many(", *(f"    {field}," for field in fields), ")"]
    assert max(map(len, lines)) <= WIDTH
