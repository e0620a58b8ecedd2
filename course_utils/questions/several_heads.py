"""The questions of chapter 10 on several heads: cut, put together, the whole layer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from einops import rearrange
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import first, normal, second, sizes

# ------------------------------------------------------------------- 10.1 split heads


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    return rearrange(x, "b t (h d) -> b h t d", h=n_heads)


def counted_anew(x: Tensor, n_heads: int) -> Tensor:
    batch, token, width = x.shape
    return x.reshape(batch, n_heads, token, width // n_heads)


def transposed_first(x: Tensor, n_heads: int) -> Tensor:
    batch, token, width = x.shape
    return x.transpose(1, 2).reshape(batch, n_heads, token, width // n_heads)


def draw_tokens(rng: np.random.Generator) -> Args:
    batch, token, heads, d_head = sizes(rng, 4, least=2)
    return normal(rng, batch, token, heads * d_head), heads


def draw_one_head(rng: np.random.Generator) -> list[Args]:
    return [(normal(rng, 2, 3, 5), 1)]


SPLIT = Question(
    id="10.1",
    title="Cut the features into heads",
    answer="split_heads",
    arguments=("x", "n_heads"),
    outputs=(Output("heads", "batch head token d_head"),),
    reference=split_heads,
    next_step="give the features two axes, head and d_head, then move the head axis.",
    parts=(
        Part("several heads", 3, lambda rng: [draw_tokens(rng) for _ in range(3)]),
        Part(
            "one head",
            1,
            draw_one_head,
            alone="right for several heads, wrong for one: it also needs its axis",
        ),
    ),
    mistakes=(
        Mistake(
            "view_without_transpose",
            "the shape is right, the numbers are not: a reshape only counts them anew, "
            "so that a head gets pieces of the sentence; axes have to change places",
            counted_anew,
        ),
        Mistake(
            "transposed_too_early",
            "the tokens change places with the features before the features are cut: "
            "cut them into head and d_head first, then move the head axis",
            transposed_first,
        ),
        Mistake(
            "dealt_out",
            "the features are dealt out to the heads in turn; they lie in blocks: the "
            "first d_head features all belong to the first head",
            lambda x, n: rearrange(x, "b t (d h) -> b h t d", h=n),
        ),
        Mistake(
            "heads_after_tokens",
            "the features are cut rightly, but the head axis still stands behind the "
            "tokens: attention would then run over heads; bring it in front of them",
            lambda x, n: rearrange(x, "b t (h d) -> b t h d", h=n),
        ),
        Mistake(
            "heads_before_batch",
            "the head axis stands in front of the batch; the course's order is batch, "
            "head, token, features",
            lambda x, n: rearrange(x, "b t (h d) -> h b t d", h=n),
        ),
        Mistake(
            "features_before_tokens",
            "tokens and features have changed places within a head: rows are tokens, "
            "the features of a token stay its last axis",
            lambda x, n: rearrange(x, "b t (h d) -> b h d t", h=n),
        ),
        Mistake(
            "number_for_width",
            "n_heads is taken for the width of a head: it says how many heads there "
            "are; the width is what is left for each",
            lambda x, n: rearrange(x, "b t (h d) -> b h t d", d=n),
        ),
    ),
    packaged=("split_heads",),
)


# ------------------------------------------------------------------- 10.2 merge heads


def merge_heads(context: Tensor) -> Tensor:
    return rearrange(context, "b h t d -> b t (h d)")


def counted_back(context: Tensor) -> Tensor:
    batch, head, token, d_head = context.shape
    return context.reshape(batch, token, head * d_head)


def draw_context(rng: np.random.Generator) -> Args:
    return (normal(rng, *sizes(rng, 4, least=2)),)


MERGE = Question(
    id="10.2",
    title="Put the heads side by side again",
    answer="merge_heads",
    arguments=("context",),
    outputs=(Output("merged", "batch token d_model"),),
    reference=merge_heads,
    next_step="for each token, put the results of its heads next to each other.",
    parts=(
        Part("several heads", 2, lambda rng: [draw_context(rng) for _ in range(3)]),
        Part(
            "one head",
            1,
            lambda rng: [(normal(rng, 2, 1, 3, 5),)],
            alone="right for several heads, wrong for one",
        ),
    ),
    mistakes=(
        Mistake(
            "view_without_transpose",
            "the shape is right, the numbers are not: a reshape joins whatever lies "
            "side by side in memory, and there a head's tokens do, not a token's heads",
            counted_back,
        ),
        Mistake(
            "interleaved",
            "the heads' features are shuffled together; each head's result stays in "
            "one piece, head 1 first, then head 2, and so on",
            lambda context: rearrange(context, "b h t d -> b t (d h)"),
        ),
        Mistake(
            "averaged",
            "the heads are averaged: that leaves d_head features and mixes what they "
            "found; they are put next to each other, and W_O does the mixing",
            lambda context: context.mean(dim=1),
        ),
        Mistake(
            "added",
            "the heads are added up as they are: each must first go through its own "
            "rows of W_O; here they are only put next to each other",
            lambda context: context.sum(dim=1),
        ),
        Mistake(
            "one_after_the_other",
            "the heads are joined along the tokens, as if there were more of them: "
            "each token keeps one row, which gets wider",
            lambda context: rearrange(context, "b h t d -> b (h t) d"),
        ),
        Mistake(
            "not_joined",
            "the axes are in order, but head and features are still two: join them",
            lambda context: rearrange(context, "b h t d -> b t h d"),
        ),
    ),
    packaged=("merge_heads",),
)


# ---------------------------------------------------------------- 10.3 the whole layer


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


LAYER = Question(
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

QUESTIONS = (SPLIT, MERGE, LAYER)
