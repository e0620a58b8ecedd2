"""More questions of chapter 10: what heads cost, and what each of them adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from einops import rearrange
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import first, normal, second, sizes
from course_utils.questions.several_heads import merge_heads

# ------------------------------------------------------------------------ 10.4 the cost


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


COST = Question(
    id="10.4",
    title="What the layer costs",
    answer="cost",
    arguments=("d_model", "n_heads", "n_tokens"),
    outputs=(Output("parameters"), Output("operations")),
    reference=cost,
    tolerance=1e-9,
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


# ------------------------------------------------------------- 10.5 what each head adds


def head_terms(context: Tensor, w_o: Tensor) -> Tensor:
    bands = rearrange(w_o, "(h d) o -> h d o", h=context.shape[1])
    return context @ bands


def by_columns(context: Tensor, w_o: Tensor) -> Tensor:
    return context @ rearrange(w_o, "o (h d) -> h d o", h=context.shape[1])


def dealt_rows(context: Tensor, w_o: Tensor) -> Tensor:
    return context @ rearrange(w_o, "(d h) o -> h d o", h=context.shape[1])


def first_rows(context: Tensor, w_o: Tensor) -> Tensor:
    return context @ w_o[: context.shape[-1]]


def equal_parts(context: Tensor, w_o: Tensor) -> Tensor:
    n_heads = context.shape[1]
    whole = merge_heads(context) @ w_o
    return whole[:, None].expand(-1, n_heads, -1, -1) / n_heads


def draw_context(rng: np.random.Generator) -> Args:
    batch, heads, token, d_head = sizes(rng, 4, least=2)
    width = heads * d_head
    return normal(rng, batch, heads, token, d_head), normal(rng, width, width)


def added_up(value: Any) -> Any:
    return np.asarray(value).sum(axis=1)


TERMS = Question(
    id="10.5",
    title="What each head adds",
    answer="head_terms",
    arguments=("context", "w_o"),
    outputs=(Output("terms", "batch head token d_model"),),
    reference=head_terms,
    next_step="find the rows of W_O that the features of head h are multiplied with.",
    parts=(
        Part("every term", 2, lambda rng: [draw_context(rng) for _ in range(2)]),
        Part(
            "their sum",
            1,
            lambda rng: [draw_context(rng) for _ in range(2)],
            view=added_up,
        ),
    ),
    mistakes=(
        Mistake(
            "equal_parts",
            "the terms add up to the output, but the output is only shared out "
            "equally: each head's term comes from its own context alone",
            equal_parts,
        ),
        Mistake(
            "columns_for_rows",
            "bands of columns are used: the features of a head meet rows of W_O when "
            "the merged context is multiplied from the left",
            by_columns,
        ),
        Mistake(
            "same_rows",
            "every head is multiplied with the first head's rows: each has a band of "
            "its own",
            first_rows,
        ),
        Mistake(
            "dealt_rows",
            "the rows are dealt out to the heads in turn; merged heads lie in blocks, "
            "and so do their rows",
            dealt_rows,
        ),
        Mistake(
            "already_added",
            "this is the sum, the layer's whole output: keep the terms apart, one for "
            "each head",
            lambda context, w_o: merge_heads(context) @ w_o,
        ),
        Mistake(
            "heads_before_batch",
            "the terms are right, but the head axis stands in front of the batch; the "
            "order is batch, head, token, features",
            lambda context, w_o: head_terms(context, w_o).transpose(0, 1),
        ),
    ),
)

QUESTIONS = (COST, TERMS)
