"""`commuting`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

Blocks = Callable[[Tensor], Tensor]


def blocks_of(matrix: Tensor) -> Tensor:
    """The 2 x 2 blocks on the diagonal, (pair, 2, 2)."""
    n = len(matrix) // 2
    grid = matrix.reshape(n, 2, n, 2).permute(0, 2, 1, 3)
    return grid[torch.arange(n), torch.arange(n)]


def by_blocks(change: Blocks) -> Callable[[Tensor], Tensor]:
    """Keep the blocks on the diagonal, each changed in some way."""
    return lambda matrix: torch.block_diag(*change(blocks_of(matrix)))


def turned_and_stretched(blocks: Tensor) -> Tensor:
    """The part of each block that turns and stretches: (a, b; -b, a)."""
    a = (blocks[:, 0, 0] + blocks[:, 1, 1]) / 2
    b = (blocks[:, 0, 1] - blocks[:, 1, 0]) / 2
    return torch.stack([torch.stack([a, b], -1), torch.stack([-b, a], -1)], -2)


commuting = by_blocks(turned_and_stretched)


def with_entries(a: Any, b: Any, c: Any = lambda b: -b) -> Callable[[Tensor], Tensor]:
    """Blocks (a, b; c, a) by other rules for a and b."""

    def change(blocks: Tensor) -> Tensor:
        diagonal, corner = a(blocks), b(blocks)
        rows = [torch.stack(x, -1) for x in ((diagonal, corner), (c(corner), diagonal))]
        return torch.stack(rows, -2)

    return by_blocks(change)


def mean_of_diagonal(blocks: Tensor) -> Tensor:
    return (blocks[:, 0, 0] + blocks[:, 1, 1]) / 2


def half_difference(blocks: Tensor) -> Tensor:
    return (blocks[:, 0, 1] - blocks[:, 1, 0]) / 2


def every_block(matrix: Tensor) -> Tensor:
    """The blocks beside the diagonal kept as well."""
    n = len(matrix) // 2
    grid = matrix.reshape(n, 2, n, 2).permute(0, 2, 1, 3).reshape(n * n, 2, 2)
    made = turned_and_stretched(grid).reshape(n, n, 2, 2)
    return made.permute(0, 2, 1, 3).reshape(2 * n, 2 * n)


def one_for_all(matrix: Tensor) -> Tensor:
    made = turned_and_stretched(blocks_of(matrix)).mean(dim=0)
    return torch.block_diag(*[made] * (len(matrix) // 2))


def halves(matrix: Tensor) -> Tensor:
    """Feature i paired with feature i + d / 2."""
    n = len(matrix) // 2
    order = torch.arange(2 * n).reshape(2, n).T.flatten()
    back = torch.argsort(order)
    return commuting(matrix[order][:, order])[back][:, back]


def commutes(value: Any) -> bool:
    """Whether a matrix commutes with the turn of one place."""
    b = torch.as_tensor(np.asarray(value, np.float64))
    j = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    speeds = 10000.0 ** (-torch.arange(0, len(b), 2) / len(b))
    turn = torch.block_diag(*(torch.matrix_exp(float(w) * j) for w in speeds))
    return bool((b @ turn - turn @ b).abs().max() < 1e-3 * b.abs().max() + 1e-6)


def draw(rng: np.random.Generator, *widths: int) -> list[Args]:
    return [(normal(rng, d, d),) for d in widths]


QUESTION = Question(
    id="08.9",
    title="What may stand between queries and keys",
    answer="commuting",
    arguments=("matrix",),
    outputs=(Output("commuting", "d_head d_head"),),
    reference=commuting,
    difficulty="hard",
    minutes=25,
    next_step="take d_head = 2: which 2 x 2 matrices commute with every turn?",
    parts=(
        Part("one pair", 1, lambda rng: draw(rng, 2, 2)),
        Part(
            "several pairs",
            2,
            lambda rng: draw(rng, 4, 6, 8),
            only_failure_hint="right for one pair of features, wrong for several: "
            "they turn at different speeds; what may pass from one pair to another?",
        ),
    ),
    mistakes=(
        Mistake(
            "unchanged",
            "this is the matrix as it came: turn a vector before and after it, and "
            "compare",
            lambda m: m.clone(),
        ),
        Mistake(
            "diagonal_only",
            "only the diagonal is left: that commutes with turns only if both numbers "
            "of a pair are equal, and turns are missing though they commute too",
            lambda m: torch.diag(torch.diag(m)),
        ),
        Mistake(
            "only_stretches",
            "each pair is only stretched: turns of one pair commute with each other as "
            "well, so that part of a block may stay",
            with_entries(mean_of_diagonal, lambda x: 0 * half_difference(x)),
        ),
        Mistake(
            "only_turns",
            "the stretching part is gone, the turning part is there: a multiple of the "
            "identity commutes with everything",
            with_entries(lambda x: 0 * mean_of_diagonal(x), half_difference),
        ),
        Mistake(
            "blocks_as_they_are",
            "the blocks on the diagonal are kept as they are: a block commutes with "
            "turns only if it turns and stretches, and does nothing else",
            by_blocks(lambda x: x),
        ),
        Mistake(
            "symmetric",
            "the blocks are made symmetric: a symmetric block stretches one direction "
            "more than another, and a turn moves these directions",
            with_entries(
                mean_of_diagonal,
                lambda x: (x[:, 0, 1] + x[:, 1, 0]) / 2,
                lambda b: b,
            ),
        ),
        Mistake(
            "turned_the_other_way",
            "the turning part has the wrong sign: the block goes the other way round",
            with_entries(mean_of_diagonal, lambda x: -half_difference(x)),
        ),
        Mistake(
            "not_halved",
            "the numbers of a block are added and not averaged: the result commutes, "
            "but it is not the nearest one to the matrix",
            with_entries(
                lambda x: 2 * mean_of_diagonal(x), lambda x: 2 * half_difference(x)
            ),
        ),
        Mistake(
            "first_entries",
            "a block's second row is ignored: the result commutes with turns, but the "
            "nearest one takes all four numbers into account",
            with_entries(lambda x: x[:, 0, 0], lambda x: x[:, 0, 1]),
        ),
        Mistake(
            "made_antisymmetric",
            "half of the matrix less its transpose: that leaves nothing on the "
            "diagonal, and a multiple of the identity commutes with every turn",
            lambda m: (m - m.T) / 2,
        ),
        Mistake(
            "every_block",
            "something passes from one pair to another: the two turn at different "
            "speeds, so a turn before and a turn after do not agree",
            every_block,
        ),
        Mistake(
            "one_block_for_all",
            "all pairs got the same block: each may turn and stretch by its own amount",
            one_for_all,
        ),
        Mistake(
            "pairs_by_halves",
            "feature i is paired with i + d/2: in this course a pair is two neighbours",
            halves,
        ),
        Mistake(
            "does_not_commute",
            "this does not commute with the turns: take `R = shift(1, d_head)` of 08.2 "
            "and compare `R @ B` with `B @ R`",
            lambda m: (m + m.T) / 2,
            lambda args, value: not commutes(value),
        ),
        Mistake(
            "not_the_nearest",
            "this commutes with every turn, but another one that does is nearer to the "
            "matrix: which two numbers of a block are free, and what should they be?",
            lambda m: torch.eye(len(m)) * m.trace() / len(m),
            lambda args, value: commutes(value),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_loop(matrix):
    d = matrix.shape[0]
    made = torch.zeros(d, d, dtype=torch.float64)
    for i in range(0, d, 2):
        a = float(matrix[i, i] + matrix[i + 1, i + 1]) / 2
        b = float(matrix[i, i + 1] - matrix[i + 1, i]) / 2
        made[i, i] = made[i + 1, i + 1] = a
        made[i, i + 1], made[i + 1, i] = b, -b
    return made


def by_average(matrix):
    """The average of R M Rᵀ over all turns of all pairs: each of four angles a pair."""
    m = matrix.double().numpy()
    quarter = np.array([[0.0, 1.0], [-1.0, 0.0]])
    for i in range(0, len(m), 2):
        total = np.zeros_like(m)
        for k in range(4):
            turn = np.eye(len(m))
            turn[i : i + 2, i : i + 2] = np.linalg.matrix_power(quarter, k)
            total += turn @ m @ turn.T
        m = total / 4
    return m


def by_complex(matrix):
    """The part of a block that commutes with the quarter turn J: (M - J M J) / 2."""
    j = torch.block_diag(
        *[torch.tensor([[0.0, 1.0], [-1.0, 0.0]])] * (len(matrix) // 2)
    )
    same_pair = torch.block_diag(*[torch.ones(2, 2)] * (len(matrix) // 2))
    return (matrix - j @ matrix @ j) / 2 * same_pair


RIGHT = [by_loop, by_average, by_complex]
WRONG = [
    ("made_antisymmetric", lambda m: m / 2 - m.mT / 2),
    ("unchanged", lambda m: m * 1),
    ("diagonal_only", lambda m: m * torch.eye(len(m))),
    ("only_stretches", lambda m: (by_loop(m) * torch.eye(len(m))).float()),
    ("only_turns", lambda m: by_loop(m) - by_loop(m) * torch.eye(len(m))),
    ("turned_the_other_way", lambda m: by_loop(m).T),
    ("not_halved", lambda m: 2 * by_loop(m)),
    ("does_not_commute", lambda m: m @ m.T),
    ("not_the_nearest", lambda m: by_loop(m) + torch.eye(len(m))),
]
