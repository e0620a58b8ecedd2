"""`causal_mask`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def lower(n_queries: int, n_keys: int, diagonal: int = 0) -> Tensor:
    """The lower triangle of a table of True, moved by `diagonal`."""
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(diagonal)


def causal_mask(n_queries: int, n_keys: int) -> Tensor:
    return lower(n_queries, n_keys, n_keys - n_queries)


def upper(n_queries: int, n_keys: int) -> Tensor:
    whole = torch.ones(n_queries, n_keys, dtype=torch.bool)
    return whole.triu(n_keys - n_queries)


def draw_square(rng: np.random.Generator) -> list[Args]:
    return [(n, n) for n in sizes(rng, 2, least=4)]


def draw_cache(rng: np.random.Generator) -> list[Args]:
    few, many, more = sorted(sizes(rng, 3, least=3))
    return [(few, many), (few, more), (1, many)]


def is_boolean(args: Args, value: Any) -> bool:
    return bool(value.dtype == np.bool_)


QUESTION = Question(
    id="09.1",
    title="A causal mask",
    answer="causal_mask",
    arguments=("n_queries", "n_keys"),
    outputs=(Output("mask", "query key"),),
    reference=causal_mask,
    difficulty="easy",
    minutes=6,
    next_step="write the body of `causal_mask`: a table of True, and its triangle.",
    parts=(
        Part("as many keys as queries", 1, draw_square),
        Part(
            "more keys than queries",
            1,
            draw_cache,
            only_failure_hint="right for a square mask, wrong when there are more "
            "keys: the queries are the last tokens",
        ),
        Part("boolean", 1, draw_square, accepts=is_boolean),
    ),
    mistakes=(
        Mistake(
            "inverted",
            "True stands where it is blocked: in this course True means “may attend”",
            lambda q, k: ~causal_mask(q, k),
        ),
        Mistake(
            "off_by_one",
            "every query sees one key too many, the next token, which holds the answer "
            "to its question",
            lambda q, k: lower(q, k, k - q + 1),
        ),
        Mistake(
            "too_strict",
            "no query sees its own token, and one may see nothing at all: a place may "
            "look at itself",
            lambda q, k: lower(q, k, k - q - 1),
        ),
        Mistake(
            "top_left",
            "the triangle sits in the upper left corner: with more keys than queries "
            "the first query would be taken for the first token, but which is it?",
            lower,
        ),
        Mistake(
            "upper_triangle",
            "this is the upper triangle: each token sees itself and what comes after; "
            "rows are queries, columns are keys",
            upper,
        ),
        Mistake(
            "upper_top_left",
            "this is an upper triangle, and it begins in the upper left corner: each "
            "token sees what comes after it; rows are queries, columns are keys, and "
            "with more keys the queries are the last tokens",
            lambda q, k: torch.ones(q, k, dtype=torch.bool).triu(),
        ),
        Mistake(
            "inverted_top_left",
            "True stands where it is blocked: in this course True means “may attend”; "
            "and with more keys than queries, which tokens are the queries?",
            lambda q, k: ~lower(q, k),
        ),
        Mistake(
            "not_boolean",
            "the pattern is right, but its type is not boolean: a float mask would be "
            "added to the scores",
            lambda q, k: causal_mask(q, k).float(),
        ),
        Mistake(
            "additive",
            "these are numbers to be added to scores (0 and −∞); a boolean mask was "
            "asked for, True = may attend",
            lambda q, k: torch.zeros(q, k).masked_fill(~causal_mask(q, k), -torch.inf),
        ),
        Mistake(
            "nothing_blocked",
            "every pair is allowed: this blocks nothing",
            lambda q, k: torch.ones(q, k, dtype=torch.bool),
        ),
    ),
    packaged=("causal_mask",),
)


# ----------------------------------------------------------------------- specimens


def by_pair(rule):
    """Fill a mask entry by entry."""

    def answer(n_queries, n_keys):
        shift = n_keys - n_queries
        return torch.tensor(
            [[rule(i, j, shift) for j in range(n_keys)] for i in range(n_queries)]
        )

    return answer


RIGHT = [
    by_pair(lambda i, j, s: j <= i + s),
    lambda q, k: ~torch.ones(q, k, dtype=torch.bool).triu(k - q + 1),
    lambda q, k: torch.ones(k, k, dtype=torch.bool).tril()[k - q :],
]
WRONG = [
    ("inverted", by_pair(lambda i, j, s: j > i + s)),
    ("off_by_one", by_pair(lambda i, j, s: j <= i + s + 1)),
    ("too_strict", by_pair(lambda i, j, s: j < i + s)),
    ("top_left", by_pair(lambda i, j, s: j <= i)),
    ("upper_triangle", by_pair(lambda i, j, s: j >= i + s)),
    ("upper_top_left", by_pair(lambda i, j, s: j >= i)),
    ("inverted_top_left", by_pair(lambda i, j, s: j > i)),
    ("not_boolean", by_pair(lambda i, j, s: int(j <= i + s))),
    ("additive", by_pair(lambda i, j, s: 0.0 if j <= i + s else -math.inf)),
    ("nothing_blocked", lambda q, k: torch.ones(q, k) > 0),
]
PARTIAL = [(2, lambda q, k: torch.ones(q, k, dtype=torch.bool).tril())]
