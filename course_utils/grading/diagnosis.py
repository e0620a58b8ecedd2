"""Judge records: points, and one line that names what is wrong.

The most telling reason comes first: a mistake that the question knows, a wrong form, an
answer's own step where it leaves the solution's path, a slip in the solution with the
same numbers, and where nothing is known the first entry that differs.
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from itertools import permutations
from typing import Any

import numpy as np

from course_utils.grading.answer_runner import Record, run
from course_utils.grading.comparison import same
from course_utils.grading.contrast import modes
from course_utils.grading.departure import line, located, word
from course_utils.grading.forbidden_calls import explain_use, not_allowed
from course_utils.grading.mutants import mutants
from course_utils.grading.probes import find_unused, is_fair
from course_utils.grading.questions.model import Args, Case, Question
from course_utils.grading.scoring import (
    Result,
    ask,
    expectations,
    fit,
    is_open,
    part_is_right,
    score,
    trace,
)
from course_utils.grading.sentences import (
    Wrong,
    explain_failure,
    explain_form,
    explain_values,
    outputs_of,
)
from course_utils.grading.shares import explain_shares

COURSE_NAMES = ("queries", "keys", "values", "scores", "weights", "context", "logits")
ENOUGH_BITS = 16.0
MUTANT_SECONDS = 0.8  # of the processor, to look for a slip with the same numbers


def same_record(left: Record, right: Record) -> bool:
    """Tell whether two answers did the same: the same values, or the same failure."""
    if left.failure or right.failure:
        if not (left.failure and right.failure):
            return False
        known = [(f.kind, f.type, f.message) for f in (left.failure, right.failure)]
        return known[0] == known[1]
    return left.mutated == right.mutated and same(left.value, right.value)


def sign_fits(sign: Any, args: Args, record: Record) -> bool:
    """Ask a mistake's sign about a value that may have any form."""
    try:
        return bool(sign(args, record.value))
    except Exception:  # as above
        return False


def wrong_outputs(
    question: Question,
    cases: list[Case],
    right: list,
    records: list,
    passing: tuple[str, ...] = ("not_finite",),
) -> list[Wrong]:
    """List the outputs that differ from the reference's, for answers of right form.

    `passing` are the faults of form that are let through.
    """
    found = []
    for number, (case, expected, record) in enumerate(zip(cases, right, records)):
        form = explain_form(question, record.value, expected.value)
        if record.failure or (form and form[0] not in passing):
            continue
        pairs = zip(
            outputs_of(question, record.value), outputs_of(question, expected.value)
        )
        for i, (got, due) in enumerate(pairs):
            if not same(got, due, question.tolerance):
                found.append(Wrong(number, i, case.args, got, due))
    return sorted(found, key=lambda x: x.output)


def bits(value: Any) -> float:
    """About how many choices it took to write a value down: equal by accident?"""
    if not isinstance(value, np.ndarray | int | float):
        return 0.0
    numbers = np.asarray(value, float)
    numbers = numbers[np.isfinite(numbers)]
    large = np.size(value) == 1 and (np.abs(numbers) > 20).any()
    if large or (numbers != numbers.round(2)).any():
        return ENOUGH_BITS
    return float(numbers.size * np.log2(max(len(np.unique(numbers)), 1)))


def telling(wrong: list[Wrong]) -> list[int]:
    """The outputs whose wrong values, all cases together, are equal by no accident."""
    return [
        i
        for i in dict.fromkeys(x.output for x in wrong)
        if sum(bits(x.got) for x in wrong if x.output == i) >= ENOUGH_BITS
    ]


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
    if len(question.outputs) == 1 or is_open(question):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in telling(wrong):
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


