"""What the build adds to the theme: formulas, the reference, mended pages."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pydata_sphinx_theme
import pytest

from tools.files import ROOT
from tools.mathematics import typeset, with_glyphs
from tools.pages import (
    ICON_RULES,
    TAB_STOPS,
    in_the_package,
    mended,
    with_weights_apart,
    with_written_chapters,
)
from tools.reference import WIDTH, public, signature, taught


def test_a_formula_is_drawn_and_said():
    drawn = typeset(r"\frac{q \cdot k}{\sqrt{d_k}}", True)
    assert 'role="img"' in drawn
    assert "<mfrac>" in drawn  # for those who listen
    assert "\\" not in drawn


def test_every_glyph_of_a_page_has_its_outline_once():
    page = with_glyphs(f"<body>{typeset('x + x', False)}</body>")
    assert page.count('<path id="MJX-TEX-I-1D465"') == 1
    assert page.count("#MJX-TEX-I-1D465") == 2
    assert "MJX-TEX-I-1D466" not in page  # y is not on this page


def test_a_page_without_formulas_is_left_alone():
    assert with_glyphs("<body>plain</body>") == "<body>plain</body>"


@pytest.mark.parametrize("wrong", [r"\nosuchcommand", r"\frac{1}", "x^{2", "}"])
def test_a_formula_that_can_not_be_read_is_an_error(wrong):
    with pytest.raises(ValueError, match="MathJax can't read"):
        typeset(wrong, False)


def test_punctuation_stays_with_the_formula_before_it():
    formula = '<span class="math"><svg></svg></span>'
    page = mended(f"<p>First {formula} then ({formula}), last {formula}.</p>")
    assert f'First {formula} then <span class="keep">({formula}),</span>' in page
    assert f'<span class="keep">{formula}.</span>' in page


def test_the_themes_icon_script_and_rules_are_taken_out():
    script = '<script src="../_static/scripts/fontawesome.js?digest=1"></script>'
    assert mended(f"<head>\n{script}</head>") == "<head></head>"
    rules = '.fa-bars:before,.fa-navicon:before{content:"\\f0c9"}.kept{color:red}'
    assert ICON_RULES.sub("", rules) == ".kept{color:red}"


def test_code_keeps_only_the_spans_that_have_a_colour():
    code = '<span class="n">x</span> <span class="o">=</span> <span class="mi">1</span>'
    page = mended(f"<pre>{code}<span class='n'><b>y</b></span></pre>")
    assert page.startswith('<pre>x <span class="o">=</span> <span class="mi">1</span>')
    assert "<b>y</b></span>" in page


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
