"""`packed_mask`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q1_causal_mask import lower


def together(documents: Tensor) -> Tensor:
    return documents[:, :, None] == documents[:, None, :]


def real(documents: Tensor) -> Tensor:
    return (documents != 0)[:, None, :]


def past(documents: Tensor, diagonal: int = 0) -> Tensor:
    return lower(documents.shape[1], documents.shape[1], diagonal)


def packed_mask(documents: Tensor) -> Tensor:
    return past(documents) & together(documents) & real(documents)


def draw_packed(rng: np.random.Generator, padding: int) -> list[Args]:
    rows = []
    for _ in range(2):
        cuts = rng.permutation([2, 3, 4])
        row = np.repeat([1, 2, 3], cuts)
        rows.append(np.concatenate([row, np.zeros(padding, row.dtype)]))
    return [(np.stack(rows),)]


QUESTION = Question(
    id="09.3",
    title="Several texts in one row",
    answer="packed_mask",
    arguments=("documents",),
    outputs=(Output("mask", "query key"),),
    reference=packed_mask,
    difficulty="medium",
    minutes=8,
    next_step="write the three conditions as three masks, and combine them.",
    parts=(
        Part("no padding", 2, lambda rng: draw_packed(rng, 0)),
        Part(
            "with padding",
            2,
            lambda rng: draw_packed(rng, 3),
            only_failure_hint="right without padding, wrong with it: is padding ever "
            "looked at, by whomever?",
        ),
    ),
    mistakes=(
        Mistake(
            "or_for_and",
            "a pair is allowed here when one of the masks allows it: all must, so "
            "combine them with `&`",
            lambda d: (past(d) | together(d)) & real(d),
        ),
        Mistake(
            "any_of_three",
            "a pair is allowed here when any of the three masks allows it: all must",
            lambda d: past(d) | together(d) | real(d),
        ),
        Mistake(
            "future_open",
            "within a text everybody sees everybody: the causal mask is missing",
            lambda d: together(d) & real(d),
        ),
        Mistake(
            "texts_mixed",
            "a text looks at the one that stands before it in the row: compare the "
            "numbers of query and key",
            lambda d: past(d) & real(d),
        ),
        Mistake(
            "earlier_texts",
            "a text looks at the texts before it in the row: the numbers of query and "
            "key must be equal, not only in order",
            lambda d: past(d) & real(d) & (d[:, :, None] >= d[:, None, :]),
        ),
        Mistake(
            "too_strict",
            "no token sees itself: the first condition allows the token itself and "
            "those before it",
            lambda d: past(d, -1) & together(d) & real(d),
        ),
        Mistake(
            "padding_sees_itself",
            "every token of a text is right, but padding sees itself: a padded token "
            "may see nothing at all",
            lambda d: packed_mask(d) | torch.eye(d.shape[1], dtype=torch.bool),
        ),
        Mistake(
            "padding_open",
            "padding looks at padding, because their numbers are equal: no one may "
            "look at it, itself included",
            lambda d: past(d) & together(d),
        ),
        Mistake(
            "inverted",
            "True stands where it is blocked: in this course True means “may attend”",
            lambda d: ~packed_mask(d),
        ),
        Mistake(
            "off_by_one",
            "each place sees the one after it: `j <= i` allows itself and those before",
            lambda d: past(d, 1) & together(d) & real(d),
        ),
        Mistake(
            "transposed",
            "rows and columns have changed places: rows are queries, and a query looks "
            "back",
            lambda d: packed_mask(d).transpose(-2, -1),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_triple(rule):
    """Decide pair by pair of every row."""

    def answer(documents):
        n = documents.shape[1]
        return torch.tensor(
            [
                [[rule(i, j, row[i], row[j]) for j in range(n)] for i in range(n)]
                for row in documents.tolist()
            ]
        )

    return answer


RIGHT = [
    by_triple(lambda i, j, a, b: j <= i and a == b != 0),
    lambda d: (
        (d[:, :, None] == d[:, None]) & (d != 0)[:, :, None] & (d != 0)[:, None]
    ).tril(),
]
WRONG = [
    ("or_for_and", by_triple(lambda i, j, a, b: b != 0 and (j <= i or a == b))),
    ("any_of_three", by_triple(lambda i, j, a, b: b != 0 or j <= i or a == b)),
    ("future_open", by_triple(lambda i, j, a, b: b != 0 and a == b)),
    ("texts_mixed", by_triple(lambda i, j, a, b: b != 0 and j <= i)),
    ("earlier_texts", by_triple(lambda i, j, a, b: a >= b > 0 and j <= i)),
    ("too_strict", by_triple(lambda i, j, a, b: a == b != 0 and j < i)),
    (
        "padding_sees_itself",
        by_triple(lambda i, j, a, b: i == j or (a == b != 0 and j < i)),
    ),
    ("padding_open", by_triple(lambda i, j, a, b: j <= i and a == b)),
    ("inverted", by_triple(lambda i, j, a, b: j > i or a != b or b == 0)),
    ("off_by_one", by_triple(lambda i, j, a, b: j <= i + 1 and a == b and a * b != 0)),
    ("transposed", by_triple(lambda i, j, a, b: i <= j and a == b and a != 0)),
]
