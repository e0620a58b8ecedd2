"""`predict_counts`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from course_utils.grading.questions.model import Mistake, Output, Part, Question

COUNTS = (1, 16, 120)


def count_is(index: int, *wrong: int) -> Any:
    return lambda args, value: any(float(value[index]) == each for each in wrong)


def counted(index: int) -> Any:
    return lambda value: value[index]


QUESTION = Question(
    id="07.6",
    title="How many outputs can the dog have?",
    answer="predict_counts",
    arguments=(),
    outputs=(Output("alone"), Output("causal"), Output("positions")),
    reference=lambda: COUNTS,
    tolerance=1e-6,
    difficulty="medium",
    minutes=8,
    next_step="say first what of the order the dog's output can depend on.",
    parts=(
        Part("attention alone", 1, lambda rng: [()], view=counted(0)),
        Part("with a causal mask", 1, lambda rng: [()], view=counted(1)),
        Part("with positions", 1, lambda rng: [()], view=counted(2)),
    ),
    mistakes=(
        Mistake(
            "place_of_the_output",
            "the first number counts places: the row moves, but the numbers in the "
            "dog's row are what is counted",
            lambda: (5, 16, 120),
            count_is(0, 5),
        ),
        Mistake(
            "alone_sees_orders",
            "the first number would need a layer that sees order; this one is "
            "equivariant",
            lambda: (120, 16, 120),
            count_is(0, 120, 24, 16),
        ),
        Mistake(
            "mask_sees_orders",
            "the second number counts orders of the words before the dog: does one "
            "layer see the order of its keys?",
            lambda: (1, 120, 120),
            count_is(1, 120, 65, 24),
        ),
        Mistake(
            "mask_counts_words",
            "the second number asks only how many stand before the dog; it also "
            "matters which ones",
            lambda: (1, 5, 120),
            count_is(1, 5, 4),
        ),
        Mistake(
            "dog_before_itself",
            "the second number lets the dog itself be before or not: it always sees "
            "itself",
            lambda: (1, 32, 120),
            count_is(1, 32),
        ),
        Mistake(
            "nobody_before",
            "the second number leaves one case out: the dog may also stand first, with "
            "nobody before it",
            lambda: (1, 15, 120),
            count_is(1, 15),
        ),
        Mistake(
            "four_words",
            "the second number is that of the chapter, where three others were with "
            "the dog; here there are more",
            lambda: (1, 8, 24),
            count_is(1, 8),
        ),
        Mistake(
            "mask_is_blind",
            "the second number takes causal attention for equivariant: think of the "
            "dog standing first, and last",
            lambda: (1, 1, 120),
            count_is(1, 1),
        ),
        Mistake(
            "only_its_own_place",
            "the last number counts the places of the dog alone: where each of the "
            "others stands changes its output as well",
            lambda: (1, 16, 5),
            count_is(2, 5),
        ),
        Mistake(
            "others_only",
            "the last number counts the orders of the others, with the dog in one "
            "place: it can stand in each",
            lambda: (1, 16, 24),
            count_is(2, 24),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [lambda: (np.float64(1), 16.0, torch.tensor(120))]
WRONG = [
    ("mask_sees_orders", lambda: (1, 120, 120)),
    ("mask_counts_words", lambda: [1.0, torch.tensor(5), 120]),
    ("four_words", lambda: (1, 8, 24)),
    ("only_its_own_place", lambda: (1, 16, 5)),
    ("place_of_the_output", lambda: (5, 5, 5)),
]
NOT_IN_HINTS = {"16", "120", "sixteen", "2⁴"}
