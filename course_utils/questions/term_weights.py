"""The questions of chapter 01 on counting: idf by hand, the table of tf-idf."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import first, second, sizes

# ---------------------------------------------------------------------- 01.1 by hand

BY_HAND = (0.0, math.log(4), 3 * math.log(4), math.log(4))


def number_is(index: int, *wrong: float) -> Any:
    """Recognise typical wrong numbers at one place, whatever stands at the others."""
    return lambda args, value: any(
        abs(float(value[index]) - number) < 0.01 * abs(number) for number in wrong
    )


def with_number(index: int, number: float) -> Any:
    return lambda: (*BY_HAND[:index], number, *BY_HAND[index + 1 :])


PREDICT = Question(
    id="01.1",
    title="Inverse document frequency by hand",
    answer="idf_by_hand",
    arguments=(),
    outputs=tuple(
        Output(name) for name in ("idf_the", "idf_lambda", "tf_idf", "idf_doubled")
    ),
    reference=lambda: BY_HAND,
    tolerance=0.005,
    next_step="count the documents that hold the word, then take log(N / n).",
    parts=tuple(
        Part(name, 1, lambda rng: [()], view=lambda value, i=i: value[i])  # type: ignore[misc]
        for i, name in enumerate(
            ("a word that is everywhere", "a rarer word", "tf times idf", "copies")
        )
    ),
    mistakes=(
        Mistake(
            "before_the_logarithm",
            "the second number is N / n itself: the logarithm of it is still to be "
            "taken",
            lambda: (1.0, 4.0, 12.0, 4.0),
            number_is(1, 4),
        ),
        Mistake(
            "upside_down",
            "the second number is negative: n / N has changed places with N / n, and "
            "a rare word would count less than nothing",
            lambda: (0.0, -math.log(4), -3 * math.log(4), -math.log(4)),
            number_is(1, -math.log(4), -2, -math.log10(4)),
        ),
        Mistake(
            "counts_tokens",
            "the second number counts how often the word stands there in all; n is "
            "the number of documents that hold it, once or many times",
            lambda: (0.0, math.log(2), 3 * math.log(2), math.log(2)),
            number_is(1, math.log(2)),
        ),
        Mistake(
            "another_base",
            "the second number is a logarithm to another base; in this course log is "
            "the natural one, `math.log`",
            lambda: (0.0, 2.0, 6.0, 2.0),
            number_is(1, 2, math.log10(4)),
        ),
        Mistake(
            "smoothed",
            "the second number is a smoothed variant: a row of the table of variants, "
            "not the plain formula that is asked for",
            lambda: (1.0, 1 + math.log(3), 3 + 3 * math.log(3), 1 + math.log(17 / 5)),
            number_is(
                1,
                *(1 + math.log(3), 1 + math.log(4), math.log(5), math.log(3)),
                math.log(8 / 3),  # a 1 added to n alone
            ),
        ),
        Mistake(
            "everywhere_still_counts",
            "look at the first number again: put N = n into the formula; does a word "
            "that every document holds help to tell them apart?",
            with_number(0, 1.0),
            number_is(0, 1, math.log(8), 8),
        ),
        Mistake(
            "tf_forgotten",
            "the third number is the idf alone: how often the word stands in *this* "
            "document has not been counted yet",
            with_number(2, math.log(4)),
            number_is(2, math.log(4)),
        ),
        Mistake(
            "tf_of_all_documents",
            "the third number counts the word in all documents together; tf belongs "
            "to one document",
            with_number(2, 4 * math.log(4)),
            number_is(2, 4 * math.log(4)),
        ),
        Mistake(
            "tf_is_a_share",
            "the third number divides the count by the word's count in all documents; "
            "here tf is the plain count in this one",
            with_number(2, 0.75 * math.log(4)),
            number_is(2, 0.75 * math.log(4)),
        ),
        Mistake(
            "tf_is_everything",
            "the third number is the count alone: it is still to be multiplied by the "
            "word's idf",
            with_number(2, 3.0),
            number_is(2, 3),
        ),
        Mistake(
            "only_documents_doubled",
            "the last number doubles N but not n: the copies hold the word too",
            with_number(3, math.log(8)),
            number_is(3, math.log(8)),
        ),
        Mistake(
            "only_word_doubled",
            "the last number doubles n but not N: every document was copied, those "
            "without the word as well",
            with_number(3, math.log(2)),
            number_is(3, math.log(2)),
        ),
        Mistake(
            "idf_doubled_too",
            "the last number is twice the old one: ask what happened to N and to n, "
            "and what that does to their ratio",
            with_number(3, 2 * math.log(4)),
            number_is(3, 2 * math.log(4)),
        ),
    ),
)


# --------------------------------------------------------------- 01.2 the tf-idf table


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


def draw_counts(rng: np.random.Generator, unseen: int = 0) -> Args:
    """Draw counts in which no column is empty but the last `unseen` ones."""
    documents, terms = sizes(rng, 2, least=4)
    counts = rng.poisson(1.2, (documents, terms))
    counts[:, 0] = rng.integers(1, 4, documents)  # a term that is everywhere
    for term in range(1, terms):  # and terms in some documents, more than once in one
        counts[:, term] *= rng.permutation(documents) > 0
        counts[rng.permutation(documents)[:2], term] = 3, 0
    if unseen:
        counts[:, -unseen:] = 0
    return (counts.astype(np.int64),)


def smoothed(counts: Tensor) -> tuple[Tensor, Tensor]:
    idf = torch.log((1 + len(counts)) / (1 + document_counts(counts))) + 1
    return weighted(counts, idf)


TABLE = Question(
    id="01.2",
    title="The table of tf-idf",
    answer="tf_idf",
    arguments=("counts",),
    outputs=(Output("idf", "term"), Output("table", "document term")),
    reference=tf_idf,
    next_step="count the documents that hold each term, then take the logarithm.",
    parts=(
        Part("idf", 2, lambda rng: [draw_counts(rng), draw_counts(rng)], view=first),
        Part("the table", 1, lambda rng: [draw_counts(rng), draw_counts(rng)], second),
        Part(
            "a term that no document holds",
            1,
            lambda rng: [draw_counts(rng, 1), draw_counts(rng, 2)],
            alone="right while every term is used, wrong when a column of the counts "
            "is empty: what weight was such a term to get?",
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
            "smoothed",
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

QUESTIONS = (PREDICT, TABLE)
