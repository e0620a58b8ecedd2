"""The history of a training: what was measured at every step, as arrays."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn, stack

from course_utils.training.progress import duration
from course_utils.training.stopping import EarlyStopping

STEP_COLUMNS = ("step", "loss", "lr", "grad_norm", "seconds")


class Diverged(FloatingPointError):
    """Training stopped at a loss or gradient that is not finite; see `history`."""

    def __init__(self, message: str, history: History):
        super().__init__(message)
        self.history = history


class TrainingInterrupted(KeyboardInterrupt):
    """A training was stopped by Ctrl-C or the stop button; see `history`.

    A notebook shows its sentences alone, since nothing went wrong.
    """

    def __init__(self, history: History, message: str):
        super().__init__(message)
        self.history = history

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


class History:
    """Arrays by name: `history["loss"]` against `history["step"]`, and what came of it.

    For every step: `step`, `loss`, `lr`, `grad_norm` (before clipping) and `seconds` of
    training so far. For every evaluation: `evaluated`, and the numbers it returned.
    Both count the updates that the measured weights had seen.
    """

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in STEP_COLUMNS}
        self.elapsed = 0.0
        self.settled = 0

    def __len__(self) -> int:
        return len(self.columns["step"])

    def __getitem__(self, name: str) -> np.ndarray:
        self.settle()
        if name not in self.columns:
            raise ValueError(
                f"the history has no {name!r}; it has {', '.join(self.columns)}."
            )
        return np.array(self.columns[name])

    def __repr__(self) -> str:
        if not len(self):
            return "no steps yet"
        steps = "1 step" if len(self) == 1 else f"{len(self)} steps"
        return f"{steps} in {duration(self.elapsed)}, loss {self['loss'][-1]:.4g}"

    def record(self, step: int, loss: Tensor, lr: float, grad_norm: Tensor) -> None:
        """Note one step. Tensors stay where they are until somebody looks."""
        values = (step, loss, lr, grad_norm, self.elapsed)
        for name, value in zip(STEP_COLUMNS, values):
            self.columns[name].append(value)

    def record_evaluation(self, step: int, numbers: dict[str, float]) -> None:
        """Note what `evaluate` returned for the weights after `step` updates."""
        known = [name for name in self.columns if name not in STEP_COLUMNS]
        fresh = ["evaluated", *numbers]
        if (known and known != fresh) or len({*fresh, *STEP_COLUMNS}) != len(fresh) + 5:
            raise ValueError(
                f"evaluate returned the names {list(numbers)}, expected the same at "
                f"every call and none of {', '.join(STEP_COLUMNS)}, evaluated; choose "
                "other names."
            )
        for name, value in {"evaluated": step, **numbers}.items():
            self.columns.setdefault(name, []).append(value)

    def settle(self) -> range:
        """Read the new losses and norms back as numbers; say which rows are new."""
        new = range(self.settled, len(self))
        if new:
            for name in ("loss", "grad_norm"):
                column = self.columns[name]
                column[new.start :] = stack(column[new.start :]).tolist()
            self.settled = len(self)
        return new

    def state_dict(self) -> dict[str, Any]:
        """Give all of it as plain values, for a checkpoint."""
        self.settle()
        columns = {name: list(column) for name, column in self.columns.items()}
        return {"columns": columns, "elapsed": self.elapsed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up the history of a checkpoint."""
        self.columns = {name: list(column) for name, column in state["columns"].items()}
        self.elapsed = state["elapsed"]
        self.settled = len(self)


def require_finite(history: History, model: nn.Module, patience: int = 1) -> None:
    """Stop at a loss that is not finite, or at `patience` such gradients in a row.

    The sentence says at which step, what came before it, and what to try.
    """
    loss, norm = history.columns["loss"], history.columns["grad_norm"]
    for row in history.settle():
        norms = norm[max(row + 1 - patience, 0) : row + 1]
        overflow = len(norms) == patience and not any(map(math.isfinite, norms))
        if math.isfinite(loss[row]) and not overflow:
            continue
        step, lr = history.columns["step"][row], history.columns["lr"][row]
        what = f"loss is {loss[row]}"
        if math.isfinite(loss[row]):
            what = f"gradient is not finite (the loss is {loss[row]:.4g})"
        if step == 0:
            advice = (
                "already at step 0: look for inf, nan, log(0) or a division by zero in "
                "the batch, the loss, the model or its initial weights."
            )
        else:
            advice = (
                f"at step {step}, after a loss of {loss[row - 1]:.4g} and with lr "
                f"{lr:.2g}: try a lower lr, a longer warmup, or clip=1.0 or less."
            )
        whole = all(p.isfinite().all() for p in model.parameters())
        weights = (
            "The model's weights are still finite."
            if whole
            else "The model's weights are spoilt: build it anew before the next try."
        )
        raise Diverged(f"the {what} {advice} {weights}", history)


def closing_line(
    history: History,
    steps: int,
    start: int,
    checkpoint: str | Path | None,
    early_stop: EarlyStopping | None = None,
) -> str:
    """Say in one line how the training ended, and how to go on if it did not."""
    line = repr(history) + (f" (the first {start} from {checkpoint})" if start else "")
    if early_stop is not None and (early_stop.done or len(history) == steps):
        return f"{line}; {early_stop!r}, whose weights the model has"
    if len(history) == steps:
        return line
    again = 'to be able to go on next time, give train checkpoint="name.pt".'
    if checkpoint is not None:
        again = f"run the cell again, and it goes on from {checkpoint}."
    return (
        f"Stopped after {len(history)} of {steps} steps: {line}.\n"
        f"The model keeps what it learned, in `eval` mode; {again}"
    )
