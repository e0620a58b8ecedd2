"""`padding_mask`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q1_causal_mask import is_boolean


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


QUESTION = Question(
    id="09.2",
    title="A padding mask from lengths",
    answer="padding_mask",
    arguments=("lengths", "n_keys", "left"),
    outputs=(Output("mask", "one key"),),
    reference=padding_mask,
    difficulty="easy",
    minutes=8,
    next_step="compare the place of every key with the length of every sentence.",
    parts=(
        Part("padding on the right", 2, lambda rng: draw_lengths(rng, False)),
        Part(
            "padding on the left",
            1,
            lambda rng: draw_lengths(rng, True),
            only_failure_hint="right for padding on the right; with padding on the "
            "left the real tokens are the last ones",
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
        Mistake(
            "spread_over_queries",
            "there is a row for every query, all of them alike: one row of size 1 is "
            "asked for, which is broadcast over the queries",
            lambda n, k, left: padding_mask(n, k, left).expand(-1, k, -1),
        ),
        Mistake(
            "causal_too",
            "the causal mask is in it too: here padding alone is hidden, for every "
            "query alike",
            lambda n, k, left: (
                padding_mask(n, k, left) & torch.ones(k, k).tril().bool()
            ),
        ),
    ),
    packaged=("padding_mask",),
)


# ----------------------------------------------------------------------- specimens


def by_key(rule):
    """Decide key by key of every sentence."""

    def answer(lengths, n_keys, left):
        rows = [
            [rule(j, int(length), n_keys, left) for j in range(n_keys)]
            for length in lengths
        ]
        return torch.tensor(rows).unsqueeze(1)

    return answer


def is_real(j, length, n_keys, left):
    return n_keys - j <= length if left else j < length


RIGHT = [
    by_key(is_real),
    lambda n, k, left: torch.stack(
        [
            torch.arange(k) >= k - length if left else torch.arange(k) < length
            for length in n
        ]
    )[:, None],
]
WRONG = [
    (
        "spread_over_queries",
        lambda n, k, left: by_key(is_real)(n, k, left).repeat(1, k, 1),
    ),
    (
        "causal_too",
        lambda n, k, left: by_key(is_real)(n, k, left).repeat(1, k, 1).tril(),
    ),
    ("inverted", by_key(lambda *a: not is_real(*a))),
    ("one_too_many", by_key(lambda j, n, k, left: k - j <= n + 1 if left else j <= n)),
    ("one_too_few", by_key(lambda j, n, k, left: k - j < n if left else j < n - 1)),
    ("ends_shifted", by_key(lambda j, n, k, left: j > k - n if left else j <= n)),
    ("left_one_short", by_key(lambda j, n, k, left: j > k - n if left else j < n)),
    ("left_counts_tokens", by_key(lambda j, n, k, left: j >= n if left else j < n)),
    ("side_ignored", by_key(lambda j, n, k, left: j < n)),
    ("sides_exchanged", by_key(lambda j, n, k, left: is_real(j, n, k, not left))),
    ("queries_masked", lambda *a: by_key(is_real)(*a).transpose(1, 2)),
    ("no_query_axis", lambda *a: by_key(is_real)(*a)[:, 0]),
    ("queries_and_keys", lambda *a: by_key(is_real)(*a) * by_key(is_real)(*a).mT),
    (
        "longest_for_all",
        lambda n, k, left: by_key(is_real)(torch.full_like(n, int(n.max())), k, left),
    ),
    ("not_boolean", lambda *a: by_key(is_real)(*a).long()),
]
