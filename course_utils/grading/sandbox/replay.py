"""An answer's program as data: recorded where it runs, replayed where it cannot cheat.

`record` takes down the calls of PyTorch that lead to an answer's result: the name of
each, where its arguments came from, and literals. `replay` makes the same calls on
other inputs, in an empty sandbox that never saw the submission. A forged record that
gives the right results there is a right program made of the calls it names.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch.overrides import (
    TorchFunctionMode,
    get_testing_overrides,
    resolve_name,
)

from course_utils.grading.answer_runner import to_plain, to_tensors
from course_utils.grading.modes import no_modes
from course_utils.grading.program import tensors
from course_utils.grading.sandbox.wire_format import decode, encode

MAX_CALLS, MAX_CONSTANTS, MAX_ITEMS = 2_000, 200_000, 4_096
SILENT = ("__setitem__", "backward", "__delitem__")  # give no tensor, and matter
NAME = re.compile(
    r"torch\.(?:Tensor\.|nn\.functional\.|functional\.|special\.|linalg\.|fft\.)?"
    r"(?:[a-z]\w*|__[a-z]+__|[TH]|m[TH])(?:\.__(?:get|set)__)?"
)
FACTORIES = {
    *("arange", "as_tensor", "asarray", "empty", "eye", "full", "linspace", "logspace"),
    *("ones", "rand", "randint", "randn", "randperm", "scalar_tensor", "tensor"),
    *("tril_indices", "triu_indices", "zeros"),
}
OPERATIONS = get_testing_overrides()  # all that work on tensors: none changes a setting
NO_MEMORY = "no memory is left"  # as `replayer` knows it
Message = Any


class NoRecordError(Exception):
    """Something in a program has no plain form."""


class Recorder(TorchFunctionMode):
    """Take down the calls that make tensors, while an answer runs."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: dict[int, Message] = {}
        self.kept: list[Any] = []  # an id stays unique only while its tensor lives
        self.calls: list[Message] = []
        self.constants = 0
        self.problem = ""

    def take(self, arguments: tuple[Any, ...]) -> None:
        """Know the tensors of the arguments, by their number."""
        self.kept.append(arguments)
        for i, tensor in enumerate(tensors(arguments)):
            self.sources[id(tensor)] = {"input": i}

    def refer(self, value: Any) -> Message:
        """Say where a value comes from, or what it is."""
        if isinstance(value, torch.Tensor):
            return self.sources.get(id(value)) or self.constant(value)
        if isinstance(value, list | tuple):
            if len(value) > MAX_ITEMS:
                raise NoRecordError("a long list")
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self.refer(x) for x in value]}
        if isinstance(value, dict):
            return {"dict": [[str(k), self.refer(x)] for k, x in value.items()]}
        if isinstance(value, slice):
            return {
                "slice": [self.refer(x) for x in (value.start, value.stop, value.step)]
            }
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device) and value.type == "cpu":
            return {"is": "cpu"}
        if value is Ellipsis:
            return {"ellipsis": 0}
        if isinstance(value, np.generic):  # np.sqrt(4), say
            value = value.item()
        if value is None or type(value) in (bool, int, float, str):
            if type(value) is int and abs(value) >= 2**63:
                raise NoRecordError("a huge number")
            odd = type(value) is float and not math.isfinite(value)
            return {"float": str(value)} if odd else {"is": value}
        raise NoRecordError(type(value).__name__)

    def constant(self, tensor: torch.Tensor) -> Message:
        """Write out a tensor that no recorded call made."""
        with torch._C.DisableTorchFunction():
            self.constants += tensor.numel()
            if self.constants > MAX_CONSTANTS:
                raise NoRecordError("many constants")
            return {"array": encode(to_plain(tensor.detach().clone()))}

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        given: Message = None
        try:
            if not self.problem:
                named = [[k, self.refer(x)] for k, x in (kwargs or {}).items()]
                given = [[self.refer(x) for x in args], named]
        except Exception as error:
            self.problem = str(error) or type(error).__name__
        result = func(*args, **(kwargs or {}))
        name = resolve_name(func) or getattr(func, "__name__", "?")
        made = list(tensors([result]))
        if given and (made or name.rpartition(".")[2] in SILENT):
            self.remember(result, [len(self.calls)])
            self.calls.append([name, *given])
            if len(self.calls) > MAX_CALLS:
                self.problem = "too many calls"
        return result

    def remember(self, result: Any, path: list[int]) -> None:
        """Know what a call gave by the call's number, and its place in the result."""
        if isinstance(result, torch.Tensor):
            self.sources[id(result)] = {"call": path}
            self.kept.append(result)
        elif isinstance(result, list | tuple):
            for i, item in enumerate(result):
                self.remember(item, [*path, i])


