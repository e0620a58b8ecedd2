"""The second drawing of a figure, for a phone: its words, and where they stand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from course_utils.display import figures, plots
from course_utils.display.figure_words import faults, words
from course_utils.display.narrow import WIDTH, narrow
from course_utils.display.scaling_plots import plot_scaling

ROOT = Path(__file__).parents[2]
ALT = "Lines that rise from left to right, one for each model."
SQUARE = np.eye(4)
LONG = "A finding that takes more words than a phone has room for in a single line"


def lines():
    series = {name: np.arange(1, 5) ** n for n, name in enumerate(plots.MODEL_COLOURS)}
    labels = {"x_label": "a label, " * 7, "y_label": "the share of all answers right"}
    return plots.plot_lines([1, 2, 3, 4], series, title=LONG, log_y=True, **labels)


def bars():
    names = "before", "plain\naverage", "similarity", "4 times\nas long", "far longer"
    groups = {name: [n, n + 1] for n, name in enumerate(names)}
    return plots.plot_bars(groups, title=LONG, y_label="points")


def words_among_dots():
    axes = plots.figure(height=4.2)[1]
    axes.scatter(np.arange(6), np.arange(6))
    for i, word in enumerate(("one", "two", "three", "four", "five", "six")):
        axes.annotate(word, (i, i), (5, -4), textcoords="offset points", fontsize=9)
    return axes


def maps_in_a_row(labels="abcd", columns=2):
    drawn, panels = plots.figure(n_columns=columns)
    for axes in panels:
        title = "Each looks at itself"
        plots.plot_attention(SQUARE, labels, labels, ax=axes, title=title)
    return drawn


def shared():
    drawn, panels = plots.figure(n_columns=2, share_y=True)
    for axes, name in zip(panels, ("few", "many")):
        plots.plot_lines([1, 2], {"GRU": [0, 1], "GPT": [1, 0]}, ax=axes, title=name)
        axes.get_legend().remove()
    panels[0].set_ylabel("accuracy")
    handles = panels[0].get_legend_handles_labels()
    drawn.legend(*handles, loc="outside lower center", ncols=2)
    drawn.suptitle(LONG, x=0.01, ha="left")
    return drawn


def colour_bar():
    axes = plots.figure()[1]
    image = axes.imshow(np.random.default_rng(0).random((30, 40)))
    bar = axes.get_figure().colorbar(image, ax=axes)
    bar.set_label("degrees")
    return axes


def two_axes_in_one_place():
    axes = plots.plot_lines([1, 2], {"a": [1, 2]}, x_label="steps", y_label="loss")
    other = axes.twinx()
    other.plot([1, 2], [300, 100])
    other.set_ylabel("seconds")
    return axes


def legend_of_a_panel():
    points = [
        {"parameters": n, "tokens": d, "test": 2.0 - i / 10 - j / 10}
        for i, n in enumerate((1e4, 1e5))
        for j, d in enumerate((1e5, 1e6))
    ]
    return plot_scaling(points, LONG)


def crowded():
    numbers = np.random.default_rng(0).random((4, 9))
    columns = ["elephant"] * 9
    return plots.plot_attention(numbers, list("abcd"), columns, annotate=True)


def many_ticks():
    axes = plots.plot_lines(range(16), {"a": range(16)})
    axes.set_xticks(range(16), [f"{1000 * i:,}" for i in range(16)])
    return axes


PICTURES = [
    lines,
    bars,
    words_among_dots,
    maps_in_a_row,
    shared,
    colour_bar,
    two_axes_in_one_place,
    legend_of_a_panel,
    crowded,
    many_ticks,
]


def figure_of(made):
    whole = getattr(made, "figure", made)
    figures._svg(whole, "wide")
    return whole


@pytest.fixture(params=PICTURES, ids=lambda draw: draw.__name__, scope="module")
def small(request):
    """A figure laid out for a phone."""
    return narrow(figure_of(request.param()))


def sizes(svg: str) -> list[float]:
    found = re.findall(r'<text style="[^"]*font-size: ([\d.]+)px', svg)
    return [float(size) for size in found]


def test_every_word_can_be_read_on_a_phone(small):
    svg = figures._svg(small, "f", whole=True)
    assert f'viewBox="0 0 {WIDTH} ' in svg
    assert len(sizes(svg)) == svg.count("<text ") > 3
    assert min(sizes(svg)) >= 11 * WIDTH / 340


def test_no_word_lies_on_another_or_leaves_the_drawing(small):
    assert len(words(small)) > 5
    assert faults(small) == []


def test_words_on_one_another_and_words_that_leave_are_found():
    axes = plots.plot_lines([0, 1], {"a": [0, 1]})
    axes.text(0.5, 0.5, "under")
    axes.text(0.51, 0.5, "over")
    axes.text(0.5, 0.2, "away " * 40)
    axes.figure.draw_without_rendering()
    found = "\n".join(faults(axes.figure))
    assert "'under' lies on 'over'" in found
    assert "leaves the drawing" in found
    assert len(faults(axes.figure)) == 2


def test_panels_stand_below_one_another_and_pictures_beside_while_words_fit():
    def places(drawn):
        small = narrow(figure_of(drawn))
        return [axes.get_position() for axes in small.axes]

    for drawn in (shared(), maps_in_a_row(["elephants"] * 4)):
        upper, lower = places(drawn)
        assert lower.y1 < upper.y0
        assert abs(upper.x0 - lower.x0) < 0.01
    left, right = places(maps_in_a_row())
    assert left.x1 < right.x0
    assert left.y0 == pytest.approx(right.y0)
    assert left.width == pytest.approx(right.width)
    first, second, third, fourth = places(maps_in_a_row(columns=4))
    assert first.y0 == pytest.approx(second.y0)
    assert third.y0 == pytest.approx(fourth.y0)
    assert third.y1 < first.y0


def test_a_panel_gets_the_numbers_that_its_neighbour_had():
    small = narrow(figure_of(shared()))
    said = [word.get_text() for word in words(small)]
    assert said.count("accuracy") == said.count("0.4") == 2


def test_legends_stand_below_and_cover_nothing():
    small = narrow(figure_of(lines()))
    (axes,) = small.axes
    box = axes.get_legend().get_window_extent()
    assert box.y1 < axes.xaxis.label.get_window_extent().y0
    assert box.x1 <= WIDTH
    assert len(axes.get_legend().get_texts()) == len(plots.MODEL_COLOURS)


def test_a_title_is_broken_into_lines_about_as_long():
    (axes,) = narrow(figure_of(lines())).axes
    title = axes.get_title(loc="left")
    assert title.replace("\n", " ") == LONG
    lengths = [len(line) for line in title.split("\n")]
    assert 1 < len(lengths) < 4
    assert max(lengths) < 1.6 * min(lengths)


def test_the_wide_drawing_and_its_figure_stay_as_they_were():
    for draw in (lines, maps_in_a_row, shared, colour_bar):
        one, other = (getattr(made, "figure", made) for made in (draw(), draw()))
        assert figures._svg(one, "f") == figures._svg(other, "f")
        narrow(one)
        assert figures._svg(one, "f") == figures._svg(other, "f")


def test_a_figure_is_laid_out_alike_each_time():
    one, other = (narrow(figure_of(maps_in_a_row())) for _ in range(2))
    assert figures._svg(one, "f", True) == figures._svg(other, "f", True)


def test_parts_that_are_no_panels_leave_one_drawing(monkeypatch):
    drawn, _ = plots.figure()
    drawn.add_axes((0.5, 0.5, 0.1, 0.1))
    assert narrow(figure_of(drawn)) is None
    seen = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: seen.append(data))
    plots.show(drawn, alt=ALT)
    plots.show(lines(), alt=ALT, narrow=False)
    assert all(data["text/html"].count("<svg ") == 1 for data in seen)
    assert not any('class="course-wide"' in data["text/html"] for data in seen)


def test_the_page_shows_one_of_the_two_drawings(monkeypatch):
    seen = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: seen.append(data))
    plots.show(lines(), alt=ALT, name="rise")
    page = seen[0]["text/html"]
    wide, small = re.findall(r"<svg [^>]*>.*?</svg>", page, re.S)
    assert 'class="course-wide"' in wide
    assert "display" not in wide[: wide.index(">")]
    assert 'class="course-narrow"' in small
    assert "display:none" in small[: small.index(">")]
    assert all(f'aria-label="{ALT}"' in each for each in (wide, small))
    ids = [set(re.findall(r'id="([^"]+)"', each)) for each in (wide, small)]
    assert all(ids)
    assert not ids[0] & ids[1]
    for each, own in zip((wide, small), ids):
        used = re.findall(r'(?:href="#|url\(#)([^")]+)', each)
        assert used
        assert set(used) <= own
    rule = r"\.course-figure \.course-{} ?{{ ?display: ?{} ?!important"
    css = (ROOT / "book" / "_static" / "course.css").read_text("utf-8")
    for name, display in (("wide", "none"), ("narrow", "block")):
        for sheet in (css, figures.figure_style()):
            assert re.search(rule.format(name, display), sheet)
