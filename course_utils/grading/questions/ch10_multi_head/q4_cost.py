"""`cost`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.grading.questions.draw import first, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def cost(
    d_model: int, n_heads: int, d_head: int, n_queries: int, n_keys: int
) -> tuple[int, int]:
    return parameters(d_model, n_heads * d_head), operations(
        d_model, n_heads * d_head, n_queries, n_keys
    )


def parameters(d: int, width: int) -> int:
    return 4 * d * width + 3 * width + d


def operations(d: int, width: int, n: int, m: int) -> int:
    return 4 * n * d * width + 4 * m * d * width + 4 * n * m * width


def draw_sizes(rng: np.random.Generator) -> list[Args]:
    drawn: list[Args] = []
    for heads in (2, 3, 4):
        d_head, d_model, n, m = sizes(rng, 4, least=5)
        drawn.append((d_model, heads, d_head, n, m))
    return drawn


def is_number(index: int, formula: Callable[..., float]) -> Any:
    """Recognise one of the two numbers by its formula, whatever the other is."""
    return lambda args, value: abs(float(value[index]) - formula(*args)) < 0.5


def parameters_are(name: str, hint: str, formula: Callable[..., float]) -> Mistake:
    def wrong(*args: int) -> tuple[float, int]:
        return formula(*args), cost(*args)[1]

    return Mistake(name, hint, wrong, is_number(0, formula))


def operations_are(name: str, hint: str, formula: Callable[..., float]) -> Mistake:
    def wrong(*args: int) -> tuple[int, float]:
        return cost(*args)[0], formula(*args)

    return Mistake(name, hint, wrong, is_number(1, formula))


QUESTION = Question(
    id="10.4",
    title="What cross-attention costs",
    answer="cost",
    arguments=("d_model", "n_heads", "d_head", "n_queries", "n_keys"),
    outputs=(Output("parameters"), Output("operations")),
    reference=cost,
    tolerance=1e-9,
    difficulty="medium",
    minutes=10,
    next_step="add up the steps one by one, with the shape of both factors each time: "
    "queries, keys, values, scores, context, W_O.",
    parts=(
        Part("parameters", 1, draw_sizes, view=first),
        Part("operations", 2, draw_sizes, view=second),
    ),
    mistakes=(
        parameters_are(
            "as_in_the_chapter",
            "the parameters are those of heads that share out d_model: here d_head is "
            "free, and the heads together are n_heads · d_head wide",
            lambda d, h, e, n, m: 4 * d * d + 4 * d,
        ),
        parameters_are(
            "no_output_matrix",
            "the parameters are those of queries, keys and values alone: one more "
            "matrix mixes what the heads found",
            lambda d, h, e, n, m: 3 * d * h * e + 3 * h * e,
        ),
        parameters_are(
            "no_biases",
            "the parameters are those of the matrices: each projection also has a bias",
            lambda d, h, e, n, m: 4 * d * h * e,
        ),
        parameters_are(
            "output_bias_too_wide",
            "the last bias is counted as wide as all heads: a bias has one number for "
            "each *output* of its projection",
            lambda d, h, e, n, m: 4 * d * h * e + 4 * h * e,
        ),
        parameters_are(
            "biases_as_wide_as_inputs",
            "the biases are counted by the width of what goes in: a bias has one "
            "number for each output of its projection",
            lambda d, h, e, n, m: 4 * d * h * e + 4 * d,
        ),
        parameters_are(
            "one_head_only",
            "the parameters are those of one head: the layer has all of them",
            lambda d, h, e, n, m: 4 * d * e + 3 * e + d,
        ),
        parameters_are(
            "heads_twice_in_parameters",
            "the parameters are multiplied by the number of heads once more: the "
            "matrices are n_heads · d_head wide and so hold all heads already",
            lambda d, h, e, n, m: h * parameters(d, h * e),
        ),
        parameters_are(
            "square_output_matrix",
            "W_O is counted as d_model × d_model: it takes what all heads found, side "
            "by side, and that is n_heads · d_head wide",
            lambda d, h, e, n, m: 3 * d * h * e + 3 * h * e + d * d + d,
        ),
        operations_are(
            "as_the_table_has_it",
            "the operations are those of the chapter's table with n_queries · n_keys "
            "pairs: here d_head is free, and keys and values are made of the others",
            lambda d, h, e, n, m: 8 * n * d * d + 4 * n * m * d,
        ),
        operations_are(
            "both_texts_projected",
            "every projection is made for the tokens of both texts: those that ask "
            "give queries and get outputs, the others give keys and values",
            lambda d, h, e, n, m: 8 * (n + m) * d * h * e + 4 * n * m * h * e,
        ),
        operations_are(
            "biases_counted",
            "the sums with the biases are counted too: only matrix products are",
            lambda d, h, e, n, m: (
                operations(d, h * e, n, m) + n * (h * e + d) + 2 * m * h * e
            ),
        ),
        operations_are(
            "softmax_counted",
            "the exponentials of the softmax are counted too: only matrix products are",
            lambda d, h, e, n, m: operations(d, h * e, n, m) + n * m * h,
        ),
        operations_are(
            "square_output_product",
            "the product with W_O is counted at d_model × d_model: it takes what all "
            "heads found, side by side, and that is n_heads · d_head wide",
            lambda d, h, e, n, m: (
                (2 * n + 4 * m) * d * h * e + 4 * n * m * h * e + 2 * n * d * d
            ),
        ),
        operations_are(
            "roles_exchanged",
            "it is counted as if the n_keys tokens gave queries, and the others keys "
            "and values: who asks?",
            lambda d, h, e, n, m: (6 * n + 2 * m) * d * h * e + 4 * n * m * h * e,
        ),
        operations_are(
            "pairs_of_queries",
            "the pairs are counted as queries with queries: every query meets every "
            "*key*",
            lambda d, h, e, n, m: 4 * (n + m) * d * h * e + 4 * n * n * h * e,
        ),
        operations_are(
            "heads_counted_twice",
            "the heads are counted twice: n_heads · d_head has them all in it already",
            lambda d, h, e, n, m: (
                h * ((2 * n + 4 * m) * d * h * e + 4 * n * m * h * e)
                + 2 * n * d * h * e
            ),
        ),
        operations_are(
            "multiplications_only",
            "the operations are the multiplications alone: each comes with an addition",
            lambda d, h, e, n, m: operations(d, h * e, n, m) / 2,
        ),
        operations_are(
            "heads_twice",
            "the pairs are multiplied by the number of heads twice: n_heads · d_head "
            "is the width of all heads together",
            lambda d, h, e, n, m: 4 * (n + m) * d * h * e + 4 * n * m * h * h * e,
        ),
        operations_are(
            "self_attention",
            "everything is counted as if the keys came from the queries' own tokens: "
            "keys and values are made of the other text",
            lambda d, h, e, n, m: operations(d, h * e, n, n),
        ),
        operations_are(
            "all_projected_from_queries",
            "keys and values are projected from the queries' tokens: they are made of "
            "the n_keys tokens that are asked",
            lambda d, h, e, n, m: 8 * n * d * h * e + 4 * n * m * h * e,
        ),
        operations_are(
            "output_for_keys",
            "W_O is applied to the wrong tokens: there is one output for each *query*",
            lambda d, h, e, n, m: (2 * n + 6 * m) * d * h * e + 4 * n * m * h * e,
        ),
        operations_are(
            "no_pairs",
            "the operations are those of the projections alone: every pair of a query "
            "and a key is scored, and every weight multiplies a value",
            lambda d, h, e, n, m: 4 * (n + m) * d * h * e,
        ),
        operations_are(
            "scores_only",
            "the scores are counted, the product of weights and values is missing",
            lambda d, h, e, n, m: 4 * (n + m) * d * h * e + 2 * n * m * h * e,
        ),
        operations_are(
            "pairs_at_full_width",
            "the pairs are counted at width d_model: a head's dot products have d_head "
            "terms",
            lambda d, h, e, n, m: 4 * (n + m) * d * h * e + 4 * n * m * h * d,
        ),
        operations_are(
            "pairs_of_width_d_model",
            "the pairs are counted as if all heads together were d_model wide: here "
            "they are n_heads · d_head wide",
            lambda d, h, e, n, m: 4 * (n + m) * d * h * e + 4 * n * m * d,
        ),
        operations_are(
            "pairs_of_one_head",
            "the pairs are counted for one head: every head scores all pairs",
            lambda d, h, e, n, m: 4 * (n + m) * d * h * e + 4 * n * m * e,
        ),
        operations_are(
            "no_output_product",
            "the operations lack the product with W_O at the end",
            lambda d, h, e, n, m: (2 * n + 4 * m) * d * h * e + 4 * n * m * h * e,
        ),
        operations_are(
            "keys_projected_once",
            "one projection of the asked tokens is missing: they give keys *and* "
            "values",
            lambda d, h, e, n, m: (4 * n + 2 * m) * d * h * e + 4 * n * m * h * e,
        ),
        parameters_are(
            "no_output_bias",
            "the parameters lack the bias of the output: all four projections have one",
            lambda d, h, e, n, m: 4 * d * h * e + 3 * h * e,
        ),
        operations_are(
            "one_long_text",
            "both texts are counted as one, in which all tokens ask all: the n_queries "
            "tokens ask, the n_keys tokens are asked",
            lambda d, h, e, n, m: operations(d, h * e, n + m, n + m),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def product(rows, inner, columns):
    return 2 * rows * inner * columns


def by_head(d, h, e, n, m, pairs=2):
    """Head by head, and W_O for all of them."""
    one = product(n, d, e) + 2 * product(m, d, e) + pairs * product(n, e, m)
    return sum(one for _ in range(h)) + product(n, h * e, d)


def held(d, h, e):
    return sum([h * 3 * (d + 1) * e, (h * e + 1) * d])


RIGHT = [
    lambda d, h, e, n, m: (held(d, h, e), by_head(d, h, e, n, m)),
    lambda d, h, e, n, m: (
        4 * d * h * e + 3 * h * e + d,
        np.float64(4 * h * e * (d * (n + m) + n * m)),
    ),
]
WRONG = [
    ("no_output_bias", lambda d, h, e, n, m: (held(d, h, e) - d, 1)),
    (
        "one_long_text",
        lambda d, h, e, n, m: (held(d, h, e), by_head(d, h, e, n + m, n + m)),
    ),
    (
        "both_texts_projected",
        lambda d, h, e, n, m: (
            held(d, h, e),
            4 * product(n + m, d, h * e) + 2 * product(n, h * e, m),
        ),
    ),
    (
        "biases_counted",
        lambda d, h, e, n, m: (
            held(d, h, e),
            by_head(d, h, e, n, m) + n * h * e + 2 * m * h * e + n * d,
        ),
    ),
    (
        "heads_twice_in_parameters",
        lambda d, h, e, n, m: (h * held(d, h, e), by_head(d, h, e, n, m)),
    ),
    (
        "as_the_table_has_it",
        lambda d, h, e, n, m: (held(d, h, e), 8 * n * d**2 + 4 * n * m * d),
    ),
    (
        "softmax_counted",
        lambda d, h, e, n, m: (held(d, h, e), by_head(d, h, e, n, m) + h * n * m),
    ),
    ("as_in_the_chapter", lambda d, h, e, n, m: (4 * d * (d + 1), 1)),
    ("no_biases", lambda d, h, e, n, m: (4 * d * h * e, by_head(d, h, e, n, m))),
    ("output_bias_too_wide", lambda d, h, e, n, m: (4 * h * e * (d + 1), 7)),
    (
        "multiplications_only",
        lambda d, h, e, n, m: (held(d, h, e), by_head(d, h, e, n, m) // 2),
    ),
    ("scores_only", lambda d, h, e, n, m: (held(d, h, e), by_head(d, h, e, n, m, 1))),
    ("no_pairs", lambda d, h, e, n, m: (held(d, h, e), by_head(d, h, e, n, m, 0))),
    ("self_attention", lambda d, h, e, n, m: (held(d, h, e), by_head(d, h, e, n, n))),
]
