"""Attention: a weighted average of values, the weights decided by queries and keys.

Maths, code and prose use one notation (the book's page *notation*): `queries`, `keys`,
`values`, `scores` before the softmax, `weights` after it, `context` for the result. A
mask is boolean, True = may attend, as in `F.scaled_dot_product_attention`.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from course_utils.shapes import Bool, Float, Int, Shaped, shape_of

# --------------------------------------------------------------------- clear errors


def require_mask(mask: Tensor | None, scores_shape: tuple[int, ...]) -> None:
    """Refuse a mask that is not boolean or does not broadcast to the scores."""
    if mask is None:
        return
    if mask.dtype != torch.bool:
        raise ValueError(
            f"mask has dtype {mask.dtype}, expected torch.bool with True = may attend; "
            "write `mask.bool()` if 1 means may attend, `mask == 0` if 0 does."
        )
    try:
        fits = torch.broadcast_shapes(mask.shape, scores_shape) == scores_shape
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"mask has shape {shape_of(mask)}, which does not broadcast to the scores' "
            f"{tuple(scores_shape)} (…, query, key); add the missing axes with "
            "`mask[:, None, :]` or the like."
        )


def require_qkv(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None
) -> None:
    """Refuse queries, keys, values and a mask that do not fit together.

    Says what came, what was expected and what to do. Taught in chapter 06.
    """
    for name, tensor in (("queries", queries), ("keys", keys), ("values", values)):
        if tensor.dim() < 2:
            raise ValueError(
                f"{name} has shape {shape_of(tensor)}, expected at least two axes "
                "(tokens, features); one token alone is `x[None, :]`."
            )
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(
            f"queries {shape_of(queries)} and keys {shape_of(keys)} differ in their "
            f"last axis, d_k ({queries.shape[-1]} against {keys.shape[-1]}); a dot "
            "product needs them equal: project both to the same d_k."
        )
    if keys.shape[-2] != values.shape[-2]:
        raise ValueError(
            f"keys {shape_of(keys)} and values {shape_of(values)} differ in their "
            f"key axis ({keys.shape[-2]} against {values.shape[-2]}); every key "
            "carries one value: make both from the same tokens."
        )
    try:
        batch = torch.broadcast_shapes(
            queries.shape[:-2], keys.shape[:-2], values.shape[:-2]
        )
    except RuntimeError:
        raise ValueError(
            f"the leading axes of queries {shape_of(queries)}, keys {shape_of(keys)} "
            f"and values {shape_of(values)} do not match; give all three the same "
            "batch (and head) axes."
        ) from None
    require_mask(mask, (*batch, queries.shape[-2], keys.shape[-2]))


def require_sequence(x: Tensor, d_model: int, name: str = "x") -> None:
    """Refuse anything but `(batch, token, d_model)`, naming what came."""
    if x.dim() != 3 or x.shape[-1] != d_model:
        raise ValueError(
            f"{name} has shape {shape_of(x)}, expected (batch, token, {d_model}); "
            "a single sequence needs a batch axis: `x[None]`."
        )


# ------------------------------------------------------------------------ functions


def masked_softmax(
    scores: Float[Tensor, "*batch query key"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Turn scores into weights over the keys that may be seen.

    A_ij = exp(S_ij) / sum over allowed j' of exp(S_ij'), and 0 where j is blocked; a
    query that may see nothing gets zeros, never NaN. Taught in chapter 09.
    """
    if mask is None:
        return torch.softmax(scores, dim=-1)
    require_mask(mask, tuple(scores.shape))
    scores = scores.masked_fill(~mask, -torch.inf)
    blocked = ~mask.expand_as(scores).any(dim=-1, keepdim=True)
    return torch.softmax(scores.masked_fill(blocked, 0.0), dim=-1).masked_fill(
        ~mask, 0.0
    )


def attention(
    queries: Float[Tensor, "*batch query d_k"],
    keys: Float[Tensor, "*batch key d_k"],
    values: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "..."] | None = None,
) -> tuple[Float[Tensor, "*batch query d_v"], Float[Tensor, "*batch query key"]]:
    """Scaled dot-product attention: every query's weighted average of the values.

    C = softmax(Q K^T / sqrt(d_k)) V, the softmax over keys. Returns context and
    weights. Taught in chapter 06, the mask in chapter 09.
    """
    require_qkv(queries, keys, values, mask)
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(keys.shape[-1])
    weights = masked_softmax(scores, mask)
    return weights @ values, weights


def basic_self_attention(
    x: Float[Tensor, "*batch token d_model"],
) -> tuple[Float[Tensor, "*batch token d_model"], Float[Tensor, "*batch token token"]]:
    """Mix every token with those similar to it, with nothing learned.

    a_ij = softmax_j(x_i . x_j), A_i = sum_j a_ij x_j. Taught in chapter 05.
    """
    scores = x @ x.transpose(-2, -1)
    weights = torch.softmax(scores, dim=-1)
    return weights @ x, weights


def causal_mask(
    n_queries: int, n_keys: int | None = None, device: torch.device | None = None
) -> Bool[Tensor, "query key"]:
    """Let each position see itself and what came before: M_ij = (j <= i).

    With more keys than queries (a cache) the *last* query sees the last key.
    Taught in chapter 09.
    """
    n_keys = n_queries if n_keys is None else n_keys
    if n_queries < 1 or n_keys < n_queries:
        raise ValueError(
            f"causal_mask got {n_queries} queries and {n_keys} keys, expected at least "
            "one query and no fewer keys than queries."
        )
    return torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril(
        n_keys - n_queries
    )


