"""The tables of a class as CSV: grades, totals, and what Canvas and Moodle take."""

from __future__ import annotations

import csv
import html
import io
import re
from pathlib import Path
from typing import Any

from course_utils.grading.classroom.gradebook import Row, write_whole
from course_utils.grading.classroom.layouts import chapter_in
from course_utils.grading.classroom.roster import Roster

COLUMNS = ("student", "id", "exercise", "final", "max_score", "score", "late")


def safe_cell(value: Any) -> Any:
    """Keep a spreadsheet from taking a text, or a piece of it, for a formula.

    Where the semicolon separates columns, every piece between two is a cell.
    """
    if not isinstance(value, str):
        return value
    if value in ("-", "+"):  # Moodle's "never"
        return value
    return re.sub(r"(^|;[\s\"]*)([=+\-@\t\r＝＋－＠])", r"\1'\2", value)


def as_csv(table: list[list[Any]], safe: bool = True) -> str:
    """Write a table; numbers that are whole are written so."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for line in table:
        cells = [safe_cell(cell) for cell in line] if safe else line
        writer.writerow([f"{x:g}" if isinstance(x, float) else x for x in cells])
    return text.getvalue()


def said(row: Row) -> str:
    """All that a person should see of a row: what was corrected, then the flags."""
    reasons = [f"{x['change']} ({x['reason']})" for x in row["corrections"]]
    return "; ".join([*reasons, *row["flags"]])


def grades(rows: list[Row]) -> list[list[Any]]:
    """One line for each submission: the score, what became of it, each question."""
    questions = sorted({name for row in rows for name in row["questions"]})
    table: list[list[Any]] = [[*COLUMNS, "correction", "flags", *questions]]
    for row in rows:
        points = [row["questions"].get(name, {}) for name in questions]
        given = [x.get("corrected", x.get("points", "")) for x in points]
        fixed = [row[name] for name in (*COLUMNS, "correction")]
        table.append([*fixed, said(row), *given])
    return table


def totals(rows: list[Row]) -> list[list[Any]]:
    """One line for each student: the final points of every exercise, and their sum."""
    exercises = {row["exercise"]: row["max_score"] for row in rows if row["chapter"]}
    people: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        mine = people.setdefault((row["student"], row["id"]), {})
        mine[row["exercise"]] = row["final"]
    most = sum(exercises.values())
    table: list[list[Any]] = [["student", "id", *exercises, "total", "max_total"]]
    for (student, number), points in sorted(people.items()):
        each: list[Any] = [points.get(exercise, "") for exercise in exercises]
        total = round(sum(points.get(exercise, 0.0) for exercise in exercises), 2)
        table.append([student, number, *each, total, most])
    return table


def for_canvas(roster: Roster, rows: list[Row]) -> list[list[Any]]:
    """Canvas' own export with a column for each exercise, to be imported there.

    A column that is there already, such as "06_queries_keys_values (123)", is filled.
    """
    kept = [
        column
        for column in roster.columns
        if column in ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
    ]
    most = {row["chapter"]: row["max_score"] for row in rows if row["chapter"]}
    names = {row["chapter"]: row["exercise"] for row in rows if row["chapter"]}
    names |= {chapter_in(x): x for x in roster.columns if chapter_in(x) in names}
    final = {(row["id"], row["chapter"]): row["final"] for row in rows}
    table: list[list[Any]] = [[*kept, *names.values()]]
    for line in roster.lines:
        number = line["ID"]
        points = [final.get((number, c), "") if number else most[c] for c in names]
        table.append([*(line[column] for column in kept), *points])
    return table


def for_moodle(roster: Roster, rows: list[Row]) -> list[list[Any]]:
    """The grading worksheet of a Moodle assignment, grades and comments filled in.

    Moodle takes a comment for HTML, and in a hint stands what a student's code said.
    """
    mine = {row["id"]: row for row in rows}
    table: list[list[Any]] = [list(roster.columns)]
    for line in roster.lines:
        filled: dict[str, Any] = dict(line)
        row = mine.get(line["Identifier"])
        if row and row["flags"] != ["nothing handed in"]:
            most = re.sub(r",", ".", line.get("Maximum Grade", ""))
            scale = float(most) / row["max_score"] if is_number(most) else 1.0
            filled["Grade"] = round(row["final"] * scale, 2)
            filled["Feedback comments"] = html.escape(feedback(row), quote=False)
        table.append([filled.get(column, "") for column in roster.columns])
    return table


def is_number(text: str) -> bool:
    """Tell whether a cell holds a number."""
    return bool(re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text))


def feedback(row: Row) -> str:
    """What a student should read beside a grade: one hint for each lost point."""
    hints = [
        f"{name}: {result['points']} of {result['max_points']}. {result['hint']}"
        for name, result in row["questions"].items()
        if result["points"] < result["max_points"]
    ]
    late = [f"Late: {row['late']:g} points lost."] if row["late"] else []
    given = [f"Corrected, {x['change']}: {x['reason']}" for x in row["corrections"]]
    return " ".join([*late, *given, *hints]) or "Everything is right."


def write_tables(out: Path, rows: list[Row], roster: Roster | None) -> list[Path]:
    """Write every table that this class can have; returns where they are."""
    files = {out: grades(rows), out.with_name(f"{out.stem}_totals.csv"): totals(rows)}
    if roster and roster.kind == "canvas":
        files[out.with_name(f"{out.stem}_canvas.csv")] = for_canvas(roster, rows)
    elif roster and roster.kind == "moodle":
        for chapter in sorted({row["chapter"] for row in rows} - {""}):
            mine = [row for row in rows if row["chapter"] == chapter]
            path = out.with_name(f"{out.stem}_moodle_{chapter}.csv")
            files[path] = for_moodle(roster, mine)
    for path, table in files.items():
        write_whole(path, as_csv(table))
    return list(files)
