"""The figure of the results: one line for each comparison, a dot at its ratio.

Written as SVG by hand: a few kilobytes of text whose colours are the page's own.
"""

from __future__ import annotations

import html
import math
import textwrap

from benchmarks.results import AREAS, Row, number
from course_utils.display.figures import COLOURS, figure_html

# As wide as a phone, so that 13 pixels stay more than 11 there.
WIDTH, LEFT, RIGHT, LINE, FONT = 400, 8, 390, 56, 13
COLUMNS = 46  # letters of a label in one line
LOW, HIGH = 0.01, 2.0
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
SHORT = {"gpt": "GPT", "translation": "encoder-decoder", "bahdanau": "Bahdanau"}


def drawn(rows: list[Row]) -> list[Row]:
    """Of each comparison of cost with a target the largest size, in table order."""
    last: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        if row.unit == "times" and row.target is not None and row.area != "course":
            last[row.area, row.name, row.baseline] = row
    order = list(AREAS)
    return sorted(last.values(), key=lambda row: order.index(row.area))


def across(ratio: float) -> float:
    """Where a ratio stands: a logarithmic axis, cut off at its ends."""
    share = math.log(min(max(ratio, LOW), HIGH) / LOW) / math.log(HIGH / LOW)
    return round(LEFT + share * (RIGHT - LEFT), 1)


def colour(name: str) -> str:
    """A colour of the page, or of the light palette where there is no page."""
    return f"var(--course-{name}, {COLOURS[name]})"


def text(x: float, y: float, words: str, name: str, more: str = "") -> str:
    """A piece of text."""
    return (
        f'<text x="{x}" y="{y}" fill="{colour(name)}"{more}>{html.escape(words)}</text>'
    )


def line(x: float, top: float, bottom: float, name: str, more: str = "") -> str:
    """A vertical line."""
    return (
        f'<line x1="{x}" x2="{x}" y1="{top}" y2="{bottom}" '
        f'stroke="{colour(name)}"{more}/>'
    )


def one(row: Row, top: float) -> list[str]:
    """The label of a row, its bar of spread, its dot and the mark of its target."""
    y, name = top + 43, "blue" if row.met else "red"
    low, high = (across(row.ratio + side * row.spread / 2) for side in (-1, 1))
    label = f"{SHORT.get(row.area, row.area)}: {row.name} against {row.baseline}"
    parts = [
        *(
            text(LEFT, top + 14 + 16 * i, words, "ink")
            for i, words in enumerate(textwrap.wrap(label, COLUMNS))
        ),
        f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y}" y2="{y}" stroke="{colour("grid")}"/>',
        f'<line x1="{low}" x2="{high}" y1="{y}" y2="{y}" stroke="{colour(name)}" '
        'stroke-width="5" stroke-opacity="0.45"/>',
        f'<circle cx="{across(row.ratio)}" cy="{y}" r="5" fill="{colour(name)}"/>',
    ]
    if row.target is not None:
        parts.append(
            line(across(row.target), y - 7, y + 7, "orange", ' stroke-width="2"')
        )
    return parts


def alternative(rows: list[Row]) -> str:
    """The figure in words, for those who don't see it."""
    met = sum(row.met for row in rows)
    best = min(rows, key=lambda row: row.ratio)
    return (
        f"{len(rows)} comparisons on a logarithmic axis of ratios, ours divided by "
        f"theirs; {met} of them meet their target. The lowest is {number(best.ratio)}, "
        f"{best.name}, {best.size}, against {best.baseline}."
    )


def figure(rows: list[Row]) -> str:
    """All of it as one element of HTML, with no empty line inside."""
    shown = drawn(rows)
    if not shown:
        raise ValueError("no row with a target to draw; run `make bench` first.")
    bottom = LINE * len(shown) + 8
    parts = []
    for tick in TICKS:
        anchor = "start" if tick == LOW else "end" if tick == HIGH else "middle"
        name = "muted" if tick == 1 else "grid"
        parts.append(line(across(tick), 18, bottom, name))
        where = f' text-anchor="{anchor}"'
        parts.append(text(across(tick), bottom + 16, f"{tick:g}", "muted", where))
    for index, row in enumerate(shown):
        parts += one(row, LINE * index)
    label = html.escape(alternative(shown))
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 24}" '
        f'width="{WIDTH}" height="{bottom + 24}" role="img" aria-label="{label}" '
        f'font-size="{FONT}" style="max-width:100%;height:auto;'
        'font-family:var(--course-sans, sans-serif)">'
    )
    caption = (
        "A dot is what ours costs, divided by what theirs does, and the bar around it "
        "the spread of the runs; the short upright line is the target."
    )
    return figure_html("\n".join([svg, *parts, "</svg>"]), caption)
