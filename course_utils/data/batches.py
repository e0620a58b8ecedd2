"""Batches as a function of the step: the same step always gets the same examples.

A loader that keeps a position must be saved to be resumed; a function of the step's
number needs nothing of the kind. `train` calls `batch(step, generator)`, the generator
seeded for that step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.doors import check_arguments
from course_utils.runtime import base_seed
from course_utils.shapes import Int, shape_of

Batch = Callable[[int, torch.Generator], tuple[Any, ...]]
DATA, NOISE, ORDER = range(3)  # what a random number is drawn for


def derive_seed(seed: int, purpose: int, index: int) -> int:
    """Mix seed (and `COURSE_SEED`), purpose and index into the seed of a generator."""
    mixed = np.random.SeedSequence((base_seed(), seed, purpose, index))
    return int(mixed.generate_state(1)[0])


def epochs(
    size: int, batch_size: int, seed: int = 0
) -> Callable[[int], Int[Tensor, "batch"]]:
    """Turn a finite dataset into `indices(step)`: who is in the batch of that step.

    Every epoch sees each of `size` examples once, in an order of its own; a batch at
    the border takes the end of one epoch and the start of the next, so all are full.
    """
    if size < 1 or batch_size < 1:
        raise ValueError(
            f"epochs() got {size} examples in batches of {batch_size}, expected at "
            "least one of each."
        )

    @lru_cache(maxsize=2)
    def order(epoch: int) -> Tensor:
        generator = torch.Generator().manual_seed(derive_seed(seed, ORDER, epoch))
        return torch.randperm(size, generator=generator)

    def indices(step: int) -> Int[Tensor, "batch"]:
        first, end = step * batch_size, (step + 1) * batch_size
        touched = range(first // size, (end - 1) // size + 1)
        parts = [order(e)[max(first - e * size, 0) : end - e * size] for e in touched]
        return torch.cat(parts)

    return indices


def minibatches(*tensors: Tensor, batch_size: int, seed: int = 0) -> Batch:
    """Make `train`'s `batch` from tensors with one row for each example, shuffled.

    Each epoch takes every row once, as `epochs` says. Used in chapter 01.
    """
    for tensor in tensors:
        if not isinstance(tensor, Tensor) or tensor.dim() == 0:
            raise ValueError(
                f"minibatches() got {tensor!r:.40}, expected tensors with one row for "
                "each example: `torch.tensor(rows)`."
            )
    if len({len(tensor) for tensor in tensors}) != 1:
        raise ValueError(
            f"minibatches() got tensors of shapes {[shape_of(t) for t in tensors]}, "
            "expected one or more with the same number of examples on the first axis."
        )
    indices = epochs(len(tensors[0]), batch_size, seed)

    def batch(step: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        chosen = indices(step)
        return tuple(tensor[chosen] for tensor in tensors)

    return batch


def batched(
    function: Callable[[Tensor], Tensor], inputs: Tensor, size: int = 256
) -> Tensor:
    """Apply `function` to `size` rows at a time: a large test set then fits in memory.

    No gradient is kept.
    """
    if size < 1:
        raise ValueError(f"batched() got size = {size}, expected at least 1.")
    with torch.no_grad():
        return torch.cat([function(part) for part in inputs.split(size)])


def to_device(examples: Any, device: torch.device) -> tuple[Any, ...]:
    """Move a batch to the device; to a GPU from pinned memory, without waiting."""
    if not isinstance(examples, (tuple, list)):
        raise ValueError(
            f"batch() returned a {type(examples).__name__}, expected a tuple, which "
            "`loss` takes after the model; one tensor alone is `(x,)`."
        )

    def moved(item: Any) -> Any:
        if not isinstance(item, Tensor):
            return item
        if device.type == "cuda" and item.device.type == "cpu":
            return item.pin_memory().to(device, non_blocking=True)
        return item.to(device)

    return tuple(moved(item) for item in examples)


check_arguments(__name__)
