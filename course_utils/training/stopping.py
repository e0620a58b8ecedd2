"""Early stopping: end when held-out loss no longer falls, and keep the best weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.data.batches import to_device
from course_utils.doors import check_arguments


class EarlyStopping:
    """Remember the weights with the lowest `name` among what `evaluate` returned.

    After `patience` evaluations in a row without a lower one, `done` is true and
    `train` ends. Its state is part of the checkpoint. Used in chapters 12, 13 and 18.
    """

    def __init__(self, name: str = "validation", patience: int = 3):
        if not isinstance(patience, int) or patience < 1:
            raise ValueError(
                f"patience is {patience!r}, expected evaluations, 1 or more."
            )
        self.name, self.patience = name, patience
        self.best, self.step, self.waited = math.inf, 0, 0
        self.weights: dict[str, Tensor] = {}

    @property
    def done(self) -> bool:
        """Whether the last `patience` evaluations brought nothing lower."""
        return self.waited >= self.patience

    def require(self, evaluate: Any) -> None:
        """Refuse a training with nothing to stop by."""
        if evaluate is None:
            raise ValueError(
                "early_stop needs evaluate=, whose numbers it looks at; make one with "
                "`held_out_loss`."
            )

    def update(self, step: int, numbers: dict[str, float], model: nn.Module) -> None:
        """Look at one evaluation; keep a copy of the weights if it is the best."""
        if self.name not in numbers:
            raise ValueError(
                f"early stopping looks at {self.name!r}, and evaluate returned "
                f"{', '.join(numbers) or 'nothing'}; give it one of these names."
            )
        if numbers[self.name] < self.best:
            self.best, self.step, self.waited = numbers[self.name], step, 0
            state = model.state_dict().items()
            self.weights = {k: v.detach().cpu().clone() for k, v in state}
        else:
            self.waited += 1

    def restore(self, model: nn.Module) -> None:
        """Give the model the best weights seen."""
        if self.weights:
            model.load_state_dict(self.weights)

    def __repr__(self) -> str:
        ended = f"ended early, after {self.patience} without a lower one; " * self.done
        return f"{ended}lowest {self.name} {self.best:.4g} after {self.step} steps"

    def state_dict(self) -> dict[str, Any]:
        """Give all of it, for a checkpoint."""
        kept = ("best", "step", "waited", "weights")
        return {name: getattr(self, name) for name in kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up the state of a checkpoint."""
        for name, value in state.items():
            setattr(self, name, value)


def held_out_loss(
    loss: Callable[..., Tensor],
    batches: Sequence[tuple[Any, ...]],
    name: str = "validation",
) -> Callable[[nn.Module], dict[str, float]]:
    """Make `train`'s `evaluate`: the mean loss over batches that are never trained on.

    Used in chapters 12, 13 and 18.
    """
    if not batches:
        raise ValueError("held_out_loss got no batch, expected at least one.")

    def evaluate(model: nn.Module) -> dict[str, float]:
        device = next(model.parameters()).device
        with torch.no_grad():
            values = [loss(model, *to_device(batch, device)) for batch in batches]
        return {name: torch.stack(values).float().mean().item()}

    return evaluate


check_arguments(__name__)
