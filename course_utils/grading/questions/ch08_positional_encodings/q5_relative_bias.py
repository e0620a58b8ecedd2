"""`relative_bias`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def relative_bias(
    table: Tensor, query_positions: Tensor, key_positions: Tensor
) -> Tensor:
    most = table.shape[1] // 2
    distance = query_positions[:, None] - key_positions
    return table[:, distance.clamp(-most, most) + most]


def biased(entry: Callable[[Tensor, int], Tensor]) -> Any:
    """The bias by other entries: a function of the distances and of m."""

    def wrong(table: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        return table[:, entry(queries[:, None] - keys, table.shape[1] // 2)]

    return wrong


def cut_at(distance: Tensor, m: int) -> Tensor:
    return distance.clamp(-m, m)


def counted_anew(last_at_last: bool) -> Any:
    """Take the index in a list for the position in the text."""

    def wrong(table: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        ahead = len(keys) - len(queries) if last_at_last else 0
        return relative_bias(
            table, torch.arange(len(queries)) + ahead, torch.arange(len(keys))
        )

    return wrong


def draw_places(rng: np.random.Generator, count: int, least: int = 0) -> np.ndarray:
    """Places with gaps between them, and in any order."""
    return rng.permutation(least + np.arange(2 * count))[:count].astype(np.int64)


def draw_in_order(rng: np.random.Generator) -> list[Args]:
    return [
        (normal(rng, h, 2 * m + 1), np.arange(n) + 4, np.arange(n) + 4)
        for h, m, n in ((2, 3, 7), (3, 2, 5))
    ]


def draw_scattered(rng: np.random.Generator) -> list[Args]:
    return [
        (normal(rng, h, 2 * m + 1), draw_places(rng, q), draw_places(rng, k, least=1))
        for h, m, q, k in ((3, 2, 4, 6), (2, 4, 3, 8), (4, 3, 5, 2))
    ]


QUESTION = Question(
    id="08.5",
    title="A relative bias, for any positions",
    answer="relative_bias",
    arguments=("table", "query_positions", "key_positions"),
    outputs=(Output("bias", "head query key"),),
    reference=relative_bias,
    difficulty="medium",
    minutes=10,
    next_step="make the table of distances, cut it off, and look each one up.",
    parts=(
        Part("one after the other", 1, draw_in_order),
        Part(
            "any positions",
            2,
            draw_scattered,
            only_failure_hint="right while tokens follow each other, wrong when there "
            "are gaps between them, or another order: use the positions that are given",
        ),
    ),
    mistakes=(
        Mistake(
            "m_is_the_width",
            "the table has 2m + 1 entries: m is taken twice too large, and every "
            "second distance shares its entry",
            biased(lambda distance, m: (cut_at(distance, 2 * m) + 2 * m) // 2),
        ),
        Mistake(
            "counted_anew",
            "this is the chapter's bias, for positions counted from 0: here they are "
            "given, with gaps and in any order",
            counted_anew(True),
        ),
        Mistake(
            "counted_from_the_start",
            "the tokens are counted from 0, first query at first key: here their "
            "positions are given, with gaps and in any order",
            counted_anew(False),
        ),
        Mistake(
            "sign",
            "before and after are exchanged: the distance is the query's position "
            "minus the key's",
            biased(lambda distance, m: cut_at(-distance, m) + m),
        ),
        Mistake(
            "absolute",
            "a key ahead gets the same number as one equally far behind: the table "
            "has entries for both",
            biased(lambda distance, m: cut_at(distance.abs(), m) + m),
        ),
        Mistake(
            "ahead_is_zero",
            "all keys ahead get the entry of distance zero: they have entries of "
            "their own",
            biased(lambda distance, m: distance.clamp(0, m) + m),
        ),
        Mistake(
            "zero_at_the_left",
            "distance 0 takes the first entry of the table: the entries begin at −m, "
            "so that of distance 0 stands in the middle",
            biased(cut_at),
        ),
        Mistake(
            "cut_too_early",
            "the outermost entries of the table are never used: the cut comes one "
            "distance too early",
            biased(lambda distance, m: cut_at(distance, m - 1) + m),
        ),
        Mistake(
            "cut_after_the_shift",
            "the distances are cut off at m after m was added: those of keys behind "
            "the query all become the same",
            biased(lambda distance, m: (distance + m).clamp(0, m)),
        ),
        Mistake(
            "not_cut",
            "the distances are not cut off: beyond m there is no entry of the table, "
            "and a negative index counts from its end",
            biased(lambda distance, m: distance + m),
        ),
        Mistake(
            "wrapped",
            "distances beyond m begin again at the other side: they are to share the "
            "outermost number of their own side",
            biased(lambda distance, m: (distance + m) % (2 * m + 1)),
        ),
        Mistake(
            "heads_last",
            "the heads stand on the last axis: the bias is added to scores of the "
            "shape (head, query, key)",
            lambda table, q, k: relative_bias(table, q, k).permute(1, 2, 0),
        ),
        Mistake(
            "turned",
            "keys stand on the rows: rows are queries, columns are keys",
            lambda table, q, k: relative_bias(table, q, k).mT,
        ),
        Mistake(
            "one_head",
            "all heads got the numbers of the first head: each has its own row of the "
            "table",
            lambda table, q, k: relative_bias(table[:1].expand_as(table), q, k),
        ),
        Mistake(
            "far_is_nothing",
            "pairs further apart than m get no bias: they are to share the outermost "
            "number of their side",
            lambda table, q, k: (
                relative_bias(table, q, k)
                * ((q[:, None] - k).abs() <= table.shape[1] // 2)
            ),
        ),
        Mistake(
            "ahead_blocked",
            "keys ahead of the query are blocked: this bias is no mask, and the "
            "negative distances have numbers of their own in the table",
            lambda table, q, k: relative_bias(table, q, k).masked_fill(
                q[:, None] < k, -torch.inf
            ),
        ),
    ),
    packaged=("RelativeBias",),
)


# ----------------------------------------------------------------------- specimens


def bias_by_loop(entry):
    def answer(table, queries, keys):
        m = table.shape[1] // 2
        bias = torch.zeros(len(table), len(queries), len(keys))
        for i, q in enumerate(queries.tolist()):
            for j, k in enumerate(keys.tolist()):
                bias[:, i, j] = table[:, entry(q - k, m, i, j)]
        return bias

    return answer


def cut(distance, m):
    return max(-m, min(m, distance)) + m


def by_hot(table, queries, keys):
    """Choose entries by one-hot rows."""
    m = table.shape[1] // 2
    entries = torch.clamp(queries.reshape(-1, 1) - keys, min=-m, max=m) + m
    hot = torch.nn.functional.one_hot(entries, 2 * m + 1).to(table)
    return torch.einsum("qkn,hn->hqk", hot, table)


def in_numpy(table, queries, keys):
    m = (table.shape[1] - 1) // 2
    distance = np.subtract.outer(queries.numpy(), keys.numpy())
    return table.double().numpy()[:, np.clip(distance, -m, m) + m]


def widened(table, queries, keys):
    """A table wide enough for every distance, its ends repeated."""
    m, most = table.shape[1] // 2, 64
    left, right = (table[:, [i]].expand(-1, most - m) for i in (0, -1))
    wide = torch.cat([left, table, right], dim=1)
    return wide[:, queries[:, None] - keys[None] + most]


RIGHT = [bias_by_loop(lambda d, m, i, j: cut(d, m)), by_hot, in_numpy, widened]
WRONG = [
    (
        "far_is_nothing",
        lambda t, q, k: (
            torch.nn.functional.one_hot(
                (q[:, None] - k + t.shape[1] // 2).clamp(-1, t.shape[1]) + 1,
                t.shape[1] + 2,
            )[None, ..., 1:-1]
            .mul(t[:, None, None])
            .sum(-1)
        ),
    ),
    (
        "ahead_blocked",
        lambda t, q, k: by_hot(t, q, k) + torch.log((q[:, None] >= k).float()),
    ),
    ("counted_from_the_start", bias_by_loop(lambda d, m, i, j: cut(i - j, m))),
    ("counted_anew", lambda t, q, k: widened(t, *aligned(len(q), len(k)))),
    ("sign", bias_by_loop(lambda d, m, i, j: cut(-d, m))),
    ("sign", lambda table, q, k: by_hot(table, k, q).mT),
    ("absolute", bias_by_loop(lambda d, m, i, j: cut(abs(d), m))),
    ("ahead_is_zero", bias_by_loop(lambda d, m, i, j: cut(max(d, 0), m))),
    ("zero_at_the_left", bias_by_loop(lambda d, m, i, j: cut(d, m) - m)),
    ("heads_last", lambda *given: by_hot(*given).movedim(0, -1)),
]
PARTIAL = [(1, lambda t, q, k: widened(t, *aligned(len(q), len(k))))]


def aligned(n_queries, n_keys):
    """The places of the chapter: the last query stands at the last key."""
    return torch.arange(n_keys - n_queries, n_keys), torch.arange(n_keys)
