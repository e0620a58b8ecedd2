"""Judge records: points for what is right, one line that names what is wrong.

The judge compares plain values and never runs the learner's code, so that it serves the
notebook (`checks`) and the sandboxed grader (`grading`) alike.
"""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from course_utils.answers import Failure, Record, Watch, run
from course_utils.questions import Args, Case, Output, Part, Question
from course_utils.ready_made import explain_use, not_allowed

MAX_FREE_SIZE = 64  # a result of free shape stays small enough to be examined


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


# -------------------------------------------------------------------- plain values


def same(left: Any, right: Any, tolerance: float = 1e-4) -> bool:
    """Compare plain values; numbers up to a tolerance, relative and absolute."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            same(a, b, tolerance) for a, b in zip(left, right)
        )
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            same(left[name], right[name], tolerance) for name in left
        )
    numbers = (np.ndarray, int, float)
    both = isinstance(left, numbers) and isinstance(right, numbers)
    if not both or isinstance(left, bool) or isinstance(right, bool):
        return type(left) is type(right) and bool(left == right)
    if np.shape(left) != np.shape(right) or np.size(left) != np.size(right):
        return False
    try:
        left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    except OverflowError:
        return False
    return bool(np.allclose(left, right, tolerance, tolerance / 10, equal_nan=True))


def same_record(left: Record, right: Record) -> bool:
    """Tell whether two answers did the same: the same values, or the same failure."""
    if left.failure or right.failure:
        if not (left.failure and right.failure):
            return False
        known = [(f.kind, f.type, f.message) for f in (left.failure, right.failure)]
        return known[0] == known[1]
    return left.mutated == right.mutated and same(left.value, right.value)


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
        watch = Watch(question.packaged, reference_code(question))
    return run(answer, case.args, question.arguments, watch)


def reference_code(question: Question) -> CodeType | None:
    """Return the code of the reference, if no mistake is made of the same."""
    code = getattr(question.reference, "__code__", None)
    wrong = (getattr(m.wrong, "__code__", None) for m in question.mistakes)
    return None if code in wrong else code


# --------------------------------------------------------------- the generic sentences


def axes_of(output: Output, ndim: int) -> str:
    """Name the axes of a result: the last ones by the output, the leading as batch."""
    names = (output.axes or "").split()
    leading = {0: [], 1: ["batch"], 2: ["batch", "head"]}.get(ndim - len(names), ["…"])
    return f"({', '.join(leading + names)})"


def type_of(value: Any) -> str:
    """Name a plain value's type as the learner knows it."""
    if isinstance(value, np.ndarray):
        return "torch.Tensor"
    return "None" if value is None else type(value).__name__


def explain_failure(failure: Failure, question: Question) -> str:
    """Say why there is no value to judge."""
    call = f"`{question.answer}`"
    if failure.kind == "unanswered":
        if failure.type:
            return (
                f"not answered yet: {call} calls `{failure.type}`; answer that first."
            )
        return f"not answered yet: {question.next_step}"
    if failure.kind == "not_callable":
        return (
            f"check got a {failure.type}, expected the function {call} itself, "
            "without parentheses after it."
        )
    if failure.kind == "type":
        return (
            f"{call} returned a {failure.type}, expected {returns(question)}; "
            "return PyTorch tensors and plain numbers."
        )
    if failure.kind == "exception":
        where = f" at `{failure.line}`" if failure.line else ""
        return f"{call} raised {failure.type}: {failure.message}{where}"
    if failure.kind == "missing":
        return f"there is no {call} in the notebook: keep the name the exercise gives."
    if failure.kind == "time":
        return f"{call} did not finish in time: look for a loop that never ends."
    return f"{call} ended the program that ran it ({failure.message})."


def returns(question: Question) -> str:
    """Say what an answer should return."""
    names = ", ".join(output.name for output in question.outputs)
    return f"({names})" if len(question.outputs) > 1 else names


def explain_form(
    question: Question, value: Any, expected: Any
) -> tuple[str, str] | None:
    """Find a wrong type, number of results, shape or non-finite number."""
    call, many = f"`{question.answer}`", len(question.outputs) > 1
    if many and not (isinstance(value, list) and len(value) == len(expected)):
        came = type_of(value)
        came += f" of {len(value)}" if isinstance(value, list) else ""
        return "type", f"{call} returned a {came}, expected {returns(question)}."
    pairs = zip(value, expected) if many else [(value, expected)]
    for output, (got, right) in zip(question.outputs, pairs):
        found = explain_output(output, got, right)
        if found:
            return found
    return None


def explain_output(output: Output, got: Any, right: Any) -> tuple[str, str] | None:
    """Find what is wrong with the form of one output."""
    name = f"`{output.name}`"
    if not isinstance(right, np.ndarray):
        number = isinstance(right, int | float) and not isinstance(right, bool)
        fits = isinstance(got, np.ndarray | int | float) and np.ndim(got) == 0
        if number and (not fits or isinstance(got, bool)):
            return "type", f"{name} is a {type_of(got)}, expected a number."
        if not number and type(got) is not type(right):
            expected = type_of(right)
            return "type", f"{name} is a {type_of(got)}, expected a {expected}."
    elif not isinstance(got, np.ndarray):
        return "type", f"{name} is a {type_of(got)}, expected a torch.Tensor."
    elif output.free:
        if got.ndim != right.ndim or not 0 < max(got.shape) <= MAX_FREE_SIZE:
            return "shape", (
                f"{name} has shape {got.shape}, expected {right.ndim} axes "
                f"{axes_of(output, right.ndim)} of at most {MAX_FREE_SIZE}."
            )
    elif got.shape != right.shape and not right.ndim:
        return "shape", f"{name} has shape {got.shape}, expected a single number."
    elif got.shape != right.shape:
        return "shape", (
            f"{name} has shape {got.shape}, expected {right.shape} = "
            f"{axes_of(output, right.ndim)}."
        )
    if isinstance(got, np.ndarray | float) and not np.isfinite(got).all():
        return "not_finite", (
            f"{name} holds NaN or infinity: something overflowed or was divided by "
            f"zero."
        )
    return None


