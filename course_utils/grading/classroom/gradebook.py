"""Keep results under what they depend on, and make the rows of a class of them.

A result belongs to the text of a submission, the questions, the seed and the limits,
and to nobody's name: what did not change is never graded again. The file of results is
only added to, a line at a time, so that a kill costs no line that was written.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

from course_utils.grading.classroom.class_file import Class, Correction
from course_utils.grading.classroom.submissions import Submission
from course_utils.grading.questions import EXERCISES
from course_utils.grading.sandbox.wire_format import plain_text
from course_utils.grading.scoring import Result

Row = dict[str, Any]
MAX_FLAGS, MAX_FLAG = 40, 200
NO_TIME = "no timestamp.txt, so lateness is not known"
RESULT = {
    "key": str,
    "score": int,
    "max_score": int,
    "flags": list,
    "notes": list,
    "questions": dict,
}


def digest(*parts: str) -> str:
    """Name texts by a fingerprint, unlike for unlike texts."""
    whole = "".join(f"{len(part)} {part}" for part in parts)
    return hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:32]


def capped(flags: Iterable[str]) -> list[str]:
    """Keep flags short, few and plain enough for a table, whatever is in them."""
    kept = [plain_text(flag)[:MAX_FLAG] for flag in dict.fromkeys(flags)]
    more = [f"and {len(kept) - MAX_FLAGS} more flags"] * (len(kept) > MAX_FLAGS)
    return kept[:MAX_FLAGS] + more


def result_row(
    key: str, results: list[Result], flags: Iterable[str], notes: Iterable[str] = ()
) -> Row:
    """Put the results of one submission into one row, with nobody's name."""
    return {
        "key": key,
        "score": sum(result.points for result in results),
        "max_score": sum(result.max_points for result in results),
        "flags": capped(flags),
        "notes": capped(notes),
        "questions": {result.question: asdict(result) for result in results},
    }


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    beside = path.with_name(f"{path.name}.part")
    beside.write_text(text, encoding="utf-8", newline="")
    os.replace(beside, path)


# ------------------------------------------------------------------------------ results


def read_results(path: Path) -> tuple[dict[str, Row], int]:
    """Return the results that are kept, by key, and how many lines were damaged."""
    rows: dict[str, Row] = {}
    damaged = 0
    if path.exists():
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in filter(str.strip, file):
                try:
                    row = json.loads(line)
                    if {k: type(v) for k, v in row.items()} != RESULT:
                        raise ValueError("not a result")
                    rows[row["key"]] = row
                except (ValueError, TypeError, AttributeError, RecursionError):
                    damaged += 1
    return rows, damaged


def append_result(path: Path, row: Row) -> None:
    """Add one result and see it onto the disk."""
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps(row) + "\n")
        file.flush()
        os.fsync(file.fileno())


# --------------------------------------------------------------------------------- rows


def row_of(submission: Submission, result: Row, about: Class) -> Row:
    """Say whose a result is, when it came and what lateness costs."""
    person = None
    flags = [*submission.flags, *result["flags"]]
    if about.roster:
        person = about.roster.find(submission.student, submission.number)
        if person is None:
            flags.append("not on the roster")
    due, time = about.due.get(submission.chapter), submission.time
    late, lost = timedelta(0), 0.0
    if due and time:
        late = max(time - due, late)
        lost = about.late.lost(late, result["max_score"])
    elif due and "Canvas calls it late" in flags:
        flags.append("how late is not known, so it cost nothing")
    elif due:
        flags.append(NO_TIME)
    return {
        **result,
        "student": person.name if person else submission.student,
        "id": person.id if person else submission.number,
        "exercise": submission.exercise,
        "chapter": submission.chapter,
        "file": submission.path.name,
        "place": digest(os.fsencode(submission.path).hex()),
        "time": time.isoformat() if time else "",
        "hours_late": round(late / timedelta(hours=1), 1),
        "late": lost,
        "flags": capped(flags),
        "corrections": [],
    }


