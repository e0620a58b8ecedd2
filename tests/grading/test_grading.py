"""The instructor's grader: one row per submission, whatever the folder looks like."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from course_utils.grading.answer_runner import Failure, Record
from course_utils.grading.classroom import engine, exports, gradebook, submission_grader
from course_utils.grading.classroom.class_page import class_page
from course_utils.grading.classroom.cli import main, results_file
from course_utils.grading.classroom.extra_tests import extra_parts, read_extra
from course_utils.grading.classroom.layouts import find_submissions
from course_utils.grading.classroom.reports import file_name, student_page
from course_utils.grading.classroom.submissions import Notebook, read_notebook
from course_utils.grading.questions import EXERCISES, chapter_questions
from course_utils.grading.sandbox import sandbox
from course_utils.grading.sandbox.replayer import replayer
from course_utils.grading.sandbox.wire_format import (
    decode,
    decode_record,
    encode,
    encode_record,
)
from tools.notebooks.exercises import exercise_of
from tools.notebooks.io import dumps, read

ROOT = Path(__file__).parents[2]
NAME = "06_queries_keys_values"
SOLUTION = read(ROOT / "solutions" / f"{NAME}.ipynb")
SOLVED, BLANK = dumps(SOLUTION), dumps(exercise_of(SOLUTION))
COUNT = 3


def notebook(*cells: str) -> str:
    made = [{"cell_type": "code", "source": cell, "metadata": {}} for cell in cells]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4})


SPREAD = "def predict_spread():\n    return 8, 32, 4"  # 3 points
# 2 points:
PAIR = "def another_pair(w_q, w_k):\n    u, s, v = w_q.svd()\n    return u, w_k @ v * s"


def hand_in(folder: Path, student: str, text: str | bytes, name: str = NAME) -> Path:
    path = folder / student / NAME / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def rows_of(out: Path) -> dict[str, dict[str, str]]:
    with out.open(encoding="utf-8", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def grade(folder: Path, out: Path, *more: str) -> int:
    options = ["--seed", "secret", "--quiet", "--time-limit", "2", *more]
    return main(["grade", str(folder), "--out", str(out), *options])


# ---------------------------------------------------------------------- the exchange


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        2.5,
        "text",
        [1, [2.0, "x"]],
        {"a": np.arange(6, dtype=np.float32).reshape(2, 3)},
        np.array(True),
        np.zeros((0, 3), np.int64),
    ],
)
def test_a_plain_value_survives_the_journey(value):
    np.testing.assert_equal(decode(json.loads(json.dumps(encode(value)))), value)


@pytest.mark.parametrize(
    "message",
    [
        {"array": "object", "shape": [1], "data": ""},
        {"array": "float32", "shape": [2], "data": "AAAA"},
        {"array": "float32", "shape": [-1], "data": ""},
        {"array": "float32", "shape": [2**40, 0], "data": ""},
        {"array": "float32", "shape": [1.0], "data": "AAAAAA=="},
        {"array": "float32", "shape": [1], "data": "!!!"},
        {"array": "float32", "shape": "11", "data": ""},
        {"array": ["float32"], "shape": [1], "data": "AAAAAA=="},
        {"dict": 3},
        {"dict": [["a"]]},
        {"else": 1},
        [[[[[[[[[[1]]]]]]]]]],
        [0] * 5000,
        10**30,
    ],
)
def test_what_is_no_plain_value_is_refused(message):
    with pytest.raises((ValueError, TypeError)):
        decode(message)


def test_a_record_survives_the_journey_and_a_forged_one_is_refused():
    record = Record([np.ones(2, np.float32)], None, ("x",), ("softmax",), 7)
    arrived = decode_record(encode_record(record))
    np.testing.assert_equal(vars(arrived), vars(record))
    failed = Record(failure=Failure("exception", "ValueError", "a\nb", "x = 1"))
    assert decode_record(encode_record(failed)).failure.message == "a b"
    good = encode_record(record)
    for change in (
        {"steps": -1},
        {"steps": True},
        {"failure": ["invented", "", "", ""]},
        {"failure": ["died"]},
        {"mutated": "x"},
        {"library": [3]},
        {"more": 1},
    ):
        with pytest.raises(ValueError):
            decode_record({**good, **change})


@pytest.mark.parametrize("chapter", EXERCISES)
def test_the_inputs_of_every_question_survive_the_journey(chapter):
    for question in chapter_questions(chapter):
        for case in question.cases("secret"):
            arrived = decode(json.loads(json.dumps(encode(case.args))))
            np.testing.assert_equal(tuple(arrived), decode_lists(case.args))


def decode_lists(value):
    """Tuples arrive as lists, but for the arguments themselves."""
    return tuple(decode(encode(x)) for x in value)


# ------------------------------------------------------------------------ submissions


def test_of_several_notebooks_the_one_with_the_right_name_is_graded(tmp_path):
    hand_in(tmp_path, "ann", BLANK, "a_copy_of_06")
    right = hand_in(tmp_path, "ann", SOLVED)
    (found,) = find_submissions(tmp_path)
    assert found.path == right
    assert "2 notebooks" in found.flags[0]


def test_students_whose_names_look_the_same_keep_a_row_each(tmp_path):
    for name in ("ann\u200b", "ann\u200c", "x" * 210, "x" * 211):
        hand_in(tmp_path, name, BLANK)
    found = find_submissions(tmp_path)
    assert len(found) == 4
    assert all("another student's name looks the same" in s.flags[0] for s in found)


def test_a_folder_that_cannot_be_opened_is_a_row_of_its_own(tmp_path, monkeypatch):
    hand_in(tmp_path, "ann", BLANK)
    hand_in(tmp_path, "bob", BLANK)
    scandir = os.scandir

    def refusing(folder):
        if Path(folder).name == "ann":
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    ann, bob = sorted(find_submissions(tmp_path, "06"), key=lambda s: s.student)
    assert (ann.student, bob.student) == ("ann", "bob")
    assert read_notebook(ann.path).flags[0].startswith("not read: ")


def test_no_link_is_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / f"{NAME}.ipynb").write_text(SOLVED)
    folder = tmp_path / "in"
    (folder / "ann").mkdir(parents=True)
    (folder / "ann" / f"{NAME}.ipynb").symlink_to(outside / f"{NAME}.ipynb")
    (folder / "bob").symlink_to(outside)
    with pytest.raises(ValueError, match="bob is a link to a folder"):
        find_submissions(folder)
    (folder / "bob").unlink()
    (found,) = find_submissions(folder)
    assert found.student == "ann"
    assert read_notebook(found.path).flags == ("not read: a link, not a file",)
    assert read_notebook(found.path).cells == ()


@pytest.mark.parametrize(
    ("content", "flag"),
    [
        (b"", "not read: not a notebook"),
        (b"{", "not read: not a notebook"),
        (b"[1, 2]", "not read: not a notebook"),
        (b'{"cells": 3}', "not read: not a notebook"),
        (b"[" * 100_000, "not read: not a notebook"),
        (b"PK\x03\x04 a zip", "not read: not a notebook"),
        (b'{"cells": [' + b"[]," * 2_000_001, "not read: too many lists"),
        (b'{"x": [' + b"0.1," * 4_000_000, "not read: too many lists"),
        (b'{"cells": []}', "not read: no code in it"),
        (b'{"cells": {"a": 1}, "cells": "text"}', "not read: not a notebook"),
        (b'{"metadata": ' + b"9" * 5000 + b"}", "not read: not a notebook"),
        (notebook(*["x = 1"] * 3000).encode(), "not read: too much code"),
        (notebook("x" * 3_000_000).encode(), "not read: too much code"),
        (notebook("x = 'é'").replace("\\u00e9", "é").encode("cp1252"), "not encoded"),
        (notebook("x = 1").encode("utf-16"), "encoded as utf-16"),
    ],
)
def test_a_notebook_that_cannot_be_read_is_flagged(content, flag, tmp_path):
    path = hand_in(tmp_path, "ann", content)
    assert any(flag in found for found in read_notebook(path).flags)


def test_a_huge_file_and_a_pipe_are_not_read(tmp_path):
    path = hand_in(tmp_path, "ann", b"")
    with path.open("wb") as file:
        file.truncate(60_000_000)
    assert read_notebook(path).flags == ("not read: larger than 50 MB",)
    os.mkfifo(tmp_path / "pipe.ipynb")
    assert read_notebook(tmp_path / "pipe.ipynb").flags == (
        "not read: not a regular file",
    )


def test_cells_without_source_and_old_formats_are_read_as_far_as_they_go(tmp_path):
    cells = [{"cell_type": "code"}, 7, {"cell_type": "code", "source": ["a\n", "b"]}]
    path = hand_in(tmp_path, "ann", json.dumps({"cells": cells}))
    assert read_notebook(path).cells == ("a\nb",)
    sheet = {"cells": [{"cell_type": "code", "input": "old"}]}
    path.write_text(json.dumps({"worksheets": [sheet]}))
    assert read_notebook(path).cells == ("old",)


# ----------------------------------------------------------------------------- tables


def row(student: str, number: str = "", flags: tuple[str, ...] = (), **more) -> dict:
    question = {
        "points": 1,
        "max_points": 4,
        "parts": [["weights", 1, 4]],
        "misconception": "no_scale",
        "hint": "the scores are `not` scaled <b>",
    }
    made = {
        "key": "k",
        "student": student,
        "id": number,
        "exercise": NAME,
        "chapter": "06",
        "file": f"{NAME}.ipynb",
        "place": number,
        "score": 1,
        "max_score": 4,
        "late": 0,
        "hours_late": 0,
        "correction": 0,
        "corrections": [],
        "final": 1,
        "flags": list(flags),
        "notes": [],
        "questions": {"06.1": {**question, **more}},
    }
    return made


def table_of(rows: list[dict]) -> list[list[str]]:
    text = exports.as_csv(exports.grades(rows))
    return list(csv.reader(text.splitlines()))


def test_a_spreadsheet_takes_no_name_for_a_formula():
    names = ['=HYPERLINK("x")', "+1", "-1", "@x", "ann"]
    cells = [line[0] for line in table_of([row(name) for name in names])][1:]
    assert cells == [f"'{name}" for name in names[:4]] + ["ann"]


def test_no_piece_of_a_cell_is_a_formula_where_semicolons_separate():
    flags = ("cell 1: x; =1+1", '; "@x', "＝1", "a-b; c=d")
    cells = table_of([row("x;=1+1", flags=(flag,)) for flag in flags])[1:]
    assert {line[0] for line in cells} == {"x;'=1+1"}
    assert [line[8] for line in cells] == [
        "cell 1: x; '=1+1",
        "; \"'@x",
        "'＝1",
        "a-b; c=d",
    ]


def test_the_columns_are_those_promised():
    assert ",".join(table_of([row("ann")])[0]) == (
        "student,id,exercise,final,max_score,score,late,correction,flags,06.1"
    )


def test_no_flag_makes_the_table_unreadable():
    many = gradebook.capped(["x" * 200_000, *(f"flag {i}" for i in range(1000))])
    assert len(many) == gradebook.MAX_FLAGS + 1
    assert many[-1] == "and 961 more flags"
    assert len(table_of([row("ann", flags=tuple(many))])[1][8]) < 10_000


def test_reports_escape_what_a_student_wrote_and_name_files_plainly():
    bad = row("../../<script>alert(1)</script>", flags=("<img src=x>",))
    for page in (student_page(bad), class_page([bad])):
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "default-src 'none'" in page
        assert "script-src 'unsafe" not in page
    assert "/" not in file_name(bad)
    assert file_name(row("")) != file_name(row("", "other"))


def test_the_class_page_counts_a_mistake_by_its_id_and_names_everybody():
    rows = [row(f"s{i:02}", hint=f"`weights` has shape ({i},)") for i in range(13)]
    for one in rows:
        one["questions"]["06.1"]["misconception"] = "shape"
    page = class_page([*rows, row("zoe")])
    assert page.count("<td>shape</td>") == 1
    assert "<td>13</td><td>shape</td><td>a result of another shape" in page
    assert all(f">s{i:02}</a>" in page for i in range(13))
    assert "the scores are <code>not</code> scaled &lt;b&gt;<details>" in page


def test_the_class_page_says_mean_median_and_points_by_question():
    rows = [{**row(f"s{i}"), "final": i} for i in (0, 1, 4)]
    page = class_page([*rows, {**row("late"), "key": "", "questions": {}, "final": 0}])
    assert "3 handed in, 1 did not; mean 1.67 of 4; median 1;" in page
    assert 'aria-label="Mean points by question. 06.1: 1 of 4; 3 lost some"' in page
    assert "0–10 %: 2; 10–20 %: 0; 20–30 %: 1;" in page
    assert "90–100 %: 1" in page


def test_what_was_not_answered_is_listed_after_what_was_wrong():
    rows = [row("ann", "1"), row("bob", "2"), row("carl", "3")]
    for blank in rows[:2]:
        result = {"misconception": "unanswered", "hint": "not answered yet"}
        blank["questions"] = {"06.1": {**blank["questions"]["06.1"], **result}}
    page = class_page(rows)
    assert page.index("carl") < page.index("not answered yet")


def result(key: str) -> dict:
    return gradebook.result_row(key, [], [])


def test_the_results_drop_damaged_lines_count_them_and_keep_the_rest(tmp_path):
    path = tmp_path / "grades.results.jsonl"
    gradebook.append_result(path, result("1"))
    with path.open("a") as file:
        file.write('\n{"key": "2", "scor')
    gradebook.append_result(path, result("3"))
    with path.open("a") as file:
        file.write('[1]\n{"key": "4"}\n' + "[" * 100_000 + "\n")
        file.write(json.dumps({**result("5"), "score": "21"}) + "\n")
    kept, damaged = gradebook.read_results(path)
    assert set(kept) == {"1", "3"}
    assert damaged == 5


def test_a_key_depends_on_submission_questions_seed_and_limits_alone():
    usual = engine.Settings("secret")
    key = usual.key_of("06", "content")
    ten = sandbox.Limits(seconds=10)
    assert engine.Settings("secret", ten).key_of("06", "content") == key
    others = [
        usual.key_of("07", "content"),
        usual.key_of("06", "other"),
        engine.Settings("another").key_of("06", "content"),
        engine.Settings("secret", sandbox.Limits(seconds=9)).key_of("06", "content"),
        engine.Settings("secret", extra=(("a.py", "1"),)).key_of("06", "content"),
    ]
    assert len({key, *others}) == 6
    assert engine.sources_digest("06") != engine.sources_digest("07")


def test_what_stops_the_judge_stops_no_other_grade(monkeypatch):
    def stumble(*_):
        raise ZeroDivisionError("x\x1b")

    monkeypatch.setattr(submission_grader, "judge", stumble)
    notebook = Notebook(("x = 1",))
    asked = chapter_questions("06")
    found = submission_grader.Examined({question.id: [] for question in asked})
    by = replayer(sandbox.Limits(), "bubblewrap")
    results, flags = submission_grader.judge_all(notebook, asked, "secret", found, by)
    assert sum(result.points for result in results) == 0
    assert flags[0] == "06.1 not judged: ZeroDivisionError: x "


# --------------------------------------------------------------------- clear refusals


@pytest.fixture
def refusal(tmp_path, capsys):
    """What the command says of some options, and that it refuses."""
    hand_in(tmp_path / "in", "ann", BLANK)

    def refuse(*options: str, folder: str = "in") -> str:
        out = ["--out", str(tmp_path / "grades.csv")]
        assert main(["grade", str(tmp_path / folder), *out, *options]) == 2
        assert not (tmp_path / "grades.csv").exists()
        return capsys.readouterr().err

    return refuse


UNSAFE = ["--seed", "s", "--unsafe"]


def test_no_seed_no_folder_no_notebook_and_no_sandbox_are_said(
    refusal, tmp_path, monkeypatch
):
    monkeypatch.delenv("COURSE_GRADING_SEED", raising=False)
    assert "no seed" in refusal()
    assert "is not a folder" in refusal(*UNSAFE, folder="none")
    (tmp_path / "empty").mkdir()
    assert "there is no notebook" in refusal(*UNSAFE, folder="empty")
    monkeypatch.setattr(sandbox, "BUBBLEWRAP", None)
    assert "bubblewrap is not installed" in refusal("--seed", "s")


@pytest.mark.parametrize(
    "options",
    [
        ("--time-limit", "0"),
        ("--time-limit", "nan"),
        ("--time-limit", "-3"),
        ("--time-limit", "inf"),
        ("--memory", "10"),
        ("--memory", "-1"),
        ("--jobs", "0"),
        ("--out", "grades.json"),
        ("--out", "no/such/folder/grades.csv"),
    ],
)
def test_impossible_options_are_refused(options, refusal):
    assert f"error: {options[0]} is " in refusal(*UNSAFE, *options)


HEAD = "from course_utils.grading.questions.model import Part\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "holds no extra tests"),
        ("x = 1", "has no dictionary PARTS"),
        ("import nothing_of_that_name", "cannot be run: ModuleNotFoundError"),
        ("PARTS = {'06.99': ()}", "there is no question '06.99'"),
        ("PARTS = {'06.6': (3,)}", "has a int, expected a Part"),
        (
            HEAD + "PARTS = {'06.6': Part('mine', 1, lambda rng: [(1, 2, 3)])}",
            "the part 'mine' of 06.6 fails",
        ),
        (
            HEAD + "PARTS = {'06.6': [Part('mine', 1, lambda rng: [])] * 2}",
            "has two parts 'mine'",
        ),
    ],
)
def test_bad_extra_tests_get_a_sentence(text, said, refusal, tmp_path):
    folder = tmp_path / "extra"
    folder.mkdir()
    if text is not None:
        (folder / "mine.py").write_text(text)
    assert said in refusal(*UNSAFE, "--extra-tests", str(folder))


def test_a_table_among_the_submissions_is_refused(refusal, tmp_path):
    out = str(tmp_path / "in" / "ann" / "grades.csv")
    assert "among the submissions" in refusal(*UNSAFE, "--out", out)


def test_two_runs_into_one_table_are_refused(refusal, tmp_path):
    with results_file(tmp_path / "grades.csv").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "another run is writing" in refusal(*UNSAFE)


def test_a_sandbox_that_cannot_start_is_no_fault_of_a_submission(monkeypatch):
    monkeypatch.setattr(sandbox, "BUBBLEWRAP", "/bin/false")
    assert "the sandbox does not start" in str(sandbox.sandbox_problem())


# -------------------------------------------------------------------- graded for real

sandboxed = [pytest.mark.sandbox, pytest.mark.slow]


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_class_is_graded_the_same_in_any_order_with_any_neighbours(tmp_path):
    (tmp_path / "first").mkdir()
    hand_in(tmp_path / "first", "solved", SOLVED)
    hand_in(tmp_path / "first", "blank", BLANK)
    hand_in(tmp_path / "first", "=1+1", notebook(SPREAD))
    hand_in(tmp_path / "first", "killer", notebook("import os; os.kill(-1, 9)", PAIR))
    hand_in(tmp_path / "first", "broken", b"{")
    assert grade(tmp_path / "first", tmp_path / "a.csv", "--jobs", "2") == 0
    rows = rows_of(tmp_path / "a.csv")
    scores = {name: int(found["score"]) for name, found in rows.items()}
    most = sum(question.points for question in chapter_questions("06"))
    assert scores == {"solved": most, "blank": 0, "'=1+1": 3, "killer": 2, "broken": 0}
    assert rows["solved"]["flags"] == rows["blank"]["flags"] == ""
    assert "not a notebook" in rows["broken"]["flags"]
    assert "06.1 missing" in rows["killer"]["flags"]
    assert {found["max_score"] for found in rows.values()} == {str(most)}

    (tmp_path / "second").mkdir()
    hand_in(tmp_path / "second", "zoe", SOLVED)
    hand_in(tmp_path / "second", "killer", notebook("import os; os.kill(-1, 9)", PAIR))
    assert grade(tmp_path / "second", tmp_path / "b.csv", "--jobs", "1") == 0
    again = rows_of(tmp_path / "b.csv")
    assert again["killer"] == rows["killer"]
    assert {**again["zoe"], "student": "solved"} == rows["solved"]
    report = (tmp_path / "a_reports" / "index.html").read_text("utf-8")
    assert "Mean points by question" in report


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.parametrize("chapter", EXERCISES)
def test_every_solution_earns_everything_from_the_grader(chapter):
    notebook = read_notebook(ROOT / "solutions" / f"{EXERCISES[chapter]}.ipynb")
    asked = chapter_questions(chapter)
    limits = sandbox.Limits()
    found = submission_grader.examine(notebook, asked, "secret", limits)
    by = replayer(limits, "bubblewrap")
    results, more = submission_grader.judge_all(notebook, asked, "secret", found, by)
    hints = [result.hint for result in results if result.hint]
    assert hints == [*found.flags, *more] == []


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_notebook_that_changes_meanwhile_is_graded_as_it_is(tmp_path, monkeypatch):
    path = hand_in(tmp_path / "in", "ann", notebook(PAIR))
    real = engine.read_notebook
    reads = []

    def change_after_the_first_look(where):
        if reads:
            path.write_text(notebook(SPREAD, *["1 / 0"] * 30))
        reads.append(where)
        return real(where)

    monkeypatch.setattr(engine, "read_notebook", change_after_the_first_look)
    out = tmp_path / "grades.csv"
    assert grade(tmp_path / "in", out) == 0
    found = rows_of(out)["ann"]
    assert found["score"] == "3"
    assert "10 more cells fail" in found["flags"]
    monkeypatch.undo()
    kept, _ = gradebook.read_results(results_file(out))
    settings = engine.Settings("secret", sandbox.Limits(seconds=2.0))
    assert list(kept) == [settings.key_of("06", real(path).digest)]


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was_and_loses_nothing(tmp_path, capsys):
    folder, out = tmp_path / "in", tmp_path / "grades.csv"
    for i in range(COUNT):
        hand_in(folder, f"s{i}", notebook(SPREAD, f"x = {i}"))
    command = [sys.executable, "-m", "course_utils.grading", "grade", str(folder)]
    options = [
        "--out",
        str(out),
        "--seed",
        "secret",
        "--jobs",
        "1",
        "--time-limit",
        "2",
    ]
    process = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)
    store = results_file(out)
    while process.poll() is None:
        if store.exists() and store.stat().st_size:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    kept = len(gradebook.read_results(store)[0])
    assert 1 <= kept < COUNT
    capsys.readouterr()
    assert grade(folder, out, "--jobs", "1") == 0
    assert f"{kept} of {COUNT} are graded already" in capsys.readouterr().out
    assert {name: r["score"] for name, r in rows_of(out).items()} == {
        f"s{i}": "3" for i in range(COUNT)
    }


SLOW = """
import time
def predict_spread():
    ends = time.process_time() + 0.1
    while time.process_time() < ends: pass
    return 8, 32, 4
