"""`silent_error`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def shape_of_sum(value: Any) -> tuple[int, ...] | None:
    """The shape that the two have when added, or None where they can't be."""
    try:
        return np.broadcast_shapes(value[0].shape, value[1].shape)
    except ValueError:
        return None


def unnoticed(args: Args, value: Any) -> bool:
    x, found = value
    return (
        x.shape != found.shape
        and shape_of_sum(value) == x.shape
        and bool(np.abs(found).max() > 1e-3)
    )


def silent_error() -> tuple[Tensor, Tensor]:
    return torch.zeros(3, 4), torch.ones(1, 4)


QUESTION = Question(
    id="11.4",
    title="A wrong sum that nobody notices",
    answer="silent_error",
    arguments=(),
    outputs=(
        Output("x", "token d_model", free=True),
        Output("found", "token d_model", free=True),
    ),
    reference=silent_error,
    difficulty="easy",
    minutes=6,
    next_step="choose two shapes with two axes each, and try `(x + found).shape`.",
    parts=(Part("shapes that differ", 2, lambda rng: [()], accepts=unnoticed),),
    mistakes=(
        Mistake(
            "equal_shapes",
            "the two have the same shape: that is how it should be, there is no "
            "mistake to miss",
            lambda: (torch.ones(3, 4), torch.ones(3, 4)),
            lambda args, value: value[0].shape == value[1].shape,
        ),
        Mistake(
            "refused",
            "PyTorch refuses to add these two: that mistake would be noticed at once",
            lambda: (torch.ones(3, 4), torch.ones(3, 5)),
            lambda args, value: shape_of_sum(value) is None,
        ),
        Mistake(
            "stream_changes_shape",
            "the sum has another shape than the stream: the next layer, or the loss, "
            "would notice",
            lambda: (torch.ones(1, 4), torch.ones(3, 4)),
            lambda args, value: shape_of_sum(value) not in (None, value[0].shape),
        ),
        Mistake(
            "nothing_added",
            "the layer found zeros: the sum is right whatever shape they have",
            lambda: (torch.ones(3, 4), torch.zeros(1, 4)),
            lambda args, value: (
                shape_of_sum(value) == value[0].shape
                and bool(np.abs(value[1]).max() <= 1e-3)
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [
    lambda: (torch.randn(7, 3), torch.randn(7, 1)),
    lambda: (torch.zeros(2, 9), torch.full((1, 1), 0.5)),
]
WRONG = [
    ("equal_shapes", lambda: (torch.randn(5, 2), torch.randn(5, 2))),
    ("refused", lambda: (torch.randn(5, 2), torch.randn(2, 5))),
    ("stream_changes_shape", lambda: (torch.randn(5, 1), torch.randn(1, 3))),
    ("nothing_added", lambda: (torch.randn(5, 3), torch.zeros(1, 1))),
]
