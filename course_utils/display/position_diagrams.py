"""Positions drawn: where an encoding enters attention, and RoPE as hands on clocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from course_utils.display.drawing import Diagram, Drawing, require_toy
from course_utils.display.svg import colour, path
from course_utils.display.trace import trace
from course_utils.models.attention import MultiHeadAttention
from course_utils.models.positions import frequencies, rotate, rotations

RADIUS = 38.0  # of a clock
COLUMNS = (62.0, 170.0, 278.0)


def where_positions_enter(
    layer: MultiHeadAttention, x: Tensor, added: Tensor, bias: Tensor
) -> Diagram:
    """Draw one head with all that can tell it the order (chapter 08).

        diagrams.show(where_positions_enter(layer, x, sinusoidal(5, 8), bias), alt="…")

    One forward pass adds `added` to the tokens, rotates queries and keys, adds `bias`
    to the scores and hides the future: numbers 1 to 4 in the picture.
    """
    batch, n, d_model = x.shape
    d_head = d_model // layer.n_heads
    require_toy(n=(n, 5), d_model=(d_model, 8), d_head=(d_head, 4))
    turns = rotations(torch.arange(n), d_head)

    def forward(x: Tensor) -> Tensor:
        turned = {"rotate": lambda part: rotate(part, turns)}
        options = {"causal": True, "need_weights": True, "bias": bias}
        return layer(x + added, **turned, **options)[0]

    record = trace(forward, x)
    queries, keys, values = (
        record[step].output[0, 0] for step in ("permute", "permute:2", "permute:3")
    )
    scores, weights = record["add:2"].output[0, 0], record["softmax"].output[0, 0]
    context = record["matmul:2"].output[0, 0]
    sizes = {"batch": batch, "n": n, "d_model": d_model, "d_head": d_head}
    d, cell = Drawing(340, 484, sizes), 8
    across = {"Q": 36.0, "K": 106.0, "V": 176.0}
    pair, right = (across["Q"] + across["K"]) / 2, 268.0

    def enter(number: int, y: float, names: str, end: float, at: float) -> None:
        """A numbered way in: from its names at the right to the main path."""
        d.text(right, y + 36, names, fill="muted")
        d.badge(328, at, number)
        d.arrow((right - 36, at), (end, at))

    d.tensor(106, 44, record["add"].inputs[0][0], "grey", "$X$", cell)
    d.arrow((106, 84), (106, 98))
    d.plus(106, 107)
    d.tensor(right, 90, added, "grey", "$PE$", cell, label=False)
    enter(1, 90, "sinusoidal, learned", 116, 107)
    for name, part, role in zip(
        "QKV", (queries, keys, values), ("queries", "keys", "values")
    ):
        left = across[name]
        d.arrow((106, 115), (106, 128), (left, 128), (left, 140))
        d.box(left, 153, 40, 24, f"$W_{name}$", role, size=15)
        d.arrow((left, 165), (left, 182), role=role)
        d.tensor(left, 202, part, role, "", cell)
    for name, role in (("Q", "queries"), ("K", "keys")):
        left = across[name]
        d.arrow((left, 241), (left, 253), role=role)
        d.box(left, 266, 56, 24, "rotate", role, learned=False)
        d.arrow((left, 278), (left, 288), (pair, 288), (pair, 301), role=role)
    d.text(right, 266, "RoPE")
    d.badge(328, 266, 2)
    d.arrow((right - 22, 266), (across["V"] + 4, 266), head=False)
    d.arrow((across["V"] - 4, 266), (across["K"] + 29, 266))
    d.box(pair, 315, 104, 26, "$QK^T / √d_head$", learned=False, size=14)
    d.arrow((pair, 328), (pair, 343))
    d.plus(pair, 352)
    d.tensor(right, 340, bias[0], "weights", "$B$", cell, label=False)
    d.arrow((right - 36, 352), (across["V"] + 4, 352), head=False)
    enter(3, 340, "relative bias, ALiBi", pair + 10, 352)
    d.shape(pair - 30, 340, scores)
    d.arrow((pair, 360), (pair, 377))
    d.box(pair, 390, 64, 24, "softmax", learned=False)
    d.arrow((pair, 402), (pair, 413))
    hidden = torch.ones(n, n).triu(1).bool()
    d.tensor(pair, 434, weights, "weights", "", cell, ramp=True, blocked=hidden)
    d.text(pair - 32, 434, "$A$", 16)
    d.text(right, 396, "causal mask")
    d.badge(328, 396, 4)
    d.arrow((right - 44, 396), (across["V"] + 4, 396), head=False)
    d.arrow((across["V"] - 4, 396), (pair + 33, 396))
    d.arrow((across["V"], 241), (across["V"], 421), role="values")
    d.arrow((pair + 22, 434), (across["V"] - 21, 434), role="weights")
    d.box(across["V"], 434, 40, 24, "$AV$", learned=False, size=15)
    d.arrow((across["V"] + 20, 434), (right - 18, 434), role="values")
    d.tensor(right, 440, context, "values", "", cell)
    d.text(right + 30, 440, "$C$", 16)
    return Diagram(d)


def clock_hands(
    query: Tensor, key: Tensor, pairs: Sequence[tuple[int, int]], base: float
) -> Diagram:
    """Draw what RoPE does to two pairs of features of a query and a key (chapter 08).

        diagrams.show(clock_hands(q, k, [(2, 0), (5, 3), (5, 0)], base=25), alt="…")

    A column for each of three `pairs` of positions (query's, key's); a clock for each
    pair of features, its hands as the rotation leaves them; below, the dot product.
    """
    if query.shape != (4,) or key.shape != (4,) or len(pairs) != 3:
        raise ValueError(
            f"query {tuple(query.shape)}, key {tuple(key.shape)}, {len(pairs)} pairs "
            "of positions; the picture has room for four features and three pairs."
        )
    d, speeds = Drawing(340, 306), frequencies(4, base=base)
    longest = max(part.view(2, 2).norm(dim=-1).max().item() for part in (query, key))
    for i, speed in enumerate(speeds.tolist()):
        said = f"pair {i + 1} turns by {speed:.1f} radians a position"
        d.text(170, 46 + 122 * i, said, fill="muted")
    for x, (at_query, at_key) in zip(COLUMNS, pairs):
        d.text(x, 14, f"query at {at_query}", fill="queries", bold=True)
        d.text(x, 29, f"key at {at_key}", fill="keys", bold=True)
        hands = {
            role: rotate(vector[None], rotations(torch.tensor([at]), 4, base))[0]
            for role, vector, at in (
                ("queries", query, at_query),
                ("keys", key, at_key),
            )
        }
        for i in range(2):
            ends = {role: hand.view(2, 2)[i] for role, hand in hands.items()}
            _clock(d, x, 98 + 122 * i, ends, longest)
        score = (hands["queries"] @ hands["keys"]).item()
        d.text(x, 278, f"distance {at_query - at_key}")
        d.text(x, 295, f"$q · k$ = {score:.2f}".replace("-", "−"), bold=True)
    return Diagram(d)


def _clock(
    d: Drawing, x: float, y: float, hands: dict[str, Tensor], longest: float
) -> None:
    """A dial, its hands as long as the vectors, an arc from the key to the query."""
    d.add("circle", cx=x, cy=y, r=RADIUS, fill="none", stroke=colour("grid"))
    angles = {}
    for role, (across, up) in hands.items():
        far = RADIUS / longest
        end = (x + far * across.item(), y - far * up.item())
        d.arrow((x, y), end, role=role, thick=2.4)
        angles[role] = math.atan2(up.item(), across.item())
    start, turn = angles["keys"], (angles["queries"] - angles["keys"]) % math.tau
    small, sweep = RADIUS * 0.36, 0 if turn <= math.pi else 1  # the shorter way round
    tips = [
        (x + small * math.cos(a), y - small * math.sin(a))
        for a in (start, start + turn)
    ]
    d.line(path("M", *tips[0], "A", small, small, 0, 0, sweep, *tips[1]), "ink", 1.4)
