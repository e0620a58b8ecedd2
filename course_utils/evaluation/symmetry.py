"""Symmetry: what a layer does when its tokens come in another order.

A layer is *equivariant* when its outputs follow their tokens, *invariant* when its
output does not change at all. An order lists which token comes to each place: in
`[2, 0, 1]` the first place goes to token 2, so that `x[order]` is the new sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from course_utils.doors import check_arguments
from course_utils.shapes import Float, shape_of


def require_order(order: Sequence[int], n_tokens: int) -> None:
    """Refuse an order that does not name every token exactly once."""
    if sorted(int(token) for token in order) != list(range(n_tokens)):
        raise ValueError(
            f"order is {[int(token) for token in order]}, expected each of the numbers "
            f"0 to {n_tokens - 1} once, in any order: one place for each token."
        )


def permutation_matrix(order: Sequence[int]) -> Float[Tensor, "token token"]:
    """Write an order as a matrix, so that to reorder tokens is to multiply.

    $P_ij = 1$ where $j = order[i]$, else 0; then $P X = X[order]$. Taught in chapter
    07.
    """
    require_order(order, len(order))
    return torch.eye(len(order))[torch.as_tensor(order)]


def output_of(result: Any) -> Tensor:
    """Return a layer's output alone, where it comes with its weights: `result[0]`."""
    return result[0] if isinstance(result, tuple) else result


def equivariance_gap(
    layer: Callable[[Tensor], Any],
    x: Float[Tensor, "*batch token d_model"],
    order: Sequence[int],
) -> float:
    """Measure how far a layer's outputs are from following their tokens.

    max |f(P X) - P f(X)|: zero, up to rounding, for every X and P when f is
    equivariant. Put a layer with dropout into `eval` mode first. Taught in chapter 07.
    """
    require_order(order, x.shape[-2])
    before, after = output_of(layer(x)), output_of(layer(x[..., order, :]))
    if before.shape[:-1] != x.shape[:-1]:
        raise ValueError(
            f"the layer made {shape_of(before)} of {shape_of(x)}, expected one row for "
            "each token; a pooled output can't follow tokens: ask `invariance_gap`."
        )
    return (after - before[..., order, :]).abs().max().item()


def invariance_gap(
    layer: Callable[[Tensor], Any],
    x: Float[Tensor, "*batch token d_model"],
    order: Sequence[int],
) -> float:
    """Measure how much a layer's output changes with the order of the tokens.

    max |f(P X) - f(X)|: zero, up to rounding, for every X and P when f is invariant.
    Taught in chapter 07.
    """
    require_order(order, x.shape[-2])
    before, after = output_of(layer(x)), output_of(layer(x[..., order, :]))
    return (after - before).abs().max().item()


check_arguments(__name__)
