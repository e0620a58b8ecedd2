"""`disagreement`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def disagreement() -> Tensor:
    return torch.tensor([[1.0, 0.0], [0.3, 0.1], [0.6, 0.6]])


def is_three(value: Any) -> bool:
    return value.shape[0] == 3


def is_short(value: np.ndarray) -> bool:
    return bool((np.linalg.norm(value, axis=1) < 1 + 1e-4).all())


def strongest(value: np.ndarray, cosine: bool) -> int:
    """Whom the first of three tokens scores higher: the second (1) or the third (2)."""
    scores = value[1:] @ value[0]
    if cosine:
        scores = scores / np.linalg.norm(value[1:], axis=1)
    return 0 if abs(scores[0] - scores[1]) < 1e-3 else 1 + int(scores[1] > scores[0])


def has_no_zero(value: np.ndarray) -> bool:
    return bool((np.linalg.norm(value, axis=1) > 1e-6).all())


def dot_says_third(args: Args, value: Any) -> bool:
    fits = is_three(value) and has_no_zero(value) and is_short(value)
    return fits and strongest(value, False) == 2


def they_disagree(args: Args, value: Any) -> bool:
    return dot_says_third(args, value) and strongest(value, True) == 1


def says(dot: int, cosine: int) -> Callable[[Args, Any], bool]:
    """A sign: three tokens, with these two verdicts."""
    return lambda args, value: (
        is_three(value)
        and has_no_zero(value)
        and (strongest(value, False), strongest(value, True)) == (dot, cosine)
    )


QUESTION = Question(
    id="05.4",
    title="Where length decides, within a circle",
    answer="disagreement",
    arguments=(),
    outputs=(Output("x", "token d_model", free=True),),
    reference=disagreement,
    difficulty="easy",
    minutes=6,
    next_step="draw a circle of radius 1, and three arrows from its centre.",
    parts=(
        Part("by dot product the third", 1, lambda rng: [()], accepts=dot_says_third),
        Part(
            "by cosine the second",
            1,
            lambda rng: [()],
            accepts=they_disagree,
            only_failure_hint="the dot product prefers the third token; so does the "
            "cosine",
        ),
    ),
    mistakes=(
        Mistake(
            "not_three",
            "three tokens are asked for, one a row: the one that asks, and two others",
            lambda: torch.tensor([[1.0, 0.0], [3.0, 3.0]]),
            lambda args, value: not is_three(value),
        ),
        Mistake(
            "zero_vector",
            "one of the tokens has length 0: it has no direction, and so no cosine",
            lambda: torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.6, 0.6]]),
            lambda args, value: is_three(value) and not has_no_zero(value),
        ),
        Mistake(
            "too_long",
            "they disagree, as the chapter's tokens do; but here no token may be "
            "longer than 1: which of the three can be short instead?",
            lambda: torch.tensor([[1.0, 0.0], [1.0, 0.5], [4.0, 4.0]]),
            lambda args, value: says(2, 1)(args, value) and not is_short(value),
        ),
        Mistake(
            "too_long_besides",
            "a token is longer than 1; and the dot product and the cosine do not yet "
            "disagree as they should",
            lambda: torch.tensor([[2.0, 0.0], [0.3, 0.1], [0.9, 0.1]]),
            lambda args, value: is_three(value) and not is_short(value),
        ),
        Mistake(
            "both_say_third",
            "both prefer the third token: it is not only longer but also nearer in "
            "direction; turn it further away from the first",
            lambda: torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]]),
            says(2, 2),
        ),
        Mistake(
            "turned_too_far",
            "the third token stands at a right angle to the first, or beyond: its dot "
            "product is 0 or negative however long it is; turn it back a little",
            lambda: torch.tensor([[1.0, 0.0], [0.4, 0.1], [0.0, 0.9]]),
            lambda args, value: (
                says(1, 1)(args, value) and bool(value[2] @ value[0] <= 1e-6)
            ),
        ),
        Mistake(
            "both_say_second",
            "both prefer the second token: the third is turned away, but the second is "
            "not short enough; compare their dot products with the first",
            lambda: torch.tensor([[1.0, 0.0], [0.9, 0.2], [0.5, 0.5]]),
            says(1, 1),
        ),
        Mistake(
            "the_other_way_round",
            "they disagree, but the other way round: the dot product should prefer the "
            "third token, the cosine the second",
            lambda: torch.tensor([[1.0, 0.0], [0.6, 0.6], [0.3, 0.1]]),
            says(1, 2),
        ),
        Mistake(
            "a_tie",
            "one of the two scores the second and the third token alike: make the "
            "difference clear",
            lambda: torch.tensor([[1.0, 0.0], [0.3, 0.3], [0.6, 0.6]]),
            lambda args, value: (
                is_three(value)
                and has_no_zero(value)
                and 0 in (strongest(value, False), strongest(value, True))
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [
    lambda: torch.tensor([[0.7, 0.7], [0.1, 0.1], [0.9, 0.0]]),
    lambda: [[0.0, 0.5], [0.01, 0.1], [0.6, 0.8]],
    lambda: np.array([[1.0, 0, 0], [0.2, 0, 0], [0.5, 0.5, 0.5]]),
    lambda: torch.tensor([[0.0, -1.0], [0.0, -0.2], [0.8, -0.6]], dtype=torch.float64),
]
WRONG = [
    ("too_long", lambda: torch.tensor([[1.0, 1.0], [1.0, 1.1], [9.0, 0.0]])),
    ("too_long", lambda: torch.tensor([[1.0, 0.0], [0.5, 0.1], [1.0, 1.0]])),
    ("too_long_besides", lambda: torch.tensor([[1.0, 0.0], [0.5, 0.5], [2.0, 0.5]])),
    ("both_say_third", lambda: torch.tensor([[0.9, 0.0], [0.1, 0.3], [0.9, 0.1]])),
    (
        "the_other_way_round",
        lambda: torch.tensor([[0.0, 1.0], [-0.6, 0.6], [0.0, 0.2]]),
    ),
    ("both_say_second", lambda: torch.tensor([[0.0, 1.0], [0.0, 0.9], [0.6, 0.6]])),
    ("a_tie", lambda: torch.tensor([[1.0, 0.0], [0.5, 0.0], [0.5, 0.5]])),
    ("not_three", lambda: torch.eye(2)),
    ("turned_too_far", lambda: torch.tensor([[0.0, 1.0], [0.1, 0.9], [0.9, -0.1]])),
]
