"""`witness`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def ring(x: np.ndarray) -> np.ndarray:
    """Add to every token its two neighbours; the last and the first are such too."""
    return np.roll(x, 1, axis=0) + x + np.roll(x, -1, axis=0)


def tokens_of(value: Any) -> np.ndarray:
    return np.asarray(value[0], np.float64)


def order_in(value: Any) -> list[int]:
    return [int(place) for place in np.asarray(value[1]).tolist()]


def is_order(args: Args, value: Any) -> bool:
    """The second result names each of the tokens once."""
    named = np.asarray(value[1])
    return bool(
        (named == named.round()).all()
        and sorted(order_in(value)) == list(range(len(tokens_of(value))))
    )


def betrays(args: Args, value: Any) -> bool:
    if not is_order(args, value):
        return False
    x, order = tokens_of(value), order_in(value)
    return bool(np.abs(ring(x[order]) - ring(x)[order]).max() > 0.01)


def turns_the_ring(args: Args, value: Any) -> bool:
    """Neighbours stay neighbours: the order is a rotation or a reflection."""
    order = order_in(value)
    steps = {(b - a) % len(order) for a, b in zip(order, order[1:] + order[:1])}
    return is_order(args, value) and steps in ({1}, {len(order) - 1})


def witness() -> tuple[Tensor, Tensor]:
    return torch.tensor([[1.0], [0], [0], [0], [0]]), torch.tensor([0, 2, 1, 3, 4])


QUESTION = Question(
    id="07.5",
    title="Betray the ring",
    answer="witness",
    arguments=(),
    outputs=(
        Output("x", "token d_model", free=True),
        Output("order", "token", free=True),
    ),
    reference=witness,
    difficulty="medium",
    minutes=10,
    next_step="choose a few tokens and an order after which somebody has another "
    "neighbour.",
    parts=(Part("outputs that do not follow", 2, lambda rng: [()], accepts=betrays),),
    mistakes=(
        Mistake(
            "no_order",
            "the second result is no order of these tokens: each of 0 to n − 1 stands "
            "in it once, one for each row of x",
            lambda: (torch.eye(4), torch.tensor([1, 2, 3, 4])),
            lambda args, value: not is_order(args, value),
        ),
        Mistake(
            "few_tokens",
            "with three tokens or fewer every order turns the ring or mirrors it, so "
            "all keep their neighbours: take four tokens or more",
            lambda: (torch.eye(3), torch.tensor([2, 0, 1])),
            lambda args, value: is_order(args, value) and len(tokens_of(value)) < 4,
        ),
        Mistake(
            "identity",
            "this order leaves every token where it is",
            lambda: (torch.eye(4), torch.arange(4)),
            lambda args, value: (
                is_order(args, value) and order_in(value) == sorted(order_in(value))
            ),
        ),
        Mistake(
            "rotation",
            "this order turns the ring, or its mirror image, as the colleague's test "
            "does: all keep their neighbours",
            lambda: (torch.randn(5, 2), torch.tensor([3, 4, 0, 1, 2])),
            turns_the_ring,
        ),
        Mistake(
            "twins",
            "the tokens are so much alike that their exchange can't be seen: choose "
            "others, or exchange others",
            lambda: (torch.ones(5, 2), torch.tensor([1, 0, 2, 3, 4])),
            lambda args, value: is_order(args, value) and not betrays(args, value),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [
    lambda: (torch.eye(4), torch.tensor([1, 0, 2, 3])),
    lambda: (torch.randn(9, 3), torch.tensor([4, 0, 8, 2, 6, 1, 3, 7, 5])),
]
WRONG = [
    ("no_order", lambda: (torch.randn(5, 2), torch.tensor([0, 1, 2, 3, 3]))),
    ("no_order", lambda: (torch.randn(5, 2), torch.tensor([1, 0]))),
    ("few_tokens", lambda: (torch.randn(3, 2), torch.tensor([1, 0, 2]))),
    ("identity", lambda: (torch.randn(6, 2), torch.arange(6))),
    ("rotation", lambda: (torch.randn(6, 2), torch.arange(6).flip(0))),
    ("rotation", lambda: (torch.randn(4, 1), torch.tensor([2, 1, 0, 3]))),
    ("twins", lambda: (torch.full((7, 2), 3.0), torch.randperm(7))),
]
