"""The question of chapter 12 on PyTorch's own decoder layer, from its plain weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import normal, sizes
from course_utils.questions.several_heads import (
    counted_anew,
    counted_back,
    merge_heads,
    split_heads,
)

Weights = dict[str, Tensor]


# --------------------------------------------------------------------- the right answer


def decoder_layer(x: Tensor, memory: Tensor, weights: Weights, n_heads: int) -> Tensor:
    return built(x, memory, weights, n_heads)


def norm(x: Tensor, weights: Weights, name: str) -> Tensor:
    scale, shift = weights[f"{name}.weight"], weights[f"{name}.bias"]
    return F.layer_norm(x, x.shape[-1:], scale, shift)


def linear(x: Tensor, weights: Weights, name: str) -> Tensor:
    return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])


def look(
    asking: Tensor,
    asked: Tensor,
    weights: Weights,
    name: str,
    n_heads: int,
    causal: bool,
    *,
    thirds: str = "qkv",
    split: Callable[[Tensor, int], Tensor] = split_heads,
    merge: Callable[[Tensor], Tensor] = merge_heads,
    width: Callable[[Tensor], int] = lambda head: head.shape[-1],
    bias: float = 1.0,
    transposed: bool = True,
    dim: int = -1,
    hidden: Callable[[Tensor], Tensor] = lambda ones: ones.triu(1),
    mixed: bool = True,
) -> Tensor:
    """One of the two attentions, or with one of its steps done otherwise."""
    rows = dict(zip(thirds, weights[f"{name}.in_proj_weight"].chunk(3)))
    shifts = dict(zip(thirds, weights[f"{name}.in_proj_bias"].chunk(3)))
    made = []
    for role, tokens in zip("qkv", (asking, asked, asked)):
        matrix = rows[role].T if transposed else rows[role]
        made.append(split(tokens @ matrix + bias * shifts[role], n_heads))
    queries, keys, values = made
    scores = queries @ keys.mT / math.sqrt(width(queries))
    if causal:
        blocked = hidden(torch.ones(scores.shape[-2:])).bool()
        scores = scores.masked_fill(blocked, -torch.inf)
    found = merge(torch.softmax(scores, dim=dim) @ values)
    return linear(found, weights, f"{name}.out_proj") if mixed else found


def built(
    x: Tensor,
    memory: Tensor,
    weights: Weights,
    n_heads: int,
    *,
    order: str = "pre",
    causal: tuple[bool, bool] = (True, False),
    attentions: tuple[str, str] = ("self_attn", "multihead_attn"),
    norms: tuple[str, str, str] = ("norm1", "norm2", "norm3"),
    kept: float = 1.0,
    memory_norm: str = "",
    relu: Callable[[Tensor], Tensor] = torch.relu,
    **options: Any,
) -> Tensor:
    """The layer, or with one of its parts made differently."""

    def asks(y: Tensor, asked: Tensor, i: int) -> Tensor:
        return look(y, asked, weights, attentions[i], n_heads, causal[i], **options)

    memory = norm(memory, weights, memory_norm) if memory_norm else memory
    layers: tuple[Callable[[Tensor], Tensor], ...] = (
        lambda y: asks(y, y, 0),
        lambda y: asks(y, memory, 1),
        lambda y: linear(relu(linear(y, weights, "linear1")), weights, "linear2"),
    )
    for layer, name in zip(layers, norms):
        if order == "pre":
            x = kept * x + layer(norm(x, weights, name))
        elif order == "normed stream":
            x = norm(x, weights, name)
            x = x + layer(x)
        elif order == "found":
            x = x + norm(layer(x), weights, name)
        else:
            x = x + layer(x)
            x = norm(x, weights, name) if order == "post" else x
    return x


# --------------------------------------------------------------------- the wrong ones


def but(**options: Any) -> Callable[..., Tensor]:
    """The layer with some of its parts made differently."""
    return lambda x, memory, weights, n: built(x, memory, weights, n, **options)


def dealt_out(x: Tensor, n_heads: int) -> Tensor:
    return rearrange(x, "b t (d h) -> b h t d", h=n_heads)


def gathered(context: Tensor) -> Tensor:
    return rearrange(context, "b h t d -> b t (d h)")


def scaled_by_d_model(x: Tensor, memory: Tensor, weights: Weights, n: int) -> Tensor:
    return built(x, memory, weights, n, width=lambda head: x.shape[-1])


def head_by_head(x: Tensor, memory: Tensor, weights: Weights, n: int) -> Tensor:
    """Read the rows of in_proj as if each head kept its own three parts together."""
    read = {
        name: rearrange(value, "(h p d) ... -> (p h d) ...", h=n, p=3)
        if "in_proj" in name
        else value
        for name, value in weights.items()
    }
    return built(x, memory, read, n)


def thought_over(y: Tensor, weights: Weights) -> Tensor:
    """The right end of the layer: the stream, and what the feed-forward layer finds."""
    hidden = torch.relu(linear(norm(y, weights, "norm3"), weights, "linear1"))
    return y + linear(hidden, weights, "linear2")


def keys_not_normed(x: Tensor, memory: Tensor, weights: Weights, n: int) -> Tensor:
    asking = norm(x, weights, "norm1")
    y = x + look(asking, x, weights, "self_attn", n, True)
    asking = norm(y, weights, "norm2")
    y = y + look(asking, memory, weights, "multihead_attn", n, False)
    return thought_over(y, weights)


def stream_asked(x: Tensor, memory: Tensor, weights: Weights, n: int) -> Tensor:
    """The second attention asks the normed stream, as the first does."""
    y = x + look(*2 * (norm(x, weights, "norm1"),), weights, "self_attn", n, True)
    read = norm(y, weights, "norm2")
    y = y + look(read, read, weights, "multihead_attn", n, False)
    return thought_over(y, weights)


def side_by_side(x: Tensor, memory: Tensor, weights: Weights, n: int) -> Tensor:
    """Both looks read the stream as it came in."""
    read = norm(x, weights, "norm1")
    y = x + look(read, read, weights, "self_attn", n, True)
    read = norm(x, weights, "norm2")
    y = y + look(read, memory, weights, "multihead_attn", n, False)
    return thought_over(y, weights)


def last_not_added(x: Tensor, memory: Tensor, weights: Weights, n: int) -> Tensor:
    """The feed-forward layer's result alone: the layer less its stream."""
    silent = {
        name: 0 * value if "linear2" in name else value
        for name, value in weights.items()
    }
    return built(x, memory, weights, n) - built(x, memory, silent, n)


