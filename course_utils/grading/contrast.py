"""When a wrong answer is right: with one argument made simple, the others as before.

An answer that is right as soon as `beta` is zero goes wrong where `beta` comes in, and
one that is right for a batch of one mixes up the rows of a batch. What is said was
tried on two draws of the inputs, and the simple case is never so simple that anything
would be right in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from course_utils.grading.answer_runner import Record
from course_utils.grading.comparison import same
from course_utils.grading.questions.model import Args, Case, Question

Simple = tuple[str, Args]  # what was done to the arguments, and what they are then
Ask = Callable[[Question, Any, Case], Record]


def with_one(args: Args, i: int, value: Any) -> Args:
    """The arguments with another one at place i."""
    return (*args[:i], value, *args[i + 1 :])


def one_row(args: Args) -> Args | None:
    """The arguments with a batch of one, if they have a batch axis in common."""
    sizes = [x.shape[0] for x in args if isinstance(x, np.ndarray) and x.ndim > 1]
    if not sizes or sizes[0] < 2:
        return None
    return tuple(
        x[:1] if isinstance(x, np.ndarray) and x.ndim and x.shape[0] == sizes[0] else x
        for x in args
    )


def simpler(question: Question, args: Args) -> Iterator[Simple]:
    """The arguments with one thing made simple, the most telling first."""
    for i, (name, x) in enumerate(zip(question.arguments, args)):
        called = f"`{name}`"
        number: float
        if isinstance(x, np.ndarray) and x.dtype == bool and not x.all():
            yield f"{called} is True everywhere", with_one(args, i, np.ones_like(x))
        elif isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.ndim == 1:
            for number in (1, 0):
                level = np.full_like(x, number)
                yield f"{called} is all {number}", with_one(args, i, level)
        elif isinstance(x, float):
            for number in (1.0, 0.0):
                yield f"{called} is {number:g}", with_one(args, i, number)
        elif name == "n_heads" and x > 1:
            yield f"{called} is 1", with_one(args, i, 1)
    row = one_row(args)
    has_batch = any("batch" in (x.axes or "") for x in question.outputs)
    if row is not None and (has_batch or question.outputs[0].axes is None):
        yield "there is one row in the batch", row


def says_something(value: Any) -> bool:
    """Whether a right result is no accident: finite, not all the same, not one-hot."""
    if isinstance(value, list):
        return any(says_something(x) for x in value)
    if isinstance(value, np.ndarray) and value.size > 1:
        several = np.count_nonzero(value) > 1
        return bool(
            np.isfinite(value).all() and several and (value != value.flat[0]).any()
        )
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()
    return isinstance(value, float) and value not in (0.0, 1.0)


def says_as_much(value: Any, usual: Any) -> bool:
    """Whether no output says less than usual.

    A sharpness of 0 makes all weights equal: whatever the scores, they are right then.
    """
    pairs = zip(value, usual) if isinstance(value, list) else ()
    return says_something(value) and all(
        says_something(x) or not says_something(y) for x, y in pairs
    )


def right_when(
    question: Question, answer: Any, cases: list[Case], wrong: list[int], ask: Ask
) -> list[str]:
    """The simple conditions under which a wrong answer is right."""
    found = []
    for number in wrong[:1]:
        usual = ask(question, question.reference, cases[number])
        for words, args in simpler(question, cases[number].args):
            if words in question.no_contrast:
                continue
            case = Case(args, cases[number].part)
            expected = ask(question, question.reference, case)
            if expected.failure or not says_as_much(expected.value, usual.value):
                continue
            made = ask(question, answer, case)
            if not made.failure and same(
                made.value, expected.value, question.tolerance
            ):
                found.append(words)
    return found


def sentence(conditions: list[str]) -> str:
    """Say when an answer is right, and so where to look."""
    if not conditions or len(conditions) > 3:
        return ""
    name = conditions[0].partition(" is ")[0]
    look = f"look at how {name} comes in" if name[:1] == "`" else "rows get mixed up"
    return f"It is right when {conditions[0]}: {look}."


def modes(question: Question, cases: list[Case], wrong: set[int]) -> str:
    """Say for which word or truth among the arguments the answer is right."""
    for i, name in enumerate(question.arguments):
        values = [case.args[i] for case in cases]
        if not all(isinstance(x, str | bool) for x in values):
            continue
        good = {x for n, x in enumerate(values) if n not in wrong}
        bad = {x for n, x in enumerate(values) if n in wrong}
        if good - bad and bad - good:
            said = ", ".join(f"{name}={x!r}" for x in sorted(good - bad))
            missed = ", ".join(f"{name}={x!r}" for x in sorted(bad))
            return f"It is right with {said}, wrong with {missed}."
    return ""
