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


def causal_mask(n_queries: int, n_keys: int, window: int) -> Tensor:
    return band(n_queries, n_keys, window)


def band(
    n_queries: int,
    n_keys: int,
    window: int,
    ahead: int = 0,
    top: int | None = None,
    bottom: int | None = None,
) -> Tensor:
    """Keys up to `ahead` of the query and less than `window` behind it.

    `top` and `bottom` are the diagonals that this counts from, if not the right one.
    """
    shift = n_keys - n_queries
    top, bottom = shift if top is None else top, shift if bottom is None else bottom
    return lower(n_queries, n_keys, top + ahead) & ~lower(
        n_queries, n_keys, bottom - window
    )


def sliced(n_queries: int, n_keys: int, window: int) -> Tensor:
    """Row by row, with slices whose start may be negative."""
    mask = torch.zeros(n_queries, n_keys, dtype=torch.bool)
    for i, row in enumerate(mask, start=n_keys - n_queries):
        row[i - window + 1 : i + 1] = True
    return mask


def upper(n_queries: int, n_keys: int, window: int) -> Tensor:
    shift = n_keys - n_queries
    return ~lower(n_queries, n_keys, shift - 1) & lower(
        n_queries, n_keys, shift + window - 1
    )


def draw_square(rng: np.random.Generator) -> list[Args]:
    return [(n, n, 3) for n in sizes(rng, 2, least=5)]


def draw_cache(rng: np.random.Generator) -> list[Args]:
    few, many, more = sorted(sizes(rng, 3, least=4))
    return [(few, many, 2), (few, more, 3), (1, many, 3), (few, many, many)]


def is_boolean(args: Args, value: Any) -> bool:
    return bool(value.dtype == np.bool_)


QUESTION = Question(
    id="09.1",
    title="A causal mask with a window, for a cache",
    answer="causal_mask",
    arguments=("n_queries", "n_keys", "window"),
    outputs=(Output("mask", "query key"),),
    reference=causal_mask,
    difficulty="easy",
    minutes=8,
    next_step="which token of the text is query i? Then say for each pair of a query "
    "and a key how far apart they are.",
    parts=(
        Part("as many keys as queries", 1, draw_square),
        Part(
            "more keys than queries",
            1,
            draw_cache,
            only_failure_hint="right for a square mask, wrong when there are more "
            "keys, or a window as long as the text: the queries are the last tokens",
        ),
        Part("boolean", 1, draw_square, accepts=is_boolean),
    ),
    mistakes=(
        Mistake(
            "inverted",
            "True stands where it is blocked: in this course True means “may attend”",
            lambda q, k, w: ~causal_mask(q, k, w),
        ),
        Mistake(
            "no_window",
            "the window is not used: this is the whole triangle, however far back a "
            "key lies",
            lambda q, k, w: lower(q, k, k - q),
        ),
        Mistake(
            "no_window_top_left",
            "the window is not used, and the triangle sits in the upper left corner: "
            "with more keys the queries are the last tokens",
            lambda q, k, w: lower(q, k),
        ),
        Mistake(
            "window_without_itself",
            "every query sees one key too many at the far end: the window of `window` "
            "tokens includes the query's own",
            lambda q, k, w: band(q, k, w + 1),
        ),
        Mistake(
            "window_too_short",
            "every query sees one key too few at the far end: `window` keys, its own "
            "among them",
            lambda q, k, w: band(q, k, w - 1),
        ),
        Mistake(
            "off_by_one",
            "every query sees one key too many, the next token, which holds the answer "
            "to its question",
            lambda q, k, w: band(q, k, w, ahead=1),
        ),
        Mistake(
            "shifted_ahead",
            "the whole window has slipped one token ahead: each query sees the next "
            "token, and misses the last of its window",
            lambda q, k, w: band(q, k, w - 1, ahead=1),
        ),
        Mistake(
            "too_strict",
            "no query sees its own token, and one may see nothing at all: a token may "
            "look at itself",
            lambda q, k, w: band(q, k, w, ahead=-1),
        ),
        Mistake(
            "slipped_back",
            "the whole window has slipped one token back: a token may look at itself",
            lambda q, k, w: band(q, k, w + 1, ahead=-1),
        ),
        Mistake(
            "both_sides",
            "the window is open on both sides: the causal mask is missing, the future "
            "is seen",
            lambda q, k, w: band(q, k, w, ahead=w - 1),
        ),
        Mistake(
            "future_open",
            "nothing hides the future: the window limits how far *back* a query sees, "
            "and the causal mask how far ahead",
            lambda q, k, w: ~lower(q, k, k - q - w),
        ),
        Mistake(
            "all_open",
            "everything is open: every key fulfils one of the two conditions, and it "
            "is to fulfil both (`&`, not `|`)",
            lambda q, k, w: torch.ones(q, k, dtype=torch.bool),
        ),
        Mistake(
            "top_left",
            "the band begins in the upper left corner: with more keys than queries "
            "the first query would be taken for the first token, but which is it?",
            lambda q, k, w: band(q, k, w, top=0, bottom=0),
        ),
        Mistake(
            "one_more_top_left",
            "two slips: the window includes the query's own token, so one key too many "
            "is seen; and with more keys the queries are the last tokens",
            lambda q, k, w: band(q, k, w + 1, top=0, bottom=0),
        ),
        Mistake(
            "negative_start",
            "near the start of the text the slice begins at a negative number, which "
            "counts from the end: those queries see nothing",
            sliced,
        ),
        Mistake(
            "far_end_top_left",
            "the triangle is in its place, but the far end of the window is counted as "
            "if the first query were the first token",
            lambda q, k, w: band(q, k, w, bottom=0),
        ),
        Mistake(
            "triangle_top_left",
            "the far end of the window is in its place, but the triangle sits in the "
            "upper left corner: which token is the first query?",
            lambda q, k, w: band(q, k, w, top=0),
        ),
        Mistake(
            "upper_triangle",
            "each token sees itself and what comes *after*; rows are queries, columns "
            "are keys",
            upper,
        ),
        Mistake(
            "last_keys_for_all",
            "every query sees the last `window` keys of the text: each has a window of "
            "its own, which ends at its own token",
            lambda q, k, w: lower(q, k, k - q) & (torch.arange(k) >= k - w),
        ),
        Mistake(
            "not_boolean",
            "the pattern is right, but its type is not boolean: a float mask would be "
            "added to the scores",
            lambda q, k, w: causal_mask(q, k, w).float(),
        ),
        Mistake(
            "additive",
            "these are numbers to be added to scores (0 and −∞); a boolean mask was "
            "asked for, True = may attend",
            lambda q, k, w: torch.zeros(q, k).masked_fill(
                ~causal_mask(q, k, w), -torch.inf
            ),
        ),
        Mistake(
            "first_keys_for_all",
            "every query sees the first `window` keys of the text: each has a window "
            "of its own, which ends at its own token",
            lambda q, k, w: lower(q, k, k - q) & (torch.arange(k) < w),
        ),
    ),
    packaged=("causal_mask",),
)