def no_cross_attention(x: Tensor, memory: Tensor, weights: Weights, n: int) -> Tensor:
    silent = {
        name: 0 * value if "multihead_attn.out_proj" in name else value
        for name, value in weights.items()
    }
    return built(x, memory, silent, n)


# -------------------------------------------------------------------------- the inputs


def draw_weights(rng: np.random.Generator, d_model: int, d_hidden: int) -> Any:
    """Draw the state of one `nn.TransformerDecoderLayer`, nothing in it 0 or 1."""

    def matrix(n_out: int, n_in: int) -> np.ndarray:
        return normal(rng, n_out, n_in) * np.float32(1.3 / math.sqrt(n_in))

    weights = {}
    for name in ("self_attn", "multihead_attn"):
        weights[f"{name}.in_proj_weight"] = matrix(3 * d_model, d_model)
        weights[f"{name}.in_proj_bias"] = normal(rng, 3 * d_model)
        weights[f"{name}.out_proj.weight"] = matrix(d_model, d_model)
        weights[f"{name}.out_proj.bias"] = normal(rng, d_model)
    for name, n_out, n_in in (
        ("linear1", d_hidden, d_model),
        ("linear2", d_model, d_hidden),
    ):
        weights[f"{name}.weight"] = matrix(n_out, n_in)
        weights[f"{name}.bias"] = normal(rng, n_out)
    for name in ("norm1", "norm2", "norm3"):
        weights[f"{name}.weight"] = 1 + np.float32(0.5) * normal(rng, d_model)
        weights[f"{name}.bias"] = normal(rng, d_model)
    return weights


