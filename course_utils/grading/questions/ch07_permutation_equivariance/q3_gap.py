"""`gap`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.evaluation.symmetry import equivariance_gap
from course_utils.grading.questions.draw import normal
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q1_sending_matrix import draw_order
from .q2_reordered_weights import inverse, moved


def layer(x: Tensor, mix: Tensor) -> Tensor:
    return torch.tanh(mix @ x)


def difference(mix: Tensor, x: Tensor, order: Tensor) -> Tensor:
    return layer(x[order], mix) - layer(x, mix)[order]


def gap(mix: Tensor, x: Tensor, order: Tensor) -> float:
    return difference(mix, x, order).abs().max().item()


def draw_layer(rng: np.random.Generator) -> list[Args]:
    """Draw inputs and their negatives: tanh is odd, so that a sign can't hide."""
    cases: list[Args] = []
    for n, d_model in ((4, 6), (5, 3)):
        mix, x, order = normal(rng, n, n), normal(rng, n, d_model), draw_order(rng, n)
        cases += [(mix, x, order), (mix, -x, order)]
    return cases


def draw_equivariant(rng: np.random.Generator) -> list[Args]:
    cases: list[Args] = []
    for n in (4, 6):
        own, others = rng.uniform(0.3, 1, 2)
        mix = (own * np.eye(n) + others / n).astype(np.float32)
        cases.append((mix, normal(rng, n, n + 2), draw_order(rng, n)))
    return cases


def wrong_side(mix: Tensor, x: Tensor, order: Tensor) -> Tensor:
    return (layer(x[:, order], mix) - layer(x, mix)[:, order]).abs().max()


QUESTION = Question(
    id="07.3",
    title="How far from equivariant?",
    answer="gap",
    arguments=("mix", "x", "order"),
    outputs=(Output("gap"),),
    reference=gap,
    given=("layer",),
    difficulty="easy",
    minutes=6,
    next_step="compute both sides of f(P X) = P f(X), then the largest difference.",
    parts=(
        Part("a layer that is not equivariant", 2, draw_layer),
        Part("a layer that is", 1, draw_equivariant),
    ),
    mistakes=(
        Mistake(
            "invariance",
            "the output in the first order is compared as it is, or the rows of `mix` "
            "move with the tokens: that asks for invariance. Outputs are meant to "
            "follow their tokens, and the layer stays as it is",
            lambda m, x, o: (layer(x[o], m) - layer(x, m)).abs().max(),
        ),
        Mistake(
            "output_sent_the_other_way",
            "the output is moved the other way round, P on one side and Pᵀ on the "
            "other: both sides are reordered alike",
            lambda m, x, o: (layer(x[o], m) - layer(x, m)[inverse(o)]).abs().max(),
        ),
        Mistake(
            "wrong_side",
            "features change places, not tokens: this is zero for any mixing of "
            "tokens; tokens are the rows, so P acts from the left",
            wrong_side,
        ),
        Mistake(
            "input_not_moved",
            "the layer never sees the reordered tokens, or its columns move along and "
            "undo the order: only its output is moved",
            lambda m, x, o: (layer(x, m) - layer(x, m)[o]).abs().max(),
        ),
        Mistake(
            "layer_moved_too",
            "this is zero for every layer: as if the layer's own matrix were reordered "
            "along with the tokens; its weights stay as they are",
            lambda m, x, o: (layer(x[o], m[o][:, o]) - layer(x, m)[o]).abs().max(),
        ),
        Mistake(
            "no_absolute_value",
            "the largest difference with its sign: one of −3 is larger than one of 2",
            lambda m, x, o: difference(m, x, o).max(),
        ),
        Mistake(
            "mean",
            "this is the mean of the differences; the largest one was asked for, since "
            "a single wrong entry is enough",
            lambda m, x, o: difference(m, x, o).abs().mean(),
        ),
        Mistake(
            "sum",
            "this is the sum of the differences; the largest one was asked for",
            lambda m, x, o: difference(m, x, o).abs().sum(),
        ),
    ),
    packaged=("equivariance_gap",),
)


# ----------------------------------------------------------------------- specimens


def back(order):
    return [order.tolist().index(i) for i in range(len(order))]


def apply(mix, x):
    return torch.einsum("ij,jd->id", mix, x).tanh()


def largest(a, b):
    return float((a - b).abs().max())


RIGHT = [
    lambda m, x, o: largest(apply(m, x[o]), apply(m, x)[o]),
    lambda m, x, o: equivariance_gap(lambda x: apply(m, x), x, o),
]
WRONG = [
    ("invariance", lambda m, x, o: largest(apply(m, x[o]), apply(m, x))),
    (
        "input_not_moved",
        lambda m, x, o: largest(apply(m[:, o], x[o]), apply(m, x)[o]),
    ),
    ("invariance", lambda m, x, o: largest(apply(m[o], x[o]), apply(m, x)[o])),
    (
        "output_sent_the_other_way",
        lambda m, x, o: largest(apply(m, x[o]), apply(m, x)[back(o)]),
    ),
    (
        "layer_moved_too",
        lambda m, x, o: largest(apply(moved(m, o, o), x[o]), apply(m, x)[o]),
    ),
    ("layer_moved_too", lambda m, x, o: 0.0),
    ("no_absolute_value", lambda m, x, o: (apply(m, x[o]) - apply(m, x)[o]).max()),
    ("mean", lambda m, x, o: (apply(m, x[o]) - apply(m, x)[o]).abs().mean()),
]
