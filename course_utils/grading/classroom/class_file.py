"""What you decide about a class, in one file that outlives every run of the grader.

roster = "roster.csv"
corrections = "corrections.csv"   # student,exercise,question,points,reason

[due]
06 = 2026-11-20T23:59:00+01:00

[late]
grace = 15      # minutes
per_day = 10    # per cent of the exercise's points, for each day begun
most = 50       # per cent
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from course_utils.grading.classroom.layouts import exercise_folder
from course_utils.grading.classroom.roster import Roster, read_roster, read_table
from course_utils.grading.questions import EXERCISES

COLUMNS = ("student", "exercise", "question", "points", "reason")


@dataclass(frozen=True)
class Correction:
    """Points that a person gave, and why.

    With a question they are that question's; with "late" what lateness costs; with
    nothing they are added to the score.
    """

    student: str
    chapter: str
    question: str
    points: float
    reason: str
    line: int


@dataclass(frozen=True)
class LatePolicy:
    """What lateness costs, in per cent of an exercise's points."""

    grace: float = 0.0  # minutes
    per_day: float = 0.0
    most: float = 100.0

    def lost(self, late: timedelta, points: float) -> float:
        """Points lost by a submission that came so late."""
        if late <= timedelta(minutes=self.grace):
            return 0.0
        days = math.ceil(late / timedelta(days=1))
        return round(points * min(self.per_day * days, self.most) / 100, 2)


@dataclass(frozen=True)
class Class:
    """The class file, read and checked."""

    roster: Roster | None = None
    due: dict[str, datetime] = field(default_factory=dict)
    late: LatePolicy = LatePolicy()
    corrections: tuple[Correction, ...] = ()
    files: tuple[Path, ...] = ()  # that it was read from: never to be written


def read_class(path: Path | None) -> Class:
    """Read a class file; whatever is wrong in it is said in a sentence."""
    if path is None:
        return Class()
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a class file: {error}.") from error
    known = {"roster": str, "corrections": str, "due": dict, "late": dict}
    for name, value in said.items():
        if name not in known or not isinstance(value, known[name]):
            raise ValueError(
                f"{path}: {name!r} is not understood; a class file has the texts "
                "`roster` and `corrections` and the tables `[due]` and `[late]`."
            )
    beside = path.parent
    roster = read_roster(beside / said["roster"]) if "roster" in said else None
    corrections: tuple[Correction, ...] = ()
    if "corrections" in said:
        corrections = read_corrections(beside / said["corrections"])
    due = {
        read_chapter(name, path): read_time(time, name, path)
        for name, time in said.get("due", {}).items()
    }
    files = [path, *(beside / said[x] for x in ("roster", "corrections") if x in said)]
    policy = read_policy(said.get("late", {}), path)
    return Class(roster, due, policy, corrections, tuple(files))


def read_chapter(name: str, path: Path) -> str:
    """Read the name of an exercise: `06`, or as its notebook is called."""
    chapter = exercise_folder(name)
    if not chapter:
        raise ValueError(
            f"{path}: there is no exercise {name!r}, expected {', '.join(EXERCISES)}."
        )
    return chapter


def read_time(value: Any, name: str, path: Path) -> datetime:
    """Read a deadline: a date and time with its zone."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError(
            f"{path}: {name} is due {value}, expected date, time and zone, as in "
            "2026-11-20T23:59:00+01:00."
        )
    return value


def read_policy(said: dict[str, Any], path: Path) -> LatePolicy:
    """Read what lateness costs."""
    for name, value in said.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if name not in ("grace", "per_day", "most") or not number or not value >= 0:
            raise ValueError(
                f"{path}: {name} = {value!r} is not understood under [late], expected "
                "`grace` (minutes), `per_day` and `most` (per cent), none negative."
            )
    return LatePolicy(**{name: float(value) for name, value in said.items()})


def read_corrections(path: Path) -> tuple[Correction, ...]:
    """Read the corrections; each has a reason, and none contradicts another."""
    columns, lines = read_table(path)
    if not set(COLUMNS) <= set(columns):
        raise ValueError(f"{path} needs the columns {', '.join(COLUMNS)}.")
    found: dict[tuple[str, str, str], Correction] = {}
    for number, line in enumerate(lines, start=2):
        if not any(line.values()):
            continue
        where = f"{path}, line {number}"
        chapter = read_chapter(line["exercise"], Path(where))
        question = line["question"]
        try:
            points = float(line["points"])
        except ValueError:
            points = math.nan
        if not math.isfinite(points) or (points < 0 and question):
            raise ValueError(f"{where}: {line['points']!r} is no number of points.")
        if not line["reason"]:
            raise ValueError(f"{where}: a correction needs a reason.")
        key = (line["student"], chapter, question)
        if question and key in found:
            raise ValueError(f"{where} corrects what line {found[key].line} corrects.")
        if not question:
            key = (*key[:2], f"added in line {number}")
        found[key] = Correction(
            line["student"], chapter, question, points, line["reason"], number
        )
    return tuple(found.values())
