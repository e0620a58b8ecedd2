"""`witness`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def colleague(x: np.ndarray) -> np.ndarray:
    """Attention with a right mask, of tokens that were scaled column by column."""
    with np.errstate(all="ignore"):
        x = x / np.linalg.norm(x, axis=0, keepdims=True)
        scores = x @ x.T / math.sqrt(x.shape[1])
        scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True) @ x


def parts_of(value: Any) -> tuple[np.ndarray, np.ndarray, float]:
    first, second, place = value
    return np.asarray(first, float), np.asarray(second, float), float(place)


def fit(args: Args, value: Any) -> bool:
    """Two tensors of one shape, and a place that has another after it."""
    first, second, place = parts_of(value)
    return (
        first.shape == second.shape
        and place == int(place)
        and 0 <= place < len(first) - 1
    )


def same_past(args: Args, value: Any) -> bool:
    first, second, place = parts_of(value)
    end = int(place) + 1
    return fit(args, value) and bool((first[:end] == second[:end]).all())


def movement(value: Any) -> float:
    """How far the outputs up to the place differ; NaN where they have no value."""
    first, second, place = parts_of(value)
    gap = np.abs(colleague(first) - colleague(second))[: int(place) + 1]
    return float(gap.max())


def betrays(args: Args, value: Any) -> bool:
    return same_past(args, value) and movement(value) > 0.01


def same_lengths(value: Any) -> bool:
    first, second, _ = parts_of(value)
    before, after = (np.linalg.norm(x, axis=0) for x in (first, second))
    return bool(np.allclose(before, after, rtol=1e-6, atol=1e-9))


def past_is_zero(value: Any) -> bool:
    first, _, place = parts_of(value)
    return not first[: int(place) + 1].any()


def witness() -> tuple[Tensor, Tensor, int]:
    return torch.ones(3, 2), torch.tensor([[1.0, 1], [1, 1], [9, 9]]), 0


def kept_length() -> tuple[Tensor, Tensor, int]:
    x = torch.tensor([[1.0, 2], [3, 1], [2, 5]])
    return x, x[[0, 2, 1]], 0


QUESTION = Question(
    id="09.6",
    title="Find the leak",
    answer="witness",
    arguments=(),
    outputs=(
        Output("x", "token d_model", free=True),
        Output("changed", "token d_model", free=True),
        Output("t"),
    ),
    reference=witness,
    difficulty="medium",
    minutes=10,
    next_step="find the line in which a token meets those after it, then two inputs "
    "that show it.",
    parts=(
        Part("the same past", 1, lambda rng: [()], accepts=same_past),
        Part("an output that moves", 2, lambda rng: [()], accepts=betrays),
    ),
    mistakes=(
        Mistake(
            "no_future",
            "`t` must be a whole number, counted from 0, with at least one token after "
            "it, and the two inputs must have one shape",
            lambda: (torch.ones(3, 2), torch.zeros(3, 2), 2),
            lambda args, value: not fit(args, value),
        ),
        Mistake(
            "past_changed",
            "the two inputs differ at or before place t already: then an output up to "
            "t may move, and nothing is proved",
            lambda: (torch.ones(3, 2), 9 * torch.eye(3, 2), 1),
            lambda args, value: fit(args, value) and not same_past(args, value),
        ),
        Mistake(
            "nothing_changed",
            "the two inputs are the same: change something after place t",
            lambda: (torch.ones(3, 2), torch.ones(3, 2), 0),
            lambda args, value: (
                fit(args, value)
                and not (parts_of(value)[0] != parts_of(value)[1]).any()
            ),
        ),
        Mistake(
            "not_a_number",
            "with these inputs the function gives no numbers: something is divided by "
            "zero; use no column of zeros",
            lambda: (
                torch.tensor([[1.0, 0], [2, 0]]),
                torch.tensor([[1.0, 0], [3, 0]]),
                0,
            ),
            lambda args, value: same_past(args, value) and math.isnan(movement(value)),
        ),
        Mistake(
            "length_kept",
            "what was changed does not show in the quantity that leaks (an exchange of "
            "tokens, or of signs, keeps it): which number of a column is computed?",
            kept_length,
            lambda args, value: same_past(args, value) and same_lengths(value),
        ),
        Mistake(
            "past_is_zero",
            "all tokens up to place t are zero, and zero divided by anything is zero: "
            "give them something to be scaled",
            lambda: (
                torch.tensor([[0.0, 0], [1, 2]]),
                torch.tensor([[0.0, 0], [9, 5]]),
                0,
            ),
            lambda args, value: same_past(args, value) and past_is_zero(value),
        ),
        Mistake(
            "too_faint",
            "the outputs up to t move by less than 0.01: change what comes after more "
            "strongly",
            lambda: (torch.ones(2, 2), torch.tensor([[1.0, 1], [1.005, 1.005]]), 0),
            lambda args, value: same_past(args, value) and movement(value) <= 0.01,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [
    lambda: (
        torch.ones(4, 3),
        torch.cat([torch.ones(3, 3), torch.full((1, 3), -8.0)]),
        torch.tensor(2),
    )
]
WRONG = [
    ("no_future", lambda: (torch.ones(3, 2), torch.ones(2, 2), 0)),
    ("no_future", lambda: (torch.ones(3, 2), torch.ones(3, 2), -1)),
    ("no_future", lambda: (torch.ones(3, 2), torch.ones(3, 2), 0.5)),
    ("past_changed", lambda: (torch.eye(4), torch.eye(4).flip(0), 2)),
    ("nothing_changed", lambda: (torch.eye(4, 3), torch.eye(4, 3), 1)),
    (
        "length_kept",
        lambda: (
            torch.tensor([[1.0], [2], [3]]),
            torch.tensor([[1.0], [-2], [3]]),
            0,
        ),
    ),
    (
        "past_is_zero",
        lambda: (
            torch.tensor([[0.0], [0], [3]]),
            torch.tensor([[0.0], [0], [7]]),
            1,
        ),
    ),
    (
        "too_faint",
        lambda: (torch.tensor([[5.0], [1]]), torch.tensor([[5.0], [1.01]]), 0),
    ),
    (
        "not_a_number",
        lambda: (torch.zeros(3, 2), torch.tensor([[0.0, 0], [0, 0], [1, 1]]), 1),
    ),
]
