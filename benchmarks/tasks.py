"""What the areas have in common: a task, the run's settings, and a step of training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from benchmarks.results import Row
from benchmarks.timing import LEAST, Work, interleaved


@dataclass
class Plan:
    """How much to measure; `advance` tells the progress bar the share of a task."""

    quick: bool = False
    rounds: int = 15
    least: float = LEAST
    advance: Callable[[float], None] = lambda share: None

    def times(self, works: Mapping[str, Work], more: int = 1) -> dict[str, list[float]]:
        """Time some works in turns, `more` times the rounds; keep the bar moving."""
        done, rounds = 0, more * self.rounds

        def tick() -> None:
            nonlocal done
            done += 1
            self.advance(done / rounds)

        return interleaved(works, rounds, self.least, tick)


class Task(NamedTuple):
    """One part of a run: what the bar says, about how long, and what it gives."""

    label: str
    seconds: float
    run: Callable[[Plan], list[Row]]


def training_step(
    model: nn.Module,
    loss: Callable[[], Tensor],
    optimiser: torch.optim.Optimizer,
) -> Work:
    """One whole step: gradients cleared, forward, backward, clipped, and the update."""
    parameters = list(model.parameters())

    def step() -> None:
        optimiser.zero_grad()
        loss().backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()

    return step


class ForwardBackward:
    """Forward and backward through one layer, its input's gradient included."""

    def __init__(
        self, model: nn.Module, forward: Callable[[Tensor], Tensor], x: Tensor
    ):
        self.model, self.forward = model, forward
        self.x = x.detach().requires_grad_()

    def clear(self) -> None:
        """Let all gradients go."""
        self.model.zero_grad()
        self.x.grad = None

    def __call__(self) -> None:
        self.clear()
        self.forward(self.x).sum().backward()
