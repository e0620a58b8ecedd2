"""`decoder_layer`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from ..ch10_multi_head.q3_multi_head_attention import (
    counted_anew,
    counted_back,
    merge_heads,
    split_heads,
)
from .q1_decoder_block import later

Weights = dict[str, Tensor]


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


def silent(*words: str) -> Callable[..., Tensor]:
    """The layer with zeros for the weights whose names hold these words."""

    def wrong(x: Tensor, memory: Tensor, weights: Weights, n: int) -> Tensor:
        left = {
            name: 0 * value if all(word in name for word in words) else value
            for name, value in weights.items()
        }
        return built(x, memory, left, n)

    return wrong


def last_not_added(x: Tensor, memory: Tensor, weights: Weights, n: int) -> Tensor:
    """The feed-forward layer's result alone: the layer less its stream."""
    stream = silent("linear2")(x, memory, weights, n)
    return built(x, memory, weights, n) - stream


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


QUESTION = Question(
    id="12.7",
    title="The same numbers as PyTorch",
    answer="decoder_layer",
    arguments=("x", "memory", "weights", "n_heads"),
    outputs=(Output("stream", "target d_model"),),
    reference=decoder_layer,
    primitives=True,
    given=("normed", "linear"),
    allowed=("layer_norm",),
    difficulty="hard",
    minutes=25,
    next_step="first one attention from in_proj and out_proj, then three lines of the "
    "form x = x + …",
    parts=(
        Part("one head", 2, lambda rng: [draw_layer(rng, 1)]),
        Part(
            "several heads",
            3,
            lambda rng: [draw_layer(rng, 2), draw_layer(rng, 4)],
            only_failure_hint="right for one head, wrong for several: cut every third "
            "into heads as `split_heads` of chapter 10 does, and put them together "
            "again",
        ),
    ),
    mistakes=(
        Mistake(
            "no_biases_in_attention",
            "the biases of both attentions are left out: `in_proj_bias` has a third "
            "for queries, keys and values each, and `out_proj.bias` comes at the end",
            silent("attn", "bias"),
        ),
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
            silent("multihead_attn.out_proj"),
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


# ----------------------------------------------------------------------- specimens


def attending(asking, asked, weights, name, n_heads, hidden=None, **options):
    """Attention head by head: each has its own rows of in_proj, columns of out_proj."""
    d = asking.shape[-1]
    features = options.get("features", lambda h: slice(h * d // n_heads, None))
    made = []
    for third, tokens in zip(options.get("thirds", (0, 1, 2)), (asking, asked, asked)):
        rows = weights[f"{name}.in_proj_weight"][third * d : (third + 1) * d]
        shift = weights[f"{name}.in_proj_bias"][third * d : (third + 1) * d]
        if options.get("as_it_stands"):
            rows = rows.T
        shift = shift * options.get("shift", 1)
        made.append(torch.einsum("bti,oi->bto", tokens, rows) + shift)
    total = weights[f"{name}.out_proj.bias"].expand_as(asking)
    for h in range(n_heads):
        own = torch.arange(d)[features(h)][: d // n_heads]
        queries, keys, values = (tensor[..., own] for tensor in made)
        root = math.sqrt(options.get("size", d // n_heads))
        powers = torch.exp(torch.einsum("bqd,bkd->bqk", queries, keys) / root)
        powers = powers if hidden is None else powers * ~hidden
        context = powers / powers.sum(options.get("over", -1), keepdim=True) @ values
        columns = weights[f"{name}.out_proj.weight"][:, own]
        total = total + torch.einsum("bti,oi->bto", context, columns)
    return total


def adjusted(x, weights, name):
    module = nn.LayerNorm(x.shape[-1])
    module.load_state_dict({k: weights[f"{name}.{k}"] for k in ("weight", "bias")})
    return module(x).detach()


def bent(x, weights, curve=lambda hidden: torch.clamp(hidden, min=0)):
    hidden = x @ weights["linear1.weight"].T + weights["linear1.bias"]
    return curve(hidden) @ weights["linear2.weight"].T + weights["linear2.bias"]


def layer_of_pytorch(
    step=lambda x, layer, normed: x + layer(normed(x)),
    names=("self_attn", "multihead_attn"),
    norms=("norm1", "norm2", "norm3"),
    hide=(True, False),
    asked=lambda y, memory, normed: memory,
    think=bent,
    heads=lambda n: n,
    future=later,
    **options,
):
    """The layer as three steps, or with one of them done otherwise."""

    def answer(x, memory, weights, n_heads):
        n = heads(n_heads)

        def reader(i):
            return lambda y: adjusted(y, weights, norms[i])

        def own(y):
            hidden = future(y.shape[1], y.shape[1]) if hide[0] else None
            return attending(y, y, weights, names[0], n, hidden, **options)

        def across(y):
            other = asked(y, memory, reader(1))
            hidden = future(y.shape[1], other.shape[1]) if hide[1] else None
            return attending(y, other, weights, names[1], n, hidden, **options)

        y = step(x, own, reader(0))
        y = step(y, across, reader(1))
        return step(y, lambda z: think(z, weights), reader(2))

    return answer


def by_pytorch_itself(x, memory, weights, n_heads):
    d_hidden, d_model = weights["linear1.weight"].shape
    layer = nn.TransformerDecoderLayer(
        d_model, n_heads, d_hidden, batch_first=True, norm_first=True
    )
    layer.load_state_dict(weights)
    return layer.eval()(x, memory, tgt_mask=later(x.shape[1], x.shape[1])).detach()


def with_wide_scale(x, memory, weights, n_heads):
    return layer_of_pytorch(size=x.shape[-1])(x, memory, weights, n_heads)


def with_every_nth_feature(x, memory, weights, n_heads):
    dealt = layer_of_pytorch(features=lambda h: slice(h, None, n_heads))
    return dealt(x, memory, weights, n_heads)


def without_the_look_across(x, memory, weights, n_heads):
    read, hidden = adjusted(x, weights, "norm1"), later(x.shape[1], x.shape[1])
    y = x + attending(read, read, weights, "self_attn", n_heads, hidden)
    return y + bent(adjusted(y, weights, "norm3"), weights)


def after_both_looks(x, memory, weights, n_heads, keys=None, second=None):
    """The stream before the feed-forward layer; `second` is what norm2 reads."""
    read, hidden = adjusted(x, weights, "norm1"), later(x.shape[1], x.shape[1])
    keys = read if keys is None else keys
    y = x + attending(read, keys, weights, "self_attn", n_heads, hidden)
    read = adjusted(y if second is None else second, weights, "norm2")
    return y + attending(read, memory, weights, "multihead_attn", n_heads)


def half_normed_keys(x, memory, weights, n_heads):
    y = after_both_looks(x, memory, weights, n_heads, keys=x)
    return y + bent(adjusted(y, weights, "norm3"), weights)


def looking_both_ways_at_once(x, memory, weights, n_heads):
    y = after_both_looks(x, memory, weights, n_heads, second=x)
    return y + bent(adjusted(y, weights, "norm3"), weights)


def and_then(harm):
    """The right answer, which also changes the dictionary it was lent."""

    def answer(x, memory, weights, n_heads):
        result = layer_of_pytorch()(x, memory, weights, n_heads)
        harm(weights)
        return result

    return answer


RIGHT = [layer_of_pytorch()]
WRONG = [
    ("post_norm", layer_of_pytorch(lambda x, f, normed: normed(x + f(x)))),
    ("no_norm", layer_of_pytorch(lambda x, f, normed: x + f(x))),
    (
        "added_to_the_normed",
        layer_of_pytorch(lambda x, f, normed: normed(x) + f(normed(x))),
    ),
    ("no_residual", layer_of_pytorch(lambda x, f, normed: f(normed(x)))),
    (
        "last_not_added",
        lambda x, memory, weights, n: bent(
            adjusted(after_both_looks(x, memory, weights, n), weights, "norm3"), weights
        ),
    ),
    ("found_normed", layer_of_pytorch(lambda x, f, normed: x + normed(f(x)))),
    ("side_by_side", looking_both_ways_at_once),
    ("mask_inverted", layer_of_pytorch(future=lambda t, k: ~later(t, k))),
    (
        "not_itself",
        layer_of_pytorch(future=lambda t, k: later(t, k) | torch.eye(t, k).bool()),
    ),
    (
        "scale_n_heads",
        lambda x, memory, weights, n: layer_of_pytorch(size=n)(x, memory, weights, n),
    ),
    ("one_norm", layer_of_pytorch(norms=("norm1",) * 3)),
    ("keys_not_normed", half_normed_keys),
    ("memory_normed", layer_of_pytorch(asked=lambda y, memory, normed: normed(memory))),
    ("not_causal", layer_of_pytorch(hide=(False, False))),
    ("causal_across", layer_of_pytorch(hide=(True, True))),
    ("masks_exchanged", layer_of_pytorch(hide=(False, True))),
    ("stream_asked", layer_of_pytorch(asked=lambda y, memory, normed: y)),
    ("no_cross_attention", without_the_look_across),
    ("one_attention", layer_of_pytorch(names=("self_attn", "self_attn"))),
    ("attentions_exchanged", layer_of_pytorch(names=("multihead_attn", "self_attn"))),
    ("keys_before_queries", layer_of_pytorch(thirds=(1, 0, 2))),
    ("values_before_keys", layer_of_pytorch(thirds=(0, 2, 1))),
    ("values_first", layer_of_pytorch(thirds=(1, 2, 0))),
    ("not_transposed", layer_of_pytorch(as_it_stands=True)),
    ("no_bias", layer_of_pytorch(shift=0)),
    ("scale_d_model", with_wide_scale),
    ("no_scale", layer_of_pytorch(size=1)),
    ("softmax_over_queries", layer_of_pytorch(over=-2, hide=(False, False))),
    ("one_wide_head", layer_of_pytorch(heads=lambda n: 1)),
    ("dealt_out", with_every_nth_feature),
    ("no_relu", layer_of_pytorch(think=lambda z, w: bent(z, w, lambda h: h))),
    ("gelu", layer_of_pytorch(think=lambda z, w: bent(z, w, nn.GELU()))),
    ("library", by_pytorch_itself),
    ("mutated", and_then(lambda weights: weights["norm1.bias"].add_(1))),
    ("mutated", and_then(lambda weights: weights.pop("norm1.bias"))),
    ("mutated", and_then(lambda weights: weights.update({"norm1.bias": 0}))),
]
PARTIAL = [(0, and_then(lambda weights: weights.pop("norm1.bias")))]
