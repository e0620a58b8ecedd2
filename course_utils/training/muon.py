"""Muon: steps of equal strength in every direction of a matrix.

AdamW scales each number of a gradient by itself. A gradient matrix G = U S V^T usually
has a few large singular values, and its step goes almost nowhere else. Muon (Jordan
2024) takes U V^T instead: the same directions, each with strength 1. Embeddings, norms
and biases are not maps from vectors to vectors, and stay with AdamW.

`torch.optim.Muon` does one matrix at a time in bfloat16, which a CPU without units for
it computes slowly. Here all matrices of one shape go through together, in float32.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.shapes import Float, shape_of

# Of p(s) = a s + b s^3 + c s^5, whose repetition takes every s in (0, 1] near 1.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonalise(
    matrices: Float[Tensor, "*batch row column"], steps: int = 5
) -> Float[Tensor, "*batch row column"]:
    """Bring all singular values of each matrix near 1, and leave its directions.

    X <- a X + (b X X^T + c (X X^T)^2) X, from X = G / |G|: as p(s) on each singular
    value s, by matrix products alone. Five steps take what is 0.002 or more of
    G / |G| to between 0.68 and 1.21; a smaller one grows at most 485 times, and may
    stay small. Taught in chapter 16.
    """
    if matrices.dim() < 2:
        raise ValueError(
            f"matrices has shape {shape_of(matrices)}, expected (…, row, column)."
        )
    a, b, c = COEFFICIENTS
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Gradient descent with momentum whose steps are orthogonalised matrices.

    M <- m M + G, W <- W (1 - lr decay) - lr sqrt(max(1, rows / columns))
    orthogonalise(G + m M). A matrix that stacks others (`parts` of them, as the fused
    queries, keys and values) is cut into them first. Used in chapter 16.
    """

    def __init__(
        self,
        matrices: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        parts: int = 1,
    ):
        limits = {"lr": math.inf, "momentum": 1.0, "weight_decay": math.inf}
        given = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        for name, value in given.items():
            if not isinstance(value, int | float) or not 0 <= value < limits[name]:
                below = " and below 1" * (name == "momentum")
                raise ValueError(
                    f"{name} is {value!r}, expected a number from 0 on{below}."
                )
        defaults: dict[str, Any] = {"lr": lr, "momentum": momentum}
        defaults |= {"weight_decay": weight_decay, "parts": parts}
        super().__init__(matrices, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                require_matrix(p, group["parts"])

    @torch.no_grad()
    def step(  # type: ignore[override]
        self, closure: Callable[[], Tensor] | None = None
    ) -> Tensor | None:
        """Move every matrix once, those of one shape together."""
        with torch.enable_grad():
            loss = None if closure is None else closure()
        same = defaultdict(list)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                moved = self.moved(p, group["momentum"])
                cut = group["parts"]
                for piece, part in zip(p.chunk(cut), moved.chunk(cut)):
                    same[tuple(piece.shape)].append((piece, part, group))
        for shape, pieces in same.items():
            scale = max(1.0, shape[0] / shape[1]) ** 0.5
            steps = orthogonalise(torch.stack([part for _, part, _ in pieces]))
            for (piece, _, group), change in zip(pieces, steps):
                piece.mul_(1 - group["lr"] * group["weight_decay"])
                piece.add_(change, alpha=-group["lr"] * scale)
        return loss

    def moved(self, p: Tensor, momentum: float) -> Tensor:
        """Add the gradient to the matrix's momentum; return one step further of it."""
        state, gradient = self.state[p], p.grad
        assert gradient is not None
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(p)
        kept = state["momentum"].mul_(momentum).add_(gradient)
        return gradient + momentum * kept


def require_matrix(p: Tensor, parts: int) -> None:
    """Refuse what is not a matrix, or does not divide into that many."""
    if p.dim() != 2 or parts < 1 or p.shape[0] % parts:
        raise ValueError(
            f"Muon got a parameter of shape {shape_of(p)} with parts = {parts}, "
            "expected a matrix whose rows divide into that many; leave embeddings, "
            "norms and biases to AdamW."
        )


def block_matrices(blocks: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Find the matrices of a stack of blocks: the fused `qkv` ones, and the others.

    Used in chapter 16.
    """
    fused: list[nn.Parameter] = []
    single: list[nn.Parameter] = []
    for name, p in blocks.named_parameters():
        if p.dim() == 2:
            (fused if name.endswith("qkv.weight") else single).append(p)
    return fused, single


check_arguments(__name__)
