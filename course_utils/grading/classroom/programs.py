"""See how an answer works by its program, where a question asks how.

What the submission's worker recorded is replayed in another sandbox, on inputs that it
never saw. A program of allowed calls that gives the right results there is a right
answer of the right kind, whoever wrote it down. What does not replay (numpy, branches
on data, something hidden) keeps its points, and a person is told.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from course_utils.grading.answer_runner import run
from course_utils.grading.comparison import fitted, same
from course_utils.grading.operations import BASIC
from course_utils.grading.questions.model import Case, Question, generator
from course_utils.grading.sandbox.replayer import DOES_NOT_END, SECONDS, Replayer
from course_utils.grading.sandbox.sandbox import Isolation, SandboxError
from course_utils.grading.scoring import accepted

LONG = 40  # an axis over which a loop makes more calls than any other answer


def asks_how(question: Question, isolation: Isolation = "bubblewrap") -> bool:
    """Whether a question has a rule that only the calls of an answer can show.

    What is to be written without the package's own is taken out of the package where
    that is possible: see `sandbox.absent`.
    """
    constant_steps = any(part.constant_steps for part in question.parts)
    return (
        question.primitives
        or constant_steps
        or (question.watched and isolation != "bubblewrap")
    )


def recorded_cases(cases: list[Case]) -> list[int]:
    """The cases whose programs are recorded: all that count."""
    return [i for i, case in enumerate(cases) if case.part]


def other_numbers(value: Any, rng: np.random.Generator) -> Any:
    """Other inputs of the same shapes and signs; whole numbers change places."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        factors = 1 + 0.2 * rng.standard_normal(value.shape)
        return (value * factors).astype(value.dtype)
    if isinstance(value, np.ndarray) and value.ndim:
        return np.take(value, rng.permutation(value.shape[-1]), axis=-1)
    if isinstance(value, list | tuple):
        return type(value)(other_numbers(x, rng) for x in value)
    if isinstance(value, dict):
        return {name: other_numbers(x, rng) for name, x in value.items()}
    return value


def foreign_calls(question: Question, program: dict[str, Any]) -> list[str]:
    """The calls of a program that the question does not allow."""
    names = {str(call[0]).removesuffix(".__get__") for call in program["calls"]}
    last = {name.rpartition(".")[2] for name in names}
    if not question.primitives:
        return sorted(last & set(question.packaged))
    allowed = BASIC | set(question.allowed)
    plain = {x for x in last if not (x.startswith("__") or x in ("T", "mT", "H", "mH"))}
    return sorted(plain - allowed)


def what_is_hidden(
    question: Question, cases: list[Case], programs: list[Any], seed: str, by: Replayer
) -> str:
    """Say why it was not seen how an answer works, or nothing."""
    chosen = recorded_cases(cases)
    counts: dict[tuple[int, ...], set[int]] = {}  # by the numbers of axes
    ends = 0.0
    if len(programs) != len(chosen):
        return "no record (nothing sent)"
    for i, program in zip(chosen, programs):
        if "problem" in program:
            return f"no record ({program['problem']})"
        fresh = other_numbers(cases[i].args, generator(seed, question.id, "replay"))
        expected = run(question.reference, fresh, question.arguments)
        part = cases[i].part
        try:
            foreign = foreign_calls(question, program)
            if foreign:
                return f"calls {foreign[0]}"
            value = fitted(by.ask(program, fresh), expected.value)
            right = same(value, expected.value, question.tolerance)
            if part and part.accepts:
                right = accepted(question, part, fresh, value, expected.value)
        except SandboxError:
            raise
        except Exception as error:  # the program is a stranger's
            return f"no replay ({error})"
        if not right:
            return "its calls give other results on other inputs"
        ends = ends or time.monotonic() + 2 * SECONDS  # the first may start a sandbox
        if time.monotonic() > ends:
            return f"no replay ({DOES_NOT_END})"
        if part and part.constant_steps:
            shapes = [x.shape for x in fresh if isinstance(x, np.ndarray)]
            count, longest = len(program["calls"]), max(map(max, shapes))
            if count >= longest >= LONG:  # a loop of one length, however few tokens
                return "as many calls as a loop makes"
            counts.setdefault(tuple(map(len, shapes)), set()).add(count)
    if any(len(found) > 1 for found in counts.values()):
        return "more calls for larger inputs"
    return ""
