"""`fold`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q2_tf_idf import shares


def fold(scores: Tensor, vectors: Tensor) -> Tensor:
    weights = scores.exp()[:, None]
    return torch.cat([weights * vectors, weights], dim=1)


def joined(vectors: Tensor, last: Tensor) -> Tensor:
    """Vectors with one more number each."""
    return torch.cat([vectors, last[:, None]], dim=1)


def folded(scores: Tensor, vectors: Tensor) -> Tensor:
    return scores.exp()[:, None] * vectors


def draw_table(rng: np.random.Generator) -> Args:
    vocabulary, d = sizes(rng, 2, least=4)
    return normal(rng, vocabulary), normal(rng, vocabulary, d)


def draw_square(rng: np.random.Generator) -> Args:
    return normal(rng, 5), normal(rng, 5, 5)


def draw_all(rng: np.random.Generator) -> list[Args]:
    return [draw_table(rng), draw_table(rng), draw_square(rng)]


QUESTION = Question(
    id="01.5",
    title="Fold the weights into the vectors",
    answer="fold",
    arguments=("scores", "vectors"),
    outputs=(Output("new_vectors", "word d+1"),),
    reference=fold,
    difficulty="medium",
    minutes=8,
    next_step="write down what one occurrence of word t adds to each of the two sums.",
    parts=(
        Part("the first d numbers", 1, draw_all, view=lambda value: value[:, :-1]),
        Part("the last number", 1, draw_all, view=lambda value: value[:, -1]),
    ),
    mistakes=(
        Mistake(
            "no_last_number",
            "these are the chapter's vectors, with d numbers: their sum has lost how "
            "large the weights were; one more number a word has to keep that",
            folded,
        ),
        Mistake(
            "last_is_one",
            "the last number of every word is 1, so that its sum counts the words: "
            "divide by that and you have the plain mean; a word counts by its weight",
            lambda s, v: joined(folded(s, v), torch.ones_like(s)),
        ),
        Mistake(
            "last_is_the_score",
            "the last number is the score itself: the sum to divide by is that of "
            "the exponentials",
            lambda s, v: joined(folded(s, v), s),
        ),
        Mistake(
            "last_upside_down",
            "the last number is one divided by the weight: a sum of those is not one "
            "divided by the sum",
            lambda s, v: joined(folded(s, v), (-s).exp()),
        ),
        Mistake(
            "last_for_all",
            "the last number is the sum over the vocabulary, the same for every word: "
            "only the words of the document count",
            lambda s, v: joined(folded(s, v), s.exp().sum().expand(len(s))),
        ),
        Mistake(
            "vectors_not_weighted",
            "the first d numbers are the old vectors: they have to be multiplied by "
            "the weight, as the last one is",
            lambda s, v: joined(v, s.exp()),
        ),
        Mistake(
            "weight_first",
            "the weight stands first: asked for are the d numbers of the vector, then "
            "the weight",
            lambda s, v: fold(s, v).roll(1, dims=1),
        ),
        Mistake(
            "weighted_twice",
            "the weight is multiplied by itself in the last number: 1 is joined to a "
            "vector, and then all is weighted once",
            lambda s, v: joined(folded(s, v), (2 * s).exp()),
        ),
        Mistake(
            "scores_as_factors",
            "the vectors are multiplied by the scores themselves; what stands in the "
            "sums is the exponential of a score",
            lambda s, v: joined(s[:, None] * v, s),
        ),
        Mistake(
            "softmax_over_vocabulary",
            "the weights are a softmax over the vocabulary: all are too small by the "
            "same factor; the ratio is right, the two sums are not those asked for",
            lambda s, v: joined(s.softmax(0)[:, None] * v, s.softmax(0)),
        ),
        Mistake(
            "divided",
            "the vectors are divided by their weights: the plain sum then undoes the "
            "weights instead of doing their work",
            lambda s, v: joined(folded(-s, v), s.exp()),
        ),
        Mistake(
            "added",
            "the score is added to every number of the vector: that moves the vector, "
            "a weight makes it longer or shorter",
            lambda s, v: joined(v + s[:, None], s.exp()),
        ),
        Mistake(
            "joined_as_a_row",
            "the weights are joined as one more row: a row is a word, and each word "
            "gets one more number",
            lambda s, v: torch.cat(
                [folded(s, v), s.exp().mean().expand(1, v.shape[1])]
            ),
        ),
        Mistake(
            "largest_taken_off",
            "the largest score is taken off before the exponential: a softmax does not "
            "see that, but it divides both sums by the same number",
            lambda s, v: fold(s - s.max(), v),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_diagonal(s, v):
    return torch.diag(torch.exp(s)) @ torch.hstack([v, torch.ones(len(v), 1)])


def by_loop(s, v):
    rows = [[*(math.exp(x) * row).tolist(), math.exp(x)] for x, row in zip(s, v)]
    return torch.tensor(rows)


def by_einsum(s, v):
    ones = torch.nn.functional.pad(v.double(), (0, 1), value=1.0)
    return torch.einsum("w,wd->wd", s.double().exp(), ones)


def in_numpy(s, v):
    weights = np.exp(s.numpy())
    return np.column_stack([v.numpy() * weights[:, None], weights])


RIGHT = [by_diagonal, by_loop, by_einsum, in_numpy]
WRONG = [
    ("no_last_number", lambda s, v: torch.diag(torch.exp(s)) @ v),
    (
        "last_is_one",
        lambda s, v: torch.hstack([by_loop(s, v)[:, :-1], 0 * v[:, :1] + 1]),
    ),
    ("last_is_the_score", lambda s, v: torch.column_stack([by_loop(s, v)[:, :-1], s])),
    ("vectors_not_weighted", lambda s, v: torch.column_stack([v, torch.exp(s)])),
    ("weight_first", lambda s, v: torch.column_stack([s.exp(), by_loop(s, v)[:, :-1]])),
    (
        "softmax_over_vocabulary",
        lambda s, v: by_diagonal(torch.log(shares(s.exp())), v),
    ),
    ("scores_as_factors", lambda s, v: torch.column_stack([torch.diag(s) @ v, s])),
    ("added", lambda s, v: torch.column_stack([(v.T + s).T, s.exp()])),
    (
        "largest_taken_off",
        lambda s, v: (
            (s - s.amax()).exp()[:, None] * torch.nn.functional.pad(v, (0, 1), value=1)
        ),
    ),
]
PARTIAL = [(1, lambda s, v: torch.column_stack([v, torch.exp(s)]))]
