"""Watch a softmax saturate as its scores grow, and the scale prevent it."""

from __future__ import annotations

import numpy as np

from course_utils.interactive import Widget, button, script_of, slider, toggle, widget


def softmax_scale(
    name: str = "softmax-scale", n_keys: int = 10, largest: int = 1024
) -> Widget:
    """Watch the softmax saturate as d_k grows, and the scale prevent it.

    One query and `n_keys` keys with independent standard normal entries; weights =
    softmax(q . k_j), divided by sqrt(d_k) or not. Used in chapter 06.
    """
    if n_keys < 2 or largest < 2:
        raise ValueError(
            f"softmax_scale got n_keys = {n_keys}, largest = {largest}; expected at "
            "least two keys and a d_k of at least 2."
        )
    widths = [2**power for power in range(largest.bit_length())]
    draw = np.random.default_rng(0).standard_normal
    products = draw((200, 1, widths[-1])) * draw((200, n_keys, widths[-1]))
    scores = products.cumsum(-1)[..., [width - 1 for width in widths]]
    medians = {}
    for label, divisor in (("plain", 1.0), ("scaled", np.sqrt(widths))):
        powers = np.exp((scores - scores.max(1, keepdims=True)) / divisor)
        medians[label] = np.median((powers / powers.sum(1, keepdims=True)).max(1), 0)
    return widget(
        name,
        f"One query, {n_keys} keys: what the softmax does as d_k grows",
        [
            slider("d_k", "d_k", widths, value=min(64, widths[-1])),
            toggle("scaled", "divide the scores by √d_k"),
            button("again", "Draw again"),
        ],
        data={"keys": n_keys, "widths": widths, **medians},
        script=script_of(__name__),
        alt="Bars of the attention weights of one random query over random keys. "
        "Without the scale the scores have a standard deviation of about √d_k: at 64 "
        "one key takes nearly all the weight and the softmax has hardly any gradient "
        "left. With the scores divided by √d_k the weights stay spread at every d_k.",
        height=260,
    )
