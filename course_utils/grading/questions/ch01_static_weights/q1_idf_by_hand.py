"""`idf_by_hand`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from typing import Any

import torch

from course_utils.grading.questions.model import Mistake, Output, Part, Question

BY_HAND = (0.0, math.log(4), 3 * math.log(4), math.log(4))


def number_is(index: int, *wrong: float) -> Any:
    """Recognise typical wrong numbers at one place, whatever stands at the others."""
    return lambda args, value: any(
        abs(float(value[index]) - number) < 0.01 * abs(number) for number in wrong
    )


def with_number(index: int, number: float) -> Any:
    return lambda: (*BY_HAND[:index], number, *BY_HAND[index + 1 :])


QUESTION = Question(
    id="01.1",
    title="Inverse document frequency by hand",
    answer="idf_by_hand",
    arguments=(),
    outputs=tuple(
        Output(name) for name in ("idf_the", "idf_lambda", "tf_idf", "idf_doubled")
    ),
    reference=lambda: BY_HAND,
    tolerance=0.005,
    difficulty="easy",
    minutes=8,
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
            "tf_dampened",
            "the third number dampens the count by a logarithm: that is a row of the "
            "table of variants; here tf is the plain count in this document",
            with_number(2, (1 + math.log(3)) * math.log(4)),
            number_is(2, (1 + math.log(3)) * math.log(4), math.log(4) ** 2),
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


# ----------------------------------------------------------------------- specimens


LOG4 = math.log(4)
RIGHT = [lambda: (0.0, 2 * math.log(2), torch.tensor(3 * LOG4), 1.386)]
WRONG = [
    ("tf_dampened", lambda: (0, LOG4, (1 + math.log(3)) * LOG4, LOG4)),
    ("before_the_logarithm", lambda: (1, 4, 12, 4)),
    ("upside_down", lambda: (0, math.log(2 / 8), 3 * math.log(2 / 8), 0)),
    ("counts_tokens", lambda: (0, math.log(8 / 4), 1, 1)),
    ("another_base", lambda: [0, math.log2(4), 6, 2]),
    ("another_base", lambda: [0, math.log10(4), 6, 2]),
    ("smoothed", lambda: (0, math.log(9 / 3) + 1, 3, 4)),
    ("smoothed", lambda: (0, math.log(8 / 3), 3, 4)),
    ("tf_is_a_share", lambda: (0, LOG4, 3 * LOG4 / 4, LOG4)),
    ("everywhere_still_counts", lambda: (1, LOG4, 3 * LOG4, LOG4)),
    ("tf_forgotten", lambda: (0.0, LOG4, LOG4, LOG4)),
    ("tf_of_all_documents", lambda: (0, LOG4, 4 * LOG4, LOG4)),
    ("only_documents_doubled", lambda: (0, LOG4, 3 * LOG4, math.log(8))),
    ("only_word_doubled", lambda: (0, LOG4, 3 * LOG4, math.log(8 / 4))),
]
NOT_IN_HINTS = {"0", "zero", "1.386", "4.159", "log(4)"}
