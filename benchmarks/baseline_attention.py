"""Peers' designs of multi-head self-attention, re-created from what they do.

Each maps `(batch, token, width)` to the same shape, causally. `same_weights` copies our
projections into one, so that all can be asserted to compute the same numbers.
"""

from __future__ import annotations

import math
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.models.attention import MultiHeadAttention


@cache
def past(n: int) -> Tensor:
    """The causal mask of n tokens, made once: True = may attend."""
    return torch.ones(n, n, dtype=torch.bool).tril()


@cache
def added(n: int) -> Tensor:
    """The same in the form that PyTorch's layers add to the scores."""
    return nn.Transformer.generate_square_subsequent_mask(n)


class Fused(nn.Module):
    """One projection, views, the fused kernel with its causal flag.

    The design of nanoGPT and x-transformers: the fastest of the peers.
    """

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def parts(self, x: Tensor) -> list[Tensor]:
        """Queries, keys and values, each `(batch, head, token, features)`."""
        shape = (*x.shape[:2], self.heads, x.shape[2] // self.heads)
        split = self.qkv(x).split(x.shape[2], dim=2)
        return [part.view(shape).transpose(1, 2) for part in split]

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.mix(*self.parts(x)).transpose(1, 2).contiguous()
        return self.out(mixed.view(x.shape))


class BooleanMask(Fused):
    """The fused kernel given the causal mask as a tensor."""

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=past(q.shape[2]))


class Naive(Fused):
    """Scores, mask, softmax and average one by one, every matrix stored.

    The design of minGPT, the annotated transformer and most tutorials.
    """

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[3])
        weights = scores.masked_fill(~past(q.shape[2]), -torch.inf).softmax(dim=-1)
        return torch.einsum("bhqk,bhkd->bhqd", weights, v)


class Library(nn.Module):
    """PyTorch's own layer, `nn.MultiheadAttention`, asked for no weights."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.layer = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        mask = added(x.shape[1])
        found, _ = self.layer(
            x, x, x, attn_mask=mask, is_causal=True, need_weights=False
        )
        return found


PEERS: dict[str, type[nn.Module]] = {
    "one fused kernel (nanoGPT, x-transformers)": Fused,
    "a mask as a tensor": BooleanMask,
    "nn.MultiheadAttention (PyTorch)": Library,
    "all weights stored (minGPT, annotated transformer)": Naive,
}


@torch.no_grad()
def same_weights(ours: MultiHeadAttention, peer: nn.Module) -> nn.Module:
    """Copy our weights into a peer's layer."""
    if isinstance(peer, Library):
        layer = peer.layer
        into: list[Tensor] = [layer.in_proj_weight, layer.in_proj_bias]
        into += [layer.out_proj.weight, layer.out_proj.bias]
    elif isinstance(peer, Fused):
        into = [peer.qkv.weight, peer.qkv.bias, peer.out.weight, peer.out.bias]
    else:
        raise ValueError(f"a {type(peer).__name__} is none of the peers' layers.")
    from_ours = [ours.qkv.weight, ours.qkv.bias, ours.output.weight, ours.output.bias]
    for theirs, mine in zip(into, from_ours):
        theirs.copy_(mine)
    return peer
