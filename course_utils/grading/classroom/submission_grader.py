"""Examine one submission: run it in sandboxes, judge the plain values it gives."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field, replace
from typing import Any

from course_utils.grading.answer_runner import Failure, Record
from course_utils.grading.classroom.programs import (
    asks_how,
    recorded_cases,
    what_is_hidden,
)
from course_utils.grading.classroom.submissions import Notebook
from course_utils.grading.diagnosis import judge
from course_utils.grading.questions.model import Case, Question
from course_utils.grading.sandbox.replayer import DOES_NOT_END, Replayer
from course_utils.grading.sandbox.sandbox import Allowance, Isolation, Limits, converse
from course_utils.grading.sandbox.wire_format import decode_record, encode, plain_text
from course_utils.grading.scoring import Result

MAX_RESTARTS = 4
MAX_FLAGS = 20  # of cells that fail
ENDS = {
    "budget": "has no time left",
    "time": "never ends",
    "died": "ends the program",
    "output": "writes too much",
    "threads": "starts too many threads",
    "files": "makes too many files",
    "unreadable": "writes into the grader's channel",
}


def hidden_seed(secret: str, notebook: Notebook) -> str:
    """Give every submission inputs of its own: what one let slip helps no other."""
    return hashlib.sha256(f"{secret}/{notebook.digest}".encode()).hexdigest()


@dataclass
class Attempt:
    """What one worker said: the records by question, and where it ended."""

    records: dict[str, list[Record]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    programs: dict[str, list[Any]] = field(default_factory=dict)
    notes: list[tuple[int, str]] = field(default_factory=list)
    broken: dict[int, str] = field(default_factory=dict)
    cell: int | None = None  # where the worker was when it ended
    question: str | None = None
    absent: bool = False  # it called what was taken out of the package
    end: str = ""

    def listen(self, message: dict[str, Any], cases: dict[str, list[Case]]) -> None:
        """Take in one message; ValueError if it cannot be from our own worker."""
        if "parse" in message or "cell" in message:
            self.cell = cell_number(message.get("parse", message.get("cell")))
        elif "question" in message and message["question"] in cases:
            self.question = message["question"]
        elif "answered" in message and message["answered"] in cases:
            name, records = message["answered"], message.get("records")
            if type(records) is not list or len(records) != len(cases[name]):
                raise ValueError("not the records of a question")
            self.records[name] = [decode_record(record) for record in records]
            self.question = None
            programs = message.get("programs")
            self.programs[name] = checked_programs(programs, len(cases[name]))
        elif message == {"absent": True}:
            self.absent = True
        elif message.keys() == {"note"}:
            if len(self.notes) < MAX_FLAGS:
                note = plain_text(message["note"])[:80]
                self.notes.append((self.cell or 0, note))
        elif "broken" in message:
            number = cell_number(message["broken"])
            self.broken[number] = plain_text(message.get("error"))
        elif "names" in message and type(message["names"]) is list:
            self.names = [plain_text(name) for name in message["names"][:10_000]]
        elif "end" in message:
            self.end = message["end"]
        elif message != {"ready": True}:
            raise ValueError("not a message")


def cell_number(value: Any) -> int:
    """Take a cell's number from the sandbox, or refuse what is none."""
    if type(value) is not int or not 0 <= value < 10_000:
        raise ValueError("not the number of a cell")
    return value


def checked_programs(programs: Any, most: int) -> list[Any]:
    """Take programs from the sandbox, or refuse what has not their form."""
    if type(programs) is not list or len(programs) > most:
        raise ValueError("not programs")
    for program in programs:
        kept = type(program) is dict and program.keys() == {"calls", "result"}
        if kept and type(program["calls"]) is list:
            if all(type(x) is list and len(x) == 3 for x in program["calls"]):
                continue
        elif type(program) is dict and program.keys() == {"problem"}:
            program["problem"] = plain_text(program["problem"])[:80]
            continue
        raise ValueError("not a program")
    return programs


@dataclass(frozen=True)
class Examined:
    """What came of a submission: records by question, flags, notes, and its time.

    `alone` are the records without what the package has of the answers already, where
    the notebook called that; they are `records` otherwise.
    """

    records: dict[str, list[Record]] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    timed_out: bool = False
    programs: dict[str, list[Any]] = field(default_factory=dict)
    alone: dict[str, list[Record]] = field(default_factory=dict)


