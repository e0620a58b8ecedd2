"""The questions of chapter 11 on what a block is made of, with their wrong answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import normal, sizes

# ------------------------------------------------------------------- 11.1 layer norm


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


NORM = Question(
    id="11.1",
    title="Layer normalisation by hand",
    answer="layer_norm",
    arguments=("x", "gamma", "beta", "eps"),
    outputs=(Output("y", "token d_model"),),
    reference=layer_norm,
    next_step="write the body of `layer_norm`: mean, variance, then scale and shift.",
    parts=(
        Part("mean and variance", 1, lambda rng: [draw_norm(rng, learned=False)]),
        Part("gamma and beta", 1, lambda rng: [draw_norm(rng), draw_norm(rng)]),
        Part(
            "a batch",
            1,
            lambda rng: [draw_norm(rng, 2)],
            alone="right for one sentence, wrong when a batch axis stands in front: "
            "count axes from the end",
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


# ---------------------------------------------------------------------- 11.2 dropout


def dropout(x: Tensor, keep: Tensor, p: float, training: bool) -> Tensor:
    return x * keep / (1 - p) if training else x


def draw_dropout(training: bool) -> Any:
    def cases(rng: np.random.Generator) -> list[Args]:
        drawn: list[Args] = []
        for p in (0.2, 0.4):
            token, d_model = sizes(rng, 2, least=4)
            keep = rng.random((token, d_model)) >= p
            keep[0, :2] = True, False  # one of each, whatever was drawn
            drawn.append((normal(rng, token, d_model), keep, p, training))
        return drawn

    return cases


DROPOUT = Question(
    id="11.2",
    title="Dropout by hand",
    answer="dropout",
    arguments=("x", "keep", "p", "training"),
    outputs=(Output("y", "token d_model"),),
    reference=dropout,
    next_step="two cases: while training, and afterwards.",
    parts=(
        Part("while training", 2, draw_dropout(True)),
        Part("afterwards", 1, draw_dropout(False)),
    ),
    mistakes=(
        Mistake(
            "not_scaled",
            "what stays is not made larger: on average the layer behind then gets less "
            "while training than afterwards",
            lambda x, keep, p, training: x * keep if training else x,
        ),
        Mistake(
            "scaled_by_p",
            "what stays is divided by p, the share that is dropped; make up for it by "
            "the share that stays",
            lambda x, keep, p, training: x * keep / p if training else x,
        ),
        Mistake(
            "made_smaller",
            "what stays is made smaller by the share that stays; it must make up for "
            "what is gone",
            lambda x, keep, p, training: x * keep * (1 - p) if training else x,
        ),
        Mistake(
            "mask_inverted",
            "what should stay is dropped, and the other way round: keep is True where "
            "a number stays",
            lambda x, keep, p, training: x * ~keep / (1 - p) if training else x,
        ),
        Mistake(
            "always_on",
            "numbers are dropped after training as well: then one input gets another "
            "answer each time",
            lambda x, keep, p, training: x * keep / (1 - p),
        ),
        Mistake(
            "scaled_afterwards",
            "the factor stands in the other case: dropout as it was first written "
            "scales afterwards; here what runs after training stays untouched",
            lambda x, keep, p, training: x * keep if training else x * (1 - p),
        ),
        Mistake(
            "scaled_in_both",
            "numbers are made larger after training too: there nothing is missing, so "
            "there is nothing to make up for",
            lambda x, keep, p, training: (x * keep if training else x) / (1 - p),
        ),
        Mistake(
            "made_up_for_twice",
            "what is dropped is made up for twice, while training and once more "
            "afterwards; once is enough",
            lambda x, keep, p, training: (
                x * keep / (1 - p) if training else x * (1 - p)
            ),
        ),
        Mistake(
            "cases_exchanged",
            "numbers are dropped after training and not while training: the two cases "
            "have changed places",
            lambda x, keep, p, training: x.clone() if training else x * keep / (1 - p),
        ),
        Mistake(
            "counted_coins",
            "what stays is divided by the share that happened to stay; the factor is "
            "fixed by p, so that it does not change with the coins",
            lambda x, keep, p, training: (
                x * keep / keep.float().mean() if training else x
            ),
        ),
        Mistake(
            "never_on",
            "nothing is ever dropped: while training some numbers become zero",
            lambda x, keep, p, training: x.clone(),
        ),
    ),
)


# --------------------------------------------------------------------- 11.3 two orders


def layer(x: Tensor, w: Tensor) -> Tensor:
    return torch.tanh(x @ w)


def norm(x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:])


def around(x: Tensor, w: Tensor, order: str) -> Tensor:
    if order == "pre":
        return x + layer(norm(x), w)
    return norm(x + layer(x, w))


def either(pre: Any, post: Any) -> Any:
    """An answer of one formula for each order."""
    return lambda x, w, order: pre(x, w) if order == "pre" else post(x, w)


def right_pre(x: Tensor, w: Tensor) -> Tensor:
    return around(x, w, "pre")


def right_post(x: Tensor, w: Tensor) -> Tensor:
    return around(x, w, "post")


def slip(name: str, hint: str, pre: Any, post: Any) -> Mistake:
    """A wrong formula for each order, recognised where only one of them is used."""
    wrong = either(pre, post)

    def either_of_them(args: Args, value: Any) -> bool:
        x, w, order = torch.as_tensor(args[0]), torch.as_tensor(args[1]), args[2]
        made = (around(x, w, order), wrong(x, w, order))
        return any(np.allclose(value, one, atol=1e-4) for one in made)

    return Mistake(name, hint, wrong, either_of_them)


def draw_around(order: str) -> Any:
    def cases(rng: np.random.Generator) -> list[Args]:
        drawn: list[Args] = []
        for batch in ((), (2,)):
            token, d_model = sizes(rng, 2)
            x = 2 * normal(rng, *batch, token, d_model) + 1
            drawn.append((x, normal(rng, d_model, d_model), order))
        return drawn

    return cases


ORDERS = Question(
    id="11.3",
    title="The two orders",
    answer="around",
    arguments=("x", "w", "order"),
    outputs=(Output("stream", "token d_model"),),
    reference=around,
    next_step="write one formula for “pre” and one for “post”.",
    parts=(
        Part("pre-norm", 2, draw_around("pre")),
        Part("post-norm", 2, draw_around("post")),
    ),
    mistakes=(
        Mistake(
            "orders_swapped",
            "the two orders have changed places: pre and post say where the norm "
            "stands as seen from the layer",
            either(right_post, right_pre),
        ),
        slip(
            "no_residual",
            "what came in is lost: the layer's result is added to the stream, not put "
            "in its place",
            lambda x, w: layer(norm(x), w),
            lambda x, w: norm(layer(x, w)),
        ),
        Mistake(
            "stream_normed_too",
            "in the pre order the normed tokens are added, so the stream itself goes "
            "through the norm; only the layer reads through it",
            either(lambda x, w: norm(x) + layer(norm(x), w), right_post),
        ),
        Mistake(
            "norm_on_the_branch",
            "in the post order the norm acts on what the layer found alone; in 2017's "
            "block it acts on the sum",
            either(right_pre, lambda x, w: x + norm(layer(x, w))),
        ),
        Mistake(
            "always_pre",
            "both orders give the same: the argument `order` decides where the norm "
            "stands, and post is missing",
            either(right_pre, right_pre),
        ),
        Mistake(
            "always_post",
            "both orders give the same: the argument `order` decides where the norm "
            "stands, and pre is missing",
            either(right_post, right_post),
        ),
        slip(
            "norm_twice",
            "there are two norms: each order has one, before the layer or after the "
            "sum",
            lambda x, w: norm(x + layer(norm(x), w)),
            lambda x, w: norm(x + layer(norm(x), w)),
        ),
        Mistake(
            "past_normed_alone",
            "in the post order the norm acts on what came in alone; in 2017's block it "
            "acts on the sum",
            either(right_pre, lambda x, w: norm(x) + layer(x, w)),
        ),
        Mistake(
            "no_norm",
            "there is no norm: this is the bare residual sum",
            either(lambda x, w: x + layer(x, w), lambda x, w: x + layer(x, w)),
        ),
    ),
    packaged=("Residual",),
)

QUESTIONS = (NORM, DROPOUT, ORDERS)
