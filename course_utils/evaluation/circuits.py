"""Take a trained model apart: who wrote what into the stream, and does it matter?

Everything here reads or changes one quantity, what a head returns before its band of
$W_O$. A head is named by a pair, (layer, number), both from 0. `edit_heads` works for
`AttentionOnly` and for `GPT`; what needs a stream that is a sum of heads alone, for
`AttentionOnly`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import torch
import torch.nn.functional as F
from einops import einsum, rearrange
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.models.attention import MultiHeadAttention
from course_utils.models.attention_only import AttentionBlock, AttentionOnly
from course_utils.shapes import Bool, Float, Int, shape_of

Head = tuple[int, int]
PARTS = ("queries", "keys", "values")


def attentions_of(model: nn.Module) -> list[MultiHeadAttention]:
    """Return the attention of every layer, from the first to the last."""
    blocks = getattr(model, "blocks", ())
    found = [getattr(block, "attention", None) for block in blocks]
    if not found or not all(isinstance(a, MultiHeadAttention) for a in found):
        raise ValueError(
            f"got {type(model).__name__}, expected a model whose `blocks` have an "
            "`attention` each: AttentionOnly or GPT."
        )
    return found  # type: ignore[return-value]


# ------------------------------------------------------------------- read and replace


def head_contexts(
    model: nn.Module, tokens: Int[Tensor, "batch token"]
) -> Float[Tensor, "layer batch head token d_head"]:
    """Return what every head returns, $C_r$, before its band of $W_O$.

    Its mean over batch and token is what mean ablation puts in a head's place. Used in
    chapter 17.
    """
    seen: list[Tensor] = []
    with ExitStack() as hooks, torch.no_grad():
        for layer in attentions_of(model):
            hook = layer.output.register_forward_pre_hook(
                lambda _, given, h=layer.n_heads: seen.append(
                    rearrange(given[0], "b t (h d) -> b h t d", h=h)
                )
            )
            hooks.callback(hook.remove)
        model(tokens)
    return torch.stack(seen)


@contextmanager
def edit_heads(
    model: nn.Module, replaced: Mapping[Head, Tensor | float]
) -> Iterator[None]:
    """Let some heads return something else, as long as the `with` block lasts.

    `replaced` maps (layer, head) to what stands in the place of $C_r$: 0 (zero
    ablation), its mean (mean ablation) or the $C_r$ of another run (patching). It
    broadcasts to (batch, token, d_head). Used in chapter 17.
    """
    layers = attentions_of(model)
    for layer, head in replaced:
        if not (0 <= layer < len(layers) and 0 <= head < layers[layer].n_heads):
            raise ValueError(
                f"there is no head {(layer, head)}: the model has {len(layers)} "
                f"layers of {layers[0].n_heads} heads, counted from 0."
            )

    def change(layer: int) -> Any:
        def hook(_: nn.Module, given: tuple[Tensor, ...]) -> Tensor:
            heads = list(given[0].chunk(layers[layer].n_heads, dim=-1))
            for (where, head), value in replaced.items():
                if where == layer:
                    heads[head] = torch.zeros_like(heads[head]) + value
            return torch.cat(heads, dim=-1)

        return hook

    with ExitStack() as hooks:
        for layer in {layer for layer, _ in replaced}:
            hook = layers[layer].output.register_forward_pre_hook(change(layer))
            hooks.callback(hook.remove)
        yield


@contextmanager
def hide_from(
    model: AttentionOnly, layer: int, part: str, write: Float[Tensor, "..."]
) -> Iterator[None]:
    """Hide one term of the stream from the queries, keys or values of one layer.

    These are then computed from norm(x - write), the other two and the stream itself
    from all of x: an ablation of one path in place of a head. Used in chapter 17.
    """
    if part not in PARTS:
        raise ValueError(f"part is {part!r}, expected one of {', '.join(PARTS)}.")
    block, number = cast(AttentionBlock, model.blocks[layer]), PARTS.index(part)
    stream: list[Tensor] = []

    def change(qkv: nn.Linear, _: Any, output: Tensor) -> Tensor:
        reduced = F.linear(block.norm(stream.pop() - write), qkv.weight)
        parts = list(output.chunk(3, dim=-1))
        parts[number] = reduced.chunk(3, dim=-1)[number]
        return torch.cat(parts, dim=-1)

    with ExitStack() as hooks:
        note = block.register_forward_pre_hook(lambda _, given: stream.append(given[0]))
        hooks.callback(note.remove)
        hooks.callback(block.attention.qkv.register_forward_hook(change).remove)
        yield


# ------------------------------------------------------------------------- attribution


def stream_terms(
    model: AttentionOnly, tokens: Int[Tensor, "batch token"]
) -> Float[Tensor, "term batch token d_model"]:
    """Return what embedding and heads wrote: terms whose sum is the last stream.

    $x = E[token] + sum_r C_r W_O^r$ over layers and heads, in that order. Used in
    chapter 17.
    """
    contexts = head_contexts(model, tokens)
    terms = [model.embedding(tokens)]
    for layer, context in zip(attentions_of(model), contexts):
        bands = rearrange(layer.output.weight, "o (h d) -> h d o", h=layer.n_heads)
        terms += einsum(context, bands, "b h t d, h d o -> h b t o")
    return torch.stack(terms).detach()


def logit_terms(
    model: AttentionOnly, tokens: Int[Tensor, "batch token"]
) -> Float[Tensor, "term batch token n_tokens"]:
    """Return what embedding and heads add to every logit: exact for this one run.

    ((term - mean of its features) / sigma) U, with the sigma of the whole stream: the
    norm subtracts a mean, which is linear, and divides by a number that all terms
    share. Taught in chapter 17.
    """
    terms = stream_terms(model, tokens)
    variance = terms.sum(dim=0).var(dim=-1, correction=0, keepdim=True)
    sigma = torch.sqrt(variance + model.norm.eps)
    centred = terms - terms.mean(dim=-1, keepdim=True)
    return (centred / sigma) @ model.head.weight.detach().T


def logit_lens(
    model: AttentionOnly, tokens: Int[Tensor, "batch token"]
) -> Float[Tensor, "depth batch token n_tokens"]:
    """Read the stream after 0, 1, … layers as if it were the last: $norm(x_l) U$.

    Used in chapter 17.
    """
    with torch.no_grad():
        x = model.embedding(tokens)
        seen = [x]
        for block in model.blocks:
            x, _ = block(x)
            seen.append(x)
        return model.head(model.norm(torch.stack(seen)))


# ----------------------------------------------------------------- what heads attend to


def after_same(
    tokens: Int[Tensor, "batch token"],
) -> Bool[Tensor, "batch token token"]:
    """Mark the positions that follow an earlier copy of a query's token.

    $M_ij = 1$ where $j <= i$ and $x_{j-1} = x_i$. Taught in chapter 17.
    """
    same = tokens[:, :, None] == tokens[:, None, :]
    return F.pad(same[:, :, :-1], (1, 0)).tril()


def prefix_matching(
    weights: Float[Tensor, "layer batch head query key"],
    tokens: Int[Tensor, "batch key"],
) -> Float[Tensor, "layer head"]:
    """Return the weight each head puts on what followed its token the last time.

    The mean, over queries with an earlier copy of their token, of $sum_j A_ij M_ij$;
    $M$ is `after_same`. Used in chapter 17.
    """
    if weights.dim() != 5 or weights.shape[-1] != tokens.shape[-1]:
        raise ValueError(
            f"weights are {shape_of(weights)} and tokens {shape_of(tokens)}, expected "
            "(layer, batch, head, query, key) and (batch, key)."
        )
    marked = after_same(tokens)
    found = marked.any(dim=-1)
    if not found.any():
        raise ValueError("no token comes twice: there is no prefix to match.")
    on_marked = (weights * marked[:, None]).sum(dim=-1)  # (layer, batch, head, query)
    return on_marked.movedim(2, 1)[..., found].mean(dim=-1)


def previous_token(
    weights: Float[Tensor, "layer batch head query key"],
) -> Float[Tensor, "layer head"]:
    """Return the weight each head puts on the token just before.

    The mean of $A_{i,i-1}$. Used in chapter 17.
    """
    if weights.dim() != 5 or weights.shape[-1] < 2:
        raise ValueError(
            f"weights are {shape_of(weights)}, expected (layer, batch, head, query, "
            "key) with at least 2 keys."
        )
    return weights.diagonal(-1, dim1=-2, dim2=-1).mean(dim=(1, 3))


check_arguments(__name__)
