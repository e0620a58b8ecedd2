"""Softmax and attention in one pass: what a fused kernel computes, in plain PyTorch.

The whole row of scores is never stored. A kernel does this block by block in the fast
memory beside the arithmetic units; here it is a loop, to be read and to be tested.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from course_utils.doors import check_arguments
from course_utils.shapes import Float, require_qkv, shape_of


def online_softmax(scores: Float[Tensor, "*batch key"]) -> tuple[Tensor, Tensor]:
    """Find the largest score $m$ and the sum of $exp(s_j - m)$ while reading each once.

    $m' = max(m, s_j)$, $l' = l exp(m - m') + exp(s_j - m')$. The softmax is then
    $exp(s_j - m) / l$. The first score must not be -inf. Taught in chapter 15.
    """
    largest = torch.full_like(scores[..., 0], -torch.inf)
    total = torch.zeros_like(largest)
    for score in scores.unbind(-1):
        larger = torch.maximum(largest, score)
        total = total * torch.exp(largest - larger) + torch.exp(score - larger)
        largest = larger
    return largest, total


def chunked_attention(
    queries: Float[Tensor, "*batch query d_k"],
    keys: Float[Tensor, "*batch key d_k"],
    values: Float[Tensor, "*batch key d_v"],
    chunk: int = 128,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend to a few keys at a time, and never hold the table of all weights.

    Beside $m$ and $l$ of `online_softmax` it carries the sum of $exp(s_j - m) v_j$,
    rescaled whenever $m$ grows; divided by $l$ it is the context. Taught in chapter 15.
    """
    require_chunks(queries, keys, values, chunk)
    scaled = queries / math.sqrt(keys.shape[-1])
    largest = torch.full_like(queries[..., :1], -torch.inf)
    total, context = torch.zeros_like(largest), torch.zeros_like(queries[..., :1])
    for some_keys, some_values in zip(keys.split(chunk, -2), values.split(chunk, -2)):
        scores = scaled @ some_keys.transpose(-2, -1)
        larger = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
        rescale, powers = torch.exp(largest - larger), torch.exp(scores - larger)
        total = total * rescale + powers.sum(dim=-1, keepdim=True)
        context = context * rescale + powers @ some_values
        largest = larger
    return context / total


def require_chunks(queries: Tensor, keys: Tensor, values: Tensor, chunk: int) -> None:
    """Refuse tensors that do not fit together, no keys at all, and an empty chunk."""
    require_qkv(queries, keys, values, None)
    if keys.shape[-2] == 0:
        raise ValueError(
            f"keys has shape {shape_of(keys)}, expected at least one key; an average "
            "of nothing is not defined."
        )
    if chunk < 1:
        raise ValueError(f"chunk is {chunk}, expected 1 or more keys at a time.")


check_arguments(__name__)
