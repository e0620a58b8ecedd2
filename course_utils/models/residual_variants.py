"""Blocks wired in five ways, to see which stacks of them can be trained.

A block asks its wiring twice: what a layer reads, and what becomes of its update. With
that exchanged, everything else of a stack stays the same.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.models.blocks import EncoderBlock, require_same_shape
from course_utils.models.positions import LearnedPositions
from course_utils.shapes import Float, Int, require_sizes

KINDS = ("plain", "norm only", "residual", "post-norm", "pre-norm")


def require_kind(kind: str) -> None:
    """Refuse a wiring that does not exist, naming those that do."""
    if kind not in KINDS:
        raise ValueError(
            f"wiring is {kind!r}, expected one of {', '.join(map(repr, KINDS))}."
        )


class Wiring(nn.Module):
    """Lead a stream around a layer: with the sum or without, with a norm or without.

    plain $f(x)$, norm only $norm(f(x))$, residual $x + f(x)$, post-norm $norm(x +
    f(x))$, pre-norm $x + f(norm(x))$. Taught in chapter 11.
    """

    def __init__(self, d_model: int, kind: str):
        super().__init__()
        require_kind(kind)
        self.kind = kind
        bare = kind in ("plain", "residual")
        self.norm = nn.Identity() if bare else nn.LayerNorm(d_model)

    def before(self, x: Tensor) -> Tensor:
        """Return what the layer reads."""
        return self.norm(x) if self.kind == "pre-norm" else x

    def after(self, x: Tensor, update: Tensor) -> Tensor:
        """Return the stream after the layer."""
        require_same_shape(x, update)
        alone = self.kind in ("plain", "norm only")
        total = update if alone else x + update
        return total if self.kind == "pre-norm" else self.norm(total)


def set_gain(module: nn.Module, gain: float) -> None:
    """Start every matrix of a module at one scale, its biases at zero.

    $W ~ N(0, gain^2 / inputs)$: at gain 1 a matrix keeps the size of a vector, on
    average. Taught in chapter 11.
    """
    if not 0 < gain < math.inf:
        raise ValueError(f"gain is {gain}, expected a number above 0, such as 1.0.")
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=gain / math.sqrt(layer.in_features))
            nn.init.zeros_(layer.bias)


class Sorter(nn.Module):
    """Sort a few symbols with a stack of blocks, wired and started as you like.

    Returns logits for every place, and the stream before and after each block.
    Taught in chapter 11.
    """

    def __init__(
        self,
        kind: str,
        n_layers: int,
        gain: float = 1.0,
        d_model: int = 32,
        n_tokens: int = 6,
        n_symbols: int = 8,
    ):
        super().__init__()
        require_sizes(n_layers=n_layers)
        self.symbol = nn.Embedding(n_symbols, d_model)
        self.place = LearnedPositions(n_tokens, d_model, std=1.0)
        self.blocks = nn.ModuleList(
            EncoderBlock(d_model, 2, 2 * d_model) for _ in range(n_layers)
        )
        for block in self.blocks:
            block.around_attention = Wiring(d_model, kind)
            block.around_feed_forward = Wiring(d_model, kind)
        set_gain(self.blocks, gain)
        self.norm = nn.LayerNorm(d_model) if kind == "pre-norm" else nn.Identity()
        self.readout = nn.Linear(d_model, n_symbols)

    def forward(
        self, tokens: Int[Tensor, "batch token"]
    ) -> tuple[
        Float[Tensor, "batch token n_symbols"],
        list[Float[Tensor, "batch token d_model"]],
    ]:
        streams = [self.symbol(tokens) + self.place(tokens.shape[1])]
        for block in self.blocks:
            streams.append(block(streams[-1])[0])
        return self.readout(self.norm(streams[-1])), streams


class Profile(NamedTuple):
    """What a stack looks like from inside, layer by layer: see `profile`."""

    size: Float[Tensor, "stream"]
    difference: Float[Tensor, "stream"]
    gradient: Float[Tensor, "layer"]


def profile(
    model: Sorter,
    tokens: Int[Tensor, "batch token"],
    answers: Int[Tensor, "batch token"],
) -> Profile:
    """Measure a stack by layer: size, difference of the tokens, gradient.

    size = root mean square of the stream; difference = $|x - mean| / |x|$, the mean
    over tokens; gradient = norm of the loss's gradient in a block's matrices. Used in
    chapter 11.
    """
    logits, streams = model(tokens)
    loss = F.cross_entropy(logits.transpose(1, 2), answers)
    matrices = [[p for p in b.parameters() if p.dim() == 2] for b in model.blocks]
    gradients = torch.autograd.grad(loss, [p for block in matrices for p in block])
    squares = torch.stack([g.square().sum() for g in gradients])
    apart = [x - x.mean(dim=1, keepdim=True) for x in streams]
    return Profile(
        torch.stack([x.detach().square().mean().sqrt() for x in streams]),
        torch.stack([(a.norm() / x.norm()).detach() for a, x in zip(apart, streams)]),
        squares.reshape(len(matrices), -1).sum(dim=1).sqrt(),
    )


check_arguments(__name__)