@dataclass(frozen=True)
class Examination:
    """One submission, the questions put to it and the means to do so."""

    notebook: Notebook
    questions: tuple[Question, ...]
    cases: dict[str, list[Case]]
    limits: Limits
    isolation: Isolation
    left: Allowance
    absent: frozenset[str] = frozenset()  # taken out of the package

    def attempt(self, questions: tuple[Question, ...], skip: set[int]) -> Attempt:
        """Run the notebook once, in a sandbox of its own, and call the answers."""
        asked = {
            question.id: {
                "answer": question.answer,
                "arguments": question.arguments,
                "watched": question.watched,
                "unwatched": first_calls(question, self.cases[question.id]),
                "packaged": question.packaged,
                "variants": question.variants,
                "recorded": recorded_cases(self.cases[question.id])
                if asks_how(question, self.isolation)
                else [],
                "cases": [encode(case.args) for case in self.cases[question.id]],
            }
            for question in questions
        }
        request = {
            "cells": self.notebook.cells,
            "skip": sorted(skip),
            "questions": asked,
        }
        attempt = Attempt()
        if self.left.is_spent():
            attempt.end = "budget"
            return attempt
        cases = {question.id: self.cases[question.id] for question in questions}
        for message in converse(
            request, self.limits, self.isolation, self.left, self.absent
        ):
            try:
                attempt.listen(message, cases)
            except (ValueError, TypeError, KeyError, RecursionError):
                attempt.end = "unreadable"
                break
        return attempt

    def failed(self, question: Question, kind: str, message: str = "") -> list[Record]:
        record = Record(failure=Failure(kind, message=message))
        return [record] * len(self.cases[question.id])

    def cell(self, index: int) -> str:
        """Name a cell as one counts them in the notebook."""
        return f"cell {self.notebook.number(index)}"

    def run(self) -> Examined:
        """Return the records of every question, and flags.

        A cell that ends its worker is left out and the rest run again. If there is no
        peace then, or a question ends it, each question gets a sandbox of its own, the
        one that ended it last.
        """
        skip: set[int] = set()
        flags: list[str] = []
        called = False
        while True:
            attempt = self.attempt(self.questions, skip)
            called = called or attempt.absent
            if attempt.end in ("done", "budget") or attempt.question:
                break
            if attempt.cell is None:
                break
            flags.append(f"{self.cell(attempt.cell)} {ENDS[attempt.end]}")
            if attempt.cell in skip or len(skip) == MAX_RESTARTS:
                break
            skip.add(attempt.cell)
        timed_out = attempt.end in ("time", "budget") or any(
            flag.endswith(ENDS["time"]) for flag in flags
        )
        records, programs = dict(attempt.records), dict(attempt.programs)
        if attempt.end != "done":
            records, programs = {}, {}
            guilty = attempt.question
            for question in sorted(self.questions, key=lambda q: q.id == guilty):
                alone = self.attempt((question,), skip)
                called = called or alone.absent
                if question.id in alone.records:
                    records[question.id] = alone.records[question.id]
                    programs[question.id] = alone.programs[question.id]
                elif alone.end != "done":
                    late = alone.end in ("time", "budget")
                    records[question.id] = self.failed(
                        question, "time" if late else "died", ENDS[alone.end]
                    )
                    if not late:
                        flags.append(f"{question.id} {ENDS[alone.end]}")
        flags += self.flags(attempt, records)
        timed_out = timed_out or "time" in attempt.broken.values()
        failures = [r.failure for rows in records.values() for r in rows if r.failure]
        timed_out = timed_out or any(failure.kind == "time" for failure in failures)
        notes = [f"{self.cell(i)}: {x}" for i, x in attempt.notes]
        if called and self.absent:  # for another purpose, perhaps
            whole = replace(self, absent=frozenset()).run()
            again = whole.timed_out or timed_out
            return replace(whole, timed_out=again, alone=records)
        return Examined(records, flags, notes, timed_out, programs)

    def flags(self, attempt: Attempt, records: dict[str, list[Record]]) -> list[str]:
        """Say what a person should know; a question with no records gets them here."""
        broken = sorted(attempt.broken.items())
        flags = [
            f"{self.cell(i)}: {'never ends' if error == 'time' else error[:80]}"
            for i, error in broken[:MAX_FLAGS]
        ]
        if len(broken) > MAX_FLAGS:
            flags.append(f"{len(broken) - MAX_FLAGS} more cells fail")
        for question in self.questions:
            flags += [f"{question.id} {x}" for x in sorted(excesses(records, question))]
            count = attempt.names.count(question.answer)
            if question.id not in records:
                records[question.id] = self.failed(question, "missing")
                flags.append(f"{question.id} missing")
            elif count > 1:
                flags.append(f"{question.id} defined {count} times")
            elif not count and attempt.names:
                flags.append(f"{question.id} renamed")
        return flags


