"""`mixed_stream`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def mixed_stream(
    x: Tensor,
    gate: Tensor,
    share: float,
    keep: Tensor,
    again: Tensor,
    writes: Tensor,
    back: float,
) -> Tensor:
    return stream(x, gate, share, keep, again, writes, back)


def smeared(x: Tensor, gate: Tensor, share: float) -> Tensor:
    opened = share * torch.sigmoid(x[1:, : len(gate)] @ gate)
    return torch.cat([x[:1], x[1:] + opened[:, None] * x[:-1]])


def in_turn(x: Tensor, gate: Tensor, share: float) -> Tensor:
    rows = [x[0]]
    for row in x[1:]:
        opened = share * torch.sigmoid(row[: len(gate)] @ gate)
        rows.append(row + opened * rows[-1])
    return torch.stack(rows)


def asked_before(x: Tensor, gate: Tensor, share: float) -> Tensor:
    opened = share * torch.sigmoid(x[:-1, : len(gate)] @ gate)
    return torch.cat([x[:1], x[1:] + opened[:, None] * x[:-1]])


def no_curve(x: Tensor, gate: Tensor, share: float) -> Tensor:
    opened = share * (x[1:, : len(gate)] @ gate)
    return torch.cat([x[:1], x[1:] + opened[:, None] * x[:-1]])


def from_next(x: Tensor, gate: Tensor, share: float) -> Tensor:
    opened = share * torch.sigmoid(x[:-1, : len(gate)] @ gate)
    return torch.cat([x[:-1] + opened[:, None] * x[1:], x[-1:]])


def stream(
    x: Tensor,
    gate: Tensor,
    share: float,
    keep: Tensor,
    again: Tensor,
    writes: Tensor,
    back: float,
    *,
    smear: Any = smeared,
    first_of: Any = lambda raw, x: x,
    step: Any = lambda x, first, k, a, w: k * x + a * first + w,
    halfway: Any = lambda n: n // 2,
) -> Tensor:
    """The last stream, or with one thing done otherwise."""
    raw, x = x, smear(x, gate, share)
    first, half, n = first_of(raw, x), x, len(writes)
    for layer in range(n):
        x = step(x, first, keep[layer], again[layer], writes[layer])
        if layer + 1 == halfway(n):
            half = x
    return x - back * half


def done_as(**change: Any) -> Any:
    return lambda *args: stream(*args, **change)


def draw(rng: np.random.Generator, n_layers: int) -> Args:
    token, d_model = sizes(rng, 2, least=4)
    share, back = (float(s) for s in rng.uniform(0.3, 0.8, size=2))
    return (
        normal(rng, token, d_model),
        normal(rng, d_model - 2),
        share,
        rng.uniform(0.6, 1.4, size=n_layers).astype(np.float32),
        rng.uniform(0.2, 0.6, size=n_layers).astype(np.float32),
        normal(rng, n_layers, token, d_model),
        back,
    )


QUESTION = Question(
    id="16.10",
    title="A stream that is mixed",
    answer="mixed_stream",
    arguments=("x", "gate", "share", "keep", "again", "writes", "back"),
    outputs=(Output("stream", "token d_model"),),
    reference=mixed_stream,
    primitives=True,
    allowed=("sigmoid",),
    difficulty="medium",
    minutes=12,
    next_step="smear first; that stream is x0; then a loop over the layers that "
    "remembers the stream after half of them.",
    parts=(
        Part("two layers", 2, lambda rng: [draw(rng, 2) for _ in range(3)]),
        Part(
            "more layers",
            1,
            lambda rng: [draw(rng, 4), draw(rng, 6)],
            only_failure_hint="right for two layers: with more of them, which "
            "stream is the one after the first half?",
        ),
    ),
    mistakes=(
        Mistake(
            "smeared_in_turn",
            "a token gets a share of the one before as that was *after* smearing: so "
            "the first token runs through all; take the row as it came",
            done_as(smear=in_turn),
        ),
        Mistake(
            "asked_before",
            "the gate reads the token before: the token that receives opens it",
            done_as(smear=asked_before),
        ),
        Mistake(
            "no_sigmoid",
            "the gate is not between 0 and 1: the logistic function is missing",
            done_as(smear=no_curve),
        ),
        Mistake(
            "from_the_next",
            "a token gets a share of the *next* one: that is what it has to predict",
            done_as(smear=from_next),
        ),
        Mistake(
            "no_smear",
            "nothing is smeared: each token gets a share of the one before it",
            done_as(smear=lambda x, gate, share: x),
        ),
        Mistake(
            "first_unsmeared",
            "what comes back before each block is the input: it is the stream after "
            "smearing",
            done_as(first_of=lambda raw, x: raw),
        ),
        Mistake(
            "mixed_after",
            "the stream is scaled after the block has written: scale and mix first, "
            "then add what the block writes",
            done_as(step=lambda x, first, k, a, w: k * (x + w) + a * first),
        ),
        Mistake(
            "not_mixed",
            "the first stream doesn't come back: `again` of it is added before each "
            "block",
            done_as(step=lambda x, first, k, a, w: k * x + w),
        ),
        Mistake(
            "not_scaled",
            "the stream isn't scaled: before each block it is multiplied by `keep`",
            done_as(step=lambda x, first, k, a, w: x + a * first + w),
        ),
        Mistake(
            "half_late",
            "what is taken back comes from one layer too late: it is the stream right "
            "after the first half of the layers",
            done_as(halfway=lambda n: n // 2 + 1),
        ),
        Mistake(
            "first_taken_back",
            "the stream before all layers is taken back: it is the one after the first "
            "half of them",
            done_as(halfway=lambda n: 0),
        ),
        Mistake(
            "added_back",
            "the share of the middle stream is added: it is taken away",
            lambda x, g, s, k, a, w, back: stream(x, g, s, k, a, w, -back),
        ),
        Mistake(
            "not_taken_back",
            "nothing is taken back at the end",
            lambda x, g, s, k, a, w, back: stream(x, g, s, k, a, w, 0.0),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def row_by_row(late=0, sign=1, fresh=True, mixed=True):
    def answer(x, gate, share, keep, again, writes, back):
        rows = [x[0]]
        for before, row in pairwise(x):
            z = sum(a * b for a, b in zip(row, gate))
            rows.append(row + share / (1 + torch.exp(-z)) * before)
        now = begin = torch.stack(rows)
        begin = begin if fresh else x
        seen = [now]
        for k, a, w in zip(keep, again, writes):
            now = k * now + (a * begin if mixed else 0) + w
            seen.append(now)
        return now - sign * back * seen[len(keep) // 2 + late]

    return answer


RIGHT = [row_by_row()]
WRONG = [
    ("half_late", row_by_row(late=1)),
    ("added_back", row_by_row(sign=-1)),
    ("first_unsmeared", row_by_row(fresh=False)),
    ("not_mixed", row_by_row(mixed=False)),
]
