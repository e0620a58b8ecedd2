"""Take a trained transformer apart: every head of its three attentions."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten
from typing import Any

import numpy as np

from course_utils.display.interactive import Widget, script_of, select, widget

KINDS = ("encoder", "decoder", "cross")
ROW = 26  # pixels from one word to the next
THUMB = 72  # pixels from one layer's small maps to the next
Example = tuple[Sequence[str], Sequence[str], Sequence[Any]]


def three_attentions(name: str, sentences: Sequence[Example]) -> Widget:
    """See all heads of an attention at once, press one, and read a word's weights.

    A sentence is (source, target, tables): the words without begin and end, and the
    weights (layer, head, row, column) of encoder, decoder and cross-attention; source
    rows and columns end with one for the end, target rows begin with one for the
    beginning. Used in chapter 12.
    """
    if not sentences:
        raise ValueError(f"widget {name!r} got no sentence, expected at least one.")
    shown, layers_and_heads = [], set()
    for source, target, tables in sentences:
        read, written = [*source, "end"], ["begin", *target]
        expected = ((read, read), (written, written), (written, read))
        if len(tables) != len(KINDS):
            raise ValueError(
                f"widget {name!r} got {len(tables)} tables for {' '.join(source)!r}, "
                "expected three: encoder, decoder, cross."
            )
        arrays = [np.asarray(table, dtype=float) for table in tables]
        for array, (rows, columns) in zip(arrays, expected):
            if array.ndim != 4 or array.shape[2:] != (len(rows), len(columns)):
                raise ValueError(
                    f"widget {name!r} got weights of shape {array.shape} for "
                    f"{' '.join(source)!r}, expected (layer, head, {len(rows)}, "
                    f"{len(columns)}): a row for each query, a column for "
                    "each key."
                )
            layers_and_heads.add(array.shape[:2])
        tables = [(100 * array).round().astype(int) for array in arrays]
        shown.append({"read": read, "written": written, "tables": tables})
    if len(layers_and_heads) != 1:
        raise ValueError(
            f"widget {name!r} got (layers, heads) {sorted(layers_and_heads)}, expected "
            "the same for all tables of all sentences."
        )
    ((n_layers, _),) = layers_and_heads
    labels = [
        f"{i + 1}. {shorten(' '.join(source), 20, placeholder=' …')}"
        for i, (source, _, _) in enumerate(sentences)
    ]
    most = max(max(len(s["read"]), len(s["written"])) for s in shown)
    return widget(
        name,
        "Which head attends to what?",
        [
            select("sentence", "Sentence", labels),
            select("kind", "Attention", list(KINDS), value="cross"),
        ],
        data={
            "sentences": dict(zip(labels, shown)),
            "kinds": list(KINDS),
            "row": ROW,
            "thumb": THUMB,
        },
        script=script_of(__name__),
        alt="Small maps of the weights of all heads, a row of them for each layer; the "
        "one that is chosen is drawn large below, for a sentence and its translation: "
        "rows are queries, columns keys. The encoder's table is a full square, the "
        "decoder's a triangle; in the cross-attention most rows have one dark cell. "
        "The row that is chosen is written out in words below.",
        height=THUMB * n_layers + ROW * most + 96,
    )
