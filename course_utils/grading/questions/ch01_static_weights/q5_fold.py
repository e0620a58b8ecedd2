"""`fold`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q2_tf_idf import shares


def fold(scores: Tensor, vectors: Tensor) -> Tensor:
    return scores.exp()[:, None] * vectors


def draw_table(rng: np.random.Generator) -> Args:
    vocabulary, d = sizes(rng, 2, least=4)
    return normal(rng, vocabulary), normal(rng, vocabulary, d)


def draw_square(rng: np.random.Generator) -> Args:
    return normal(rng, 5), normal(rng, 5, 5)


QUESTION = Question(
    id="01.5",
    title="Fold the weights into the vectors",
    answer="fold",
    arguments=("scores", "vectors"),
    outputs=(Output("new_vectors", "word d"),),
    reference=fold,
    difficulty="easy",
    minutes=5,
    next_step="write down what one occurrence of word t adds to the sum.",
    parts=(
        Part("new vectors", 1, lambda rng: [draw_table(rng) for _ in range(2)]),
        Part(
            "as many words as numbers",
            1,
            lambda rng: [draw_square(rng)],
            only_failure_hint="right for some sizes, wrong when there are as many "
            "words as numbers in a vector: a weight belongs to a row",
        ),
    ),
    mistakes=(
        Mistake(
            "scores_as_factors",
            "the vectors are multiplied by the scores themselves; what stands in the "
            "sum is the exponential of a score",
            lambda s, v: s[:, None] * v,
        ),
        Mistake(
            "softmax_over_vocabulary",
            "the factors are a softmax over the vocabulary: they are too small, all "
            "by the same factor; the sum has no such division",
            lambda s, v: s.softmax(0)[:, None] * v,
        ),
        Mistake(
            "added",
            "the score is added to every number of the vector: that moves the vector, "
            "a weight makes it longer or shorter",
            lambda s, v: v + s[:, None],
        ),
        Mistake(
            "divided",
            "the vectors are divided by their weights: the plain sum then undoes the "
            "weights instead of doing their work",
            lambda s, v: v / s.exp()[:, None],
        ),
        Mistake(
            "unit_length",
            "the old lengths are lost: each vector is made one long before the weight "
            "acts, but the weighted sum has no such step",
            lambda s, v: s.exp()[:, None] * v / v.norm(dim=1, keepdim=True),
        ),
        Mistake(
            "root",
            "the factors are roots of the weights: a vector enters the sum once, so "
            "the whole weight goes into it",
            lambda s, v: (s / 2).exp()[:, None] * v,
        ),
        Mistake(
            "divided_by_the_number_of_words",
            "the vectors are divided by their number, as for a mean: what is asked for "
            "is a sum",
            lambda s, v: fold(s, v) / len(v),
        ),
        Mistake(
            "one_factor_for_all",
            "every vector gets the same factor, the mean of the weights: then no word "
            "counts for more than another",
            lambda s, v: s.exp().mean() * v,
        ),
        Mistake(
            "unchanged",
            "these are the old vectors: without weights their sum is another one",
            lambda s, v: v.clone(),
        ),
        Mistake(
            "columns_weighted",
            "the weights multiply the columns; a weight belongs to a word, and a word "
            "is a row",
            lambda s, v: v * s.exp(),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [lambda s, v: torch.diag(torch.exp(s)) @ v]
WRONG = [
    ("scores_as_factors", lambda s, v: torch.diag(s) @ v),
    ("softmax_over_vocabulary", lambda s, v: torch.diag(shares(s.exp())) @ v),
    ("added", lambda s, v: torch.stack([row + x for x, row in zip(s, v)])),
    ("divided", lambda s, v: torch.diag(torch.exp(-s)) @ v),
    (
        "divided_by_the_number_of_words",
        lambda s, v: torch.diag(torch.exp(s)) @ v / v.shape[0],
    ),
    ("root", lambda s, v: s.exp().sqrt().unsqueeze(1) * v),
    ("unchanged", lambda s, v: v * 1),
]
