"""The questions of the exercises, one file each: `ch10_multi_head/q3_….py` is 10.3.

A folder is named after its chapter's exercise notebook, a file after its number and the
function it asks for; nothing else lists them. A file holds its `QUESTION` and specimen
answers that prove it: `RIGHT`, answers that earn every point, and `WRONG`, pairs of a
mistake's id and an answer that must be recognised as that mistake. `PARTIAL`, pairs of
points and an answer that earns just those, and `NOT_IN_HINTS`, words that would give
the answer away, may follow.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from types import ModuleType

from course_utils.grading.questions.model import Question

# The exercise notebook of each chapter, as students hand it in.
EXERCISES = {
    name[2:4]: name[2:]
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__))
    if re.match(r"ch\d\d_", name)
}


def load_files(chapter: str) -> list[ModuleType]:
    """Import the question files of a chapter, in the order of their numbers."""
    if chapter not in EXERCISES:
        raise ValueError(
            f"there are no questions for chapter {chapter!r}, expected one of "
            f"{', '.join(EXERCISES)}; use the two digits that begin the notebook's "
            "name."
        )
    folder = importlib.import_module(f"{__name__}.ch{EXERCISES[chapter]}")
    numbers = {
        module.name: int(number[1])
        for module in pkgutil.iter_modules(folder.__path__)
        if (number := re.match(r"q(\d+)_", module.name))
    }
    return [
        importlib.import_module(f"{folder.__name__}.{name}")
        for name in sorted(numbers, key=numbers.__getitem__)
    ]


def chapter_questions(chapter: str) -> tuple[Question, ...]:
    """Return the questions of a chapter, in order: `chapter_questions("06")`."""
    return tuple(file.QUESTION for file in load_files(chapter))


def find_file(identifier: str) -> ModuleType:
    """Return the file of a question, with its specimens: `find_file("06.2").RIGHT`."""
    files = load_files(str(identifier).partition(".")[0])
    for file in files:
        if file.QUESTION.id == identifier:
            return file
    raise ValueError(
        f"there is no question {identifier!r}, expected one of "
        f"{', '.join(file.QUESTION.id for file in files)}."
    )


def find_question(identifier: str) -> Question:
    """Return a question by its id: `find_question("06.2")`."""
    return find_file(identifier).QUESTION
