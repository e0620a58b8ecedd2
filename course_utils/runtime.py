"""Where the code runs, and with which random numbers.

One cell serves a laptop and a GPU: `device()` finds the hardware, `seed()` makes a run
repeatable, and `preset()` picks the sizes that suit what was found.
"""

from __future__ import annotations

import os
import random
from typing import TypeVar

import numpy as np
import torch

Choice = TypeVar("Choice")


def device() -> torch.device:
    """Return the fastest device there is: cuda, else Apple's mps, else the cpu."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def base_seed() -> int:
    """Return the seed of this run: the environment's `COURSE_SEED`, or 0."""
    text = os.environ.get("COURSE_SEED", "0").strip() or "0"
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value < 2**31:
        raise ValueError(
            f"COURSE_SEED is {text!r}, expected a whole number from 0 to 2147483647; "
            "set it to one (COURSE_SEED=1) or unset it."
        )
    return value


def seed(offset: int = 0) -> torch.Generator:
    """Seed Python, NumPy and PyTorch, and return a generator of its own.

    The number used is `COURSE_SEED + 1000 * offset`, so that `seed(0)`, `seed(1)`, …
    are the repetitions of an experiment, and another `COURSE_SEED` gives fresh ones.
    """
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
        raise ValueError(f"seed() got {offset!r}, expected a whole number 0, 1, 2, …")
    number = base_seed() + 1000 * offset
    random.seed(number)
    np.random.seed(number % 2**32)
    torch.manual_seed(number)
    return torch.Generator().manual_seed(number)


def preset(*, cpu: Choice, gpu: Choice) -> Choice:
    """Pick the setting for the hardware found, so that one cell serves both.

    `COURSE_PRESET=cpu` (or `gpu`) in the environment overrules what was found.
    """
    forced = os.environ.get("COURSE_PRESET", "").strip().lower()
    if forced not in ("", "cpu", "gpu"):
        raise ValueError(
            f"COURSE_PRESET is {forced!r}, expected 'cpu' or 'gpu'; unset it to let "
            "the hardware decide."
        )
    if forced:
        return gpu if forced == "gpu" else cpu
    return gpu if device().type == "cuda" else cpu


def hardware() -> str:
    """Say in one line what was found, for the first cell of a training notebook."""
    kind = device().type
    if kind == "cuda":
        card = torch.cuda.get_device_properties(0)
        count = torch.cuda.device_count()
        many = f"{count} x " if count > 1 else ""
        return f"GPU: {many}{card.name}, {card.total_memory / 2**30:.0f} GB"
    cores = f"{os.cpu_count()} CPU cores"
    if kind == "mps":
        return f"Apple GPU (mps) beside {cores}"
    threads = torch.get_num_threads()
    return f"CPU: {cores}, {threads} used by PyTorch; no GPU needed for this page"
