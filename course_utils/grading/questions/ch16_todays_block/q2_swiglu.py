"""`swiglu`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def swiglu(x: Tensor, w_in: Tensor, w_out: Tensor) -> Tensor:
    gate, wide = (x @ w_in).chunk(2, dim=-1)
    return (gate * torch.sigmoid(gate) * wide) @ w_out


def silu(z: Tensor) -> Tensor:
    return z * torch.sigmoid(z)


def gelu(z: Tensor) -> Tensor:
    return z * (1 + torch.erf(z / 2**0.5)) / 2


def made_of(combine: Any) -> Any:
    """The layer, with gate and other half put together otherwise."""

    def wrong(x: Tensor, w_in: Tensor, w_out: Tensor) -> Tensor:
        gate, wide = (x @ w_in).chunk(2, dim=-1)
        return combine(gate, wide) @ w_out

    return wrong


def in_turn(x: Tensor, w_in: Tensor, w_out: Tensor) -> Tensor:
    both = x @ w_in
    return (silu(both[..., ::2]) * both[..., 1::2]) @ w_out


def weights_of_input(x: Tensor, w_in: Tensor, w_out: Tensor) -> Tensor:
    gate, wide = (x @ w_in).chunk(2, dim=-1)
    return (torch.softmax(gate, dim=-1) * wide) @ w_out


def draw_layer(rng: np.random.Generator, *batch: int) -> Args:
    token, d_model, d_hidden = sizes(rng, 3)
    return (
        normal(rng, *batch, token, d_model),
        normal(rng, d_model, 2 * d_hidden),
        normal(rng, d_hidden, d_model),
    )


QUESTION = Question(
    id="16.2",
    title="A feed-forward layer with a gate",
    answer="swiglu",
    arguments=("x", "w_in", "w_out"),
    outputs=(Output("output", "token d_model"),),
    reference=swiglu,
    primitives=True,
    allowed=("sigmoid",),
    difficulty="easy",
    minutes=7,
    next_step="one product with w_in gives both halves; apply silu to one of them.",
    parts=(
        Part("one text", 2, lambda rng: [draw_layer(rng, 1) for _ in range(3)]),
        Part(
            "a batch",
            1,
            lambda rng: [draw_layer(rng, 2), draw_layer(rng, 7)],
            only_failure_hint="right for one text, wrong for several: count axes from "
            "the end",
        ),
    ),
    mistakes=(
        Mistake(
            "halves_exchanged",
            "the halves have changed places: the first columns of w_in make the gate",
            made_of(lambda gate, wide: gate * silu(wide)),
        ),
        Mistake(
            "taken_in_turn",
            "the columns of w_in are taken in turn: gate and other half lie side by "
            "side, as two blocks",
            in_turn,
        ),
        Mistake(
            "sigmoid_only",
            "the gate is a plain logistic function: that is GLU, of 2016; silu "
            "multiplies it by its argument once more",
            made_of(lambda gate, wide: torch.sigmoid(gate) * wide),
        ),
        Mistake(
            "relu_gate",
            "the gate is a ReLU: silu is smooth, and a little negative below 0",
            made_of(lambda gate, wide: gate.clamp(min=0) * wide),
        ),
        Mistake(
            "gelu_gate",
            "the gate is a GELU: near, but another function; silu has the logistic "
            "function where GELU has the normal distribution's",
            made_of(lambda gate, wide: gelu(gate) * wide),
        ),
        Mistake(
            "softmax_gate",
            "the gate is a softmax over the hidden features: a gate judges every "
            "feature by itself, and they need not share one unit",
            weights_of_input,
        ),
        Mistake(
            "added",
            "the halves are added: a gate multiplies",
            made_of(lambda gate, wide: silu(gate) + wide),
        ),
        Mistake(
            "both_activated",
            "both halves go through silu: one is left as it is",
            made_of(lambda gate, wide: silu(gate) * silu(wide)),
        ),
        Mistake(
            "activated_late",
            "silu comes after the product of the halves: it acts on the gate alone",
            made_of(lambda gate, wide: silu(gate * wide)),
        ),
        Mistake(
            "no_activation",
            "nothing is bent: silu is missing, and the gate is a straight line",
            made_of(lambda gate, wide: gate * wide),
        ),
    ),
    packaged=("GatedFeedForward",),
)


# ----------------------------------------------------------------------- specimens


def two_products(x, w_in, w_out, act=lambda z: z / (1 + torch.exp(-z))):
    width = w_out.shape[0]
    return (act(x @ w_in[:, :width]) * (x @ w_in[:, width:])) @ w_out


RIGHT = [two_products, lambda x, a, b: two_products(x, a, b).double()]
WRONG = [
    ("halves_exchanged", lambda x, a, b: two_products(x, a.roll(len(b), 1), b)),
    ("sigmoid_only", lambda x, a, b: two_products(x, a, b, torch.sigmoid)),
    ("relu_gate", lambda x, a, b: two_products(x, a, b, lambda z: z.clamp(min=0))),
    ("no_activation", lambda x, a, b: two_products(x, a, b, lambda z: z)),
    ("softmax_gate", lambda x, a, b: two_products(x, a, b, lambda z: z.softmax(-1))),
]
