"""`left_padded`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import first, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def parts_of(lengths: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    columns = torch.arange(n)
    padding = n - lengths
    real = columns >= padding[:, None]
    causal = columns[None, :] <= columns[:, None]
    return columns, padding, real, causal


def left_padded(lengths: Tensor, n: int) -> tuple[Tensor, Tensor]:
    columns, padding, real, causal = parts_of(lengths, n)
    positions = (columns - padding[:, None]).clamp(min=0)
    return positions, causal & real[:, None, :] & real[:, :, None]


def by_column(lengths: Tensor, n: int) -> tuple[Tensor, Tensor]:
    return torch.arange(n).expand(len(lengths), n), left_padded(lengths, n)[1]


def padding_seen(lengths: Tensor, n: int) -> tuple[Tensor, Tensor]:
    _, _, real, causal = parts_of(lengths, n)
    return left_padded(lengths, n)[0], causal & real[:, :, None]


def future_seen(lengths: Tensor, n: int) -> tuple[Tensor, Tensor]:
    _, _, real, _ = parts_of(lengths, n)
    return left_padded(lengths, n)[0], real[:, None, :] & real[:, :, None]


def on_the_right(lengths: Tensor, n: int) -> tuple[Tensor, Tensor]:
    columns = torch.arange(n)
    real = columns < lengths[:, None]
    causal = columns[None, :] <= columns[:, None]
    positions = torch.where(real, columns, 0)
    return positions, causal & real[:, None, :] & real[:, :, None]


def from_one(lengths: Tensor, n: int) -> tuple[Tensor, Tensor]:
    _, mask = left_padded(lengths, n)
    return (torch.arange(n) - (n - lengths)[:, None] + 1).clamp(min=0), mask


def blocked(lengths: Tensor, n: int) -> tuple[Tensor, Tensor]:
    positions, mask = left_padded(lengths, n)
    return positions, ~mask


def padding_ignored(lengths: Tensor, n: int) -> tuple[Tensor, Tensor]:
    _, _, _, causal = parts_of(lengths, n)
    return left_padded(lengths, n)[0], causal.expand(len(lengths), n, n)


def draw(rng: np.random.Generator, spare: int = 0) -> Args:
    batch, n = sizes(rng, 2, least=4)
    lengths = rng.integers(1, n, size=batch)
    lengths[0] = n  # one row without padding, unless there are spare columns
    return lengths.astype(np.int64), n + spare


def cases(rng: np.random.Generator) -> list[Args]:
    return [draw(rng, spare) for spare in (0, 0, 2)]


QUESTION = Question(
    id="19.2",
    title="A batch that is padded on the left",
    answer="left_padded",
    arguments=("lengths", "n"),
    outputs=(Output("positions", "batch token"), Output("mask", "batch query key")),
    reference=left_padded,
    difficulty="medium",
    minutes=12,
    next_step="how many columns of a row are padding? Count positions from there.",
    parts=(
        Part("positions", 2, cases, view=first),
        Part("mask", 2, cases, view=second),
    ),
    mistakes=(
        Mistake(
            "by_column",
            "positions are those of the columns: the first real token of each row has "
            "position 0, however much padding stands before it",
            by_column,
        ),
        Mistake(
            "padding_seen",
            "real tokens may see the padding before them: a key in the padding is "
            "visible to nobody",
            padding_seen,
        ),
        Mistake(
            "padding_ignored",
            "the mask is causal and nothing else: a key in the padding is visible to "
            "nobody, and a query there sees nothing",
            padding_ignored,
        ),
        Mistake(
            "longest_row",
            "there are as many columns as the longest row has tokens: there are `n`, "
            "and even the longest may have padding before it",
            lambda lengths, n: left_padded(lengths, int(lengths.max())),
        ),
        Mistake(
            "future_seen",
            "a token sees tokens that come after it: the mask must be causal, too",
            future_seen,
        ),
        Mistake(
            "on_the_right",
            "the padding is on the right: the last tokens of all rows should stand in "
            "the last column, where writing goes on",
            on_the_right,
        ),
        Mistake(
            "from_one",
            "positions start at 1: the first real token has position 0",
            from_one,
        ),
        Mistake(
            "blocked",
            "the mask is turned round: True means may attend",
            blocked,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_loop(place, sees):
    def answer(lengths, n):
        rows = [int(length) for length in lengths]
        positions = [[place(t, n - m, m) for t in range(n)] for m in rows]
        mask = [
            [[sees(i, j, n - m, m) for j in range(n)] for i in range(n)] for m in rows
        ]
        return torch.tensor(positions), torch.tensor(mask)

    return answer


def at(t, before, length):
    return max(t - before, 0)


def may(i, j, before, length):
    return before <= j <= i


RIGHT = [by_loop(at, may)]
WRONG = [
    ("by_column", by_loop(lambda t, before, length: t, may)),
    (
        "padding_seen",
        by_loop(at, lambda i, j, before, length: j <= i and i >= before),
    ),
    (
        "future_seen",
        by_loop(at, lambda i, j, before, length: min(i, j) >= before),
    ),
    (
        "on_the_right",
        by_loop(
            lambda t, before, length: t if t < length else 0,
            lambda i, j, before, length: j <= i < length,
        ),
    ),
    (
        "from_one",
        by_loop(lambda t, before, length: max(t - before + 1, 0), may),
    ),
    ("blocked", by_loop(at, lambda *where: not may(*where))),
    (
        "padding_ignored",
        by_loop(at, lambda i, j, before, length: j <= i),
    ),
    ("longest_row", lambda lengths, n: by_loop(at, may)(lengths, max(lengths))),
]
