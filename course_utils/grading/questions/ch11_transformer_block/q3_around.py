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


def around(x: Tensor, w: Tensor, order: str, alpha: float) -> Tensor:
    if order == "pre":
        return x + alpha * layer(norm(x), w)
    return norm(alpha * x + layer(x, w))


def either(pre: Any, post: Any) -> Any:
    """An answer of one formula for each order."""
    return lambda x, w, order, alpha: (pre if order == "pre" else post)(x, w, alpha)


def right_pre(x: Tensor, w: Tensor, alpha: float) -> Tensor:
    return around(x, w, "pre", alpha)


def right_post(x: Tensor, w: Tensor, alpha: float) -> Tensor:
    return around(x, w, "post", alpha)


def slip(name: str, hint: str, pre: Any, post: Any, half: bool = False) -> Mistake:
    """A wrong formula for each order, recognised where only one of them is used.

    `half`: where both are used, it is another mistake.
    """
    wrong = either(pre, post)

    def either_of_them(args: Args, value: Any) -> bool:
        x, w, order = torch.as_tensor(args[0]), torch.as_tensor(args[1]), args[2]
        made = (around(x, w, order, args[3]), wrong(x, w, order, args[3]))
        return any(np.allclose(value, one, atol=1e-4) for one in made)

    of_one = either(right_pre, post) if half else wrong
    return Mistake(name, hint, of_one, either_of_them)


def draw_around(order: str) -> Any:
    def cases(rng: np.random.Generator) -> list[Args]:
        drawn: list[Args] = []
        for batch, (low, high) in (((), (0.2, 0.5)), ((2,), (2.0, 3.0))):
            token, d_model = sizes(rng, 2)
            x = 2 * normal(rng, *batch, token, d_model) + 1
            alpha = round(float(rng.uniform(low, high)), 3)
            drawn.append((x, normal(rng, d_model, d_model), order, alpha))
        return drawn

    return cases


