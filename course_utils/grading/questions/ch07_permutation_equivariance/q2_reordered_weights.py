"""`reordered_weights`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.evaluation.symmetry import permutation_matrix
from course_utils.grading.questions.draw import normal
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q1_sending_matrix import draw_order


def reordered_weights(weights: Tensor, order: Tensor) -> Tensor:
    return weights[..., order, :][..., :, order]


def inverse(order: Tensor) -> Tensor:
    return torch.argsort(order)


def draw_weights(rng: np.random.Generator, n: int, *batch: int) -> Args:
    scores = np.exp(2 * normal(rng, *batch, n, n))
    return scores / scores.sum(-1, keepdims=True), draw_order(rng, n)


QUESTION = Question(
    id="07.2",
    title="The weights of the reordered sentence",
    answer="reordered_weights",
    arguments=("weights", "order"),
    outputs=(Output("weights", "query key"),),
    reference=reordered_weights,
    difficulty="easy",
    minutes=6,
    next_step="say in words what the row and the column of the new table's first "
    "entry belong to.",
    parts=(
        Part(
            "one sentence",
            1,
            lambda rng: [draw_weights(rng, 4), draw_weights(rng, 6)],
        ),
        Part(
            "a batch",
            1,
            lambda rng: [draw_weights(rng, 5, 3), draw_weights(rng, 4, 2, 3)],
            only_failure_hint="right for one sentence, wrong when batch and head axes "
            "stand in front: count axes from the end (-1, -2)",
        ),
    ),
    mistakes=(
        Mistake(
            "rows_only",
            "only the rows have moved: the queries have, but the keys they look at are "
            "still listed in the old order",
            lambda weights, order: weights[..., order, :],
        ),
        Mistake(
            "columns_only",
            "only the columns have moved: the keys have, but the queries still stand "
            "in the old order",
            lambda weights, order: weights[..., :, order],
        ),
        Mistake(
            "inverse",
            "both axes move, but the other way round: `order` says who comes to each "
            "place, here tokens were sent to the places it names",
            lambda weights, order: reordered_weights(weights, inverse(order)),
        ),
        Mistake(
            "p_on_both_sides",
            "rows and columns move in opposite directions, as in P A P: from the right "
            "it is the transpose that reorders columns as P reorders rows",
            lambda weights, order: weights[..., order, :][..., :, inverse(order)],
        ),
        Mistake(
            "unchanged",
            "the table is as it was: each token keeps its weights, but stands in "
            "another row and another column now",
            lambda weights, order: weights.clone(),
        ),
        Mistake(
            "transposed",
            "the table is turned over: rows are still queries, columns still keys",
            lambda weights, order: reordered_weights(weights, order).mT,
        ),
        Mistake(
            "axes_from_the_left",
            "the axes are counted from the left: right for one sentence, but with a "
            "batch axis in front the wrong ones move; count from the end",
            lambda weights, order: weights[order][:, order],
        ),
        Mistake(
            "paired",
            "the two lists of indices are taken in pairs, which leaves the diagonal "
            "alone: index the rows first, then the columns of what comes of it",
            lambda weights, order: weights[..., order, order],
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def moved(weights, rows, columns):
    """Reorder a table entry by entry."""
    return torch.stack(
        [torch.stack([weights[..., i, j] for j in columns], -1) for i in rows], -2
    )


RIGHT = [
    lambda w, o: moved(w, o.tolist(), o.tolist()),
    lambda w, o: permutation_matrix(o) @ w @ permutation_matrix(o).T,
]
WRONG = [
    (
        "paired",
        lambda w, o: torch.stack([w[..., i, i] for i in o.tolist()], dim=-1),
    ),
    ("rows_only", lambda w, o: permutation_matrix(o) @ w),
    ("columns_only", lambda w, o: w @ permutation_matrix(o).T),
    ("inverse", lambda w, o: permutation_matrix(o).T @ w @ permutation_matrix(o)),
    ("p_on_both_sides", lambda w, o: permutation_matrix(o) @ w @ permutation_matrix(o)),
    ("unchanged", lambda w, o: w * 1),
]
