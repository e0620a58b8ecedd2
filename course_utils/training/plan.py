"""What a training will cost, said before it starts.

    seconds >= steps * operations of a step / operations a second + compilation

The operations are counted on the device `meta`, where nothing is computed; how many a
second the reader's device does is measured with one short matrix product. A training
never reaches the speed of a bare product, so the sum is a lower bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from course_utils.data.batches import to_device
from course_utils.doors import check_arguments
from course_utils.runtime import device as best_device
from course_utils.training.history import History
from course_utils.training.memory import is_out_of_memory, on_meta, training_bytes
from course_utils.training.precision import DTYPES, chosen_precision, mixed_precision

MANY_READINGS = 4.0  # of the same data, from which on the plan warns
WORTH_COMPILING = 180.0  # seconds of training below which compiling is not even tried
WIDEST = 4096  # side of the measured product, however large the model's are
Loss = Callable[..., Tensor]


# ------------------------------------------------------------------------ the counting


def count_operations(model: nn.Module, examples: tuple[Any, ...], loss: Loss) -> int:
    """Count the operations of the matrix products of one step, forward and backward.

    A product of (n, m) with (m, p) counts 2 n m p.
    """
    ghost, shapes = on_meta(model, examples)
    with FlopCounterMode(display=False) as counter:
        loss(ghost, *shapes).backward()
    return counter.get_total_flops()


def matmul_speed(
    device: torch.device | str,
    shape: tuple[int, int, int],
    precision: str = "fp32",
    seconds: float = 0.2,
) -> float:
    """Measure how many operations a second a product (n, m) @ (m, p) reaches here.

    The best of several runs of `seconds` in all, after a warm-up: whatever disturbs a
    measurement makes it slower.
    """
    if min(shape) < 1 or len(shape) != 3:
        raise ValueError(
            f"shape is {shape}, expected three sizes n, m, p from 1 on: the product of "
            "(n, m) with (m, p)."
        )
    device, (n, m, p) = torch.device(device), shape
    left = torch.ones(n, m, device=device, dtype=DTYPES[precision])
    right = torch.ones(m, p, device=device, dtype=DTYPES[precision])
    for _ in range(2):
        left @ right
    spent, best = 0.0, float("inf")
    while spent < seconds:
        took = timed(lambda: left @ right, device)
        spent, best = spent + took, min(best, took)
    return 2 * n * m * p / best


def timed(work: Callable[[], Any], device: torch.device) -> float:
    """Return the seconds of `work`, its last operation on a GPU included."""

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        elif device.type == "mps":
            torch.mps.synchronize()

    wait()
    started = time.perf_counter()
    work()
    wait()
    return max(time.perf_counter() - started, 1e-9)


# ---------------------------------------------------------------------------- the plan


def roughly(seconds: float) -> str:
    """Write a long time as a person would estimate it: `40 s`, `12 min`, `7.5 h`."""
    if seconds < 100:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.3g} h"


@dataclass(frozen=True)
class Plan:
    """The cost of a training on one device; `print` it before you start."""

    device: str
    precision: str
    n_parameters: int
    steps: int
    operations: int  # of one step
    memory: int  # bytes
    free: int | None  # bytes of the GPU
    speed: float  # operations a second of a short product
    readings: float  # how often each part of the data is read
    compilation: float = 0.0  # seconds

    @property
    def seconds(self) -> float:
        """The least time it can take, compilation included."""
        return self.steps * self.operations / self.speed + self.compilation

    def __str__(self) -> str:
        free = "" if self.free is None else f", {self.free / 2**30:.1f} GB are free"
        compiling = f" + {roughly(self.compilation)} compiling" * bool(self.compilation)
        total = self.steps * self.operations
        lines = [
            f"{self.n_parameters:,} parameters, {self.steps:,} steps",
            f"{self.operations:.1e} operations a step, {total:.1e} in all",
            f"memory: at most about {self.memory / 2**30:.1f} GB{free}",
            f"here ({self.device}, {self.precision}): {self.speed:.1e} operations a "
            "second in a short product",
            f"{total:.1e} / {self.speed:.1e}{compiling} = {roughly(self.seconds)} at "
            "least",
            f"the data are read {self.readings:.2g} times",
        ]
        if self.readings > MANY_READINGS:
            lines.append(
                f"  more than {MANY_READINGS:.0f}: held-out loss may turn while the "
                "loss in training falls on; stop early"
            )
        if self.free is not None and self.memory > self.free:
            lines.append(
                "  more than is free: if memory runs out, batches are halved and "
                "gradients added up"
            )
        return "\n".join(lines)

    def compare(self, history: History) -> str:
        """Say what a run took beside what the plan said, for as many steps."""
        if not len(history):
            return "no step was made, so there is nothing to compare"
        work = len(history) * self.operations
        share = work / history.elapsed / self.speed
        return (
            f"{len(history)} steps took {roughly(history.elapsed)}; by the plan at "
            f"least {roughly(work / self.speed)}: {share:.0%} of the product's speed"
        )


def plan(
    model: nn.Module,
    examples: tuple[Any, ...],
    loss: Loss,
    *,
    steps: int,
    readings: float,
    device: torch.device | str | None = None,
    precision: str = "auto",
    compilation: float = 0.0,
) -> Plan:
    """Count what `steps` on batches like `examples` cost, and time this device.

    `model` may be on the device `meta`, so that one too large for this machine can be
    planned here. Used in chapters 12, 13 and 18.
    """
    if steps < 1 or readings < 0:
        raise ValueError(
            f"plan got steps={steps} and readings={readings}, expected at least one "
            "step, and how often each part of the data is read."
        )
    device = best_device() if device is None else torch.device(device)
    precision = chosen_precision(precision, device)
    matrices = [p for p in model.parameters() if p.dim() == 2]
    if not matrices:
        raise ValueError("the model has no matrix, so its products can't be counted.")
    largest = max(matrices, key=lambda p: p.numel()).shape
    n_outputs, n_inputs = (min(side, WIDEST) for side in largest)
    rows = 8192 if device.type == "cuda" else 512
    return Plan(
        device=device.type,
        precision=precision,
        n_parameters=sum(p.numel() for p in model.parameters()),
        steps=steps,
        operations=count_operations(model, examples, loss),
        memory=training_bytes(model, examples, loss),
        free=torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None,
        speed=matmul_speed(device, (rows, n_inputs, n_outputs), precision),
        readings=readings,
        compilation=compilation,
    )


# -------------------------------------------------------------------------- compilation


@dataclass(frozen=True)
class CompileTrial:
    """What compiling cost and what it saves, measured with a batch of every shape."""

    compilation: float  # seconds, for all shapes
    eager: float  # seconds of a step, the mean over the shapes
    compiled: float
    steps: int
    obstacle: str = ""  # why it could not be tried

    @property
    def pays(self) -> bool:
        """Whether the steps of this run save more than the compilation costs."""
        return self.steps * (self.eager - self.compiled) > self.compilation

    def __str__(self) -> str:
        if self.obstacle:
            return f"not compiled: {self.obstacle}"
        if not self.compilation:
            return f"not compiled: {roughly(self.eager * self.steps)} are too short"
        saved = self.steps * (self.eager - self.compiled)
        return (
            f"compiling takes {roughly(self.compilation)} and saves {saved:.3g} s in "
            f"{self.steps:,} steps: {'compiled' if self.pays else 'not compiled'}"
        )


def try_compiling(
    model: nn.Module,
    batches: Sequence[tuple[Any, ...]],
    loss: Loss,
    steps: int,
    compiler: Callable[[nn.Module], Callable[..., Any]] = torch.compile,
) -> CompileTrial:
    """Find out whether `torch.compile` pays for itself in a run of `steps`.

    `batches` holds one batch of every shape the run will meet: each is compiled for
    itself, so there should be few (`translation_batches(…, multiple=16)`). A run of
    less than three minutes is not compiled at all; nor is one whose batches memory has
    no room for, or a model that `torch.compile` refuses. Leaves the weights as they
    were. Used in chapters 12, 13 and 18.
    """
    if not batches or steps < 1:
        raise ValueError(
            f"try_compiling got {len(batches)} batches and {steps} steps, expected at "
            "least one of each."
        )
    device = next(model.parameters()).device
    precision = chosen_precision("auto", device)
    moved = [to_device(batch, device) for batch in batches]

    def step(forward: Callable[..., Any], batch: tuple[Any, ...]) -> float:
        autocast, _ = mixed_precision(precision, device)

        def work() -> None:
            with autocast:
                value = loss(forward, *batch)
            value.backward()

        seconds = timed(work, device)
        model.zero_grad()
        return seconds

    def mean_step(forward: Callable[..., Any]) -> float:
        return sum(min(step(forward, b) for _ in range(2)) for b in moved) / len(moved)

    training, eager = model.training, 0.0
    forward: Callable[..., Any] | None = None
    gpus = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices=gpus):
        model.train()
        try:
            for batch in moved:
                step(model, batch)  # the first call also sets memory aside
            eager = mean_step(model)
            if eager * steps < WORTH_COMPILING:
                return CompileTrial(0.0, eager, eager, steps)
            forward = compiler(model)
            first = sum(step(forward, batch) for batch in moved)
            compiled = mean_step(forward)
        except Exception as error:  # the training itself can do without
            if is_out_of_memory(error):
                obstacle = "memory has no room for a whole batch"
            elif forward is None:
                raise
            else:
                why = " ".join(str(error).split())[:100]
                obstacle = f"torch.compile failed ({type(error).__name__}: {why})"
            return CompileTrial(0.0, eager, eager, steps, obstacle)
        finally:
            model.zero_grad()
            model.train(training)
    cost = max(first - compiled * len(moved), 1e-9)
    return CompileTrial(cost, eager, compiled, steps)


check_arguments(__name__)
