"""Walk through the matrix of sinusoids: one wave a column, one pattern a row."""

from __future__ import annotations

from course_utils.display.interactive import Widget, script_of, select, slider, widget
from course_utils.models.positions import frequencies


def position_explorer(
    name: str = "position-explorer", n_tokens: int = 48, d_model: int = 24
) -> Widget:
    """Move a position and a dimension over the encoding matrix; compare two positions.

    P[t, 2i] = sin(t w_i), P[t, 2i+1] = cos(t w_i), and P_t . P_s = sum_i cos((t-s) w_i)
    against the distance. Used in chapter 08.
    """
    if n_tokens < 8 or d_model < 4:
        raise ValueError(
            f"position_explorer got n_tokens = {n_tokens}, d_model = {d_model}; "
            "expected at least 8 tokens and 4 dimensions to look at."
        )
    half = n_tokens // 2
    return widget(
        name,
        "The encoding matrix: choose a row, a column and a distance",
        [
            slider("t", "position", list(range(n_tokens)), value=half),
            slider("f", "dimension", list(range(d_model)), value=min(6, d_model - 1)),
            slider(
                "k", "distance", list(range(1 - half, half)), value=min(5, half - 1)
            ),
            select("pairs", "dot product of", ["all pairs of waves", "this pair only"]),
        ],
        data={"n": n_tokens, "w": [float(w) for w in frequencies(d_model)]},
        script=script_of(__name__),
        alt="A matrix of sines and cosines, one row for each position and one column "
        "for each dimension: the columns on the left change sign every few positions, "
        "those on the right hardly at all. Below it the dot product of two rows "
        "against their distance: highest at distance 0, the same to the left and to "
        "the right, and the same wherever the first position stands.",
        height=430,
    )
