"""Attention: a weighted average of values, the weights decided by queries and keys.

Maths, code and prose use one notation (the book's page *notation*): `queries`, `keys`,
`values`, `scores` before the softmax, `weights` after it, `context` for the result. A
mask is boolean, True = may attend, as in `F.scaled_dot_product_attention`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.shapes import (
    Bool,
    Float,
    Int,
    require_heads,
    require_mask,
    require_qkv,
    require_sequence,
    shape_of,
)

# ------------------------------------------------------------------------ functions


def masked_softmax(
    scores: Float[Tensor, "*batch query key"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Turn scores into weights over the keys that may be seen.

    $A_ij = exp(S_ij) / sum_j' exp(S_ij')$ over the allowed $j'$, and 0 where $j$ is
    blocked; a query that may see nothing gets zeros, never NaN. Taught in chapter 09.
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

    $C = softmax(Q K^T / sqrt(d_k)) V$, the softmax over keys. Returns context and
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

    $A_ij = softmax_j(x_i . x_j)$, $c_i = sum_j A_ij x_j$. Taught in chapter 05.
    """
    scores = x @ x.transpose(-2, -1)
    weights = torch.softmax(scores, dim=-1)
    return weights @ x, weights


def causal_mask(
    n_queries: int, n_keys: int | None = None, device: torch.device | None = None
) -> Bool[Tensor, "query key"]:
    """Let each position see itself and what came before: $M_ij = (j <= i)$.

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
) -> Bool[Tensor, "batch 1 key"]:
    """Let every query see the real tokens, none of the padding: $M_bj = (x_bj != pad)$.

    The middle axis broadcasts over queries. Taught in chapter 09.
    """
    if tokens.dim() != 2:
        raise ValueError(
            f"tokens has shape {shape_of(tokens)}, expected (batch, key) token ids."
        )
    return (tokens != pad)[:, None, :]


def fused_attention(
    queries: Float[Tensor, "batch head query d_k"],
    keys: Float[Tensor, "batch head key d_k"],
    values: Float[Tensor, "batch head key d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    causal: bool = False,
    bias: Float[Tensor, "..."] | None = None,
    need_weights: bool = False,
) -> tuple[
    Float[Tensor, "batch head query d_v"],
    Float[Tensor, "batch head query key"] | None,
]:
    """Compute what `attention` does in one kernel that never stores the weights.

    $C = softmax(Q K^T / sqrt(d_k) + B) V$, with a `bias` $B$ on the scores if given.
    With `need_weights=True` the same numbers come step by step, weights included. Used
    in chapter 10.
    """
    require_qkv(queries, keys, values, mask)
    n_queries, n_keys = queries.shape[-2], keys.shape[-2]
    # One query alone is the last: it sees every key. (`bool`, for a length that
    # `torch.export` leaves open.)
    causal = causal and bool(n_queries > 1)
    added_to = need_weights or mask is not None or bias is not None
    if causal and (added_to or n_queries != n_keys):
        allowed = causal_mask(n_queries, n_keys, queries.device)
        mask, causal = allowed if mask is None else mask & allowed, False
    if need_weights:
        scores = queries @ keys.transpose(-2, -1) / math.sqrt(keys.shape[-1])
        if bias is not None:
            scores = scores + bias.to(scores.dtype)
            open_to = bias > -torch.inf  # -inf blocks as the mask does, a whole row too
            mask = open_to if mask is None else mask & open_to
        weights = masked_softmax(scores, mask)
        return weights @ values, weights
    added = mask
    if bias is not None:
        added = bias.to(queries.dtype)
        added = added if mask is None else added.masked_fill(~mask, -torch.inf)
    context = F.scaled_dot_product_attention(
        queries, keys, values, attn_mask=added, is_causal=causal
    )
    return context, None


# -------------------------------------------------------------------------- modules


class SelfAttention(nn.Module):
    """One head of self-attention: the tokens ask, advertise and carry for themselves.

    $Q = X W_Q$, $K = X W_K$, $V = X W_V$ from one fused matmul, then `attention`.
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

    $Q = X W_Q$ from the asking tokens; $K = Y W_K$ and $V = Y W_V$ from the memory.
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


class KeyValueCache:
    """The keys and values of the tokens read so far, in memory set aside once.

    Generation asks with one new token at a time; what the old ones advertise and carry
    stays. A cache is changed in place, which the course avoids elsewhere: go on from it
    once, and take `select` where you need a copy. Taught in chapter 13.
    """

    def __init__(self, keys: Tensor, values: Tensor, length: int = 0):
        self.keys, self.values, self.length = keys, values, length

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store the new tokens' keys and values, and return those of all tokens."""
        end, room = self.length + keys.shape[-2], self.keys.shape[-2]
        if end > room:
            raise ValueError(
                f"{end} tokens do not fit into a cache of {room}; generate fewer, or "
                "build the model with a larger max_length."
            )
        self.keys[:, :, self.length : end] = keys
        self.values[:, :, self.length : end] = values
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def select(self, rows: Int[Tensor, "row"]) -> KeyValueCache:
        """Copy the given rows of the batch, as beam search needs."""
        return KeyValueCache(self.keys[rows], self.values[rows], self.length)


