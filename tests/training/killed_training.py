"""Kill trainings with SIGKILL, one process after another; a script of test_loop.

    python killed_training.py FOLDER POINT …

trains once undisturbed, then once for each POINT, killed there and taken up by the
next, and once more to the end. Prints after each kill how many steps the checkpoint
holds. The final weights and histories lie in FOLDER/whole.end and FOLDER/killed.end.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
from test_loop import make_model, noisy_batch, run, squared_error

from course_utils.training import checkpoints
from course_utils.training.loop import adamw


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def steps_in(path: Path) -> int:
    if not path.exists():
        return 0
    return len(checkpoints.read(path)["history"]["columns"]["step"])


def train_until(point: str, path: Path) -> None:
    """Train, and die at `point`: a place, and for some the step after a colon."""
    place, _, step = point.partition(":")
    now = steps_in(path) - 1
    save, replace = torch.save, os.replace

    def reached(here: str) -> bool:
        return here == place and (not step or now == int(step))

    def batch(number: int, generator: torch.Generator) -> Any:
        nonlocal now
        now = number
        if reached("batch"):
            die()
        return noisy_batch(number, generator)

    def loss(model: Any, *examples: Any) -> Any:
        value = squared_error(model, *examples)
        if reached("loss"):
            die()
        if reached("backward"):
            model[0].weight.register_hook(die)
        return value

    def evaluate(model: Any) -> dict[str, Any]:
        if reached("evaluate"):
            die()
        return {"bias": model[4].bias.item()}

    def save_or_die(content: Any, file: Any) -> None:
        if not reached("write"):
            return save(content, file)
        whole = io.BytesIO()
        save(content, whole)
        file.write(whole.getvalue()[: whole.tell() // 2])
        file.flush()
        die()

    def replace_or_die(old: Any, new: Any) -> None:
        if reached("before rename"):
            die()
        replace(old, new)
        if reached("after rename"):
            die()

    torch.save, os.replace = save_or_die, replace_or_die
    model = make_model()
    history = run(model, batch=batch, loss=loss, evaluate=evaluate, checkpoint=path)
    content = {"model": model.state_dict(), "history": history.state_dict()}
    save(content, path.with_suffix(".end"))


def process(point: str, path: Path) -> None:
    """Do it in a process of its own, and see that this one ended as it should."""
    pid = os.fork()
    if pid == 0:
        train_until(point, path)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    assert status == (0 if point == "end" else signal.SIGKILL), (point, status)


if __name__ == "__main__":
    torch.set_num_threads(1)  # a process with one thread may fork
    adamw(make_model(), lr=1.0, weight_decay=0.0)  # its slow imports once, not in each
    folder, points = Path(sys.argv[1]), sys.argv[2:]
    process("end", folder / "whole.pt")
    for point in points:
        process(point, folder / "killed.pt")
        print(steps_in(folder / "killed.pt"), flush=True)
    process("end", folder / "killed.pt")
