"""The questions of chapter 05, self-attention without parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import first, normal, second, sizes

Pair = tuple[Tensor, Tensor]


def draw_tokens(rng: np.random.Generator, *batch: int) -> Args:
    n_tokens, d_model = sizes(rng, 2)
    return (normal(rng, *batch, n_tokens, d_model),)


# ------------------------------------------------------------------- 05.1 the layer


def products(x: Tensor) -> Tensor:
    return x @ x.transpose(-2, -1)


def mixed_by(weights: Tensor, x: Tensor) -> Pair:
    return weights @ x, weights


def basic_self_attention(x: Tensor) -> Pair:
    return mixed_by(torch.softmax(products(x), dim=-1), x)


def without_itself(x: Tensor) -> Pair:
    itself = torch.eye(x.shape[-2], dtype=torch.bool)
    scores = products(x).masked_fill(itself, -math.inf)
    return mixed_by(torch.softmax(scores, dim=-1), x)


def one_for_all(x: Tensor) -> Pair:
    scores = products(x)
    weights = torch.softmax(scores.flatten(-2), dim=-1).reshape(scores.shape)
    return mixed_by(weights, x)


LAYER = Question(
    id="05.1",
    title="Self-attention with nothing learned",
    answer="basic_self_attention",
    arguments=("x",),
    outputs=(Output("mixed", "token d_model"), Output("weights", "token token")),
    reference=basic_self_attention,
    primitives=True,
    next_step="write the body of `basic_self_attention`: scores, softmax, average.",
    parts=(
        Part("weights", 1, lambda rng: [draw_tokens(rng)] * 2, view=second),
        Part("mixed tokens", 1, lambda rng: [draw_tokens(rng)] * 2, view=first),
        Part(
            "a batch",
            1,
            lambda rng: [draw_tokens(rng, 2), draw_tokens(rng, 3, 2)],
            alone="right for one sentence, wrong when a batch axis stands in front: "
            "count axes from the end (-1, -2)",
        ),
        Part(
            "no loop",
            1,
            lambda rng: [(normal(rng, n, 4),) for n in (2, 5, 9)],
            steady=True,
        ),
    ),
    mistakes=(
        Mistake(
            "softmax_over_the_askers",
            "the columns sum to one, the rows do not: each token that asks has one "
            "unit of attention to spend, so the softmax runs along its row",
            lambda x: mixed_by(torch.softmax(products(x), dim=-2), x),
        ),
        Mistake(
            "sum_of_scores",
            "the scores themselves are used as weights: they can be negative, and "
            "their sum is anything; an average needs positive weights that sum to one",
            lambda x: mixed_by(products(x), x),
        ),
        Mistake(
            "not_divided",
            "the weights are positive and do not sum to one: after the exponential "
            "each row is divided by its own sum",
            lambda x: mixed_by(products(x).exp(), x),
        ),
        Mistake(
            "no_exponential",
            "the scores are divided by their sum as they are: some are negative, and "
            "their sum may be near 0; take the exponential first",
            lambda x: mixed_by(products(x) / products(x).sum(-1, keepdim=True), x),
        ),
        Mistake(
            "weights_turned",
            "the weights are right, but the average runs down their columns: row i of "
            "the weights belongs to the result of token i",
            lambda x: (basic_self_attention(x)[1].mT @ x, basic_self_attention(x)[1]),
        ),
        Mistake(
            "scaled",
            "the scores are scaled by the root of the width: a good idea, but one of "
            "the next chapter; here they are plain dot products",
            lambda x: mixed_by(
                torch.softmax(products(x) / math.sqrt(x.shape[-1]), dim=-1), x
            ),
        ),
        Mistake(
            "without_itself",
            "no token looks at itself: the sum over j runs over all tokens, the one "
            "that asks included",
            without_itself,
        ),
        Mistake(
            "one_softmax_for_all",
            "all weights together sum to one: every row is a distribution of its own",
            one_for_all,
        ),
        Mistake(
            "features_compared",
            "the table compares features with features (XᵀX): a score compares two "
            "tokens, which are the rows of X",
            lambda x: mixed_by(torch.softmax(x.transpose(-2, -1) @ x, dim=-1), x),
        ),
        Mistake(
            "axis_from_the_left",
            "the axis of the softmax is counted from the left: with a batch in front "
            "it is no longer the one meant; count from the end",
            lambda x: mixed_by(torch.softmax(products(x), dim=1), x),
        ),
        Mistake(
            "first_axis",
            "the softmax runs down the columns, over the tokens that ask: each of them "
            "has one unit to spend, along its row; and `.T` turns a batch inside out, "
            "`.transpose(-2, -1)` does not",
            lambda x: mixed_by(torch.softmax(x @ x.T, dim=0), x),
        ),
    ),
    packaged=("basic_self_attention",),
)


# -------------------------------------------------------------- 05.2 direction alone


def cosine_self_attention(x: Tensor) -> Pair:
    unit = F.normalize(x, dim=-1)
    return mixed_by(torch.softmax(products(unit), dim=-1), x)


def by_length(x: Tensor, dim: int = -1) -> Tensor:
    return x / x.norm(dim=dim, keepdim=True)


def one_side(x: Tensor) -> Pair:
    scores = x @ by_length(x).transpose(-2, -1)
    return mixed_by(torch.softmax(scores, dim=-1), x)


def other_side(x: Tensor) -> Pair:
    scores = by_length(x) @ x.transpose(-2, -1)
    return mixed_by(torch.softmax(scores, dim=-1), x)


COSINE = Question(
    id="05.2",
    title="Direction alone",
    answer="cosine_self_attention",
    arguments=("x",),
    outputs=(Output("mixed", "token d_model"), Output("weights", "token token")),
    reference=cosine_self_attention,
    primitives=True,
    next_step="divide every token by its length before you compare, and only there.",
    parts=(
        Part("weights", 1, lambda rng: [draw_tokens(rng)] * 2, view=second),
        Part("mixed tokens", 1, lambda rng: [draw_tokens(rng)] * 2, view=first),
        Part("a batch", 1, lambda rng: [draw_tokens(rng, 2)]),
    ),
    mistakes=(
        Mistake(
            "dot_product",
            "these are the weights of the plain dot product: a longer token still gets "
            "more of them",
            basic_self_attention,
        ),
        Mistake(
            "only_the_others",
            "only the token that is looked at is divided by its length: the one that "
            "asks still turns up the volume of its whole row",
            one_side,
        ),
        Mistake(
            "only_the_asker",
            "only the token that asks is divided by its length: a long token is still "
            "heard by everyone more than a short one",
            other_side,
        ),
        Mistake(
            "values_too",
            "the weights are right, but unit vectors were averaged: only the "
            "comparison is by direction, what is handed over are the tokens as they "
            "are",
            lambda x: mixed_by(torch.softmax(products(by_length(x)), -1), by_length(x)),
        ),
        Mistake(
            "length_over_tokens",
            "the length is taken along the tokens: each token is divided by its own, "
            "the root of the sum of its squared features",
            lambda x: mixed_by(torch.softmax(products(by_length(x, dim=-2)), -1), x),
        ),
        Mistake(
            "no_softmax",
            "the cosines themselves are used as weights: they can be negative and do "
            "not sum to one",
            lambda x: mixed_by(products(by_length(x)), x),
        ),
        Mistake(
            "one_length_for_all",
            "all tokens are divided by the same number, the length of the whole "
            "sentence: each token has a length of its own (`dim=-1`, `keepdim=True`)",
            lambda x: mixed_by(torch.softmax(products(x / x.norm()), -1), x),
        ),
        Mistake(
            "softmax_over_the_askers",
            "the columns sum to one, the rows do not: each token that asks has one "
            "unit of attention to spend, so the softmax runs along its row",
            lambda x: mixed_by(torch.softmax(products(by_length(x)), dim=-2), x),
        ),
        Mistake(
            "squared_length",
            "the tokens are divided by their squared length: the length is its root",
            lambda x: mixed_by(
                torch.softmax(products(x / (x * x).sum(-1, keepdim=True)), -1), x
            ),
        ),
    ),
)


# ------------------------------------------------------------- 05.3 a weight by hand


def weight_on_itself(length: float, n_others: int) -> float:
    return 1 / (1 + n_others * math.exp(-(length**2)))


def draw_lengths(rng: np.random.Generator) -> Args:
    return round(float(rng.uniform(0.6, 1.7)), 2), int(rng.integers(2, 9))


HAND = Question(
    id="05.3",
    title="How much a token keeps of itself",
    answer="weight_on_itself",
    arguments=("length", "n_others"),
    outputs=(Output("weight"),),
    reference=weight_on_itself,
    next_step="write the score with itself and with the others, then the softmax.",
    parts=(
        Part("one other", 1, lambda rng: [(draw_lengths(rng)[0], 1) for _ in range(3)]),
        Part(
            "several others",
            1,
            lambda rng: [draw_lengths(rng) for _ in range(3)],
            alone="right for one other token, wrong for several: each of them has its "
            "own term in the sum",
        ),
        Part("length zero", 1, lambda rng: [(0.0, 1), (0.0, 4)]),
    ),
    mistakes=(
        Mistake(
            "length_not_squared",
            "the score with itself is taken to be the length: the dot product of a "
            "vector with itself is something else",
            lambda length, n: 1 / (1 + n * math.exp(-length)),
        ),
        Mistake(
            "others_count_nothing",
            "the others are left out of the sum because their scores are 0: a score of "
            "0 is not a weight of 0, since e⁰ is not 0",
            lambda length, n: 1.0,
        ),
        Mistake(
            "no_exponential",
            "the scores are divided by their sum as they are: the softmax takes "
            "exponentials first",
            lambda length, n: length**2 / (length**2 + n),
            lambda args, value: bool(
                np.isclose(value, args[0] ** 2 / (args[0] ** 2 + args[1]), atol=1e-4)
            ),
        ),
        Mistake(
            "opposite",
            "the others get the score −length²: that would be vectors pointing the "
            "opposite way; these stand at right angles",
            lambda length, n: 1 / (1 + n * math.exp(-2 * length**2)),
        ),
        Mistake(
            "cosine",
            "the length makes no difference here: that is the cosine; the question is "
            "about the dot product",
            lambda length, n: 1 / (1 + n * math.exp(-1)),
        ),
        Mistake(
            "one_other_only",
            "only one other token is in the sum: each of the `n_others` has a term",
            lambda length, n: weight_on_itself(length, 1),
        ),
        Mistake(
            "one_too_many",
            "the sum has one term too many: the token itself and `n_others` others, "
            "that is all",
            lambda length, n: weight_on_itself(length, n + 1),
        ),
        Mistake(
            "itself_among_the_others",
            "the sum has one term too few: `n_others` does not count the token itself",
            lambda length, n: weight_on_itself(length, n - 1),
        ),
        Mistake(
            "not_divided",
            "this is the exponential of the score: a weight is its share in the sum of "
            "all exponentials",
            lambda length, n: math.exp(length**2),
        ),
        Mistake(
            "weight_of_the_others",
            "this is what goes to the other tokens: the token itself keeps the rest",
            lambda length, n: 1 - weight_on_itself(length, n),
        ),
    ),
)


# -------------------------------------------------- 05.4 dot product against cosine


def disagreement() -> Tensor:
    return torch.tensor([[1.0, 0.0], [1.0, 0.2], [3.0, 3.0]])


def is_three(value: Any) -> bool:
    return value.shape[0] == 3


def strongest(value: np.ndarray, cosine: bool) -> int:
    """Whom the first of three tokens scores higher: the second (1) or the third (2)."""
    scores = value[1:] @ value[0]
    if cosine:
        scores = scores / np.linalg.norm(value[1:], axis=1)
    return 0 if abs(scores[0] - scores[1]) < 1e-3 else 1 + int(scores[1] > scores[0])


def has_no_zero(value: np.ndarray) -> bool:
    return bool((np.linalg.norm(value, axis=1) > 1e-6).all())


def dot_says_third(args: Args, value: Any) -> bool:
    return is_three(value) and has_no_zero(value) and strongest(value, False) == 2


def they_disagree(args: Args, value: Any) -> bool:
    return dot_says_third(args, value) and strongest(value, True) == 1


def says(dot: int, cosine: int) -> Callable[[Args, Any], bool]:
    """A sign: three tokens, with these two verdicts."""
    return lambda args, value: (
        is_three(value)
        and has_no_zero(value)
        and (strongest(value, False), strongest(value, True)) == (dot, cosine)
    )


DISAGREE = Question(
    id="05.4",
    title="Where length decides",
    answer="disagreement",
    arguments=(),
    outputs=(Output("x", "token d_model", free=True),),
    reference=disagreement,
    next_step="choose three small vectors in the plane; a drawing helps.",
    parts=(
        Part("by dot product the third", 1, lambda rng: [()], accepts=dot_says_third),
        Part(
            "by cosine the second",
            1,
            lambda rng: [()],
            accepts=they_disagree,
            alone="the dot product prefers the third token; so does the cosine",
        ),
    ),
    mistakes=(
        Mistake(
            "not_three",
            "three tokens are asked for, one a row: the one that asks, and two others",
            lambda: torch.tensor([[1.0, 0.0], [3.0, 3.0]]),
            lambda args, value: not is_three(value),
        ),
        Mistake(
            "zero_vector",
            "one of the tokens has length 0: it has no direction, and so no cosine",
            lambda: torch.tensor([[1.0, 0.0], [0.0, 0.0], [3.0, 3.0]]),
            lambda args, value: is_three(value) and not has_no_zero(value),
        ),
        Mistake(
            "both_say_third",
            "both prefer the third token: it is not only longer but also nearer in "
            "direction; turn it further away from the first",
            lambda: torch.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, 0.5]]),
            says(2, 2),
        ),
        Mistake(
            "turned_too_far",
            "the third token stands at a right angle to the first, or beyond: its dot "
            "product is 0 or negative however long it is; turn it back a little",
            lambda: torch.tensor([[1.0, 0.0], [1.0, 0.2], [0.0, 9.0]]),
            lambda args, value: (
                says(1, 1)(args, value) and bool(value[2] @ value[0] <= 1e-6)
            ),
        ),
        Mistake(
            "both_say_second",
            "both prefer the second token: the third is turned away, but too short to "
            "be heard; make it longer",
            lambda: torch.tensor([[1.0, 0.0], [1.0, 0.2], [0.5, 0.5]]),
            says(1, 1),
        ),
        Mistake(
            "the_other_way_round",
            "they disagree, but the other way round: the dot product should prefer the "
            "third token, the cosine the second",
            lambda: torch.tensor([[1.0, 0.0], [3.0, 3.0], [1.0, 0.2]]),
            says(1, 2),
        ),
        Mistake(
            "a_tie",
            "one of the two scores the second and the third token alike: make the "
            "difference clear",
            lambda: torch.tensor([[1.0, 0.0], [1.0, 1.0], [2.0, 2.0]]),
            lambda args, value: (
                is_three(value)
                and has_no_zero(value)
                and 0 in (strongest(value, False), strongest(value, True))
            ),
        ),
    ),
)

QUESTIONS = (LAYER, COSINE, HAND, DISAGREE)
