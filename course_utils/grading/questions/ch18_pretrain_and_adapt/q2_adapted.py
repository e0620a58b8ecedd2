"""`adapted`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def layer(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    down: Tensor,
    up: Tensor,
    scale: float,
    base: float = 1.0,
) -> Tensor:
    return base * (x @ weight.T) + bias + scale * x @ down.T @ up.T


def adapted(
    x: Tensor, weight: Tensor, bias: Tensor, down: Tensor, up: Tensor, alpha: float
) -> Tensor:
    return layer(x, weight, bias, down, up, alpha / len(down))


def draw(rng: np.random.Generator) -> Args:
    batch, d_in, d_out = sizes(rng, 3, least=5)
    rank = int(rng.integers(2, 4))
    shapes = (batch, d_in), (d_out, d_in), (d_out,), (rank, d_in), (d_out, rank)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    return *arrays, float(rng.integers(5, 9))


QUESTION = Question(
    id="18.2",
    title="A layer with an adapter",
    answer="adapted",
    arguments=("x", "weight", "bias", "down", "up", "alpha"),
    outputs=(Output("y", "batch d_out"),),
    reference=adapted,
    difficulty="easy",
    minutes=8,
    next_step="write down the shape after every product; the narrow one is the rank.",
    parts=(Part("the output", 2, lambda rng: [draw(rng) for _ in range(3)]),),
    mistakes=(
        Mistake(
            "not_divided_by_rank",
            "the adapter is multiplied by alpha: it is alpha / r, so that another rank "
            "needs no other learning rate",
            lambda x, w, b, d, u, a: layer(x, w, b, d, u, a),
        ),
        Mistake(
            "no_scale",
            "the adapter has no factor: multiply it by alpha / r",
            lambda x, w, b, d, u, a: layer(x, w, b, d, u, 1.0),
        ),
        Mistake(
            "adapter_alone",
            "the layer's own product is missing: the adapter is added to it",
            lambda x, w, b, d, u, a: layer(x, w, b, d, u, a / len(d), base=0.0),
        ),
        Mistake(
            "no_bias",
            "the bias is missing: the old layer stays whole",
            lambda x, w, b, d, u, a: layer(x, w, 0 * b, d, u, a / len(d)),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_change(factor, bias=True, base=True):
    def answer(x, weight, bias_, down, up, alpha):
        change = factor(alpha, len(down)) * torch.einsum("or,ri->oi", up, down)
        whole = change + (weight if base else 0)
        return x @ whole.T + (bias_ if bias else 0)

    return answer


RIGHT = [by_change(lambda a, r: a / r)]
WRONG = [
    ("not_divided_by_rank", by_change(lambda a, r: a)),
    ("no_scale", by_change(lambda a, r: 1.0)),
    ("adapter_alone", by_change(lambda a, r: a / r, base=False)),
    ("no_bias", by_change(lambda a, r: a / r, bias=False)),
]
