"""`cosine_self_attention`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.draw import first, second
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q1_basic_self_attention import (
    Pair,
    by_einsum,
    by_weights,
    draw_tokens,
    itself,
    mixed_by,
    products,
)


def cosine_self_attention(x: Tensor, sharpness: float) -> Pair:
    unit = x / x.norm(dim=-1, keepdim=True)
    scores = sharpness * (unit @ unit.transpose(-2, -1))
    weights = torch.softmax(scores, dim=-1)
    return weights @ x, weights


def by_length(x: Tensor, dim: int = -1) -> Tensor:
    return x / x.norm(dim=dim, keepdim=True)


def sharpened(scores: Tensor, sharpness: float, x: Tensor, dim: int = -1) -> Pair:
    """Finish from scores that went wrong earlier, or on the wrong axis."""
    return mixed_by(torch.softmax(sharpness * scores, dim=dim), x)


def compared(x: Tensor) -> Tensor:
    return products(by_length(x))


def draw(rng: np.random.Generator, *batch: int) -> Args:
    return (*draw_tokens(rng, *batch), float(np.round(2 + 3 * rng.random(), 2)))


def draw_two(rng: np.random.Generator) -> list[Args]:
    return [draw(rng), draw(rng)]


def angles(x: Tensor) -> Tensor:
    return torch.acos(compared(x).clamp(-1, 1))


def weighs_by(scores: Callable[[Tensor], list[Tensor]], atol: float = 1e-4) -> Any:
    """A sign: the weights that one of several other comparisons gives."""

    def sign(args: Args, value: Any) -> bool:
        x, sharpness = torch.as_tensor(args[0]), args[1]
        due = [torch.softmax(sharpness * s, dim=-1) for s in scores(x)]
        return any(np.allclose(value[1], a.numpy(), atol=atol) for a in due)

    return sign


def by_one_square(x: Tensor) -> list[Tensor]:
    square = (x * x).sum(dim=-1, keepdim=True)
    return [products(x) / square, products(x) / square.mT]


def centred_first(x: Tensor) -> list[Tensor]:
    return [compared(x - x.mean(dim=dim, keepdim=True)) for dim in (-1, -2)]


def longer(x: Tensor) -> list[Tensor]:
    """The cosines when a number is added to each length, or to their product."""
    length = x.norm(dim=-1, keepdim=True)
    each = [products(x / (length + eps)) for eps in (1.0, 0.1, 1e-2, 1e-3)]
    both = [products(x) / (length * length.mT + eps) for eps in (1.0, 0.1, 1e-2, 1e-3)]
    return each + both


QUESTION = Question(
    id="05.2",
    title="Direction alone, as sharp as you like",
    answer="cosine_self_attention",
    arguments=("x", "sharpness"),
    outputs=(Output("mixed", "token d_model"), Output("weights", "token token")),
    reference=cosine_self_attention,
    primitives=True,
    difficulty="easy",
    minutes=7,
    next_step="divide every token by its length before you compare, and only there.",
    parts=(
        Part("weights", 1, draw_two, view=second),
        Part("mixed tokens", 1, draw_two, view=first),
        Part("a batch", 1, lambda rng: [draw(rng, 2)]),
    ),
    mistakes=(
        Mistake(
            "not_sharp",
            "these are the chapter's weights, from cosines as they are: here a cosine "
            "is multiplied by the sharpness before the softmax",
            lambda x, s: sharpened(compared(x), 1.0, x),
        ),
        Mistake(
            "sharpness_divides",
            "the cosines are divided by the sharpness: that makes the weights more "
            "even, not less",
            lambda x, s: sharpened(compared(x), 1 / s, x),
        ),
        Mistake(
            "sharpness_twice",
            "both tokens of a pair are multiplied by the sharpness, so that it enters "
            "their product squared",
            lambda x, s: sharpened(compared(x), s * s, x),
        ),
        Mistake(
            "sharpness_afterwards",
            "the weights are multiplied by the sharpness, after the softmax: their "
            "rows no longer sum to one",
            lambda x, s: mixed_by(s * torch.softmax(compared(x), dim=-1), x),
        ),
        Mistake(
            "weights_to_the_power",
            "the weights are raised to the power of the sharpness and not divided by "
            "their sum again: the rows no longer sum to one",
            lambda x, s: mixed_by(torch.softmax(compared(x), dim=-1) ** s, x),
        ),
        Mistake(
            "cosine_to_the_power",
            "the cosines are raised to the power of the sharpness: multiply them; a "
            "negative cosine has no such power",
            lambda x, s: mixed_by(torch.softmax(compared(x) ** s, dim=-1), x),
        ),
        Mistake(
            "dot_product",
            "the tokens are compared by the plain dot product: a longer token still "
            "gets more weight",
            lambda x, s: sharpened(products(x), s, x),
        ),
        Mistake(
            "dot_product_not_sharp",
            "this is the chapter's plain self-attention: neither are the lengths taken "
            "out, nor is the sharpness used",
            lambda x, s: sharpened(products(x), 1.0, x),
        ),
        Mistake(
            "only_the_others",
            "only the token that is looked at is divided by its length: the query's "
            "own length still sharpens its whole row",
            lambda x, s: sharpened(x @ by_length(x).mT, s, x),
        ),
        Mistake(
            "only_the_asker",
            "only the query is divided by its length: a long token still gets more "
            "weight from every query than a short one",
            lambda x, s: sharpened(by_length(x) @ x.mT, s, x),
        ),
        Mistake(
            "values_too",
            "the weights are right, but unit vectors were averaged: only the "
            "comparison is by direction, what is averaged are the tokens as they are",
            lambda x, s: (
                cosine_self_attention(x, s)[1] @ by_length(x),
                cosine_self_attention(x, s)[1],
            ),
        ),
        Mistake(
            "length_over_tokens",
            "the length is taken along the tokens: each token is divided by its own, "
            "the root of the sum of its squared features",
            lambda x, s: sharpened(products(by_length(x, dim=-2)), s, x),
        ),
        Mistake(
            "no_softmax",
            "the cosines themselves are used as weights: they can be negative and do "
            "not sum to one",
            lambda x, s: mixed_by(s * compared(x), x),
        ),
        Mistake(
            "one_length_for_all",
            "all tokens are divided by the same number, the length of the whole "
            "sentence: each token has a length of its own (`dim=-1`, `keepdim=True`)",
            lambda x, s: sharpened(products(x / x.norm()), s, x),
        ),
        Mistake(
            "softmax_over_the_askers",
            "the columns sum to one, the rows do not: each query has one unit of "
            "attention to spend, so the softmax runs along its row",
            lambda x, s: sharpened(compared(x), s, x, dim=-2),
        ),
        Mistake(
            "squared_length",
            "the tokens are divided by their squared length: the length is its root",
            lambda x, s: sharpened(products(x / (x * x).sum(-1, keepdim=True)), s, x),
        ),
        Mistake(
            "one_length_squared",
            "the sharpness is right; each product is divided by the squared length of "
            "one of its two tokens: a cosine divides by the lengths of both",
            lambda x, s: sharpened(by_one_square(x)[0], s, x),
            weighs_by(by_one_square),
        ),
        Mistake(
            "sum_of_sizes",
            "the sharpness is right; the tokens are divided by the sum of the absolute "
            "values of their features, and a length is the root of the sum of squares",
            lambda x, s: sharpened(products(x / x.abs().sum(-1, keepdim=True)), s, x),
        ),
        Mistake(
            "centred_first",
            "the sharpness is right; a mean is subtracted before the comparison, which "
            "turns the tokens: the cosine is that of the tokens as they are",
            lambda x, s: sharpened(centred_first(x)[0], s, x),
            weighs_by(centred_first),
        ),
        Mistake(
            "length_made_longer",
            "the sharpness is right; the number added to the lengths is large enough "
            "to be seen, and a token has no zero length here: leave it out",
            lambda x, s: sharpened(longer(x)[2], s, x),
            weighs_by(longer),
        ),
        Mistake(
            "scaled",
            "the cosines are divided by the root of the width besides: that is for dot "
            "products, which grow with the width; here the sharpness alone counts",
            lambda x, s: sharpened(compared(x) / x.shape[-1] ** 0.5, s, x),
        ),
        Mistake(
            "angles",
            "the angles themselves are used as scores: the question asks for their "
            "cosines, which are the products of the unit vectors",
            lambda x, s: sharpened(-angles(x), s, x),
            weighs_by(
                lambda x: [angles(x), -angles(x)], atol=2e-3
            ),  # near 0 it is rough
        ),
        Mistake(
            "tokens_scaled",
            "the tokens were multiplied by the sharpness: dividing by the length takes "
            "it out of the comparison again, and what is averaged is too long",
            lambda x, s: (
                s * sharpened(compared(x), 1.0, x)[0],
                sharpened(compared(x), 1.0, x)[1],
            ),
        ),
        Mistake(
            "own_hidden",
            "a token's own score is hidden, as in 05.1: here a token may attend to "
            "itself again",
            lambda x, s: mixed_by(
                torch.softmax(
                    (s * compared(x)).masked_fill(itself(x), -math.inf), dim=-1
                ),
                x,
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def cosines(x):
    lengths = (x**2).sum(-1, keepdim=True).sqrt()
    return (x @ x.mT) / (lengths * lengths.mT)


def by_cosine(x, sharpness):
    return by_weights(torch.softmax(sharpness * cosines(x), -1), x)


def by_powers(x, sharpness):
    """The chapter's weights to a power, divided by their sum again."""
    powers = torch.softmax(cosines(x), -1) ** sharpness
    return by_weights(powers / powers.sum(-1, keepdim=True), x)


