"""`predict_spread`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from course_utils.grading.questions.model import Mistake, Output, Part, Question

SPREAD = (8.0, 32.0, 4.0)


def spread_is(index: int, *wrong: float) -> Any:
    """Recognise typical wrong numbers at one place, whatever stands at the others."""
    return lambda args, value: any(
        abs(float(value[index]) - number) < 0.01 * number for number in wrong
    )


QUESTION = Question(
    id="06.5",
    title="Predict the spread of the scores",
    answer="predict_spread",
    arguments=(),
    outputs=(Output("unscaled"), Output("doubled"), Output("doubled_and_scaled")),
    reference=lambda: SPREAD,
    tolerance=0.01,
    difficulty="easy",
    minutes=6,
    next_step="no computer needed: add up the variances of the 64 terms of q·k.",
    parts=(
        Part("entries of spread 1", 1, lambda rng: [()], view=lambda value: value[0]),
        Part("entries of spread 2", 1, lambda rng: [()], view=lambda value: value[1]),
        Part("after the scale", 1, lambda rng: [()], view=lambda value: value[2]),
    ),
    mistakes=(
        Mistake(
            "variance",
            "the first number is the variance: the standard deviation is its root",
            lambda: (64.0, 1024.0, 16.0),
            spread_is(0, 64),
        ),
        Mistake(
            "already_scaled",
            "the first number is the spread after the scale; the question is what the "
            "scale has to undo",
            lambda: (1.0, 4.0, 4.0),
            spread_is(0, 1),
        ),
        Mistake(
            "two_d_k",
            "the first number counts the 64 queries and the 64 keys: one product q_i "
            "k_i is one term, so 64 terms are added",
            lambda: (math.sqrt(128), math.sqrt(512), math.sqrt(8)),
            spread_is(0, math.sqrt(128), 128),
        ),
        Mistake(
            "one_factor_doubled",
            "the second number doubles only once: in q·k both factors have spread 2, "
            "so each term spreads four times as much",
            lambda: (8.0, 16.0, 2.0),
            spread_is(1, 16),
        ),
        Mistake(
            "spread_unchanged",
            "the second number is that of spread 1: the scores grow with the entries "
            "too, not only with d_k",
            lambda: (8.0, 8.0, 1.0),
            spread_is(1, 8),
        ),
        Mistake(
            "variance_doubled",
            "the second number is a variance: take the root, or think in standard "
            "deviations from the start",
            lambda: (8.0, 1024.0, 128.0),
            spread_is(1, 1024),
        ),
        Mistake(
            "grows_as_a_variance",
            "the second number has grown as a variance grows: a standard deviation "
            "grows by the root of that",
            lambda: (8.0, 128.0, 16.0),
            spread_is(1, 128),
        ),
        Mistake(
            "scale_cures_all",
            "the last number takes the scale as a cure for everything: √d_k undoes "
            "what d_k did, not what wide entries did",
            lambda: (8.0, 32.0, 1.0),
            spread_is(2, 1),
        ),
        Mistake(
            "divided_by_d_k",
            "the last number divides by d_k; the scale is its root",
            lambda: (8.0, 32.0, 0.5),
            spread_is(2, 0.5),
        ),
        Mistake(
            "root_of_two",
            "the second number takes the root of the spread: twice the spread is twice "
            "the standard deviation, in each of the two factors",
            lambda: (8.0, 8 * math.sqrt(2), math.sqrt(2)),
            spread_is(1, 8 * math.sqrt(2)),
        ),
        Mistake(
            "scaled_and_doubled_once",
            "the last number doubles only once, for one of the two factors: the scale "
            "changes nothing about that",
            lambda: (8.0, 32.0, 2.0),
            spread_is(2, 2),
        ),
        Mistake(
            "not_scaled",
            "the last number is that before the scale: here q·k is divided by √d_k",
            lambda: (8.0, 32.0, 32.0),
            spread_is(2, 32),
        ),
        Mistake(
            "multiplied_by_the_scale",
            "the last number is multiplied by √d_k: the scale divides by it",
            lambda: (8.0, 32.0, 256.0),
            spread_is(2, 256),
        ),
        Mistake(
            "scaled_variance",
            "the last number is a variance: the standard deviation is its root",
            lambda: (8.0, 32.0, 16.0),
            spread_is(2, 16),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [lambda: (np.float64(8), 32, torch.tensor(4))]
WRONG = [
    ("variance", lambda: (64, 32, 4)),
    ("one_factor_doubled", lambda: [8, torch.tensor(16.0), 4]),
    ("scale_cures_all", lambda: (8.0, 32.0, 1)),
    ("two_d_k", lambda: (128, 0, 0)),
    ("multiplied_by_the_scale", lambda: (8, 32, 256)),
    ("root_of_two", lambda: (8, 11.3, 1.41)),
    ("variance_doubled", lambda: (8, 1024, 4)),
    ("grows_as_a_variance", lambda: (8.0, 8 * 2**4, 16)),
]
NOT_IN_HINTS = {"8", "32", "4", "eight", "thirty-two"}
