"""See how an answer works by its program, where a question asks how.

What the submission's worker recorded is replayed in another sandbox, on inputs that it
never saw. A program of allowed calls that gives the right results there is a right
answer of the right kind, whoever wrote it down. What does not replay (numpy, branches
on data, something hidden) keeps its points, and a person is told.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from course_utils.grading.answer_runner import run
from course_utils.grading.comparison import fitted, same
from course_utils.grading.operations import BASIC
from course_utils.grading.questions.model import Case, Question, generator
from course_utils.grading.sandbox.replay import Replay, record, tensors, to_tensors
from course_utils.grading.sandbox.replayer import NotReplayedError, Replayer


def recorded_cases(question: Question, cases: list[Case]) -> list[int]:
    """The cases whose programs are recorded: the first, and the last that counts."""
    if not question.watched or any(part.accepts for part in question.parts):
        return []
    counted = [i for i, case in enumerate(cases) if case.part]
    return sorted({counted[0], counted[-1]}) if is_recorded(question) else []


def other_numbers(value: Any, rng: np.random.Generator) -> Any:
    """Other inputs of the same shapes and signs."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        factors = 1 + 0.2 * rng.standard_normal(value.shape)
        return (value * factors).astype(value.dtype)
    if isinstance(value, list | tuple):
        return type(value)(other_numbers(x, rng) for x in value)
    if isinstance(value, dict):
        return {name: other_numbers(x, rng) for name, x in value.items()}
    return value


@lru_cache(maxsize=1024)
def is_recorded(question: Question) -> bool:
    """Whether the question's own solution replays, on inputs of a public seed."""
    cases = [case for case in question.cases("replay") if case.part]
    return all(replays(question, case.args) for case in (cases[0], cases[-1]))


def replays(question: Question, args: Any) -> bool:
    """Whether the program of the question's own solution gives its results again."""
    program = record(question.reference, args)
    fresh = other_numbers(args, generator("replay", question.id))
    expected = run(question.reference, fresh, question.arguments)
    if "problem" in program or expected.failure:
        return False
    try:
        value = Replay(tensors(tuple(map(to_tensors, fresh)))).run(program)
        return same(fitted(value, expected.value), expected.value, question.tolerance)
    except Exception:  # a call that a record cannot hold
        return False


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
    counts, chosen = [], recorded_cases(question, cases)
    if len(programs) != len(chosen):
        return "no record (nothing sent)"
    for i, program in zip(chosen, programs):
        if "problem" in program:
            return f"no record ({program['problem']})"
        foreign = foreign_calls(question, program)
        if foreign:
            return f"calls {foreign[0]}"
        fresh = other_numbers(cases[i].args, generator(seed, question.id, "replay"))
        expected = run(question.reference, fresh, question.arguments)
        try:
            value = by.ask(program, fresh)
            right = same(
                fitted(value, expected.value), expected.value, question.tolerance
            )
        except (NotReplayedError, ValueError, TypeError) as error:
            return f"no replay ({error})"
        if not right:
            return "its calls give other results on other inputs"
        counts.append(len(program["calls"]))
    if len(set(counts)) > 1 and any(part.constant_steps for part in question.parts):
        return "more calls for larger inputs"
    return ""
