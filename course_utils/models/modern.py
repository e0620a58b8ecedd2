"""Today's block: what Llama, Gemma and nanochat changed in the block of 2017.

The changes are the switches of `Choices`. With all of them at their defaults the block
is chapter 11's `EncoderBlock`, number for number.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.models.attention import (
    KeyValueCache,
    causal_mask,
    fused_attention,
    masked_softmax,
    merge_heads,
    split_heads,
)
from course_utils.models.blocks import (
    FeedForward,
    Residual,
    SelfWeights,
    activation_named,
    require_width,
)
from course_utils.models.choices import GATED, NORMS, Choices
from course_utils.shapes import (
    Bool,
    Float,
    require_heads,
    require_qkv,
    require_sequence,
    require_sizes,
    shape_of,
)

# ------------------------------------------------------------------------ functions


def rms_norm(
    x: Float[Tensor, "*batch d_model"],
    gamma: Float[Tensor, "d_model"],
    eps: float = 1e-5,
) -> Float[Tensor, "*batch d_model"]:
    """Bring every token to root mean square 1, and scale each feature.

    $gamma * x / sqrt(mean(x^2) + eps)$: LayerNorm without the mean and without the
    shift. Taught in chapter 16.
    """
    require_width(gamma, x.shape[-1], "gamma")
    mean_square = x.square().mean(dim=-1, keepdim=True)
    return gamma * x / torch.sqrt(mean_square + eps)


def soft_cap(scores: Float[Tensor, "..."], cap: float) -> Float[Tensor, "..."]:
    """Keep numbers between -cap and cap, smoothly: cap * tanh(scores / cap).

    Small scores hardly change, large ones can't run away. Taught in chapter 16.
    """
    if not 0 < cap < torch.inf:
        raise ValueError(f"cap is {cap}, expected a finite number above 0.")
    return cap * torch.tanh(scores / cap)


def share_heads(
    x: Float[Tensor, "batch kv_head key d_head"], n_heads: int
) -> Float[Tensor, "batch head key d_head"]:
    """Give each head of queries its keys (or values): neighbours share one.

    Head $h$ reads key-value head $floor(h G / H)$, of $G$ for $H$ heads.
    Taught in chapter 16.
    """
    if x.dim() != 4 or n_heads < 1 or n_heads % x.shape[1]:
        raise ValueError(
            f"x has shape {shape_of(x)}, expected (batch, kv_head, key, d_head) with a "
            f"number of heads that divides n_heads = {n_heads}."
        )
    return x.repeat_interleave(n_heads // x.shape[1], dim=1)


def window_mask(
    n_queries: int, n_keys: int, window: int, device: torch.device | None = None
) -> Bool[Tensor, "query key"]:
    """Let each position see itself and a few before it: $0 <= i - j < window$.

    With more keys than queries the last query sees the last key. Taught in chapter 16.
    """
    if window < 1:
        raise ValueError(f"window is {window}, expected 1 (the token alone) or more.")
    past = causal_mask(n_queries, n_keys, device)
    return past.triu(n_keys - n_queries - window + 1)


def grouped_attention(
    queries: Float[Tensor, "batch head query d_head"],
    keys: Float[Tensor, "batch kv_head key d_head"],
    values: Float[Tensor, "batch kv_head key d_head"],
    mask: Bool[Tensor, "..."] | None = None,
    causal: bool = False,
    cap: float | None = None,
    dropout: float = 0.0,
    need_weights: bool = False,
    bias: Float[Tensor, "..."] | None = None,
) -> tuple[
    Float[Tensor, "batch head query d_head"],
    Float[Tensor, "batch head query key"] | None,
]:
    """Attend with fewer heads of keys and values than of queries.

    $C_h = softmax(Q_h K_g^T / sqrt(d_head) + B_h) V_g$, $g$ the group of head $h$; the
    scores are capped, and weights dropped, if asked. Used in chapter 16.
    """
    if queries.dim() != 4:
        raise ValueError(
            f"queries has shape {shape_of(queries)}, expected (batch, head, query, "
            "d_head)."
        )
    keys, values = (share_heads(x, queries.shape[1]) for x in (keys, values))
    if cap is None and not dropout:  # one kernel does it
        return fused_attention(queries, keys, values, mask, causal, bias, need_weights)
    require_qkv(queries, keys, values, mask)
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    scores = scores if cap is None else soft_cap(scores, cap)
    scores = scores if bias is None else scores + bias
    if causal:
        past = causal_mask(scores.shape[-2], scores.shape[-1], scores.device)
        mask = past if mask is None else mask & past
    weights = masked_softmax(scores, mask)
    context = F.dropout(weights, dropout) @ values
    return context, weights if need_weights else None


# -------------------------------------------------------------------------- modules


def norm_named(kind: str, width: int, eps: float, bias: bool) -> nn.Module:
    """Return a norm: LayerNorm, RMSNorm, or RMSNorm with no weights."""
    if kind == "layer":
        return nn.LayerNorm(width, eps, bias=bias)
    return nn.RMSNorm(width, eps, elementwise_affine=kind == "rms")


class GatedFeedForward(nn.Module):
    """Work on every token by itself, one matrix opening a gate for another.

    $SwiGLU(x) = (silu(x W_gate) * x W_1) W_2$, with three matrices where FFN has two.
    Taught in chapter 16.
    """

    def __init__(
        self, d_model: int, d_hidden: int, activation: str = "silu", bias: bool = False
    ):
        super().__init__()
        require_sizes(d_model=d_model, d_hidden=d_hidden)
        self.activation = activation_named(activation)
        self.gate = nn.Linear(d_model, d_hidden, bias=bias)
        self.wide = nn.Linear(d_model, d_hidden, bias=bias)
        self.narrow = nn.Linear(d_hidden, d_model, bias=bias)

    def forward(
        self, x: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch d_model"]:
        require_width(x, self.wide.in_features)
        return self.narrow(self.activation(self.gate(x)) * self.wide(x))


class GroupedQueryAttention(nn.Module):
    """Self-attention whose heads of queries share fewer heads of keys and values.

    `n_kv_heads` = `n_heads` is multi-head attention (chapter 10), 1 multi-query
    attention; a cache has `n_kv_heads` / `n_heads` of the bytes. Used in chapter 16.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        n_kv_heads: int | None = None,
        bias: bool = True,
        qk_norm: str | None = None,
        cap: float | None = None,
        dropout: float = 0.0,
        eps: float = 1e-5,
    ):
        super().__init__()
        require_heads(d_model, n_heads)
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        if n_kv_heads < 1 or n_heads % n_kv_heads:
            raise ValueError(
                f"n_heads = {n_heads} is no multiple of n_kv_heads = {n_kv_heads}; "
                "every key-value head serves as many heads."
            )
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.cap, self.dropout = cap, dropout
        d_head = d_model // n_heads
        self.sizes = [n_heads * d_head, n_kv_heads * d_head, n_kv_heads * d_head]
        self.qkv = nn.Linear(d_model, sum(self.sizes), bias=bias)
        self.output = nn.Linear(d_model, d_model, bias=bias)
        if qk_norm is not None and qk_norm not in NORMS:
            raise ValueError(f"qk_norm is {qk_norm!r}, expected None or {NORMS}.")
        self.query_norm, self.key_norm = (
            norm_named(qk_norm, d_head, eps, bias) if qk_norm else nn.Identity()
            for _ in range(2)
        )

    def forward(
        self,
        x: Float[Tensor, "batch token d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        causal: bool = False,
        need_weights: bool = False,
        rotate: Callable[[Tensor], Tensor] | None = None,
        cache: KeyValueCache | None = None,
        bias: Float[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "batch token d_model"], SelfWeights]:
        require_sequence(x, self.output.in_features)
        parts = self.qkv(x).split(self.sizes, dim=-1)
        counts = (self.n_heads, self.n_kv_heads, self.n_kv_heads)
        queries, keys, values = (split_heads(p, n)[0] for p, n in zip(parts, counts))
        queries, keys = self.query_norm(queries), self.key_norm(keys)
        if rotate is not None:
            queries, keys = rotate(queries), rotate(keys)
        if cache is not None:
            keys, values = cache.extend(keys, values)
        if mask is not None and mask.dim() == 3:
            mask = mask[:, None]
        dropout = self.dropout if self.training else 0.0
        context, weights = grouped_attention(
            *(queries, keys, values, mask, causal),
            *(self.cap, dropout, need_weights, bias),
        )
        return self.output(merge_heads(context)), weights


class ModernBlock(nn.Module):
    """A pre-norm block with switches.

    $x <- x + attention(norm(x))$, then $x <- x + FFN(norm(x))$.
    At the defaults of `Choices` it is chapter 11's `EncoderBlock` with gelu.
    Used in chapter 16.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_hidden: int | None = None,
        choices: Choices | None = None,
    ):
        super().__init__()
        c = Choices() if choices is None else choices
        kind = c.norm if c.norm == "plain" else "rms"
        self.attention = GroupedQueryAttention(
            d_model,
            n_heads,
            c.n_kv_heads,
            c.bias,
            kind if c.qk_norm else None,
            c.soft_cap,
            c.attention_dropout,
            c.eps,
        )
        self.feed_forward = feed_forward_of(c, d_model, d_hidden)
        self.around_attention = Residual(d_model, "pre", c.dropout)
        self.around_feed_forward = Residual(d_model, "pre", c.dropout)
        for around in (self.around_attention, self.around_feed_forward):
            around.add_module("norm", norm_named(c.norm, d_model, c.eps, c.bias))

    def forward(
        self,
        x: Float[Tensor, "batch token d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        causal: bool = False,
        need_weights: bool = False,
        rotate: Callable[[Tensor], Tensor] | None = None,
        cache: KeyValueCache | None = None,
        bias: Float[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "batch token d_model"], SelfWeights]:
        normed = self.around_attention.before(x)
        update, weights = self.attention(
            normed, mask, causal, need_weights, rotate, cache, bias
        )
        x = self.around_attention.after(x, update)
        update = self.feed_forward(self.around_feed_forward.before(x))
        return self.around_feed_forward.after(x, update), weights


def feed_forward_of(
    choices: Choices, d_model: int, d_hidden: int | None = None
) -> FeedForward | GatedFeedForward:
    """Build the feed-forward layer: $4 d_model$ wide, or $8/3 d_model$ with a gate.

    Both have about $8 d_model^2$ weights.
    """
    kind = choices.feed_forward
    if kind in GATED:
        d_hidden = d_hidden or 8 * d_model // 3
        return GatedFeedForward(d_model, d_hidden, GATED[kind], choices.bias)
    layer = FeedForward(d_model, d_hidden or 4 * d_model, kind)
    if not choices.bias:
        for matrix in (layer.wide, layer.narrow):
            matrix.register_parameter("bias", None)
    return layer


check_arguments(__name__)
