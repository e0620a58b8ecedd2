"""Masks and leaks as tables: rows are queries or outputs, columns keys or inputs.

An open pair is blue, a blocked one hatched, a leak red.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from course_utils.display.drawing import Diagram, Drawing
from course_utils.display.svg import colour, path
from course_utils.evaluation.leak_report import LeakReport

CELL = 15.0
OPEN, LEAK = 0.55, 0.9  # of the colour of a cell
KINDS = {  # what a table's cells mean, as the legend says it
    "open": "may attend",
    "blocked": "blocked",
    "moved": "allowed, moved",
    "still": "blocked, still",
    "leak": "leak",
    "unseen": "allowed, unseen",
}


def mask_gallery(masks: Mapping[str, Tensor]) -> Diagram:
    """Draw masks side by side, three in a row (chapter 09).

    diagrams.show(mask_gallery({"causal": causal_mask(6)}), alt="…", caption="…")
    """
    tables = {}
    for name, mask in masks.items():
        if mask.dim() != 2 or mask.dtype.is_floating_point:
            raise ValueError(
                f"{name!r} has shape {tuple(mask.shape)} and dtype {mask.dtype}, "
                "expected a boolean table (query, key); pick one of the batch first: "
                "`mask[0]`."
            )
        tables[name] = [
            ["open" if seen else "blocked" for seen in row] for row in mask.tolist()
        ]
    return _gallery(tables, 3, ("open", "blocked"))


def leak_gallery(reports: Mapping[str, LeakReport]) -> Diagram:
    """Draw what moved with what in each report, the leaks in red (chapter 09)."""
    tables = {}
    for name, report in reports.items():
        if report.moved.dim() != 2:
            raise ValueError(
                f"the report of {name!r} has a table for each of a batch; test with "
                "one mask for all, or with one sequence."
            )
        moved, allowed = report.moved.tolist(), report.allowed.tolist()
        tables[name] = [
            [_kind(*pair) for pair in zip(*rows)] for rows in zip(moved, allowed)
        ]
    return _gallery(tables, 2, ("moved", "still", "leak", "unseen"))


def _kind(moved: bool, allowed: bool) -> str:
    if moved:
        return "moved" if allowed else "leak"
    return "unseen" if allowed else "still"


def _gallery(
    tables: Mapping[str, list[list[str]]], columns: int, legend: tuple[str, ...]
) -> Diagram:
    rows = [list(tables)[i : i + columns] for i in range(0, len(tables), columns)]
    heights = [max(len(tables[name]) for name in row) * CELL + 38 for row in rows]
    legend_rows = [legend[i : i + 2] for i in range(0, len(legend), 2)]
    d = Drawing(340, sum(heights) + 22 * len(legend_rows) + 6)
    top, step = 24.0, 340 / columns
    for row, height in zip(rows, heights):
        for i, name in enumerate(row):
            middle, table = step * (i + 0.5), tables[name]
            d.text(middle, top - 12, name)
            left = middle - CELL * len(table[0]) / 2
            for y, kinds in enumerate(table):
                for x, kind in enumerate(kinds):
                    DRAW[kind](d, left + CELL * x, top + CELL * y)
        top += height
    for kinds_of_row in legend_rows:
        for i, kind in enumerate(kinds_of_row):
            left = 28 + 165 * i
            DRAW[kind](d, left, top - 16)
            d.text(left + CELL + 6, top - 8, KINDS[kind], anchor="start")
        top += 22
    return Diagram(d)


def _square(d: Drawing, x: float, y: float, role: str, strength: float) -> None:
    place = {"x": x, "y": y, "width": CELL, "height": CELL}
    paint = {"fill": colour(role), "fill_opacity": strength}
    d.add("rect", **place, **paint, stroke=colour("surface"), stroke_width=1)


def _open(d: Drawing, x: float, y: float) -> None:
    _square(d, x, y, "weights", OPEN)


def _blocked(d: Drawing, x: float, y: float) -> None:
    _square(d, x, y, "mask", 0.06)
    d.hatch(x + 1, y + 1, CELL - 2)


def _leak(d: Drawing, x: float, y: float) -> None:
    _square(d, x, y, "red", LEAK)
    arm = CELL / 4
    cross = ("M", x + arm, y + arm, "l", 2 * arm, 2 * arm)
    d.line(path(*cross, "m", 0, -2 * arm, "l", -2 * arm, 2 * arm), "surface", 1.6)


def _unseen(d: Drawing, x: float, y: float) -> None:
    _square(d, x, y, "weights", 0.08)
    middle = {"cx": x + CELL / 2, "cy": y + CELL / 2, "r": 3.4, "fill": "none"}
    d.add("circle", **middle, stroke=colour("ink"), stroke_width=1.4)


DRAW: dict[str, Callable[[Drawing, float, float], None]] = {
    "open": _open,
    "blocked": _blocked,
    "moved": _open,
    "still": _blocked,
    "leak": _leak,
    "unseen": _unseen,
}
