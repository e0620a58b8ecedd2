"""Write into the notebooks what the questions' files decide: headings, counts, time.

Title, points and minutes of a question stand in its file, in
`course_utils/grading/questions`, and by the number of files how many there are. `stamp`
carries all of it into the solutions, from which the exercises are made, and the number
into the chapters.
"""

from __future__ import annotations

import re
from pathlib import Path

from nbformat import NotebookNode

from course_utils.grading.questions import EXERCISES, chapter_questions
from course_utils.grading.questions.model import Question
from tools.notebooks.io import read, title

NUMBERS = (
    *("one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
COUNT = re.compile(rf"\b({'|'.join(NUMBERS)}|\d+)(?=\s+questions\b)", re.IGNORECASE)
CHAPTER = re.compile(r"(?<=questions on the chapter \*)[^*]+(?=\*)")
HEADING = re.compile(r"^## (\d\d\.\d+)\b.*$", re.MULTILINE)
TIME = re.compile(r"\b\d+(?=\s+minutes\b)")  # of all questions: twice in an opening
CHECK = re.compile(r"^check\(\"(.+?)\", (\w+)\)", re.MULTILINE)


def questions_of(path: Path) -> tuple[Question, ...]:
    """The questions that belong to a notebook, by its name; most have none."""
    chapter = path.stem[:2]
    return chapter_questions(chapter) if EXERCISES.get(chapter) == path.stem else ()


def heading(question: Question) -> str:
    """The heading of a question in the solution and the exercise."""
    points = f"{question.points} point{'s' if question.points != 1 else ''}"
    effort = f"{question.difficulty}, {question.minutes} minutes"
    return f"## {question.id} {question.title} ({points}, {effort})"


def with_count(text: str, count: int) -> str:
    """A text whose first "seven questions" is "eight questions" if there are eight."""
    word = NUMBERS[count - 1] if count <= len(NUMBERS) else str(count)
    return COUNT.sub(lambda m: word.title() if m[0].istitle() else word, text, 1)


def with_time(text: str, questions: tuple[Question, ...]) -> str:
    """A text whose number of minutes is that of all questions, to five minutes."""
    return TIME.sub(str(5 * round(sum(q.minutes for q in questions) / 5)), text)


def with_chapter(text: str, path: Path) -> str:
    """The opening of a solution, naming its chapter by the title it now has."""
    now = title(read(path.parents[1] / "book" / path.name))
    return CHAPTER.sub(lambda m: m[0] if " ".join(m[0].split()) == now else now, text)


def stamp_questions(nb: NotebookNode, path: Path) -> NotebookNode:
    """The notebook with the headings and counts that the questions' files decide."""
    questions = questions_of(path)
    if not questions or path.parent.name == "exercises":
        return nb
    headings = {question.id: heading(question) for question in questions}
    cells, link = [], f"exercises/{path.name}"
    for cell in nb.cells:
        source = cell.source
        if cell.cell_type == "markdown" and path.parent.name == "solutions":
            source = HEADING.sub(lambda m: headings.get(m[1], m[0]), source)
            if source.startswith("# "):
                source = with_chapter(with_count(source, len(questions)), path)
                source = with_time(source, questions)
        elif cell.cell_type == "markdown" and link in source:
            before, after = source.split(link, 1)
            source = before + link + with_count(after, len(questions))
        cells.append(NotebookNode(cell, source=source))
    return NotebookNode(nb, cells=cells)


def question_findings(nb: NotebookNode, path: Path) -> list[str]:
    """Which questions a solution lacks, and which have no file."""
    questions = questions_of(path) if path.parent.name == "solutions" else ()
    if not questions:
        return []
    text = {"code": "", "markdown": "", "raw": ""}
    for cell in nb.cells:
        text[cell.cell_type] += cell.source + "\n"
    titled, checked = HEADING.findall(text["markdown"]), CHECK.findall(text["code"])
    known = [question.id for question in questions]
    found = [
        f"question {question.id} has no heading: write `## {question.id}` above it and "
        "run `python -m tools.notebooks stamp`"
        for question in questions
        if question.id not in titled
    ]
    found += [
        f"question {question.id} is not answered: write a cell `def {question.answer}"
        f'(…)` and one with `check("{question.id}", {question.answer})`'
        for question in questions
        if (question.id, question.answer) not in checked
        or not re.search(rf"^def {question.answer}\(", text["code"], re.MULTILINE)
    ]
    found += [
        f"question {name} has no file in course_utils/grading/questions/"
        f"ch{path.stem}: write it, or take {name} out of the notebook"
        for name in dict.fromkeys([*titled, *(name for name, _ in checked)])
        if name not in known
    ]
    if not found and not titled == [name for name, _ in checked] == known:
        found.append(f"headings and checks are not each there once, as {known}")
    return found
