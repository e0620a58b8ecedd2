"""Mixed precision: fewer bits where the hardware is faster with them, only there."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.amp import GradScaler

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
FP16_PATIENCE = 25  # gradients in a row that may overflow while fp16 finds its scale


def chosen_precision(precision: str, device: torch.device) -> str:
    """Turn "auto" into what pays here: bf16 or fp16 where a GPU has units for it.

    A CPU computes in fp32 unless told otherwise: without units of its own, bf16 is
    several times slower there.
    """
    if precision != "auto" and precision not in DTYPES:
        raise ValueError(
            f"precision is {precision!r}, expected one of {('auto', *DTYPES)}."
        )
    if precision != "auto":
        return precision
    if device.type != "cuda":
        return "fp32"
    generation = torch.cuda.get_device_capability(device)
    return (
        "bf16" if generation >= (8, 0) else "fp16" if generation >= (7, 0) else "fp32"
    )


def mixed_precision(
    precision: str, device: torch.device
) -> tuple[AbstractContextManager[Any], GradScaler]:
    """Give the context for the forward pass and the loss scaler (idle unless fp16).

    fp16 ends at 6e-8: the scaler multiplies the loss so that small gradients survive,
    divides them again, and leaves out a step whose gradients overflowed.
    """
    scaler = GradScaler(device.type, enabled=precision == "fp16")
    if precision == "fp32":
        return nullcontext(), scaler
    return torch.autocast(device.type, DTYPES[precision]), scaler
