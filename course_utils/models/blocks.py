"""The blocks of a transformer (residual, norm, attention, feed-forward) and stacks.

Each block takes a stream of tokens `(batch, token, d_model)` and gives back one of the
same shape, so that blocks can be stacked as deep as one likes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.models.attention import KeyValueCache, MultiHeadAttention
from course_utils.shapes import Bool, Float, require_sequence, require_sizes, shape_of

# Weights of one block, and of a stack's layers: None where they were not asked for.
SelfWeights = Float[Tensor, "batch head token key"] | None
CrossWeights = Float[Tensor, "batch head token source"] | None
SelfMaps = Float[Tensor, "layer batch head token key"] | None
CrossMaps = Float[Tensor, "layer batch head token source"] | None


def _relu_squared(x: Tensor) -> Tensor:
    """Square what relu leaves. (A lambda could not be saved with the model.)"""
    return F.relu(x).square()


def _gelu_tanh(x: Tensor) -> Tensor:
    """GPT-2's approximation of gelu by tanh."""
    return F.gelu(x, approximate="tanh")


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": F.silu,
    "relu2": _relu_squared,
}


def activation_named(name: str) -> Callable[[Tensor], Tensor]:
    """Return the activation of that name, or say which there are."""
    if name not in ACTIVATIONS:
        raise ValueError(
            f"activation is {name!r}, expected one of {sorted(ACTIVATIONS)}."
        )
    return ACTIVATIONS[name]


def require_width(x: Tensor, d_model: int, name: str = "x") -> None:
    """Refuse a tensor whose last axis is not `d_model` wide, naming what came."""
    if x.dim() < 1 or x.shape[-1] != d_model:
        raise ValueError(
            f"{name} has shape {shape_of(x)}, expected (…, {d_model}): {d_model} "
            "features in the last axis; transpose it, or build the layer as wide as "
            "its input."
        )


def require_norm_order(order: str) -> None:
    """Refuse anything but the two orders of norm and sum."""
    if order not in ("pre", "post"):
        raise ValueError(
            f"norm is {order!r}, expected 'pre' (x + f(norm(x))) or 'post' "
            "(norm(x + f(x)))."
        )


def require_same_shape(x: Tensor, update: Tensor) -> None:
    """Refuse to add to the stream what would not fit, or would be broadcast."""
    if x.shape != update.shape:
        raise ValueError(
            f"the layer gave {shape_of(update)} for a stream of {shape_of(x)}; a "
            "residual sum needs equal shapes: end the layer in a projection to d_model "
            "and keep all tokens."
        )


def layer_norm(
    x: Float[Tensor, "*batch d_model"],
    gamma: Float[Tensor, "d_model"],
    beta: Float[Tensor, "d_model"],
    eps: float = 1e-5,
) -> Float[Tensor, "*batch d_model"]:
    """Bring every token to mean 0 and variance 1, then scale and shift each feature.

    $gamma * (x - mean) / sqrt(variance + eps) + beta$, over the features of one token,
    the variance divided by $d_model$. Taught in chapter 11.
    """
    require_width(gamma, x.shape[-1], "gamma")
    require_width(beta, x.shape[-1], "beta")
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    return gamma * centred / torch.sqrt(variance + eps) + beta


