"""`another_pair`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def another_pair(w_q: Tensor, w_k: Tensor) -> tuple[Tensor, Tensor]:
    mix = torch.eye(w_q.shape[-1]) + 0.5 * torch.ones(w_q.shape[-1], w_q.shape[-1])
    return w_q @ mix, w_k @ torch.linalg.inv(mix).T


def draw_pair(rng: np.random.Generator) -> Args:
    d_model, d_k = sorted(sizes(rng, 2), reverse=True)
    return normal(rng, d_model, d_k), normal(rng, d_model, d_k)


def same_scores(args: Args, value: Any) -> bool:
    """The new pair has the old product, up to what rounding leaves."""
    w_q, w_k, new_q, new_k = (np.asarray(x, np.float64) for x in (*args, *value))
    product = w_q @ w_k.T
    return bool(np.abs(new_q @ new_k.T - product).max() < 1e-3 * np.abs(product).max())


def both_differ(args: Args, value: Any) -> bool:
    return all(np.abs(new - old).max() > 1e-2 for old, new in zip(args, value))


def is_another_pair(args: Args, value: Any) -> bool:
    return same_scores(args, value) and both_differ(args, value)


def mixes(args: Args, value: Any) -> tuple[np.ndarray, np.ndarray]:
    """Find the matrices that made the new pair from the old: W' = W M."""
    found = tuple(
        np.linalg.lstsq(np.asarray(old, np.float64), np.asarray(new, np.float64), None)
        for old, new in zip(args, value)
    )
    return found[0][0], found[1][0]


def made_from(args: Args, value: Any) -> list[bool]:
    """Tell of each new matrix whether it is the old one times something, W' = W M."""
    return [
        np.allclose(old @ mix, new, atol=1e-3)
        for old, mix, new in zip(args, mixes(args, value), value)
    ]


def mixed_by(relation: Any) -> Any:
    """Recognise a pair whose two mixing matrices stand in some wrong relation."""
    return lambda args, value: (
        all(made_from(args, value))
        and both_differ(args, value)
        and bool(relation(*mixes(args, value)))
    )


def close(left: np.ndarray, right: np.ndarray) -> bool:
    return np.allclose(left, right, atol=1e-3)


QUESTION = Question(
    id="06.6",
    title="Another pair with the same scores",
    answer="another_pair",
    arguments=("w_q", "w_k"),
    outputs=(Output("new_w_q", "d_model d_k"), Output("new_w_k", "d_model d_k")),
    reference=another_pair,
    difficulty="medium",
    minutes=8,
    next_step="look for what can be put between W_Q and W_Kᵀ without changing the "
    "product.",
    parts=(
        Part("one pair", 1, lambda rng: [draw_pair(rng)], accepts=is_another_pair),
        Part(
            "any sizes",
            1,
            lambda rng: [draw_pair(rng) for _ in range(3)],
            accepts=is_another_pair,
            only_failure_hint="right for one size of the weights, wrong for others",
        ),
    ),
    mistakes=(
        Mistake(
            "same_pair",
            "this is the same pair again: a different one was asked for",
            lambda w_q, w_k: (w_q.clone(), w_k.clone()),
            lambda args, value: all(close(a, b) for a, b in zip(args, value)),
        ),
        Mistake(
            "only_one_changed",
            "only one of the two matrices changes, so the product changes with it: "
            "what is done to one must be undone by the other",
            lambda w_q, w_k: (2 * w_q, w_k.clone()),
            lambda args, value: sum(close(a, b) for a, b in zip(args, value)) == 1,
        ),
        Mistake(
            "exchanged",
            "queries and keys have changed places: that transposes the scores, and "
            "“i looks at j” is not “j looks at i”",
            lambda w_q, w_k: (w_k.clone(), w_q.clone()),
            lambda args, value: close(args[0], value[1]) and close(args[1], value[0]),
        ),
        Mistake(
            "inverse_not_transposed",
            "the inverse stands in the keys as it is: in W_Q M (W_K N)ᵀ the second "
            "matrix appears transposed",
            lambda w_q, w_k: (
                w_q @ (torch.eye(w_q.shape[1]).cumsum(0)),
                w_k @ torch.linalg.inv(torch.eye(w_q.shape[1]).cumsum(0)),
            ),
            mixed_by(lambda q, k: close(q @ k, np.eye(len(q))) and not close(k.T, k)),
        ),
        Mistake(
            "both_scaled",
            "both are scaled by the same factor, so the scores are scaled by its "
            "square: the second must undo the first",
            lambda w_q, w_k: (2 * w_q, 2 * w_k),
            mixed_by(lambda q, k: close(q, k) and close(q, q[0, 0] * np.eye(len(q)))),
        ),
        Mistake(
            "same_matrix_twice",
            "both are multiplied by the same matrix, so that it stands in the product "
            "twice: the second must undo the first",
            lambda w_q, w_k: (
                w_q @ torch.eye(w_q.shape[1]).cumsum(0),
                w_k @ torch.eye(w_q.shape[1]).cumsum(0),
            ),
            mixed_by(close),
        ),
        Mistake(
            "not_from_the_right",
            "the new matrices are not the old ones times something (W M): only what "
            "stands between W_Q and W_Kᵀ can cancel, and that is on the right of both",
            lambda w_q, w_k: (w_q.flip(0), w_k.flip(0)),
            lambda args, value: (
                both_differ(args, value) and not any(made_from(args, value))
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def turn(n):
    """A matrix that is no multiple of the identity, and not symmetric."""
    return torch.eye(n) + torch.triu(torch.ones(n, n), 1)


def rotation(n):
    return torch.linalg.qr(torch.randn(n, n)).Q


RIGHT = [
    lambda q, k: (lambda r: (q @ r, k @ r))(rotation(q.shape[1])),
    lambda q, k: (q.flip(1), k.flip(1)),
    lambda q, k: (-q, -k),
]
WRONG = [
    ("same_pair", lambda w_q, w_k: (w_q @ torch.eye(w_q.shape[1]), w_k)),
    ("only_one_changed", lambda w_q, w_k: (w_q, w_k @ turn(w_k.shape[1]))),
    ("exchanged", lambda w_q, w_k: (w_k * 1, w_q * 1)),
    ("both_scaled", lambda w_q, w_k: (w_q * 3.5, w_k * 3.5)),
    (
        "same_matrix_twice",
        lambda w_q, w_k: (w_q @ turn(w_q.shape[1]), w_k @ turn(w_q.shape[1])),
    ),
    (
        "inverse_not_transposed",
        lambda w_q, w_k: (
            torch.linalg.solve(turn(w_q.shape[1]).T, w_q.T).T,
            w_k @ turn(w_q.shape[1]),
        ),
    ),
    ("not_from_the_right", lambda w_q, w_k: (w_q + 1, w_k - 1)),
]
