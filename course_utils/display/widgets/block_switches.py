"""Assemble a block from switches, and see its parameters, operations and cache."""

from __future__ import annotations

from functools import partial

import torch
from torch import nn

from course_utils.display.interactive import (
    Widget,
    script_of,
    select,
    slider,
    toggle,
    widget,
)
from course_utils.evaluation.costs import count_flops
from course_utils.models.attention import KeyValueCache
from course_utils.models.choices import Choices
from course_utils.models.modern import ModernBlock

NORMS = {"LayerNorm": "layer", "RMSNorm": "rms", "RMSNorm, no weights": "plain"}
LAYERS = {"GELU, two matrices": "gelu", "SwiGLU, three": "swiglu"}


def block_switches(
    name: str = "block-switches", d_model: int = 512, n_heads: int = 8
) -> Widget:
    """Choose norm, feed-forward layer, key-value heads and window; count what it costs.

    Parameters are counted on real blocks, operations by `count_flops` while they read
    one token. A token's keys and values are 2 G d_head numbers, of two bytes each, for
    G key-value heads. Used in chapter 16.
    """
    if d_model % n_heads or n_heads % 4:
        raise ValueError(
            f"block_switches got d_model = {d_model}, n_heads = {n_heads}; expected "
            "a multiple of n_heads, and n_heads a multiple of 4."
        )
    groups = [n_heads, n_heads // 2, n_heads // 4, 1]
    return widget(
        name,
        "Assemble a block",
        [
            select("norm", "Norm", list(NORMS)),
            select("layer", "Feed-forward", list(LAYERS)),
            toggle("bias", "biases", True),
            slider("kv", "key-value heads", sorted(set(groups)), value=n_heads),
            slider("n", "tokens of text", [2**p for p in range(8, 18)], value=4096),
            select("window", "Window", ["none", "1024", "256"]),
        ],
        data={
            "counts": counts(d_model, n_heads, groups),
            "work": operations_of_a_token(d_model, n_heads, groups),
            "d_head": d_model // n_heads,
            "heads": n_heads,
        },
        script=script_of(__name__),
        alt="A block drawn as it is chosen: its norms, a mark for each head, its "
        "feed-forward matrices. Below, bars: the parameters of its parts, the "
        "operations for the next token, and the bytes of its key-value cache, each "
        "beside those of the block of chapter 13.",
        height=444,
    )


def counts(d_model: int, n_heads: int, groups: list[int]) -> dict[str, int]:
    """Count the parameters of each part of a block, for every setting of its switches.

    The key names the part and its switches, as the script asks for them.
    """
    found = {}
    for bias in (True, False):
        tail = "biases" if bias else "no biases"
        for label, norm in NORMS.items():
            block = empty_block(d_model, n_heads, Choices(norm=norm, bias=bias))
            norms = [block.around_attention, block.around_feed_forward]
            found[f"norms/{label}/{tail}"] = sum(size(part) for part in norms)
        for label, layer in LAYERS.items():
            block = empty_block(
                d_model, n_heads, Choices(feed_forward=layer, bias=bias)
            )
            found[f"feed-forward/{label}/{tail}"] = size(block.feed_forward)
        for kv in groups:
            block = empty_block(d_model, n_heads, Choices(n_kv_heads=kv, bias=bias))
            found[f"attention/{kv}/{tail}"] = size(block.attention)
    return found


def operations_of_a_token(
    d_model: int, n_heads: int, groups: list[int]
) -> dict[str, int]:
    """Count the operations of one token, for every setting that matters to them.

    Of each part's own matrices, and under "key" of each token that is attended to: a
    product with its key, and one with its value, in every head.
    """
    token = torch.empty(1, 1, d_model, device="meta")
    found = {}
    for label, layer in LAYERS.items():
        block = empty_block(d_model, n_heads, Choices(feed_forward=layer))
        found[f"feed-forward/{label}"] = count_flops(partial(block.feed_forward, token))
    for kv in groups:
        block = empty_block(d_model, n_heads, Choices(n_kv_heads=kv))
        kept = torch.empty(1, kv, 2, d_model // n_heads, device="meta")
        one, two = (
            count_flops(
                partial(
                    block.attention,
                    token,
                    need_weights=True,
                    cache=KeyValueCache(kept, kept, n_before),
                )
            )
            for n_before in (0, 1)
        )
        found["key"] = two - one
        found[f"attention/{kv}"] = one - found["key"]
    return found


def empty_block(d_model: int, n_heads: int, choices: Choices) -> ModernBlock:
    """A block with shapes and no numbers."""
    with torch.device("meta"):
        return ModernBlock(d_model, n_heads, choices=choices)


def size(part: nn.Module) -> int:
    """How many parameters a part has."""
    return sum(p.numel() for p in part.parameters())
