"""`layer_norm`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def layer_norm(
    x: Tensor, gamma: Tensor, beta: Tensor, eps: float, n_groups: int
) -> Tensor:
    return normed(x, gamma, beta, eps, n_groups)


def normed(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    eps: float,
    n_groups: int,
    dims: tuple[int, ...] = (-1,),
    unbiased: bool = False,
) -> Tensor:
    """Normalise groups of features over some axes, with either variance."""
    groups = x.unflatten(-1, (n_groups, -1))
    centred = groups - groups.mean(dim=dims, keepdim=True)
    variance = groups.var(dim=dims, keepdim=True, unbiased=unbiased)
    return gamma * (centred / torch.sqrt(variance + eps)).flatten(-2) + beta


def over(*dims: int) -> Any:
    """Over other axes of (..., token, group, feature)."""
    return lambda x, gamma, beta, eps, n: normed(x, gamma, beta, eps, n, dims)


def by_group(formula: Any) -> Any:
    """Another formula of a group and eps, then gamma and beta."""

    def wrong(
        x: Tensor, gamma: Tensor, beta: Tensor, eps: float, n_groups: int
    ) -> Tensor:
        groups = x.unflatten(-1, (n_groups, -1))
        return gamma * formula(groups, eps).flatten(-2) + beta

    return wrong


def centred(x: Tensor) -> Tensor:
    return x - x.mean(dim=-1, keepdim=True)


def variance(x: Tensor) -> Tensor:
    return x.var(dim=-1, keepdim=True, unbiased=False)


def dealt_out(
    x: Tensor, gamma: Tensor, beta: Tensor, eps: float, n_groups: int
) -> Tensor:
    """Every n-th feature belongs to a group, instead of neighbours."""
    dealt = x.unflatten(-1, (-1, n_groups)).mT.flatten(-2)
    one, zero = torch.ones_like(gamma), torch.zeros_like(beta)
    made = normed(dealt, one, zero, eps, n_groups)
    return gamma * made.unflatten(-1, (n_groups, -1)).mT.flatten(-2) + beta


def as_size(
    x: Tensor, gamma: Tensor, beta: Tensor, eps: float, n_groups: int
) -> Tensor:
    return normed(x, gamma, beta, eps, x.shape[-1] // n_groups)


def one_mean(
    x: Tensor, gamma: Tensor, beta: Tensor, eps: float, n_groups: int
) -> Tensor:
    """The groups have their own variance, but the token's mean."""
    groups = x.unflatten(-1, (n_groups, -1))
    shifted = groups - x.mean(-1)[..., None, None]
    made = shifted / torch.sqrt(variance(groups) + eps)
    return gamma * made.flatten(-2) + beta


def one_variance(
    x: Tensor, gamma: Tensor, beta: Tensor, eps: float, n_groups: int
) -> Tensor:
    """The groups have their own mean, but the token's variance."""
    shifted = centred(x.unflatten(-1, (n_groups, -1))).flatten(-2)
    return gamma * shifted / torch.sqrt(variance(x) + eps) + beta


def draw_norm(rng: np.random.Generator, *batch: int, learned: bool = True) -> Args:
    """Draw tokens off zero, small enough for eps to matter."""
    token, width = sizes(rng, 2)
    groups = int(rng.choice([n for n in (2, 3, 4) if n != width]))
    d_model = groups * width
    x = 0.5 * normal(rng, *batch, token, d_model) + 1
    x = x + 0.5 * np.repeat(normal(rng, groups), width)  # no two groups alike
    gamma, beta = normal(rng, d_model) + 2, normal(rng, d_model)
    if not learned:
        gamma, beta = np.ones_like(gamma), np.zeros_like(beta)
    return x.astype(np.float32), gamma, beta, 0.1, groups


