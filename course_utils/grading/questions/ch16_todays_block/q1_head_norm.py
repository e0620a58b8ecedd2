"""`head_norm`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def head_norm(x: Tensor, gamma: Tensor, eps: float) -> Tensor:
    heads = x.unflatten(-1, (-1, len(gamma)))
    mean_square = heads.square().mean(dim=-1, keepdim=True)
    return (gamma * heads / torch.sqrt(mean_square + eps)).flatten(-2)


def of_heads(change: Any) -> Any:
    """What becomes of each head, done otherwise."""

    def wrong(x: Tensor, gamma: Tensor, eps: float) -> Tensor:
        heads = x.unflatten(-1, (-1, len(gamma)))
        return change(heads, gamma, eps).flatten(-2)

    return wrong


def mean_square(heads: Tensor) -> Tensor:
    return heads.square().mean(dim=-1, keepdim=True)


def centred(heads: Tensor, gamma: Tensor, eps: float) -> Tensor:
    heads = heads - heads.mean(dim=-1, keepdim=True)
    return gamma * heads / torch.sqrt(mean_square(heads) + eps)


def whole_width(x: Tensor, gamma: Tensor, eps: float) -> Tensor:
    scale = gamma.repeat(x.shape[-1] // len(gamma))
    return scale * x / torch.sqrt(mean_square(x) + eps)


def dealt_out(x: Tensor, gamma: Tensor, eps: float) -> Tensor:
    heads = x.unflatten(-1, (len(gamma), -1)).transpose(-2, -1)
    normed = gamma * heads / torch.sqrt(mean_square(heads) + eps)
    return normed.transpose(-2, -1).flatten(-2)


def across_heads(heads: Tensor, gamma: Tensor, eps: float) -> Tensor:
    across = heads.square().mean(dim=-2, keepdim=True)
    return gamma * heads / torch.sqrt(across + eps)


def draw_queries(rng: np.random.Generator) -> Args:
    batch, token, heads, d_head = sizes(rng, 4, least=2)
    x = normal(rng, batch, token, heads * d_head) + np.float32(0.5)
    return x, 1 + normal(rng, d_head) / 2, 0.01


def draw_small(rng: np.random.Generator) -> list[Args]:
    x, gamma, _ = draw_queries(rng)
    return [(x / 50, gamma, 0.01), (0 * x, gamma, 0.01)]


QUESTION = Question(
    id="16.1",
    title="A norm for every head",
    answer="head_norm",
    arguments=("x", "gamma", "eps"),
    outputs=(Output("normed", "batch token width"),),
    reference=head_norm,
    difficulty="easy",
    minutes=8,
    next_step="cut the features of a token into its heads, bring each head to root "
    "mean square 1, and join them again.",
    parts=(
        Part("ordinary queries", 2, lambda rng: [draw_queries(rng) for _ in range(3)]),
        Part(
            "small ones, and zeros",
            1,
            draw_small,
            only_failure_hint="right where eps hardly counts, wrong for small queries "
            "and zeros: where exactly is eps added?",
        ),
    ),
    mistakes=(
        Mistake(
            "mean_removed",
            "the mean is subtracted first: that is LayerNorm; RMSNorm leaves it in",
            of_heads(centred),
        ),
        Mistake(
            "whole_width",
            "all heads of a token share one root mean square: each head has its own, "
            "or a large head would make the others small",
            whole_width,
        ),
        Mistake(
            "dealt_out",
            "the features are dealt out to the heads in turn; a head's features lie "
            "side by side",
            dealt_out,
        ),
        Mistake(
            "across_heads",
            "the mean runs over the heads, feature by feature: it runs over the "
            "features of one head",
            of_heads(across_heads),
        ),
        Mistake(
            "no_gamma",
            "the result is not scaled: gamma is left out",
            of_heads(lambda h, g, eps: h / torch.sqrt(mean_square(h) + eps)),
        ),
        Mistake(
            "gamma_divides",
            "gamma divides: it multiplies each feature after the norm",
            of_heads(lambda h, g, eps: h / g / torch.sqrt(mean_square(h) + eps)),
        ),
        Mistake(
            "no_root",
            "the features are divided by the mean square itself: then a head that is "
            "twice as large comes out half as large; the root is missing",
            of_heads(lambda h, g, eps: g * h / (mean_square(h) + eps)),
        ),
        Mistake(
            "sum_not_mean",
            "the squares are added, not averaged: each head then has norm 1, and its "
            "features shrink as it gets wider",
            of_heads(
                lambda h, g, eps: (
                    g * h / torch.sqrt(h.square().sum(dim=-1, keepdim=True) + eps)
                )
            ),
        ),
        Mistake(
            "eps_outside",
            "eps is added to the root: it belongs to the mean square, under the root",
            of_heads(lambda h, g, eps: g * h / (torch.sqrt(mean_square(h)) + eps)),
        ),
    ),
    primitives=True,
    packaged=("rms_norm",),
    allowed=("layer_norm",),  # to be told that it is another norm
)


# ----------------------------------------------------------------------- specimens


def by_loop(x, gamma, eps):
    parts = x.split(len(gamma), dim=-1)
    done = [p * ((p**2).mean(-1, keepdim=True) + eps) ** -0.5 * gamma for p in parts]
    return torch.cat(done, dim=-1)


def whole_by_norm(x, gamma, eps):
    root = (x.norm(dim=-1, keepdim=True) ** 2 / x.shape[-1] + eps).sqrt()
    return x / root * torch.cat([gamma] * (x.shape[-1] // len(gamma)))


def layer_norm(x, gamma, eps):
    heads = x.unflatten(-1, (-1, len(gamma)))
    normed = torch.nn.functional.layer_norm(heads, gamma.shape, gamma, None, eps)
    return normed.flatten(-2)


def fused(x, gamma, eps):
    heads = x.unflatten(-1, (-1, len(gamma)))
    normed = torch._fused_rms_norm(heads, gamma.shape, gamma, eps)[0]
    return normed.flatten(-2)


RIGHT = [by_loop, lambda x, g, eps: by_loop(x.double(), g, eps)]
WRONG = [
    ("library", fused),
    ("mean_removed", layer_norm),
    ("whole_width", whole_by_norm),
    ("no_gamma", lambda x, g, eps: by_loop(x, torch.ones_like(g), eps)),
    ("gamma_divides", lambda x, g, eps: by_loop(x, 1 / g, eps)),
]
PARTIAL = [(2, lambda x, g, eps: by_loop(x, g, 0.01 if x.std() > 0.5 else 1.0))]
