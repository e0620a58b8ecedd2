"""Training: one loop for every model of the course.

`train` draws a batch, takes a gradient, makes a step and keeps a history. Everything
random in it is a function of the seed and of the step's number, so that a training that
was stopped, even by a power cut, goes on from its checkpoint to the very same weights.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.amp import GradScaler

from course_utils.data.batches import DATA, NOISE, Batch, derive_seed, to_device
from course_utils.doors import check_arguments
from course_utils.runtime import base_seed
from course_utils.runtime import device as best_device
from course_utils.shapes import Shaped, shape_of
from course_utils.training import checkpoints
from course_utils.training.history import (
    History,
    TrainingInterrupted,
    closing_line,
    require_finite,
)
from course_utils.training.memory import halve_until_it_fits, n_rows, split_rows
from course_utils.training.precision import (
    FP16_PATIENCE,
    chosen_precision,
    mixed_precision,
)
from course_utils.training.progress import Progress
from course_utils.training.stopping import EarlyStopping

Evaluation = Callable[[nn.Module], dict[str, float]]
Watcher = Callable[[History, nn.Module, bool], None]
SCHEDULES = ("constant", "linear", "cosine", "inverse_sqrt")
# Steps between two looks at the losses: each look waits until a GPU has computed them.
LOOK_EVERY = {"cpu": 1, "cuda": 10, "mps": 10}

# --------------------------------------------------------------------------- the loop


def train(
    model: nn.Module,
    batch: Batch,
    loss: Callable[..., Tensor],
    *,
    steps: int,
    lr: float = 3e-3,
    warmup: int | None = None,
    schedule: str = "cosine",
    clip: float | None = 1.0,
    weight_decay: float = 0.0,
    seed: int = 0,
    every: int = 100,
    evaluate: Evaluation | None = None,
    early_stop: EarlyStopping | None = None,
    watch: Watcher | None = None,
    checkpoint: str | Path | None = None,
    device: torch.device | str | None = None,
    precision: str = "auto",
    compile: bool = False,
    progress: bool = True,
) -> History:
    """Lower `loss(model, *batch)` with AdamW, in place, and return how it went.

    `batch(step, generator)` makes a step's tuple of tensors, `evaluate(model)` a dict
    of numbers every `every` steps. With `checkpoint="name.pt"` the state is saved as
    often, and the same call goes on from there: to bit-equal weights on a CPU, to what
    its kernels repeat on a GPU. `warmup` is a tenth of the steps unless given; mixed
    precision and `compile=True` take effect on a GPU, where they pay. Ctrl-C ends after
    the step in hand with `TrainingInterrupted`: the model keeps what it learned, and no
    later line of the cell runs. With `early_stop` the training ends when held-out loss
    no longer falls, and the model gets its best weights. `watch(history, model, ended)`
    may draw. Where memory runs out, a batch is taken in parts whose gradients are added
    up; where the disk is full, training goes on and says so. The model is left in
    `eval` mode. Used in chapter 01.
    """
    device = torch.device(device) if device is not None else best_device()
    require_device(device)
    warmup = steps // 10 if warmup is None else warmup
    precision = chosen_precision(precision, device)
    settings: dict[str, Any] = {"steps": steps, "lr": lr, "warmup": warmup}
    settings |= {"schedule": schedule, "clip": clip, "weight_decay": weight_decay}
    settings |= {"seed": seed, "COURSE_SEED": base_seed(), "precision": precision}
    settings["trainable"] = sum(
        p.numel() for p in model.parameters() if p.requires_grad
    )
    require_settings(settings, every)
    if early_stop is not None:
        early_stop.require(evaluate)
        settings["early_stop"] = f"{early_stop.name}, {early_stop.patience}"

    model.to(device)
    optimiser = adamw(model, lr, weight_decay)
    autocast, scaler = mixed_precision(precision, device)
    patience = FP16_PATIENCE if scaler.is_enabled() else 1
    forward = torch.compile(model) if compile and device.type == "cuda" else model
    history = History()
    state: dict[str, Any] = {"model": model, "optimiser": optimiser}
    state |= {"scaler": scaler, "history": history}
    state |= {} if early_stop is None else {"early_stop": early_stop}
    if checkpoint is not None:
        checkpoints.resume(checkpoint, settings, **state)
    start, parts = len(history), 1

    with (
        Progress(steps, start, show=progress) as bar,
        training_mode(model),
        postponed_interrupt() as interrupted,
    ):
        if start:
            bar.say(f"Going on from {checkpoint}: {start} of {steps} steps are done.")
        for step in range(start, steps):
            if early_stop is not None and early_stop.done:
                break
            started = time.perf_counter()
            rate = lr_at(step, steps, lr, warmup, schedule)
            for group in optimiser.param_groups:
                group["lr"] = rate
            generator = torch.Generator().manual_seed(derive_seed(seed, DATA, step))
            examples = to_device(batch(step, generator), device)

            def gradients(parts: int) -> tuple[Tensor, Tensor]:
                seed_dropout(derive_seed(seed, NOISE, step), device)  # noqa: B023
                return compute_gradients(
                    forward,
                    examples,  # noqa: B023
                    loss,
                    optimiser,
                    scaler,
                    autocast,
                    clip,
                    parts,
                )

            (value, norm), parts = halve_until_it_fits(
                gradients, parts, n_rows(examples)
            )
            history.record(step, value, rate, norm)
            stop = interrupted()
            due = (step + 1) % every == 0 or step + 1 == steps
            look = stop or due or step % LOOK_EVERY.get(device.type, 10) == 0
            if look:
                require_finite(history, model, patience)
                bar.update(step + 1, f"loss {history.columns['loss'][-1]:.4g}")
            scaler.step(optimiser)
            scaler.update()
            history.elapsed += time.perf_counter() - started

            if due and evaluate is not None:
                numbers = run_evaluation(evaluate, model)
                history.record_evaluation(step + 1, numbers)
                if early_stop is not None:
                    early_stop.update(step + 1, numbers, model)
            if checkpoint is not None and (due or stop):
                checkpoints.save_or_warn(checkpoint, settings, **state)
            if watch is not None and look:
                watch(history, model, False)
            if stop:
                break

    stopped = interrupted()
    if early_stop is not None and (early_stop.done or len(history) == steps):
        early_stop.restore(model)
    if watch is not None:
        watch(history, model, True)
    line = closing_line(history, steps, start, checkpoint, early_stop)
    bar.close(line if progress and not stopped else "")
    if stopped:
        raise TrainingInterrupted(history, line)
    return history


def compute_gradients(
    model: Callable[..., Any],
    examples: tuple[Any, ...],
    loss: Callable[..., Tensor],
    optimiser: torch.optim.Optimizer,
    scaler: GradScaler,
    autocast: AbstractContextManager[Any],
    clip: float | None,
    parts: int = 1,
) -> tuple[Shaped[Tensor, ""], Shaped[Tensor, ""]]:
    """Leave the clipped gradient in the parameters; return loss and unclipped norm.

    $g <- g min(1, clip / |g|)$, over all parameters together. In `parts`, each weighs
    as much as it has rows: the same gradient where the loss is a mean over rows. Reads
    no number back from the device, so that a GPU never waits here.
    """
    optimiser.zero_grad()
    total: Tensor | float = 0.0
    for part, share in split_rows(examples, parts):
        with autocast:
            value = loss(model, *part)
        require_loss(value)
        scaler.scale(value * share).backward()
        total = total + value.detach() * share
    scaler.unscale_(optimiser)
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    norm = nn.utils.clip_grad_norm_(parameters, math.inf if clip is None else clip)
    return cast(Tensor, total), norm


def lr_at(
    step: int, steps: int, lr: float, warmup: int = 0, schedule: str = "cosine"
) -> float:
    """Give the learning rate of a step: up in a line, then down by the schedule.

    $lr (step + 1) / warmup$ while $step < warmup$; after it $lr$ times, with $t$ the
    done fraction of the rest: constant 1, linear $1 - t$, cosine $(1 + cos(pi t)) / 2$,
    inverse_sqrt $sqrt(warmup / (step + 1))$. Past the last step linear and cosine stay
    at 0. Taught in chapter 12.
    """
    if schedule not in SCHEDULES:
        raise ValueError(f"schedule is {schedule!r}, expected one of {SCHEDULES}.")
    if step < warmup:
        return lr * (step + 1) / warmup
    t = min((step - warmup) / max(steps - warmup, 1), 1.0)
    if schedule == "linear":
        return lr * (1 - t)
    if schedule == "cosine":
        return lr * (1 + math.cos(math.pi * t)) / 2
    if schedule == "inverse_sqrt":
        return lr * math.sqrt(max(warmup, 1) / (step + 1))
    return lr


def adamw(model: nn.Module, lr: float, weight_decay: float) -> torch.optim.AdamW:
    """Make the optimiser; weights (two axes or more) decay, biases and norms do not."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError(
            "the model has no parameter to train; give it one, or set "
            "requires_grad=True on those that should learn."
        )
    weights = [p for p in parameters if p.dim() >= 2]
    others = [p for p in parameters if p.dim() < 2]
    groups: list[dict[str, Any]] = [
        {"params": weights, "weight_decay": weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    one_kernel = parameters[0].device.type in ("cpu", "cuda")
    return torch.optim.AdamW(groups, lr=lr, fused=one_kernel)


# ------------------------------------------------------------------ what surrounds it


def seed_dropout(value: int, device: torch.device) -> None:
    """Make the step's dropout a function of the step, on the CPU and on the device."""
    torch.default_generator.manual_seed(value)
    if device.type == "cuda":
        torch.cuda.manual_seed_all(value)
    elif device.type == "mps":
        torch.mps.manual_seed(value)


@contextmanager
def training_mode(model: nn.Module) -> Iterator[None]:
    """Train inside, evaluate outside; give PyTorch's random numbers back untouched."""
    gpus = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices=gpus):
        model.train()
        try:
            yield
        finally:
            model.eval().zero_grad()


@contextmanager
def postponed_interrupt() -> Iterator[Callable[[], bool]]:
    """Let the step in hand finish at the first Ctrl-C; a second one stops at once."""
    asked = threading.Event()

    def remember(signum: int, frame: Any) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    usual = signal.default_int_handler
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is usual
    )
    if ours:
        signal.signal(signal.SIGINT, remember)
    try:
        yield asked.is_set
    finally:
        if ours:
            signal.signal(signal.SIGINT, usual)