def draw_equal_features(rng: np.random.Generator) -> list[Args]:
    """Draw tokens of which one has the same number in all features of a group."""
    x, gamma, beta, _, groups = draw_norm(rng)
    x[1, : x.shape[-1] // groups] = 1.0
    return [(x, gamma, beta, 1e-3, groups)]


QUESTION = Question(
    id="11.1",
    title="Layer normalisation in groups, by hand",
    answer="layer_norm",
    arguments=("x", "gamma", "beta", "eps", "n_groups"),
    outputs=(Output("y", "token d_model"),),
    reference=layer_norm,
    primitives=True,
    difficulty="medium",
    minutes=10,
    next_step="cut the features into groups; then mean, variance, scale and shift.",
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
        Part("a group whose features are equal", 1, draw_equal_features),
    ),
    mistakes=(
        Mistake(
            "the_chapters",
            "this is the chapter's layer norm: one mean and one variance for all "
            "features of a token; here each group of features has its own",
            lambda x, g, b, eps, n: normed(x, g, b, eps, 1),
        ),
        Mistake(
            "dealt_out",
            "the features are dealt out to the groups in turn; a group is made of "
            "neighbours: the first d_model / n_groups features are the first group",
            dealt_out,
        ),
        Mistake(
            "groups_as_size",
            "`n_groups` is used as the size of a group: it is how many there are",
            as_size,
        ),
        Mistake(
            "one_mean",
            "the groups have their own variance, but all lose the mean of the whole "
            "token: each group has its own mean too",
            one_mean,
        ),
        Mistake(
            "one_mean_throughout",
            "all groups lose the mean of the whole token, and their variance is taken "
            "about it: each group has its own mean",
            lambda x, g, b, eps, n: by_group(
                lambda y, eps: y / (y.square().mean(-1, keepdim=True) + eps).sqrt()
            )(centred(x), g, b, eps, n),
        ),
        Mistake(
            "one_variance",
            "each group loses its own mean, but all are divided by the spread of the "
            "whole token: each group has its own variance too",
            one_variance,
        ),
        Mistake(
            "over_the_batch",
            "mean and variance run over the first axis: what a token becomes would "
            "depend on the others in the batch; that is batch normalisation",
            over(0),
        ),
        Mistake(
            "over_the_tokens",
            "mean and variance run over the tokens of a sentence: each token is "
            "normalised by itself, over its own groups of features",
            over(-3),
        ),
        Mistake(
            "over_the_sentence",
            "one mean and one variance serve a group in the whole sentence; every "
            "token has its own",
            over(-3, -1),
        ),
        Mistake(
            "over_everything",
            "one mean and one variance serve the whole batch: tell both of them over "
            "which axis they run",
            lambda x, g, b, eps, n: normed(x, g, b, eps, 1, (*range(x.dim()), -1)),
        ),
        Mistake(
            "unbiased_variance",
            "the variance is divided by the size of a group − 1: torch.var does so "
            "unless told otherwise; here nothing is estimated from a sample",
            lambda x, g, b, eps, n: normed(x, g, b, eps, n, unbiased=True),
        ),
        Mistake(
            "eps_outside_the_root",
            "eps is added to the standard deviation, after the root; it belongs to "
            "the variance, inside the root",
            by_group(lambda y, eps: centred(y) / (variance(y).sqrt() + eps)),
        ),
        Mistake(
            "std_as_torch_has_it",
            "two slips in one: torch.std divides by n − 1 unless told otherwise, "
            "and eps belongs to the variance, inside the root",
            by_group(lambda y, eps: centred(y) / (y.std(-1, keepdim=True) + eps)),
        ),
        Mistake(
            "squares_not_averaged",
            "the squares are added up, but not divided by their number: the variance "
            "is a mean",
            by_group(
                lambda y, eps: centred(y) / torch.sqrt(variance(y) * y.shape[-1] + eps)
            ),
        ),
        Mistake(
            "eps_missing",
            "eps is not used: a group whose features are all equal has variance 0, "
            "and 0 / 0 is not a number",
            by_group(lambda y, eps: centred(y) / variance(y).sqrt()),
        ),
        Mistake(
            "divided_by_the_variance",
            "this divides by the variance: twice the input would give half the "
            "output; the standard deviation is its root",
            by_group(lambda y, eps: centred(y) / (variance(y) + eps)),
        ),
        Mistake(
            "not_centred",
            "the mean is not taken away: this is root-mean-square normalisation, "
            "another layer",
            by_group(
                lambda y, eps: y / torch.sqrt(y.square().mean(-1, keepdim=True) + eps)
            ),
        ),
        Mistake(
            "mean_kept",
            "the variance is right, but the mean is still in what is divided",
            by_group(lambda y, eps: y / torch.sqrt(variance(y) + eps)),
        ),
        Mistake(
            "gamma_and_beta_first",
            "gamma and beta act before the normalisation, which takes most of their "
            "effect away again; they come last",
            lambda x, g, b, eps, n: normed(
                g * x + b, torch.ones_like(g), torch.zeros_like(b), eps, n
            ),
        ),
        Mistake(
            "gamma_and_beta_exchanged",
            "gamma and beta have changed places: gamma is the factor, beta is added",
            lambda x, g, b, eps, n: normed(x, b, g, eps, n),
        ),
        Mistake(
            "gamma_on_beta_too",
            "gamma multiplies beta as well: scale first, then shift",
            lambda x, g, b, eps, n: normed(x, g, g * b, eps, n),
        ),
        Mistake(
            "gamma_and_beta_missing",
            "gamma and beta are not used: the layer could give nothing but mean 0 and "
            "variance 1",
            lambda x, g, b, eps, n: normed(
                x, torch.ones_like(g), torch.zeros_like(b), eps, n
            ),
        ),
        Mistake(
            "squares_of_the_uncentred",
            "the mean is taken off above, but below stand the squares of the numbers "
            "as they were: the variance is the mean square of what is left",
            by_group(
                lambda groups, eps: (
                    centred(groups)
                    / (groups.square().mean(dim=-1, keepdim=True) + eps).sqrt()
                )
            ),
        ),
    ),
    packaged=("layer_norm",),
)


