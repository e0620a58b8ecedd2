"""A real nbgrader makes the assignment, grades it, and gives the points of `check`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course_utils.grading.classroom.cli import main
from course_utils.grading.questions import chapter_questions
from tools.notebooks.io import ROOT, dumps, read

NAME = "06_queries_keys_values"
SOLUTION = ROOT / "solutions" / f"{NAME}.ipynb"


def nbgrader(course: Path, *arguments: str) -> str:
    """Run a command of nbgrader in a course's folder; returns what it said."""
    command = [sys.executable, "-m", "nbgrader", *arguments]
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PYTHONPATH": str(ROOT), "HOME": str(course), "PATH": programs}
    environment = {**os.environ, **own}
    result = subprocess.run(
        command, cwd=course, env=environment, capture_output=True, text=True
    )
    said = result.stdout + result.stderr
    assert result.returncode == 0, said
    return said


def test_every_question_is_a_graded_cell_with_its_points(tmp_path):
    out = ["--out", str(tmp_path / "source")]
    assert main(["nbgrader", str(SOLUTION), *out]) == 0
    made = json.loads((tmp_path / "source" / NAME / f"{NAME}.ipynb").read_text())
    marked = [cell["metadata"].get("nbgrader") for cell in made["cells"]]
    points = [x["points"] for x in marked if x and x["grade"]]
    assert points == [question.points for question in chapter_questions("06")]
    assert len({x["grade_id"] for x in marked if x}) == len([x for x in marked if x])


@pytest.mark.parametrize("name", ["mine.ipynb", f"{NAME}.txt", f"{NAME}.ipynb"])
def test_what_is_no_solution_is_refused(name, tmp_path, capsys):
    (tmp_path / name).write_text("[]")
    assert main(["nbgrader", str(tmp_path / name), "--out", str(tmp_path)]) == 2
    assert "is not" in capsys.readouterr().err


@pytest.mark.slow
def test_nbgrader_gives_the_points_of_check_and_calls_no_blank_a_success(tmp_path):
    assert main(["nbgrader", str(SOLUTION), "--out", str(tmp_path / "source")]) == 0
    (tmp_path / "nbgrader_config.py").write_text(
        "c = get_config()\nc.ExecutePreprocessor.timeout = 120\n"
    )
    nbgrader(tmp_path, "generate_assignment", NAME, "--create")
    released = tmp_path / "release" / NAME / f"{NAME}.ipynb"
    blank = released.read_text()
    assert "END SOLUTION" not in blank
    assert "scores.softmax" not in blank
    said = nbgrader(tmp_path, "validate", str(released))
    assert "VALIDATION FAILED" in said
    assert "Success" not in said
    answers = {
        cell.source.split("(")[0]: cell.source
        for cell in read(SOLUTION).cells
        if "### BEGIN SOLUTION" in cell.source
    }
    wrong = ("softmax(dim=-1)", "softmax(dim=-2)")
    for student, change in (("solved", wrong[:1] * 2), ("grace", wrong), ("blank", ())):
        notebook = read(released)
        for cell in notebook.cells:
            start = cell.source.split("(")[0]
            if change and start in answers and "nbgrader" in cell.metadata:
                cell.source = answers[start].replace(*change)
        path = tmp_path / "submitted" / student / NAME / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(dumps(notebook))
    nbgrader(tmp_path, "autograde", NAME, "--create")
    nbgrader(tmp_path, "export", "--to", str(tmp_path / "grades.csv"))
    lines = (tmp_path / "grades.csv").read_text().splitlines()
    columns = lines[0].split(",")
    score, most = columns.index("score"), columns.index("max_score")
    who = columns.index("student_id")
    rows = {line.split(",")[who]: line.split(",") for line in lines[1:]}
    points = sum(question.points for question in chapter_questions("06"))
    assert {float(row[most]) for row in rows.values()} == {float(points)}
    scores = {student: float(row[score]) for student, row in rows.items()}
    assert scores == {"solved": points, "grace": points - 7, "blank": 0}
