"""An instructor's own parts of questions: Python files with a dictionary PARTS."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from pathlib import Path

from course_utils.grading.answer_runner import run
from course_utils.grading.editions import current_id
from course_utils.grading.questions import EXERCISES, chapter_questions, find_question
from course_utils.grading.questions.model import Part, Question, generator

Extra = tuple[tuple[str, str], ...]


def read_extra(folder: Path | None) -> Extra:
    """Read the files of a folder of extra tests, and try what is in them."""
    if folder is None:
        return ()
    if not folder.is_dir():
        raise ValueError(f"--extra-tests {folder} is not a folder.")
    files = sorted(folder.glob("*.py"))
    extra = tuple((path.name, path.read_text(encoding="utf-8")) for path in files)
    if not extra_parts(extra):
        raise ValueError(
            f"{folder} holds no extra tests, expected .py files with a dictionary "
            "PARTS from question to parts."
        )
    return extra


@lru_cache
def extra_parts(extra: Extra) -> dict[str, tuple[Part, ...]]:
    """Run the files and return their parts by question; each is tried once."""
    parts: dict[str, tuple[Part, ...]] = {}
    for name, text in extra:
        space: dict[str, object] = {"__name__": f"extra_{Path(name).stem}"}
        try:
            exec(compile(text, name, "exec"), space)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise ValueError(f"the extra tests {name} cannot be run: {why}.") from error
        found = space.get("PARTS")
        if not isinstance(found, dict):
            raise ValueError(f"{name} has no dictionary PARTS from question to parts.")
        for identifier, more in found.items():
            identifier = current_id(str(identifier), print)
            try:
                question = find_question(identifier)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
            for part in more if isinstance(more, list | tuple) else [more]:
                try_part(part, question, name)
                mine = (*question.parts, *parts.get(identifier, ()))
                if part.name in [other.name for other in mine]:
                    both = f"{identifier} has two parts {part.name!r}"
                    raise ValueError(f"{name}: {both}.")
                parts[identifier] = (*parts.get(identifier, ()), part)
    return parts


def try_part(part: object, question: Question, name: str) -> None:
    """Refuse what is no part, or whose cases the question's solution cannot take."""
    if not isinstance(part, Part):
        raise ValueError(
            f"{name}: {question.id} has a {type(part).__name__}, expected a Part of "
            "course_utils.grading.questions.model."
        )
    try:
        for case in part.cases(generator("a trial", question.id)):
            record = run(question.reference, case, question.arguments)
            if record.failure:
                raise ValueError(f"the solution raises {record.failure.message}")
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"{name}: the part {part.name!r} of {question.id} fails: {why}."
        ) from error


@lru_cache
def questions_of(chapter: str, extra: Extra) -> tuple[Question, ...]:
    """The questions of a chapter, the instructor's parts added."""
    if chapter not in EXERCISES:
        return ()
    parts = extra_parts(extra)
    return tuple(
        dataclasses.replace(q, parts=(*q.parts, *parts.get(q.id, ())))
        for q in chapter_questions(chapter)
    )
