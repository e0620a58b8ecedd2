"""`search`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import first, normal, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q2_tf_idf import shares


def ranked(scores: Tensor) -> tuple[Tensor, int]:
    return scores, int(scores.argmax())


def safe(lengths: Tensor) -> Tensor:
    """Lengths to divide by: 1 where there is nothing to divide."""
    return torch.where(lengths > 0, lengths, torch.ones_like(lengths))


def search(query: Tensor, documents: Tensor) -> tuple[Tensor, int]:
    lengths = documents.norm(dim=1) * query.norm()
    return ranked(documents @ query / safe(lengths))


def draw_search(rng: np.random.Generator, empty: bool = False) -> Args:
    """Draw documents of very different lengths, the longest not the best match."""
    documents, terms = sizes(rng, 2, least=4)
    table = np.abs(normal(rng, documents, terms)) * (
        rng.random((documents, terms)) < 0.7
    )
    query = np.abs(normal(rng, terms)) + np.float32(0.1)
    # nearly the same direction: the best match, of middling length
    table[0] = 3 * query * (1 + 0.2 * rng.random(terms))
    table[1] = 40 * np.roll(query, 1) * (1 + np.arange(terms))  # long, another mixture
    table[2:] += np.float32(0.05)
    if empty:
        table[2] = 0
    order = rng.permutation(documents)
    return query, table[order].astype(np.float32)


def distances(query: np.ndarray, documents: np.ndarray) -> list[np.ndarray]:
    """How far the documents are from the query, and the squares of that."""
    squares = ((documents - query) ** 2).sum(1)
    return [np.sqrt(squares), squares]


QUESTION = Question(
    id="01.3",
    title="Search by cosine",
    answer="search",
    arguments=("query", "documents"),
    outputs=(Output("scores", "document"), Output("best")),
    reference=search,
    difficulty="easy",
    minutes=8,
    next_step="one dot product for each document, divided by the two lengths.",
    parts=(
        Part(
            "the scores",
            2,
            lambda rng: [draw_search(rng), draw_search(rng)],
            view=first,
        ),
        Part("the best", 1, lambda rng: [draw_search(rng) for _ in range(3)], second),
        Part(
            "a document without known words",
            1,
            lambda rng: [draw_search(rng, empty=True)],
            only_failure_hint="right while every document holds something, wrong for "
            "a row of zeros: it has no direction, and the question says what it scores",
        ),
    ),
    mistakes=(
        Mistake(
            "not_normalised",
            "these are dot products: a long document scores high because it is long, "
            "whatever it is about",
            lambda q, d: ranked(d @ q),
        ),
        Mistake(
            "query_not_normalised",
            "the documents' lengths are divided out, the query's is not: the order is "
            "right, but no score says how near to 1 it is",
            lambda q, d: ranked(d @ q / safe(d.norm(dim=1))),
        ),
        Mistake(
            "only_query_normalised",
            "only the query's length is divided out: long documents still win by "
            "being long",
            lambda q, d: ranked(d @ q / q.norm()),
        ),
        Mistake(
            "length_of_the_table",
            "one length is taken of the whole table: each document has its own, "
            "so the norm runs along the rows",
            lambda q, d: ranked(d @ q / (d.norm() * q.norm())),
        ),
        Mistake(
            "one_added_to_the_lengths",
            "a 1 is added to the lengths, so that none is zero: that makes every score "
            "too small; treat the rows of zeros by themselves",
            lambda q, d: ranked(d @ q / (1 + d.norm(dim=1) * q.norm())),
        ),
        Mistake(
            "squared_lengths",
            "the product is divided by squared lengths: the root is missing",
            lambda q, d: ranked(d @ q / safe(d.square().sum(1) * q.square().sum())),
        ),
        Mistake(
            "divided_by_sums",
            "the rows are divided by their sums; the length of a vector is the root "
            "of the sum of its squares",
            lambda q, d: ranked(d @ q / safe(d.sum(1) * q.sum())),
        ),
        Mistake(
            "columns_normalised",
            "the lengths run down the columns, over documents; what is to be made "
            "comparable are the rows",
            lambda q, d: ranked(d / safe(d.norm(dim=0)) @ (q / q.norm())),
        ),
        Mistake(
            "distance_of_the_points",
            "these are distances between the points: a long document is far away from "
            "a short query whatever it is about; compare the directions",
            lambda query, documents: (
                -(documents - query).norm(dim=1),
                int((documents - query).norm(dim=1).argmin()),
            ),
            lambda args, value: any(
                np.allclose(np.abs(value[0]), far, atol=1e-3)
                for far in distances(*args)
            ),
        ),
        Mistake(
            "distance",
            "this is one minus the cosine, a distance: the best match then has the "
            "smallest number",
            lambda q, d: (1 - search(q, d)[0], search(q, d)[1]),
        ),
        Mistake(
            "worst",
            "`best` is the place of the smallest score: the cosine is largest where "
            "the directions agree",
            lambda q, d: (search(q, d)[0], int(search(q, d)[0].argmin())),
        ),
        Mistake(
            "counted_from_one",
            "`best` counts the documents from 1; the first one is 0",
            lambda q, d: (search(q, d)[0], search(q, d)[1] + 1),
        ),
        Mistake(
            "score_for_place",
            "`best` is the largest score itself; its place among the documents is "
            "asked for",
            lambda q, d: (search(q, d)[0], float(search(q, d)[0].max())),
        ),
        Mistake(
            "best_by_dot",
            "`best` is the place of the largest dot product, not of the largest "
            "cosine: a long document wins there because it is long",
            lambda q, d: (search(q, d)[0], int((d @ q).argmax())),
        ),
        Mistake(
            "empty_left_out",
            "a document without any known word is left out, so that there is a score "
            "too few, and the places after it are others: it keeps its place",
            lambda q, d: search(q, d[d.any(dim=1)]),
        ),
        Mistake(
            "zero_length",
            "a row of zeros is divided by its length, zero by zero, which is not a "
            "number, and it spoils the ranking too",
            lambda q, d: ranked(d @ q / (d.norm(dim=1) * q.norm())),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_row(score_of):
    """Score a document at a time."""

    def answer(query, documents):
        scores = torch.stack([score_of(query, d) for d in documents])
        return scores, scores.tolist().index(float(scores.max()))

    return answer


def length(x):
    return (x * x).sum().sqrt()


def cosine(q, d):
    return (q * d).sum() / (length(q) * length(d)) if d.any() else torch.tensor(0.0)


RIGHT = [
    by_row(cosine),
    lambda q, d: (lambda s: (s, s.argmax()))(
        torch.nn.functional.cosine_similarity(d, q[None])
    ),
]
WRONG = [
    ("not_normalised", by_row(torch.dot)),
    ("query_not_normalised", by_row(lambda q, d: cosine(q, d) * length(q))),
    ("only_query_normalised", by_row(lambda q, d: torch.dot(q / length(q), d))),
    (
        "divided_by_sums",
        by_row(
            lambda q, d: torch.dot(shares(q), shares(d)) if d.any() else d.sum() * 0
        ),
    ),
    (
        "length_of_the_table",
        lambda q, d: (lambda s: (s, s.argmax()))(
            (d * q).sum(1) / length(q) / length(d)
        ),
    ),
    (
        "one_added_to_the_lengths",
        by_row(lambda q, d: torch.dot(q, d) / (length(q) * length(d) + 1)),
    ),
    (
        "counted_from_one",
        lambda q, d: (by_row(cosine)(q, d)[0], by_row(cosine)(q, d)[1] + 1),
    ),
    ("best_by_dot", lambda q, d: (by_row(cosine)(q, d)[0], by_row(torch.dot)(q, d)[1])),
    ("empty_left_out", lambda q, d: by_row(cosine)(q, [x for x in d if x.any()])),
    ("worst", lambda q, d: (by_row(cosine)(q, d)[0], by_row(cosine)(q, d)[0].argmin())),
    (
        "score_for_place",
        lambda q, d: (by_row(cosine)(q, d)[0], by_row(cosine)(q, d)[0].max()),
    ),
    (
        "zero_length",
        lambda q, d: (
            (d / d.norm(dim=1, keepdim=True)) @ (q / q.norm()),
            ((d / d.norm(dim=1, keepdim=True)) @ (q / q.norm())).argmax(),
        ),
    ),
]
