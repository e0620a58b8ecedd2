"""`masks`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import first, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def masks(lengths: Any, n_source: int, n_target: int) -> tuple[Tensor, Tensor]:
    lengths = torch.as_tensor(lengths)
    own = torch.ones(n_target, n_target).tril().bool()
    real = torch.arange(n_source) < lengths[:, None]  # (batch, source)
    return own, real[:, None].expand(-1, n_target, -1)


def draw_lengths(rng: np.random.Generator) -> list[Args]:
    drawn: list[Args] = []
    for batch in (2, 3):
        n_source, n_target = sizes(rng, 2, least=4)
        lengths = rng.permutation(np.arange(1, n_source + 1))[:batch]
        drawn.append((lengths.astype(np.int64), n_source, n_target))
    return drawn


def own_is(name: str, hint: str, make: Callable[[int], Tensor]) -> Mistake:
    def wrong(lengths: Any, n_source: int, n_target: int) -> Any:
        return make(n_target), masks(lengths, n_source, n_target)[1]

    return Mistake(
        name,
        hint,
        wrong,
        lambda args, value: np.array_equal(value[0], make(args[2]).numpy()),
    )


def cross_is(name: str, hint: str, make: Callable[..., Tensor]) -> Mistake:
    def wrong(lengths: Any, n_source: int, n_target: int) -> Any:
        own = masks(lengths, n_source, n_target)[0]
        return own, make(torch.as_tensor(lengths), n_source, n_target)

    def sign(args: Args, value: Any) -> bool:
        return np.array_equal(value[1], wrong(*args)[1].numpy())

    return Mistake(name, hint, wrong, sign)


def spread(row: Tensor, n_target: int) -> Tensor:
    return row[:, None].expand(-1, n_target, -1)


QUESTION = Question(
    id="12.2",
    title="Two masks",
    answer="masks",
    arguments=("lengths", "n_source", "n_target"),
    outputs=(Output("own", "target key"), Output("cross", "batch target source")),
    reference=masks,
    difficulty="medium",
    minutes=8,
    next_step="True where looking is allowed; compare positions with `torch.arange`.",
    parts=(
        Part("the target's own mask", 2, draw_lengths, view=first),
        Part("the mask of the source", 2, draw_lengths, view=second),
    ),
    mistakes=(
        own_is(
            "own_inverted",
            "the own mask allows the future and forbids the past: True means may look",
            lambda n: torch.ones(n, n).triu(1).bool(),
        ),
        own_is(
            "own_not_itself",
            "the own mask forbids a word to look at itself: then the first word has "
            "nothing to look at",
            lambda n: torch.ones(n, n).tril(-1).bool(),
        ),
        own_is(
            "own_transposed",
            "the own mask has rows and columns exchanged: rows ask, and may look at "
            "columns before them",
            lambda n: torch.ones(n, n).triu().bool(),
        ),
        own_is(
            "own_open",
            "the own mask allows everything: the word to be predicted is one place to "
            "the right, in plain sight",
            lambda n: torch.ones(n, n).bool(),
        ),
        own_is(
            "own_one_ahead",
            "the own mask lets every word look one place ahead, at the word it is to "
            "predict",
            lambda n: torch.ones(n, n).tril(1).bool(),
        ),
        cross_is(
            "cross_inverted",
            "the mask of the source allows the padding and forbids the words: that is "
            "PyTorch's other convention; here True means may look",
            lambda lengths, n, m: spread(torch.arange(n) >= lengths[:, None], m),
        ),
        cross_is(
            "cross_one_too_many",
            "the mask of the source allows one place too many: places count from 0, so "
            "a source of 3 words has the places 0, 1, 2",
            lambda lengths, n, m: spread(torch.arange(n) <= lengths[:, None], m),
        ),
        cross_is(
            "cross_open",
            "the mask of the source allows everything: shorter sources are filled up "
            "with padding, which is nothing to look at",
            lambda lengths, n, m: torch.ones(len(lengths), m, n).bool(),
        ),
        Mistake(
            "own_of_the_source",
            "the own mask is as large as the source: in self-attention the target's "
            "words look at each other",
            lambda lengths, n, m: (masks(lengths, m, n)[0], masks(lengths, n, m)[1]),
            lambda args, value: np.array_equal(
                value[0], np.tril(np.ones((args[1], args[1]), bool))
            ),
        ),
        cross_is(
            "cross_of_the_longest",
            "every source of the batch has the mask of the longest one: each has its "
            "own length",
            lambda lengths, n, m: spread(
                (torch.arange(n) < lengths.max()).expand(len(lengths), -1), m
            ),
        ),
        cross_is(
            "cross_padded_in_front",
            "the mask of the source has its padding in front: a source begins with its "
            "words and is filled up behind them",
            lambda lengths, n, m: spread(torch.arange(n) >= n - lengths[:, None], m),
        ),
        cross_is(
            "cross_causal",
            "the mask of the source is a triangle as well: every word of the target "
            "may look at the whole source",
            lambda lengths, n, m: (
                spread(torch.arange(n) < lengths[:, None], m)
                & torch.ones(m, n).tril().bool()
            ),
        ),
        cross_is(
            "cross_counts_targets",
            "the lengths bound the words that ask: they are the sources' lengths, and "
            "hide what is asked, the last axis",
            lambda lengths, n, m: (torch.arange(m) < lengths[:, None])[
                ..., None
            ].expand(-1, -1, n),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def two_masks(own=lambda i, j: j <= i, real=lambda j, i, length: j < length):
    """Both masks entry by entry."""

    def answer(lengths, n_source, n_target):
        square = [[own(i, j) for j in range(n_target)] for i in range(n_target)]
        cross = [
            [[real(j, i, int(n)) for j in range(n_source)] for i in range(n_target)]
            for n in lengths
        ]
        return torch.tensor(square), torch.tensor(cross)

    return answer


RIGHT = [two_masks()]
WRONG = [
    ("cross_counts_targets", two_masks(real=lambda j, i, n: i < n)),
    (
        "own_of_the_source",
        lambda n, s, t: (two_masks()(n, t, s)[0], two_masks()(n, s, t)[1]),
    ),
    (
        "cross_of_the_longest",
        lambda n, s, t: two_masks()(n.max().expand(len(n)), s, t),
    ),
    ("own_inverted", two_masks(own=lambda i, j: j > i)),
    ("own_not_itself", two_masks(own=lambda i, j: j < i)),
    ("own_transposed", two_masks(own=lambda i, j: j >= i)),
    ("own_open", two_masks(own=lambda i, j: True)),
    ("own_one_ahead", two_masks(own=lambda i, j: j <= i + 1)),
    ("cross_inverted", two_masks(real=lambda j, i, n: j >= n)),
    ("cross_one_too_many", two_masks(real=lambda j, i, n: j <= n)),
    ("cross_open", two_masks(real=lambda j, i, n: True)),
    ("cross_causal", two_masks(real=lambda j, i, n: j < n and j <= i)),
]