def run_evaluation(evaluate: Evaluation, model: nn.Module) -> dict[str, float]:
    """Ask `evaluate` about the model in `eval` mode, without gradients."""
    model.eval()
    with torch.no_grad():
        numbers = evaluate(model)
    model.train()
    if not isinstance(numbers, dict):
        raise ValueError(
            f"evaluate returned a {type(numbers).__name__}, expected a dict of numbers "
            "such as {'accuracy': 0.9}."
        )
    return {name: float(value) for name, value in numbers.items()}


# ---------------------------------------------------------------------- clear errors


def require_loss(value: Any) -> None:
    """Refuse anything but one number that depends on the model's parameters."""
    if not isinstance(value, Tensor) or value.dim() != 0:
        came = f"shape {shape_of(value)}" if isinstance(value, Tensor) else repr(value)
        raise ValueError(
            f"loss returned {came}, expected a tensor with one number; end it with "
            "`.mean()`."
        )
    if not value.requires_grad:
        raise ValueError(
            "loss returned a number that depends on no trainable parameter; compute it "
            "from the model's output, without `.item()`, `.detach()` or `no_grad`."
        )


def require_device(device: torch.device) -> None:
    """Refuse a GPU that is not there."""
    absent = {
        "cuda": not torch.cuda.is_available(),
        "mps": not torch.backends.mps.is_available(),
    }
    if absent.get(device.type, False):
        raise ValueError(
            f"device is {device.type!r}, and PyTorch finds no such GPU here; leave "
            "`device=` out to train on the best there is."
        )


def require_settings(settings: dict[str, Any], every: int) -> None:
    """Refuse numbers with which no training is possible, naming the first of them."""
    for name, least in (("steps", 1), ("warmup", 0), ("seed", 0), ("every", 1)):
        value = settings.get(name, every)
        if not isinstance(value, int) or value < least:
            raise ValueError(
                f"{name} is {value!r}, expected a whole number, {least} or more."
            )
    if settings["warmup"] > settings["steps"]:
        raise ValueError(
            f"warmup is {settings['warmup']}, more than the {settings['steps']} steps; "
            "expected a part of them, such as a tenth."
        )
    for name in ("lr", "clip", "weight_decay"):
        value, zero = settings[name], name == "weight_decay"
        if name == "clip" and value is None:
            continue
        if not (0 < value < math.inf or (zero and value == 0)):
            expected = "0 or a number above it" if zero else "a number above 0"
            raise ValueError(f"{name} is {value}, expected {expected}.")
    lr_at(0, settings["steps"], settings["lr"], schedule=settings["schedule"])


check_arguments(__name__)