began = time.process_time()
while time.process_time() < began + 1.4: pass
"""


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_busy_machine_costs_nobody_a_point(tmp_path):
    """Each of four takes 1.4 of its 2 seconds, all at once on whatever there is."""
    for i in range(4):
        hand_in(tmp_path / "in", f"s{i}", notebook(f"{SLOW}\nnumber = {i}"))
    out = tmp_path / "grades.csv"
    assert grade(tmp_path / "in", out, "--jobs", "6") == 0
    assert {row["score"] for row in rows_of(out).values()} == {"3"}
    assert "never ends" not in out.read_text()


EXTRA = """
import numpy as np
from course_utils.grading.questions.model import Part

def zeros(rng):
    return [(np.zeros((4, 3), np.float32), np.ones((4, 3), np.float32))]

PARTS = {"06.6": (Part("weights of zero", 5, zeros, accepts=lambda args, value: True),)}
"""


@pytest.mark.sandbox
@pytest.mark.slow
def test_extra_tests_of_the_instructor_count(tmp_path):
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra" / "mine.py").write_text(EXTRA)
    assert extra_parts(read_extra(tmp_path / "extra"))["06.6"][0].points == 5
    hand_in(tmp_path / "in", "ann", notebook(PAIR))
    out = tmp_path / "grades.csv"
    assert grade(tmp_path / "in", out, "--extra-tests", str(tmp_path / "extra")) == 0
    assert rows_of(out)["ann"]["06.6"] == "7"
    most = sum(question.points for question in chapter_questions("06"))
    assert rows_of(out)["ann"]["max_score"] == str(most + 5)


@pytest.mark.slow
def test_unsafe_grades_trusted_submissions_with_no_sandbox(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "BUBBLEWRAP", None)
    hand_in(tmp_path / "in", "ann", notebook(SPREAD))
    assert grade(tmp_path / "in", tmp_path / "grades.csv", "--unsafe") == 0
    assert rows_of(tmp_path / "grades.csv")["ann"]["score"] == "3"
