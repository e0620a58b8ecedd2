"""`softmax_jacobian`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def softmax_jacobian(scores: Tensor) -> Tensor:
    p = torch.softmax(scores, dim=-1)
    return torch.diag(p) - torch.outer(p, p)


def jacobian_of(p: Tensor) -> Tensor:
    return torch.diag(p) - torch.outer(p, p)


def overflowing_softmax(scores: Tensor) -> Tensor:
    exponentials = torch.exp(scores)
    return exponentials / exponentials.sum()


def draw_scores(rng: np.random.Generator) -> list[Args]:
    return [(normal(rng, n),) for n in sizes(rng, 2)]


def draw_large_scores(rng: np.random.Generator) -> list[Args]:
    return [(normal(rng, 5) + np.float32(200),)]


def diagonal(value: np.ndarray) -> np.ndarray:
    return np.diagonal(value)


def beside_the_diagonal(value: np.ndarray) -> np.ndarray:
    return value - np.diag(np.diagonal(value))


QUESTION = Question(
    id="06.4",
    title="The gradient of the softmax",
    answer="softmax_jacobian",
    arguments=("scores",),
    outputs=(Output("jacobian", "weight score"),),
    reference=softmax_jacobian,
    difficulty="medium",
    minutes=8,
    next_step="write ∂a_i/∂s_j for i = j and for i ≠ j, then as one matrix.",
    parts=(
        Part("its diagonal", 1, draw_scores, view=diagonal),
        Part("beside the diagonal", 1, draw_scores, view=beside_the_diagonal),
        Part(
            "large scores",
            1,
            draw_large_scores,
            only_failure_hint="right for small scores, wrong for large ones",
        ),
    ),
    mistakes=(
        Mistake(
            "only_the_diagonal",
            "only the diagonal is there: raising one score also lowers the weight of "
            "every other key, since they share one sum",
            lambda s: torch.diag(torch.softmax(s, -1) * (1 - torch.softmax(s, -1))),
        ),
        Mistake(
            "one_number_per_weight",
            "this is a − a², one number per weight: every weight depends on every "
            "score, so the gradient is a matrix",
            lambda s: torch.softmax(s, -1) - torch.softmax(s, -1) ** 2,
        ),
        Mistake(
            "plus_sign",
            "the sign beside the diagonal is wrong: when one score rises the other "
            "weights fall, as each column must sum to zero",
            lambda s: (
                torch.diag(torch.softmax(s, -1))
                + torch.outer(torch.softmax(s, -1), torch.softmax(s, -1))
            ),
        ),
        Mistake(
            "sign_beside_the_diagonal",
            "the diagonal is right, beside it the sign is not: when one score rises "
            "the other weights fall, as each column must sum to zero",
            lambda s: softmax_jacobian(s).abs(),
        ),
        Mistake(
            "ones_on_the_diagonal",
            "1 stands on the diagonal where a_i should: differentiate the numerator, "
            "and see what is left of it beside the sum",
            lambda s: (
                torch.eye(len(s))
                - torch.outer(torch.softmax(s, -1), torch.softmax(s, -1))
            ),
        ),
        Mistake(
            "slope_of_the_sigmoid",
            "these are slopes of the sigmoid, each score by itself: in a softmax all "
            "scores share one sum",
            lambda s: torch.diag(torch.sigmoid(s) * (1 - torch.sigmoid(s))),
        ),
        Mistake(
            "gradient_of_the_sum",
            "these are the derivatives of the sum of all weights, which is 1 whatever "
            "the scores: each weight has derivatives of its own, a row of the matrix",
            lambda s: torch.zeros_like(s),
            lambda args, value: (
                value.shape == args[0].shape and bool(np.abs(value).max() < 1e-5)
            ),
        ),
        Mistake(
            "no_diagonal_term",
            "the term of the numerator is missing: a_i's own exponential also depends "
            "on s_i, which adds something on the diagonal",
            lambda s: -torch.outer(torch.softmax(s, -1), torch.softmax(s, -1)),
        ),
        Mistake(
            "outer_of_one_minus_p",
            "a_i (1 − a_j) everywhere is right on the diagonal only: beside it the 1 "
            "does not appear, as s_j is not in a_i's numerator",
            lambda s: torch.outer(torch.softmax(s, -1), 1 - torch.softmax(s, -1)),
        ),
        Mistake(
            "scores_for_weights",
            "the formula is filled with the scores: a stands for the weights, after "
            "the softmax",
            jacobian_of,
        ),
        Mistake(
            "gradient_of_the_logarithm",
            "this is the gradient of log a, δ_ij − a_j: one factor a_i short of that "
            "of a",
            lambda s: torch.eye(len(s)) - torch.softmax(s, -1),
        ),
        Mistake(
            "negative",
            "every sign is turned round: a higher score raises its own weight",
            lambda s: -softmax_jacobian(s),
        ),
        Mistake(
            "overflow",
            "exp of a large score overflows to infinity; subtract the largest score "
            "first, or let torch.softmax do it",
            lambda s: jacobian_of(overflowing_softmax(s)),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def jacobian(entry):
    def answer(scores):
        exponentials = torch.exp(scores - scores.max())
        a = exponentials / exponentials.sum()
        n = len(a)
        return torch.stack(
            [torch.stack([entry(i, j, a) for j in range(n)]) for i in range(n)]
        )

    return answer


def gradient_of_the_sum(scores):
    s = scores.clone().requires_grad_()
    return torch.autograd.grad(s.softmax(0).sum(), s)[0]


ZERO = torch.tensor(0.0)
RIGHT = [
    jacobian(lambda i, j, a: a[i] * (float(i == j) - a[j])),
    lambda s: torch.autograd.functional.jacobian(lambda t: t.softmax(0), s),
]
WRONG = [
    (
        "only_the_diagonal",
        jacobian(lambda i, j, a: a[i] - a[i] ** 2 if i == j else ZERO),
    ),
    (
        "plus_sign",
        jacobian(lambda i, j, a: a[i] + a[i] * a[i] if i == j else a[i] * a[j]),
    ),
    ("no_diagonal_term", jacobian(lambda i, j, a: -a[i] * a[j])),
    ("outer_of_one_minus_p", jacobian(lambda i, j, a: a[i] * (1 - a[j]))),
    (
        "sign_beside_the_diagonal",
        jacobian(lambda i, j, a: a[i] * (1 - a[i]) if i == j else a[i] * a[j]),
    ),
    (
        "ones_on_the_diagonal",
        jacobian(lambda i, j, a: float(i == j) - a[i] * a[j]),
    ),
    (
        "slope_of_the_sigmoid",
        lambda s: torch.diag(torch.sigmoid(s) - torch.sigmoid(s) ** 2),
    ),
    ("gradient_of_the_sum", lambda s: gradient_of_the_sum(s)),
    ("negative", jacobian(lambda i, j, a: a[i] * (a[j] - float(i == j)))),
    ("one_number_per_weight", lambda s: s.softmax(0).mul(1 - s.softmax(0))),
]
