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
            "width_for_rank",
            "alpha is divided by the width of the layer: $r$ is the rank, the size "
            "that D and U have in common",
            lambda x, w, b, d, u, a: layer(x, w, b, d, u, a / len(u)),
        ),
        Mistake(
            "width_in_for_rank",
            "alpha is divided by the width of the input: $r$ is the rank, the size "
            "that D and U have in common",
            lambda x, w, b, d, u, a: layer(x, w, b, d, u, a / d.shape[1]),
        ),
        Mistake(
            "root_of_the_rank",
            "alpha is divided by the root of the rank: here it is alpha / r",
            lambda x, w, b, d, u, a: layer(x, w, b, d, u, a / len(d) ** 0.5),
        ),
        Mistake(
            "layer_scaled_too",
            "the layer's own product is scaled as well: only the adapter has the "
            "factor",
            lambda x, w, b, d, u, a: layer(x, w, b, d, u, a / len(d), base=a / len(d)),
        ),
        Mistake(
            "bias_scaled_too",
            "the bias is scaled as well: only the adapter has the factor",
            lambda x, w, b, d, u, a: layer(x, w, a / len(d) * b, d, u, a / len(d)),
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
    (
        "width_for_rank",
        lambda x, w, b, d, u, a: by_change(lambda a, r: a / len(u))(x, w, b, d, u, a),
    ),
    ("root_of_the_rank", by_change(lambda a, r: a * r**-0.5)),
    ("not_divided_by_rank", by_change(lambda a, r: a)),
    ("no_scale", by_change(lambda a, r: 1.0)),
    ("adapter_alone", by_change(lambda a, r: a / r, base=False)),
    ("no_bias", by_change(lambda a, r: a / r, bias=False)),
]
