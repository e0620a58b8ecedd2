"""An answer's program as data: the quantities it computes, and the line of each.

`Program` records every call of PyTorch while an answer runs: what came of it, from
which earlier quantities, in which line of the learner's code, under which name. It
serves the learner: `departure` compares it with the question's own solution.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from course_utils.grading.answer_runner import is_own

MAX_STEPS, MAX_BYTES = 600, 8_000_000  # of one call's record


@dataclass
class Step:
    """One quantity: its value, where it was made, and from which earlier steps."""

    value: np.ndarray
    function: str
    line: int
    text: str
    parents: tuple[int, ...]  # negative: an argument, see `take`, or a constant
    name: str = ""  # of the variable that holds it
    floating: bool = True
    part: str = ""  # the piece of the line that makes it
    at: int = 0  # the instruction that does,
    round: int = 0  # and how many lines ran before: more in a loop's later rounds


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """All tensors in nested lists, tuples and dictionaries, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors(item)


def expression(frame: FrameType) -> str:
    """The code that a frame is evaluating, if it stands in one line."""
    places = list(frame.f_code.co_positions())
    first, last, start, end = places[frame.f_lasti // 2]
    if first is None or first != last or start is None or end is None:
        return ""
    line = linecache.getline(frame.f_code.co_filename, first)
    return line.encode()[start:end].decode(errors="ignore")  # counted in bytes


class Program(TorchFunctionMode):
    """Record the calls of PyTorch that are made inside `with Program() as program`."""

    def __init__(self, given: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.given = given  # functions that are not the learner's own
        self.steps: list[Step] = []
        self.places: dict[int, int] = {}  # of each living tensor among the steps
        self.kept: list[Any] = []  # an id stays unique only while its tensor lives
        self.bytes = self.lines = 0

    def take(self, arguments: tuple[Any, ...]) -> None:
        """Know an answer's arguments: the first is step -2, the next -3, and so on."""
        for i, argument in enumerate(arguments):
            for tensor in tensors(argument):
                self.places[id(tensor)] = -2 - i
        self.kept.append(arguments)

    def __enter__(self) -> Program:
        super().__enter__()
        self.before = sys.gettrace()
        sys.settrace(self.trace)
        return self

    def __exit__(self, *error: Any) -> None:
        sys.settrace(self.before)
        super().__exit__(*error)

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        made = [args[0]] if name == "__setitem__" else list(tensors([result]))
        if made and len(self.steps) < MAX_STEPS and self.bytes < MAX_BYTES:
            frame: FrameType | None = sys._getframe(1)
            while frame and not self.is_learners(frame):
                frame = frame.f_back
            used = list(tensors([args, kwargs or {}]))
            parents = {self.places.get(id(tensor), -1) for tensor in used}
            for tensor in made:
                self.add(tensor, name, frame, tuple(sorted(parents)))
        return result

    def is_learners(self, frame: FrameType) -> bool:
        """Whether a frame is the learner's code, not a function of the exercise."""
        return is_own(frame.f_code.co_filename) and (
            frame.f_code.co_name not in self.given
        )

    def add(
        self, tensor: torch.Tensor, name: str, frame: Any, parents: tuple[int, ...]
    ) -> None:
        with torch._C.DisableTorchFunction():
            plain = tensor.detach()
            if plain.is_complex() or plain.layout is not torch.strided:
                return
            value = plain.to(torch.float64).numpy().copy()
        line = frame.f_lineno if frame else 0
        text = linecache.getline(frame.f_code.co_filename, line).strip() if line else ""
        self.places[id(tensor)] = len(self.steps)
        self.kept.append(tensor)
        self.bytes += value.nbytes
        floating = plain.is_floating_point()
        part = expression(frame) if frame else ""
        at = frame.f_lasti if frame else 0
        self.steps.append(
            Step(value, name, line, text, parents, "", floating, part, at, self.lines)
        )

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        """Follow the learner's own functions, to see how they name their quantities."""
        return self.name_steps if self.is_learners(frame) else None

    def name_steps(self, frame: FrameType, event: str, _: Any) -> Any:
        written = frame.f_code.co_filename != "<string>"  # as a dataclass's own are
        self.lines += written and event == "line"
        if event in ("line", "return"):
            for name, value in frame.f_locals.items():
                place = self.places.get(id(value))
                if place is not None and place >= 0 and not self.steps[place].name:
                    self.steps[place].name = name
        return self.name_steps
