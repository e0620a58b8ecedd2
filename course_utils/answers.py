"""Run an answer and bring back plain values: all that the judge ever sees of it.

The learner's `check` runs answers in the notebook, the grader in a sandbox, both with
`run`, so that both see the same. An answer is watched while it runs: did it
change its arguments, call a ready-made attention, execute more lines for more tokens.
"""

from __future__ import annotations

import inspect
import linecache
import sys
import sysconfig
import traceback
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import numpy as np
import torch

PACKAGE = str(Path(__file__).parent)
QUESTIONS = str(Path(__file__).parent / "questions")
LIBRARIES = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}
    | {str(Path(torch.__file__).parent), "<frozen"}
)
READY_MADE = ("scaled_dot_product", "multi_head_attention", "multiheadattention")
BLINDING = ("settrace", "setprofile", "start_new_thread")  # would hide such a call
FAILURES = (
    "unanswered",
    "missing",
    "not_callable",
    "type",
    "exception",
    "time",
    "died",
)
MAX_DEPTH, MAX_ITEMS, MAX_BYTES = 6, 4096, 4_000_000  # of a plain value
tensors_equal = torch.equal  # kept from before any answer could replace it


@dataclass(frozen=True)
class Failure:
    """Why there is no value: the kind, and what is known of it."""

    kind: str  # one of FAILURES
    type: str = ""
    message: str = ""
    line: str = ""


@dataclass(frozen=True)
class Record:
    """What one call of an answer left behind, in plain values."""

    value: Any = None
    failure: Failure | None = None
    mutated: tuple[str, ...] = ()
    library: tuple[str, ...] = ()
    steps: int = 0


class NotPlainError(Exception):
    """The answer holds something that is neither a tensor, a number nor a text."""


class UnansweredError(Exception):
    """The answer is still the `...` of the exercise."""


def to_plain(value: Any, depth: int = 0) -> Any:
    """Turn tensors into arrays, tuples into lists; refuse what has no plain form.

    Types are compared exactly: a subclass may pretend anything.
    """
    kind = type(value)
    if value is Ellipsis:
        raise UnansweredError
    if kind in (bool, int, float, str) or value is None:
        return value
    if kind in (torch.Tensor, torch.nn.Parameter):
        tensor = value.detach().cpu()
        if tensor.layout is not torch.strided or tensor.is_complex():
            raise NotPlainError(f"{tensor.dtype} tensor of layout {tensor.layout}")
        if tensor.numel() * tensor.element_size() > MAX_BYTES:
            raise NotPlainError(f"tensor of shape {tuple(tensor.shape)}")
        if tensor.dtype in (torch.bfloat16, torch.float16):
            tensor = tensor.float()
        return np.array(tensor.resolve_neg().numpy())
    if isinstance(value, np.generic):
        return to_plain(value.item(), depth + 1)
    if kind in (list, tuple, dict) and len(value) > MAX_ITEMS:
        raise NotPlainError(f"{kind.__name__} of {len(value)}")
    if kind in (list, tuple, dict) and depth < MAX_DEPTH:
        if kind is dict:
            return {str(name): to_plain(x, depth + 1) for name, x in value.items()}
        return [to_plain(x, depth + 1) for x in value]
    raise NotPlainError(
        f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    )


def to_tensors(value: Any) -> Any:
    """Turn arrays into fresh tensors that share no memory with them."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, list | tuple):
        return type(value)(to_tensors(x) for x in value)
    if isinstance(value, dict):
        return {name: to_tensors(x) for name, x in value.items()}
    return value


def is_own(filename: str) -> bool:
    """Tell the learner's code from that of Python, PyTorch and this package."""
    if filename.startswith(QUESTIONS):
        return True
    return not filename.startswith((*LIBRARIES, PACKAGE))


class Watch:
    """Count the learner's lines as they execute; note calls of ready-made attention."""

    def __init__(self) -> None:
        self.steps = 0
        self.library: set[str] = set()

    def __enter__(self) -> Watch:
        self.before = sys.gettrace(), sys.getprofile()
        sys.setprofile(self.profile)
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before[0])
        sys.setprofile(self.before[1])

    def note(self, name: str) -> None:
        if any(word in name.lower() for word in READY_MADE):
            self.library.add(name.rsplit("::")[-1])

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if is_own(code.co_filename):
            return self.count
        if code.co_flags & inspect.CO_OPTIMIZED:  # a call, not a class being defined
            self.note(code.co_qualname)
        if code.co_filename == str(Path(PACKAGE, "attention.py")) and (
            code.co_name in ("attention", "basic_self_attention", "forward")
        ):
            self.library.add(f"course_utils.attention.{code.co_qualname}")
        if code.co_qualname in ("OpOverload.__call__", "OpOverloadPacket.__call__"):
            self.note(str(frame.f_locals.get("self")))
        return None

    def count(self, frame: FrameType, event: str, _: Any) -> Any:
        self.steps += event == "line"
        return self.count

    def profile(self, frame: FrameType, event: str, called: Any) -> None:
        if event != "c_call" or frame.f_code.co_filename == __file__:
            return
        name = getattr(called, "__name__", "")
        self.note(name)
        if name in BLINDING:
            self.library.add(name)


def own_frames(trace: TracebackType | None) -> list[tuple[str, int, str]]:
    """List the frames of the learner's own code: file, line, function."""
    return [
        (frame.f_code.co_filename, number, frame.f_code.co_name)
        for frame, number in traceback.walk_tb(trace)
        if is_own(frame.f_code.co_filename)
    ]


def failure_of(error: BaseException) -> Failure:
    """Say in plain values what was raised, and at which line of the learner's code."""
    frames = own_frames(error.__traceback__)
    line = linecache.getline(*frames[-1][:2]).strip()[:120] if frames else ""
    if isinstance(error, UnansweredError) or (
        isinstance(error, NotImplementedError) and "raise" in line
    ):
        elsewhere = bool(frames) and frames[-1][2] != frames[0][2]
        return Failure("unanswered", frames[-1][2] if elsewhere else "")
    if isinstance(error, NotPlainError):
        return Failure("type", str(error))
    message = " ".join(str(error).split())[:300]
    return Failure("exception", type(error).__name__, message, line)


def same_arguments(old: Any, new: Any) -> bool:
    """Compare arguments before and after a call."""
    if isinstance(old, torch.Tensor):
        alike = type(new) is type(old) and old.dtype == new.dtype
        return alike and old.shape == new.shape and tensors_equal(old, new)
    if isinstance(old, dict):
        return old.keys() == new.keys() and all(
            same_arguments(old[name], new[name]) for name in old
        )
    return bool(old == new)


def run(
    answer: Any,
    args: tuple[Any, ...] = (),
    names: tuple[str, ...] = (),
    watched: bool = True,
) -> Record:
    """Call an answer with plain arguments and record what came of it.

    An answer that is no function is its own value. What the answer raises is recorded,
    not raised. Random numbers start from the same state in every call. Watching costs
    time, and is for questions that ask how the answer works.
    """
    if not callable(answer) and args and answer is not Ellipsis:
        return Record(failure=Failure("not_callable", type(answer).__name__))
    given, kept, watch = to_tensors(args), to_tensors(args), Watch()
    value, failure = None, None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            if callable(answer):
                with watch if watched else nullcontext():
                    answer = answer(*given)
            value = to_plain(answer)
        except (Exception, SystemExit) as error:
            failure = failure_of(error)
    mutated = tuple(
        name
        for name, old, new in zip(names, kept, given)
        if not same_arguments(old, new)
    )
    return Record(value, failure, mutated, tuple(sorted(watch.library)), watch.steps)
