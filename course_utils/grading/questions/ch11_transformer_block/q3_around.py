"""`around`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


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


QUESTION = Question(
    id="11.3",
    title="The two orders",
    answer="around",
    arguments=("x", "w", "order"),
    outputs=(Output("stream", "token d_model"),),
    reference=around,
    given=("layer", "norm"),
    difficulty="easy",
    minutes=6,
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


# ----------------------------------------------------------------------- specimens


def normalised(x):
    return nn.LayerNorm(x.shape[-1])(x).detach()


def tanh_layer(x, w):
    return torch.einsum("...i,ij->...j", x, w).tanh()


RIGHT = [
    lambda x, w, order: {
        "pre": x + tanh_layer(normalised(x), w),
        "post": normalised(x + tanh_layer(x, w)),
    }[order]
]
WRONG = [
    (
        "orders_swapped",
        lambda x, w, order: (
            x + tanh_layer(normalised(x), w)
            if order == "post"
            else normalised(tanh_layer(x, w) + x)
        ),
    ),
    (
        "no_residual",
        lambda x, w, order: (
            tanh_layer(normalised(x), w)
            if order == "pre"
            else normalised(tanh_layer(x, w))
        ),
    ),
    (
        "no_residual",  # in one order only
        lambda x, w, order: (
            x + tanh_layer(normalised(x), w)
            if order == "pre"
            else normalised(tanh_layer(x, w))
        ),
    ),
    (
        "norm_twice",  # in one order only
        lambda x, w, order: normalised(
            x + tanh_layer(normalised(x) if order == "pre" else x, w)
        ),
    ),
    (
        "past_normed_alone",
        lambda x, w, order: (
            x + tanh_layer(normalised(x), w)
            if order == "pre"
            else normalised(x) + tanh_layer(x, w)
        ),
    ),
    (
        "norm_on_the_branch",
        lambda x, w, order: (
            x + tanh_layer(normalised(x), w)
            if order == "pre"
            else x + normalised(tanh_layer(x, w))
        ),
    ),
    ("always_post", lambda x, w, order: normalised(x + tanh_layer(x, w))),
    ("no_norm", lambda x, w, order: x + tanh_layer(x, w)),
]