def find_in_part(
    question: Question, cases: list, right: list, records: list, lost: list
) -> tuple[str, str] | None:
    """Recognise a known mistake that gives all of one part's values, not the others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in lost:
            rows = [row for row in zip(cases, right, records) if row[0].part is part]
            drawn, due, made = (list(column) for column in zip(*rows))
            if not telling(wrong_outputs(question, drawn, due, made)):
                continue
            for mistake in question.mistakes:
                if all(
                    same_record(
                        fit(question, ask(question, mistake.wrong, case), expected),
                        record,
                    )
                    for case, expected, record in rows
                ):
                    hint = f"in “{part.name}” it is as if: {mistake.hint}"
                    return f"as {mistake.id}", hint
    return None


def find_mutant(
    question: Question, cases: list, right: list, records: list, wrong: list[Wrong]
) -> tuple[str, str] | None:
    """Recognise a small change of the solution that gives the same wrong numbers."""
    if not question.arguments or is_open(question):
        return None
    bad = {x.output for x in wrong}
    fine = [i for i in range(len(question.outputs)) if i not in bad]
    ends = time.process_time() + MUTANT_SECONDS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in telling(wrong):
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


def find_order(
    question: Question, cases: list[Case], right: list, records: list
) -> tuple[str, str] | None:
    """Recognise results that are right, in another order."""
    count = len(question.outputs)
    if not 1 < count <= 3 or not all(
        isinstance(record.value, list) and len(record.value) == count
        for record in records
    ):
        return None
    for order in list(permutations(range(count)))[1:]:
        turned = [
            fit(
                question,
                dataclasses.replace(record, value=[record.value[i] for i in order]),
                expected,
            )
            for record, expected in zip(records, right)
        ]
        if all(
            part_is_right(question, part, cases, right, turned, True, True)
            for part in question.parts
        ):
            alike = is_open(question) and all(
                np.ndim(x) == np.ndim(y)
                for record, expected in zip(records, right)
                for x, y in zip(record.value, outputs_of(question, expected.value))
            )
            signed = find_sign(question, cases, records) if alike else None
            if signed:  # where many answers are right, the order is no slip of the pen
                return signed
            names = ", ".join(f"`{output.name}`" for output in question.outputs)
            return "order", f"the results are right, in the wrong order: return {names}"
    return None


def find_exchanged(
    question: Question, wrong: list[Wrong], right: list
) -> tuple[str, str] | None:
    """Recognise an output that is right in the place of another."""
    if is_open(question):
        return None
    for i in telling(wrong):
        mine = [x for x in wrong if x.output == i]
        for j, output in enumerate(question.outputs):
            given_twice = output.axes is None and all(x.output != j for x in wrong)
            if j != i and not given_twice:
                due = [outputs_of(question, right[x.case].value)[j] for x in mine]
                if all(same(x.got, y) for x, y in zip(mine, due)):
                    return "exchanged", (
                        f"your `{question.outputs[i].name}` is the right "
                        f"`{output.name}`: it stands in the wrong place."
                    )
    return None


def find_departure(question: Question, seed: int | str, records: list[Record]) -> str:
    """Say where a traced answer leaves the solution's path, if no case objects."""
    if is_open(question):  # there are other paths
        return ""
    cases, right = expectations(question, seed)
    records = [fit(question, *pair) for pair in zip(records, right)]
    wrong = wrong_outputs(question, cases, right, records)
    theirs = {
        n: trace(question, question.reference, cases[n]).program
        for n in {x.case for x in wrong}
    }
    outputs = [output.name for output in question.outputs]
    # a solution that reuses an argument's name means something else by it
    known = {*outputs, *(set(COURSE_NAMES) - set(question.arguments))}
    for i in dict.fromkeys(x.output for x in wrong):
        name = outputs[i]
        said = [
            located(
                records[x.case].program,
                theirs[x.case],
                x.args,
                x.got,
                x.right,
                name,
                known,
            )
            for x in wrong
            if x.output == i and isinstance(x.got, np.ndarray | int | float)
        ]
        spoken = [sentence for sentence in said if sentence]
        enough = max(min(2, len(said)), len(said) / 2)
        if len(set(spoken)) == 1 and len(spoken) >= enough:
            return spoken[0]
    return ""


