"""Teach one query which key to look at, with the scale and without it."""

from __future__ import annotations

import numpy as np

from course_utils.display.interactive import (
    Widget,
    button,
    script_of,
    slider,
    toggle,
    widget,
)

STEPS = 40
RATES = [0.1, 1, 10]
ENOUGH = 0.9  # weight on the wanted key at which it counts as found


def share_found(
    scores: np.ndarray, products: np.ndarray, factor: float, rate: float
) -> float:
    """Say how many draws put `ENOUGH` weight on key 0 after `STEPS` gradient steps.

    The output is a_0, its loss (1 - a_0)^2 / 2, and q the only thing that learns. As
    q moves along the keys, their dot products are all that is needed: `scores` (draw,
    key) at the start, `products` K K^T (draw, key, key).
    """
    scores = factor * scores
    for _ in range(STEPS + 1):
        powers = np.exp(scores - scores.max(1, keepdims=True))
        weights = powers / powers.sum(1, keepdims=True)
        wanted = weights[:, :1]
        towards = products[:, 0] - (weights[:, None] @ products)[:, 0]
        scores = scores + factor**2 * rate * wanted * (1 - wanted) * towards
    return float((wanted > ENOUGH).mean())


def softmax_scale(
    name: str = "softmax-scale", n_keys: int = 10, largest: int = 1024
) -> Widget:
    """Teach one random query to look at one of `n_keys` random keys.

    The value of the wanted key is 1, that of the others 0; every step follows the
    gradient of (1 - c)^2 / 2 by the query. Beside the draw in hand stands how often it
    works over 200 draws. Used in chapter 06.
    """
    if n_keys < 2 or largest < 4:
        raise ValueError(
            f"softmax_scale got n_keys = {n_keys}, largest = {largest}; expected at "
            "least two keys and a d_k of at least 4."
        )
    widths = [width for width in (4, 16, 64, 256, 1024, 4096) if width <= largest]
    draw = np.random.default_rng(0).standard_normal
    found: dict[str, list[list[float]]] = {"scaled": [], "plain": []}
    for width in widths:
        queries, keys = draw((200, width, 1)), draw((200, n_keys, width))
        scores, products = (keys @ queries)[..., 0], keys @ keys.swapaxes(1, 2)
        for label, factor in (("scaled", width**-0.5), ("plain", 1.0)):
            found[label].append(
                [share_found(scores, products, factor, rate) for rate in RATES]
            )
    return widget(
        name,
        "Teach one query to look at the green key",
        [
            slider("d_k", "dₖ", widths, value=min(256, widths[-1])),
            slider("rate", "step size", RATES, value=10),
            slider("steps", "steps", range(STEPS + 1), value=0),
            toggle("scaled", "divide the scores by √dₖ"),
            button("again", "Draw again"),
        ],
        data={"keys": n_keys, "widths": widths, "rates": RATES, **found},
        script=script_of(__name__),
        alt="Bars of the attention weights of one random query over random keys, and "
        "the weight of the wanted key after every gradient step. With the scores "
        "divided by √dₖ the weight climbs to 1 at a step size of 10, at every dₖ from "
        "16. Without, it stays at 0 in most draws at a dₖ of 256 or more, at each of "
        "three step sizes.",
        height=260,
    )
