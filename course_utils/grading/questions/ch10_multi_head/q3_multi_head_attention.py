"""`multi_head_attention`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from einops import rearrange
from torch import Tensor

from course_utils.grading.questions.draw import first, normal, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    return rearrange(x, "b t (h d) -> b h t d", h=n_heads)


def merge_heads(context: Tensor) -> Tensor:
    return rearrange(context, "b h t d -> b t (h d)")


def counted_anew(x: Tensor, n_heads: int) -> Tensor:
    batch, token, width = x.shape
    return x.reshape(batch, n_heads, token, width // n_heads)


def counted_back(context: Tensor) -> Tensor:
    batch, head, token, d_head = context.shape
    return context.reshape(batch, token, head * d_head)


def multi_head(
    x: Tensor, w_qkv: Tensor, w_o: Tensor, n_heads: int
) -> tuple[Tensor, Tensor]:
    return layer(x, w_qkv, w_o, n_heads)


def layer(
    x: Tensor,
    w_qkv: Tensor,
    w_o: Tensor,
    n_heads: int,
    *,
    order: str = "qkv",
    split: Any = split_heads,
    merge: Any = merge_heads,
    scale: float | None = None,
    dim: int = -1,
) -> tuple[Tensor, Tensor]:
    """The layer, or with one step done otherwise."""
    parts = dict(zip(order, (x @ w_qkv).chunk(3, dim=-1)))
    queries, keys, values = (split(parts[role], n_heads) for role in "qkv")
    root = math.sqrt(queries.shape[-1]) if scale is None else scale
    weights = torch.softmax(queries @ keys.transpose(-2, -1) / root, dim=dim)
    return merge(weights @ values) @ w_o, weights


def heads_before_roles(x: Tensor, w_qkv: Tensor, w_o: Tensor, n_heads: int) -> Any:
    cut = rearrange(w_qkv, "i (h p d) -> i (p h d)", h=n_heads, p=3)
    return layer(x, cut, w_o, n_heads)


def not_mixed(x: Tensor, w_qkv: Tensor, w_o: Tensor, n_heads: int) -> Any:
    return layer(x, w_qkv, torch.eye(len(w_o)), n_heads)


def weights_averaged(x: Tensor, w_qkv: Tensor, w_o: Tensor, n_heads: int) -> Any:
    output, weights = layer(x, w_qkv, w_o, n_heads)
    return output, weights.mean(dim=1)


def draw_layer(rng: np.random.Generator) -> Args:
    batch, token, heads, d_head = sizes(rng, 4, least=2)
    width = heads * d_head
    return (
        normal(rng, batch, token, width),
        normal(rng, width, 3 * width) / np.float32(math.sqrt(width) / 1.5),
        normal(rng, width, width) / np.float32(math.sqrt(width)),
        heads,
    )


def draw_layers(rng: np.random.Generator) -> list[Args]:
    return [draw_layer(rng), draw_layer(rng)]


QUESTION = Question(
    id="10.3",
    title="The whole layer",
    answer="multi_head_attention",
    arguments=("x", "w_qkv", "w_o", "n_heads"),
    outputs=(
        Output("output", "batch token d_model"),
        Output("weights", "batch head query key"),
    ),
    reference=multi_head,
    primitives=True,
    difficulty="medium",
    minutes=12,
    next_step="project, split, attend in every head, merge, multiply by W_O.",
    parts=(
        Part("weights of every head", 2, draw_layers, view=second),
        Part("output", 2, draw_layers, view=first),
    ),
    mistakes=(
        Mistake(
            "scale_d_model",
            "the scores are divided by the root of d_model: query and key of one head "
            "meet in a dot product of fewer terms than that",
            lambda x, w, o, n: layer(x, w, o, n, scale=math.sqrt(x.shape[-1])),
        ),
        Mistake(
            "no_scale",
            "the scores are not scaled: every head is scaled dot-product attention",
            lambda x, w, o, n: layer(x, w, o, n, scale=1.0),
        ),
        Mistake(
            "view_without_transpose",
            "heads are cut and joined by a reshape alone, which mixes tokens and "
            "heads: the mistake of question 10.1, and its mirror image undoes only the "
            "order",
            lambda x, w, o, n: layer(
                x, w, o, n, split=counted_anew, merge=counted_back
            ),
        ),
        Mistake(
            "split_without_transpose",
            "the weights are those of mixed-up tokens: the heads are cut by a reshape "
            "alone (question 10.1)",
            lambda x, w, o, n: layer(x, w, o, n, split=counted_anew),
        ),
        Mistake(
            "merge_without_transpose",
            "the weights are right, and then the heads are joined by a reshape alone, "
            "which mixes tokens and heads (question 10.2)",
            lambda x, w, o, n: layer(x, w, o, n, merge=counted_back),
        ),
        Mistake(
            "not_mixed",
            "the heads stand side by side, but W_O is missing: without it no output "
            "number depends on more than one head",
            not_mixed,
        ),
        Mistake(
            "w_o_transposed",
            "W_O is transposed: here it is a plain matrix (d_model, d_model), applied "
            "as it stands; only nn.Linear stores the transpose",
            lambda x, w, o, n: layer(x, w, o.T, n),
        ),
        Mistake(
            "heads_before_roles",
            "the fused columns are read head by head, with queries, keys and values "
            "inside; they come role by role: all heads' queries first",
            heads_before_roles,
        ),
        Mistake(
            "keys_before_queries",
            "queries and keys have changed places: the fused columns come as queries, "
            "keys, values",
            lambda x, w, o, n: layer(x, w, o, n, order="kqv"),
        ),
        Mistake(
            "values_before_keys",
            "keys and values have changed places: the fused columns come as queries, "
            "keys, values",
            lambda x, w, o, n: layer(x, w, o, n, order="qvk"),
        ),
        Mistake(
            "values_first",
            "the fused columns are read from their end: they come as queries, keys, "
            "values",
            lambda x, w, o, n: layer(x, w, o, n, order="vkq"),
        ),
        Mistake(
            "scale_without_root",
            "the scores are divided by the width of a head: by its root, or they "
            "become too small",
            lambda x, w, o, n: layer(x, w, o, n, scale=w.shape[-1] / 3 / n),
        ),
        Mistake(
            "weights_averaged",
            "the weights are averaged over the heads: that hides what each head does; "
            "keep the head axis",
            weights_averaged,
        ),
        Mistake(
            "softmax_over_heads",
            "the softmax runs over the heads, so that they compete for each key: every "
            "query of every head shares out its own unit among the keys",
            lambda x, w, o, n: layer(x, w, o, n, dim=1),
        ),
        Mistake(
            "softmax_over_queries",
            "the softmax runs over the queries; it runs over the keys, so that each "
            "query shares out one unit of attention",
            lambda x, w, o, n: layer(x, w, o, n, dim=-2),
        ),
        Mistake(
            "one_wide_head",
            "n_heads is not used: this is one wide head, with one table of weights for "
            "everything",
            lambda x, w, o, n: layer(x, w, o, 1),
        ),
    ),
    packaged=("HeadProjections",),
)


# ----------------------------------------------------------------------- specimens


def by_slices(x, n_heads):
    width = x.shape[-1] // n_heads
    return torch.stack([x[..., h * width :][..., :width] for h in range(n_heads)], 1)


def viewed(x, n_heads):
    return x.contiguous().view(x.size(0), n_heads, x.size(1), x.size(2) // n_heads)


def concatenated(context):
    return torch.cat(list(context.unbind(1)), dim=-1)


def layer_by_einsum(
    split=by_slices, merge=concatenated, root=None, axis=3, order=(0, 1, 2)
):
    """The layer head by head in einsum, with one step done otherwise."""

    def answer(x, w_qkv, w_o, n_heads):
        d = w_o.shape[0]
        made = [torch.einsum("btd,de->bte", x, w_qkv[:, i * d :][:, :d]) for i in order]
        q, k, v = (split(part, n_heads) for part in made)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
        scores = scores / (root(x) if root else math.sqrt(q.shape[-1]))
        scores = scores - scores.amax(axis, keepdim=True)
        weights = scores.exp() / scores.exp().sum(axis, keepdim=True)
        context = torch.einsum("bhqk,bhkd->bhqd", weights, v)
        return torch.einsum("btd,de->bte", merge(context), w_o), weights

    return answer


RIGHT = [layer_by_einsum()]
WRONG = [
    ("scale_d_model", layer_by_einsum(root=lambda x: x.shape[-1] ** 0.5)),
    ("no_scale", layer_by_einsum(root=lambda x: 1)),
    (
        "view_without_transpose",
        layer_by_einsum(
            split=viewed, merge=lambda c: c.reshape(c.size(0), c.size(2), -1)
        ),
    ),
    ("split_without_transpose", layer_by_einsum(split=viewed)),
    (
        "merge_without_transpose",
        layer_by_einsum(merge=lambda c: c.reshape(c.size(0), c.size(2), -1)),
    ),
    ("not_mixed", lambda x, w, o, n: layer_by_einsum()(x, w, torch.eye(o.shape[0]), n)),
    ("w_o_transposed", lambda x, w, o, n: layer_by_einsum()(x, w, o.t(), n)),
    ("keys_before_queries", layer_by_einsum(order=(1, 0, 2))),
    ("values_before_keys", layer_by_einsum(order=(0, 2, 1))),
    ("values_first", layer_by_einsum(order=(2, 1, 0))),
    (
        "scale_without_root",
        lambda x, w, o, n: layer_by_einsum(root=lambda x: x.shape[-1] / n)(x, w, o, n),
    ),
    (
        "heads_before_roles",
        lambda x, w, o, n: layer_by_einsum()(
            x,
            w.reshape(len(w), n, 3, -1).transpose(1, 2).reshape(w.shape),
            o,
            n,
        ),
    ),
    (
        "weights_averaged",
        lambda x, w, o, n: (lambda y, a: (y, a.sum(1) / n))(
            *layer_by_einsum()(x, w, o, n)
        ),
    ),
    ("softmax_over_heads", layer_by_einsum(axis=1)),
    ("softmax_over_queries", layer_by_einsum(axis=2)),
    ("one_wide_head", lambda x, w, o, n: layer_by_einsum()(x, w, o, 1)),
]