def missing_rows(rows: list[Row], about: Class, points: dict[str, int]) -> list[Row]:
    """A row for everyone on the roster who handed in nothing, for each exercise."""
    there = {(row["id"], row["chapter"]) for row in rows}
    return [
        {
            **dict.fromkeys(("key", "time", "file", "place"), ""),
            **dict.fromkeys(("score", "late", "hours_late"), 0),
            "student": person.name,
            "id": person.id,
            "exercise": EXERCISES[chapter],
            "chapter": chapter,
            "max_score": points[chapter],
            "flags": ["nothing handed in"],
            "notes": [],
            "questions": {},
            "corrections": [],
        }
        for chapter in sorted({row["chapter"] for row in rows} - {""})
        for person in (about.roster.people if about.roster else ())
        if (person.id, chapter) not in there
    ]


def refuse_doubles(rows: list[Row], about: Class) -> None:
    """Refuse two submissions of one person for one exercise."""
    seen: dict[tuple[str, str], Row] = {}
    for row in rows if about.roster else ():
        if "not on the roster" in row["flags"]:
            continue
        other = seen.setdefault((row["id"], row["chapter"]), row)
        if other is not row:
            raise ValueError(
                f"{other['file']} and {row['file']} are both {row['student']}'s for "
                f"{row['exercise']}: keep one of them."
            )


def correct(rows: list[Row], about: Class) -> int:
    """Put the corrections into their rows; returns how many are of other exercises."""
    chapters = {row["chapter"] for row in rows}
    others = 0
    for correction in about.corrections:
        if correction.chapter not in chapters:
            others += 1
            continue
        mine = [row for row in rows if is_meant(correction, row, about)]
        where = f"the correction in line {correction.line}"
        if len(mine) != 1:
            count = "nobody" if not mine else f"{len(mine)} people"
            raise ValueError(
                f"{where} is for {correction.student!r} in {correction.chapter}: "
                f"{count} of that name or id has a row there."
            )
        apply(correction, mine[0], where)
    for row in rows:
        row["final"] = round(max(row["score"] + row["correction"] - row["late"], 0), 2)
    return others


def is_meant(correction: Correction, row: Row, about: Class) -> bool:
    """Tell whether a correction is for a row."""
    if correction.chapter != row["chapter"]:
        return False
    person = about.roster.find(correction.student) if about.roster else None
    named = [row["id"], row["student"]]
    return row["id"] == person.id if person else correction.student in named


def apply(correction: Correction, row: Row, where: str) -> None:
    """Put one correction into its row, beside what was found."""
    question, points = correction.question, correction.points
    known = row["questions"].get(question)
    if question == "late":
        row["late"], change = points, f"late: {points:g} points lost"
    elif not question:
        row["correction"] += points
        change = f"{points:+g} points"
    elif known and points > known["max_points"]:
        raise ValueError(
            f"{where} gives {points:g} points for {question}, which has "
            f"{known['max_points']}; leave the question empty to add points."
        )
    elif known:
        row["correction"] += points - known["points"]
        change = f"{question}: {points:g} instead of {known['points']}"
        known["corrected"] = points
    else:
        raise ValueError(
            f"{where} is for the question {question!r}, which {row['student']} has "
            f"not in {row['exercise']}; leave it empty to add points to the score."
        )
    row["corrections"].append({"change": change, "reason": correction.reason})


def untimed(rows: list[Row], about: Class) -> set[str]:
    """The exercises with a deadline of which no submission has a time."""
    there, timed = set(), set()
    for row in rows:
        there.add(row["chapter"])
        timed |= {row["chapter"]} if row["time"] else set()
    return set(about.due) & there - timed


def make_rows(
    pairs: list[tuple[Submission, Row]], about: Class, points: dict[str, int]
) -> tuple[list[Row], int]:
    """Make the whole class: rows by exercise and student, corrected."""
    rows = [row_of(*pair, about) for pair in pairs]
    unknown = untimed(rows, about)
    for row in rows:
        if row["chapter"] in unknown:  # said once, not in every row
            row["flags"] = [flag for flag in row["flags"] if flag != NO_TIME]
    refuse_doubles(rows, about)
    rows += missing_rows(rows, about, points)
    rows = [{**json.loads(json.dumps(row)), "correction": 0} for row in rows]
    others = correct(rows, about)
    rows.sort(key=lambda row: (row["exercise"], row["student"], row["id"], row["file"]))
    return rows, others
