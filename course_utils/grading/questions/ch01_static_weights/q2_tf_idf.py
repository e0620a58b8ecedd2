"""`tf_idf`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import first, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def weighted(counts: Tensor, idf: Tensor) -> tuple[Tensor, Tensor]:
    return idf, counts * idf


def document_counts(counts: Tensor) -> Tensor:
    return (counts > 0).sum(dim=0)


def tf_idf(counts: Tensor) -> tuple[Tensor, Tensor]:
    holding = document_counts(counts)
    idf = torch.log(len(counts) / holding.clamp(min=1)) * (holding > 0)
    return weighted(counts, idf)


def seen(counts: Tensor, idf: Tensor) -> Tensor:
    """A wrong idf, zero where no document has the term, as the question asks."""
    return torch.where(document_counts(counts) > 0, idf, torch.zeros_like(idf))


def plain_idf(counts: Tensor) -> Tensor:
    return tf_idf(counts)[0]


def draw_counts(
    rng: np.random.Generator, unseen: int = 0, wordless: bool = False
) -> Args:
    """Draw counts in which no column is empty but the last `unseen` ones.

    Where one is `wordless`, another document is there that holds no term at all.
    """
    documents, terms = sizes(rng, 2, least=4)
    counts = rng.poisson(1.2, (documents, terms))
    counts[:, 0] = rng.integers(1, 4, documents)  # a term that is everywhere
    for term in range(1, terms):  # and terms in some documents, more than once in one
        counts[:, term] *= rng.permutation(documents) > 0
        counts[rng.permutation(documents)[:2], term] = 3, 0
    if unseen:
        counts[:, -unseen:] = 0
    if wordless:
        counts = np.insert(counts, rng.integers(documents + 1), 0, axis=0)
    return (counts.astype(np.int64),)


def smoothed(counts: Tensor) -> tuple[Tensor, Tensor]:
    idf = torch.log((1 + len(counts)) / (1 + document_counts(counts))) + 1
    return weighted(counts, idf)


QUESTION = Question(
    id="01.2",
    title="The table of tf-idf",
    answer="tf_idf",
    arguments=("counts",),
    outputs=(Output("idf", "term"), Output("table", "document term")),
    reference=tf_idf,
    difficulty="easy",
    minutes=8,
    next_step="count the documents that hold each term, then take the logarithm.",
    parts=(
        Part(
            "idf",
            2,
            lambda rng: [draw_counts(rng), draw_counts(rng, wordless=True)],
            view=first,
        ),
        Part("the table", 1, lambda rng: [draw_counts(rng), draw_counts(rng)], second),
        Part(
            "a term that no document holds",
            1,
            lambda rng: [draw_counts(rng, 1), draw_counts(rng, 2)],
            only_failure_hint="right while every term is used, wrong when a column of "
            "the counts is empty: what weight was such a term to get?",
        ),
    ),
    mistakes=(
        Mistake(
            "upside_down",
            "the logarithm is of n / N: it is negative, and the rarest word gets the "
            "lowest weight",
            lambda c: weighted(c, -plain_idf(c)),
        ),
        Mistake(
            "counts_tokens",
            "n adds up how often a term is used; it is the number of documents that "
            "hold the term, whether once or many times",
            lambda c: weighted(c, seen(c, torch.log(len(c) / c.sum(0)))),
        ),
        Mistake(
            "base_two",
            "the logarithm is to base 2; in this course log is the natural one",
            lambda c: weighted(c, plain_idf(c) / math.log(2)),
        ),
        Mistake(
            "base_ten",
            "the logarithm is to base 10; in this course log is the natural one",
            lambda c: weighted(c, plain_idf(c) / math.log(10)),
        ),
        Mistake(
            "no_logarithm",
            "this is N / n without its logarithm: a term of one document would weigh "
            "N times as much as one that is everywhere",
            lambda c: weighted(c, seen(c, len(c) / document_counts(c))),
        ),
        Mistake(
            "smoothed_where_seen",
            "this is a smoothed variant, with something added to the counts or to the "
            "logarithm; the plain formula is asked for",
            lambda c: weighted(
                c, seen(c, torch.log((1 + len(c)) / (1 + document_counts(c))) + 1)
            ),
        ),
        Mistake(
            "plus_one",
            "a 1 is added to the plain logarithm: then a term that every document "
            "holds still counts",
            lambda c: weighted(c, seen(c, plain_idf(c) + 1)),
        ),
        Mistake(
            "one_added_to_n",
            "a 1 is added to every n, so that none is zero: that changes the idf of "
            "all terms; treat those that no document holds by themselves",
            lambda c: weighted(c, torch.log(len(c) / (1 + document_counts(c)))),
        ),
        Mistake(
            "one_added_to_both",
            "a 1 is added to N and to n, so that no n is zero: that changes the idf of "
            "all terms; treat those that no document holds by themselves",
            lambda c: weighted(c, torch.log((1 + len(c)) / (1 + document_counts(c)))),
        ),
        Mistake(
            "terms_for_documents",
            "N is the number of terms (columns); it is the number of documents (rows)",
            lambda c: weighted(c, seen(c, torch.log(c.shape[1] / document_counts(c)))),
        ),
        Mistake(
            "wordless_left_out",
            "a document without any word is left out of N: it is one of the "
            "collection too, and the term is not in it",
            lambda c: weighted(c, plain_idf(c[c.sum(1) > 0])),
        ),
        Mistake(
            "sums_over_terms",
            "the count runs along the terms of each document; to know how many "
            "documents hold a term, count down its column",
            lambda c: weighted(c, torch.log(len(c) / (c > 0).sum(1))),
        ),
        Mistake(
            "divides_by_zero",
            "a term that no document holds divides by zero: its logarithm is "
            "infinite, and infinity times its count of 0 is not a number",
            lambda c: weighted(c, torch.log(len(c) / document_counts(c))),
        ),
        Mistake(
            "unseen_counts_as_rare",
            "a term that no document holds is treated as if one did; nothing is known "
            "of it, and the question says what weight it gets",
            lambda c: weighted(c, torch.log(len(c) / document_counts(c).clamp(min=1))),
        ),
        Mistake(
            "presence_for_tf",
            "the table only asks whether a term is there; tf says how often",
            lambda c: (plain_idf(c), (c > 0) * plain_idf(c)),
        ),
        Mistake(
            "share_for_tf",
            "the counts are divided by the document's length; that is a variant: here "
            "tf is the plain count",
            lambda c: (plain_idf(c), c / c.sum(1, keepdim=True) * plain_idf(c)),
        ),
        Mistake(
            "order",
            "the two results come in the wrong order: the weights of the terms first, "
            "then the table",
            lambda c: tf_idf(c)[::-1],
        ),
        Mistake(
            "smoothed",
            "this is a smoothed variant, with ones added to the counts and to the "
            "logarithm: here the plain formula is asked for",
            smoothed,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_term(weight_of, tf=lambda c: c):
    """Weigh a table term by term, with any rule for a term's column."""

    def answer(counts):
        columns = counts.T.tolist()
        idf = torch.tensor([float(weight_of(c, counts)) for c in columns])
        return idf, torch.stack([tf(row) * idf for row in counts.float()])

    return answer


