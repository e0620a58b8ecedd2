"""Ask a trained model about a scene, and see which cells each word attends to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.display.interactive import Widget, script_of, select, widget
from course_utils.shapes import Float, Int, shape_of
from course_utils.tasks.scenes import COLOURS, GRID, N_CELLS, QUESTION_WORDS, SIDE

KINDS = QUESTION_WORDS[16:]  # which-digit-is, what-colour-is
BRIGHT = {
    name: "#" + "".join("f" if c else "4" for c in COLOURS[name]) for name in COLOURS
}
HEIGHT = 332  # pixels of the drawing
Example = tuple[Any, Sequence[int], Any, Any, Any]


def _cells(image: Tensor) -> Tensor:
    """The nine cells of a scene, in reading order."""
    parts = image.unfold(1, SIDE, SIDE).unfold(2, SIDE, SIDE)
    return parts.permute(1, 2, 0, 3, 4).reshape(N_CELLS, 3, SIDE, SIDE)


def _colour_of(cell: Tensor) -> int:
    """Which of the six colours an object has: the channels that it uses."""
    used = [int(channel.max() > 0) for channel in cell]
    return [list(paint) for paint in COLOURS.values()].index(used)


def all_questions(
    image: Float[Tensor, "3 24 24"], digits: Sequence[int] | None = None
) -> tuple[list[int], Int[Tensor, "question 2"]]:
    """List every question that can be asked about the colours of a scene's objects.

    Returns the cells that hold an object, in reading order, and for each the question
    `which-digit-is` its colour; with `digits`, one for each object, `what-colour-is`
    the digit as well, after them. Used in chapter 14.
    """
    if tuple(image.shape) != (3, GRID * SIDE, GRID * SIDE):
        raise ValueError(
            f"image has shape {shape_of(image)}, expected one scene (3, 24, 24) as "
            "question_scenes makes them; `images[0]` is one."
        )
    cells = _cells(image)
    filled = [place for place in range(N_CELLS) if cells[place].max() > 0]
    questions = [[16, 10 + _colour_of(cells[place])] for place in filled]
    if digits is not None:
        if len(digits) != len(filled):
            raise ValueError(
                f"got {len(digits)} digits for {len(filled)} objects; give one each, "
                "in reading order."
            )
        questions += [[17, int(digit)] for digit in digits]
    return filled, torch.tensor(questions)


def ask_the_scene(name: str, examples: Sequence[Example]) -> Widget:
    """Press an object, choose a question, and see which cells its words attend to.

    An example is (image, cells with an object, questions, answers, maps): for every
    object a question for its digit, then for every object one for its colour; maps are
    weights (question, word, cell). Used in chapter 14.
    """
    if not examples:
        raise ValueError(f"widget {name!r} got no scene, expected at least one.")
    shown = {}
    for number, (image, places, questions, answers, maps) in enumerate(examples, 1):
        weights = np.asarray(maps, dtype=float)
        expected = (2 * len(places), 2, N_CELLS)
        if weights.shape != expected or len(answers) != expected[0]:
            raise ValueError(
                f"widget {name!r} got maps of shape {weights.shape} and "
                f"{len(answers)} answers for {len(places)} objects, expected "
                f"{expected}: (question, word, cell), two questions for each object."
            )
        cells = _cells(torch.as_tensor(image))
        colours = [list(COLOURS)[_colour_of(cells[place])] for place in places]
        shown[f"scene {number}"] = {
            "places": list(places),
            "paint": [BRIGHT[colour] for colour in colours],
            "pixels": [
                (9 * cells[place].amax(0)).round().int().flatten() for place in places
            ],
            "questions": [[QUESTION_WORDS[int(w)] for w in q] for q in questions],
            "answers": [QUESTION_WORDS[int(answer)] for answer in answers],
            "maps": (100 * weights).round().astype(int),
        }
    made = widget(
        name,
        "Ask about an object: which cell does each word attend to?",
        [
            select("scene", "Scene", list(shown)),
            select("kind", "Question", list(KINDS)),
        ],
        data={"scenes": shown, "kinds": list(KINDS)},
        script=script_of(__name__),
        alt="A scene of six digits in six colours on black ground. From both words "
        "of a question, lines lead to the cells that they attend to; "
        "these are bright and have their weights as numbers. The second word, which "
        "names a colour or a digit, attends to the object that it names; the first "
        "word attends to other cells.",
        height=HEIGHT,
    )
    css = (  # on a phone the words stand above the scene
        f"<style>#{name}{{container-type:inline-size}}@container(max-width:530px)"
        f"{{#{name} svg{{height:{HEIGHT + 70}px!important}}}}</style>"
    )
    return Widget(css + made.html, made.alt)
