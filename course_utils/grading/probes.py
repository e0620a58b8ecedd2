"""What probes tell: cases in which one argument alone is another than usual."""

from __future__ import annotations

import numpy as np

from course_utils.grading.answer_runner import Record
from course_utils.grading.comparison import same
from course_utils.grading.questions.model import Args, Case, Question

CHOICES = {"argmax", "argmin", "argsort", "sort", "topk", "max", "min", "round", "sign"}


def find_unused(
    question: Question, cases: list[Case], right: list, records: list[Record]
) -> tuple[str, str] | None:
    """Recognise that an argument has no effect though it should have one."""
    call, usual = f"`{question.answer}`", records[0].value
    if isinstance(usual, np.ndarray | int | float) and not np.any(usual):
        return None  # a zero stays one whatever multiplies it
    for case, expected, record in zip(cases, right, records):
        ignored = case.probe and same(record.value, usual, 1e-7)
        if ignored and not same(expected.value, right[0].value):
            used = reads(question, case.probe, record)
            if used and any(step.function in CHOICES for step in record.program):
                continue  # the largest of a few may stay where it is
            if used and has_small_axis(cases[0].args):
                continue  # a softmax over one number is 1, whatever the number
            return "independent", (
                f"The result of {call} does not depend on `{case.probe}`: it stays the "
                f"same when that changes{', although it is used' * used}."
            )
    return None


def has_small_axis(args: Args) -> bool:
    """Whether an input is so small that a wrong axis could hide what it does."""
    return any(min(x.shape) < 3 for x in args if isinstance(x, np.ndarray) and x.ndim)


def is_fair(expected: Record, record: Record) -> bool:
    """Whether a probe has an answer: one of the solution's, finite, and one of mine."""
    values = expected.value if isinstance(expected.value, list) else [expected.value]
    numbers = [x for x in values if isinstance(x, np.ndarray | float)]
    finite = all(np.isfinite(x).all() for x in numbers)
    return finite and not expected.failure and not record.failure


def reads(question: Question, argument: str, record: Record) -> bool:
    """Whether an answer computes with an argument, as far as it was traced."""
    place = -2 - question.arguments.index(argument)
    return any(place in step.parents for step in record.program)
