"""`split_heads`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from einops import rearrange, repeat
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

Split = tuple[Tensor, ...]


def split_heads(x: Tensor, n_heads: int, n_groups: int) -> Split:
    return cut(x, n_heads, n_groups)


def cut(
    x: Tensor,
    n_heads: int,
    n_groups: int,
    *,
    layout: str = "b t (h d) -> b h t d",
    spread: str = "b g t d -> b (g n) t d",
    order: tuple[int, int, int] = (0, 1, 2),
) -> Split:
    """Cut and spread; the keywords are what a learner may get wrong."""
    d_head = x.shape[-1] // (n_heads + 2 * n_groups)
    widths = [n_heads * d_head, n_groups * d_head, n_groups * d_head]
    queries, *others = x.split(widths, dim=-1)
    heads = [rearrange(queries, layout, h=n_heads)]
    for part in others:
        groups = rearrange(part, layout, h=n_groups)
        heads.append(repeat(groups, spread, n=n_heads // n_groups))
    return tuple(heads[i] for i in order)


def cut_as(**change: Any) -> Any:
    return lambda x, n_heads, n_groups: cut(x, n_heads, n_groups, **change)


def not_spread(x: Tensor, n_heads: int, n_groups: int) -> Split:
    queries, keys, values = cut(x, n_heads, n_groups)
    step = n_heads // n_groups
    return queries, keys[:, ::step], values[:, ::step]


def counted_anew(x: Tensor, n_heads: int, n_groups: int) -> Split:
    batch, token, _ = x.shape
    d_head = x.shape[-1] // (n_heads + 2 * n_groups)
    parts = x.split([n * d_head for n in (n_heads, n_groups, n_groups)], dim=-1)
    made = [
        part.reshape(batch, n, token, d_head)
        for part, n in zip(parts, (n_heads, n_groups, n_groups))
    ]
    share = n_heads // n_groups
    return made[0], *(part.repeat_interleave(share, dim=1) for part in made[1:])


def whole_counted_anew(x: Tensor, n_heads: int, n_groups: int) -> Split:
    batch, token, _ = x.shape
    blocks = x.reshape(batch, n_heads + 2 * n_groups, token, -1)
    queries, *others = blocks.split([n_heads, n_groups, n_groups], dim=1)
    share = n_heads // n_groups
    return queries, *(part.repeat_interleave(share, dim=1) for part in others)


def in_another_order(order: str) -> Any:
    """Read the blocks as if they lay in another order."""

    def wrong(x: Tensor, n_heads: int, n_groups: int) -> Split:
        blocks = rearrange(x, "b t (h d) -> b h t d", h=n_heads + 2 * n_groups)
        share = n_heads // n_groups
        if order == "pairs":
            queries, others = blocks[:, :n_heads], blocks[:, n_heads:]
            keys, values = others[:, ::2], others[:, 1::2]
        else:
            keys, queries, values = blocks.split([n_groups, n_heads, n_groups], dim=1)
        return queries, *(y.repeat_interleave(share, dim=1) for y in (keys, values))

    return wrong


def in_thirds(x: Tensor, n_heads: int, n_groups: int) -> Split:
    return tuple(
        rearrange(part, "b t (h d) -> b h t d", h=n_heads) for part in x.chunk(3, -1)
    )


def draw_tokens(rng: np.random.Generator) -> Args:
    batch, token, d_head = sizes(rng, 3, least=2)
    groups, share = (int(n) for n in rng.permutation([2, 3]))
    heads = groups * share
    x = normal(rng, batch, token, (heads + 2 * groups) * d_head)
    return x, heads, groups


def draw_ends(rng: np.random.Generator) -> list[Args]:
    """As many groups as heads, and a single group for all heads."""
    return [(normal(rng, 2, 5, 9 * 4), 3, 3), (normal(rng, 2, 4, 5 * 6), 3, 1)]


QUESTION = Question(
    id="10.1",
    title="Cut the features into heads that share keys",
    answer="split_heads",
    arguments=("x", "n_heads", "n_groups"),
    outputs=(
        Output("queries", "batch head token d_head"),
        Output("keys", "batch head token d_head"),
        Output("values", "batch head token d_head"),
    ),
    reference=split_heads,
    difficulty="medium",
    minutes=10,
    next_step="how wide is one head? Then cut the features into three parts, each part "
    "into heads, and give every head the keys of its group.",
    parts=(
        Part(
            "queries",
            1,
            lambda rng: [draw_tokens(rng) for _ in range(3)],
            view=lambda value: value[0],
        ),
        Part(
            "keys and values",
            2,
            lambda rng: [draw_tokens(rng) for _ in range(3)],
            view=lambda value: value[1:],
        ),
        Part(
            "one group, and as many as heads",
            1,
            draw_ends,
            only_failure_hint="right in between, wrong for a single group or for as "
            "many groups as heads: then nothing, or everything, is shared",
        ),
    ),
    mistakes=(
        Mistake(
            "view_without_transpose",
            "the shape is right, the numbers are not: a reshape only counts them anew, "
            "so that a head gets pieces of the sentence; axes have to change places",
            counted_anew,
        ),
        Mistake(
            "dealt_out",
            "the features are dealt out to the heads in turn; they lie in blocks: the "
            "first d_head features all belong to the first head",
            cut_as(layout="b t (d h) -> b h t d"),
        ),
        Mistake(
            "heads_after_tokens",
            "the features are cut rightly, but the head axis still stands behind the "
            "tokens: attention would then run over heads; bring it in front of them",
            cut_as(layout="b t (h d) -> b t h d", spread="b t g d -> b t (g n) d"),
        ),
        Mistake(
            "heads_before_batch",
            "the head axis stands in front of the batch; the course's order is batch, "
            "head, token, features",
            cut_as(layout="b t (h d) -> h b t d", spread="g b t d -> (g n) b t d"),
        ),
        Mistake(
            "features_before_tokens",
            "tokens and features have changed places within a head: rows are tokens, "
            "the features of a token stay its last axis",
            cut_as(layout="b t (h d) -> b h d t"),
        ),
        Mistake(
            "groups_in_turn",
            "the groups take turns: head 1 gets group 1, head 2 gets group 2. The "
            "heads of a group are neighbours: the first ones share the first group",
            cut_as(spread="b g t d -> b (n g) t d"),
        ),
        Mistake(
            "not_spread",
            "there are keys and values for each group, but every *head* is to have "
            "its own copy: repeat each group for the heads that share it",
            not_spread,
        ),
        Mistake(
            "tokens_repeated",
            "the copies stand along the tokens: each *head* gets a copy, so it is the "
            "head axis that grows",
            cut_as(spread="b g t d -> b g (t n) d"),
        ),
        Mistake(
            "features_repeated",
            "the copies stand along the features: each *head* gets a copy, so it is "
            "the head axis that grows",
            cut_as(spread="b g t d -> b g t (n d)"),
        ),
        Mistake(
            "sentence_repeated",
            "the copies stand along the tokens, one sentence after the other: each "
            "*head* gets a copy, so it is the head axis that grows",
            cut_as(spread="b g t d -> b g (n t) d"),
        ),
        Mistake(
            "keys_and_values_exchanged",
            "keys and values have changed places: the features come as queries, keys, "
            "values",
            cut_as(order=(0, 2, 1)),
        ),
        Mistake(
            "whole_counted_anew",
            "the features are counted anew by one reshape to (batch, head, token, …), "
            "so that a head gets pieces of the sentence; axes have to change places",
            whole_counted_anew,
        ),
        Mistake(
            "in_pairs",
            "keys and values are read in pairs, group by group: all keys come first, "
            "then all values",
            in_another_order("pairs"),
        ),
        Mistake(
            "keys_first",
            "the first features are read as keys: queries come first, then keys, then "
            "values",
            in_another_order("keys first"),
        ),
        Mistake(
            "in_thirds",
            "the features are cut into three equal parts: with fewer groups than heads "
            "the keys and the values are narrower than the queries",
            in_thirds,
        ),
        Mistake(
            "first_group_for_all",
            "all heads get the first group's keys and values: each group serves its "
            "own heads",
            lambda x, h, g: tuple(
                part if i == 0 else part[:, :1].expand_as(part)
                for i, part in enumerate(cut(x, h, g))
            ),
        ),
        Mistake(
            "repeated_by_groups",
            "each group is repeated as often as there are groups: it serves "
            "n_heads / n_groups heads, and needs as many copies",
            lambda x, h, g: tuple(
                part if i == 0 else part[:, :: h // g].repeat_interleave(g, dim=1)
                for i, part in enumerate(cut(x, h, g))
            ),
        ),
    ),
    packaged=("split_heads",),
)


# ----------------------------------------------------------------------- specimens


def by_slices(x, n_heads, n_groups, group_of=lambda head, h, g: head * g // h):
    width = x.shape[-1] // (n_heads + 2 * n_groups)
    blocks = [x[..., i * width : (i + 1) * width] for i in range(x.shape[-1] // width)]
    groups = [group_of(head, n_heads, n_groups) for head in range(n_heads)]
    return (
        torch.stack(blocks[:n_heads], 1),
        torch.stack([blocks[n_heads + g] for g in groups], 1),
        torch.stack([blocks[n_heads + n_groups + g] for g in groups], 1),
    )


def of_one_table(x, n_heads, n_groups):
    """All heads at once, then an index that says who reads which."""
    cut_once = x.unflatten(-1, (n_heads + 2 * n_groups, -1)).transpose(1, 2)
    own = torch.arange(n_groups).repeat_interleave(n_heads // n_groups)
    keys = cut_once[:, n_heads + own]
    return [cut_once[:, :n_heads], keys, cut_once[:, n_heads + n_groups + own].double()]


RIGHT = [by_slices, of_one_table]
WRONG = [
    (
        "repeated_by_groups",
        lambda x, h, g: [
            part
            if i == 0
            else torch.stack([part[:, :: h // g]] * g, dim=2).flatten(1, 2)
            for i, part in enumerate(by_slices(x, h, g))
        ],
    ),
    (
        "features_repeated",
        lambda x, h, g: [
            part if i == 0 else torch.cat([part[:, :: h // g]] * (h // g), dim=-1)
            for i, part in enumerate(by_slices(x, h, g))
        ],
    ),
    (
        "tokens_repeated",
        lambda x, h, g: [
            part if i == 0 else part[:, :: h // g].repeat_interleave(h // g, dim=2)
            for i, part in enumerate(by_slices(x, h, g))
        ],
    ),
    ("groups_in_turn", lambda x, h, g: by_slices(x, h, g, lambda i, h, g: i % g)),
    ("first_group_for_all", lambda x, h, g: by_slices(x, h, g, lambda i, h, g: 0)),
    (
        "keys_and_values_exchanged",
        lambda x, h, g: tuple(by_slices(x, h, g)[i] for i in (0, 2, 1)),
    ),
    (
        "heads_after_tokens",
        lambda x, h, g: [part.transpose(1, 2) for part in by_slices(x, h, g)],
    ),
    (
        "heads_before_batch",
        lambda x, h, g: [part.transpose(0, 1) for part in by_slices(x, h, g)],
    ),
    (
        "features_before_tokens",
        lambda x, h, g: [part.mT for part in by_slices(x, h, g)],
    ),
]
PARTIAL = [(1, not_spread)]
