"""`one_step`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def one_step(queries: Tensor, keys: Tensor, values: Tensor, lengths: Tensor) -> Tensor:
    return step(queries, keys, values, lengths)


def step(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    lengths: Tensor,
    *,
    in_turn: bool = False,
    scale: float | None = None,
    kept: Any = lambda place, lengths, n: place < lengths,
    dim: int = -1,
) -> Tensor:
    """The step, or with one thing done otherwise."""
    share = queries.shape[1] // keys.shape[1]
    spread = (1, share, 1, 1) if in_turn else None
    keys, values = (
        x.repeat(spread) if spread else x.repeat_interleave(share, dim=1)
        for x in (keys, values)
    )
    scores = (keys @ queries[..., None])[..., 0]  # (batch, head, key)
    scores = scores / (keys.shape[-1] ** 0.5 if scale is None else scale)
    place = torch.arange(keys.shape[2])
    seen = kept(place, lengths[:, None, None], keys.shape[2])
    weights = torch.softmax(scores.masked_fill(~seen, -1e9), dim=dim)
    return (weights[..., None] * values).sum(dim=-2)


def done_as(**change: Any) -> Any:
    return lambda q, k, v, n: step(q, k, v, n, **change)


def scaled_by_all(q: Tensor, k: Tensor, v: Tensor, n: Tensor) -> Tensor:
    return step(q, k, v, n, scale=(q.shape[1] * q.shape[2]) ** 0.5)


def group_average(q: Tensor, k: Tensor, v: Tensor, n: Tensor) -> Tensor:
    groups = q.unflatten(1, (k.shape[1], -1))
    return step(
        groups.mean(dim=2, keepdim=True).expand_as(groups).flatten(1, 2), k, v, n
    )


def first_for_all(q: Tensor, k: Tensor, v: Tensor, n: Tensor) -> Tensor:
    return step(q, k[:, :1], v[:, :1], n)


def zeros_as_keys(q: Tensor, k: Tensor, v: Tensor, n: Tensor) -> Tensor:
    seen = (torch.arange(k.shape[2]) < n[:, None])[:, None, :, None]
    return step(q, k * seen, v * seen, torch.full_like(n, k.shape[2]))


def not_renormalised(q: Tensor, k: Tensor, v: Tensor, n: Tensor) -> Tensor:
    seen = (torch.arange(k.shape[2]) < n[:, None])[:, None, :, None]
    return step(q, k, v * seen, torch.full_like(n, k.shape[2]))


def draw_cache(rng: np.random.Generator, full: bool = False) -> Args:
    batch, key, d_head = sizes(rng, 3, least=3)
    groups, share = (int(n) for n in rng.permutation([2, 3]))
    key = key + 2
    lengths = rng.integers(1, key, batch)
    lengths[0], lengths[1] = key - 1, 2
    if full:
        lengths[:] = key
    return (
        normal(rng, batch, groups * share, d_head),
        normal(rng, batch, groups, key, d_head),
        normal(rng, batch, groups, key, d_head),
        lengths,
    )


QUESTION = Question(
    id="16.3",
    title="Grouped queries read a cache",
    answer="one_step",
    arguments=("queries", "keys", "values", "lengths"),
    outputs=(Output("context", "batch head d_head"),),
    reference=one_step,
    primitives=True,
    difficulty="medium",
    minutes=14,
    next_step="give each head the keys of its group, then score, mask by length, "
    "softmax over the keys, average.",
    parts=(
        Part("full caches", 2, lambda rng: [draw_cache(rng, full=True) for _ in "ab"]),
        Part(
            "caches of several lengths",
            2,
            lambda rng: [draw_cache(rng) for _ in range(3)],
            only_failure_hint="right when every cache is full: what lies behind a "
            "row's length is left over from an earlier text and must count for nothing",
        ),
    ),
    mistakes=(
        Mistake(
            "not_renormalised",
            "the softmax runs over the whole cache, and what lies behind the length "
            "is set to zero afterwards: the weights that are left no longer sum to "
            "one",
            not_renormalised,
        ),
        Mistake(
            "groups_in_turn",
            "the key-value heads take turns: neighbouring heads of queries share one, "
            "the first heads the first",
            done_as(in_turn=True),
        ),
        Mistake(
            "first_for_all",
            "all heads read the first key-value head: each group has its own",
            first_for_all,
        ),
        Mistake(
            "queries_averaged",
            "the queries of a group are averaged: they share keys and values, but each "
            "head asks for itself",
            group_average,
        ),
        Mistake(
            "no_scale",
            "the scores are not scaled: divide by the root of the head's width",
            done_as(scale=1.0),
        ),
        Mistake(
            "scale_whole_width",
            "the scale uses the width of all heads together: a score is a dot product "
            "within one head",
            scaled_by_all,
        ),
        Mistake(
            "softmax_over_heads",
            "the softmax runs over the heads: it runs over the keys",
            done_as(dim=1),
        ),
        Mistake(
            "lengths_ignored",
            "what lies behind a row's length gets weight, too: it is left over from an "
            "earlier text",
            done_as(kept=lambda place, n, m: place < m + 0 * n),
        ),
        Mistake(
            "filled_from_the_right",
            "the last keys of a row are read as its text: a cache is filled from the "
            "left, and the rest is what is left over",
            done_as(kept=lambda place, n, m: place >= m - n),
        ),
        Mistake(
            "one_too_many",
            "one key too many is read: a row of length 3 has keys 0, 1 and 2",
            done_as(kept=lambda place, n, m: place <= n),
        ),
        Mistake(
            "one_too_few",
            "one key too few is read: the last one of a row is the token's own",
            done_as(kept=lambda place, n, m: place < (n - 1).clamp(min=1)),
        ),
        Mistake(
            "zeros_as_keys",
            "keys behind the length are set to zero but not masked: a score of 0 still "
            "gets weight in the softmax",
            zeros_as_keys,
        ),
    ),
    packaged=("grouped_attention",),
)


# ----------------------------------------------------------------------- specimens


def by_einsum(queries, keys, values, lengths):
    grouped = queries.unflatten(1, (keys.shape[1], -1))
    scores = torch.einsum("bgnd,bgkd->bgnk", grouped, keys) / keys.size(-1) ** 0.5
    hidden = torch.arange(keys.size(2)) >= lengths[:, None]
    scores = scores.masked_fill(hidden[:, None, None], -torch.inf)
    return torch.einsum("bgnk,bgkd->bgnd", scores.softmax(-1), values).flatten(1, 2)


def row_by_row(queries, keys, values, lengths, group=lambda h, n, m: h * m // n):
    rows = []
    for query, key, value, n in zip(queries, keys, values, lengths.tolist()):
        heads = []
        for h in range(len(query)):
            g = group(h, len(query), len(key))
            scores = key[g, :n] @ query[h] / query.shape[-1] ** 0.5
            heads.append(torch.softmax(scores, 0) @ value[g, :n])
        rows.append(torch.stack(heads))
    return torch.stack(rows)


RIGHT = [by_einsum, row_by_row]
WRONG = [
    (
        "groups_in_turn",
        lambda q, k, v, n: row_by_row(q, k, v, n, lambda h, a, b: h % b),
    ),
    ("first_for_all", lambda q, k, v, n: row_by_row(q, k, v, n, lambda h, a, b: 0)),
    ("lengths_ignored", lambda q, k, v, n: by_einsum(q, k, v, 0 * n + k.shape[2])),
    ("one_too_many", lambda q, k, v, n: row_by_row(q, k, v, n + 1)),
    ("no_scale", lambda q, k, v, n: by_einsum(q * q.shape[-1] ** 0.5, k, v, n)),
]
PARTIAL = [(2, lambda q, k, v, n: by_einsum(q, k, v, 0 * n + k.shape[2]))]