def find_overflow(question: Question, records: list[Record]) -> str:
    """Say in which line of a traced answer the first infinite number or NaN appears."""
    for record in records:
        bad = [
            np.isnan(step.value).any() or np.isposinf(step.value).any()
            for step in record.program
        ]
        first = next((i for i, is_bad in enumerate(bad) if is_bad), None)
        if first is not None and record.value is not None:
            step = record.program[first]
            return f"It begins with the {word(step)} in {line(step)}."
    return ""


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
    question: Question,
    cases: list,
    right: list,
    records: list,
    lost: list,
    where: str,
    mutate: bool = True,
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
    if used and len(failures) < len(records):
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
    found = find_equal(question, cases, right, records) or find_order(
        question, cases, right, records
    )
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
    forms = [explain_form(question, r.value, e.value) for r, e in zip(records, right)]
    form = next((x for x in forms if x and x[0] != "not_finite"), None)
    if form and form[0] == "shape":
        shaped = wrong_outputs(question, cases, right, records, ("shape",))
        return find_by_output(question, cases, right, records, shaped) or form
    if form:
        return form
    wrong = wrong_outputs(question, cases, right, records)
    plain = [x for x in wrong if not forms[x.case]]
    form = next((x for x in forms if x), None)
    if form and not plain:  # it is right wherever it is finite
        begins = find_overflow(question, records)
        return form[0], " ".join(x for x in (form[1], begins or where) if x)
    found = find_sign(question, cases, records)
    if found:
        return found
    if all(
        part.constant_steps
        and part_is_right(question, part, cases, right, records, any_steps=True)
        for part in lost
    ):
        return "loop", only or (
            f"{call} is right, but runs a Python loop over the tokens or over the "
            "rows of the batch: more of them, more calls. One matrix product does the "
            "work of the loop."
        )
    if only:
        return f"only {lost[0].name}", only
    found = find_by_output(question, cases, right, records, wrong)
    if found and not (where and found[0].startswith("as ")):
        return found
    found = find_exchanged(question, wrong, right)
    if found:
        return found
    unused = find_unused(question, cases, right, records)
    found = unused
    if mutate and not found:
        found = find_mutant(question, cases, right, records, wrong)
    if not found:  # a known mistake says more than the line where it happens
        in_part = find_in_part(question, cases, right, records, lost)
        if in_part:
            return in_part
    if where:
        return "leaves", f"{where} {found[1]}" if found else where
    if found:
        return found
    if wrong and not is_open(question):
        mode = modes(question, cases, {x.case for x in wrong})
        kind, said = explain_values(question, plain or wrong)
        said = explain_shares(question, plain or wrong) or said
        return kind, f"{mode} {said}".strip()
    return "values", f"not right yet: {lost[0].name}; {question.next_step}"


def judge(
    question: Question,
    seed: int | str,
    records: list[Record],
    where: str = "",
    mutate: bool = True,
) -> Result:
    """Give points and a hint for the records of a seed's cases, in their order.

    `where` is what `find_departure` said of the answer; `mutate` says whether to look
    for a slip with the same numbers, which takes its time.
    """
    cases, right = expectations(question, seed)
    if len(records) != len(cases):
        raise ValueError(
            f"question {question.id} has {len(cases)} cases, got {len(records)} "
            f"records."
        )
    records = [fit(question, *pair) for pair in zip(records, right)]
    result, lost = score(question, cases, right, records)
    if not lost:
        return result
    rows = zip(cases, right, records)  # a probe may be no fair question: it may fail
    fair = [x for x in rows if not x[0].probe or is_fair(x[1], x[2])]
    cases, right, records = (list(column) for column in zip(*fair))
    found = diagnose(question, cases, right, records, lost, where, mutate)
    return dataclasses.replace(result, misconception=found[0], hint=found[1])
