"""`shift`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question
from course_utils.models.positions import sinusoidal

from .q1_waves import speeds


def shift(k: int, d_model: int) -> Tensor:
    return halves(k * speeds(d_model))


def halves(angles: Tensor, above: float = -1, below: float = 1) -> Tensor:
    """The matrix for waves whose sines stand in one half, cosines in the other."""
    cos, sin = angles.cos().diag().float(), angles.sin().diag().float()
    return torch.cat(
        [torch.cat([cos, above * sin], dim=1), torch.cat([below * sin, cos], dim=1)]
    )


def neighbours(matrix: Tensor) -> Tensor:
    """The same matrix, for waves whose sines and cosines are neighbours."""
    order = torch.arange(len(matrix)).reshape(2, -1).T.flatten()
    return matrix[order][:, order]


def sines_first(d_model: int) -> list[int]:
    """Where the columns of the chapter's matrix stand in the new order."""
    return [*range(0, d_model, 2), *range(1, d_model, 2)]


def draw_shifts(rng: np.random.Generator) -> list[Args]:
    return [(int(rng.integers(2, 50)), d) for d in (4, 6, 10)]


def draw_shifts_back(rng: np.random.Generator) -> list[Args]:
    return [(-int(rng.integers(2, 50)), d) for d in (4, 8)]


QUESTION = Question(
    id="08.2",
    title="The matrix of a step, sines first",
    answer="shift",
    arguments=("k", "d_model"),
    outputs=(Output("matrix", "d_model d_model"),),
    reference=shift,
    tolerance=1e-3,
    difficulty="medium",
    minutes=12,
    next_step="write the 2 x 2 block of one wave; then see where its entries belong.",
    parts=(
        Part("forward", 2, draw_shifts),
        Part("backward", 1, draw_shifts_back),
    ),
    mistakes=(
        Mistake(
            "neighbours",
            "this is the chapter's matrix, for waves whose sine and cosine are "
            "neighbours; here all sines come first, then all cosines",
            lambda k, d: neighbours(shift(k, d)),
        ),
        Mistake(
            "neighbours_turned_back",
            "two slips: sine and cosine of a wave are taken for neighbours, and the "
            "matrix leads k positions back",
            lambda k, d: neighbours(shift(-k, d)),
        ),
        Mistake(
            "columns_reordered",
            "the columns of the chapter's matrix stand in the new order, its rows in "
            "the old one: the row that comes in has all its sines first, too",
            lambda k, d: neighbours(shift(k, d))[:, sines_first(d)],
        ),
        Mistake(
            "rows_reordered",
            "the rows of the chapter's matrix stand in the new order, its columns in "
            "the old one: the row that comes out has all its sines first, too",
            lambda k, d: neighbours(shift(k, d))[sines_first(d)],
        ),
        Mistake(
            "order_turned_round",
            "the chapter's matrix is reordered the wrong way round: in place i comes "
            "the column that was 2i before; this order sends it instead",
            lambda k, d: neighbours(neighbours(shift(k, d))),
        ),
        Mistake(
            "turned_back",
            "this matrix leads k positions the other way (or fits cosines before "
            "sines): rows are multiplied from the left, so check which sine has the "
            "minus",
            lambda k, d: shift(-k, d),
        ),
        Mistake(
            "one_speed",
            "all waves are turned by the same angle: each has its own speed",
            lambda k, d: halves(k * torch.ones_like(speeds(d))),
        ),
        Mistake(
            "speeds_too_close",
            "the waves' speeds lie too close together: the exponent of wave i is "
            "−2i/d, and here it is half of that",
            lambda k, d: halves(k * speeds(d) ** 0.5),
        ),
        Mistake(
            "speeds_too_far_apart",
            "the waves' speeds lie too far apart: the exponent of wave i is −2i/d, "
            "with the whole width d, and here it is twice that",
            lambda k, d: halves(k * speeds(d) ** 2),
        ),
        Mistake(
            "last_speed_fixed",
            "the exponent runs over one wave less than there are, all the way to −1: "
            "that of wave i is −2i/d, so the last one stays above −1",
            lambda k, d: halves(k * speeds(d) ** (d / (d - 2))),
        ),
        Mistake(
            "quicker_and_quicker",
            "the exponent has the wrong sign: from wave to wave the speed falls, so "
            "the exponent of wave i is −2i/d",
            lambda k, d: halves(k / speeds(d)),
            lambda args, value: np.allclose(  # large angles, perhaps in float32
                value, halves(args[0] / speeds(args[1])).numpy(), atol=0.05
            ),
        ),
        Mistake(
            "one_step",
            "this is the matrix of a single step, whatever k is: k steps turn k times "
            "as far",
            lambda k, d: halves(speeds(d)),
        ),
        Mistake(
            "never_back",
            "a negative k leads forward: only its size is used, and the direction is "
            "lost",
            lambda k, d: shift(abs(k), d),
        ),
        Mistake(
            "no_minus",
            "both sines have the same sign: such a block is no rotation, for it "
            "changes lengths",
            lambda k, d: halves(k * speeds(d), above=1),
        ),
        Mistake(
            "slow_first",
            "the waves come in the wrong order: the first is the quickest",
            lambda k, d: halves(k * speeds(d).flip(0)),
        ),
        Mistake(
            "matrix_times_k",
            "this is k times the matrix of one step: to take k steps is to multiply "
            "by that matrix k times, not to add it up",
            lambda k, d: k * halves(speeds(d)),
        ),
        Mistake(
            "sine_and_cosine_exchanged",
            "sines stand on the diagonal and cosines beside it: after a step of 0 the "
            "matrix has to be the identity",
            lambda k, d: halves(torch.pi / 2 - k * speeds(d)),
        ),
        Mistake(
            "one_half_empty",
            "the diagonal is there, the sines are not: the new sine takes a share of "
            "the old cosine, and the new cosine one of the old sine",
            lambda k, d: halves(k * speeds(d), above=0, below=0),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def solved(k, d_model):
    """Find the matrix of each wave from the waves themselves, in double precision."""
    table = sinusoidal(300, d_model).double()
    sines, cosines = table[:, 0::2], table[:, 1::2]
    now, then = slice(100, 200), slice(100 + k, 200 + k)
    cos = (sines[then] * sines[now] + cosines[then] * cosines[now]).mean(0)
    sin = (sines[then] * cosines[now] - cosines[then] * sines[now]).mean(0)
    upper = torch.hstack([torch.diag(cos), -torch.diag(sin)])
    return torch.vstack([upper, torch.hstack([torch.diag(sin), torch.diag(cos)])])


def by_entries(k, d_model, lower=True):
    half, matrix = d_model // 2, torch.zeros(d_model, d_model)
    for i in range(half):
        angle = k / 10000 ** (2 * i / d_model)
        matrix[i, i] = matrix[i + half, i + half] = math.cos(angle)
        matrix[i + half, i] = math.sin(angle)
        matrix[i, i + half] = -math.sin(angle) if lower else math.sin(angle)
    return matrix


def by_exponent(exponent):
    """The matrix by blocks, with any exponent of wave i among h."""

    def answer(k, d_model):
        h = d_model // 2
        angles = k * 10000.0 ** exponent(torch.arange(h, dtype=torch.float64), h)
        cos, sin = torch.diag(angles.cos()), torch.diag(angles.sin())
        return torch.vstack([torch.hstack([cos, -sin]), torch.hstack([sin, cos])])

    return answer


def in_blocks(k, d_model):
    """The chapter's own: sine and cosine of a wave are neighbours."""
    angles = [k * 10000 ** (-i / d_model) for i in range(0, d_model, 2)]
    blocks = [
        torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]])
        for a in angles
    ]
    return torch.block_diag(*blocks)