def holding(column):
    return sum(1 for n in column if n)


def if_used(rule):
    return lambda column, counts: rule(column, counts) if any(column) else 0.0


def shares(x):
    return x / x.sum()


RIGHT = [
    by_term(if_used(lambda c, t: math.log(len(c) / holding(c)))),
    lambda counts: (lambda idf: (idf, counts.float() @ torch.diag(idf)))(
        torch.nan_to_num((len(counts) / (counts != 0).float().sum(0)).log(), posinf=0.0)
    ),
]
WRONG = [
    ("upside_down", by_term(if_used(lambda c, t: math.log(holding(c) / len(c))))),
    ("counts_tokens", by_term(if_used(lambda c, t: math.log(len(c) / sum(c))))),
    ("base_two", by_term(if_used(lambda c, t: math.log2(len(c) / holding(c))))),
    ("base_ten", by_term(if_used(lambda c, t: math.log10(len(c) / holding(c))))),
    ("no_logarithm", by_term(if_used(lambda c, t: len(c) / holding(c)))),
    (
        "terms_for_documents",
        by_term(if_used(lambda c, t: math.log(t.shape[1] / holding(c)))),
    ),
    (
        "wordless_left_out",
        by_term(if_used(lambda c, t: math.log(int(t.any(dim=1).sum()) / holding(c)))),
    ),
    ("one_added_to_n", by_term(lambda c, t: math.log(len(c) / (holding(c) + 1)))),
    (
        "one_added_to_both",
        by_term(lambda c, t: math.log((len(c) + 1) / (holding(c) + 1))),
    ),
    (
        "divides_by_zero",
        by_term(lambda c, t: math.log(len(c) / holding(c)) if holding(c) else math.inf),
    ),
    (
        "unseen_counts_as_rare",
        by_term(lambda c, t: math.log(len(c) / max(holding(c), 1))),
    ),
    (
        "presence_for_tf",
        by_term(
            if_used(lambda c, t: math.log(len(c) / holding(c))),
            tf=lambda row: row.clamp(max=1),
        ),
    ),
    (
        "share_for_tf",
        by_term(if_used(lambda c, t: math.log(len(c) / holding(c))), tf=shares),
    ),
]
