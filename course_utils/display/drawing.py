"""Boxes, matrices and arrows in the course's one visual language.

Queries are orange, keys blue, values green; weights are cells of the blue ramp; what is
blocked is hatched; the residual stream is a thick grey line. What is learned has a
solid frame, what is fixed a dashed one. Everything stands around the point given.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from course_utils.display.svg import attributes_of, colour, element, path, words
from course_utils.display.trace import spell

SMALLEST = 12  # units of text: on a phone a unit is a pixel, or a little less
TINT, PALE, FULL = 0.12, 0.24, 0.8  # of the colour of a box, a cell, a marked row

Point = tuple[float, float]


class Drawing:
    """A picture of `width` by `height` units, drawn part by part.

    `sizes` names the axes of the tensors that it shows: `{"n": 5, "d_k": 4}`.
    """

    def __init__(
        self, width: float, height: float, sizes: Mapping[str, int] | None = None
    ):
        self.width, self.height, self.sizes = width, height, dict(sizes or {})
        self.parts: list[str] = []
        self.addresses: set[str] = set()

    def add(self, tag: str, content: str | None = None, /, **attributes: Any) -> None:
        """Add an element of SVG."""
        self.parts.append(element(tag, content, **attributes))

    @contextmanager
    def link(self, address: str, label: str, here: bool = False) -> Iterator[None]:
        """Let what is drawn inside lead to a page.

        A link that leads where one before it does is passed over by the keyboard.
        """
        said = attributes_of(
            href=address,
            aria_current="page" if here else None,
            tabindex=-1 if address in self.addresses else None,
        )
        self.addresses.add(address)
        self.parts.append(f"<a{said}><title>{html.escape(label)}</title>")
        yield
        self.parts.append("</a>")

    # ------------------------------------------------------------------------- words

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 13,
        anchor: str = "middle",
        fill: str = "ink",
        bold: bool = False,
        upright: bool = False,
        chapter: str = "",
    ) -> None:
        """Words in one line or several, or turned `upright`; `$…$` is a formula.

        The number of a `chapter` follows them in the colour of a link.
        """
        if size < SMALLEST:
            raise ValueError(
                f"text of {size} units can't be read on a phone; give {SMALLEST} up."
            )
        lines = text.split("\n")
        for i, line in enumerate(lines):
            content = words(line, size)
            if chapter and i == len(lines) - 1:
                content += element("tspan", f" {chapter}", fill=colour("blue"))
            self.add(
                "text",
                content,
                x=x,
                y=y + size * (0.36 + 1.15 * (i - (len(lines) - 1) / 2)),
                font_size=size,
                text_anchor=anchor if anchor != "start" else None,
                font_weight=600 if bold else None,
                fill=colour(fill),
                transform=f"rotate(-90 {x} {y})" if upright else None,
            )

    def names(self, tensor: Tensor) -> str:
        """The shape of a tensor in names, as a formula."""
        named = spell(tuple(tensor.shape), self.sizes).split(" × ")
        return " × ".join(f"${name}$" for name in named)

    def shape(self, x: float, y: float, tensor: Tensor) -> None:
        """Write the shape of a tensor."""
        self.text(x, y, self.names(tensor), fill="muted")

    def badge(self, x: float, y: float, number: int) -> None:
        """A number in a disc, for words elsewhere to refer to."""
        self.add("circle", cx=x, cy=y, r=8.5, fill=colour("ink"))
        self.text(x, y, str(number), 12, fill="surface", bold=True)

    # ------------------------------------------------------------------------- parts

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        text: str = "",
        role: str = "muted",
        learned: bool = True,
        fill: float = TINT,
        size: float = 13,
        thick: float = 1.6,
        opaque: bool = False,
    ) -> None:
        """A box: its frame is solid if something is learned in it.

        It is tinted, and lets through what lies below it unless it is `opaque`.
        """
        place = {"x": x - width / 2, "y": y - height / 2, "rx": 5}
        place |= {"width": width, "height": height}
        if opaque:
            self.add("rect", **place, fill=colour("surface"))
        self.add(
            "rect",
            **place,
            fill=colour(role),
            fill_opacity=fill,
            stroke=colour(role) if thick else None,
            stroke_width=thick or None,
            stroke_dasharray=None if learned else "4 3",
        )
        if text:
            self.text(x, y, text, size)

    def tensor(
        self,
        x: float,
        y: float,
        tensor: Tensor,
        role: str,
        name: str = "",
        cell: float = 9,
        row: int | None = None,
        learned: bool = False,
        ramp: bool = False,
        label: bool = True,
        blocked: Tensor | None = None,
    ) -> None:
        """A matrix, cell by cell as large as it is, its name above, its shape below.

        A `row` that is followed through the picture is marked. With `ramp` the cells
        have the blue of their value, 0 to 1; those that are `blocked` are hatched. A
        `learned` matrix has a thick frame.
        """
        rows, columns = tensor.shape
        wide, high = cell * columns, cell * rows
        left, top = x - wide / 2, y - high / 2
        whole = {"x": left, "y": top, "width": wide, "height": high}
        if ramp:
            self.add("rect", **whole, fill=colour("surface"))
            self.weights(left, top, cell, tensor.tolist())
        else:
            self.add("rect", **whole, fill=colour(role), fill_opacity=PALE)
        for i, j in [] if blocked is None else blocked.nonzero().tolist():
            self.hatch(left + cell * j, top + cell * i, cell)
        lines = [path("M", left, top + cell * i, "h", wide) for i in range(1, rows)]
        lines += [path("M", left + cell * j, top, "v", high) for j in range(1, columns)]
        line = {"fill": "none", "stroke": colour(role)}
        self.add("path", d="".join(lines), **line, stroke_width=0.8, stroke_opacity=0.5)
        self.add("rect", **whole, **line, stroke_width=2.4 if learned else 1.2)
        if row is not None:
            marked = whole | {"y": top + cell * row, "height": cell}
            style: dict[str, Any] = {"fill": colour(role), "fill_opacity": FULL}
            if role == "weights":  # whose blue says how much
                style = line | {"stroke": colour("ink"), "stroke_width": 1.8}
            self.add("rect", **marked, **style)
        if name:
            self.text(x, top - 14, name, 16)
        if label:
            self.shape(x, top + high + 13, tensor)

    def weights(
        self, left: float, top: float, cell: float, values: Sequence[Sequence[float]]
    ) -> None:
        """Cells of the ramp of weights: no colour is 0, blue is 1."""
        for i, row in enumerate(values):
            for j, value in enumerate(row):
                place = {"x": left + cell * j, "y": top + cell * i}
                size = {"width": cell, "height": cell}
                blue = {"fill": colour("weights"), "fill_opacity": value}
                self.add("rect", **place, **size, **blue)

    def funnel(
        self, x: float, y0: float, width0: float, y1: float, width1: float, text: str
    ) -> None:
        """A learned matrix as what it does to the width, from `y0` up to `y1`."""
        self.add(
            "path",
            d=path("M", x - width0 / 2, y0, "h", width0)
            + path("L", x + width1 / 2, y1, "h", -width1, "Z"),
            fill=colour("muted"),
            fill_opacity=TINT,
            stroke=colour("muted"),
            stroke_width=1.6,
            stroke_linejoin="round",
        )
        self.text(x, (y0 + y1) / 2, text, 15)

    def hatch(self, x: float, y: float, side: float) -> None:
        """Slanted lines over the square whose corner is `x`, `y`: a mask blocks it."""
        half = side / 2
        lines = ((x, y + half, half), (x, y + side, side), (x + half, y + side, half))
        d = "".join(path("M", *start, "l", far, -far) for *start, far in lines)
        self.line(d, "mask", 1)

    def plus(self, x: float, y: float) -> None:
        """A sum on the residual stream."""
        disc = {"fill": colour("surface"), "stroke": colour("ink"), "stroke_width": 1.5}
        self.add("circle", cx=x, cy=y, r=8, **disc)
        self.line(path("M", x - 4.4, y, "h", 8.8, "M", x, y - 4.4, "v", 8.8), "ink")

    # ------------------------------------------------------------------------- lines

    def line(self, d: str, role: str = "muted", thick: float = 1.6) -> None:
        """A line along an SVG path."""
        self.add("path", d=d, fill="none", stroke=colour(role), stroke_width=thick)

    def arrow(
        self,
        *points: Point,
        role: str = "muted",
        thick: float = 1.6,
        head: bool = True,
        bend: float = 7,
    ) -> None:
        """A line through the points, its corners round, with a head at its end."""
        (x, y), size = points[-1], 4 + 1.4 * thick
        ux, uy = step(points[-2], points[-1], 1)
        end = (x - 0.9 * size * ux, y - 0.9 * size * uy) if head else (x, y)
        route = [*points[:-1], end]
        d = path("M", *route[0])
        for before, corner, after in zip(route, route[1:], route[2:]):
            ax, ay = step(corner, before, bend)
            bx, by = step(corner, after, bend)
            cx, cy = corner
            d += path("L", cx + ax, cy + ay, "Q", cx, cy, cx + bx, cy + by)
        self.line(d + path("L", *end), role, thick)
        if head:
            bx, by, side = x - size * ux, y - size * uy, size / 2
            left, right = (-side * uy, side * ux), (2 * side * uy, -2 * side * ux)
            d = path("M", x, y, "L", bx + left[0], by + left[1], "l", *right, "Z")
            self.add("path", d=d, fill=colour(role))


def step(start: Point, end: Point, length: float) -> Point:
    """The step of that length from one point towards another, at most half the way."""
    x, y = end[0] - start[0], end[1] - start[1]
    far = max((x * x + y * y) ** 0.5, 1e-9)
    share = min(length, far / 2) / far
    return x * share, y * share


def require_toy(**sizes: tuple[int, int]) -> None:
    """Refuse a model too large to be drawn cell by cell: each size with its limit."""
    for name, (size, most) in sizes.items():
        if size > most:
            raise ValueError(
                f"{name} is {size}, but the picture has room for {most}; draw a small "
                "copy of the model, whose sizes all differ."
            )


@dataclass(frozen=True)
class Diagram:
    """A picture for a page, and another for a phone where one does not suit both."""

    wide: Drawing
    narrow: Drawing | None = None
