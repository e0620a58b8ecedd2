"""The most memory that a piece of work holds at once, counted exactly.

PyTorch's profiler reports every allocation and release of a tensor's memory; the
maximum of their running sum is the peak above what was there before. It hardly depends
on the machine and not on what else it does, as the operating system's own figure would.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.timing import Work


def peak_bytes(work: Work, clear: Callable[[], None] = lambda: None) -> int:
    """The most memory that the work holds at once.

    It runs twice, and the second time counts; `clear` releases before it what the first
    left behind: a release in the middle would be counted now and then.
    """
    work()
    clear()
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
