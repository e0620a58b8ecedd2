"""What the build adds to the theme: formulas, the reference, mended pages."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pydata_sphinx_theme
import pytest

from course_utils.interactive import button, widget
from tools.browser import LAUNCH, chromium
from tools.files import ROOT
from tools.mathematics import SVG, _engine, one_path, typeset
from tools.pages import (
    ICON_RULES,
    TAB_STOPS,
    in_the_package,
    mended,
    with_weights_apart,
    with_written_chapters,
)
from tools.reference import WIDTH, public, signature, taught
from tools.tables import with_stacked_tables


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


def test_punctuation_stays_with_the_formula_before_it():
    formula = '<span class="math"><svg></svg></span>'
    page = mended(f"<p>First {formula} then ({formula}), last {formula}.</p>")
    assert f'First {formula} then <span class="keep">({formula}),</span>' in page
    assert f'<span class="keep">{formula}.</span>' in page


def test_the_end_of_a_proof_and_an_ordinal_stay_where_they_belong():
    end = f'<span class="math">{typeset(chr(92) + "blacksquare", False)}</span>'
    k = f'<span class="math">{typeset("k", False)}</span>'
    page = mended(f"<p>the {k}-th token.\n{end}</p>")
    assert f'<span class="keep">{k}-th</span>' in page
    assert f"token.&nbsp;{end}" in page


def test_the_themes_icon_script_and_rules_are_taken_out():
    script = '<script src="../_static/scripts/fontawesome.js?digest=1"></script>'
    assert mended(f"<head>\n{script}</head>") == "<head></head>"
    rules = '.fa-bars:before,.fa-navicon:before{content:"\\f0c9"}.kept{color:red}'
    assert ICON_RULES.sub("", rules) == ".kept{color:red}"


def test_code_keeps_only_the_spans_that_have_a_colour():
    code = '<span class="n">x</span> <span class="o">=</span> <span class="mi">1</span>'
    page = mended(f"<pre>{code}<span class='n'><b>y</b></span></pre>")
    assert page.startswith('<pre>x = <span class="mi">1</span>')
    assert "<b>y</b></span>" in page


@pytest.mark.parametrize(
    ("printed", "wraps"),
    [
        ("does an output see later tokens? True\nlosses 0.1 0.2", True),
        ("GRU        0.12", False),
        ("[[1 0]\n [1 1]]", False),
        ("written:\n   les chats", False),
    ],
)
def test_sentences_wrap_and_columns_keep_their_lines(printed, wraps):
    page = '<div class="output stream x"><div><pre><span></span>{}</pre></div></div>'
    start = '<div class="output stream wraps x">' if wraps else page[:28]
    assert mended(page.format(printed)).startswith(start)
    assert printed in mended(page.format(printed))


def test_the_themes_script_still_has_what_is_taken_out_of_it():
    theme = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme"
    script = theme / "static" / "scripts" / "pydata-sphinx-theme.js"
    assert script.read_text("utf-8").count(TAB_STOPS) == 1


def test_the_map_links_only_to_chapters_that_are_written(tmp_path):
    (tmp_path / "06_written.html").touch()
    page = '<a data-page="06_written">6</a> <a data-page="07_not_yet">7</a>'
    linked = '<a href="06_written.html">6</a> <a>7</a>'
    assert with_written_chapters(page, tmp_path) == linked


def test_weights_lie_in_a_file_of_their_own(tmp_path):
    element = '<script type="application/json" data-weights="live"'
    page = f'<p>before</p>{element}>{{"a":1}}</script><p>after</p>'
    moved = with_weights_apart(page, tmp_path / "book", tmp_path / "_static")
    (file,) = (tmp_path / "_static" / "weights").iterdir()
    address = f"../_static/weights/{file.name}"
    assert moved == (
        f'<p>before</p>{element} data-src="{address}"></script><p>after</p>'
    )
    assert file.read_text() == '(window.courseWeights ||= {})["live"] = {"a":1};\n'
    assert with_weights_apart(moved, tmp_path / "book", tmp_path / "_static") == moved


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
    assert sorted(found) == [f"{chapter:02}" for chapter in range(1, 16)]
    assert ("attention", "course-utils-attention-attention") in found["06"]
    assert ("fused_attention", "course-utils-attention-fused-attention") in found["15"]
    assert ("Residual", "course-utils-blocks-class-residual") in found["11"]
    line = in_the_package([("Seq2Seq", "course-utils-rnn-class-seq2seq")], "api.html")
    assert (
        '<a href="api.html#course-utils-rnn-class-seq2seq"><code>Seq2Seq</code>' in line
    )


def test_a_class_of_many_fields_stands_on_several_lines():
    fields = [f"field_{i}: tuple[int, ...] = ()" for i in range(5)]
    source = ["class Many:", *(f"    {field}" for field in fields)]
    (node,) = public(ast.parse("\n".join(source)).body)
    lines = signature(node, source).splitlines()
    assert lines == ["class Many(", *(f"    {field}," for field in fields), ")"]
    assert max(map(len, lines)) <= WIDTH


# ------------------------------------------------------------- tables, interactives


def table(columns: list[str], *rows: list[str]) -> str:
    """A table as docutils writes it."""
    head = "\n".join(f'<th class="head"><p>{name}</p></th>' for name in columns)
    body = "".join(
        '<tr class="row-even">'
        + "\n".join(f"<td><p>{cell}</p></td>" for cell in row)
        + "\n</tr>\n"
        for row in rows
    )
    return (
        f'<table class="table">\n<thead>\n<tr class="row-odd">{head}\n</tr>\n</thead>'
        f"\n<tbody>\n{body}</tbody>\n</table>"
    )


def formula(width: float) -> str:
    return (
        f'<mjx-container><svg x="" width="{width}ex"></svg><i>said</i></mjx-container>'
    )


def labels(page: str) -> list[str]:
    return re.findall(r' data-label="([^"]*)"', page)


def test_a_row_of_many_columns_names_them_for_narrow_screens():
    page = with_stacked_tables(
        table(["maths", "code", "shape &amp; size", "why"], ["Q", 30 * "q", "(3,)", ""])
    )
    assert labels(page) == ["code", "shape &amp; size"]  # the first heads its list
    assert page.count("course-blank") == 1
    assert 'class="table stacked"' in page
    roles = re.findall(r'<(\w+) role="(\w+)"', page)
    assert roles[:4] == [
        ("table", "table"),
        ("thead", "rowgroup"),
        ("tr", "row"),
        ("th", "columnheader"),
    ]
    assert roles[-1] == ("td", "cell")


def test_a_column_without_a_name_stays_without_one():
    cells = ["encoder", "the source", "the source, too", "only what is padding"]
    page = mended(table(["", "queries", "keys", "mask"], cells))
    assert labels(page) == ["queries", "keys", "mask"]
    assert '<td role="cell"></td>' in page  # a heading with nothing in it is none


def test_tables_that_fit_a_phone_or_hold_data_stay_as_they_are():
    narrow = table(["a", "b", "c"], ["1", formula(12), "3"])
    short = table(["place", "0", "1", "2", "3"], ["5", "0", "1", "0", "1"])
    data = table([f"06.{i}" for i in range(8)], ["9999999"] * 8)
    pages = narrow + short + data
    assert with_stacked_tables(pages) == pages


def test_a_wide_formula_gets_a_line_of_its_own_and_a_numbered_row_its_name():
    page = with_stacked_tables(
        table(["line", "formula", "because"], ["1", formula(47.8), "so"])
    )
    assert labels(page) == ["line", "formula", "because"]
    assert page.count("course-wide") == 1
    assert "said" in page


def test_on_the_site_the_style_of_interactives_is_not_in_the_body():
    made = button_widget()
    assert "<style>" in made
    assert mended(made) == re.sub(r"<style>.*?</style>", "", made, flags=re.S)


def button_widget() -> str:
    return widget(
        "press", "Press", [button("go", "Go")], script="", alt="A button to be pressed."
    ).html
