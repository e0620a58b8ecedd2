"""What a computation costs: CPU time, peak memory, multiplications, and how they grow.

Times are of the processor, not of the clock on the wall: other programs of the same
machine disturb them less. Memory is what PyTorch asked for, added up as it was taken
and given back, so that it is the same in every run.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from course_utils.doors import check_arguments
from course_utils.shapes import require_sizes


def cpu_seconds(
    function: Callable[[], Any], rounds: int = 3, at_least: float = 0.3
) -> float:
    """Return the processor time of one call: the least of many, after a warm-up.

    Whatever disturbs a measurement makes it longer, so the least is the one disturbed
    least. `rounds` calls are made, and more until `at_least` seconds are spent. The
    time of all threads is added up. Used in chapter 15.
    """
    require_sizes(rounds=rounds)
    function()
    times: list[float] = []
    while len(times) < rounds or (sum(times) < at_least and len(times) < 1000):
        started = time.process_time()
        function()
        times.append(time.process_time() - started)
    return min(times)


def peak_bytes(function: Callable[[], Any]) -> int:
    """Return the most memory that one call of `function` held at a time, on the CPU.

    Only what is taken during the call counts: not its inputs, not the model's weights.
    On a GPU, `torch.cuda.max_memory_allocated()` tells the like. Used in chapter 15.
    """
    recording = profile(activities=[ProfilerActivity.CPU], profile_memory=True)
    with _silent(), recording as recorded:
        function()
    changes = [
        (event.start_ns(), event.nbytes())
        for event in recorded.profiler.kineto_results.events()  # type: ignore[union-attr]
        if event.name() == "[memory]" and event.device_type().name == "CPU"
    ]
    held = np.cumsum([change for _, change in sorted(changes, key=lambda c: c[0])])
    return int(max(held.max(initial=0), 0))


@contextmanager
def _silent() -> Iterator[None]:
    """Keep the profiler's own messages, which some versions print, off the page."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def count_flops(function: Callable[[], Any]) -> int:
    """Count the floating-point operations of the matrix products in one call.

    A product of (n, m) with (m, p) counts 2 n m p: a multiplication and an addition for
    each. Element-wise work counts nothing. Used in chapter 15.
    """
    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops()


def fitted_exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Fit $cost = c size^p$ by least squares in logarithms, and return $p$.

    $p = 1$: twice the size costs twice as much; $p = 2$: four times. Used in chapter
    15.
    """
    if len(sizes) != len(costs) or len(set(sizes)) < 2:
        raise ValueError(
            f"fitted_exponent got {len(sizes)} sizes and {len(costs)} costs, expected "
            "as many of both, for two different sizes at least."
        )
    if min(*sizes, *costs) <= 0:
        raise ValueError(
            "fitted_exponent needs sizes and costs above 0, for it takes logarithms; "
            f"the smallest came as {min(*sizes, *costs)}."
        )
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


# ------------------------------------------------------------------------- arithmetic


class Coefficients(NamedTuple):
    """The cost of one layer as polynomials of $n$ tokens, width $d$ and $H$ heads.

    $flops = a n d^2 + b n^2 d$; $training = a n d + b H n^2$ numbers at the peak of
    forward and backward pass (rounded from measurements of the course's layers);
    $generation = a d + b n d$ numbers that are kept from one token to the next.
    """

    flops: tuple[float, float]
    training: tuple[float, float]
    generation: tuple[float, float]


LAYERS = {
    "attention, naive": Coefficients((8, 4), (9, 4.3), (0, 2)),
    "attention, fused": Coefficients((8, 4), (9, 0), (0, 2)),
    "GRU": Coefficients((12, 0), (11, 0), (1, 0)),
    "convolution": Coefficients((18, 0), (10, 0), (14, 0)),
    "state space": Coefficients((8, 0), (31, 0), (1, 0)),
}


class LayerCost(NamedTuple):
    """Operations of a forward pass, and numbers held in training and in generation."""

    flops: float
    training: float
    generation: float


def layer_cost(layer: str, n_tokens: int, d_model: int, n_heads: int = 1) -> LayerCost:
    """Compute what one layer costs for one sequence, from its `Coefficients`.

    The convolution is three layers of kernel 3, the state-space layer the selective
    one. Matrix products only; norms, masks and biases are left out. Used in chapter 15.
    """
    require_sizes(n_tokens=n_tokens, d_model=d_model, n_heads=n_heads)
    if layer not in LAYERS:
        raise ValueError(f"layer is {layer!r}, expected one of {sorted(LAYERS)}.")
    (f1, f2), (t1, t2), (g1, g2) = LAYERS[layer]
    n, d = n_tokens, d_model
    return LayerCost(
        f1 * n * d**2 + f2 * n**2 * d,
        t1 * n * d + t2 * n_heads * n**2,
        g1 * d + g2 * n * d,
    )


check_arguments(__name__)