class FeedForward(nn.Module):
    """Work on every token by itself: wider, a non-linearity, and back.

    $FFN(x) = f(x W_1 + b_1) W_2 + b_2$. Taught in chapter 11.
    """

    def __init__(self, d_model: int, d_hidden: int, activation: str = "relu"):
        super().__init__()
        require_sizes(d_model=d_model, d_hidden=d_hidden)
        self.activation = activation_named(activation)
        self.wide = nn.Linear(d_model, d_hidden)
        self.narrow = nn.Linear(d_hidden, d_model)

    def forward(
        self, x: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch d_model"]:
        require_width(x, self.wide.in_features)
        return self.narrow(self.activation(self.wide(x)))


class Residual(nn.Module):
    """Add what a layer computed to what came in, with the norm before or after.

    pre (today): $x + f(norm(x))$. post (2017): $norm(x + f(x))$. Taught in chapter 11.
    """

    def __init__(self, d_model: int, order: str = "pre", dropout: float = 0.0):
        super().__init__()
        require_norm_order(order)
        self.order = order
        self.norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def before(self, x: Tensor) -> Tensor:
        """Return what the layer reads."""
        return self.norm(x) if self.order == "pre" else x

    def after(self, x: Tensor, update: Tensor) -> Tensor:
        """Return the stream with the layer's update added to it."""
        require_same_shape(x, update)
        total = x + self.dropout(update)
        return total if self.order == "pre" else self.norm(total)


class EncoderBlock(nn.Module):
    """Mix tokens by self-attention, then work on each: a block of the encoder.

    With `causal=True` it is a block of a decoder-only model. Taught in chapter 11.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_hidden: int,
        norm: str = "pre",
        dropout: float = 0.0,
        activation: str = "relu",
    ):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_hidden, activation)
        self.around_attention = Residual(d_model, norm, dropout)
        self.around_feed_forward = Residual(d_model, norm, dropout)

    def forward(
        self,
        x: Float[Tensor, "batch token d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        causal: bool = False,
        need_weights: bool = False,
        rotate: Callable[[Tensor], Tensor] | None = None,
        cache: KeyValueCache | None = None,
    ) -> tuple[Float[Tensor, "batch token d_model"], SelfWeights]:
        require_sequence(x, self.attention.output.in_features)
        update, weights = self.attention(
            self.around_attention.before(x),
            mask=mask,
            causal=causal,
            need_weights=need_weights,
            rotate=rotate,
            cache=cache,
        )
        x = self.around_attention.after(x, update)
        update = self.feed_forward(self.around_feed_forward.before(x))
        return self.around_feed_forward.after(x, update), weights


class DecoderBlock(nn.Module):
    """Mix the target so far, ask the source, then work on each token.

    Causal self-attention, cross-attention to the encoder's output, feed-forward.
    Taught in chapter 12.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_hidden: int,
        norm: str = "pre",
        dropout: float = 0.0,
    ):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_hidden)
        self.around_attention = Residual(d_model, norm, dropout)
        self.around_cross_attention = Residual(d_model, norm, dropout)
        self.around_feed_forward = Residual(d_model, norm, dropout)

    def forward(
        self,
        x: Float[Tensor, "batch token d_model"],
        memory: Tensor | tuple[Tensor, ...],
        memory_mask: Bool[Tensor, "..."] | None = None,
        need_weights: bool = False,
        cache: KeyValueCache | None = None,
    ) -> tuple[Float[Tensor, "batch token d_model"], SelfWeights, CrossWeights]:
        normed = self.around_attention.before(x)
        update, self_weights = self.attention(
            normed, causal=True, need_weights=need_weights, cache=cache
        )
        x = self.around_attention.after(x, update)
        normed = self.around_cross_attention.before(x)
        update, cross_weights = self.cross_attention(
            normed, memory, memory_mask, need_weights=need_weights
        )
        x = self.around_cross_attention.after(x, update)
        update = self.feed_forward(self.around_feed_forward.before(x))
        x = self.around_feed_forward.after(x, update)
        return x, self_weights, cross_weights


def stack_layers(weights: list[Tensor | None]) -> Tensor | None:
    """Stack the layers' weights, or return None where they were not asked for."""
    kept = [w for w in weights if w is not None]
    return torch.stack(kept) if kept else None


class Encoder(nn.Module):
    """A stack of encoder blocks; in the pre-norm order a last norm closes it.

    Taught in chapter 12.
    """

    def __init__(
        self,
        n_layers: int,
        d_model: int,
        n_heads: int,
        d_hidden: int,
        norm: str = "pre",
        dropout: float = 0.0,
    ):
        super().__init__()
        self.blocks = nn.ModuleList(
            EncoderBlock(d_model, n_heads, d_hidden, norm, dropout)
            for _ in range(n_layers)
        )
        self.norm = nn.LayerNorm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self,
        x: Float[Tensor, "batch token d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "batch token d_model"], SelfMaps]:
        """Return the states, and each layer's weights if asked for."""
        all_weights = []
        for block in self.blocks:
            x, weights = block(x, mask=mask, need_weights=need_weights)
            all_weights.append(weights)
        return self.norm(x), stack_layers(all_weights)


class Decoder(nn.Module):
    """A stack of decoder blocks that ask the encoder's output, the memory.

    Used in chapter 12.
    """

    def __init__(
        self,
        n_layers: int,
        d_model: int,
        n_heads: int,
        d_hidden: int,
        norm: str = "pre",
        dropout: float = 0.0,
    ):
        super().__init__()
        self.blocks = nn.ModuleList(
            DecoderBlock(d_model, n_heads, d_hidden, norm, dropout)
            for _ in range(n_layers)
        )
        self.norm = nn.LayerNorm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self,
        x: Float[Tensor, "batch token d_model"],
        memory: Float[Tensor, "batch source d_model"],
        memory_mask: Bool[Tensor, "..."] | None = None,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "batch token d_model"], SelfMaps, CrossMaps]:
        """Return the states, and the weights of self- and cross-attention if asked."""
        own, cross = [], []
        for block in self.blocks:
            x, weights, cross_weights = block(x, memory, memory_mask, need_weights)
            own.append(weights)
            cross.append(cross_weights)
        return self.norm(x), stack_layers(own), stack_layers(cross)

    def project_memory(
        self, memory: Float[Tensor, "batch source d_model"]
    ) -> tuple[tuple[Tensor, ...], ...]:
        """Make each layer's keys and values of the memory, once for all steps."""
        blocks = (cast(DecoderBlock, block) for block in self.blocks)
        return tuple(block.cross_attention.project_memory(memory) for block in blocks)

    def step(
        self,
        x: Float[Tensor, "batch 1 d_model"],
        memories: tuple[tuple[Tensor, ...], ...],
        memory_mask: Bool[Tensor, "..."] | None,
        caches: tuple[KeyValueCache, ...],
    ) -> Float[Tensor, "batch 1 d_model"]:
        """Return the new token's state, from each layer's memory and cache."""
        for block, memory, cache in zip(self.blocks, memories, caches):
            x, _, _ = block(x, memory, memory_mask, cache=cache)
        return self.norm(x)


check_arguments(__name__)
