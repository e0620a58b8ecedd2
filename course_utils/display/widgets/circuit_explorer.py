"""Follow one prediction through the heads of a model, and switch parts of it off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from course_utils.display.interactive import Widget, script_of, select, slider, widget


def circuit_explorer(
    name: str, runs: Mapping[str, Mapping[str, Any]], words: Sequence[str]
) -> Widget:
    """Choose a token and what is switched off: weights of all heads, and the guess.

    A run has `weights` (layer, head, query, key) and `chances` (query, word), the
    probability of every different word of `words`, in order of appearance; the row is
    two copies. The first run is the whole model. Used in chapter 17.
    """
    n, kinds = len(words), list(dict.fromkeys(words))
    if not runs or n % 2 or list(words[: n // 2]) != list(words[n // 2 :]):
        raise ValueError(
            f"widget {name!r} got {len(runs)} runs and {n} words, expected at least "
            "one run, and words that are two copies."
        )
    made, n_heads = {}, 0
    for label, run in runs.items():
        weights, chances = (np.asarray(run[k], float) for k in ("weights", "chances"))
        if weights.ndim != 4 or weights.shape[2:] != (n, n):
            raise ValueError(
                f"weights of {label!r} are {weights.shape}, expected (layer, head, "
                f"{n}, {n})."
            )
        if chances.shape != (n, len(kinds)):
            raise ValueError(
                f"chances of {label!r} are {chances.shape}, expected {(n, len(kinds))}."
            )
        n_heads = weights.shape[0] * weights.shape[1]
        made[label] = {"weights": weights.round(2), "chances": chances.round(3)}
    return widget(
        name,
        "Which way does a prediction take?",
        [
            select("run", "Switched off", list(made)),
            slider("token", "Token", list(range(1, n)), value=n // 2 + 2),
        ],
        data={"runs": made, "words": list(words), "kinds": kinds},
        script=script_of(__name__),
        alt="A row of letters written twice, one of them chosen. For each head a row "
        "of cells, dark where it looks from the chosen letter; for the first layer "
        "also from the letter that the second looks at most. Below, the probability of "
        "every letter. With all heads on, the right letter has nearly all of it in the "
        "second copy; without either layer it has little.",
        height=90 + 22 * n_heads + 98,  # tokens and headings, strips, bars
    )
