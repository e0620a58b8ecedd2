"""The square of equivariance: reorder then attend, or attend then reorder."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from course_utils.display.drawing import Diagram, Drawing, require_toy
from course_utils.display.svg import colour
from course_utils.evaluation.symmetry import equivariance_gap
from course_utils.models.attention import SelfAttention

LEFT, RIGHT = 96.0, 266.0  # the middle of each column
CELL = 15.0


def commuting_square(
    layer: SelfAttention,
    x: Tensor,
    order: Sequence[int],
    words: Sequence[str],
    follow: int = 0,
) -> Diagram:
    """Draw one layer on the tokens as they are and in another order (chapter 07).

        diagrams.show(commuting_square(layer, x, [2, 0, 1], words), alt="…")

    The columns are two forward passes; the word to `follow` is framed in every table.
    If the two ways round differ, the picture says by how much.
    """
    _, n, d_model = x.shape
    d_v = layer.sizes[-1]
    require_toy(n=(n, 4), d_model=(d_model, 5), d_v=(d_v, 3))
    if len(words) != n:
        raise ValueError(
            f"words holds {len(words)} words for {n} tokens; give one each."
        )
    gap = equivariance_gap(layer, x, order)
    closes = gap < 1e-5  # up to rounding
    sign, found = ("=", "the same numbers") if closes else ("≠", f"{gap:.2g} apart")
    d, cell = Drawing(340, 332), 19

    def forward(middle: float, tokens: list[int], name: str, result: str) -> None:
        """Draw one forward pass, from the tokens in this order to the outputs."""
        inputs = x[:, tokens]
        context, weights = (part[0].detach() for part in layer(inputs))
        row, labels = tokens.index(follow), [words[token] for token in tokens]
        d.text(middle, 14, name, 16)
        _numbers(d, middle, 50, inputs[0], labels, row)
        d.arrow((middle, 50 + CELL * n / 2 + 3), (middle, 104))
        d.box(middle, 150, 124, 90)
        d.text(middle, 118, "attend")
        d.tensor(
            middle, 160, weights, "weights", cell=cell, row=row, ramp=True, label=False
        )
        d.arrow((middle, 196), (middle, 226))
        _numbers(d, middle, 252, context, labels, row)
        d.text(middle, 290, result, 16)

    forward(LEFT, list(range(n)), "$X$", "$C(X)$")
    forward(RIGHT, list(order), "$PX$", f"$C(PX) {sign} P C(X)$")
    for y, columns in ((50, d_model), (252, d_v)):
        start, end = LEFT + CELL * columns / 2 + 4, RIGHT - CELL * columns / 2 - 40
        d.arrow((start, y), (end, y), thick=2)
        d.text((start + end) / 2, y - 12, "reorder")
    d.text(170, 318, f"both ways round: {found}", fill="muted")
    return Diagram(d)


def _numbers(
    d: Drawing, x: float, y: float, table: Tensor, words: Sequence[str], row: int
) -> None:
    """Numbers as cells: blue above zero, orange below, stronger where larger."""
    rows, columns = table.shape
    left, top, largest = x - CELL * columns / 2, y - CELL * rows / 2, table.abs().max()
    square = {"width": CELL, "height": CELL, "stroke": colour("grid")}
    for i, numbers in enumerate(table):
        for j, number in enumerate(numbers):
            d.add(
                "rect",
                x=left + CELL * j,
                y=top + CELL * i,
                **square,
                stroke_width=0.6,
                fill=colour("blue" if number >= 0 else "orange"),
                fill_opacity=(number.abs() / largest).item(),
            )
        d.text(left - 5, top + CELL * (i + 0.5), words[i], anchor="end", bold=i == row)
    whole = {"x": left, "y": top + CELL * row, "width": CELL * columns, "height": CELL}
    d.add("rect", **whole, fill="none", stroke=colour("ink"), stroke_width=2)
