"""Take a trained transformer apart: a head, the positions or the scale left out.

`ablate` returns a changed copy; the model itself stays whole. Nothing is trained
again: what the copy can no longer do, the part that is missing did.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.models.attention import MultiHeadAttention
from course_utils.models.transformer import Transformer, sizes_of
from course_utils.shapes import Float, Int

Kind = Literal["encoder", "decoder", "cross"]
KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")
SIDES = ("source", "target")


class Head(NamedTuple):
    """One head of a `Transformer`: its attention, layer and number, from 0."""

    kind: Kind
    layer: int
    head: int


class Placeless(Transformer):
    """A transformer that is not told where the words of some sides stand.

    $x = sqrt(d_model) E[token]$, and $+ PE[t]$ only on the sides that keep their
    positions.
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

    Used in `transformer_in_the_page`.
    """
    sizes = sizes_of(model)
    layers, heads = range(sizes["n_layers"]), range(sizes["n_heads"])
    return [Head(kind, i, h) for kind in KINDS for i in layers for h in heads]


def attention_of(model: Transformer, kind: Kind, layer: int) -> MultiHeadAttention:
    """Return the layer that holds a head."""
    stack = model.encoder if kind == "encoder" else model.decoder
    name = "cross_attention" if kind == "cross" else "attention"
    return getattr(stack.blocks[layer], name)


def mean_contexts(
    model: Transformer, batches: Iterable[tuple[Tensor, Tensor]]
) -> dict[str, Float[Tensor, "d_model"]]:
    """Average what the heads of each layer return, $[C_1, …, C_H]$, over all tokens.

    `batches` holds source and target ids without padding, the target as the decoder
    reads it. The names are those of the layers: "cross-1" is the second one's
    cross-attention.
    """
    sums: dict[str, Tensor] = {}
    counts: Counter[str] = Counter()

    def add(name: str, context: Tensor) -> None:
        rows = context.flatten(0, 1)
        sums[name] = sums.get(name, torch.zeros(rows.shape[1])) + rows.sum(dim=0)
        counts[name] += len(rows)

    with ExitStack() as hooks, torch.no_grad():
        for kind in KINDS:
            for layer in range(sizes_of(model)["n_layers"]):
                into = attention_of(model, kind, layer).output
                name = f"{kind}-{layer}"
                hook = into.register_forward_pre_hook(
                    lambda _, given, name=name: add(name, given[0])
                )
                hooks.callback(hook.remove)
        for source, target in batches:
            model(source, target)
    if not sums:
        raise ValueError("mean_contexts got no sentences; give at least one batch.")
    return {name: total / counts[name] for name, total in sums.items()}


def ablate(
    model: Transformer,
    heads_off: Collection[Head] = (),
    no_positions: Collection[str] = (),
    no_scale: bool = False,
    means: Mapping[str, Tensor] | None = None,
) -> Transformer:
    """Return a copy without some heads, the positions of some sides, or the scale.

    Head $h$ off: its columns of $W_O$ are 0, so that nothing of $C_h$ arrives (zero
    ablation); with `means` from `mean_contexts`, the average of $C_h$ arrives in its
    place, for every token the same (mean ablation). No scale: $softmax(Q K^T)$ instead
    of $softmax(Q K^T / sqrt(d_k))$, in every head. Used in `transformer_in_the_page`.
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
            own = slice(head * width, (head + 1) * width)
            if means is not None:
                usual = output.weight[:, own] @ means[f"{kind}-{layer}"][own]
                output.bias.add_(usual)
            output.weight[:, own] = 0
        if no_scale:
            for module in copy.modules():
                if isinstance(module, MultiHeadAttention):
                    queries = slice(0, module.output.in_features)
                    module.qkv.weight[queries] *= math.sqrt(width)
                    module.qkv.bias[queries] *= math.sqrt(width)
    return copy.eval()


check_arguments(__name__)
