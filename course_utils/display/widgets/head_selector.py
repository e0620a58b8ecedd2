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


def telling_card(layer: Mapping[str, np.ndarray], right: Any) -> int:
    """Find the card on which the heads matter most: where to start.

    It is the card that loses right answers to the most heads, each switched off alone;
    where cards tie, the one whose right answers lose the most probability in all.
    """
    scores, wanted = layer["scores"], np.asarray(right)
    whole = layer["constant"] + scores.sum(axis=0)
    logits = np.stack(
        [whole, *(whole - term for term in scores)]
    )  # all on, then one off
    logits -= logits.max(axis=-1, keepdims=True)
    chances = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    index = np.broadcast_to(wanted.clip(min=0)[..., None], (*chances.shape[:-1], 1))
    of_right = np.take_along_axis(chances, index, axis=-1)[..., 0]
    correct = (chances.argmax(axis=-1) == wanted) & (wanted >= 0)
    lost = (
        (correct[0] & ~correct[1:]).any(axis=-1).sum(axis=0)
    )  # how many heads, by card
    fallen = np.where(correct[0], of_right[0] - of_right[1:], 0.0).sum(axis=(0, 2))
    return max(range(len(wanted)), key=lambda card: (lost[card], fallen[card]))


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
    below 0 where there is none. It starts on a card where switching heads of the first
    layer off costs right answers, if there is one (`telling_card`). Used in chapter 10.
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
    start = telling_card(next(iter(made.values())), right)
    return widget(
        name,
        "Who asks, and which heads may answer?",
        [
            select("layer", "Layer with", list(made)),
            slider("card", "Card", list(range(1, n + 1)), value=start + 1),
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
        "bars, its weight on each card, and a switch; below, the probability of each "
        "letter for the two questions. With two heads, switching one off spoils one of "
        "the questions for most cards and leaves the other; with eight heads most can "
        "be switched off alone and little or nothing is lost.",
        height=396,
    )
