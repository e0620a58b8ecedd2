"""Run an answer and bring back plain values: all that the judge ever sees of it.

The learner's `check` runs answers in the notebook, the grader in a sandbox, both with
`run`, so that both see the same. An answer is watched while it runs: did it
change its arguments, call a ready-made attention or the package's own solution, execute
more lines for more tokens.
"""

from __future__ import annotations

import inspect
import linecache
import re
import sys
import sysconfig
import traceback
from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

import numpy as np
import torch

from course_utils.grading.modes import no_modes, uncompiled
from course_utils.grading.operations import Calls

PACKAGE = str(Path(__file__).parents[1])
GRADING, DOORS = str(Path(__file__).parent), str(Path(PACKAGE, "doors.py"))
QUESTIONS = str(Path(__file__).parent / "questions")
LIBRARIES = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}
    | {str(Path(torch.__file__).parent.parent), "<frozen"}
)
READY_MADE = (
    "scaled_dot_product",
    "multi_head_attention",
    "multiheadattention",
    "flex_attention",
    "transformer_encoder_layer",
)
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
# kept from before any answer could replace them
arrays_equal, new_array = np.array_equal, np.array


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
    program: tuple[Any, ...] = field(default=(), compare=False, repr=False)


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
        return new_array(tensor.resolve_neg().numpy())
    if kind is np.ndarray and value.dtype.kind in "biuf":
        if value.size * 8 > MAX_BYTES:
            raise NotPlainError(f"array of shape {value.shape}")
        return to_plain(torch.from_numpy(new_array(value, order="C")), depth + 1)
    if kind is not tuple and issubclass(kind, tuple):  # a named one, a shape
        return to_plain(tuple(tuple.__iter__(value)), depth)
    if kind is not dict and issubclass(kind, dict):  # an ordered one
        return to_plain(dict(dict.items(value)), depth)
    if kind is Fraction:
        return float(value)
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


def to_tensors(value: Any, lent: list[Any] | None = None) -> Any:
    """Turn arrays into fresh tensors that share no memory with them.

    `lent` collects each array and the copy of it that its tensor looks into.
    """
    if isinstance(value, np.ndarray):
        copy = value.copy()
        if lent is not None:
            lent.append((value, copy))
        return torch.from_numpy(copy)
    if isinstance(value, list | tuple):
        return type(value)(to_tensors(x, lent) for x in value)
    if isinstance(value, dict):
        return {name: to_tensors(x, lent) for name, x in value.items()}
    return value


def is_own(filename: str) -> bool:
    """Tell the learner's code from that of Python, PyTorch and this package."""
    if filename.startswith(QUESTIONS):
        return True
    return not filename.startswith((*LIBRARIES, PACKAGE))


def package_name(code: CodeType) -> str:
    """Name a function of this package as one would import it."""
    place = Path(code.co_filename).relative_to(PACKAGE).with_suffix("")
    return ".".join(["course_utils", *place.parts, code.co_qualname])


def is_help(code: CodeType) -> bool:
    """Tell whether a function of this package could do a part of an answer's work."""
    is_call = bool(code.co_flags & inspect.CO_OPTIMIZED)
    return is_call and not code.co_filename.startswith((GRADING, DOORS))


def called_by_learner(frame: FrameType | None) -> bool:
    """Tell whether the learner's code led here, and not a question's own."""
    while frame and not is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return not (frame and frame.f_code.co_filename.startswith(QUESTIONS))


def asks_variant(frame: FrameType | None) -> bool:
    """Tell whether a learner's call of `variant` led here, which anybody may call."""
    while frame:
        code = frame.f_code
        if code.co_name == "variant" and code.co_filename.startswith(GRADING):
            return True
        frame = frame.f_back
    return False


