"""LoRA: adapt a trained model by a low-rank change of its matrices, and merge it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.shapes import Float


class LoRALinear(nn.Module):
    """Keep a linear layer as it is and learn a change of rank r beside it.

    $y = W x + b + (alpha / r) U D x$. $D$ (rank, inputs) starts at random, $U$ at zero,
    so that nothing changes at first. Taught in chapter 18.
    """

    def __init__(self, base: nn.Linear, rank: int = 4, alpha: float = 8.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.in_features, self.out_features = base.in_features, base.out_features
        self.scale = alpha / rank
        like = base.weight
        down = torch.randn(rank, base.in_features, device=like.device, dtype=like.dtype)
        self.down = nn.Parameter(down / base.in_features**0.5)  # D
        self.up = nn.Parameter(like.new_zeros(base.out_features, rank))  # U

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        return self.base(x) + self.scale * (x @ self.down.T) @ self.up.T

    def merge(self) -> nn.Linear:
        """Return one linear layer that computes the same: $W + (alpha / r) U D$."""
        has_bias = self.base.bias is not None
        merged = nn.Linear(self.base.in_features, self.base.out_features, has_bias)
        merged.to(self.base.weight)
        with torch.no_grad():
            merged.weight.copy_(self.base.weight + self.scale * self.up @ self.down)
            if has_bias:
                merged.bias.copy_(self.base.bias)
        return merged


def replace_layers(model: nn.Module, old: type[nn.Module], new: object) -> None:
    """Put `new(layer)` in the place of every layer of the class `old`, at any depth."""
    for name, child in model.named_children():
        if isinstance(child, old):
            setattr(model, name, new(child))  # type: ignore[operator]
        else:
            replace_layers(child, old, new)


def add_lora(blocks: nn.Module, rank: int = 4, alpha: float = 8.0) -> None:
    """Give every linear layer inside `blocks` an adapter, in place.

    Used in chapter 18.
    """
    if rank < 1:
        raise ValueError(f"rank is {rank}, expected 1 or more; 4 is usual.")
    replace_layers(blocks, nn.Linear, lambda layer: LoRALinear(layer, rank, alpha))


def merge_lora(blocks: nn.Module) -> None:
    """Fold every adapter inside `blocks` into its matrix, in place.

    Used in chapter 18.
    """
    replace_layers(blocks, LoRALinear, lambda layer: layer.merge())


def trainable(model: nn.Module) -> int:
    """Count the parameters that a training would change. Used in chapter 18."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


check_arguments(__name__)
