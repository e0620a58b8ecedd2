"""`layer_norm`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question
from course_utils.models.blocks import layer_norm as package_layer_norm


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, eps: float) -> Tensor:
    return normed(x, gamma, beta, eps)


def normed(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    eps: float,
    dims: tuple[int, ...] = (-1,),
    unbiased: bool = False,
) -> Tensor:
    """Normalise over some axes, with either variance."""
    centred = x - x.mean(dim=dims, keepdim=True)
    variance = x.var(dim=dims, keepdim=True, unbiased=unbiased)
    return gamma * centred / torch.sqrt(variance + eps) + beta


def over(*dims: int) -> Any:
    return lambda x, gamma, beta, eps: normed(x, gamma, beta, eps, dims)


def centred(x: Tensor) -> Tensor:
    return x - x.mean(dim=-1, keepdim=True)


def variance(x: Tensor) -> Tensor:
    return x.var(dim=-1, keepdim=True, unbiased=False)


def root_mean_square(x: Tensor, gamma: Tensor, beta: Tensor, eps: float) -> Tensor:
    return gamma * x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) + beta


def draw_norm(rng: np.random.Generator, *batch: int, learned: bool = True) -> Args:
    """Draw tokens off zero, small enough for eps to matter."""
    token, d_model = sizes(rng, 2)
    x = 0.5 * normal(rng, *batch, token, d_model) + 1
    gamma, beta = normal(rng, d_model) + 2, normal(rng, d_model)
    if not learned:
        gamma, beta = np.ones_like(gamma), np.zeros_like(beta)
    return x, gamma, beta, 0.1


def draw_equal_features(rng: np.random.Generator) -> list[Args]:
    """Draw tokens of which one has the same number in every feature."""
    x, gamma, beta, _ = draw_norm(rng)
    x[1] = 3.0
    return [(x, gamma, beta, 1e-5)]


QUESTION = Question(
    id="11.1",
    title="Layer normalisation by hand",
    answer="layer_norm",
    arguments=("x", "gamma", "beta", "eps"),
    outputs=(Output("y", "token d_model"),),
    reference=layer_norm,
    primitives=True,
    difficulty="easy",
    minutes=8,
    next_step="write the body of `layer_norm`: mean, variance, then scale and shift.",
    parts=(
        Part("mean and variance", 1, lambda rng: [draw_norm(rng, learned=False)]),
        Part("gamma and beta", 1, lambda rng: [draw_norm(rng), draw_norm(rng)]),
        Part(
            "a batch",
            1,
            lambda rng: [draw_norm(rng, 2)],
            only_failure_hint="right for one sentence, wrong when a batch axis stands "
            "in front: count axes from the end",
        ),
        Part("a token whose features are equal", 1, draw_equal_features),
    ),
    mistakes=(
        Mistake(
            "over_the_batch",
            "mean and variance run over the first axis: what a token becomes would "
            "depend on the others in the batch; that is batch normalisation",
            over(0),
        ),
        Mistake(
            "over_the_tokens",
            "mean and variance run over the tokens of a sentence: each token is "
            "normalised by itself, over its own features",
            over(-2),
        ),
        Mistake(
            "over_the_sentence",
            "one mean and one variance serve the whole sentence; every token has its "
            "own",
            over(-2, -1),
        ),
        Mistake(
            "over_everything",
            "one mean and one variance serve the whole batch: tell both of them over "
            "which axis they run",
            lambda x, g, b, eps: normed(x, g, b, eps, tuple(range(x.dim()))),
        ),
        Mistake(
            "unbiased_variance",
            "the variance is divided by d_model − 1: torch.var does so unless told "
            "otherwise; here nothing is estimated from a sample",
            lambda x, g, b, eps: normed(x, g, b, eps, unbiased=True),
        ),
        Mistake(
            "eps_outside_the_root",
            "eps is added to the standard deviation, after the root; it belongs to "
            "the variance, inside the root",
            lambda x, g, b, eps: g * centred(x) / (variance(x).sqrt() + eps) + b,
        ),
        Mistake(
            "std_as_torch_has_it",
            "two slips in one: torch.std divides by d_model − 1 unless told otherwise, "
            "and eps belongs to the variance, inside the root",
            lambda x, g, b, eps: g * centred(x) / (x.std(-1, keepdim=True) + eps) + b,
        ),
        Mistake(
            "squares_not_averaged",
            "the squares are added up, but not divided by their number: the variance "
            "is a mean",
            lambda x, g, b, eps: (
                g * centred(x) / torch.sqrt(variance(x) * x.shape[-1] + eps) + b
            ),
        ),
        Mistake(
            "eps_missing",
            "eps is not used: a token whose features are all equal has variance 0, "
            "and 0 / 0 is not a number",
            lambda x, g, b, eps: g * centred(x) / variance(x).sqrt() + b,
        ),
        Mistake(
            "divided_by_the_variance",
            "this divides by the variance: twice the input would give half the "
            "output; the standard deviation is its root",
            lambda x, g, b, eps: g * centred(x) / (variance(x) + eps) + b,
        ),
        Mistake(
            "not_centred",
            "the mean is not taken away: this is root-mean-square normalisation, "
            "another layer",
            root_mean_square,
        ),
        Mistake(
            "mean_kept",
            "the variance is right, but the mean is still in what is divided",
            lambda x, g, b, eps: g * x / torch.sqrt(variance(x) + eps) + b,
        ),
        Mistake(
            "gamma_and_beta_first",
            "gamma and beta act before the normalisation, which takes most of their "
            "effect away again; they come last",
            lambda x, g, b, eps: normed(
                g * x + b, torch.ones_like(g), torch.zeros_like(b), eps
            ),
        ),
        Mistake(
            "gamma_and_beta_exchanged",
            "gamma and beta have changed places: gamma is the factor, beta is added",
            lambda x, g, b, eps: normed(x, b, g, eps),
        ),
        Mistake(
            "gamma_on_beta_too",
            "gamma multiplies beta as well: scale first, then shift",
            lambda x, g, b, eps: normed(x, g, g * b, eps),
        ),
        Mistake(
            "gamma_and_beta_missing",
            "gamma and beta are not used: the layer could give nothing but mean 0 and "
            "variance 1",
            lambda x, g, b, eps: normed(
                x, torch.ones_like(g), torch.zeros_like(b), eps
            ),
        ),
    ),
    packaged=("layer_norm",),
)


# ----------------------------------------------------------------------- specimens


def by_token(statistics):
    """Normalise every token in a loop, with its own mean and divisor."""

    def answer(x, gamma, beta, eps):
        rows = []
        for token in x.reshape(-1, x.shape[-1]):
            mean, divisor = statistics(token, eps)
            rows.append((token - mean) / divisor * gamma + beta)
        return torch.stack(rows).reshape(x.shape)

    return answer


def right_statistics(token, eps):
    mean = token.sum() / len(token)
    return mean, ((token - mean).pow(2).sum() / len(token) + eps) ** 0.5


def batch_norm(x, gamma, beta, eps):
    spread = x.std(dim=0, correction=0, keepdim=True)
    return (x - x.mean(0)) / (spread**2 + eps).sqrt() * gamma + beta


RIGHT = [by_token(right_statistics)]
WRONG = [
    ("library", lambda x, g, b, e: torch.native_layer_norm(x, g.shape, g, b, e)[0]),
    ("over_the_batch", batch_norm),
    ("unbiased_variance", by_token(lambda t, eps: (t.mean(), (t.var() + eps).sqrt()))),
    (
        "eps_outside_the_root",
        by_token(lambda t, eps: (t.mean(), t.std(correction=0) + eps)),
    ),
    ("eps_missing", by_token(lambda t, eps: (t.mean(), t.std(correction=0)))),
    (
        "divided_by_the_variance",
        by_token(lambda t, eps: (t.mean(), t.var(correction=0) + eps)),
    ),
    ("not_centred", by_token(lambda t, eps: (0, math.sqrt(t.square().mean() + eps)))),
    (
        "over_the_tokens",
        lambda x, g, b, eps: (
            package_layer_norm(
                x.mT, torch.ones(x.shape[-2]), torch.zeros(x.shape[-2]), eps
            ).mT
            * g
            + b
        ),
    ),
    (
        "gamma_and_beta_missing",
        lambda x, g, b, eps: (
            (x - x.mean(-1)[..., None])
            / (x.var(-1, correction=0)[..., None] + eps).sqrt()
        ),
    ),
    (
        "over_everything",
        lambda x, g, b, eps: (
            (x - x.mean()) / (x.var(correction=0) + eps) ** 0.5 * g + b
        ),
    ),
    ("std_as_torch_has_it", by_token(lambda t, eps: (t.mean(), t.std() + eps))),
    (
        "squares_not_averaged",
        by_token(lambda t, eps: (t.mean(), ((t - t.mean()).pow(2).sum() + eps).sqrt())),
    ),
    (
        "gamma_and_beta_exchanged",
        lambda x, g, b, eps: by_token(right_statistics)(x, b, g, eps),
    ),
    (
        "gamma_on_beta_too",
        lambda x, g, b, eps: by_token(right_statistics)(x, 1, b, eps) * g,
    ),
]
