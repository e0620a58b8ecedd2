"""Four lanes over the same tokens: who hears of whom, how soon, and what is kept.

What attention, the convolution and the scan connect is measured by gradients: an edge
is drawn where an output feels an input. A recurrence hands its state on by definition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from course_utils.display.drawing import Diagram, Drawing
from course_utils.display.figures import MODEL_COLOURS
from course_utils.display.svg import colour, path
from course_utils.models.recurrences import scan_by_doubling

N = 8  # tokens in a lane
Edges = set[tuple[int, int, int]]  # (round, from token, to token)
Layer = Callable[[Tensor], Tensor]


def reached(layer: Layer, n: int = N, d_model: int = 8) -> Tensor:
    """Which output feels which input: a boolean table (output, input), by gradients."""
    x = torch.randn(1, n, d_model, requires_grad=True)
    y = layer(x)
    rows = []
    for token in range(n):
        (slope,) = torch.autograd.grad(y[:, token].sum(), x, retain_graph=True)
        rows.append(slope[0].abs().amax(dim=-1) > 0)
    return torch.stack(rows)


def at_once(layer: Layer) -> Edges:
    """The edges of a layer that takes one round: all that its gradients show."""
    table = reached(layer).tolist()
    return {(0, j, i) for i in range(N) for j in range(i + 1) if table[i][j]}


def chain() -> Edges:
    """The edges of a recurrence: token t reads the state that the one before left."""
    return {(t - 1, t - 1, t) for t in range(1, N)}


def doubling() -> Edges:
    """The edges of `scan_by_doubling`, measured round by round.

    Round r joins steps 2^r tokens apart. What a token feels after it, and did not feel
    before, came along that edge.
    """
    edges: Edges = set()
    for number in range(math.ceil(math.log2(N))):
        gap = 2**number
        felt = reached(partial(_some_rounds, reach=2 * gap))
        before = reached(partial(_some_rounds, reach=gap))
        for i in range(N):
            new = [j for j in range(N) if felt[i, j] and not before[i, j]]
            if new:
                edges.add((number, i - gap, i))
    return edges


def _some_rounds(added: Tensor, reach: int) -> Tensor:
    """The scan over windows of `reach` tokens: as many rounds as reach those."""
    decay = torch.full_like(added, 0.5)
    parts = []
    for token in range(added.shape[1]):
        window = slice(max(0, token - reach + 1), token + 1)
        states = scan_by_doubling(decay[:, window], added[:, window])[1]
        parts.append(states[:, -1])
    return torch.stack(parts, dim=1)


def four_lanes(attention: Layer, convolution: Layer) -> Diagram:
    """Draw attention, a recurrence, a window and a scan over eight tokens (chapter 15).

    diagrams.show(four_lanes(attend, convolve), alt="…", caption="…")

    `attention` and `convolution` take a stream `(batch, token, 8)`; what they connect
    is measured. Below each lane: how many steps wait for each other, and what has to be
    kept to go on to the next token. Dark: all ways to the last token.
    """
    window = at_once(convolution)
    reach = 1 + max(i - j for _, j, i in window)
    lanes = (
        ("attention", "all to all", at_once(attention), 1, "every token, twice: $2nd$"),
        ("GRU", "a chain", chain(), N, "one state: $d$"),
        ("convolution", "a window", window, 1, f"{reach - 1} tokens: ${reach - 1}d$"),
        (
            "state space",
            "a scan",
            doubling(),
            math.ceil(math.log2(N)),
            "one state: $d$",
        ),
    )

    def lane(d: Drawing, left: float, top: float, width: float, which: int) -> None:
        name, kind, edges, rounds, kept = lanes[which]
        hue, gap = MODEL_COLOURS[name], width / (N - 1)
        levels = rounds if kind == "a scan" else 1
        base, roof = top + 116, top + 20
        rows = [base - (base - roof) * level / levels for level in range(levels + 1)]
        d.text(left + width / 2, top, f"{name}: {kind}", bold=True)

        def edge(j: int, i: int, low: int, dark: bool) -> None:
            start, end = (
                (left + gap * j, rows[low] - 5),
                (left + gap * i, rows[low + 1] + 5),
            )
            line = {"stroke": colour(hue), "stroke_width": 2 if dark else 1}
            strength = {"stroke_opacity": 1 if dark else 0.3, "fill": "none"}
            d.add("path", d=path("M", *start, "L", *end), **line, **strength)

        if kind == "a chain":
            for t in range(N):
                d.arrow((left + gap * t, base - 6), (left + gap * t, roof + 6), thick=1)
            for _, j, i in sorted(edges):
                d.arrow(
                    (left + gap * j + 6, roof), (left + gap * i - 6, roof), role=hue
                )
        else:
            wanted = {N - 1}  # at the level above; what the last token is made of
            for level in reversed(range(levels)):
                here = {(j, i) for number, j, i in edges if number == level}
                here |= {(t, t) for t in range(N)}
                for j, i in sorted(here, key=lambda pair: pair[1] in wanted):
                    edge(j, i, level, i in wanted)
                wanted = {j for j, i in here if i in wanted}
        for t in range(N):
            for y in rows:
                disc = {"cx": left + gap * t, "cy": y, "r": 4.5}
                fill = colour(hue if y == roof else "grey")
                d.add("circle", **disc, fill=fill, stroke=colour("surface"))
        waits = "1 step" if rounds == 1 else f"{rounds} steps, one after another"
        d.text(left + width / 2, base + 20, waits, fill="muted")
        d.text(left + width / 2, base + 38, f"keeps {kept}", fill="muted")

    wide = Drawing(720, 372)
    narrow = Drawing(340, 732)
    for which in range(4):
        lane(wide, 46 + 372 * (which % 2), 14 + 186 * (which // 2), 252, which)
        lane(narrow, 34, 14 + 182 * which, 272, which)
    return Diagram(wide, narrow)
