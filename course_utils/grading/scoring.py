"""Judge records: points for what is right, one line that names what is wrong.

The judge compares plain values and never runs the learner's code, so that it serves the
notebook (`checks`) and the sandboxed grader (`grading`) alike.
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from course_utils.grading.answer_runner import Failure, Record, Watch, run
from course_utils.grading.comparison import fitted, relation, same
from course_utils.grading.departure import located
from course_utils.grading.forbidden_calls import explain_use, not_allowed
from course_utils.grading.mutants import mutants
from course_utils.grading.program import Program
from course_utils.grading.questions.model import Args, Case, Output, Part, Question

MAX_FREE_SIZE = 64  # a result of free shape stays small enough to be examined,
MAX_FREE_NUMBER = 1e6  # and its numbers small enough to be computed with
MUTANT_SECONDS = 0.6  # of the processor, to look for a slip with the same numbers


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


# -------------------------------------------------------------------------- records


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
        watch = Watch(question.packaged, learners=True)
    return run(answer, case.args, question.arguments, watch)


def trace(question: Question, answer: Any, case: Case) -> Record:
    """Run an answer on one case and take down what it computes on the way."""
    return run(answer, case.args, question.arguments, program=Program())


def outputs_of(question: Question, value: Any) -> list[Any]:
    """The outputs of an answer as a list, also when there is one."""
    return value if len(question.outputs) > 1 else [value]


def fit(question: Question, record: Record, expected: Record) -> Record:
    """Write an answer's value as the reference writes its own; see `fitted`."""
    if record.failure:
        return record
    value = fitted(record.value, expected.value)
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
    question: Question,
    value: Any,
    expected: Any,
    counted: tuple[int, ...] | None = None,
) -> tuple[str, str] | None:
    """Find a wrong type, number of results, shape or non-finite number.

    `counted` are the outputs to look at: all, if nothing is said.
    """
    call, many = f"`{question.answer}`", len(question.outputs) > 1
    if many and not (isinstance(value, list) and len(value) == len(expected)):
        came = type_of(value)
        came += f" of {len(value)}" if isinstance(value, list) else ""
        return "type", f"{call} returned a {came}, expected {returns(question)}."
    rows = zip(outputs_of(question, value), outputs_of(question, expected))
    flags_booleans = all(part.name != "boolean" for part in question.parts)
    for i, (output, (got, right)) in enumerate(zip(question.outputs, rows)):
        if counted is None or i in counted:
            found = explain_output(output, got, right, flags_booleans)
            if found:
                return found
    return None


