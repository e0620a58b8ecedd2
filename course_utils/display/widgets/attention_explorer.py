"""Two tables of attention side by side: models, layers and heads on one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any

import numpy as np

from course_utils.display.interactive import Widget, script_of, select, toggle, widget

ROW, TOP = 24, 118  # pixels from one word to the next, and above the first


def attention_explorer(
    name: str,
    pairs: Sequence[Any],
    tables: Mapping[str, Sequence[Any]],
    left: str | None = None,
    right: str | None = None,
) -> Widget:
    """Compare where two models, or two heads, look on the same sentence.

    `pairs` are sentences with their gold links (`grammar.Pair`); `tables` holds, for
    each model or head by its name, one (target, source) array for each pair, with or
    without a last column for the end of the source. Used in `transformer_in_the_page`.
    """
    if not pairs or len(tables) < 2:
        raise ValueError(
            f"widget {name!r} got {len(pairs)} sentences and {len(tables)} tables, "
            "expected a sentence and two tables to compare, or more."
        )
    for label, arrays in tables.items():
        if len(arrays) != len(pairs):
            raise ValueError(
                f"widget {name!r} got {len(arrays)} arrays for {label!r}, expected one "
                f"for each of the {len(pairs)} sentences."
            )
    shown = {
        f"{i + 1}. {shorten(' '.join(pair.source), 34, placeholder=' …')}": sentence(
            name, pair, i, tables
        )
        for i, pair in enumerate(pairs)
    }
    most = max(len(pair.target) for pair in pairs)
    high = TOP + ROW * most + 8
    made = widget(
        name,
        "Where do they look? Press a row to read it",
        [
            select("sentence", "Sentence", list(shown)),
            select("left", "First", list(tables), value=left),
            select("right", "Second", list(tables), value=right),
            toggle("gold", "show the grammar's links"),
        ],
        data={"sentences": shown, "row": ROW, "top": TOP},
        script=script_of(__name__),
        alt="Two tables for one sentence: rows are the words of a translation, columns "
        "the words of its source, dark where the model looked in order to write the "
        f"word. Two of these stand beside each other: {'; '.join(tables)}. On demand "
        "the grammar's own links are framed.",
        height=high,
    )
    css = (
        f"<style>#{name}{{container-type:inline-size}}"
        f"#{name} :is(label,select){{min-width:0;max-width:100%}}"
        f"#{name} .cw-says{{min-height:6em}}@container(max-width:560px)"
        f"{{#{name} svg{{height:{2 * high}px!important}}"
        f"#{name} .cw-says{{min-height:11em}}}}</style>"
    )
    return Widget(css + made.html, made.alt)


def sentence(
    name: str, pair: Any, index: int, tables: Mapping[str, Sequence[Any]]
) -> dict[str, Any]:
    """One sentence's words, its links, and every table in hundredths."""
    n_target, n_source = len(pair.target), len(pair.source)
    hundredths = {}
    for label, arrays in tables.items():
        array = np.asarray(arrays[index], dtype=float)
        if array.ndim != 2 or array.shape not in (
            (n_target, n_source),
            (n_target, n_source + 1),
        ):
            raise ValueError(
                f"widget {name!r} got weights of shape {array.shape} of {label!r} for "
                f"{' '.join(pair.source)!r}, expected (target, source) = "
                f"{(n_target, n_source)}, or one column more for the end."
            )
        hundredths[label] = (100 * array).round().astype(int)
    return {
        "source": list(pair.source),
        "target": list(pair.target),
        "sure": sorted(pair.sure),
        "possible": sorted(pair.possible),
        "tables": hundredths,
    }
