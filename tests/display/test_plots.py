"""The course's figures: their style, their text alternative, their errors."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from course_utils.display import figures, plots
from course_utils.display.figures import COLOURS_DARK, figure_html

ROOT = Path(__file__).parents[2]
ALT = "A heat map of attention weights between two short sentences."
WEIGHTS = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])


@pytest.fixture
def shown(monkeypatch):
    """Collect what `show` displays."""
    seen: list[dict[str, str]] = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: seen.append(data))
    return seen


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [plots.COLOURS, COLOURS_DARK])
def test_every_colour_can_be_read_on_its_surface(palette):
    for name, colour in palette.items():
        if name not in ("surface", "grid"):
            assert contrast(colour, palette["surface"]) >= 4.5, name


def mixed(colour: str, surface: str, share: float) -> str:
    both = zip(*(bytes.fromhex(c[1:]) for c in (colour, surface)))
    return "#" + bytes(round(share * a + (1 - share) * b) for a, b in both).hex()


@pytest.mark.parametrize("palette", [plots.COLOURS, COLOURS_DARK])
def test_words_can_be_read_on_every_shade_that_may_lie_under_them(palette):
    for name in (*plots.CYCLE, "gold"):
        for share in np.linspace(0, plots.SHADE, 11):
            shade = mixed(palette[name], palette["surface"], float(share))
            assert contrast(palette["ink"], shade) >= 4.5, (name, share)
        # beyond that words are light, with a rim of the full colour
        assert contrast(palette["surface"], palette[name]) >= 4.5, name


def widget_scripts() -> str:
    folder = Path(plots.__file__).with_name("widgets")
    return "".join(path.read_text("utf-8") for path in folder.glob("*.js"))


def test_figures_and_interactives_shade_alike():
    script = Path(plots.__file__).with_name("interactive.js").read_text("utf-8")
    (shade,) = re.findall(r"\bshade: ([\d.]+),", script)
    assert float(shade) == plots.SHADE
    assert not re.findall(r"ui\.shade \*", script + widget_scripts())


def test_a_figure_brings_no_style_for_the_rest_of_the_page(shown):
    plots.show(plots.plot_attention(WEIGHTS), alt=ALT)
    page = shown[0]["text/html"]
    (style,) = re.findall(r"<style>(.*?)</style>", page)
    selectors = re.findall(r"([^{}]+)\{[^{}]+\}", style)
    assert len(selectors) == 6
    assert all(".course-figure" in selector for selector in selectors)
    assert "stroke-linejoin:round" in page


def test_light_and_dark_name_the_same_colours():
    assert plots.COLOURS.keys() == COLOURS_DARK.keys()


def test_importing_plots_loads_no_matplotlib_and_drawing_chooses_no_backend():
    code = (
        "import sys; from course_utils.display import plots;"
        "assert 'matplotlib' not in sys.modules;"
        "plots.plot_attention([[1.0]]);"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_show_carries_the_alt_text_and_is_the_same_each_time(shown):
    for _ in range(2):
        plots.show(plots.plot_attention(WEIGHTS, title="A < B"), alt=ALT + ' "quoted"')
    assert shown[0] == shown[1]
    page = shown[0]["text/html"]
    assert 'role="img"' in page
    assert 'between two short sentences. &quot;quoted&quot;"' in page
    assert shown[0]["text/plain"].startswith(ALT)


def test_figures_take_the_pages_colours_and_no_black(shown):
    lines = plots.plot_lines([1, 2, 4], {"a": np.ones((2, 3)), "b": [1, 2, 3]})
    plots.show(lines, alt=ALT)
    page = shown[0]["text/html"]
    assert "var(--course-ink, #1b2330)" in page
    assert "var(--course-orange, #b35300)" in page
    assert "#000000" not in page
    assert "black" not in page


def test_words_are_words_in_the_pages_font(shown):
    lines = plots.plot_lines([1, 2, 4], {"a": [0.001, 0.1, 1]}, log_y=True, title="A")
    lines.set_xticks([1, 2, 4])
    plots.show(lines, alt=ALT, narrow=False)
    page = shown[0]["text/html"]
    words = re.findall(r"<text [^>]*>([^<]*)</text>", page)
    assert {"1", "2", "4", "10⁻³", "10⁻²", "10⁻¹", "A"} <= set(words)
    assert words.count("1") == 2  # on both axes
    assert page.count("font-family") == 1
    assert "tspan" not in page


def test_a_short_logarithmic_axis_is_written_in_full(shown):
    plots.show(plots.plot_lines([7, 8], {"a": [1, 4]}, log_y=True), alt=ALT)
    words = re.findall(r"<text [^>]*>([^<]*)</text>", shown[0]["text/html"])
    assert {"1", "2", "3", "4"} <= set(words)


def test_the_ids_of_two_figures_on_a_page_differ(shown):
    for name in ("first", "second"):
        plots.show(plots.plot_attention(WEIGHTS, title="Same"), alt=ALT, name=name)
    one, two = (set(re.findall(r'id="([^"]+)"', s["text/html"])) for s in shown)
    assert one
    assert not one & two
    assert 'id="first"' in shown[0]["text/html"]


def test_a_caption_stands_below_the_figure_wherever_it_is_shown(shown):
    caption = "Weights by $d_k$: dots are seeds,\n    p < 0.5."
    plots.show(plots.plot_attention(WEIGHTS), alt=ALT, caption=caption)
    plots.show(plots.plot_attention(WEIGHTS), alt=ALT)
    with_caption, without = (data["text/html"] for data in shown)
    below = re.search(
        r"</svg>\s*<figcaption[^>]*>(.*?)</figcaption></figure>$", with_caption
    )
    assert below[1] == "Weights by $d_k$: dots are seeds, p &lt; 0.5."
    assert "figcaption" not in without
    plain = [data["text/plain"] for data in shown]
    assert plain == [f"{ALT}\nWeights by $d_k$: dots are seeds, p < 0.5.", ALT]


def test_a_diagram_is_a_figure_of_its_own_kind():
    page = figure_html("<svg></svg>", "A box.", name="box", kind="course-diagram")
    assert page.startswith('<figure class="course-figure course-diagram" id="box" ')


def test_a_formula_that_is_not_closed_is_refused_in_a_caption():
    with pytest.raises(ValueError, match=r"has 1 dollars, expected an even number"):
        figure_html("<svg></svg>", "Scores over $d_k.")


@pytest.mark.parametrize("alt", ["", "too short", "  " * 20, None])
def test_show_refuses_a_figure_without_alt_text(alt):
    with pytest.raises(ValueError, match="20 characters"):
        plots.show(plots.plot_attention(WEIGHTS), alt=alt)


def test_attention_is_drawn_with_queries_as_rows_from_the_top():
    ax = plots.plot_attention(WEIGHTS, ["a", "b"], ["x", "y", "z"], title="Found")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["x", "y", "z"]
    assert ax.get_ylim() == (1.5, -0.5)
    opacity = ax.collections[0].get_array()[..., 3]
    np.testing.assert_allclose(opacity, WEIGHTS)
    assert ax.get_title(loc="left") == "Found"


def test_a_weight_has_the_same_blue_with_its_number_and_without():
    with_numbers = plots.plot_attention(WEIGHTS, annotate=True)
    without = plots.plot_attention(WEIGHTS)
    assert [t.get_text() for t in with_numbers.texts[:3]] == ["0.90", "0.10", "0.00"]
    one, other = (ax.collections[0].get_array() for ax in (with_numbers, without))
    np.testing.assert_array_equal(one, other)


def test_numbers_on_dark_cells_are_light_with_a_rim_of_the_cells_colour(shown):
    values = [[0.9, 0.5, -0.2, -0.8]]
    plots.show(plots.plot_matrix(values, annotate=True, limit=1.0), alt=ALT)
    page = shown[0]["text/html"]
    found = {}
    for style, words in re.findall(r'<text style="([^"]*)"[^>]*>([^<]*)</text>', page):
        colours = dict(re.findall(r"(stroke|fill): var\(--course-(\w+)", style))
        found[words] = colours.get("fill", "ink"), colours.get("stroke")
    assert found["0.9"] == ("surface", "blue")
    assert found["\N{MINUS SIGN}0.8"] == ("surface", "orange")
    assert found["0.5"] == found["\N{MINUS SIGN}0.2"] == ("ink", None)


# ------------------------------------------------------------- one colour for a model


def test_a_model_has_one_colour_whatever_it_stands_beside():
    series = {"GPT, small": [1.0, 2.0], "something": [1.0, 2.0], "GRU": [2.0, 1.0]}
    lines = plots.plot_lines([1, 2], series)
    drawn = {line.get_label(): line.get_color() for line in lines.lines}
    assert drawn["GPT, small"] == plots.COLOURS["purple"]
    assert drawn["GRU"] == plots.COLOURS["orange"]
    assert drawn["something"] == plots.COLOURS["blue"]
    bars = plots.plot_bars({"counts,\n4 before": [1.0], "GRU with attention": [1.0]})
    found = [bar.get_facecolor()[:3] for bar in bars.patches]
    expected = [to_rgb(plots.COLOURS[name]) for name in ("grey", "green")]
    assert found == expected


def test_models_says_what_a_label_does_not():
    colours = plots.colours_of(["alone", "two stacks"], {"alone": "GPT"})
    assert colours == {"alone": plots.COLOURS["purple"], "two stacks": "#1f5fa8"}
    assert plots.colours_of(["GRUs"])["GRUs"] == "#1f5fa8"  # no model of ours
    for wrong in ({"nobody": "GPT"}, {"alone": "BERT"}):
        with pytest.raises(ValueError, match="expected one of the labels"):
            plots.colours_of(["alone"], wrong)


def test_models_that_are_compared_differ_in_colour():
    colours = {k: v for k, v in plots.MODEL_COLOURS.items() if k != "attention"}
    assert len(set(colours.values())) == len(colours)
    assert plots.MODEL_COLOURS["attention"] == plots.MODEL_COLOURS["transformer"]


NAMES_A_MODEL = re.compile(
    r"(?<![\w.-])GRU\b|\btransformer\b|\bGPT\b|\bcounts,|convolution|state space"
)


def plotted_labels(chapter: Path) -> tuple[set[str], dict[str, str]]:
    """The keys of a chapter that name a model, and what `models=` says of labels."""
    keys, models = set(), {}
    for cell in json.loads(chapter.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code" or "%pip" in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Dict):
                texts = (k.value for k in node.keys if isinstance(k, ast.Constant))
                keys |= {k for k in texts if NAMES_A_MODEL.search(str(k))}
            if isinstance(node, ast.keyword) and node.arg == "models":
                models |= ast.literal_eval(node.value)
    return keys, models


@pytest.mark.parametrize("chapter", ["02", "03", "12", "13", "15"])
def test_every_chapter_that_compares_models_gives_each_its_colour(chapter):
    (path,) = (ROOT / "book").glob(f"{chapter}_*.ipynb")
    keys, models = plotted_labels(path)
    assert keys | models.keys()
    unnamed = {key for key in keys - models.keys() if plots._model_of(key) is None}
    assert not unnamed, "a label begins with the model's name, or stands in models="
    assert set(models.values()) <= plots.MODEL_COLOURS.keys()


def test_a_slanted_label_ends_in_the_middle_of_its_column():
    labels = [12 * letter for letter in "abcd"]
    ax = plots.plot_attention(np.full((4, 4), 0.25), None, labels)
    ax.figure.draw_without_rendering()
    for column, label in enumerate(ax.get_xticklabels()):
        assert label.get_rotation() == 45
        end = label.get_window_extent().x1 - ax.transData.transform((column, 0))[0]
        assert abs(end) < 0.6 * label.get_size()  # half the height of a letter


def test_a_large_matrix_is_an_image_and_a_small_one_is_not():
    assert plots.plot_attention(np.full((40, 40), 0.5)).images
    assert not plots.plot_attention(WEIGHTS).images


def test_a_matrix_shows_both_signs_in_two_colours():
    ax = plots.plot_matrix([[-2.0, 0.0, 1.0]])
    colours = ax.collections[0].get_array()[0]
    assert colours[0, 0] > colours[0, 2]  # orange: more red than blue
    assert colours[2, 2] > colours[2, 0]
    np.testing.assert_allclose(colours[:, 3], [1.0, 0.0, 0.5])


def test_lines_draw_the_mean_or_median_inside_the_spread_of_seeds():
    runs = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 9.0]])
    for middle, last in (("mean", 4.0), ("median", 2.0)):
        ax = plots.plot_lines([1, 2], {"run": runs, "one": [1, 1]}, middle=middle)
        assert ax.lines[0].get_ydata()[-1] == last
        assert ax.collections[0].get_datalim(ax.transData).y1 == 9.0
        assert len(ax.collections) == 1  # a single run has no band


def test_bars_show_every_seed():
    ax = plots.plot_bars({"a": [1.0, 2.0, 6.0], "b": [4.0]})
    assert [bar.get_height() for bar in ax.patches] == [3.0, 4.0]
    assert [len(dots.get_offsets()) for dots in ax.collections] == [3, 1]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plots.plot_attention(np.ones((2, 3, 4))), r"expected \(query, key\)"),
        (lambda: plots.plot_attention([[3.0, -1.0]]), "expected 0 to 1"),
        (lambda: plots.plot_attention([[np.nan, 1.0]]), "expected 0 to 1"),
        (lambda: plots.plot_attention(WEIGHTS, ["a"]), "query_labels holds 1 .* for 2"),
        (lambda: plots.plot_attention(WEIGHTS, None, ["a"]), "key_labels holds 1"),
        (lambda: plots.plot_matrix([1.0, 2.0]), r"expected \(row, column\)"),
        (lambda: plots.plot_matrix(WEIGHTS, ["a"]), "row_labels holds 1"),
        (lambda: plots.plot_lines([1, 2], {"a": [1, 2, 3]}), "one value for each x"),
        (
            lambda: plots.plot_lines([1], {"a": [1]}, middle="mode"),
            "'mean' or 'median'",
        ),
        (lambda: plots.plot_bars({"a": np.ones((2, 2))}), "one number per seed"),
        (lambda: plots.plot_bars({"a": []}), "one number per seed"),
        (lambda: plots.figure(0), "expected 1 or more"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_words_that_run_over_the_edge_make_the_figure_wider():
    short = plots.plot_lines([0, 1], {"a": [0, 1]}, title="Short")
    long = plots.plot_lines([0, 1], {"a": [0, 1]}, title="A long finding " * 6)
    widths = [
        float(re.search(r'viewBox="0 0 ([\d.]+)', figures._svg(ax.figure, "f"))[1])
        for ax in (short, long)
    ]
    assert widths[1] > 1.3 * widths[0]


def test_weights_of_no_query_are_drawn_as_nothing():
    ax = plots.plot_attention(np.zeros((0, 3)), [], ["the", "dog", "."], title="Empty")
    assert "nothing to show" in figures._svg(ax.figure, "f")


def test_small_numbers_on_an_axis_are_whole():
    ax = plots.plot_lines([0, 1], {"a": [0, 1]}, title="Rates")
    ax.set_xticks([0, 1], ["0.0005", "0.001"])
    svg = figures._svg(ax.figure, "f")
    assert "0.0005" in svg
    assert re.search(r'd="M [\d. ]+\.\d{3}', svg) is None