def explain_output(
    output: Output, got: Any, right: Any, booleans: bool = True
) -> tuple[str, str] | None:
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
        if got.ndim != right.ndim or not all(0 < n <= MAX_FREE_SIZE for n in got.shape):
            return "shape", (
                f"{name} has shape {got.shape}, expected {right.ndim} axes "
                f"{axes_of(output, right.ndim)} of 1 to {MAX_FREE_SIZE} each."
            )
        if np.isfinite(got).all() and np.abs(got).max(initial=0) > MAX_FREE_NUMBER:
            return "too_large", (
                f"{name} holds numbers beyond {MAX_FREE_NUMBER:,.0f}, where rounding "
                "decides what is larger: choose small ones."
            )
    elif got.shape != right.shape and not right.ndim:
        return "shape", f"{name} has shape {got.shape}, expected a single number."
    elif got.shape != right.shape:
        return "shape", (
            f"{name} has shape {got.shape}, expected {right.shape} = "
            f"{axes_of(output, right.ndim)}."
        )
    elif booleans and right.dtype == bool and got.dtype != bool:
        return "type", (
            f"{name} holds numbers, expected True and False: finish it with `.bool()` "
            "or a comparison."
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
    pairs = zip(outputs_of(question, expected), outputs_of(question, value))
    for output, (right, got) in zip(question.outputs, pairs):
        numbers = isinstance(right, np.ndarray) and right.dtype != bool
        if numbers and got.dtype == bool:
            return "type", f"`{output.name}` holds True and False, expected numbers."
    return None


def entry(index: Any, output: Output, ndim: int) -> str:
    """Name an entry of an output: `weights[0, 2]` (query 0, key 2)."""
    if not ndim:
        return f"`{output.name}`"
    where = ", ".join(map(str, index))
    axes = axes_of(output, ndim).strip("()").split(", ")
    named = ", ".join(f"{axis} {i}" for axis, i in zip(axes, index))
    return f"`{output.name}[{where}]`" + (f" ({named})" if len(axes) == ndim else "")


def inputs_of(question: Question, args: Args) -> str:
    """Say with which inputs: numbers and texts as they are, the rest by its shape."""
    said: list[str] = []
    for name, x in zip(question.arguments, args):
        if isinstance(x, np.ndarray) and len(said) < 3:
            said.append(f"{name} of shape {x.shape}")
        elif isinstance(x, int | float | str):
            said.append(f"{name}={x!r}")
    return f" with {', '.join(said)}" if said else ""


def explain_values(question: Question, wrong: list[Wrong]) -> tuple[str, str]:
    """Show how the first wrong output differs, and the first entry that does."""
    i = wrong[0].output
    output = question.outputs[i]
    mine = [x for x in wrong if x.output == i]
    if not question.arguments:  # the expected value is the answer
        word = "number" if isinstance(mine[0].right, int | float) else "answer"
        return "values", (
            f"`{output.name}` is not the right {word}. Begin again from here: "
            f"{question.next_step}"
        )
    numbers = all(
        isinstance(x, np.ndarray | int | float) and not isinstance(x, bool)
        for x in (mine[0].got, mine[0].right)
    )
    where = inputs_of(question, mine[0].args)
    if not numbers:
        came, due = (f"{x!r}"[:60] for x in (mine[0].got, mine[0].right))
        return "values", f"`{output.name}` is {came}, expected {due}{where}."
    got, right = np.asarray(mine[0].got, float), np.asarray(mine[0].right, float)
    how = {relation(x.got, x.right) for x in mine}
    said = f"`{output.name}` {how.pop()}; " if len(how) == 1 and "" not in how else ""
    close = np.isclose(
        got, right, question.tolerance, question.tolerance / 10, equal_nan=True
    )
    index = tuple(int(n) for n in np.argwhere(~close)[0]) if not close.all() else ()
    share = f", {int((~close).sum())} of {close.size} entries differ" * (close.size > 1)
    first = entry(index, output, right.ndim)
    return "values", (
        f"{said}{first} is {got[index]:.5g}, expected {right[index]:.5g}{where}{share}."
    )


# ------------------------------------------------------------------------- the verdict


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
) -> bool:
    """Tell whether every case of a part came out right, its arguments unharmed.

    `harmless` forgives a changed argument.
    """
    steps = set()
    counted = outputs_counted(question, part)
    for case, expected, record in zip(cases, right, records):
        if case.part is not part:
            continue
        if record.failure or (record.mutated and not harmless):
            return False
        if explain_form(question, record.value, expected.value, counted):
            return False
        if not accepted(question, part, case.args, record.value, expected.value):
            return False
        steps.add(record.steps)
    return not part.constant_steps or len(steps) == 1


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


@dataclass(frozen=True)
class Wrong:
    """One output of one case that is not what it should be."""

    case: int
    output: int
    args: Args
    got: Any
    right: Any


def wrong_outputs(
    question: Question, cases: list[Case], right: list, records: list
) -> list[Wrong]:
    """List the outputs that differ from the reference's, for answers of right form."""
    found = []
    for number, (case, expected, record) in enumerate(zip(cases, right, records)):
        form = explain_form(question, record.value, expected.value)
        if record.failure or (form and form[0] != "not_finite"):
            continue
        pairs = zip(
            outputs_of(question, record.value), outputs_of(question, expected.value)
        )
        for i, (got, due) in enumerate(pairs):
            if not same(got, due, question.tolerance):
                found.append(Wrong(number, i, case.args, got, due))
    return sorted(found, key=lambda x: x.output)


