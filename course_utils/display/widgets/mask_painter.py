"""Paint a mask cell by cell and see what is left of the weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from course_utils.display.interactive import Widget, script_of, select, widget

MASKS = (
    "nothing blocked",
    "causal",
    "causal, off by one",
    "causal, inverted",
    "padding (last word)",
    "causal and padding",
)
METHODS = (
    "−∞ before the softmax",
    "−1e9 before the softmax",
    "0 before the softmax",
    "0 after the softmax",
)


def mask_painter(
    name: str = "mask-painter",
    words: Sequence[str] = ("the", "cat", "sat", "down", "<pad>"),
) -> Widget:
    """Paint a mask cell by cell and see the weights renormalise, or fail to.

    Rows are queries, columns keys; a blocked pair gets −∞, −1e9 or 0 as its score, or
    weight 0 after the softmax. Used in chapter 09.
    """
    if not 2 <= len(words) <= 7:
        raise ValueError(
            f"mask_painter got {len(words)} words, expected two to seven, so that the "
            "cells stay large enough for a finger."
        )
    scores = np.random.default_rng(5).standard_normal((len(words), len(words)))
    return widget(
        name,
        "Press a cell to block or open it: rows ask, columns are asked",
        [
            select("start", "Start from", MASKS, value="causal"),
            select("method", "A blocked pair gets", METHODS),
        ],
        data={"words": list(words), "scores": scores},
        script=script_of(__name__),
        alt="A table of attention weights, rows ask and columns are asked; each cell "
        "can be blocked or opened. With −∞ before the softmax the blocked weight is "
        "shared out among the rest and every row still sums to one. With 0 before it, "
        "blocked pairs keep a weight; with 0 after it, rows sum to less than one; with "
        "−1e9 a row that may see nothing looks at everything equally.",
        height=46 * len(words) + 40,
    )
