"""Who is in the class: the list that Canvas or Moodle gives you, or your own.

A roster is a CSV file: Canvas' gradebook export, the grading worksheet of a Moodle
assignment, or columns `id` and `name`. A submission is somebody's if it carries the
number that the system gave them, or else their id, address or name.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.grading.sandbox.wire_format import plain_text

MAX_ROSTER = 20_000_000  # bytes
# kind: (column of the id, of the name, others that identify a person)
KINDS = {
    "canvas": ("ID", "Student", ("SIS User ID", "SIS Login ID")),
    "moodle": ("Identifier", "Full name", ("Email address", "ID number", "Username")),
    "plain": ("id", "name", ("email", "login", "username")),
}


@dataclass(frozen=True)
class Person:
    """One line of the roster."""

    id: str
    name: str
    line: dict[str, str] = field(compare=False, repr=False, default_factory=dict)


def plain_words(text: str) -> list[str]:
    """The words of a name without accents, cases and signs."""
    plain = unicodedata.normalize("NFKD", text[:200]).casefold()
    letters = (c if c.isalnum() else " " for c in plain if not unicodedata.combining(c))
    return "".join(letters).split()


def spellings(name: str) -> set[str]:
    """How a name may be written: "Lovelace, Ada", "ada lovelace", "lovelaceada"."""
    words = plain_words(name)
    return {"".join(words), "".join(sorted(words)), "".join(words[1:] + words[:1])}


@dataclass(frozen=True)
class Roster:
    """The people of a class, and the table they were read from."""

    kind: str
    columns: tuple[str, ...]
    lines: tuple[dict[str, str], ...]  # all, also such as are no person
    people: tuple[Person, ...]
    by_key: dict[str, Person | None] = field(repr=False)  # None: several fit

    def find(self, student: str, number: str = "") -> Person | None:
        """Find a person by the system's number, else by id, address or name."""
        keys = [f"id {number}"] if number else []
        keys += [f"id {student.casefold()}", *sorted(spellings(student))]
        return next((self.by_key[key] for key in keys if self.by_key.get(key)), None)


def keys_of(person: Person, others: Iterable[str]) -> set[str]:
    """Everything by which a person may be called."""
    named = {person.id, *(person.line.get(column) or "" for column in others)}
    named |= {text.partition("@")[0] for text in named}
    named.discard("")
    ids = {f"id {text.casefold()}" for text in named}
    ids |= {f"id {text.removeprefix('Participant ')}" for text in named}
    return ids | spellings(person.name)


def read_table(path: Path) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    """Read a CSV file as spreadsheets write it; its texts are capped."""
    try:
        if path.stat().st_size > MAX_ROSTER:
            raise ValueError(f"{path} is larger than {MAX_ROSTER // 1_000_000} MB.")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not encoded as UTF-8: export it so.") from error
    head = text.partition("\n")[0]
    separator = ";" if head.count(";") > head.count(",") else ","
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
        columns = tuple((name or "").strip() for name in reader.fieldnames or ())
        reader.fieldnames = list(columns)
        lines = [
            {
                name: plain_text(cell or "").strip()
                for name, cell in line.items()
                if name
            }
            for line in reader
        ]
    except (csv.Error, ValueError, AttributeError) as error:
        raise ValueError(f"{path} cannot be read as a table: {error}.") from error
    return columns, lines


def read_roster(path: Path) -> Roster:
    """Read a roster; two people with one id are an error."""
    columns, lines = read_table(path)
    kind = next((k for k, c in KINDS.items() if {c[0], c[1]} <= set(columns)), "")
    if not kind:
        raise ValueError(
            f"{path} has the columns {', '.join(columns[:6])}; expected `id` and "
            "`name`, or an export of Canvas (Student, ID) or of Moodle (Identifier, "
            "Full name)."
        )
    number, name, others = KINDS[kind]
    people = tuple(Person(x[number], x[name], x) for x in lines if x[number])
    by_key: dict[str, Person | None] = {}
    seen: set[str] = set()
    for person in people:
        if person.id in seen:
            raise ValueError(f"{path} has two lines with the {number} {person.id}.")
        seen.add(person.id)
    for person in people:
        for key in keys_of(person, others):
            by_key[key] = None if key in by_key else person
    return Roster(kind, columns, tuple(lines), people, by_key)