def is_telling(value: Any) -> bool:
    """Whether equal values are no accident: many numbers, or one that is no count."""
    if isinstance(value, np.ndarray) and value.size > 1:
        return True
    return isinstance(value, np.ndarray | int | float) and (
        float(value) != round(float(value), 2) or abs(float(value)) > 20
    )


def agrees(
    question: Question,
    answer: Any,
    outputs: list[int],
    cases: list,
    right: list,
    records: list,
) -> bool:
    """Whether an answer gives the learner's values in some outputs, in every case.

    In some case it must be wrong in the first of them.
    """
    wrong = False
    for case, expected, record in zip(cases, right, records):
        try:
            made = fit(question, run(answer, case.args, question.arguments), expected)
            values, due = (outputs_of(question, x.value) for x in (made, expected))
            got = outputs_of(question, record.value)
            equal = all(same(values[i], got[i], question.tolerance) for i in outputs)
        except Exception:  # whatever form the two have
            return False
        if made.failure or not equal:
            return False
        i = outputs[0]
        wrong = wrong or not same(values[i], due[i], question.tolerance)
    return wrong


def find_equal(
    question: Question, cases: list[Case], right: list, records: list[Record]
) -> tuple[str, str] | None:
    """Recognise a known wrong answer by doing the same in every case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some mistakes are deprecated besides
        for mistake in question.mistakes:
            if all(
                same_record(
                    fit(question, ask(question, mistake.wrong, case), expected), record
                )
                for case, expected, record in zip(cases, right, records)
            ):
                return mistake.id, mistake.hint
    return None


def find_by_output(
    question: Question, cases: list, right: list, records: list, wrong: list[Wrong]
) -> tuple[str, str] | None:
    """Recognise a known mistake in each wrong output alone; two may come together."""
    found: dict[str, str] = {}
    bad = dict.fromkeys(x.output for x in wrong)
    if len(question.outputs) == 1:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in dict.fromkeys(x.output for x in wrong if is_telling(x.got)):
            for mistake in question.mistakes:
                if agrees(question, mistake.wrong, [i], cases, right, records):
                    name = question.outputs[i].name
                    if mistake.id not in found:
                        found[mistake.id] = f"in `{name}` it is as if: {mistake.hint}"
                    break
    if not found:
        return None
    fine = [f"`{x.name}`" for i, x in enumerate(question.outputs) if i not in bad]
    hints = "; and ".join(found.values())
    if fine:  # the mistake spoils these as well, so this is not quite the same one
        return f"as {next(iter(found))}", f"right: {', '.join(fine)}; {hints}"
    return next(iter(found)), hints


def find_mutant(
    question: Question, cases: list, right: list, records: list, wrong: list[Wrong]
) -> tuple[str, str] | None:
    """Recognise a small change of the solution that gives the same wrong numbers."""
    if not question.arguments or any(part.accepts for part in question.parts):
        return None
    bad = {x.output for x in wrong}
    fine = [i for i in range(len(question.outputs)) if i not in bad]
    wrong = [x for x in wrong if is_telling(x.got)]
    ends = time.process_time() + MUTANT_SECONDS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in dict.fromkeys(x.output for x in wrong):
            # the case that differs first: most mutants fail there already
            start = next(x.case for x in wrong if x.output == i)
            order = [start, *(n for n in range(len(cases)) if n != start)]
            rows = [[table[n] for n in order] for table in (cases, right, records)]
            for words, mutant in mutants(question):
                if time.process_time() > ends:
                    return None
                if agrees(question, mutant, [i, *fine], *rows):
                    name = f"`{question.outputs[i].name}`"
                    return "mutant", (
                        f"Your {name} is what the solution gives if {words}."
                    )
    return None


def find_departure(question: Question, seed: int | str, records: list[Record]) -> str:
    """Say where a traced answer leaves the solution's path, if no case objects."""
    cases, right = expectations(question, seed)
    records = [fit(question, *pair) for pair in zip(records, right)]
    wrong = wrong_outputs(question, cases, right, records)
    theirs = {
        n: trace(question, question.reference, cases[n]).program
        for n in {x.case for x in wrong}
    }
    for i in dict.fromkeys(x.output for x in wrong):
        name = question.outputs[i].name
        said = [
            located(
                records[x.case].program, theirs[x.case], x.args, x.got, x.right, name
            )
            for x in wrong
            if x.output == i and isinstance(x.got, np.ndarray | int | float)
        ]
        spoken = [sentence for sentence in said if sentence]
        if len(set(spoken)) == 1 and len(spoken) >= min(2, len(said)):
            return spoken[0]
    return ""


