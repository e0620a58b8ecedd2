"""Switch the heads of a layer on and off and see what its answers lose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from course_utils.display.interactive import (
    Widget,
    button,
    script_of,
    select,
    slider,
    widget,
)
from course_utils.display.plots import COLOURS


def head_selector(
    name: str,
    layers: Mapping[str, Mapping[str, Any]],
    cards: Sequence[tuple[str, str]],
    right: Any,
    questions: Sequence[str] = ("before me", "my colour"),
    options: str = "ABCDEFGH",
) -> Widget:
    """Choose who asks and which heads may answer: their weights, and what is said.

    `cards` are (colour, letter). A layer has `weights` (head, query, key), `scores`
    (head, query, question, option), what each head adds to every answer's score, and
    `constant` (question, option); `right` (query, question) holds the right options,
    below 0 where there is none. Used in chapter 10.
    """
    if not layers:
        raise ValueError(f"widget {name!r} got no layers; give at least one.")
    unknown = [colour for colour, _ in cards if colour not in COLOURS]
    if unknown:
        raise ValueError(
            f"widget {name!r} got a card of colour {unknown[0]!r}, expected one of "
            f"{', '.join(COLOURS)}."
        )
    n, asked = len(cards), (len(questions), len(options))
    made = {}
    for label, layer in layers.items():
        arrays = {part: np.asarray(layer[part], dtype=float) for part in layer}
        heads = len(arrays.get("weights", ()))
        expected = {"weights": (heads, n, n), "scores": (heads, n, *asked)}
        for part, shape in (expected | {"constant": asked}).items():
            if part not in arrays or arrays[part].shape != shape:
                came = arrays[part].shape if part in arrays else "nothing"
                raise ValueError(
                    f"{part} of layer {label!r} is {came}, expected {shape}: heads, "
                    f"then {n} cards, {asked[0]} questions, {asked[1]} options."
                )
        made[label] = {part: array.round(3) for part, array in arrays.items()}
    if np.shape(right) != (n, len(questions)):
        raise ValueError(
            f"right has shape {np.shape(right)}, expected {(n, len(questions))}: one "
            "right option for each card and question."
        )
    return widget(
        name,
        "Who asks, and which heads may answer?",
        [
            select("layer", "Layer with", list(made)),
            slider("card", "Card", list(range(1, n + 1)), value=min(5, n)),
            button("all", "All heads on / off"),
        ],
        data={
            "layers": made,
            "cards": [list(card) for card in cards],
            "right": right,
            "questions": list(questions),
            "options": list(options),
        },
        script=script_of(__name__),
        alt="A row of cards, one of which asks; for every head of the layer a row of "
        "bars, its weight on each card, and a switch; below, how likely the layer "
        "holds each letter for the two questions. With two heads, switching one off "
        "spoils one of the questions and leaves the other; with eight heads most can "
        "be switched off alone and nothing is lost.",
        height=396,
    )