QUESTION = Question(
    id="11.3",
    title="The two orders, with a weight",
    answer="around",
    arguments=("x", "w", "order", "alpha"),
    outputs=(Output("stream", "token d_model"),),
    reference=around,
    given=("layer", "norm"),
    difficulty="easy",
    minutes=8,
    next_step="write one formula for “pre” and one for “post”: what does alpha weigh?",
    parts=(
        Part("pre-norm", 2, draw_around("pre")),
        Part("post-norm", 2, draw_around("post")),
    ),
    mistakes=(
        Mistake(
            "the_chapters",
            "these are the chapter's two orders, in which past and layer count alike; "
            "here `alpha` weighs one of the two",
            either(
                lambda x, w, a: x + layer(norm(x), w),
                lambda x, w, a: norm(x + layer(x, w)),
            ),
        ),
        Mistake(
            "weights_exchanged",
            "alpha weighs the wrong term in both orders: in pre it weighs what the "
            "layer found, in post what came in",
            either(
                lambda x, w, a: a * x + layer(norm(x), w),
                lambda x, w, a: norm(x + a * layer(x, w)),
            ),
        ),
        slip(
            "other_term_weighed",
            "in one of the orders alpha weighs the wrong term: in pre it weighs what "
            "the layer found, in post what came in",
            lambda x, w, a: a * x + layer(norm(x), w),
            lambda x, w, a: norm(x + a * layer(x, w)),
            half=True,
        ),
        slip(
            "alpha_missing",
            "in one of the orders alpha is missing: in pre it weighs what the layer "
            "found, in post what came in",
            lambda x, w, a: x + layer(norm(x), w),
            lambda x, w, a: norm(x + layer(x, w)),
            half=True,
        ),
        slip(
            "alpha_inside_the_layer",
            "alpha stands inside the layer, before its tanh: it weighs a term of the "
            "sum, in pre what the layer found, in post what came in",
            lambda x, w, a: x + layer(a * norm(x), w),
            lambda x, w, a: norm(x + layer(a * x, w)),
        ),
        slip(
            "layer_reads_the_weighed",
            "in post the layer reads alpha times what came in: it reads x itself, and "
            "only the sum is weighed",
            lambda x, w, a: around(x, w, "pre", a),
            lambda x, w, a: norm(a * x + layer(a * x, w)),
        ),
        slip(
            "whole_sum_weighed",
            "alpha weighs the whole sum: it weighs one term of it (and after a norm a "
            "common factor is lost)",
            lambda x, w, a: a * (x + layer(norm(x), w)),
            lambda x, w, a: a * norm(x + layer(x, w)),
        ),
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
            lambda x, w, a: a * layer(norm(x), w),
            lambda x, w, a: norm(layer(x, w)),
        ),
        Mistake(
            "stream_normed_too",
            "in the pre order the normed tokens are added, so the stream itself goes "
            "through the norm; only the layer reads through it",
            either(lambda x, w, a: norm(x) + a * layer(norm(x), w), right_post),
        ),
        Mistake(
            "norm_on_the_branch",
            "in the post order the norm acts on what the layer found alone; in 2017's "
            "block it acts on the sum",
            either(right_pre, lambda x, w, a: a * x + norm(layer(x, w))),
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
            lambda x, w, a: norm(x + a * layer(norm(x), w)),
            lambda x, w, a: norm(a * x + layer(norm(x), w)),
        ),
        Mistake(
            "past_normed_alone",
            "in the post order the norm acts on what came in alone; in 2017's block it "
            "acts on the sum",
            either(right_pre, lambda x, w, a: a * norm(x) + layer(x, w)),
        ),
        Mistake(
            "no_norm",
            "there is no norm: this is the bare residual sum",
            either(
                lambda x, w, a: x + a * layer(x, w), lambda x, w, a: a * x + layer(x, w)
            ),
        ),
        slip(
            "weights_sum_to_one",
            "the other term is weighed by 1 − alpha: alpha weighs one term of the sum, "
            "and the other counts in full",
            lambda x, w, a: (1 - a) * x + a * layer(norm(x), w),
            lambda x, w, a: norm(a * x + (1 - a) * layer(x, w)),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def normalised(x):
    return nn.LayerNorm(x.shape[-1])(x).detach()


def tanh_layer(x, w):
    return torch.einsum("...i,ij->...j", x, w).tanh()


def orders(pre, post):
    return lambda x, w, order, alpha: {"pre": pre, "post": post}[order](x, w, alpha)


def pre(x, w, alpha):
    return torch.add(x, tanh_layer(normalised(x), w), alpha=alpha)


def post(x, w, alpha):
    return normalised(torch.lerp(tanh_layer(x, w), tanh_layer(x, w) + x, alpha))


def in_double(x, w, order, alpha):
    def normed(y):
        y = y - y.mean(-1, keepdim=True)
        return y / (y.square().mean(-1, keepdim=True) + 1e-5).sqrt()

    x, w = x.double(), w.double()
    if order == "pre":
        return x + alpha * (normed(x) @ w).tanh()
    return normed(alpha * x + (x @ w).tanh())


def in_numpy(x, w, order, alpha):
    def normed(y):
        y = y - y.mean(-1, keepdims=True)
        return y / np.sqrt(y.var(-1, keepdims=True) + 1e-5)

    x, w = x.numpy(), w.numpy()
    found = np.tanh((normed(x) if order == "pre" else x) @ w)
    return x + alpha * found if order == "pre" else normed(alpha * x + found)


def one_formula(x, w, order, alpha):
    """Two weights and two norms, one of which is off."""
    before, after = (normalised, lambda y: y)[:: 1 if order == "pre" else -1]
    past, found = (1, alpha) if order == "pre" else (alpha, 1)
    return after(past * x + found * tanh_layer(before(x), w))


RIGHT = [orders(pre, post), in_double, in_numpy, one_formula]
WRONG = [
    (
        "weights_sum_to_one",
        orders(lambda x, w, a: torch.lerp(x, tanh_layer(normalised(x), w), a), post),
    ),
    (
        "the_chapters",
        orders(
            lambda x, w, a: x + tanh_layer(normalised(x), w),
            lambda x, w, a: normalised(x + tanh_layer(x, w)),
        ),
    ),
    (
        "weights_exchanged",
        orders(
            lambda x, w, a: a * x + tanh_layer(normalised(x), w),
            lambda x, w, a: normalised(x + a * tanh_layer(x, w)),
        ),
    ),
    (
        "other_term_weighed",
        orders(pre, lambda x, w, a: normalised(x + a * tanh_layer(x, w))),
    ),
    ("alpha_missing", orders(lambda x, w, a: pre(x, w, 1.0), post)),
    ("alpha_missing", orders(pre, lambda x, w, a: post(x, w, 1.0))),
    ("orders_swapped", orders(post, pre)),
    ("no_residual", orders(pre, lambda x, w, a: normalised(tanh_layer(x, w)))),
    ("norm_twice", orders(lambda x, w, a: normalised(pre(x, w, a)), post)),
    (
        "norm_on_the_branch",
        orders(pre, lambda x, w, a: a * x + normalised(tanh_layer(x, w))),
    ),
    ("always_post", orders(post, post)),
    ("always_pre", orders(pre, pre)),
    (
        "no_norm",
        orders(
            lambda x, w, a: x + a * tanh_layer(x, w),
            lambda x, w, a: x * a + tanh_layer(x, w),
        ),
    ),
]
PARTIAL = [(2, orders(pre, lambda x, w, a: post(x, w, 1.0)))]
