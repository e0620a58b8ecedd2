"""What a training holds in memory, and what to do when that is too much."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

Result = TypeVar("Result")
BYTES_A_PARAMETER = 16  # itself, its gradient and Adam's two averages, 4 bytes each


class OutOfMemory(MemoryError):
    """Not even one row at a time fits; the message says what to change."""


def training_bytes(
    model: nn.Module, examples: tuple[Any, ...], loss: Callable[..., Tensor]
) -> int:
    """Count what a training step holds: 16 bytes a parameter, and what backward needs.

    PyTorch hands every tensor that it keeps for the backward pass to a hook. The count
    is made on the device `meta`, where nothing is computed. It is rather too high: a
    tensor kept twice counts twice, and mixed precision halves many of them.
    """
    kept = 0

    def note(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept += tensor.nbytes
        return tensor

    ghost, shapes = on_meta(model, examples)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        loss(ghost, *shapes)
    parameters = sum(p.numel() for p in ghost.parameters())
    return BYTES_A_PARAMETER * parameters + kept


def on_meta(
    model: nn.Module, examples: tuple[Any, ...]
) -> tuple[nn.Module, tuple[Any, ...]]:
    """Copy a model and a batch to the device `meta`: shapes without numbers."""
    moved = (e.to("meta") if isinstance(e, Tensor) else e for e in examples)
    return copy.deepcopy(model).to("meta"), tuple(moved)


# ------------------------------------------------------------ when there is too little


def is_out_of_memory(error: BaseException) -> bool:
    """Recognise the error of every device: CUDA has a class for it, others a text."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and (
        "out of memory" in text or "can't allocate memory" in text
    )


def n_rows(examples: tuple[Any, ...]) -> int:
    """Return the rows of a batch: the length of its first tensor."""
    sizes = (len(e) for e in examples if isinstance(e, Tensor) and e.dim())
    return next(sizes, 1)


def split_rows(
    examples: tuple[Any, ...], parts: int
) -> Iterator[tuple[tuple[Any, ...], float]]:
    """Yield a batch in `parts`, each with its share of the rows.

    What is no tensor, or has another number of rows, goes into every part.
    """
    rows = n_rows(examples)
    size = -(-rows // parts)

    def cut(item: Any, start: int) -> Any:
        whole = not (isinstance(item, Tensor) and item.dim() and len(item) == rows)
        return item if whole or parts == 1 else item[start : start + size]

    for start in range(0, rows, size):
        share = min(size, rows - start) / rows
        yield tuple(cut(item, start) for item in examples), share


def halve_until_it_fits(
    compute: Callable[[int], Result], parts: int, rows: int
) -> tuple[Result, int]:
    """Call `compute(parts)`, with twice as many parts each time memory runs out.

    Returns the result and the number of parts that fitted.
    """
    while True:
        try:
            return compute(parts), parts
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            if parts >= rows:
                raise OutOfMemory(
                    "memory ran out with one row at a time: choose a smaller model or "
                    "shorter sequences, or free what other programs and earlier cells "
                    "hold (restart the kernel)."
                ) from error
        # Here, and not in the handler: the error held every tensor of the failed try.
        parts = min(2 * parts, rows)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        at_once = -(-rows // parts)
        print(
            f"Memory ran out: going on with {at_once} of {rows} rows at a time, their "
            "gradients added up. The steps stay as large, and get slower.",
            flush=True,
        )
