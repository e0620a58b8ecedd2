"""What threads cost where other programs keep every core busy.

    python -m benchmarks.threads [--rounds 5]

Steps of self-attention at the sizes of chapter 06, on the course's one thread and on
as many as there are cores, which is what PyTorch takes by itself, in turns, beside two
busy processes a core. By the clock, not the processor's: the question is how long one
waits.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from benchmarks.tasks import ForwardBackward
from benchmarks.timing import Ratio, ratio_of
from course_utils.models.attention import SelfAttention

STEPS = 5
BUSY = [sys.executable, "-c", "while True: pass"]


@contextmanager
def busy_machine() -> Iterator[int]:
    """Keep the cores busy with twice as many processes; yield their number."""
    count = 2 * (os.cpu_count() or 1)
    processes = [subprocess.Popen(BUSY) for _ in range(count)]
    try:
        yield count
    finally:
        for process in processes:
            process.kill()
            process.wait()


def seconds(threads: int) -> float:
    """The clock's seconds of some steps, on so many threads."""
    torch.set_num_threads(threads)
    layer = SelfAttention(32, 256, 32)
    step = ForwardBackward(layer, lambda x: layer(x)[0], torch.randn(64, 17, 32))
    step()
    began = time.monotonic()
    for _ in range(STEPS):
        step()
    return time.monotonic() - began


def under_load(rounds: int) -> tuple[Ratio, int, int]:
    """One thread against one a core; how many these are, and the busy processes."""
    many = os.cpu_count() or 1
    one: list[float] = []
    all_cores: list[float] = []
    with busy_machine() as count:
        for number in range(rounds):
            for threads in (1, many) if number % 2 else (many, 1):
                (one if threads == 1 else all_cores).append(seconds(threads))
    return ratio_of(one, all_cores), many, count


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    found, many, count = under_load(options.parse_args().rounds)
    print(
        f"{found.median:.3f} ({found.low:.3f} to {found.high:.3f}) of the time on "
        f"{many} threads, beside {count} busy processes"
    )


if __name__ == "__main__":
    main()
