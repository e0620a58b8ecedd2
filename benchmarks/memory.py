"""The most memory that a piece of work holds at once, counted exactly.

PyTorch's profiler reports every allocation and release of a tensor's memory; the
maximum of their running sum is the peak above what was there before. It hardly depends
on the machine and not on what else it does, as the operating system's own figure would.
"""

from __future__ import annotations

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.timing import Work

TIMES = 3  # that the work is counted


def peak_bytes(work: Work) -> int:
    """The most memory that the work holds at once.

    What it releases of an earlier call is now and then counted as its own, and lowers
    the sum: the highest of a few counts is the right one.
    """
    work()
    return max(counted(work) for _ in range(TIMES))


def counted(work: Work) -> int:
    """Run the work once, and add up what it takes and gives back."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        work()
    changes = [
        (event.start_ns(), event.nbytes())
        for event in seen.profiler.kineto_results.events()
        if event.name() == "[memory]"
    ]
    if not changes:
        raise RuntimeError(
            f"PyTorch {torch.__version__} reported no allocation; the profiler's "
            "memory events are needed."
        )
    held = peak = 0
    for _, change in sorted(changes, key=lambda c: c[0]):
        held += change
        peak = max(peak, held)
    return peak
