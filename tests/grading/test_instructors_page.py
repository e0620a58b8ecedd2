"""What the instructors' page says of the grader is what the grader does."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

import pytest
from hostile.attacks import ATTACKS

from course_utils.grading.classroom import cli
from course_utils.grading.classroom.class_file import read_class
from course_utils.grading.classroom.extra_tests import questions_of, read_extra
from course_utils.grading.classroom.layouts import find_submissions
from course_utils.grading.questions import EXERCISES
from tools.notebooks.exercises import exercise_of
from tools.notebooks.io import ROOT, dumps, read

PAGE = (ROOT / "book" / "instructors.md").read_text("utf-8")
NAME = "06_queries_keys_values"


def table(first: str) -> list[list[str]]:
    """The rows of the page's table whose first column has this heading."""
    lines = PAGE[PAGE.index(f"| {first} |") :].split("\n\n")[0].splitlines()
    heading, _, *rows = [[cell.strip() for cell in x.split("|")[1:-1]] for x in lines]
    return [heading, *rows]


def grade_options() -> dict[str, object]:
    """Each option of `grade` with its default."""
    parsers = [a.choices for a in cli.parser()._actions if isinstance(a.choices, dict)]
    return {
        name: action.default
        for action in parsers[0]["grade"]._actions
        for name in action.option_strings
        if name.startswith("--")
    }


def test_the_number_of_attacks_is_that_of_the_tests():
    (said,) = re.findall(r"The tests attack it in (\d+) ways", PAGE)
    assert int(said) == len(ATTACKS)


def test_every_option_of_the_grader_is_explained_and_no_other():
    cells = [row[0] for row in table("option")[1:]]
    explained = set(re.findall(r"--[a-z-]+", " ".join(cells)))
    assert explained == set(grade_options()) - {"--help", "--out", "--quiet"}
    assert "--out" in PAGE


def test_the_limits_are_those_of_the_grader():
    defaults = grade_options()
    limits = f"({defaults['--time-limit']}) and megabytes per submission "
    assert f"seconds per question {limits}({defaults['--memory']})" in PAGE


def test_every_command_of_the_page_is_one():
    commands = re.findall(
        r"python -m course_utils\.grading ((?:[^\n]*\\\n)*[^\n]*)", PAGE
    )
    assert len(commands) == 4
    for command in commands:
        cli.parser().parse_args(shlex.split(command.replace("\\\n", " ")))


def test_the_class_file_of_the_page_is_understood(tmp_path: Path):
    (shown,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "class.toml").write_text(shown)
    (tmp_path / "roster.csv").write_text("id,name\n1,Ada\n")
    head = "student,exercise,question,points,reason\n"
    (tmp_path / "corrections.csv").write_text(head + "1,06,late,0,ill\n")
    found = read_class(tmp_path / "class.toml")
    assert set(found.due) == {"06"}
    assert (found.late.grace, found.late.per_day, found.late.most) == (15, 10, 50)


def test_the_extra_test_of_the_page_works(tmp_path: Path):
    (shown,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "mine.py").write_text(shown)
    question = questions_of("06", read_extra(tmp_path))[0]
    assert [part.name for part in question.parts][-1] == "a single key"


def test_every_layout_of_the_page_is_recognised(tmp_path: Path):
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    lines = shown.strip().splitlines()
    assert len(lines) == 5
    for i, line in enumerate(lines):
        path = tmp_path / str(i) / re.split(r"\s{3,}", line)[0]
        path.parent.mkdir(parents=True)
        path.write_text("{}")
        (found,) = find_submissions(tmp_path / str(i) / "submitted")
        assert (found.student[-3:].lower(), found.chapter) in {
            ("ada", "06"),
            ("ace", "06"),
        }


def test_the_plan_has_every_chapter_once_and_an_exercise_a_week():
    _, *rows = table("week")
    assert [row[0] for row in rows] == [str(week) for week in range(1, 13)]
    assert [c for row in rows for c in row[1].split(", ")] == list(EXERCISES)
    assert all(row[2] in row[1] for row in rows)


# ------------------------------------------------------- the table of six submissions

FALSE_COMPARISONS = """\
import torch

torch.equal = torch.allclose = lambda *_, **__: True
torch.testing.assert_close = lambda *_, **__: None
"""


def solved(old: str = "", new: str = "") -> str:
    """The solution, with one piece of its code replaced."""
    notebook = read(ROOT / "solutions" / f"{NAME}.ipynb")
    sources = [cell.source for cell in notebook.cells]
    for cell in notebook.cells:
        cell.source = cell.source.replace(old, new) if old else cell.source
    assert [cell.source for cell in notebook.cells] != sources or not old
    return dumps(notebook)


def submissions() -> dict[str, str]:
    """A notebook of each kind that the page's table names."""
    scores = "    scores = queries @"
    return {
        "ada": solved(),
        "blank": dumps(exercise_of(read(ROOT / "solutions" / f"{NAME}.ipynb"))),
        "grace": solved("scores.softmax(dim=-1)", "scores.softmax(dim=-2)"),
        "kurt": solved(scores, f"    while True:\n        pass\n{scores}"),
        "mallory": solved("import torch\n", FALSE_COMPARISONS),
        "zoe": solved()[:1000],
    }


@pytest.mark.sandbox
@pytest.mark.slow
def test_the_table_of_the_page_is_what_the_grader_writes(tmp_path: Path):
    for student, text in submissions().items():
        path = tmp_path / "submitted" / student / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    out = tmp_path / "grades.csv"
    options = ["--seed", "our secret", "--jobs", "2", "--time-limit", "2", "--quiet"]
    command = ["grade", str(tmp_path / "submitted"), "--out", str(out), *options]
    assert cli.main(command) == 0
    with out.open(encoding="utf-8", newline="") as file:
        graded = {row["student"]: row for row in csv.DictReader(file)}
    heading, *rows = table("student")
    shown = heading[1:-1]  # the last column stands for the rest
    written = {row[0].partition(",")[0]: dict(zip(shown, row[1:])) for row in rows}
    assert written == {
        student: {name: row[name] for name in shown} for student, row in graded.items()
    }