# ----------------------------------------------------------------------- specimens


def by_token(statistics, groups=lambda n: n):
    """Normalise every group of every token in a loop, with its own mean and divisor."""

    def answer(x, gamma, beta, eps, n_groups):
        rows = []
        for token in x.reshape(-1, x.shape[-1]):
            parts = []
            for part in token.chunk(groups(n_groups)):
                mean, divisor = statistics(part, eps)
                parts.append((part - mean) / divisor)
            rows.append(torch.cat(parts) * gamma + beta)
        return torch.stack(rows).reshape(x.shape)

    return answer


def right_statistics(part, eps):
    mean = part.sum() / len(part)
    return mean, ((part - mean).pow(2).sum() / len(part) + eps) ** 0.5


def by_matrix(x, gamma, beta, eps, n_groups):
    """The mean of each group as a product with a matrix of blocks."""
    width = x.shape[-1] // n_groups
    block = torch.full((width, width), 1 / width)
    mean = torch.block_diag(*[block] * n_groups)
    shifted = x - x @ mean
    return gamma * shifted * torch.rsqrt(shifted.square() @ mean + eps) + beta


def by_einsum(x, gamma, beta, eps, n_groups):
    groups = x.double().reshape(*x.shape[:-1], n_groups, -1)
    groups = groups - groups.mean(-1, keepdim=True)
    squares = torch.einsum("...gd,...gd->...g", groups, groups) / groups.shape[-1]
    return (groups / (squares + eps).sqrt()[..., None]).flatten(-2) * gamma + beta


def in_numpy(x, gamma, beta, eps, n_groups):
    y = x.numpy().reshape(*x.shape[:-1], n_groups, -1)
    y = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + eps)
    return gamma.numpy() * y.reshape(x.shape) + beta.numpy()


def library(x, gamma, beta, eps, n_groups):
    return F.group_norm(x.flatten(0, -2), n_groups, gamma, beta, eps).view(x.shape)


RIGHT = [by_token(right_statistics), by_matrix, by_einsum, in_numpy]
WRONG = [
    (
        "squares_of_the_uncentred",
        by_token(lambda t, eps: (t.mean(), ((t * t).sum() / len(t) + eps) ** 0.5)),
    ),
    (
        "one_mean_throughout",
        lambda x, g, b, eps, n: by_token(
            lambda t, eps: (0, (t.square().mean() + eps).sqrt())
        )(x - x.mean(-1, keepdim=True), g, b, eps, n),
    ),
    ("library", library),
    ("the_chapters", by_token(right_statistics, groups=lambda n: 1)),
    (
        "library",
        lambda x, g, b, e, n: torch.native_layer_norm(x, g.shape, g, b, e)[0],
    ),
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
        "gamma_and_beta_missing",
        lambda x, g, b, eps, n: by_token(right_statistics)(x, 1, 0, eps, n),
    ),
    ("std_as_torch_has_it", by_token(lambda t, eps: (t.mean(), t.std() + eps))),
    (
        "squares_not_averaged",
        by_token(lambda t, eps: (t.mean(), ((t - t.mean()).pow(2).sum() + eps).sqrt())),
    ),
    (
        "gamma_and_beta_exchanged",
        lambda x, g, b, eps, n: by_matrix(x, b, g, eps, n),
    ),
    (
        "gamma_on_beta_too",
        lambda x, g, b, eps, n: by_matrix(x, 1, b, eps, n) * g,
    ),
]
