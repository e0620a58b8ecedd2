"""`other_layout`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from einops import rearrange
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def other_layout(weight: Tensor, n_heads: int) -> Tensor:
    return rearrange(weight, "(h p two) i -> (h two p) i", h=n_heads, two=2)


def ordered(layout: str) -> Any:
    return lambda weight, n_heads: rearrange(weight, layout, h=n_heads, two=2)


def columns(weight: Tensor, n_heads: int) -> Tensor:
    return rearrange(weight, "o (h p two) -> o (h two p)", h=n_heads, two=2)


def with_second(weight: Tensor, n_heads: int, change: Any) -> Tensor:
    pairs = weight.unflatten(0, (n_heads, -1, 2))
    return torch.cat([pairs[:, :, 0], change(pairs[:, :, 1])], dim=1).flatten(0, 1)


def cut_as_wide(weight: Tensor, n_heads: int) -> Tensor:
    heads = weight.unflatten(0, (-1, n_heads))
    return torch.cat([heads[:, ::2], heads[:, 1::2]], dim=1).flatten(0, 1)


def draw_weight(rng: np.random.Generator) -> Args:
    heads, pairs = (int(n) for n in rng.permutation([3, 4, 5])[:2])
    width = 2 * heads * pairs  # as wide as it is high: a swap of axes still runs
    return normal(rng, width, width), heads


def draw_others(rng: np.random.Generator) -> list[Args]:
    """A key matrix with fewer heads than columns, and a single head."""
    n, pairs = sizes(rng, 2, least=3)
    return [(normal(rng, 4 * pairs, 4 * n), 2), (normal(rng, 2 * pairs, 2 * n), 1)]


QUESTION = Question(
    id="16.4",
    title="From neighbours to halves",
    answer="other_layout",
    arguments=("weight", "n_heads"),
    outputs=(Output("moved", "out in"),),
    reference=other_layout,
    difficulty="medium",
    minutes=12,
    next_step="within one head of width 6: which old rows must come first, so that 0 "
    "and 1 stand half a head apart?",
    parts=(
        Part("several heads", 2, lambda rng: [draw_weight(rng) for _ in range(3)]),
        Part(
            "keys of fewer heads, and one head",
            1,
            draw_others,
            only_failure_hint="right for square matrices: take the number of rows from "
            "the weight, it need not be as high as it is wide",
        ),
    ),
    mistakes=(
        Mistake(
            "halves_swapped",
            "the halves of a head have changed places, each as it was: what were "
            "neighbours still are, and rows 0 and 1 should stand half a head apart",
            lambda weight, n: (
                rearrange(weight, "(h two p) i -> h two p i", h=n, two=2)
                .flip(1)
                .reshape(weight.shape)
            ),
        ),
        Mistake(
            "columns_of_all",
            "columns are moved, those of all heads together: the rows belong to the "
            "outputs that are turned, and every head has its own pairs",
            lambda weight, n: rearrange(weight, "o (p two) -> o (two p)", two=2),
        ),
        Mistake(
            "second_half_reversed",
            "the second features of the pairs come in reverse order: pair i stands at"
            " place i in both halves",
            lambda weight, n: with_second(weight, n, lambda half: half.flip(1)),
        ),
        Mistake(
            "second_half_negated",
            "the second features of the pairs have the wrong sign: rows are only moved",
            lambda weight, n: with_second(weight, n, lambda half: -half),
        ),
        Mistake(
            "heads_forgotten",
            "the rows of all heads are moved together, so that features wander from "
            "head to head: every head has its own pairs",
            lambda weight, n: rearrange(weight, "(p two) i -> (two p) i", two=2),
        ),
        Mistake(
            "the_way_back",
            "this is the way back, from halves to neighbours: rows 0 and 1 are a pair "
            "*before*",
            ordered("(h two p) i -> (h p two) i"),
        ),
        Mistake(
            "columns",
            "the columns are moved: they belong to the input; `nn.Linear` has one row "
            "for each output, and the outputs are what is turned",
            columns,
        ),
        Mistake(
            "heads_change_too",
            "the heads have changed places, too: a head stays where it is, only its "
            "own rows move",
            ordered("(h p two) i -> (two p h) i"),
        ),
        Mistake(
            "second_first",
            "the second feature of each pair comes first: that turns the other way "
            "round; first all first ones, then all second ones",
            lambda weight, n: torch.cat(
                list(weight.unflatten(0, (n, -1, 2)).flip(2).unbind(2)), dim=1
            ).flatten(0, 1),
        ),
        Mistake(
            "pairs_turned",
            "the two rows of each pair change places, and no pair is taken apart: in "
            "halves the first of a pair lies in the first half of its head, the second "
            "in the second",
            lambda weight, n: weight.unflatten(0, (-1, 2)).flip(1).flatten(0, 1),
        ),
        Mistake(
            "heads_as_wide_as_there_are",
            "the heads are cut `n_heads` rows wide: there are `n_heads` of them, and "
            "each has as many rows as are left for it",
            cut_as_wide,
        ),
        Mistake(
            "unchanged",
            "the weight is as before: then RoPE turns other pairs than those it was "
            "trained with, and nothing complains",
            lambda weight, n: weight,
        ),
    ),
    packaged=("to_halves",),
)


# ----------------------------------------------------------------------- specimens


def by_index(weight, n_heads, order=lambda d: [*range(0, d, 2), *range(1, d, 2)]):
    d = len(weight) // n_heads
    return weight[[h * d + i for h in range(n_heads) for i in order(d)]]


def head_by_head(weight, n_heads):
    parts = [torch.cat([w[0::2], w[1::2]]) for w in weight.chunk(n_heads)]
    return torch.cat(parts)


RIGHT = [by_index, head_by_head]
WRONG = [
    (
        "halves_swapped",
        lambda w, n: w.unflatten(0, (n, -1)).roll(len(w) // n // 2, 1).flatten(0, 1),
    ),
    ("pairs_turned", lambda w, n: w[[i ^ 1 for i in range(len(w))]]),
    ("heads_forgotten", lambda w, n: torch.cat([w[0::2], w[1::2]])),
    ("columns", lambda w, n: by_index(w.T, n).T),
    (
        "the_way_back",
        lambda w, n: by_index(
            w, n, lambda d: [i // 2 + (i % 2) * d // 2 for i in range(d)]
        ),
    ),
    (
        "second_first",
        lambda w, n: by_index(w, n, lambda d: [*range(1, d, 2), *range(0, d, 2)]),
    ),
    ("unchanged", lambda w, n: w.clone()),
]
