"""Headings, points and counts in the notebooks are those of the questions' files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from course_utils.grading.questions import chapter_questions
from tools.notebooks.io import dumps, read
from tools.notebooks.questions import (
    heading,
    question_findings,
    questions_of,
    stamp_questions,
    with_count,
)

ROOT = Path(__file__).parents[2]
NAME = "10_multi_head.ipynb"


@pytest.fixture
def solution(tmp_path):
    """A copy of a solution, beside a copy of its chapter."""
    for folder in ("book", "solutions"):
        (tmp_path / folder).mkdir()
        shutil.copy(ROOT / folder / NAME, tmp_path / folder)
    return tmp_path / "solutions" / NAME


def spoil(path, old, new):
    """Replace a text in a notebook's file, which must hold it."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def stamped_text(path):
    return dumps(stamp_questions(read(path), path))


def without(nb, *words):
    """The notebook without the cells that hold one of these words."""
    nb.cells = [c for c in nb.cells if not any(word in c.source for word in words)]
    return nb


def test_points_title_and_number_are_stamped_into_a_solution(solution):
    right = stamped_text(solution)
    for question in chapter_questions("10"):
        assert f'"{heading(question)}\\n"' in right
    spoil(solution, "heads that share keys (4 points", "features (5 points")
    spoil(solution, "Nine questions on", "Six questions on")
    assert stamped_text(solution) == right


def test_the_number_is_stamped_into_the_chapter(solution):
    chapter = solution.parents[1] / "book" / NAME
    right = stamped_text(chapter)
    spoil(chapter, "has nine questions", "has twelve questions")
    assert stamped_text(chapter) == right


def test_a_solution_follows_the_title_of_its_chapter(solution):
    spoil(solution.parents[1] / "book" / NAME, '"# Multi-head', '"# Multi-headed')
    assert "on the chapter *Multi-headed" in stamped_text(solution)


def test_a_notebook_without_questions_is_left_alone(solution):
    other = solution.with_name("10_others.ipynb")
    spoil(solution, "Nine questions on", "Six questions on")
    solution.rename(other)
    assert stamped_text(other) == dumps(read(other))
    assert question_findings(read(other), other) == []


def test_a_count_is_written_as_it_stood():
    assert with_count("Six questions, six questions", 8) == (
        "Eight questions, six questions"
    )
    assert with_count("has 12\nquestions", 14) == "has 14\nquestions"
    assert with_count("several questions", 8) == "several questions"


def test_the_time_is_that_of_all_questions(solution):
    total = 5 * round(sum(q.minutes for q in questions_of(solution)) / 5)
    right = stamped_text(solution)
    assert right.count(f"{total} minutes. ") == 2
    spoil(solution, f"about {total} minutes. No GPU", "about 20 minutes. No GPU")
    assert stamped_text(solution) == right


def test_a_question_without_heading_or_check_is_named(solution):
    nb = read(solution)
    assert question_findings(nb, solution) == []
    missing = without(nb, "## 10.7", 'check("10.7"')
    no_heading, no_check = question_findings(missing, solution)
    assert "question 10.7 has no heading: write `## 10.7`" in no_heading
    assert '`check("10.7", failing_input)`' in no_check


def test_a_question_that_the_solution_does_not_answer_is_named(solution):
    nb = without(read(solution), "def failing_input")
    (found,) = question_findings(nb, solution)
    assert "question 10.7 is not answered: write a cell `def failing_input" in found


def test_a_question_checked_under_another_name_is_named(solution):
    spoil(solution, 'check(\\"10.2\\", merge_heads)', 'check(\\"10.2\\", merged)')
    (found,) = question_findings(read(solution), solution)
    assert "question 10.2 is not answered: write a cell `def merge_heads(…)`" in found


@pytest.mark.parametrize(
    "cell",
    [new_markdown_cell("## 10.10 Repeat"), new_code_cell('check("10.10", heads)')],
)
def test_a_cell_without_a_question_is_named(solution, cell):
    nb = read(solution)
    nb.cells.append(cell)
    (found,) = question_findings(nb, solution)
    assert "10.10 has no file in course_utils/grading/questions/ch10" in found


def test_questions_in_another_order_are_found(solution):
    nb = read(solution)
    nb.cells.reverse()
    (found,) = question_findings(nb, solution)
    assert "not each there once" in found
