"""When a wrong answer is right: with one argument made simple, the others as before.

An answer that is right as soon as `beta` is zero goes wrong where `beta` comes in, and
one that is right for a batch of one mixes up the rows of a batch. What is said was
tried on two draws of the inputs, and the simple case is never so simple that anything
would be right in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any

import numpy as np

from course_utils.grading.answer_runner import Record
from course_utils.grading.comparison import same
from course_utils.grading.questions.model import Args, Case, Question

Simple = tuple[str, list[Args]]  # what was done to the arguments, what they are then
ONE_ROW = "there is one row in the batch, whichever"
Ask = Callable[[Question, Any, Case], Record]


def with_one(args: Args, i: int, value: Any) -> Args:
    """The arguments with another one at place i."""
    return (*args[:i], value, *args[i + 1 :])


def single_rows(args: Args) -> list[Args]:
    """The rows of a batch, each alone, if the arguments have a batch axis in common."""
    sizes = [x.shape[0] for x in args if isinstance(x, np.ndarray) and x.ndim > 1]
    batch = sizes[0] if sizes and sizes[0] > 1 else 0

    def row(i: int, x: Any) -> Any:
        has_batch = isinstance(x, np.ndarray) and x.ndim and x.shape[0] == batch
        return x[i : i + 1] if has_batch else x

    return [tuple(row(i, x) for x in args) for i in range(batch)]


def simpler(question: Question, args: Args) -> Iterator[Simple]:
    """The arguments with one thing made simple, the most telling first."""
    for i, (name, x) in enumerate(zip(question.arguments, args)):
        called = f"`{name}`"
        number: float
        if isinstance(x, np.ndarray) and x.dtype == bool and not x.all():
            yield f"{called} is True everywhere", [with_one(args, i, np.ones_like(x))]
        elif isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.ndim == 1:
            for number in (1, 0):
                level = np.full_like(x, number)
                yield f"{called} is all {number}", [with_one(args, i, level)]
        elif isinstance(x, float):
            for number in (1.0, 0.0):
                yield f"{called} is {number:g}", [with_one(args, i, number)]
        elif name == "n_heads" and x > 1:
            yield f"{called} is 1", [with_one(args, i, 1)]
    rows = single_rows(args)
    has_batch = any("batch" in (x.axes or "") for x in question.outputs)
    arrays = [x for x in args if isinstance(x, np.ndarray)]
    shared = [x for x in arrays if x.shape[:1] == (len(rows),)]
    if rows and (has_batch or (question.outputs[0].axes is None and len(shared) > 1)):
        yield ONE_ROW, rows


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
    return isinstance(value, float) and isfinite(value) and value not in (0.0, 1.0)


def says_as_much(value: Any, usual: Any) -> bool:
    """Whether no output says less than usual.

    A sharpness of 0 makes all weights equal: whatever the scores, they are right then.
    """
    pairs = zip(value, usual) if isinstance(value, list) else ()
    return says_something(value) and all(
        says_something(x) or not says_something(y) for x, y in pairs
    )


def hands_through(value: Any, args: Args) -> bool:
    """Whether a result is one of the arguments as it was: a step of length 0."""
    values = value if isinstance(value, list) else [value]
    given = [x for x in args if isinstance(x, np.ndarray)]
    return any(
        isinstance(x, np.ndarray) and x.shape == y.shape and same(x, y)
        for x in values
        for y in given
    )


def right_when(
    question: Question, answer: Any, cases: list[Case], wrong: list[int], ask: Ask
) -> list[str]:
    """The simple conditions under which a wrong answer is right."""
    found = []
    for number in wrong[:1]:
        usual = ask(question, question.reference, cases[number])
        for words, all_args in simpler(question, cases[number].args):
            simple = [Case(args, cases[number].part) for args in all_args]
            if all(is_right(question, answer, c, usual.value, ask) for c in simple):
                found.append(words)
    return found


def is_right(question: Question, answer: Any, case: Case, usual: Any, ask: Ask) -> bool:
    """Whether an answer is right in a simple case, and that is no accident."""
    expected = ask(question, question.reference, case)
    if expected.failure or not says_as_much(expected.value, usual):
        return False
    if hands_through(expected.value, case.args) and not hands_through(usual, case.args):
        return False
    made = ask(question, answer, case)
    return not made.failure and same(made.value, expected.value, question.tolerance)


def sentence(conditions: list[str]) -> str:
    """Say when an answer is right, and so where to look."""
    if not conditions or len(conditions) > 3:
        return ""
    name = conditions[0].partition(" is ")[0]
    look = f"how {name} comes in" if name[:1] == "`" else "what joins the rows"
    return f"It is right when {conditions[0]}: look at {look}."


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
