"""Memory: the most that a piece of work holds at once, and what fetching it costs.

PyTorch's profiler reports every allocation and release of a tensor's memory; the
maximum of their running sum is the peak above what was there before. It hardly depends
on the machine and not on what else it does, as the operating system's own figure would.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.timing import Work

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # what glibc's `mallopt` calls these settings
USUAL = {M_TRIM_THRESHOLD: 128 * 1024, M_MMAP_MAX: 65536}


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


@contextmanager
def kept_memory() -> Iterator[bool]:
    """Keep freed memory in the process; False where the C library can't be told."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    known = libc is not None and hasattr(libc, "mallopt")  # glibc has it
    if libc is not None and known:
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
        libc.mallopt(M_MMAP_MAX, 0)
    try:
        yield known
    finally:
        if libc is not None and known:
            for name, value in USUAL.items():
                libc.mallopt(name, value)
