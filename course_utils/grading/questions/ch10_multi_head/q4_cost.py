"""`cost`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.grading.questions.draw import first, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def cost(d_model: int, n_heads: int, n_tokens: int) -> tuple[int, int]:
    parameters = 4 * d_model**2 + 4 * d_model
    return parameters, 8 * n_tokens * d_model**2 + 4 * n_tokens**2 * d_model


def draw_sizes(rng: np.random.Generator) -> list[Args]:
    drawn = []
    for heads in (2, 3, 4):
        d_head, n_tokens = sizes(rng, 2, least=5)
        drawn.append((heads * d_head, heads, n_tokens))
    return drawn


def is_number(index: int, formula: Callable[..., float]) -> Any:
    """Recognise one of the two numbers by its formula, whatever the other is."""
    return lambda args, value: abs(float(value[index]) - formula(*args)) < 0.5


def parameters_are(
    name: str, hint: str, formula: Callable[[int, int, int], int]
) -> Mistake:
    def wrong(d: int, h: int, n: int) -> tuple[int, int]:
        return formula(d, h, n), cost(d, h, n)[1]

    return Mistake(name, hint, wrong, is_number(0, formula))


def operations_are(
    name: str, hint: str, formula: Callable[[int, int, int], float]
) -> Mistake:
    def wrong(d: int, h: int, n: int) -> tuple[int, float]:
        return cost(d, h, n)[0], formula(d, h, n)

    return Mistake(name, hint, wrong, is_number(1, formula))


QUESTION = Question(
    id="10.4",
    title="What the layer costs",
    answer="cost",
    arguments=("d_model", "n_heads", "n_tokens"),
    outputs=(Output("parameters"), Output("operations")),
    reference=cost,
    tolerance=1e-9,
    difficulty="easy",
    minutes=8,
    next_step="add up the steps one by one: fused projection, scores, context, W_O.",
    parts=(
        Part("parameters", 1, draw_sizes, view=first),
        Part("operations", 2, draw_sizes, view=second),
    ),
    mistakes=(
        parameters_are(
            "no_output_matrix",
            "the parameters are those of queries, keys and values alone: one more "
            "matrix mixes what the heads found",
            lambda d, h, n: 3 * d * d + 3 * d,
        ),
        parameters_are(
            "no_biases",
            "the parameters are those of the matrices: each projection also has a bias",
            lambda d, h, n: 4 * d * d,
        ),
        parameters_are(
            "heads_of_full_width",
            "the parameters grow with the number of heads: that would be so if each "
            "head were as wide as the whole layer",
            lambda d, h, n: 3 * h * d * d + d * d + 4 * d,
        ),
        parameters_are(
            "four_matrices_a_head",
            "the whole layer's parameters are counted once for each head: the heads "
            "share out one set of matrices",
            lambda d, h, n: h * (4 * d * d + 4 * d),
        ),
        parameters_are(
            "one_head_only",
            "the parameters are those of one narrow head: the layer has all of them",
            lambda d, h, n: 4 * d * (d // h) + 4 * (d // h),
        ),
        operations_are(
            "multiplications_only",
            "the operations are the multiplications alone: each comes with an addition",
            lambda d, h, n: 4 * n * d * d + 2 * n * n * d,
        ),
        operations_are(
            "no_pairs",
            "the operations are those of the projections alone: every pair of tokens "
            "is scored, and every weight multiplies a value",
            lambda d, h, n: 8 * n * d * d,
        ),
        operations_are(
            "scores_only",
            "the scores are counted, the product of weights and values is missing",
            lambda d, h, n: 8 * n * d * d + 2 * n * n * d,
        ),
        operations_are(
            "pairs_at_full_width",
            "the pairs are counted at full width for every head: the dot products of "
            "a head are shorter, in the same measure as there are more of them",
            lambda d, h, n: 8 * n * d * d + 4 * h * n * n * d,
        ),
        operations_are(
            "pairs_of_one_head",
            "the pairs are counted for one narrow head: every head scores all pairs",
            lambda d, h, n: 8 * n * d * d + 4 * n * n * d / h,
        ),
        operations_are(
            "no_output_product",
            "the operations lack the product with W_O at the end",
            lambda d, h, n: 6 * n * d * d + 4 * n * n * d,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def cost_by(parameters, operations):
    return lambda d, h, n: (parameters(d, h), operations(d, h, n))


def true_parameters(d, h):
    return sum([d * 3 * d, 3 * d, d * d, d])


def true_operations(d, h, n):
    pairs = sum(2 * n * n * (d // h) for _ in range(h))
    return 2 * n * d * 3 * d + 2 * pairs + 2 * n * d * d


RIGHT = [
    cost_by(true_parameters, true_operations),
    lambda d, h, n: (4 * d * (d + 1), np.float64(4 * n * d * (2 * d + n))),
]
WRONG = [
    ("no_output_matrix", cost_by(lambda d, h: 3 * d * (d + 1), true_operations)),
    ("no_biases", cost_by(lambda d, h: (2 * d) ** 2, lambda d, h, n: 1)),
    (
        "heads_of_full_width",
        cost_by(lambda d, h: (3 * h + 1) * d * d + 4 * d, true_operations),
    ),
    (
        "four_matrices_a_head",
        cost_by(lambda d, h: h * true_parameters(d, h), lambda d, h, n: 7),
    ),
    (
        "one_head_only",
        cost_by(lambda d, h: true_parameters(d, h) // h, true_operations),
    ),
    (
        "multiplications_only",
        cost_by(true_parameters, lambda d, h, n: true_operations(d, h, n) / 2),
    ),
    ("no_pairs", cost_by(true_parameters, lambda d, h, n: 2 * n * 4 * d * d)),
    (
        "scores_only",
        cost_by(
            true_parameters, lambda d, h, n: true_operations(d, h, n) - 2 * n * n * d
        ),
    ),
    (
        "pairs_at_full_width",
        cost_by(true_parameters, lambda d, h, n: 8 * n * d * d + h * 4 * d * n * n),
    ),
    (
        "pairs_of_one_head",
        cost_by(true_parameters, lambda d, h, n: 8 * n * d * d + 4 * n * n * (d // h)),
    ),
    (
        "no_output_product",
        cost_by(
            true_parameters, lambda d, h, n: true_operations(d, h, n) - 2 * n * d * d
        ),
    ),
]