def padding_mask(
    tokens: Int[Tensor, "batch key"], pad: int = 0
) -> Shaped[Tensor, "batch 1 key"]:
    """Let every query see the real tokens, none of the padding: M_bj = (x_bj != pad).

    The middle axis broadcasts over queries. Taught in chapter 09.
    """
    if tokens.dim() != 2:
        raise ValueError(
            f"tokens has shape {shape_of(tokens)}, expected (batch, key) token ids."
        )
    return (tokens != pad)[:, None, :]


# -------------------------------------------------------------------------- modules


class SelfAttention(nn.Module):
    """One head of self-attention: the tokens ask, advertise and carry for themselves.

    Q = X W_Q, K = X W_K, V = X W_V from one fused matmul, then `attention`.
    Taught in chapter 06.
    """

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.sizes = [d_k, d_k, d_v]
        self.qkv = nn.Linear(d_model, sum(self.sizes), bias=False)

    def forward(
        self,
        x: Float[Tensor, "batch token d_model"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "batch token d_v"], Float[Tensor, "batch token token"]]:
        require_sequence(x, self.qkv.in_features)
        queries, keys, values = self.qkv(x).split(self.sizes, dim=-1)
        return attention(queries, keys, values, mask)


class CrossAttention(nn.Module):
    """One head in which one sequence asks and another answers.

    Q = X W_Q from the asking tokens; K = Y W_K and V = Y W_V from the memory.
    Taught in chapter 06.
    """

    def __init__(self, d_model: int, d_memory: int, d_k: int, d_v: int):
        super().__init__()
        self.sizes = [d_k, d_v]
        self.query = nn.Linear(d_model, d_k, bias=False)
        self.key_value = nn.Linear(d_memory, d_k + d_v, bias=False)

    def forward(
        self,
        x: Float[Tensor, "batch query d_model"],
        memory: Float[Tensor, "batch key d_memory"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "batch query d_v"], Float[Tensor, "batch query key"]]:
        require_sequence(x, self.query.in_features)
        require_sequence(memory, self.key_value.in_features, "memory")
        keys, values = self.key_value(memory).split(self.sizes, dim=-1)
        return attention(self.query(x), keys, values, mask)


class MultiHeadAttention(nn.Module):
    """Several heads side by side, each with its own queries, keys and values.

    H_h = attention(Q_h, K_h, V_h), output [H_1; …; H_H] W_O. Self-attention, or
    cross-attention when `memory` is given. Taught in chapter 10.

    The fused kernel computes the context without storing the weights; with
    `need_weights=True` the same numbers come by the taught path, weights included.
    """

    def __init__(self, d_model: int, n_heads: int, bias: bool = True):
        super().__init__()
        if n_heads < 1 or d_model % n_heads:
            raise ValueError(
                f"d_model = {d_model} does not divide into {n_heads} heads of equal "
                "width; choose n_heads among the divisors of d_model."
            )
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.output = nn.Linear(d_model, d_model, bias=bias)

    def project(
        self, x: Float[Tensor, "batch query d_model"], memory: Tensor | None = None
    ) -> list[Float[Tensor, "batch head token d_head"]]:
        """Make queries, keys and values, each split into heads."""
        if memory is None:
            fused = self.qkv(x)
            parts = fused.chunk(3, dim=-1)
        else:
            weight, bias, d_model = self.qkv.weight, self.qkv.bias, x.shape[-1]
            query_bias = None if bias is None else bias[:d_model]
            memory_bias = None if bias is None else bias[d_model:]
            keys_values = F.linear(memory, weight[d_model:], memory_bias)
            parts = (
                F.linear(x, weight[:d_model], query_bias),
                *keys_values.chunk(2, dim=-1),
            )
        return [rearrange(p, "b t (h d) -> b h t d", h=self.n_heads) for p in parts]

    def forward(
        self,
        x: Float[Tensor, "batch query d_model"],
        memory: Float[Tensor, "batch key d_model"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        causal: bool = False,
        need_weights: bool = False,
    ) -> tuple[
        Float[Tensor, "batch query d_model"],
        Float[Tensor, "batch head query key"] | None,
    ]:
        """Attend from `x` to `memory` (or to `x`) where `mask` and `causal` allow.

        `mask` broadcasts to (batch, query, key) and is shared by the heads.
        """
        require_sequence(x, self.output.in_features)
        if memory is not None:
            require_sequence(memory, self.output.in_features, "memory")
        queries, keys, values = self.project(x, memory)
        if mask is not None:
            require_mask(mask, (x.shape[0], queries.shape[-2], keys.shape[-2]))
            mask = mask[:, None] if mask.dim() == 3 else mask
        if causal and (mask is not None or need_weights):
            allowed = causal_mask(queries.shape[-2], keys.shape[-2], x.device)
            mask, causal = allowed if mask is None else mask & allowed, False
        if need_weights:
            context, weights = attention(queries, keys, values, mask)
        else:
            weights = None
            context = F.scaled_dot_product_attention(
                queries, keys, values, attn_mask=mask, is_causal=causal
            )
        return self.output(rearrange(context, "b h t d -> b t (h d)")), weights