@no_modes()
def record(answer: Any, args: tuple[Any, ...]) -> Message:
    """Run an answer and return its program, or why there is none."""
    given = tuple(to_tensors(x) for x in args)
    recorder = Recorder()
    recorder.take(given)
    try:
        with torch.random.fork_rng(devices=[]), recorder:
            torch.manual_seed(0)
            value = answer(*given)
        result = None if recorder.problem else recorder.refer(value)
    except Exception as error:
        recorder.problem = recorder.problem or type(error).__name__
    if recorder.problem:
        return {"problem": recorder.problem[:80]}
    return {"calls": recorder.calls, "result": result}


# ---------------------------------------------------------------------------- replaying


def function_of(name: Any) -> Any:
    """Find the function of PyTorch that a record names; nothing else can be named."""
    if type(name) is not str or not NAME.fullmatch(name):
        raise ValueError("not the name of an operation")
    found: Any = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    method = re.fullmatch(r"torch\.Tensor\.[a-z]\w*", name)
    factory = name.removeprefix("torch.") in FACTORIES
    if not (method or factory or found in OPERATIONS):
        raise ValueError("not an operation on tensors")
    return found


class Replay:
    """Make the calls of a program on given inputs."""

    def __init__(self, inputs: Iterable[torch.Tensor]) -> None:
        self.inputs = list(inputs)
        self.values: list[Any] = []

    def get(self, message: Message) -> Any:
        """The value that a reference stands for."""
        ((kind, of),) = message.items()
        if kind == "input":
            return self.inputs[of]
        if kind == "call":
            value = self.values[of[0]]
            for i in of[1:]:
                value = value[i]
            return value
        if kind in ("list", "tuple"):
            items = [self.get(x) for x in of]
            return items if kind == "list" else tuple(items)
        if kind == "dict":
            return {name: self.get(x) for name, x in of}
        if kind == "slice":
            return slice(*map(self.get, of))
        if kind == "dtype":
            if type(found := getattr(torch, of)) is torch.dtype:
                return found
            raise ValueError("not a type of numbers")
        if kind == "array":
            return to_tensors(decode(of))
        if kind == "float":
            return float(of)
        return Ellipsis if kind == "ellipsis" else of

    def run(self, program: Message) -> Any:
        """Make all calls and return the result as plain values."""
        torch.manual_seed(0)
        for name, args, kwargs in program["calls"]:
            given = {key: self.get(x) for key, x in kwargs}
            self.values.append(function_of(name)(*map(self.get, args), **given))
        return to_plain(self.get(program["result"]))


def serve(send: Any) -> None:
    """Replay one program after the other, as they come in by standard input."""
    send(ready=True)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            inputs = tensors(to_tensors(decode(request["inputs"])))
            value = Replay(inputs).run(request["program"])
            send(number=request["number"], value=encode(value))
        except Exception as error:
            full = "allocate memory" in str(error) or isinstance(error, MemoryError)
            problem = NO_MEMORY if full else type(error).__name__
            send(number=request["number"], problem=problem)
