"""Cut and heat a trained model's distribution over the next token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from course_utils.display.interactive import (
    Widget,
    button,
    script_of,
    select,
    slider,
    widget,
)

ROWS = 10  # tokens that are drawn, the most probable first
ROW = 24  # pixels from one token to the next


def visible(piece: str) -> str:
    """Write a piece so that spaces and line ends can be seen."""
    shown = piece.replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥")
    return "".join(letter if letter.isprintable() else "·" for letter in shown) or "·"


def next_token(
    name: str, pieces: Sequence[str], logits: Mapping[str, ArrayLike]
) -> Widget:
    """Choose a beginning, temperature, top-k and top-p; see what may come next.

    `logits` holds, for each beginning, one score for every piece of the vocabulary.
    First softmax(logits / temperature), then top-k, then top-p of what is left, as in
    `course_utils.evaluation.decoding.sample`. Used in chapter 13.
    """
    if not logits:
        raise ValueError(f"widget {name!r} got no beginning, expected at least one.")
    scores = {}
    for beginning, row in logits.items():
        array = np.asarray(row, dtype=float)
        if array.shape != (len(pieces),) or len(pieces) <= ROWS:
            raise ValueError(
                f"widget {name!r} got logits of shape {array.shape} for "
                f"{beginning!r} and {len(pieces)} pieces, expected one score for each "
                f"of more than {ROWS} pieces."
            )
        scores[visible(beginning)] = np.round(array - array.max(), 3)
    sizes = [k for k in (1, 2, 5, 10, 20, 50, 100) if k < len(pieces)]
    return widget(
        name,
        "What may come next?",
        [
            select("beginning", "Context", list(scores)),
            slider("heat", "temperature", [0.2, 0.4, 0.6, 0.8, 1, 1.5, 2, 4], value=1),
            slider("k", "top-k", [*sizes, len(pieces)], value=len(pieces)),
            slider("p", "top-p", [0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 1], value=1),
            button("draw", "Draw 20 tokens"),
        ],
        data={
            "pieces": [visible(piece) for piece in pieces],
            "scores": scores,
            "rows": ROWS,
            "row": ROW,
        },
        script=script_of(__name__),
        alt="Bars of the probabilities of the most probable next tokens after a "
        "context. A low temperature gives nearly all of it to the first, "
        "a high one spreads it over the whole vocabulary; top-k keeps a fixed number "
        "of tokens, top-p as many as are needed to reach a share of the probability. "
        "Tokens that were cut off are grey and are never drawn.",
        height=ROW * (ROWS + 1) + 34,
    )
