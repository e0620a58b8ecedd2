"""`basic_self_attention`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import first, normal, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

Pair = tuple[Tensor, Tensor]


def draw_tokens(rng: np.random.Generator, *batch: int) -> Args:
    n_tokens, d_model = sizes(rng, 2)
    return (normal(rng, *batch, n_tokens, d_model),)


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


QUESTION = Question(
    id="05.1",
    title="Self-attention with nothing learned",
    answer="basic_self_attention",
    arguments=("x",),
    outputs=(Output("mixed", "token d_model"), Output("weights", "token token")),
    reference=basic_self_attention,
    primitives=True,
    difficulty="easy",
    minutes=5,
    next_step="write the body of `basic_self_attention`: scores, softmax, average.",
    parts=(
        Part("weights", 1, lambda rng: [draw_tokens(rng)] * 2, view=second),
        Part("mixed tokens", 1, lambda rng: [draw_tokens(rng)] * 2, view=first),
        Part(
            "a batch",
            1,
            lambda rng: [draw_tokens(rng, 2), draw_tokens(rng, 3, 2)],
            only_failure_hint="right for one sentence, wrong when a batch axis stands "
            "in front: count axes from the end (-1, -2)",
        ),
        Part(
            "no loop",
            1,
            lambda rng: [
                *((normal(rng, n, 4),) for n in (2, 5, 9)),
                *((normal(rng, b, 3, 4),) for b in (2, 5)),
            ],
            constant_steps=True,
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


# ----------------------------------------------------------------------- specimens


def by_einsum(x):
    scores = torch.einsum("...id,...jd->...ij", x, x)
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    weights = powers / powers.sum(-1, keepdim=True)
    return torch.einsum("...ij,...jd->...id", weights, x), weights


def by_weights(weights, x):
    return torch.matmul(weights, x), weights


RIGHT = [by_einsum]
WRONG = [
    ("softmax_over_the_askers", lambda x: by_weights(by_einsum(x)[1].mT, x)),
    ("sum_of_scores", lambda x: ((x @ x.mT) @ x, x @ x.mT)),
    (
        "scaled",
        lambda x: by_weights(torch.softmax(x @ x.mT * x.shape[-1] ** -0.5, -1), x),
    ),
    ("weights_turned", lambda x: (by_einsum(x)[1].mT @ x, by_einsum(x)[1])),
    (
        "no_exponential",
        lambda x: by_weights(x @ x.mT / (x @ x.mT).sum(-1, keepdim=True), x),
    ),
]
