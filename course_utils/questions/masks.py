"""The questions of chapter 09 on masks themselves: causal, padding, packed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import sizes

# ------------------------------------------------------------------- 09.1 a causal mask


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


CAUSAL = Question(
    id="09.1",
    title="A causal mask",
    answer="causal_mask",
    arguments=("n_queries", "n_keys"),
    outputs=(Output("mask", "query key"),),
    reference=causal_mask,
    next_step="write the body of `causal_mask`: a table of True, and its triangle.",
    parts=(
        Part("as many keys as queries", 1, draw_square),
        Part(
            "more keys than queries",
            1,
            draw_cache,
            alone="right for a square mask, wrong when there are more keys: the "
            "queries are the last tokens",
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


# ------------------------------------------------------------------ 09.2 a padding mask


def padding_mask(lengths: Tensor, n_keys: int, left: bool) -> Tensor:
    places = torch.arange(n_keys)
    places = places.flip(0) if left else places
    return (places < lengths[:, None])[:, None, :]


def row_of(lengths: Tensor, n_keys: int, left: bool) -> Tensor:
    return padding_mask(lengths, n_keys, left)[:, 0]


def draw_lengths(rng: np.random.Generator, left: bool) -> list[Args]:
    """Different lengths, none of them whole, none of them a mirror of another."""
    cases: list[Args] = []
    for n_keys in (6, 8):
        lengths = rng.permutation(np.arange(1, n_keys - 1))[:3]
        cases.append((lengths, n_keys, left))
    return cases


PADDING = Question(
    id="09.2",
    title="A padding mask from lengths",
    answer="padding_mask",
    arguments=("lengths", "n_keys", "left"),
    outputs=(Output("mask", "one key"),),
    reference=padding_mask,
    next_step="compare the place of every key with the length of every sentence.",
    parts=(
        Part("padding on the right", 2, lambda rng: draw_lengths(rng, False)),
        Part(
            "padding on the left",
            1,
            lambda rng: draw_lengths(rng, True),
            alone="right for padding on the right; with padding on the left the real "
            "tokens are the last ones",
        ),
        Part("boolean", 1, lambda rng: draw_lengths(rng, False), accepts=is_boolean),
    ),
    mistakes=(
        Mistake(
            "inverted",
            "the padding may be seen and the tokens may not: True means “may attend”",
            lambda n, k, left: ~padding_mask(n, k, left),
        ),
        Mistake(
            "one_too_many",
            "each sentence shows one place of padding: places count from 0, so a "
            "sentence of length 3 has the places 0, 1, 2",
            lambda n, k, left: padding_mask(n + 1, k, left),
        ),
        Mistake(
            "one_too_few",
            "the last real token of each sentence is hidden too: places count from 0",
            lambda n, k, left: padding_mask(n - 1, k, left),
        ),
        Mistake(
            "ends_shifted",
            "all places are shifted by one: padding shows on one side, a real token is "
            "hidden on the other; places count from 0, so a sentence of length 3 has "
            "the places 0, 1, 2, or the last three",
            lambda n, k, left: padding_mask(n - 1 if left else n + 1, k, left),
        ),
        Mistake(
            "left_one_short",
            "right for padding on the right; on the left one real token is hidden: of "
            "6 places, a sentence of length 2 has 4 and 5",
            lambda n, k, left: padding_mask(n - 1 if left else n, k, left),
        ),
        Mistake(
            "left_counts_tokens",
            "right for padding on the right; on the left as many places are blocked as "
            "there are tokens: how many places of padding are there?",
            lambda n, k, left: padding_mask(k - n if left else n, k, left),
        ),
        Mistake(
            "side_ignored",
            "`left` is not used: with padding on the left the real tokens are the last",
            lambda n, k, left: padding_mask(n, k, False),
        ),
        Mistake(
            "sides_exchanged",
            "the two sides are exchanged: `left=True` says that the padding stands "
            "first",
            lambda n, k, left: padding_mask(n, k, not left),
        ),
        Mistake(
            "queries_masked",
            "the axis of length 1 is last, so that the padding may not ask but may be "
            "asked: keys are to be hidden, and they are the last axis",
            lambda n, k, left: row_of(n, k, left)[:, :, None],
        ),
        Mistake(
            "no_query_axis",
            "(batch, key) can't be told from (query, key) when it is broadcast: put an "
            "axis of length 1 for the queries between them",
            row_of,
        ),
        Mistake(
            "queries_and_keys",
            "this also blocks whole rows, those of queries that are padding: hide the "
            "keys, for every query alike",
            lambda n, k, left: (
                row_of(n, k, left)[:, :, None] & row_of(n, k, left)[:, None, :]
            ),
        ),
        Mistake(
            "longest_for_all",
            "every sentence gets the mask of the longest one: each has a length of its "
            "own",
            lambda n, k, left: padding_mask(n.max().expand(len(n)), k, left),
        ),
        Mistake(
            "not_boolean",
            "the pattern is right, but its type is not boolean: a float mask would be "
            "added to the scores",
            lambda n, k, left: padding_mask(n, k, left).float(),
        ),
    ),
    packaged=("padding_mask",),
)


# -------------------------------------------------------- 09.3 several texts in one row


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


PACKED = Question(
    id="09.3",
    title="Several texts in one row",
    answer="packed_mask",
    arguments=("documents",),
    outputs=(Output("mask", "query key"),),
    reference=packed_mask,
    next_step="write the three conditions as three masks, and combine them.",
    parts=(
        Part("no padding", 2, lambda rng: draw_packed(rng, 0)),
        Part(
            "with padding",
            2,
            lambda rng: draw_packed(rng, 3),
            alone="right without padding, wrong with it: is padding ever looked at, by "
            "whomever?",
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

QUESTIONS = (CAUSAL, PADDING, PACKED)
