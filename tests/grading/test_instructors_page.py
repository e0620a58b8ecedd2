"""What the instructors' page says of the grader is what the grader does."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from hostile.attacks import ATTACKS

from course_utils.grading.classroom import cli
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
