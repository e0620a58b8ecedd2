"""Keep grades: a journal that survives a kill, the tables, the merging of shards."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from course_utils.grading.classroom.submissions import Submission
from course_utils.grading.scoring import Result

Row = dict[str, Any]
Book = dict[str, Any]
FIELDS = {"run", "shard", "submissions", "listing", "rows"}
COLUMNS = ("student", "exercise", "score", "max_score", "flags")


def row_of(
    submission: Submission, key: str, results: list[Result], flags: Iterable[str]
) -> Row:
    """Put the results of one submission into one row."""
    return {
        "key": key,
        "student": submission.student,
        "exercise": submission.exercise,
        "score": sum(result.points for result in results),
        "max_score": sum(result.max_points for result in results),
        "flags": [*submission.flags, *flags],
        "questions": {result.question: asdict(result) for result in results},
    }


def digest(*parts: str) -> str:
    """Name texts by a fingerprint, unlike for unlike texts."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    beside = path.with_name(f"{path.name}.part")
    beside.write_text(text, encoding="utf-8", newline="")
    os.replace(beside, path)


# ------------------------------------------------------------------------------ journal


def read_journal(path: Path) -> dict[str, Row]:
    """Return the rows of an earlier, killed run by key; a torn last line is dropped."""
    rows: dict[str, Row] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                row = json.loads(line)
                rows[row["key"]] = row
            except (ValueError, TypeError, KeyError):
                continue
    return rows


def append_row(path: Path, row: Row) -> None:
    """Add one row to the journal and see it onto the disk."""
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps(row))
        file.flush()
        os.fsync(file.fileno())


# ------------------------------------------------------------------------------- tables


def safe_cell(value: Any) -> Any:
    """Keep a spreadsheet from taking a text, or a piece of it, for a formula.

    Where the semicolon separates columns, every piece between two is a cell.
    """
    if not isinstance(value, str):
        return value
    return re.sub(r"(^|;[\s\"]*)([=+\-@\t\r＝＋－＠])", r"\1'\2", value)


def as_csv(rows: list[Row]) -> str:
    """Write the table: student, exercise, score, max_score, flags, then questions."""
    questions = sorted({name for row in rows for name in row["questions"]})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, *questions])
    for row in rows:
        fixed = [row[name] for name in COLUMNS[:-1]] + ["; ".join(row["flags"])]
        points = [row["questions"].get(q, {}).get("points", "") for q in questions]
        writer.writerow([safe_cell(cell) for cell in [*fixed, *points]])
    return text.getvalue()


def write_book(out: Path, book: Book) -> None:
    """Write the table and, beside it, everything that is known as JSON."""
    book["rows"].sort(key=lambda row: (row["exercise"], row["student"], row["key"]))
    for row in book["rows"]:
        row.pop("cpu", None)
    write_whole(out.with_suffix(".json"), json.dumps(book, indent=1) + "\n")
    write_whole(out, as_csv(book["rows"]))


# ------------------------------------------------------------------------------- shards


def read_shard(text: str) -> tuple[int, int]:
    """Read `2/8`: the second of eight shares."""
    index, slash, count = text.partition("/")
    if not (slash and index.isdecimal() and count.isdecimal()) or not (
        1 <= int(index) <= int(count)
    ):
        raise ValueError(
            f"--shard is {text!r}, expected i/n with i from 1 to n; of a job array "
            "that counts from 0, add 1."
        )
    return int(index), int(count)


def read_book(path: Path) -> Book:
    """Read the .json file of a shard."""
    try:
        book: Book = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not the .json file of a graded shard.") from error
    return book


def merged(books: list[tuple[str, Book]]) -> Book:
    """Join the shards of one run; a missing, doubled or foreign one is an error."""
    for name, book in books:
        if not isinstance(book, dict) or not book.keys() >= FIELDS:
            raise ValueError(f"{name} is not the .json file of a graded shard.")
    first = books[0][1]
    count = first["shard"][1]
    seen: dict[int, str] = {}
    for name, book in books:
        index, of = book["shard"]
        settings = [[b["run"], b["listing"]] for b in (book, first)]
        if of != count or settings[0] != settings[1]:
            raise ValueError(
                f"{name} does not belong with {books[0][0]}: other submissions, seed, "
                "limits or number of shards; grade all shards with the same settings."
            )
        if index in seen:
            both = f"{seen[index]} and {name}"
            raise ValueError(f"shard {index} of {count} is there twice: {both}.")
        seen[index] = name
    missing = [str(i) for i in range(1, count + 1) if i not in seen]
    if missing:
        raise ValueError(
            f"shard {', '.join(missing)} of {count} is missing; grade it, then merge."
        )
    rows = [row for _, book in books for row in book["rows"]]
    keys = {row["key"] for row in rows}
    if len(rows) != first["submissions"] or len(keys) != len(rows):
        raise ValueError(
            f"the shards hold {len(rows)} rows of {first['submissions']} submissions; "
            "grade them again."
        )
    return {**first, "shard": [1, 1], "rows": rows}