def draw_layer(rng: np.random.Generator, n_heads: int) -> Args:
    batch, target, source, d_head = sizes(rng, 4)
    d_model = n_heads * d_head
    return (
        normal(rng, batch, target, d_model),
        normal(rng, batch, source, d_model),
        draw_weights(rng, d_model, d_model + 3),
        n_heads,
    )


# ---------------------------------------------------------------------- 12.7 the layer

LIBRARY = Question(
    id="12.7",
    title="The same numbers as PyTorch",
    answer="decoder_layer",
    arguments=("x", "memory", "weights", "n_heads"),
    outputs=(Output("stream", "target d_model"),),
    reference=decoder_layer,
    primitives=True,
    next_step="first one attention from in_proj and out_proj, then three lines of the "
    "form x = x + …",
    parts=(
        Part("one head", 2, lambda rng: [draw_layer(rng, 1)]),
        Part(
            "several heads",
            3,
            lambda rng: [draw_layer(rng, 2), draw_layer(rng, 4)],
            alone="right for one head, wrong for several: cut every third into heads "
            "as `split_heads` of chapter 10 does, and put them together again",
        ),
    ),
    mistakes=(
        Mistake(
            "post_norm",
            "this is the post-norm order, norm(x + …), which is PyTorch's default; "
            "with norm_first=True the norm stands before the layer, and nothing after",
            but(order="post"),
        ),
        Mistake(
            "no_norm",
            "the layers read the stream as it is: each reads it through a norm of its "
            "own, norm1, norm2 and norm3",
            but(order="none"),
        ),
        Mistake(
            "added_to_the_normed",
            "what a layer found is added to the normed stream; it is added to the "
            "stream itself",
            but(order="normed stream"),
        ),
        Mistake(
            "no_residual",
            "what a layer found takes the place of the stream; it is added to it",
            but(kept=0.0),
        ),
        Mistake(
            "last_not_added",
            "both looks are added to the stream, but what the feed-forward layer found "
            "takes its place; it is added as well",
            last_not_added,
        ),
        Mistake(
            "found_normed",
            "the norm is put around what a layer found, x + norm(f(x)): it belongs in "
            "front of the layer, x + f(norm(x))",
            but(order="found"),
        ),
        Mistake(
            "side_by_side",
            "both looks read the stream as it came in: the second has to read what the "
            "first left",
            side_by_side,
        ),
        Mistake(
            "one_norm",
            "norm1 is used three times: the three norms have scales and shifts of "
            "their own",
            but(norms=("norm1", "norm1", "norm1")),
        ),
        Mistake(
            "keys_not_normed",
            "the look back asks through norm1, but what is asked has not gone through "
            "it: queries, keys and values are all made of the normed stream",
            keys_not_normed,
        ),
        Mistake(
            "memory_normed",
            "the memory goes through norm2 as well: that norm belongs to the stream; "
            "the encoder has normed the memory already",
            but(memory_norm="norm2"),
        ),
        Mistake(
            "not_causal",
            "the target sees its own future: the look back needs a causal mask",
            but(causal=(False, False)),
        ),
        Mistake(
            "mask_inverted",
            "the mask hides the past and shows the future, and the last token has "
            "nothing to look at: tril says what may be seen, triu(1) what may not",
            but(hidden=lambda ones: ones.tril()),
        ),
        Mistake(
            "not_itself",
            "the mask hides a token from itself, and the first token has nothing to "
            "look at: only what comes after it is hidden",
            but(hidden=lambda ones: ones.triu()),
        ),
        Mistake(
            "causal_across",
            "the look at the source is masked as if it were the future: only the look "
            "back is masked",
            but(causal=(True, True)),
        ),
        Mistake(
            "masks_exchanged",
            "the mask is on the wrong look: the target's future is hidden, the source "
            "is open",
            but(causal=(False, True)),
        ),
        Mistake(
            "stream_asked",
            "the second attention asks the stream once more: its keys and values are "
            "made of the memory, its queries alone of the stream",
            stream_asked,
        ),
        Mistake(
            "no_cross_attention",
            "the memory is not used: multihead_attn, the look across, is missing",
            no_cross_attention,
        ),
        Mistake(
            "one_attention",
            "both looks use the weights of self_attn: those of the look across are "
            "called multihead_attn",
            but(attentions=("self_attn", "self_attn")),
        ),
        Mistake(
            "attentions_exchanged",
            "the weights of the two attentions have changed places: self_attn looks "
            "back, multihead_attn looks across",
            but(attentions=("multihead_attn", "self_attn")),
        ),
        Mistake(
            "keys_before_queries",
            "queries and keys have changed places: the thirds of in_proj_weight are "
            "those of queries, keys, values, from the top",
            but(thirds="kqv"),
        ),
        Mistake(
            "values_before_keys",
            "keys and values have changed places: the thirds of in_proj_weight are "
            "those of queries, keys, values, from the top",
            but(thirds="qvk"),
        ),
        Mistake(
            "values_first",
            "the first third is taken for the values: the thirds of in_proj_weight are "
            "those of queries, keys, values, from the top",
            but(thirds="vqk"),
        ),
        Mistake(
            "not_transposed",
            "the thirds are multiplied as they stand, x @ W: PyTorch stores one row "
            "for each output, so it is x @ W.T + b, as F.linear does it",
            but(transposed=False),
        ),
        Mistake(
            "no_bias",
            "in_proj_bias is not added: queries, keys and values have biases, in "
            "thirds like the weights",
            but(bias=0.0),
        ),
        Mistake(
            "scale_d_model",
            "the scores are divided by the root of d_model: query and key of one head "
            "have d_model / n_heads features",
            scaled_by_d_model,
        ),
        Mistake(
            "scale_n_heads",
            "the scores are divided by the root of the number of heads; it is the root "
            "of the width of one head",
            lambda x, memory, weights, n: built(
                x, memory, weights, n, width=lambda head: n
            ),
        ),
        Mistake(
            "no_scale",
            "the scores are not scaled: every head divides by the root of its width",
            but(width=lambda head: 1),
        ),
        Mistake(
            "softmax_over_queries",
            "the softmax runs over the queries; it runs over the keys, so that each "
            "query shares out one unit of attention",
            but(dim=-2, causal=(False, False)),
        ),
        Mistake(
            "one_wide_head",
            "n_heads is not used: this is one wide head, with one table of weights for "
            "all features",
            lambda x, memory, weights, n: built(x, memory, weights, 1),
        ),
        Mistake(
            "view_without_transpose",
            "heads are cut and joined by a reshape alone, which mixes tokens and "
            "heads: cut the features into head and d_head, then move the head axis",
            but(split=counted_anew, merge=counted_back),
        ),
        Mistake(
            "split_without_transpose",
            "heads are cut by a reshape alone, which mixes tokens and heads: cut the "
            "features into head and d_head, then move the head axis",
            but(split=counted_anew),
        ),
        Mistake(
            "merge_without_transpose",
            "heads are joined by a reshape alone, which mixes tokens and heads: move "
            "the head axis behind the tokens first",
            but(merge=counted_back),
        ),
        Mistake(
            "dealt_out",
            "the features are dealt out to the heads in turn; they lie in blocks: the "
            "first d_head features of a third all belong to the first head",
            but(split=dealt_out, merge=gathered),
        ),
        Mistake(
            "head_by_head",
            "in_proj is read head by head, with queries, keys and values inside; it "
            "comes role by role: the queries of all heads first",
            head_by_head,
        ),
        Mistake(
            "not_mixed",
            "the heads stand side by side, but out_proj is missing",
            but(mixed=False),
        ),
        Mistake(
            "no_relu",
            "nothing stands between linear1 and linear2: without the ReLU they are one "
            "matrix",
            but(relu=lambda hidden: hidden),
        ),
        Mistake(
            "gelu",
            "the feed-forward layer bends with GELU: this one, like that of 2017, has "
            "a ReLU",
            but(relu=F.gelu),
        ),
    ),
)

QUESTIONS = (LIBRARY,)