def reordered(k, d_model):
    """The chapter's matrix, its rows and columns brought into the new order."""
    order = [*range(0, d_model, 2), *range(1, d_model, 2)]
    return in_blocks(k, d_model)[order][:, order]


def of_one_step(k, d_model):
    """The matrix of one step, to the power k; in NumPy."""
    one = by_entries(1, d_model).double().numpy()
    return np.linalg.matrix_power(one if k > 0 else one.T, abs(k))


RIGHT = [
    *(solved, by_entries, reordered, of_one_step),
    by_exponent(lambda i, h: -i / h),
]
WRONG = [
    ("columns_reordered", lambda k, d: in_blocks(k, d)[:, sines_first(d)]),
    ("rows_reordered", lambda k, d: in_blocks(k, d)[sines_first(d)]),
    (
        "order_turned_round",
        lambda k, d: in_blocks(k, d)[np.argsort(sines_first(d))][
            :, np.argsort(sines_first(d))
        ],
    ),
    ("neighbours", in_blocks),
    ("neighbours_turned_back", lambda k, d: in_blocks(k, d).T),
    ("turned_back", lambda k, d: solved(k, d).T),
    ("speeds_too_far_apart", by_exponent(lambda i, h: -2 * i / h)),
    ("last_speed_fixed", by_exponent(lambda i, h: -i / (h - 1))),
    ("quicker_and_quicker", by_exponent(lambda i, h: i / h)),
    ("one_step", lambda k, d: solved(1, d)),
    ("never_back", lambda k, d: solved(abs(k), d)),
    ("matrix_times_k", lambda k, d: solved(1, d) * k),
    ("no_minus", lambda k, d: by_entries(k, d, lower=False)),
]
