"""No submission gets more than its true score, and none harms another."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import pytest
from hostile.attacks import ATTACKS, Attack

from course_utils.grading.classroom.gradebook import result_row
from course_utils.grading.classroom.submission_grader import examine, judge_all
from course_utils.grading.classroom.submissions import Notebook
from course_utils.grading.questions import chapter_questions
from course_utils.grading.sandbox.replayer import replayer
from course_utils.grading.sandbox.sandbox import Limits
from tools.notebooks.exercises import exercise_of
from tools.notebooks.io import read

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
QUESTIONS = chapter_questions("06")[:7]  # 21 points
LIMITS = Limits(seconds=2)


def cells_of(blank: bool) -> list[str]:
    notebook = read(ROOT / "solutions" / "06_queries_keys_values.ipynb")
    notebook = exercise_of(notebook) if blank else notebook
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def with_answer(cells: list[str], name: str, body: str) -> list[str]:
    """Put another body into the cell that defines a function."""
    changed = []
    for cell in cells:
        match = re.match(rf"def {name}\(.*?\):", cell)
        body_of = f"{match[0]}\n{textwrap.indent(body, '    ')}" if match else cell
        changed.append(body_of)
    assert changed != cells
    return changed


def submission(attack: Attack) -> Notebook:
    cells = cells_of(attack.blank)
    if attack.replaces:
        question = next(q for q in QUESTIONS if q.id == attack.replaces)
        cells = with_answer(cells, question.answer, attack.code)
    else:
        cells = [attack.code, *cells]
    return Notebook(tuple(cells), digest=attack.name)


def grade(notebook: Notebook, secret: str = "secret"):
    found = examine(notebook, QUESTIONS, secret, LIMITS)
    if found.timed_out:  # as the grader does
        found = examine(notebook, QUESTIONS, secret, LIMITS.alone())
    by = replayer(LIMITS, "bubblewrap")
    results, more = judge_all(notebook, QUESTIONS, secret, found, by)
    return sum(result.points for result in results), [*found.flags, *more], results


def test_no_attack_is_listed_twice_and_each_is_python():
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    for attack in ATTACKS:
        if attack.replaces:
            ast.parse(f"def f():\n{textwrap.indent(attack.code, '    ')}")


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_gets_its_true_score_and_its_flag(attack, tmp_path):
    score, flags, results = grade(submission(attack))
    assert score == attack.score, flags
    said = "".join(result_row("", results, flags)["flags"])
    assert said.isprintable()  # no table or page stumbles over it
    if attack.flag:
        assert any(re.search(attack.flag, flag) for flag in flags), flags
    else:
        assert not flags