class Watch:
    """Count the learner's lines as they execute; note what should not be called.

    Noted are calls of a ready-made attention, of functions or classes that are
    `packaged` here or in PyTorch under the name of the thing asked for and, where a
    learner answers, of the questions' own files, which hold solutions. Who wants to
    can hide from it: see `classroom.programs` for what the grader relies on.
    """

    def __init__(self, packaged: Collection[str] = (), learners: bool = False) -> None:
        self.packaged, self.learners = packaged, learners
        self.steps = 0
        self.library: set[str] = set()

    def __enter__(self) -> Watch:
        self.calls = Calls()
        self.calls.__enter__()
        self.before = sys.gettrace()
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)
        self.calls.__exit__(None, None, None)
        self.steps += self.calls.count
        self.library |= self.calls.others

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        borrowed = self.learners and code.co_filename.startswith(QUESTIONS)
        if borrowed and called_by_learner(frame.f_back) and not asks_variant(frame):
            self.library.add(package_name(code))
        if is_own(code.co_filename):
            return self.count
        is_call = code.co_flags & inspect.CO_OPTIMIZED  # not a class being defined
        if is_call and any(x in code.co_qualname.lower() for x in READY_MADE):
            self.library.add(code.co_qualname)
        if code.co_filename == str(Path(PACKAGE, "models", "attention.py")) and (
            code.co_name in ("attention", "basic_self_attention", "forward")
        ):
            self.library.add(package_name(code))
        ours = code.co_filename.startswith(PACKAGE)
        first = code.co_qualname.partition(".")[0]
        if ours and is_help(code) and called_by_learner(frame):
            self.library.add(package_name(code))
        if first in self.packaged and called_by_learner(frame):
            self.library.add(package_name(code) if ours else first)
        return None

    def count(self, frame: FrameType, event: str, _: Any) -> Any:
        self.steps += event == "line"
        return self.count


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
    shapes = shapes_in(line, error.__traceback__) if "raise " not in line else ""
    return Failure("exception", type(error).__name__, message, line + shapes)


def shapes_in(line: str, trace: TracebackType | None) -> str:
    """List the shapes of the tensors that a line of the learner's names."""
    scopes = [
        frame.f_locals
        for frame, _ in traceback.walk_tb(trace)
        if is_own(frame.f_code.co_filename)
    ]
    names = dict.fromkeys(re.findall(r"(?<![.\w])[A-Za-z_]\w*", line))
    found = {name: scopes[-1].get(name) for name in names} if scopes else {}
    said = [
        f"{name} {tuple(x.shape)}"
        for name, x in found.items()
        if isinstance(x, torch.Tensor) and type(x) in (torch.Tensor, torch.nn.Parameter)
    ]
    return f"  # {', '.join(said[:4])}" if said else ""


def same_argument(old: Any, new: Any) -> bool:
    """Compare a plain argument with what a call left of its tensors."""
    if isinstance(old, np.ndarray):
        if type(new) is not torch.Tensor or old.shape != new.shape:
            return False
        is_float = old.dtype.kind == "f"  # NaN stays NaN
        return bool(arrays_equal(old, new.detach().numpy(), equal_nan=is_float))
    if isinstance(old, list | tuple):
        return len(old) == len(new) and all(map(same_argument, old, new))
    if isinstance(old, dict):
        same_names = old.keys() == new.keys()
        return same_names and all(same_argument(old[name], new[name]) for name in old)
    return bool(old == new)


@no_modes()
def run(
    answer: Any,
    args: tuple[Any, ...] = (),
    names: tuple[str, ...] = (),
    watch: Watch | None = None,
    program: Any = None,
) -> Record:
    """Call an answer with plain arguments and record what came of it.

    An answer that is no function is its own value. What the answer raises is recorded,
    not raised. Random numbers start from the same state in every call. Watching costs
    time, and is for questions that ask how the answer works; a `program` takes down
    what the answer computes on the way.
    """
    if not callable(answer) and args and answer is not Ellipsis:
        return Record(failure=Failure("not_callable", type(answer).__name__))
    lent: list[list[Any]] = [[] for _ in args]
    given: tuple[Any, ...] = ()
    value, failure = None, None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            with watch or nullcontext():  # over all that an answer could have replaced
                given = tuple(map(to_tensors, args, lent))
                if program is not None:
                    program.take(given)
                with program or nullcontext(), uncompiled():
                    value = answer(*given) if callable(answer) else answer
                value = to_plain(value)
        except (Exception, SystemExit) as error:
            failure = failure_of(error)
    mutated = tuple(
        name
        for name, old, new, pairs in zip(names, args, given, lent)
        if any(was.tobytes() != now.tobytes() for was, now in pairs)
        or not same_argument(old, new)
    )
    if program is not None:
        return Record(value, failure, mutated, program=tuple(program.steps))
    if watch is None:
        return Record(value, failure, mutated)
    return Record(value, failure, mutated, tuple(sorted(watch.library)), watch.steps)
