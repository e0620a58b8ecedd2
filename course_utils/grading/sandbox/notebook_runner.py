"""Run the cells of a submission and call its answers, inside the sandbox.

Part of the program that `main` starts. It knows the questions' inputs and nothing of
what should come of them.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import os
import signal
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import write
from time import process_time
from typing import Any, TypeGuard

from course_utils.grading.answer_runner import (
    Failure,
    Record,
    Watch,
    failure_of,
    run,
)
from course_utils.grading.sandbox import replay
from course_utils.grading.sandbox.absent import CALLED
from course_utils.grading.sandbox.notebook_shell import RUNS_CODE, Shell, offer, parsed
from course_utils.grading.sandbox.replay import record
from course_utils.grading.sandbox.wire_format import decode, encode_record

# kept from before a submission could replace them
current_frames, exit_now, file_system = sys._current_frames, os._exit, os.statvfs
MAX_PROGRAM = 1_000_000  # bytes of one program
MAX_RECORD = 8_000_000  # bytes of one result; the reader has a limit of its own


class TimeUpError(BaseException):
    """A cell or a question used up its time."""


# ------------------------------------------------------------------------------- cells


def described(error: BaseException) -> str:
    """Put an exception in one line of bounded length."""
    return f"{type(error).__name__}: {error}"[:300]


def bound_names(tree: ast.Module) -> list[str]:
    """List the names that a cell's functions, classes and assignments bind."""
    names = []
    waiting: list[ast.AST] = list(tree.body)
    for node in waiting:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            waiting += node.targets
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
            waiting += [node.target] * (node.value is not None)
        elif isinstance(node, ast.expr):
            names += [x.id for x in ast.walk(node) if is_bound(x)]
            waiting += measured_code(node)
        elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            waiting += ast.iter_child_nodes(node)  # what stands inside `if` or `with`
    return names


def measured_code(node: ast.expr) -> list[ast.stmt]:
    """The statements that a magic such as `%%time` runs."""
    with suppress(Exception):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="run_cell_magic"),
                args=[ast.Constant(name), _, ast.Constant(source)],
            ) if name in RUNS_CODE:
                return parsed(str(source)).body
    return []


def is_bound(node: ast.AST) -> TypeGuard[ast.Name]:
    """Tell whether a piece of code is a name that gets a value."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeUpError after so much processor time, or twice that of the clock."""

    def stop(*_: Any) -> None:
        raise TimeUpError

    signal.signal(signal.SIGPROF, stop)
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)  # which a cell may have left running
    processor = signal.setitimer(signal.ITIMER_PROF, seconds, 0.5)
    clock = signal.setitimer(signal.ITIMER_REAL, 2 * seconds, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, *processor)
        signal.setitimer(signal.ITIMER_REAL, *clock)


# ---------------------------------------------------------------------------- the run


def index_of(name: str, count: int) -> int:
    """The variant that a name draws, as in `questions.experiment`, not shown here."""
    digest = hashlib.sha256(" ".join(name.casefold().split()).encode()).digest()
    return int.from_bytes(digest, "big") % count


def files() -> int:
    """The number of names in the sandbox's own temporary folder."""
    status = file_system("/tmp")
    return status.f_files - status.f_ffree if status.f_files else 0


def evaluate(
    question: dict[str, Any], answer: Any, seconds: float
) -> tuple[list[Any], list[Any]]:
    """Call an answer with every case of its question and encode what came of it.

    The second list holds its programs, for the cases that were asked for.
    """
    cases, names = question["cases"], tuple(question["arguments"])
    failure = None
    records: list[Any] = []
    programs: list[Any] = []
    with time_limit(seconds):
        try:
            for args in cases[: question["unwatched"]]:  # to import, to fill a cache
                run(answer, args, names)
            programs = [small(record(answer, cases[i])) for i in question["recorded"]]
            for args in cases if names else cases[:1]:  # the same call, once
                watch = Watch(question["packaged"]) if question["watched"] else None
                records.append(encoded(run(answer, args, names, watch)))
            records *= 1 if names else len(cases)
        except TimeUpError:
            failure = Failure("time")
        except BaseException as error:
            failure = failure_of(error)
    last = encode_record(Record(failure=failure))
    programs += [{"problem": "stopped"}] * (len(question["recorded"]) - len(programs))
    return (records + [last] * len(cases))[: len(cases)], programs


