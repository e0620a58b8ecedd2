"""Area 7: how the cost of a layer grows with the length n of what it reads.

For each layer of chapter 15, forward and backward are measured at several lengths and
n^p is fitted: a line through the logarithms, whose slope is p. Theory says 2 for the
time of attention, 1 for the others, and 1 for the memory of all but the attention that
stores its weights. Theory counts operations, so memory that was let go is kept for the
next call here: else fetching it anew from the system is most of a long call.
"""

from __future__ import annotations

import ctypes
import importlib.util
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.memory import peak_bytes
from benchmarks.results import Row, made
from benchmarks.tasks import ForwardBackward, Plan, Task
from benchmarks.timing import Ratio, summary
from course_utils.models.attention import MultiHeadAttention

AREA = "growth"
WIDTH, HEADS = 64, 4
LENGTHS, QUICK = (512, 1024, 2048, 4096), (256, 512, 1024)
STORED, ANEW = "attention, all weights stored", "memory fetched anew"
KEPT = (
    "Theory counts operations. So that no time is spent on fetching memory, what a "
    "call lets go is kept for the next one. "
    "The row without a target shows what happens as usual: the stored weights are so "
    "large that the system takes their memory back, and fetching it again at each call "
    "makes the time grow faster than the operations do."
)
ABOVE = 0.15  # that a fitted exponent may lie above that of theory
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # what glibc's `mallopt` calls these settings
USUAL = {M_TRIM_THRESHOLD: 128 * 1024, M_MMAP_MAX: 65536}


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


def attention(need_weights: bool) -> tuple[nn.Module, Callable[[Tensor], Tensor]]:
    """Our layer, step by step (all weights stored) or in one kernel."""
    layer = MultiHeadAttention(WIDTH, HEADS)
    return layer, lambda x: layer(x, causal=True, need_weights=need_weights)[0]


def recurrent() -> tuple[nn.Module, Callable[[Tensor], Tensor]]:
    """A gated recurrent unit, one token after the other."""
    layer = nn.GRU(WIDTH, WIDTH, batch_first=True)
    return layer, lambda x: layer(x)[0]


def from_chapter_15(name: str) -> tuple[nn.Module, Callable[[Tensor], Tensor]]:
    """A layer of `course_utils.models.recurrences`."""
    from course_utils.models import recurrences

    layer = getattr(recurrences, name)(WIDTH)
    return layer, layer


# The layer, how to make it, and the exponents that theory gives its time and memory.
LAYERS: dict[str, tuple[Callable, int, int]] = {
    STORED: (partial(attention, True), 2, 2),
    "attention, one fused kernel": (partial(attention, False), 2, 1),
    "recurrent network (GRU)": (recurrent, 1, 1),
}
if importlib.util.find_spec("course_utils.models.recurrences") is not None:
    LAYERS["convolution"] = (partial(from_chapter_15, "CausalConvolution"), 1, 1)
    LAYERS["state space"] = (partial(from_chapter_15, "StateSpace"), 1, 1)


def exponent(lengths: tuple[int, ...], costs: list[float]) -> float:
    """The slope of the line through the logarithms: p, where cost = c n^p."""
    if len(lengths) != len(costs) or len(set(lengths)) < 2 or min(costs) <= 0:
        raise ValueError(
            f"{len(lengths)} lengths and {len(costs)} costs, expected as many of both, "
            "two or more lengths, and costs above 0."
        )
    x, y = [math.log(n) for n in lengths], [math.log(c) for c in costs]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    along = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y))
    return along / sum((a - mean_x) ** 2 for a in x)


def works(name: str, lengths: tuple[int, ...]) -> dict[str, ForwardBackward]:
    """Forward and backward through one layer at each length."""
    torch.manual_seed(0)
    layer, forward = LAYERS[name][0]()
    return {
        str(n): ForwardBackward(layer, forward, torch.randn(1, n, WIDTH))
        for n in lengths
    }


def grown(
    work: dict[str, ForwardBackward], lengths: tuple[int, ...], plan: Plan
) -> Ratio:
    """The exponent of the time, fitted in each round."""
    measured = plan.times(dict(work))
    by_round = zip(*(measured[str(n)] for n in lengths))
    return summary([exponent(lengths, list(costs)) for costs in by_round])


def rows(name: str, lengths: tuple[int, ...], plan: Plan) -> list[Row]:
    """The exponents of a layer's time and memory; of stored weights, also as usual."""
    _, in_time, in_memory = LAYERS[name]
    work = works(name, lengths)
    usual = grown(work, lengths, plan) if name == STORED else None
    with kept_memory() as kept:
        time = grown(work, lengths, plan)
    peak = exponent(lengths, [peak_bytes(w, w.clear) for w in work.values()])

    def row(what: str, p: Ratio, theory: int, target: float | None, note: str) -> Row:
        size, against = f"n = {lengths[0]} … {lengths[-1]}", f"{theory} in theory"
        rounds = plan.rounds if "time" in what else 1
        return made(AREA, what, size, p, target, against, "exponent", rounds, note)

    note = KEPT if kept else ""
    found = [
        row(f"time of {name}", time, in_time, in_time + ABOVE, note),
        row(
            f"memory of {name}",
            Ratio(peak, peak, peak),
            in_memory,
            in_memory + ABOVE,
            "",
        ),
    ]
    if usual is not None:
        found.insert(1, row(f"time of {name}, {ANEW}", usual, in_time, None, note))
    return found


def tasks(plan: Plan) -> list[Task]:
    """One task for each layer; a quick run reads shorter texts."""
    lengths = QUICK if plan.quick else LENGTHS
    seconds = (0.3 if plan.quick else 2.0) * plan.rounds
    return [
        Task(f"growth, {name}", seconds, partial(rows, name, lengths))
        for name in LAYERS
    ]
