"""`cosine_self_attention`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.grading.questions.draw import first, second
from course_utils.grading.questions.model import Mistake, Output, Part, Question

from .q1_basic_self_attention import (
    Pair,
    basic_self_attention,
    by_einsum,
    by_weights,
    draw_tokens,
    mixed_by,
    products,
)


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


QUESTION = Question(
    id="05.2",
    title="Direction alone",
    answer="cosine_self_attention",
    arguments=("x",),
    outputs=(Output("mixed", "token d_model"), Output("weights", "token token")),
    reference=cosine_self_attention,
    primitives=True,
    difficulty="easy",
    minutes=6,
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


# ----------------------------------------------------------------------- specimens


def by_cosine(x):
    lengths = (x**2).sum(-1, keepdim=True).sqrt()
    scores = (x @ x.mT) / (lengths * lengths.mT)
    return by_weights(torch.softmax(scores, -1), x)


RIGHT = [by_cosine]
WRONG = [
    ("dot_product", by_einsum),
    (
        "one_length_for_all",
        lambda x: by_weights(torch.softmax(x @ x.mT / (x**2).sum(), -1), x),
    ),
    (
        "values_too",
        lambda x: by_weights(by_cosine(x)[1], torch.nn.functional.normalize(x, dim=-1)),
    ),
]
