"""`predict_numbers`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math

import numpy as np
import torch

from course_utils.grading.questions.draw import first, second
from course_utils.grading.questions.model import Mistake, Output, Part, Question

NUMBERS = (8.0, 328, math.exp(2))
MISCOUNTED: tuple[tuple[int, str, tuple[float, ...], str], ...] = (
    (
        0,
        "every_feature_one",
        (math.sqrt(128), 128),
        "counts every feature as one: what gives one is sine² + cosine² of a wave",
    ),
    (0, "square", (64,), "is the square of the norm"),
    (
        0,
        "unit_length",
        (1,),
        "takes a row for a vector of unit length: every wave adds to the square",
    ),
    (1, "one_side", (168, 160, 21, 20), "counts distances to one side only"),
    (1, "zero_forgotten", (320, 40), "forgets the distance of a token to itself"),
    (1, "one_table", (41,), "is that of a single head"),
    (
        1,
        "by_length",
        (80_000, 10_000, 800, 1592, 32_800),
        "grows with the length of the text",
    ),
    (2, "score_not_weight", (2,), "compares the scores, and not yet the weights"),
    (2, "by_distance", (5,), "divides the distances: the weight fades by powers"),
    (2, "turned_round", (math.exp(-2),), "is turned round: near weighs more than far"),
    (2, "slope_forgotten", (math.exp(8), 8, 32), "leaves the slope out, or the power"),
    (2, "base_two", (4, 256), "is a power of 2: the softmax takes powers of e"),
    (2, "distances_added", (math.exp(3),), "adds the two distances: compare them"),
    (2, "one_token_only", (math.exp(2.5), math.exp(0.5)), "looks at one token alone"),
)


def miscounted(index: int, name: str, wrong: tuple[float, ...], hint: str) -> Mistake:
    """The mistake of one wrong number among three."""
    numbers = (*NUMBERS[:index], wrong[0], *NUMBERS[index + 1 :])
    return Mistake(
        name,
        f"the {('first', 'second', 'third')[index]} number {hint}",
        lambda: numbers,
        lambda args, value: any(
            math.isclose(float(value[index]), each, rel_tol=0.01) for each in wrong
        ),
    )


QUESTION = Question(
    id="08.7",
    title="Three numbers without running anything",
    answer="predict_numbers",
    arguments=(),
    outputs=(Output("norm"), Output("parameters"), Output("factor")),
    reference=lambda: NUMBERS,
    tolerance=1e-2,
    difficulty="easy",
    minutes=6,
    next_step="take the properties one by one: norm of a row, entries, fading.",
    parts=(
        Part("norm of a row", 1, lambda rng: [()], view=first),
        Part("parameters", 1, lambda rng: [()], view=second),
        Part("fading", 1, lambda rng: [()], view=lambda value: value[2]),
    ),
    mistakes=tuple(miscounted(*each) for each in MISCOUNTED),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [lambda: (np.float64(8), 328.0, torch.tensor(7.389))]
WRONG = [
    ("every_feature_one", lambda: (11.31, 328, 7.389)),
    ("zero_forgotten", lambda: [8, torch.tensor(320), 7.39]),
    ("score_not_weight", lambda: (8.0, 328, 2)),
    ("by_distance", lambda: (8.0, 328, 5.0)),
    ("turned_round", lambda: (8.0, 328, 0.1353)),
    ("one_side", lambda: (8.0, 8 * 21, math.e**2)),
]
WRONG += [
    ("by_length", lambda: (8, 8 * 41 * 100, 7.39)),
    ("base_two", lambda: (8, 328, 2**2)),
    ("distances_added", lambda: (8, 328, math.exp(12 / 4))),
]
NOT_IN_HINTS = {"8", "328", "41", "e²", "7.39", "eight"}
