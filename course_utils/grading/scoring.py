"""Score records: points for what is right.

The judge compares plain values and never runs the learner's code, so that it serves the
notebook (`checks`) and the sandboxed grader (`classroom`) alike.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from course_utils.grading.answer_runner import Record, Watch, run
from course_utils.grading.comparison import fitted, same
from course_utils.grading.forbidden_calls import not_allowed
from course_utils.grading.program import Program
from course_utils.grading.questions.model import Args, Case, Part, Question
from course_utils.grading.sentences import explain_form, outputs_of


@dataclass(frozen=True)
class Result:
    """The verdict on one question: points, and the misconception when there is one."""

    question: str
    points: int
    max_points: int
    parts: tuple[tuple[str, int, int], ...]  # name, points, most points
    misconception: str = ""
    hint: str = ""
    flags: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        return self.misconception != "unanswered"


def is_open(question: Question) -> bool:
    """Whether many results are right, so that none is compared with the solution's."""
    return all(part.accepts for part in question.parts)


@lru_cache(maxsize=256)
def expectations(
    question: Question, seed: int | str
) -> tuple[list[Case], list[Record]]:
    """Return a seed's cases, and what the reference makes of them."""
    cases = question.cases(seed)
    return cases, [ask(question, question.reference, case) for case in cases]


def ask(question: Question, answer: Any, case: Case, learners: bool = False) -> Record:
    """Run an answer on one case of its question; a learner's is watched throughout."""
    watch = Watch() if question.watched else None
    if learners:
        watch = Watch(question.packaged, learners=True)
    return run(answer, case.args, question.arguments, watch)


def trace(question: Question, answer: Any, case: Case) -> Record:
    """Run an answer on one case and take down what it computes on the way."""
    program = Program(question.given)
    return run(answer, case.args, question.arguments, program=program)


def fit(question: Question, record: Record, expected: Record) -> Record:
    """Write an answer's value as the reference writes its own; see `fitted`."""
    if record.failure:
        return record
    value, names = record.value, [output.name for output in question.outputs]
    if isinstance(value, dict) and len(names) > 1 and sorted(value) == sorted(names):
        value = [value[name] for name in names]
    value = fitted(value, expected.value)
    outputs = outputs_of(question, value)
    if isinstance(outputs, list) and len(outputs) == len(question.outputs):
        outputs = [
            x.astype(np.float64)
            if output.free and isinstance(x, np.ndarray) and x.dtype.kind == "f"
            else x
            for output, x in zip(question.outputs, outputs)
        ]
        value = outputs if len(question.outputs) > 1 else outputs[0]
    return dataclasses.replace(record, value=value)


class Mark:
    """Stands for one output, to see which of them a part looks at."""


def outputs_counted(question: Question, part: Part) -> tuple[int, ...]:
    """The outputs that a part judges: all, unless its view picks some."""
    marks = [Mark() for _ in question.outputs]
    everything = tuple(range(len(marks)))
    if part.accepts or len(marks) == 1:
        return everything
    try:
        seen = part.view(marks)
    except Exception:  # it computes with them
        return everything
    found = seen if isinstance(seen, list | tuple) else [seen]
    picked = tuple(i for i in everything if any(x is marks[i] for x in found))
    return picked if len(picked) == len(found) else everything


def part_is_right(
    question: Question,
    part: Part,
    cases: list[Case],
    right: list,
    records: list,
    harmless: bool = False,
    any_steps: bool = False,
) -> bool:
    """Tell whether every case of a part came out right, its arguments unharmed.

    `harmless` forgives a changed argument, `any_steps` a loop. Where only the steps are
    to be counted, a case that is wrong costs its points elsewhere.
    """
    steps: dict[tuple[int, ...], list[int]] = {}  # by the numbers of axes
    counted = outputs_counted(question, part)
    for case, expected, record in zip(cases, right, records):
        if case.part is not part:
            continue
        fails = record.failure or (record.mutated and not harmless)
        if (
            fails
            or explain_form(question, record.value, expected.value, counted)
            or not accepted(question, part, case.args, record.value, expected.value)
        ):
            if part.constant_steps:
                continue
            return False
        axes = tuple(np.ndim(x) for x in case.args if isinstance(x, np.ndarray))
        steps.setdefault(axes, []).append(record.steps)
    several = any(len(found) > 1 for found in steps.values())
    no_loop = several and all(len(set(found)) == 1 for found in steps.values())
    return any_steps or not part.constant_steps or no_loop


def accepted(
    question: Question, part: Part, args: Args, value: Any, expected: Any
) -> bool:
    """Ask a part about a value of the right form, whatever numbers are in it."""
    try:
        if part.accepts:
            return bool(part.accepts(args, value))
        return same(part.view(value), part.view(expected), question.tolerance)
    except Exception:  # the value is a stranger's: nothing in it may stop the judge
        return False


def score(
    question: Question, cases: list[Case], right: list, records: list
) -> tuple[Result, list[Part]]:
    """Give points for fitted records, and tell which parts are lost."""
    used = not_allowed(question, records)
    lost = [
        part
        for part in question.parts
        if used or not part_is_right(question, part, cases, right, records)
    ]
    parts = tuple(
        (part.name, 0 if part in lost else part.points, part.points)
        for part in question.parts
    )
    points = sum(earned for _, earned, _ in parts)
    flags = tuple(name if ":" in name else f"library:{name}" for name in used)
    return Result(question.id, points, question.points, parts, flags=flags), lost
