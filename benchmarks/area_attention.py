"""Area 1: multi-head attention, causal, forward and backward: time and memory."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks.baseline_attention import PEERS, Naive, same_weights
from benchmarks.memory import peak_bytes
from benchmarks.results import Row, made
from benchmarks.tasks import ForwardBackward, Plan, Task
from benchmarks.timing import Ratio, ratio_of
from course_utils.models.attention import MultiHeadAttention

AREA = "attention"
WIDTH, HEADS = 256, 4
LENGTHS = (64, 256, 1024, 4096)
TIME_TARGET, MEMORY_TARGET = 1.05, 1.05
NAIVE_MEMORY_TARGET = 0.07  # at 4096 tokens


def works(length: int) -> dict[str, ForwardBackward]:
    """Our layer and each peer's on the same input, with the same weights."""
    torch.manual_seed(0)
    ours = MultiHeadAttention(WIDTH, HEADS)
    x = torch.randn(max(1, 1024 // length), length, WIDTH)
    found = {"ours": ForwardBackward(ours, lambda x: ours(x, causal=True)[0], x)}
    for name, design in PEERS.items():
        peer = same_weights(ours, design(WIDTH, HEADS))
        found[name] = ForwardBackward(peer, peer, x)
    return found


def times(length: int, plan: Plan) -> list[Row]:
    """Rows of the time at one length."""
    measured = plan.times(works(length))
    return [
        made(
            AREA,
            "time",
            f"T = {length}",
            ratio_of(measured["ours"], measured[name]),
            TIME_TARGET,
            name,
            rounds=plan.rounds,
        )
        for name in PEERS
    ]


def memory(length: int, plan: Plan) -> list[Row]:
    """Rows of the peak memory at one length; it is counted, so there is no spread."""
    peaks = {name: peak_bytes(work, work.clear) for name, work in works(length).items()}
    rows = []
    for name, design in PEERS.items():
        ratio = peaks["ours"] / peaks[name]
        long = design is Naive and length >= 4096
        target = NAIVE_MEMORY_TARGET if long else MEMORY_TARGET
        exact = Ratio(ratio, ratio, ratio)
        rows.append(made(AREA, "peak memory", f"T = {length}", exact, target, name))
    return rows


def tasks(plan: Plan) -> list[Task]:
    """Time and memory at each length."""
    lengths = LENGTHS[:3] if plan.quick else LENGTHS
    seconds = {64: 0.5, 256: 0.6, 1024: 1.0, 4096: 7.0}
    found = []
    for n in lengths:
        label = f"attention, {n} tokens"
        found.append(Task(label, seconds[n] * plan.rounds, partial(times, n)))
        found.append(Task(f"{label}, memory", 2 * seconds[n], partial(memory, n)))
    return found