# ----------------------------------------------------------------------- specimens


def by_pair(rule):
    """Fill a mask entry by entry; `back` says how far a key lies behind the query."""

    def answer(n_queries, n_keys, window):
        first = n_keys - n_queries
        return torch.tensor(
            [
                [rule(first + i - j, window, i, j) for j in range(n_keys)]
                for i in range(n_queries)
            ]
        )

    return answer


def of_whole_text(n_queries, n_keys, window):
    whole = np.tril(np.ones((n_keys, n_keys), bool)) & np.triu(
        np.ones((n_keys, n_keys), bool), 1 - window
    )
    return torch.from_numpy(whole[n_keys - n_queries :])


RIGHT = [
    by_pair(lambda back, w, i, j: 0 <= back < w),
    of_whole_text,
    lambda q, k, w: (
        torch.ones(q, k).tril(k - q) * torch.ones(q, k).triu(k - q - w + 1) == 1
    ),
]
WRONG = [
    ("first_keys_for_all", by_pair(lambda back, w, i, j: back >= 0 and j < w)),
    ("all_open", by_pair(lambda back, w, i, j: back >= 0 or back < w)),
    ("inverted", by_pair(lambda back, w, i, j: not 0 <= back < w)),
    ("no_window", by_pair(lambda back, w, i, j: back >= 0)),
    ("no_window_top_left", by_pair(lambda back, w, i, j: j <= i)),
    ("window_without_itself", by_pair(lambda back, w, i, j: 0 <= back <= w)),
    ("off_by_one", by_pair(lambda back, w, i, j: -1 <= back < w)),
    ("too_strict", by_pair(lambda back, w, i, j: 0 < back < w)),
    ("slipped_back", by_pair(lambda back, w, i, j: 1 <= back <= w)),
    ("both_sides", by_pair(lambda back, w, i, j: abs(back) < w)),
    ("top_left", by_pair(lambda back, w, i, j: 0 <= i - j < w)),
    ("far_end_top_left", by_pair(lambda back, w, i, j: back >= 0 and i - j < w)),
    ("triangle_top_left", by_pair(lambda back, w, i, j: i >= j and back < w)),
    ("upper_triangle", by_pair(lambda back, w, i, j: 0 <= -back < w)),
    ("not_boolean", by_pair(lambda back, w, i, j: int(0 <= back < w))),
    ("additive", by_pair(lambda back, w, i, j: 0.0 if 0 <= back < w else -math.inf)),
]
PARTIAL = [(2, lambda q, k, w: lower(q, k) & ~lower(q, k, -w))]