def one_side(x, sharpness):
    unit = torch.nn.functional.normalize(x.double(), dim=-1)
    weights = torch.einsum("...id,...jd->...ij", sharpness * unit, unit).softmax(-1)
    return by_weights(weights, x.double())


def by_scores(scores):
    """The sharpness where it belongs, and some other comparison."""
    return lambda x, s: by_weights(torch.softmax(s * scores(x), -1), x)


def gram(x):
    return torch.einsum("...id,...jd->...ij", x, x)


def squares(x):
    return (x * x).sum(-1)


def far(x):
    return torch.zeros(x.shape[-2], x.shape[-2]).fill_diagonal_(-math.inf)


def roots(x, sharpness):
    unit = x / x.norm(dim=-1, keepdim=True) * sharpness**0.5
    return by_weights((unit @ unit.transpose(-1, -2)).softmax(dim=-1), x)


RIGHT = [by_cosine, by_powers, one_side, roots]
WRONG = [
    ("not_sharp", lambda x, s: by_cosine(x, 1.0)),
    ("not_sharp", lambda x, s: by_weights(by_cosine(s * x, 1.0)[1], x)),
    ("sharpness_divides", lambda x, s: by_weights((cosines(x) / s).softmax(-1), x)),
    ("sharpness_twice", lambda x, s: roots(x, s * s)),
    ("dot_product", lambda x, s: by_weights((s * (x @ x.mT)).softmax(-1), x)),
    ("dot_product_not_sharp", lambda x, s: by_einsum(x)),
    (
        "one_length_for_all",
        lambda x, s: by_weights(torch.softmax(s * x @ x.mT / (x**2).sum(), -1), x),
    ),
    (
        "values_too",
        lambda x, s: by_weights(
            by_cosine(x, s)[1], torch.nn.functional.normalize(x, dim=-1)
        ),
    ),
    ("one_length_squared", by_scores(lambda x: x @ x.mT / squares(x)[..., None])),
    ("one_length_squared", by_scores(lambda x: x @ x.mT / squares(x)[..., None, :])),
    ("sum_of_sizes", by_scores(lambda x: gram(F.normalize(x, p=1, dim=-1)))),
    ("centred_first", by_scores(lambda x: cosines(x - x.mean(-1, keepdim=True)))),
    ("centred_first", by_scores(lambda x: cosines(x - x.mean(-2, keepdim=True)))),
    (
        "length_made_longer",
        by_scores(lambda x: gram(x / (x.norm(dim=-1, keepdim=True) + 1e-2))),
    ),
    ("scaled", by_scores(lambda x: cosines(x) / math.sqrt(x.shape[-1]))),
    ("angles", by_scores(lambda x: -cosines(x).clamp(-1, 1).acos())),
    ("angles", by_scores(lambda x: cosines(x).clamp(-1, 1).acos())),
    ("tokens_scaled", lambda x, s: by_cosine(s * x, 1.0)),
    ("own_hidden", by_scores(lambda x: cosines(x) + far(x))),
    ("order", lambda x, s: by_cosine(x, s)[::-1]),
]
