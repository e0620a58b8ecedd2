"""The most memory that a piece of work holds at once, counted exactly.

PyTorch's profiler reports every allocation and release of a tensor's memory; the
maximum of their running sum is the peak above what was there before. It is the same
number in each run and on each machine, which the operating system's own figure is not.
"""

from __future__ import annotations

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.timing import Work


def peak_bytes(work: Work) -> int:
    """Run the work twice, and count the second time."""
    work()
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
