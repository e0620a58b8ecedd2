"""`shift`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question
from course_utils.models.positions import sinusoidal

from .q1_waves import speeds


def block(angle: Tensor, above: float = -1, below: float = 1) -> Tensor:
    cos, sin = angle.cos(), angle.sin()
    return torch.stack(
        [torch.stack([cos, above * sin]), torch.stack([below * sin, cos])]
    )


def turning_blocks(angles: Tensor, above: float = -1, below: float = 1) -> Tensor:
    return torch.block_diag(*(block(a, above, below) for a in angles)).float()


def shift(k: int, d_model: int) -> Tensor:
    return turning_blocks(k * speeds(d_model))


def shift_of_halves(k: int, d_model: int) -> Tensor:
    """The matrix for waves whose sines stand in one half, cosines in the other."""
    cos, sin = (f(k * speeds(d_model)).diag().float() for f in (torch.cos, torch.sin))
    return torch.cat([torch.cat([cos, -sin], 1), torch.cat([sin, cos], 1)])


def draw_shifts(rng: np.random.Generator) -> list[Args]:
    return [(int(rng.integers(2, 50)), d) for d in (4, 6, 10)]


def draw_shifts_back(rng: np.random.Generator) -> list[Args]:
    return [(-int(rng.integers(2, 50)), d) for d in (4, 8)]


QUESTION = Question(
    id="08.2",
    title="The matrix of a step",
    answer="shift",
    arguments=("k", "d_model"),
    outputs=(Output("matrix", "d_model d_model"),),
    reference=shift,
    tolerance=1e-3,
    difficulty="medium",
    minutes=10,
    next_step="write one 2 x 2 block for each wave, and put them on the diagonal.",
    parts=(
        Part("forward", 2, draw_shifts),
        Part("backward", 1, draw_shifts_back),
    ),
    mistakes=(
        Mistake(
            "turned_back",
            "this matrix leads k places the other way: rows are multiplied from the "
            "left of it, so check which sine carries the minus",
            lambda k, d: shift(-k, d),
        ),
        Mistake(
            "one_speed",
            "all pairs are turned by the same angle: each wave has its own speed",
            lambda k, d: turning_blocks(k * torch.ones_like(speeds(d))),
        ),
        Mistake(
            "one_step",
            "this is the matrix of a single step, whatever k is: k steps turn k times "
            "as far",
            lambda k, d: turning_blocks(speeds(d)),
        ),
        Mistake(
            "never_back",
            "a negative k leads forward: only its size is used, and the direction is "
            "lost",
            lambda k, d: shift(abs(k), d),
        ),
        Mistake(
            "no_minus",
            "both sines have the same sign: such a block is no turn, for it changes "
            "the length of a hand",
            lambda k, d: turning_blocks(k * speeds(d), above=1),
        ),
        Mistake(
            "halves",
            "this fits waves with all sines first and all cosines after them; here "
            "sine and cosine of a wave are neighbours",
            shift_of_halves,
        ),
        Mistake(
            "slow_first",
            "the blocks come in the wrong order: the first pair is the quickest",
            lambda k, d: turning_blocks(k * speeds(d).flip(0)),
        ),
        Mistake(
            "matrix_times_k",
            "this is k times the matrix of one step: to take k steps is to multiply "
            "by that matrix k times, not to add it up",
            lambda k, d: k * turning_blocks(speeds(d)),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def solved(k, d_model):
    """Find the matrix of a step by least squares, from the waves themselves."""
    start = 60
    places = torch.arange(start, start + 4 * d_model)
    table = sinusoidal(start + 4 * d_model + 60, d_model).double()
    # Slow waves hardly move over few places: solve each pair by itself.
    matrix = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(0, d_model, 2):
        now, then = table[places, i : i + 2], table[places + k, i : i + 2]
        sin, cos = now[:, 0], now[:, 1]
        turned_cos = (then * now).sum(-1).mean()
        turned_sin = (then[:, 0] * cos - then[:, 1] * sin).mean()
        block = [[turned_cos, -turned_sin], [turned_sin, turned_cos]]
        matrix[i : i + 2, i : i + 2] = torch.tensor(block)
    return matrix.float()


def _below(d):
    """Everything but the entries just above the diagonal of each block."""
    keep = torch.ones(d, d, dtype=torch.bool)
    keep[range(0, d, 2), range(1, d, 2)] = False
    return keep


RIGHT = [solved]
WRONG = [
    ("turned_back", lambda k, d: solved(k, d).T),
    ("one_step", lambda k, d: solved(1, d)),
    ("never_back", lambda k, d: solved(abs(k), d)),
    ("matrix_times_k", lambda k, d: solved(1, d) * k),
    ("no_minus", lambda k, d: solved(k, d).where(_below(d), -solved(k, d))),
]