def explain_booleans(
    question: Question, expected: Any, value: Any
) -> tuple[str, str] | None:
    """Find True and False where numbers were due."""
    many = len(question.outputs) > 1
    pairs = zip(expected, value) if many else [(expected, value)]
    for output, (right, got) in zip(question.outputs, pairs):
        numbers = isinstance(right, np.ndarray) and right.dtype != bool
        if numbers and got.dtype == bool:
            return "type", f"`{output.name}` holds True and False, expected numbers."
    return None


# ------------------------------------------------------------------------- the verdict


def part_is_right(
    question: Question, part: Part, cases: list[Case], right: list, records: list
) -> bool:
    """Tell whether every case of a part came out right, its arguments unharmed."""
    steps = set()
    for case, expected, record in zip(cases, right, records):
        if case.part is not part:
            continue
        if record.failure or record.mutated:
            return False
        if explain_form(question, record.value, expected.value):
            return False
        if not accepted(question, part, case.args, record.value, expected.value):
            return False
        steps.add(record.steps)
    return not part.steady or len(steps) == 1


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


def sign_fits(sign: Any, args: Args, record: Record) -> bool:
    """Ask a mistake's sign about a value that may have any form."""
    try:
        return bool(sign(args, record.value))
    except Exception:  # as above
        return False


def find_equal(
    question: Question, cases: list[Case], records: list[Record]
) -> tuple[str, str] | None:
    """Recognise a known wrong answer by doing the same in every case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some mistakes are deprecated besides
        for mistake in question.mistakes:
            if all(
                same_record(ask(question, mistake.wrong, case), record)
                for case, record in zip(cases, records)
            ):
                return mistake.id, mistake.hint
    return None


def find_sign(
    question: Question, cases: list[Case], records: list[Record]
) -> tuple[str, str] | None:
    """Recognise a known wrong answer by its sign in every case."""
    for mistake in question.mistakes:
        sign = mistake.sign
        if sign and all(sign_fits(sign, c.args, r) for c, r in zip(cases, records)):
            return mistake.id, mistake.hint
    return None


def diagnose(
    question: Question, cases: list, right: list, records: list, lost: list
) -> tuple[str, str]:
    """Name what is wrong, the most telling reason first."""
    call = f"`{question.answer}`"
    failures = [record.failure for record in records if record.failure]
    if any(failure.kind == "unanswered" for failure in failures):
        unanswered = next(f for f in failures if f.kind == "unanswered")
        return "unanswered", explain_failure(unanswered, question)
    used = not_allowed(question, records)
    if used:
        return explain_use(question, used[0])
    found = find_equal(question, cases, records)
    if found:
        return found
    only = lost[0].alone if len(lost) == 1 and len(question.parts) > 1 else ""
    if failures:
        sentence = explain_failure(failures[0], question)
        if only and len(failures) < len(records):
            sentence = f"{only} ({sentence})"
        return failures[0].kind, sentence
    for expected, record in zip(right, records):
        form = explain_form(question, record.value, expected.value)
        if form:
            return form
    found = find_sign(question, cases, records) or explain_booleans(
        question, right[0].value, records[0].value
    )
    if found:
        return found
    mutated = next((r.mutated[0] for r in records if r.mutated), None)
    if mutated:
        return "mutated", (
            f"{call} changes its argument `{mutated}` in place: whoever called it "
            "still needs it. Make a new tensor instead."
        )
    for case, expected, record in zip(cases, right, records):
        ignored = case.probe and same(record.value, records[0].value, 1e-7)
        if ignored and not same(expected.value, right[0].value):
            return "independent", (
                f"the result of {call} does not depend on `{case.probe}`: it stays the "
                "same when that changes."
            )
    if len(lost) == 1 and lost[0].steady:
        return "loop", (
            f"{call} is right, but runs a Python loop over the tokens: more tokens, "
            "more lines executed. One matrix product does the work of the loop."
        )
    if only:
        return f"only {lost[0].name}", only
    return "values", (
        f"the form is right, the numbers are not (in: {lost[0].name}); compare with a "
        "small example by hand."
    )


def judge(question: Question, seed: int | str, records: list[Record]) -> Result:
    """Give points and a hint for the records of a seed's cases, in their order."""
    cases, right = expectations(question, seed)
    if len(records) != len(cases):
        raise ValueError(
            f"question {question.id} has {len(cases)} cases, got {len(records)} "
            f"records."
        )
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
    result = Result(question.id, points, question.points, parts)
    if lost:
        found = diagnose(question, cases, right, records, lost)
        result = dataclasses.replace(result, misconception=found[0], hint=found[1])
    flags = tuple(name if ":" in name else f"library:{name}" for name in used)
    return dataclasses.replace(result, flags=flags)
