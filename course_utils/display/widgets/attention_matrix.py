"""Choose a query and see where it looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from course_utils.display.interactive import (
    Widget,
    plain,
    script_of,
    select,
    tokens,
    widget,
)


def attention_matrix(
    name: str,
    weights: Any,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    title: str,
    alt: str,
) -> Widget:
    """Choose a query and see where it looks: its row of weights shades the keys.

    `weights` is `(query, key)`, or a dict of such arrays (layers, heads, models) to
    choose from.
    """
    choices = dict(weights) if isinstance(weights, Mapping) else {"": weights}
    if not choices:
        raise ValueError(
            f"widget {name!r} got an empty dict of weights; give one array."
        )
    expected = (len(query_labels), len(key_labels))
    for label, array in choices.items():
        rows = plain(array)
        shape = (len(rows), *{len(row) for row in rows})
        if shape != expected:
            raise ValueError(
                f"weights {label!r} of widget {name!r} have shape {shape}, expected "
                f"(query, key) = {expected}: one row per query label, one column per "
                "key label."
            )
    controls = [tokens("query", "Query", query_labels)]
    if len(choices) > 1:
        controls.insert(0, select("which", "Weights of", list(choices)))
    longest = max(len(label) for label in key_labels)
    return widget(
        name,
        title,
        controls,
        data={
            "weights": choices,
            "queries": list(query_labels),
            "keys": list(key_labels),
        },
        script=script_of(__name__),
        alt=alt,
        height=26 * len(query_labels) + 26 + min(6 * longest, 70),
    )
