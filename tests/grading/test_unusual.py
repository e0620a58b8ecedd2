"""Unusual submissions that are right, names that lie, and slips of the instructor."""

from __future__ import annotations

import ast
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from course_utils.grading.classroom.cli import main
from course_utils.grading.classroom.exports import as_csv
from course_utils.grading.classroom.layouts import find_submissions
from course_utils.grading.classroom.submission_grader import examine, judge_all
from course_utils.grading.classroom.submissions import Notebook
from course_utils.grading.questions import chapter_questions
from course_utils.grading.sandbox.notebook_runner import bound_names
from course_utils.grading.sandbox.notebook_shell import parsed
from course_utils.grading.sandbox.replayer import replayer
from course_utils.grading.sandbox.sandbox import Limits

ROOT = Path(__file__).parents[2]
NAME = "06_queries_keys_values"
BLANK = (ROOT / "exercises" / f"{NAME}.ipynb").read_text(encoding="utf-8")
BODY = """
    weights = (queries @ keys.mT / queries.shape[-1] ** 0.5).softmax(-1)
    return weights @ values, weights
"""


def lay_out(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(BLANK, encoding="utf-8")


# ------------------------------------------------------------------- right, and unusual

HEAD = f"def attention(queries, keys, values):{BODY}"
UNUSUAL = {
    "timed": (f"%%time\n{HEAD}",),
    "in a branch": ("if True:\n" + HEAD.replace("\n", "\n  ").replace("def", "  def"),),
    "annotated": (HEAD.replace("attention", "f"), "attention: object = f"),
    "one of two": (HEAD.replace("attention", "f"), "attention, rest = f, 0"),
    "in a file": (
        f"%%writefile own.py\n{HEAD}",
        "import own\nattention = own.attention",
    ),
    "compiled": (f"import torch\n@torch.compile\n{HEAD}",),
    "compiled with options": (f"import torch\n@torch.compile(dynamic=True)\n{HEAD}",),
    "after help": ("help(len)\nexit", HEAD),
}


@pytest.mark.sandbox
@pytest.mark.parametrize("cells", UNUSUAL.values(), ids=UNUSUAL)
def test_a_right_answer_keeps_its_points_and_gets_no_flag(cells):
    notebook, questions = Notebook(cells, digest="x"), chapter_questions("06")[:1]
    limits = Limits(seconds=4)
    found = examine(notebook, questions, "secret", limits)
    (result,), flags = judge_all(
        notebook, questions, "secret", found, replayer(limits, "bubblewrap")
    )
    assert (result.points, found.flags + flags) == (4, [])


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("try:\n    def f(): g = 1\nexcept E:\n    f = None", ["f", "f"]),
        ("(f := 1)\nf: int\nf.a = 2\nf[0] = 3", ["f"]),
        ("%%bash\nf = 1", []),
        ("%%capture\nf = 1", ["f"]),
    ],
)
def test_a_name_counts_wherever_it_is_bound_at_the_top(cell, names):
    tree = parsed(cell)
    assert isinstance(tree, ast.Module)
    assert bound_names(tree) == names


# ------------------------------------------------------------------------ whose it is


@pytest.mark.parametrize(
    "inside", [f"adalovelace_1_2_{NAME}", f"Ada_1_assignsubmission_file_/{NAME}"]
)
@pytest.mark.parametrize("above", ["mallory", f"mallory/{NAME}", f"{NAME}/mallory"])
def test_nobody_can_hand_in_for_somebody_else(above, inside, tmp_path):
    lay_out(tmp_path, f"{above}/{inside}.ipynb")
    (one,) = find_submissions(tmp_path)
    assert (one.student, one.number) == ("mallory", "")


def test_folders_inside_a_submission_stop_nobody(tmp_path):
    lay_out(tmp_path, *(f"m/{NAME}/{x}/{NAME}.ipynb" for x in "ab"))
    (one,) = find_submissions(tmp_path)
    assert one.flags[0].startswith("2 notebooks, graded")


def test_who_insists_grades_the_rest_beside_a_folder_of_several(tmp_path):
    lay_out(tmp_path, *(f"{x}/{NAME}.ipynb" for x in ("m/a", "m/b", "zoe")))
    with pytest.raises(ValueError, match="--skip-unknown grades the rest"):
        find_submissions(tmp_path)
    found = find_submissions(tmp_path, skip_unknown=True)
    assert [(s.student, s.chapter) for s in found] == [("zoe", "06"), ("m", "")]
    assert "several times, in a and b" in found[1].flags[0]


def test_a_time_further_down_is_the_students_own(tmp_path):
    lay_out(tmp_path, f"m/{NAME}/{NAME}.ipynb", f"m/{NAME}/new/{NAME}-9.ipynb")
    for place, year in (("", 2026), ("new", 2020)):
        path = tmp_path / "m" / NAME / place / "timestamp.txt"
        path.write_text(f"{year}-01-01 00:00:00 UTC")
    (one,) = find_submissions(tmp_path)
    assert one.path.parent.name == "new"
    assert one.time == datetime(2026, 1, 1, tzinfo=UTC)


# ------------------------------------------------------------------- the command line


def refusal(capsys, *arguments: object) -> str:
    assert main([str(x) for x in arguments]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("out", ["roster", "given"])
def test_a_table_never_overwrites_what_the_class_was_read_from(out, tmp_path, capsys):
    lay_out(tmp_path, f"in/ada/{NAME}.ipynb")
    files = {
        "roster.csv": "id,name\n1,ada\n",
        "given.csv": "student,exercise,question,points,reason\n",
        "class_list.toml": 'roster = "roster.csv"\ncorrections = "given.csv"\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    about, table = tmp_path / "class_list.toml", tmp_path / f"{out}.csv"
    said = refusal(
        capsys, "grade", tmp_path / "in", "--seed", 1, "--class", about, "--out", table
    )
    assert "would overwrite" in said
    assert {name: (tmp_path / name).read_text() for name in files} == files


def test_a_folder_as_table_is_refused_before_anything_is_graded(tmp_path, capsys):
    lay_out(tmp_path, f"in/ada/{NAME}.ipynb")
    (tmp_path / "x.csv").mkdir()
    arguments = ("--seed", 1, "--out", tmp_path / "x.csv")
    assert "a folder" in refusal(capsys, "grade", tmp_path / "in", *arguments)
    assert not (tmp_path / "x.results.jsonl").exists()


def test_more_points_than_a_question_has_are_refused(tmp_path, capsys):
    lay_out(tmp_path, f"in/ada/{NAME}.ipynb")
    head = "student,exercise,question,points,reason"
    (tmp_path / "given.csv").write_text(f"{head}\nada,06,06.1,40,typing\n")
    about = tmp_path / "class.toml"
    about.write_text('corrections = "given.csv"\n')
    arguments = ("--seed", 1, "--class", about, "--out", tmp_path / "x.csv")
    said = refusal(capsys, "grade", tmp_path / "in", *arguments)
    assert "gives 40 points for 06.1, which has 4" in said


def test_an_exercise_is_no_source_for_nbgrader(tmp_path, capsys):
    lay_out(tmp_path, f"{NAME}.ipynb")
    assert json.loads(BLANK)["cells"]
    said = refusal(capsys, "nbgrader", tmp_path / f"{NAME}.ipynb", "--out", tmp_path)
    assert "is not a solution" in said


def test_a_number_below_zero_stays_a_number_and_a_formula_does_not():
    assert as_csv([[-1.0, -0.5, "-1", "=1"]]) == "-1,-0.5,'-1,'=1\n"