def first_calls(question: Question, cases: list[Case]) -> int:
    """How many calls go before those that count: all, where steps are counted.

    An answer may fill a cache when it first sees a size, and runs fewer lines then.
    """
    if any(part.constant_steps for part in question.parts):
        return len(cases)
    return int(question.watched)


def excesses(records: dict[str, list[Record]], question: Question) -> set[str]:
    """Name the limits that an answer ran into."""
    failures = [r.failure for r in records.get(question.id, ()) if r.failure]
    found = {"never ends" for failure in failures if failure.kind == "time"}
    for failure in failures:
        if "MemoryError" in failure.type or "allocate memory" in failure.message:
            found.add("wants too much memory")
    return found


def examine(
    notebook: Notebook,
    questions: tuple[Question, ...],
    secret: str,
    limits: Limits,
    isolation: Isolation = "bubblewrap",
) -> Examined:
    """Run a submission on the inputs that belong to it; judge nothing yet."""
    if not notebook.cells or not questions:
        return Examined()
    seed = hidden_seed(secret, notebook)
    cases = {question.id: question.cases(seed) for question in questions}
    until = time.monotonic() + limits.total
    left = Allowance(until, limits.total, 3 * limits.output)
    absent = frozenset(name for question in questions for name in question.packaged)
    return Examination(
        notebook, questions, cases, limits, isolation, left, absent
    ).run()


def nothing_earned(question: Question, why: str, hint: str, flags: Any = ()) -> Result:
    """The result of an answer that nobody could judge."""
    parts = tuple((part.name, 0, part.points) for part in question.parts)
    return Result(question.id, 0, question.points, parts, why, hint, flags)


def judged(question: Question, seed: str, records: list[Record]) -> Result:
    """Judge one question; what the judge stumbles over costs nobody else a grade."""
    try:
        return judge(question, seed, records)
    except Exception as error:
        hint = "the answer could not be judged: a person has to look at it."
        flag = f"not judged: {plain_text(f'{type(error).__name__}: {error}')[:80]}"
        return nothing_earned(question, "unjudged", hint, (flag,))


def needs_package(
    question: Question, seed: str, found: Examined, result: Result
) -> bool:
    """Whether an answer earns less where the package has none of its own."""
    alone = found.alone.get(question.id)
    return alone is not None and judged(question, seed, alone).points < result.points


def judge_all(
    notebook: Notebook,
    questions: tuple[Question, ...],
    secret: str,
    found: Examined,
    by: Replayer,
) -> tuple[list[Result], list[str]]:
    """Judge what a submission gave; flags name what a person should look at."""
    seed, records = hidden_seed(secret, notebook), found.records
    results, flags, hung = [], [], ""
    for question in questions:
        if question.id in records:
            result = judged(question, seed, records[question.id])
        else:
            why = next((f for f in notebook.flags if f.startswith("not read: ")), "")
            hint = f"the notebook could not be read ({why.removeprefix('not read: ')})."
            result = nothing_earned(question, "unread", hint)
        results.append(result)
        flags += [f"{question.id} {flag}" for flag in result.flags]
        if not result.points:
            continue
        if question.packaged and needs_package(question, seed, found, result):
            name = " or ".join(question.packaged)
            flags.append(f"{question.id} right only with the package's own {name}")
        if asks_how(question, by.isolation):
            programs = found.programs.get(question.id, [])
            cases = question.cases(seed)
            hidden = hung or what_is_hidden(question, cases, programs, seed, by)
            if hidden:
                hung = hung or (hidden if DOES_NOT_END in hidden else "")
                flags.append(f"{question.id} how it works was not seen: {hidden}")
    return results, flags
