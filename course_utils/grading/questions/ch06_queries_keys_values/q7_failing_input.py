"""`failing_input`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q6_another_pair import close


def weights_with(value: Any, width: int) -> np.ndarray:
    """The weights of queries and keys when the scale is the root of `width`."""
    queries, keys = (np.asarray(x, np.float64) for x in value[:2])
    scores = queries @ keys.T / math.sqrt(width)
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def fit(value: Any) -> bool:
    queries, keys, values = value
    return queries.shape[1] == keys.shape[1] and keys.shape[0] == values.shape[0]


def gap(value: Any) -> np.ndarray:
    """How far the colleague's weights are from the right ones."""
    n_keys, d_k = value[1].shape
    return weights_with(value, d_k) - weights_with(value, n_keys)


def weights_show_it(args: Args, value: Any) -> bool:
    return fit(value) and bool(np.abs(gap(value)).max() > 0.01)


def context_shows_it(args: Args, value: Any) -> bool:
    return fit(value) and bool(np.abs(gap(value) @ value[2]).max() > 0.01)


def failing_input() -> tuple[Tensor, Tensor, Tensor]:
    queries = torch.ones(1, 2)
    keys = torch.tensor([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    return queries, keys, torch.tensor([[1.0], [0.0], [0.0]])


def all_rows_equal(table: np.ndarray) -> bool:
    return close(table, table[:1])


def scores_all_equal(args: Args, value: Any) -> bool:
    """Whether every row of scores is level, beside how large its terms are."""
    if not fit(value):
        return False
    queries, keys = (np.asarray(x, np.float64) for x in value[:2])
    size = np.abs(queries).max() * np.abs(keys).max() * keys.shape[1]
    return bool(np.ptp(queries @ keys.T, axis=-1).max() <= 1e-6 * size)


QUESTION = Question(
    id="06.7",
    title="Find the input that fails",
    answer="failing_input",
    arguments=(),
    outputs=(
        Output("queries", "query d_k", free=True),
        Output("keys", "key d_k", free=True),
        Output("values", "key d_v", free=True),
    ),
    reference=failing_input,
    difficulty="medium",
    minutes=10,
    next_step="choose small queries, keys and values for which the two functions "
    "differ.",
    parts=(
        Part("the weights differ", 1, lambda rng: [()], accepts=weights_show_it),
        Part(
            "the context differs",
            1,
            lambda rng: [()],
            accepts=context_shows_it,
            only_failure_hint="the weights differ, the context does not: the "
            "difference is averaged away by these values",
        ),
    ),
    mistakes=(
        Mistake(
            "do_not_fit",
            "these do not fit together: queries and keys share d_k, keys and values "
            "share the number of keys",
            lambda: (torch.randn(2, 3), torch.randn(4, 5), torch.randn(4, 2)),
            lambda args, value: not fit(value),
        ),
        Mistake(
            "one_key",
            "with a single key the softmax gives it all the weight, whatever the scale",
            lambda: (torch.randn(2, 4), torch.randn(1, 4), torch.randn(1, 3)),
            lambda args, value: fit(value) and len(value[1]) == 1,
        ),
        Mistake(
            "as_many_keys_as_d_k",
            "there are as many keys as d_k: here the wrong scale happens to be the "
            "right one, which is how the bug got past its test",
            lambda: (torch.randn(2, 4), torch.randn(4, 4), torch.randn(4, 3)),
            lambda args, value: fit(value) and value[1].shape[0] == value[1].shape[1],
        ),
        Mistake(
            "scores_all_equal",
            "every key gets the same score (zeros, or keys that are all alike): the "
            "weights are then uniform, whatever the scale",
            lambda: (torch.zeros(2, 4), torch.randn(3, 4), torch.randn(3, 2)),
            scores_all_equal,
        ),
        Mistake(
            "values_all_equal",
            "all values are alike: their average is the same whatever the weights, so "
            "the context cannot show the difference",
            lambda: (torch.eye(2), torch.eye(3, 2), torch.ones(3, 4)),
            lambda args, value: fit(value) and all_rows_equal(value[2]),
        ),
        Mistake(
            "saturated",
            "the scores are so far apart that the softmax picks one key under either "
            "scale; choose smaller ones",
            lambda: (
                1000 * torch.ones(1, 2),
                torch.tensor([[9.0, 9.0], [1.0, 1.0], [2.0, 2.0]]),
                torch.tensor([[1.0], [2.0], [3.0]]),
            ),
            lambda args, value: (
                fit(value)
                and bool((weights_with(value, value[1].shape[1]).max(-1) > 0.99).all())
            ),
        ),
        Mistake(
            "too_little",
            "the two differ, but by less than 0.01: make the scores larger, or further "
            "apart",
            lambda: (
                torch.full((1, 2), 0.01),
                torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]),
                torch.tensor([[1.0], [0.0], [0.0]]),
            ),
            lambda args, value: fit(value) and 0 < np.abs(gap(value)).max() <= 0.01,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [lambda: (torch.randn(4, 9), torch.randn(3, 9), torch.randn(3, 2))]
WRONG = [
    ("do_not_fit", lambda: (torch.ones(1, 2), torch.ones(3, 2), torch.eye(2))),
    ("one_key", lambda: (torch.ones(1, 2), torch.ones(1, 2), torch.eye(1))),
    ("as_many_keys_as_d_k", lambda: (torch.eye(2), torch.eye(2), torch.eye(2))),
    ("scores_all_equal", lambda: (torch.ones(1, 2), torch.ones(3, 2), torch.eye(3))),
    (
        "values_all_equal",
        lambda: (torch.eye(3, 4), torch.eye(3, 4) * 2, torch.full((3, 1), 7.0)),
    ),
    ("saturated", lambda: (torch.eye(3, 4) * 500, torch.eye(3, 4) * 500, torch.eye(3))),
    ("too_little", lambda: (0.01 * torch.eye(3, 2), torch.eye(4, 2), torch.eye(4))),
    (
        "too_little",
        lambda: (0.01 * torch.randn(3, 4), 0.01 * torch.randn(9, 4), torch.randn(9, 2)),
    ),
]
