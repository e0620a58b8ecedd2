"""`additive_scores`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def additive_scores(s: Tensor, h: Tensor, w: Tensor, u: Tensor, v: Tensor) -> Tensor:
    return torch.tanh((s @ w)[:, None] + h @ u) @ v


def draw_score(rng: np.random.Generator) -> Args:
    batch, source, d_state, d_annotation, d_score = sizes(rng, 5)
    return (
        normal(rng, batch, d_state),
        normal(rng, batch, source, d_annotation),
        normal(rng, d_state, d_score) * np.float32(0.4),
        normal(rng, d_annotation, d_score) * np.float32(0.4),
        normal(rng, d_score),
    )


def draw_long(rng: np.random.Generator) -> list[Args]:
    """The same call for three lengths of the source and three sizes of the batch."""
    args = [
        (normal(rng, b, 3), normal(rng, b, n, 4), normal(rng, 3, 6), normal(rng, 4, 6))
        for b, n in ((2, 2), (3, 40), (40, 3))
    ]
    return [(*four, normal(rng, 6)) for four in args]


QUESTION = Question(
    id="03.1",
    title="The additive score",
    answer="additive_scores",
    arguments=("decoder_state", "encoder_states", "w", "u", "v"),
    outputs=(Output("scores", "source"),),
    reference=additive_scores,
    difficulty="medium",
    minutes=8,
    next_step="project the state and every annotation to d_score, add, tanh, times v.",
    parts=(
        Part("one batch", 1, lambda rng: [draw_score(rng)]),
        Part("other sizes", 1, lambda rng: [draw_score(rng) for _ in range(2)]),
        Part("no loop", 1, draw_long, constant_steps=True),
    ),
    mistakes=(
        Mistake(
            "tanh_after_v",
            "the tanh comes after v: then v acts on a plain sum, and state and "
            "annotation no longer meet inside anything; first tanh, then v",
            lambda s, h, w, u, v: torch.tanh(((s @ w)[:, None] + h @ u) @ v),
        ),
        Mistake(
            "no_tanh",
            "there is no tanh: a sum of two linear terms adds the same number of the "
            "state to every annotation's score, and the softmax can't see it",
            lambda s, h, w, u, v: ((s @ w)[:, None] + h @ u) @ v,
        ),
        Mistake(
            "two_tanhs",
            "state and annotation go through a tanh of their own: so the score is "
            "again a sum of two parts; they must be added before the tanh",
            lambda s, h, w, u, v: (torch.tanh(s @ w)[:, None] + torch.tanh(h @ u)) @ v,
        ),
        Mistake(
            "weights_already",
            "these are weights: they sum to one. The scores were asked for, before "
            "the softmax",
            lambda *args: torch.softmax(additive_scores(*args), dim=-1),
            lambda args, value: np.allclose(value.sum(-1), 1, atol=1e-3),
        ),
        Mistake(
            "multiplied",
            "the two projections are multiplied: that is another family of scores; "
            "the additive one adds them",
            lambda s, h, w, u, v: torch.tanh((s @ w)[:, None] * (h @ u)) @ v,
        ),
        Mistake(
            "mean_for_v",
            "the score is averaged over d_score (or divided by it): v alone decides "
            "how much each hidden number counts",
            lambda *args: additive_scores(*args) / len(args[4]),
        ),
        Mistake(
            "no_v",
            "the hidden numbers are simply added up: v is missing, which says how much "
            "each of them counts, and with which sign",
            lambda s, h, w, u, v: torch.tanh((s @ w)[:, None] + h @ u).sum(-1),
        ),
        Mistake(
            "first_example_for_all",
            "every example of the batch is scored against the state of the first one: "
            "the batch axis of the state must stay where it is",
            lambda s, h, w, u, v: torch.tanh((s[:1] @ w)[:, None] + h @ u) @ v,
        ),
        Mistake(
            "no_source_axis",
            "the state has no source axis: (batch, d_score) can't be added to (batch, "
            "source, d_score); give it one of size 1",
            lambda s, h, w, u, v: torch.tanh(s @ w + h @ u) @ v,
        ),
        Mistake(
            "state_left_out",
            "the decoder's state plays no part: scores that don't ask are the same at "
            "every step",
            lambda s, h, w, u, v: torch.tanh(h @ u) @ v,
        ),
    ),
    packaged=("additive_scores",),
)


# ----------------------------------------------------------------------- specimens


def by_loop(inside):
    """Score every example and annotation by itself."""

    def scores(s, h, w, u, v):
        rows = [
            [inside(s[b] @ w, h[b, j] @ u, v) for j in range(h.shape[1])]
            for b in range(len(s))
        ]
        return torch.tensor(rows)

    return scores


def scored(s, h, w, u, v):
    hidden = torch.einsum("bi,io->bo", s, w).unsqueeze(1) + torch.einsum(
        "bji,io->bjo", h, u
    )
    return (hidden.tanh() * v).sum(-1)


def weighed(scores, allowed=None):
    powers = scores.exp() if allowed is None else scores.exp() * allowed
    return powers / powers.sum(1, keepdim=True)


def column_by_column(s, h, w, u, v):
    columns = []
    for j in range(h.shape[1]):
        columns.append(torch.tanh(s @ w + h[:, j] @ u) @ v)
    return torch.stack(columns, 1)


RIGHT = [scored, lambda s, h, w, u, v: (h @ u + (s @ w).unsqueeze(1)).tanh() @ v]
WRONG = [
    ("tanh_after_v", by_loop(lambda q, k, v: math.tanh(v @ (q + k)))),
    ("no_tanh", by_loop(lambda q, k, v: v @ (q + k))),
    ("two_tanhs", by_loop(lambda q, k, v: v @ q.tanh() + v @ k.tanh())),
    ("multiplied", by_loop(lambda q, k, v: v @ (q * k).tanh())),
    ("mean_for_v", by_loop(lambda q, k, v: (v * (q + k).tanh()).mean())),
    ("no_v", by_loop(lambda q, k, v: (q + k).tanh().sum())),
    ("state_left_out", by_loop(lambda q, k, v: v @ k.tanh())),
    ("weights_already", lambda *args: weighed(scored(*args))),
    ("weights_already", lambda s, h, w, u, v: weighed(h.sum(-1))),
    ("first_example_for_all", lambda s, *rest: scored(s[0].expand_as(s), *rest)),
    ("loop", column_by_column),
]
PARTIAL = [(2, column_by_column)]