def reads(question: Question, argument: str, record: Record) -> bool:
    """Whether an answer computes with an argument, as far as it was traced."""
    place = -2 - question.arguments.index(argument)
    return any(place in step.parents for step in record.program)


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
    question: Question, cases: list, right: list, records: list, lost: list, where: str
) -> tuple[str, str]:
    """Name what is wrong, the most telling reason first.

    `where` says at which step the answer leaves the path, if that is known.
    """
    call = f"`{question.answer}`"
    failures = [record.failure for record in records if record.failure]
    for kind in ("unanswered", "time"):
        failure = next((f for f in failures if f.kind == kind), None)
        if failure:
            return kind, explain_failure(failure, question)
    used = not_allowed(question, records)
    if used:
        return explain_use(question, used[0])
    mutated = next((r.mutated[0] for r in records if r.mutated), None)
    harm = (
        f"{call} changes its argument `{mutated}` in place: whoever called it still "
        "needs it. Make a new tensor instead."
    )
    if mutated and all(
        part_is_right(question, part, cases, right, records, harmless=True)
        for part in lost
    ):
        return "mutated", f"the result is right, but {harm}"
    found = find_equal(question, cases, right, records)
    if found:
        return found
    only = (
        lost[0].only_failure_hint if len(lost) == 1 and len(question.parts) > 1 else ""
    )
    if failures:
        sentence = explain_failure(failures[0], question)
        if only and len(failures) < len(records):
            sentence = f"{only} ({sentence})"
        return failures[0].kind, sentence
    if mutated:
        return "mutated", harm
    for expected, record in zip(right, records):
        form = explain_form(question, record.value, expected.value)
        if form and form[0] == "not_finite" and where:
            return form[0], f"{form[1]} {where}"
        if form:
            return form
    found = find_sign(question, cases, records) or explain_booleans(
        question, right[0].value, records[0].value
    )
    if found:
        return found
    if len(lost) == 1 and lost[0].constant_steps:
        return "loop", (
            f"{call} is right, but runs a Python loop over the tokens: more tokens, "
            "more lines executed. One matrix product does the work of the loop."
        )
    if only:
        return f"only {lost[0].name}", only
    wrong = wrong_outputs(question, cases, right, records)
    found = find_by_output(question, cases, right, records, wrong)
    if found and not (where and found[0].startswith("as ")):
        return found
    found = find_mutant(question, cases, right, records, wrong)
    if where:
        return "leaves", f"{where} {found[1]}" if found else where
    if found:
        return found
    for case, expected, record in zip(cases, right, records):
        ignored = case.probe and same(record.value, records[0].value, 1e-7)
        if (
            ignored
            and not reads(question, case.probe, record)
            and not same(expected.value, right[0].value)
        ):
            return "independent", (
                f"the result of {call} does not depend on `{case.probe}`: it stays the "
                "same when that changes."
            )
    if wrong and not any(part.accepts for part in question.parts):
        return explain_values(question, wrong)
    return "values", f"not right yet: {lost[0].name}. {question.next_step}"


def judge(
    question: Question, seed: int | str, records: list[Record], where: str = ""
) -> Result:
    """Give points and a hint for the records of a seed's cases, in their order.

    `where` is what `find_departure` said of the answer.
    """
    cases, right = expectations(question, seed)
    if len(records) != len(cases):
        raise ValueError(
            f"question {question.id} has {len(cases)} cases, got {len(records)} "
            f"records."
        )
    records = [fit(question, *pair) for pair in zip(records, right)]
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
        found = diagnose(question, cases, right, records, lost, where)
        result = dataclasses.replace(result, misconception=found[0], hint=found[1])
    flags = tuple(name if ":" in name else f"library:{name}" for name in used)
    return dataclasses.replace(result, flags=flags)