def split_heads(
    x: Float[Tensor, "batch token width"], n_heads: int, parts: int = 1
) -> tuple[Float[Tensor, "batch head token d_head"], ...]:
    """Cut the features of every token into `parts` tensors of `n_heads` heads each.

    Feature $(p H + h) d + i$ of a token becomes feature $i$ of its head $h$ in part
    $p$: all of part 0 comes first, and in it all of head 0. Taught in chapter 10.
    """
    if x.dim() != 3:
        raise ValueError(f"x has shape {shape_of(x)}, expected (batch, token, width).")
    require_heads(x.shape[-1], n_heads, parts)
    return tuple(
        rearrange(part, "b t (h d) -> b h t d", h=n_heads)
        for part in x.chunk(parts, dim=-1)
    )


def merge_heads(
    context: Float[Tensor, "batch head token d_head"],
) -> Float[Tensor, "batch token width"]:
    """Put the heads of every token side by side again: $[C_1, …, C_H]$.

    Undoes `split_heads`. Taught in chapter 10.
    """
    if context.dim() != 4:
        raise ValueError(
            f"context has shape {shape_of(context)}, expected (batch, head, token, "
            "d_head), as attention over split heads returns it."
        )
    return rearrange(context, "b h t d -> b t (h d)")


class HeadProjections(nn.Module):
    """The matrices of several heads: tokens into queries, keys and values, and back.

    $Q_h = X W_Q^h$, $K_h = Y W_K^h$, $V_h = Y W_V^h$ for all heads from one fused
    matrix, $Y$ being the memory, or $X$ itself; `output` is $W_O$. Taught in chapter
    10.
    """

    def __init__(self, d_model: int, n_heads: int, bias: bool = True):
        super().__init__()
        require_heads(d_model, n_heads)
        self.n_heads = n_heads
        self.sizes = [d_model, 2 * d_model]  # rows of the queries, of keys and values
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.output = nn.Linear(d_model, d_model, bias=bias)

    def project_part(
        self, x: Float[Tensor, "batch token d_model"], part: int
    ) -> Float[Tensor, "batch token _"]:
        """Use the rows of the queries alone (part 0), or of keys and values (1)."""
        weight = self.qkv.weight.split(self.sizes)[part]
        bias = None if self.qkv.bias is None else self.qkv.bias.split(self.sizes)[part]
        return F.linear(x, weight, bias)

    def project_memory(
        self, memory: Float[Tensor, "batch key d_model"]
    ) -> tuple[Float[Tensor, "batch head key d_head"], ...]:
        """Make keys and values of a memory, once for all the queries to come."""
        require_sequence(memory, self.output.in_features, "memory")
        return split_heads(self.project_part(memory, 1), self.n_heads, parts=2)

    def project(
        self,
        x: Float[Tensor, "batch query d_model"],
        memory: Tensor | tuple[Tensor, ...] | None = None,
    ) -> tuple[Float[Tensor, "batch head _ d_head"], ...]:
        """Make queries of `x`, keys and values of `memory` (or of `x` as well)."""
        require_sequence(x, self.output.in_features)
        if memory is None:
            return split_heads(self.qkv(x), self.n_heads, parts=3)
        keys_values = (
            memory if isinstance(memory, tuple) else self.project_memory(memory)
        )
        return (*split_heads(self.project_part(x, 0), self.n_heads), *keys_values)


class MultiHeadAttention(HeadProjections):
    """Several heads side by side, each with its own queries, keys and values.

    $C_h = attention(Q_h, K_h, V_h)$, output $[C_1, …, C_H] W_O$. Self-attention, or
    cross-attention when `memory` is given. Taught in chapter 10.
    """

    def forward(
        self,
        x: Float[Tensor, "batch query d_model"],
        memory: Tensor | tuple[Tensor, ...] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        causal: bool = False,
        need_weights: bool = False,
        bias: Float[Tensor, "..."] | None = None,
        rotate: Callable[[Tensor], Tensor] | None = None,
        cache: KeyValueCache | None = None,
    ) -> tuple[
        Float[Tensor, "batch query d_model"],
        Float[Tensor, "batch head query key"] | None,
    ]:
        """Attend from `x` to `memory` (or to `x`) where `mask` and `causal` allow.

        `mask` broadcasts to (batch, query, key) and is shared by the heads. `bias` and
        `rotate` tell positions (chapter 08), `cache` holds earlier tokens (chapter 13).
        """
        queries, keys, values = self.project(x, memory)
        if rotate is not None:
            queries, keys = rotate(queries), rotate(keys)
        if cache is not None:
            keys, values = cache.extend(keys, values)
        if mask is not None:
            require_mask(mask, (x.shape[0], queries.shape[-2], keys.shape[-2]))
            mask = mask[:, None] if mask.dim() == 3 else mask
        context, weights = fused_attention(
            queries, keys, values, mask, causal, bias, need_weights
        )
        return self.output(merge_heads(context)), weights


check_arguments(__name__)
