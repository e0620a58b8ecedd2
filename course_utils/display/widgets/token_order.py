"""Drag words into another order and see whether their outputs follow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from course_utils.display.interactive import Widget, button, script_of, select, widget


def token_order(
    name: str = "token-order",
    words: Sequence[str] = ("the", "dog", "bites", "the", "man"),
) -> Widget:
    """Drag words into another order and see whether their outputs follow.

    One head of self-attention with random weights, alone, with a causal mask or with
    positions: max |C(PX) - P C(X)| by word, and for the mean. Used in chapter 07.
    """
    if len(words) < 2:
        raise ValueError(
            f"token_order got {len(words)} words, expected two or more to reorder."
        )
    draw = np.random.default_rng(3).standard_normal
    vectors = {word: draw(4) for word in words}  # a word that comes twice is the same
    angles = np.arange(len(words))[:, None] * np.array([1.0, 0.3])
    return widget(
        name,
        "Drag the words (or choose one and press an arrow key)",
        [
            select(
                "layer",
                "Attention",
                ["alone", "with a causal mask", "with positions"],
            ),
            button("shuffle", "Shuffle"),
            button("back", "First order"),
        ],
        data={
            "words": list(words),
            "x": [vectors[word] for word in words],
            "positions": np.concatenate([np.sin(angles), np.cos(angles)], axis=1),
            "w_q": draw((4, 3)) * 0.4,
            "w_k": draw((4, 3)),
            "w_v": draw((4, 3)) * 0.4,
        },
        script=script_of(__name__),
        alt="The words of a sentence, each with its output of an attention layer as "
        "bars, and the mean of all outputs. Attention alone: in whatever order the "
        "words stand, each keeps its output and the mean does not change. With a "
        "causal mask or with positions the outputs change with the order.",
        height=232,
    )
