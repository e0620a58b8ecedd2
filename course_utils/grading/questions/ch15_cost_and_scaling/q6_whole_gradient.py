"""`whole_gradient`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def draw_shares(rng: np.random.Generator, empty: bool = False) -> Args:
    rounds, processes, parameters = sizes(rng, 3, 2)
    rows = rng.integers(6, 30, (rounds, processes))
    rows[0, 0] = rows[0, 1] + 17
    gradients = normal(rng, rounds, processes, parameters)
    if empty:
        rows[0, 1] = rows[1, 0] = 0
        gradients[rows == 0] = np.nan
    return gradients, rows.astype(np.float32)


def whole_gradient(gradients: Tensor, rows: Tensor) -> Tensor:
    known = torch.where(rows[..., None] > 0, gradients, 0.0)
    return (known * (rows / rows.sum())[..., None]).sum(dim=(0, 1))


def of_known(formula: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """A formula that is told of no rows by a zero instead of NaN."""
    return lambda gradients, rows: formula(
        torch.where(rows[..., None] > 0, gradients, 0.0), rows
    )


def mean_of_rounds(gradients: Tensor, rows: Tensor) -> Tensor:
    each = (gradients * rows[..., None]).sum(1) / rows.sum(1, keepdim=True)
    return each.mean(dim=0)


def mean_of_processes(gradients: Tensor, rows: Tensor) -> Tensor:
    each = (gradients * rows[..., None]).sum(0) / rows.sum(0)[:, None]
    return each.mean(dim=0)


def mean_of_full(gradients: Tensor, rows: Tensor) -> Tensor:
    return gradients.sum(dim=(0, 1)) / (rows > 0).sum()


QUESTION = Question(
    id="15.6",
    title="The mean over unequal shares, and over none",
    answer="whole_gradient",
    arguments=("gradients", "rows"),
    outputs=(Output("gradient", "parameter"),),
    reference=whole_gradient,
    difficulty="medium",
    minutes=8,
    next_step="undo each mean, add up over rounds and processes, and take the mean "
    "over all rows.",
    parts=(
        Part("unequal shares", 2, lambda rng: [draw_shares(rng) for _ in range(3)]),
        Part(
            "shares without rows",
            1,
            lambda rng: [draw_shares(rng, empty=True) for _ in range(2)],
            only_failure_hint="right where every process had rows; one that had none "
            "sends NaN, and NaN times 0 is NaN",
        ),
    ),
    mistakes=(
        Mistake(
            "divided_by_own_and_all",
            "each gradient is divided by its own rows, and the sum by all of them: "
            "each is a mean already, so multiply by its rows first",
            of_known(
                lambda g, rows: (
                    (g / rows.clamp(min=1)[..., None]).sum(dim=(0, 1)) / rows.sum()
                )
            ),
        ),
        Mistake(
            "the_chapters",
            "this is the chapter's mean of the gradients, right for equal shares; here "
            "a row in a small share would count for more than one in a large share",
            of_known(lambda g, rows: g.mean(dim=(0, 1))),
        ),
        Mistake(
            "nan_times_zero",
            "right where every process had rows; one that had none sends NaN, and NaN "
            "times 0 is NaN: leave it out before you multiply",
            lambda g, rows: (g * rows[..., None]).sum(dim=(0, 1)) / rows.sum(),
        ),
        Mistake(
            "mean_of_full",
            "this is the mean of the gradients that are known: a share without rows is "
            "left out, but the others count alike, whatever their number of rows",
            of_known(mean_of_full),
        ),
        Mistake(
            "mean_of_rounds",
            "each round is averaged rightly, then the rounds count alike: a round with "
            "more rows has more say",
            of_known(mean_of_rounds),
        ),
        Mistake(
            "mean_of_processes",
            "each process is averaged rightly over its rounds, then all count alike: a "
            "process with more rows has more say",
            of_known(mean_of_processes),
        ),
        Mistake(
            "sum",
            "the gradients are added and not averaged: the step grows with the number "
            "of processes and rounds",
            of_known(lambda g, rows: g.sum(dim=(0, 1))),
        ),
        Mistake(
            "not_divided",
            "each gradient counts by its rows, but nothing is divided by the number of "
            "all rows: this is the gradient of a sum, not of a mean",
            of_known(lambda g, rows: (g * rows[..., None]).sum(dim=(0, 1))),
        ),
        Mistake(
            "divided_by_shares",
            "each gradient counts by its rows, but the sum is divided by the number of "
            "shares instead of the number of rows",
            of_known(lambda g, rows: (g * rows[..., None]).mean(dim=(0, 1))),
        ),
        Mistake(
            "taken_for_sums",
            "the gradients are added and divided by all rows, as if each were a sum "
            "over its rows; each is a *mean* already",
            of_known(lambda g, rows: g.sum(dim=(0, 1)) / rows.sum()),
        ),
        Mistake(
            "divided_by_own_rows",
            "each gradient is divided by its own rows: it is a mean over them already, "
            "and that division makes large shares count for less",
            of_known(
                lambda g, rows: (g / rows.clamp(min=1)[..., None]).sum(dim=(0, 1))
            ),
        ),
        Mistake(
            "softmax",
            "the shares go through a softmax: shares are counts already, and must be "
            "proportional to the rows, not exponential",
            of_known(
                lambda g, rows: torch.einsum(
                    "rs,rsp->p", rows.flatten().softmax(0).view_as(rows), g
                )
            ),
        ),
        Mistake(
            "rounds_kept",
            "there is one gradient a round: the batch is made of all rounds, so add up "
            "over them too",
            of_known(
                lambda g, rows: (g * rows[..., None]).sum(1) / rows.sum(1, keepdim=True)
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def repeated(gradients, rows):
    """Every row sends its gradient itself."""
    flat = gradients.flatten(0, 1).repeat_interleave(rows.flatten().long(), dim=0)
    return flat.mean(dim=0)


def by_loop(gradients, rows):
    total, count = 0, 0
    for gradient, n in zip(gradients.flatten(0, 1), rows.flatten().tolist()):
        if n:
            total, count = total + n * gradient, count + n
    return total / count


def by_einsum(gradients, rows):
    known = gradients.double().nan_to_num()
    return torch.einsum("rsp,rs->p", known, rows.double()) / rows.sum()


def in_numpy(gradients, rows):
    g, n = gradients.numpy().reshape(-1, gradients.shape[-1]), rows.numpy().ravel()
    return np.average(g[n > 0], axis=0, weights=n[n > 0])


RIGHT = [repeated, by_loop, by_einsum, in_numpy]
WRONG = [
    ("the_chapters", lambda g, r: g.nan_to_num().flatten(0, 1).mean(0)),
    ("nan_times_zero", lambda g, r: torch.einsum("rsp,rs->p", g, r) / r.sum()),
    ("mean_of_full", lambda g, r: g.flatten(0, 1).nanmean(0)),
    (
        "mean_of_rounds",
        lambda g, r: torch.stack(
            [by_einsum(a[None], b[None]) for a, b in zip(g, r)]
        ).mean(0),
    ),
    ("not_divided", lambda g, r: by_einsum(g, r) * r.sum()),
    ("taken_for_sums", lambda g, r: g.nansum((0, 1)) / r.sum()),
    ("sum", lambda g, r: g.nan_to_num().sum((0, 1))),
]
PARTIAL = [(2, lambda g, r: torch.einsum("rsp,rs->p", g, r) / r.sum())]
