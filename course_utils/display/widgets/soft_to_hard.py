"""Turn soft attention into a hard choice by its temperature, and draw that choice."""

from __future__ import annotations

from collections.abc import Sequence

from course_utils.display.interactive import Widget, button, script_of, slider, widget
from course_utils.shapes import require_sizes


def soft_to_hard(
    name: str = "soft-to-hard",
    scores: Sequence[float] = (1.0, 2.0, -0.5, 1.6, 0.2),
    values: Sequence[float] = (2.0, 9.0, 5.0, 4.0, 7.0),
    per_draw: int = 20,
) -> Widget:
    """Move the temperature from soft to hard, and draw hard choices from the weights.

    weights = softmax(scores / tau); the soft answer is their average of the values, a
    hard answer the value of one key drawn by them. Used in chapter 04.
    """
    if len(scores) < 2 or len(scores) != len(values):
        raise ValueError(
            f"soft_to_hard got {len(scores)} scores and {len(values)} values, expected "
            "two keys or more with a score and a value each."
        )
    require_sizes(per_draw=per_draw)
    return widget(
        name,
        "One query: what it fetches softly, and what it fetches by a hard choice",
        [
            slider("tau", "temperature", [0.05, 0.1, 0.2, 0.4, 1, 2, 4, 10], value=1),
            button("draw", f"Draw {per_draw} hard choices"),
            button("clear", "Clear"),
        ],
        data={"scores": list(scores), "values": list(values), "per": per_draw},
        script=script_of(__name__),
        alt="Bars of the attention weights of five keys, each with a value, and a "
        "scale on which the soft answer and hard answers are marked. At a small "
        "temperature one key has all the weight and every hard choice is that key; at "
        "a large one the weights are equal. The mean of many hard answers comes close "
        "to the soft answer at every temperature.",
        height=268,
    )
