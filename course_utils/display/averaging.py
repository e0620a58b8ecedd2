"""Tokens as arrows in the plane, and one of them moving to its weighted average."""

from __future__ import annotations

import torch
from torch import Tensor

from course_utils.display.drawing import PALE, Diagram, Drawing, require_toy, step
from course_utils.display.svg import colour, path
from course_utils.display.trace import trace
from course_utils.models.attention import basic_self_attention

SIDE, LEFT, TOP = 236.0, 24.0, 26.0  # the plane, and where it stands


def averaging(x: Tensor, row: int = 0) -> Diagram:
    """Draw self-attention without parameters, seen from one token (chapter 05).

        diagrams.show(averaging(torch.tensor([[2.0, 0.5], [1, 1], [0, 2]])), alt="…")

    The tokens, (token, 2), are arrows from the origin. The token in `row` compares
    itself with all, the thickness of a line is the weight, and the ring is its average.
    The shaded area holds every average of these tokens.
    """
    n, d_model = x.shape
    require_toy(n=(n, 5))
    if d_model != 2:
        raise ValueError(
            f"a token has {d_model} numbers, expected 2: a plane is drawn."
        )
    record = trace(basic_self_attention, x)
    weights, context = record["softmax"].output, record["matmul:2"].output
    d = Drawing(340, TOP + SIDE + 52)
    low = min(0.0, x.min().item())
    scale = SIDE / max(x.max().item() - low, 1e-9)

    def at(point: Tensor) -> tuple[float, float]:
        across, up = ((value - low) * scale for value in point.tolist())
        return LEFT + across, TOP + SIDE - up

    origin, asker, end = at(torch.zeros(2)), at(x[row]), at(context[row])
    corners = [at(point) for point in x[hull(x)]]
    outline = path("M", *corners[0]) + "".join(path("L", *c) for c in corners[1:])
    shade = {"fill": colour("grey"), "fill_opacity": PALE / 2, "stroke": colour("grid")}
    d.add("path", d=outline + "Z", **shade, stroke_width=1)
    for line in (("M", origin[0], TOP, "v", SIDE), ("M", LEFT, origin[1], "h", SIDE)):
        d.line(path(*line), "grid", 1)
    for j in range(n):
        role = "queries" if j == row else "muted"
        d.arrow(origin, at(x[j]), role=role, thick=2 if j == row else 1.4)
        weight = weights[row, j].item()
        if j != row:
            thick = 0.8 + 9 * weight
            d.arrow(at(x[j]), end, role="weights", thick=thick, head=False)
        name = f"$x_{j + 1}$  {weight:.2f}"
        d.text(at(x[j])[0] + 8, at(x[j])[1] - 12, name, 13, "start")
    back = step(end, asker, 7)
    d.arrow(asker, (end[0] + back[0], end[1] + back[1]), role="values", thick=2.4)
    ring = {"r": 6, "fill": colour("surface"), "stroke": colour("values")}
    d.add("circle", cx=end[0], cy=end[1], **ring, stroke_width=2.4)
    d.text(end[0] - 12, end[1] + 12, f"$c_{row + 1}$", 16, "end", "values")
    sum_of = " + ".join(f"{w:.2f} $x_{j + 1}$" for j, w in enumerate(weights[row]))
    d.text(170, d.height - 16, f"$c_{row + 1}$ = {sum_of}", 13)
    return Diagram(d)


def hull(x: Tensor) -> list[int]:
    """The tokens at the corners of the area between all of them, in order round it."""
    points = x.tolist()

    def left_turn(a: int, b: int, c: int) -> bool:
        (ax, ay), (bx, by), (cx, cy) = points[a], points[b], points[c]
        return (bx - ax) * (cy - ay) > (by - ay) * (cx - ax)

    order = sorted(range(len(points)), key=lambda i: points[i])
    halves = []
    for run in (order, order[::-1]):
        half: list[int] = []
        for i in run:
            while len(half) > 1 and not left_turn(half[-2], half[-1], i):
                half.pop()
            half.append(i)
        halves += half[:-1]
    return halves or order