def small(program: Any) -> Any:
    """Keep a program, or say that it is too long to carry."""
    long = len(json.dumps(program)) > MAX_PROGRAM
    return {"problem": "a long program"} if long else program


def encoded(record: Any) -> Any:
    """Encode a record, or say that it is too much to carry."""
    try:
        message = encode_record(record)
        size = len(json.dumps(message))
    except (ValueError, TypeError, RecursionError, MemoryError):
        failure = Failure("type", "value that is no tensor, number or text")
        return encode_record(Record(failure=failure))
    if size > MAX_RECORD:
        failure = Failure("type", f"result of {size // 1_000_000} MB")
        return encode_record(Record(failure=failure))
    return message


def serve(request: dict[str, Any], send: Callable[..., None]) -> None:
    """Run the cells in order; call each answer when it is checked, or at the end."""
    seconds, questions = request["seconds"], request["questions"]
    for question in questions.values():  # before a cell could replace what decodes
        question["cases"] = [tuple(decode(case)) for case in question["cases"]]
    done: set[str] = set()
    trees: dict[int, ast.Module] = {}
    for i, source in enumerate(request["cells"]):
        if i in request["skip"]:
            continue
        send(parse=i)
        try:
            trees[i] = parsed(source)
        except Exception as error:
            send(broken=i, error=described(error))
    names = [name for tree in trees.values() for name in bound_names(tree)]
    send(names=names)

    def check(identifier: Any = None, answer: Any = None, *_: Any, **__: Any) -> None:
        if isinstance(identifier, str) and identifier in questions:
            send(question=identifier)
            records, programs = evaluate(questions[identifier], answer, seconds)
            done.add(identifier)
            tell_absent()
            send(answered=identifier, records=records, programs=programs)

    def tell_absent() -> None:
        if vars(sys).pop(CALLED, None):
            send(absent=True)

    def variant(identifier: str, name: str) -> dict[str, Any]:
        settings = questions[identifier]["variants"]
        return dict(settings[index_of(name, len(settings))])

    stand_in = types.ModuleType("course_utils.grading.checks")
    stand_in.check = check  # type: ignore[attr-defined]
    stand_in.variant = variant  # type: ignore[attr-defined]
    nothing = types.SimpleNamespace(points=0)  # for the graded cells of nbgrader
    stand_in.grade_answer = lambda *_: nothing  # type: ignore[attr-defined]
    stand_in.progress = lambda *_: None  # type: ignore[attr-defined]
    for name in ("course_utils.checks", "course_utils.grading.checks"):
        sys.modules[name] = stand_in
    space: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    shell = Shell(space, lambda words: send(note=words))
    if any("IPython" in source for source in request["cells"]):
        with suppress(Exception):
            importlib.import_module("IPython")
    offer(shell)
    for i, tree in trees.items():
        send(cell=i)
        try:
            with time_limit(seconds):
                shell.read(request["cells"][i])
                shell.run(tree, request["cells"][i], f"<cell {i}>")
        except TimeUpError:
            send(broken=i, error="time")
        except BaseException as error:
            send(broken=i, error=described(error))
        tell_absent()
        if len(current_frames()) > request["threads"] or files() > request["names"]:
            exit_now(1)  # here and not in a later cell, which is innocent
    for identifier, question in questions.items():
        if question["answer"] in space and identifier not in done:
            check(identifier, space[question["answer"]])
    send(done=round(process_time(), 2))


def begin(request: dict[str, Any], channel: int) -> None:
    """Serve a request through a channel, one JSON message per line."""
    mark = request.pop("mark")

    def send(**message: Any) -> None:
        data = json.dumps({"mark": mark, **message}).encode() + b"\n"
        while data:
            data = data[write(channel, data) :]

    if "replay" in request:
        replay.serve(send)
    send(ready=True)
    serve(request, send)
