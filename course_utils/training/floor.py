"""A learning rate that falls to a floor instead of to zero."""

from __future__ import annotations

from course_utils.training.loop import lr_at


def lr_with_floor(
    step: int,
    steps: int,
    lr: float,
    warmup: int = 0,
    schedule: str = "cosine",
    floor: float = 0.0,
) -> float:
    """Give the rate of a step that `lr_at` would bring to 0, brought to `floor`.

    $floor + (lr - floor) r / lr$ after the warm-up, $r$ being the rate of `lr_at`; in
    the warm-up, $r$. Past the last step it stays at the floor.
    """
    if not 0 <= floor <= lr:
        raise ValueError(f"floor is {floor}, expected from 0 to lr = {lr}.")
    rate = lr_at(step, steps, lr, warmup, schedule)
    return rate if step < warmup or lr == 0 else floor + (lr - floor) * rate / lr
