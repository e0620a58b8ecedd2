"""Take a trained transformer apart: a head, the positions or the scale left out.

`operated` returns a changed copy; the model itself stays whole. Nothing is trained
again: what the copy can no longer do, the part that is missing did.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from course_utils.attention import MultiHeadAttention
from course_utils.portable import sizes_of
from course_utils.shapes import Float, Int
from course_utils.transformer import Transformer

Kind = Literal["encoder", "decoder", "cross"]
KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")
SIDES = ("source", "target")


class Head(NamedTuple):
    """One head of a `Transformer`: its attention, layer and number, from 0.

    Used in chapter 12.
    """

    kind: Kind
    layer: int
    head: int


class Placeless(Transformer):
    """A transformer that is not told where the words of some sides stand.

    x = sqrt(d_model) E[token], and + P[t] only on the sides that keep their positions.
    Used in chapter 12.
    """

    without: frozenset[str] = frozenset()

    def embed(
        self,
        tokens: Int[Tensor, "batch token"],
        embedding: nn.Embedding,
        first: int = 0,
    ) -> Float[Tensor, "batch token d_model"]:
        """Return scaled embeddings, with positions where they are kept."""
        side = "source" if embedding is self.source_embedding else "target"
        if side in self.without:
            return math.sqrt(embedding.embedding_dim) * embedding(tokens)
        return super().embed(tokens, embedding, first)


def heads_of(model: Transformer) -> list[Head]:
    """List all heads: those of the encoder, the decoder, the cross-attention.

    Used in chapter 12.
    """
    sizes = sizes_of(model)
    layers, heads = range(sizes["n_layers"]), range(sizes["n_heads"])
    return [Head(kind, i, h) for kind in KINDS for i in layers for h in heads]


def attention_of(model: Transformer, kind: Kind, layer: int) -> MultiHeadAttention:
    """Return the layer that holds a head. Used in chapter 12."""
    stack = model.encoder if kind == "encoder" else model.decoder
    name = "cross_attention" if kind == "cross" else "attention"
    return getattr(stack.blocks[layer], name)


def operated(
    model: Transformer,
    heads_off: Collection[Head] = (),
    no_positions: Collection[str] = (),
    no_scale: bool = False,
) -> Transformer:
    """Return a copy without some heads, the positions of some sides, or the scale.

    Head h off: its columns of W_O are 0, so that nothing of C_h arrives. No scale:
    softmax(Q K^T) instead of softmax(Q K^T / sqrt(d_k)), in every head.
    Used in chapter 12.
    """
    unknown = [head for head in heads_off if head not in heads_of(model)]
    if unknown or set(no_positions) - set(SIDES):
        raise ValueError(
            f"got heads_off={list(heads_off)} and no_positions={list(no_positions)}, "
            f"expected heads from `heads_of(model)` and sides from {SIDES}."
        )
    sizes: dict[str, Any] = dict(sizes_of(model))
    copy = Placeless(**sizes)
    copy.without = frozenset(no_positions)
    copy.load_state_dict(model.state_dict())
    width = model.source_embedding.embedding_dim // model.n_heads
    with torch.no_grad():
        for kind, layer, head in heads_off:
            output = attention_of(copy, kind, layer).output
            output.weight[:, head * width : (head + 1) * width] = 0
        if no_scale:
            for module in copy.modules():
                if isinstance(module, MultiHeadAttention):
                    queries = slice(0, module.output.in_features)
                    module.qkv.weight[queries] *= math.sqrt(width)
                    module.qkv.bias[queries] *= math.sqrt(width)
    return copy.eval()
