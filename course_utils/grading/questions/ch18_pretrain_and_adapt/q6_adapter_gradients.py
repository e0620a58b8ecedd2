"""`adapter_gradients`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def gradients(
    x: Tensor, upstream: Tensor, down: Tensor, up: Tensor, scale: float
) -> tuple[Tensor, Tensor]:
    return scale * (upstream @ up).T @ x, scale * upstream.T @ (x @ down.T)


def adapter_gradients(
    x: Tensor, upstream: Tensor, down: Tensor, up: Tensor, scale: float
) -> tuple[Tensor, Tensor]:
    return gradients(x, upstream, down, up, scale)


def draw(rng: np.random.Generator) -> Args:
    batch, d_in, d_out = sizes(rng, 3, least=5)
    rank = int(rng.integers(2, 4))
    shapes = (batch, d_in), (batch, d_out), (rank, d_in), (d_out, rank)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    return *arrays, float(rng.uniform(1.5, 3))


def one_by_one(t: tuple[Tensor, Tensor], n: int) -> tuple[Tensor, Tensor]:
    return t[0] / n, t[1] / n


QUESTION = Question(
    id="18.6",
    title="The gradients of an adapter",
    answer="adapter_gradients",
    arguments=("x", "upstream", "down", "up", "scale"),
    outputs=(Output("for_down", "rank d_in"), Output("for_up", "d_out rank")),
    reference=adapter_gradients,
    difficulty="hard",
    minutes=15,
    next_step="begin with one row of x: the change of y is scale * U D x.",
    parts=(Part("both gradients", 4, lambda rng: [draw(rng) for _ in range(3)]),),
    mistakes=(
        Mistake(
            "no_scale",
            "the factor is missing: it stands before U D x and stays before both "
            "gradients",
            lambda x, g, d, u, s: gradients(x, g, d, u, 1.0),
        ),
        Mistake(
            "scale_twice",
            "the factor is there twice: y has it once, and so has each gradient",
            lambda x, g, d, u, s: gradients(x, g, d, u, s * s),
        ),
        Mistake(
            "mean_over_rows",
            "the rows are averaged: upstream already is the gradient of the whole "
            "loss, so the rows add up",
            lambda x, g, d, u, s: one_by_one(gradients(x, g, d, u, s), len(x)),
        ),
        Mistake(
            "up_left_out_of_the_first",
            "the gradient for D does not go through U as it is: with U = 0 it has to "
            "be zero",
            lambda x, g, d, u, s: (
                s * (g @ torch.ones_like(u)).T @ x,
                gradients(x, g, d, u, s)[1],
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_autograd(factor=lambda s: s, rows=lambda n: 1, up_is=lambda up: up):
    def answer(x, upstream, down, up, scale):
        found = []
        for used in (up_is(up), up):
            a, b = (t.clone().requires_grad_() for t in (down, used))
            y = factor(scale) * x @ a.T @ b.T / rows(len(x))
            found.append(torch.autograd.grad((y * upstream).sum(), (a, b)))
        return found[0][0], found[1][1]

    return answer


RIGHT = [by_autograd()]
WRONG = [
    ("no_scale", by_autograd(factor=lambda s: 1.0)),
    ("scale_twice", by_autograd(factor=lambda s: s * s)),
    ("mean_over_rows", by_autograd(rows=lambda n: n)),
    ("up_left_out_of_the_first", by_autograd(up_is=torch.ones_like)),
]
