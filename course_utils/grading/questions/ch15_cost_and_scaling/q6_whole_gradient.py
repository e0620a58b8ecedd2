"""`whole_gradient`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def draw_shares(rng: np.random.Generator, equal: bool = False) -> Args:
    processes, parameters = sizes(rng, 2, 3)
    rows = rng.integers(1, 20, processes)
    rows[0] = rows[1] + 7
    if equal:
        rows[:] = rows[0]
    return normal(rng, processes, parameters), rows.astype(np.float32)


def whole_gradient(gradients: Tensor, rows: Tensor) -> Tensor:
    return (gradients * (rows / rows.sum())[:, None]).sum(dim=0)


QUESTION = Question(
    id="15.6",
    title="The mean over unequal shares",
    answer="whole_gradient",
    arguments=("gradients", "rows"),
    outputs=(Output("gradient", "parameter"),),
    reference=whole_gradient,
    difficulty="easy",
    minutes=6,
    next_step="undo each process's mean, add up, and take the mean over all rows.",
    parts=(
        Part("equal shares", 1, lambda rng: [draw_shares(rng, True) for _ in range(2)]),
        Part(
            "unequal shares",
            2,
            lambda rng: [draw_shares(rng) for _ in range(3)],
            only_failure_hint="right for equal shares only: how much say should a "
            "process with twice the rows have?",
        ),
    ),
    mistakes=(
        Mistake(
            "mean_of_means",
            "this is the mean of the means: a row in a small share then counts for "
            "more than a row in a large one",
            lambda gradients, rows: gradients.mean(dim=0),
        ),
        Mistake(
            "sum",
            "the gradients are added and not averaged: the step grows with the number "
            "of processes",
            lambda gradients, rows: gradients.sum(dim=0),
        ),
        Mistake(
            "not_divided",
            "each process counts by its rows, but nothing is divided by the number of "
            "all rows: this is the gradient of a sum, not of a mean",
            lambda gradients, rows: (gradients * rows[:, None]).sum(dim=0),
        ),
        Mistake(
            "divided_by_processes",
            "each process counts by its rows, but the sum is divided by the number of "
            "processes instead of the number of rows",
            lambda gradients, rows: (gradients * rows[:, None]).mean(dim=0),
        ),
        Mistake(
            "taken_for_sums",
            "the gradients are added and divided by all rows, as if each were a sum "
            "over its rows; each is a *mean* already",
            lambda gradients, rows: gradients.sum(dim=0) / rows.sum(),
        ),
        Mistake(
            "inverse",
            "a process counts the less, the more rows it has: its gradient has been "
            "divided by its rows already",
            lambda gradients, rows: (
                (gradients / rows[:, None]).sum(dim=0) / (1 / rows).sum()
            ),
        ),
        Mistake(
            "divided_by_own_rows",
            "each gradient is divided by its own rows: it is a mean over them already, "
            "and that division makes large shares count for less",
            lambda gradients, rows: (gradients / rows[:, None]).sum(dim=0),
        ),
        Mistake(
            "largest_share",
            "only the process with the most rows is listened to",
            lambda gradients, rows: gradients[rows.argmax()],
        ),
        Mistake(
            "softmax",
            "the shares go through a softmax: shares are counts already, and must be "
            "proportional to the rows, not exponential",
            lambda gradients, rows: torch.softmax(rows, 0) @ gradients,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def weighted(gradients, rows):
    repeated = gradients.repeat_interleave(rows.long(), dim=0)
    return repeated.mean(dim=0)


RIGHT = [weighted, lambda g, r: torch.einsum("rp,r->p", g, r) / sum(r)]
WRONG = [
    ("mean_of_means", lambda g, r: sum(g) / len(g)),
    ("sum", lambda g, r: sum(g)),
    ("not_divided", lambda g, r: r @ g),
    ("divided_by_processes", lambda g, r: r @ g / len(r)),
    ("taken_for_sums", lambda g, r: g.T.sum(-1) / sum(r)),
    ("inverse", lambda g, r: (1 / r / (1 / r).sum()) @ g),
    ("softmax", lambda g, r: (g.T * r.softmax(0)).sum(-1)),
    ("divided_by_own_rows", lambda g, r: (1 / r) @ g),
]
