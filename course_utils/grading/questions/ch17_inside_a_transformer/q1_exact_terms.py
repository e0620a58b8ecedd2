"""`exact_terms`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def exact_terms(terms: Tensor, unembedding: Tensor) -> Tensor:
    sigma = terms.sum(dim=0).std(dim=-1, correction=0, keepdim=True)
    centred = terms - terms.mean(dim=-1, keepdim=True)
    return (centred / sigma) @ unembedding


def each_normed(terms: Tensor, unembedding: Tensor) -> Tensor:
    centred = terms - terms.mean(dim=-1, keepdim=True)
    return centred / terms.std(dim=-1, correction=0, keepdim=True) @ unembedding


def not_centred(terms: Tensor, unembedding: Tensor) -> Tensor:
    return terms / terms.sum(0).std(dim=-1, correction=0, keepdim=True) @ unembedding


def no_norm(terms: Tensor, unembedding: Tensor) -> Tensor:
    return terms @ unembedding


def shared_mean(terms: Tensor, unembedding: Tensor) -> Tensor:
    total = terms.sum(dim=0)
    sigma = total.std(dim=-1, correction=0, keepdim=True)
    return (terms - total.mean(dim=-1, keepdim=True)) / sigma @ unembedding


def unbiased(terms: Tensor, unembedding: Tensor) -> Tensor:
    centred = terms - terms.mean(dim=-1, keepdim=True)
    return centred / terms.sum(dim=0).std(dim=-1, keepdim=True) @ unembedding


def draw(rng: np.random.Generator) -> Args:
    term, token, d, n_tokens = sizes(rng, 4)
    return normal(rng, term, token, d) + normal(rng, term, 1, 1), normal(
        rng, d, n_tokens
    )


def scaled_by(spread: Any) -> Any:
    """The terms without their means, over another measure of spread."""

    def wrong(terms: Tensor, unembedding: Tensor) -> Tensor:
        centred = terms - terms.mean(dim=-1, keepdim=True)
        return centred / spread(terms) @ unembedding

    return wrong


def normed_logits(terms: Tensor, unembedding: Tensor) -> Tensor:
    logits = terms @ unembedding
    sigma = logits.sum(dim=0).std(dim=-1, correction=0, keepdim=True)
    return (logits - logits.mean(dim=-1, keepdim=True)) / sigma


def added_up(value: Any) -> Any:
    return np.asarray(value).sum(axis=0)


QUESTION = Question(
    id="17.1",
    title="Logits as an exact sum",
    answer="exact_terms",
    arguments=("terms", "unembedding"),
    outputs=(Output("parts", "term token n_tokens"),),
    reference=exact_terms,
    difficulty="medium",
    minutes=10,
    next_step="which two steps has the norm, and which of them is linear?",
    parts=(
        Part("every term", 2, lambda rng: [draw(rng) for _ in range(2)]),
        Part("their sum", 1, lambda rng: [draw(rng) for _ in range(2)], view=added_up),
    ),
    mistakes=(
        Mistake(
            "variance",
            "the terms are divided by the variance: the standard deviation is its root",
            scaled_by(lambda t: t.sum(0).var(dim=-1, correction=0, keepdim=True)),
        ),
        Mistake(
            "one_for_all_tokens",
            "one standard deviation is taken for the whole sequence: the norm works on "
            "each token by itself, so each position has its own",
            scaled_by(
                lambda t: (
                    (t - t.mean(dim=-1, keepdim=True)).sum(0).square().mean().sqrt()
                )
            ),
        ),
        Mistake(
            "deviations_added",
            "the standard deviations of the terms are added up: the stream is the sum "
            "of the terms, and its standard deviation is another number",
            scaled_by(lambda t: t.std(dim=-1, correction=0, keepdim=True).sum(0)),
        ),
        Mistake(
            "norm_after_the_matrix",
            "the norm comes after the unembedding, over the logits: it is the stream "
            "that is normed, over its features, and then multiplied",
            normed_logits,
        ),
        Mistake(
            "each_normed",
            "every term is divided by its own standard deviation: then they no longer "
            "add up; all terms share the one of the whole stream",
            each_normed,
        ),
        Mistake(
            "not_centred",
            "the mean is not subtracted: the norm takes the mean of the features off, "
            "and that is linear, so each term loses its own mean",
            not_centred,
        ),
        Mistake(
            "no_norm",
            "the norm is left out: the logits are made of the normed stream",
            no_norm,
        ),
        Mistake(
            "shared_mean",
            "every term loses the mean of the whole stream: added up, it is then "
            "subtracted once for each term",
            shared_mean,
        ),
        Mistake(
            "unbiased",
            "the variance is divided by d - 1: a layer norm divides by d",
            unbiased,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def right(terms, unembedding):
    whole = sum(terms)
    sigma = whole.var(-1, unbiased=False, keepdim=True) ** 0.5
    return torch.stack([(t - t.mean(-1, True)) @ unembedding / sigma for t in terms])


RIGHT = [right]
WRONG = [
    (
        "variance",
        lambda t, u: right(t, u) / t.sum(0).std(-1, False, keepdim=True)[None],
    ),
    (
        "one_for_all_tokens",
        lambda t, u: (
            (t - t.mean(-1, True))
            @ u
            / (t - t.mean(-1, True)).sum(0).pow(2).mean() ** 0.5
        ),
    ),
    (
        "deviations_added",
        lambda t, u: (
            (t - t.mean(-1, True)) @ u / sum(x.std(-1, False, keepdim=True) for x in t)
        ),
    ),
    (
        "norm_after_the_matrix",
        lambda t, u: torch.stack(
            [
                (x @ u - (x @ u).mean(-1, True))
                / (t.sum(0) @ u).std(-1, False, keepdim=True)
                for x in t
            ]
        ),
    ),
    (
        "each_normed",
        lambda t, u: torch.nn.functional.layer_norm(t, t.shape[-1:], eps=0) @ u,
    ),
    ("not_centred", lambda t, u: (t @ u) / t.sum(0).std(-1, False, keepdim=True)),
    ("no_norm", lambda t, u: torch.einsum("abd,dv->abv", t, u)),
    (
        "shared_mean",
        lambda t, u: torch.stack(
            [
                (x - t.sum(0).mean(-1, True)) / t.sum(0).std(-1, False, True) @ u
                for x in t
            ]
        ),
    ),
    (
        "unbiased",
        lambda t, u: (t - t.mean(-1, True)) @ u / t.sum(0).std(-1, keepdim=True),
    ),
]
