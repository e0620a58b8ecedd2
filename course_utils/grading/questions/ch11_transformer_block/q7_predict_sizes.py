"""`predict_sizes`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from course_utils.grading.questions.model import Mistake, Output, Part, Question

SIZES = (3.0, 16.0, 1.0)


def size_is(index: int, *wrong: float) -> Any:
    return lambda args, value: any(
        abs(float(value[index]) - number) < 0.01 * number for number in wrong
    )


def sized(index: int) -> Any:
    return lambda value: value[index]


QUESTION = Question(
    id="11.7",
    title="How large is the stream?",
    answer="predict_sizes",
    arguments=(),
    outputs=(Output("pre_norm"), Output("residual"), Output("post_norm")),
    reference=lambda: SIZES,
    tolerance=0.01,
    difficulty="easy",
    minutes=8,
    next_step="follow the variance from one sub-layer to the next, then take the root.",
    parts=(
        Part("pre-norm", 1, lambda rng: [()], view=sized(0)),
        Part("residual without norm", 1, lambda rng: [()], view=sized(1)),
        Part("post-norm", 1, lambda rng: [()], view=sized(2)),
    ),
    mistakes=(
        Mistake(
            "variances_throughout",
            "these are variances: right as such, and the size is the root of each",
            lambda: (9, 256, 1),
            lambda args, value: (
                size_is(0, 9)(args, value) and size_is(1, 256)(args, value)
            ),
        ),
        Mistake(
            "sizes_added",
            "the first number adds sizes: of independent numbers it is the variances "
            "that add up",
            lambda: (9, 16, 1),
            size_is(0, 9, 8),
        ),
        Mistake(
            "start_forgotten",
            "the first number leaves out what the stream held before the first "
            "sub-layer",
            lambda: (8**0.5, 16, 1),
            size_is(0, 8**0.5),
        ),
        Mistake(
            "pre_norm_grows_like_residual",
            "the first number doubles the variance each time: here a sub-layer reads "
            "normed tokens, so what it adds does not grow with the stream",
            lambda: (16, 16, 1),
            size_is(0, 16, 256),
        ),
        Mistake(
            "two_sums_a_sublayer",
            "the first number counts two sums for each sub-layer: there are eight "
            "sub-layers, not eight blocks",
            lambda: (17**0.5, 16, 1),
            size_is(0, 17**0.5, 4),
        ),
        Mistake(
            "stream_is_normed",
            "the first number is that of a normed stream: in the pre order the norm "
            "stands on the branch, the stream itself is never normed",
            lambda: (1, 16, 1),
            size_is(0, 1),
        ),
        Mistake(
            "variance",
            "the second number is the variance; the size is its root",
            lambda: (3, 256, 1),
            size_is(1, 256),
        ),
        Mistake(
            "residual_miscounted",
            "the second number has one doubling of the variance too few or too many: "
            "count one for each sub-layer",
            lambda: (3, 2**3.5, 1),
            size_is(1, 2**3.5, 2**4.5),
        ),
        Mistake(
            "residual_grows_slowly",
            "the second number adds the same each time: without a norm a sub-layer "
            "adds as much as the stream holds by then",
            lambda: (3, 3, 1),
            size_is(1, 3, 9),
        ),
        Mistake(
            "post_norm_shrinks",
            "the last number shrinks: a share of the stream may fade, but what is the "
            "last thing that happens to the whole of it in the post order?",
            lambda: (3, 16, 0),
            lambda args, value: float(value[2]) < 0.99,
        ),
        Mistake(
            "post_norm_grows",
            "the last number grows: what is the last thing that happens to the stream "
            "in the post order?",
            lambda: (3, 16, 3),
            size_is(2, 3, 2**0.5, 2, 16),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [lambda: (np.float64(3), torch.tensor(16), 1)]
WRONG = [
    ("two_sums_a_sublayer", lambda: (math.sqrt(16 + 1), 16, 1)),
    ("post_norm_shrinks", lambda: (3, 16, 1 / 16)),
    ("sizes_added", lambda: (torch.tensor(9.0), 16, 1)),
    ("start_forgotten", lambda: [math.sqrt(8), 16.0, 1.0]),
    ("variances_throughout", lambda: (9.0, 256.0, 1.0)),
    ("residual_miscounted", lambda: (3.0, 2**4.5, 1.0)),
    ("variance", lambda: (3, 2**8, 1)),
    ("post_norm_grows", lambda: (3, 16, math.sqrt(2))),
]
NOT_IN_HINTS = {"3", "16", "three", "sixteen"}
