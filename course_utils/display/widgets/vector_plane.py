"""Drag vectors in the plane and watch the weights of the one that asks."""

from __future__ import annotations

from collections.abc import Sequence

from course_utils.display.interactive import Widget, script_of, select, tokens, widget


def vector_plane(
    name: str = "vector-plane",
    vectors: Sequence[Sequence[float]] = (
        (1.6, 0.5),
        (0.9, 1.4),
        (-1.0, 1.2),
        (-1.5, -0.7),
        (0.8, -1.3),
    ),
) -> Widget:
    """Drag a token's vector and see whom it looks at, by dot product or cosine.

    a_j = softmax_j(x_i . x_j) for the token i that asks, and the average it becomes,
    sum_j a_j x_j. Used in chapter 05.
    """
    if len(vectors) < 2 or any(len(vector) != 2 for vector in vectors):
        raise ValueError(
            f"vector_plane got {[list(vector) for vector in vectors]}, expected two or "
            "more vectors of two numbers each: [(1, 0), (0, 1)]."
        )
    labels = [f"x{i + 1}" for i in range(len(vectors))]
    made = widget(
        name,
        "Drag a vector (or choose it and press the arrow keys)",
        [
            tokens("asks", "Who asks", labels),
            select("score", "Score", ["dot product", "cosine"]),
        ],
        data={"vectors": [list(map(float, vector)) for vector in vectors]},
        script=script_of(__name__),
        alt="Vectors in the plane. The one that asks is joined to the others by lines "
        "as thick as their weights; a ring shows the weighted average it becomes. With "
        "the dot product a longer vector gets more weight in the same direction; with "
        "the cosine its length makes no difference.",
        height=330,
    )
    css = (  # on a phone the bars stand below the plane
        f"<style>#{name}{{container-type:inline-size}}@container(max-width:480px)"
        f"{{#{name} svg{{height:470px!important}}}}</style>"
    )
    return Widget(css + made.html, made.alt)
