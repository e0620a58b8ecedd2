"""Click a word of a translation and see which source words it looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from course_utils.display.interactive import (
    Widget,
    plain,
    script_of,
    select,
    slider,
    toggle,
    widget,
)

ROW = 30  # pixels from one word to the next


def alignment_explorer(
    name: str,
    pairs: Sequence[Any],
    weights: Mapping[int, Sequence[Any]],
    title: str = "Click a word: where did the decoder look?",
) -> Widget:
    """Click a word of a translation and see which source words it looked at.

    `pairs` are sentences with their gold links (`grammar.Pair`); `weights` holds, for
    each number of training steps, one (target, source) array for each pair, with or
    without a last column for the end of the source. Used in chapter 03.
    """
    if not pairs or not weights:
        raise ValueError(
            f"widget {name!r} got {len(pairs)} sentences and {len(weights)} training "
            "steps, expected at least one of each."
        )
    for steps, arrays in weights.items():
        if len(arrays) != len(pairs):
            raise ValueError(
                f"widget {name!r} got {len(arrays)} arrays of weights at step {steps}, "
                f"expected one for each of the {len(pairs)} sentences."
            )
        for pair, array in zip(pairs, arrays):
            require_weights(name, pair, plain(array))
    longest = max(max(len(p.source) + 1, len(p.target)) for p in pairs)
    stages = sorted(weights)
    labels = [f"{i + 1}. {opening(pair.source)}" for i, pair in enumerate(pairs)]
    last = [plain(array) for array in weights[stages[-1]]]
    agreed = [agreement(pair, rows) for pair, rows in zip(pairs, last)]
    controls = [
        # the one to begin with is where the end of the training shows most clearly
        select("sentence", "Sentence", labels, labels[agreed.index(max(agreed))]),
        slider("steps", "after training steps", stages, value=stages[-1]),
        toggle("gold", "show the grammar's links"),
    ]
    sentences = [
        {
            "label": labels[i],
            "source": list(pair.source),
            "target": list(pair.target),
            "sure": sorted(pair.sure),
            "possible": sorted(set(pair.possible) - set(pair.sure)),
            "weights": [[short(row) for row in plain(weights[s][i])] for s in stages],
        }
        for i, pair in enumerate(pairs)
    ]
    return widget(
        name,
        title,
        controls,
        data={"sentences": sentences, "stages": stages, "row": ROW},
        script=script_of(__name__),
        alt="The words of a French translation on the left, those of the English "
        "source on the right; from each French word lines run to the English words it "
        "looked at, as thick as the weight. After training most words look at the word "
        "they translate, across the places where adjectives and nouns change order.",
        height=ROW * longest + 34,
    )


def agreement(pair: Any, rows: Sequence[Sequence[float]]) -> float:
    """The share of target words that look most at a word which is linked to them."""
    links = {*pair.sure, *pair.possible}
    found = [(row.index(max(row)), t) in links for t, row in enumerate(map(list, rows))]
    return sum(found) / len(found)


def opening(words: Sequence[str], room: int = 18) -> str:
    """The first words of a sentence, as many as a phone has room for."""
    text = " ".join(words)
    return text if len(text) <= room else text[:room].rsplit(" ", 1)[0] + " …"


def short(row: Sequence[float]) -> list[float]:
    """Two digits are enough for a line's thickness."""
    return [round(float(weight), 2) for weight in row]


def require_weights(name: str, pair: Any, rows: Any) -> None:
    """Refuse weights that do not fit the words of their sentence."""
    widths = {len(row) for row in rows}
    n_target, n_source = len(pair.target), len(pair.source)
    if len(rows) != n_target or not widths <= {n_source, n_source + 1}:
        raise ValueError(
            f"widget {name!r} got weights of shape {(len(rows), *widths)} for "
            f"{' '.join(pair.source)!r}, expected (target, source) = "
            f"{(n_target, n_source)}, or one column more for the end; cut the padding."
        )
