"""`relative_bias`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def relative_bias(table: Tensor, n_queries: int, n_keys: int) -> Tensor:
    return table[:, entries(table, n_queries, n_keys)]


def entries(table: Tensor, n_queries: int, n_keys: int, ahead: int = 0) -> Tensor:
    """The entry of every pair; `ahead` moves the queries away from the last keys."""
    most = table.shape[1] // 2
    queries = torch.arange(n_queries) + n_keys - n_queries - ahead
    return (queries[:, None] - torch.arange(n_keys)).clamp(-most, most) + most


def biased(entry: Callable[[Tensor, int], Tensor], ahead: bool = False) -> Any:
    """The bias by other entries: a function of the right ones and of max_distance."""

    def wrong(table: Tensor, n_queries: int, n_keys: int) -> Tensor:
        aligned = entries(table, n_queries, n_keys, (n_keys - n_queries) * ahead)
        return table[:, entry(aligned, table.shape[1] // 2)]

    return wrong


def draw_square(rng: np.random.Generator) -> list[Args]:
    return [(normal(rng, h, 2 * m + 1), n, n) for h, m, n in ((2, 3, 7), (3, 2, 5))]


def draw_oblong(rng: np.random.Generator) -> list[Args]:
    return [
        (normal(rng, h, 2 * m + 1), q, k) for h, m, q, k in ((3, 2, 4, 6), (2, 4, 1, 8))
    ]


QUESTION = Question(
    id="08.5",
    title="A relative bias",
    answer="relative_bias",
    arguments=("table", "n_queries", "n_keys"),
    outputs=(Output("bias", "head query key"),),
    reference=relative_bias,
    difficulty="medium",
    minutes=10,
    next_step="make the table of distances, cut it off, and look each one up.",
    parts=(
        Part("as many keys as queries", 2, draw_square),
        Part(
            "more keys than queries",
            1,
            draw_oblong,
            only_failure_hint="right for as many keys as queries, wrong for more "
            "keys: where does the last query stand?",
        ),
    ),
    mistakes=(
        Mistake(
            "sign",
            "before and behind have changed places: the distance is the query's place "
            "minus the key's",
            biased(lambda entry, m: 2 * m - entry),
        ),
        Mistake(
            "first_query_at_first_key",
            "the first query stands at the first key: with more keys than queries it "
            "is the last query that stands at the last key",
            biased(lambda entry, m: entry, ahead=True),
        ),
        Mistake(
            "absolute",
            "a key ahead gets the same number as one equally far behind: the table "
            "has entries for both",
            biased(lambda entry, m: (entry - m).abs() + m),
        ),
        Mistake(
            "ahead_is_zero",
            "all keys ahead get the entry of distance zero: they have entries of "
            "their own",
            biased(lambda entry, m: entry.clamp(min=m)),
        ),
        Mistake(
            "zero_at_the_left",
            "distance 0 takes the first entry of the table: the entries begin at -m, "
            "so that of distance 0 stands in the middle",
            biased(lambda entry, m: entry - m),
        ),
        Mistake(
            "cut_too_early",
            "the outermost entries of the table are never used: the cut comes one "
            "distance too early",
            biased(lambda entry, m: entry.clamp(1, 2 * m - 1)),
        ),
        Mistake(
            "heads_last",
            "the heads stand on the last axis: the bias is added to scores of the "
            "shape (head, query, key)",
            lambda table, q, k: relative_bias(table, q, k).permute(1, 2, 0),
        ),
        Mistake(
            "one_head",
            "all heads got the numbers of the first head: each has its own row of the "
            "table",
            lambda table, q, k: relative_bias(table[:1].expand_as(table), q, k),
        ),
    ),
    packaged=("RelativeBias",),
)


# ----------------------------------------------------------------------- specimens


def bias_by_loop(entry):
    def answer(table, n_queries, n_keys):
        m = table.shape[1] // 2
        bias = torch.zeros(len(table), n_queries, n_keys)
        for i in range(n_queries):
            for j in range(n_keys):
                bias[:, i, j] = table[:, entry(i, j, m, n_keys - n_queries)]
        return bias

    return answer


def cut(distance, m):
    return max(-m, min(m, distance)) + m


RIGHT = [bias_by_loop(lambda i, j, m, more: cut(i + more - j, m))]
WRONG = [
    ("sign", bias_by_loop(lambda i, j, m, more: cut(j - i - more, m))),
    ("first_query_at_first_key", bias_by_loop(lambda i, j, m, more: cut(i - j, m))),
    ("absolute", bias_by_loop(lambda i, j, m, more: cut(abs(i + more - j), m))),
    ("ahead_is_zero", bias_by_loop(lambda i, j, m, more: cut(max(i + more - j, 0), m))),
    ("zero_at_the_left", bias_by_loop(lambda i, j, m, more: cut(i + more - j, m) - m)),
]
