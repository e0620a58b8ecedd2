"""The instructor's grader: one row per submission, whatever the folder looks like."""

from __future__ import annotations

import csv
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
from course_utils.grading.classroom import cli, gradebook, submission_grader
from course_utils.grading.classroom.cli import extra_parts, main
from course_utils.grading.classroom.reports import class_page, file_name, student_page
from course_utils.grading.classroom.submission_grader import reaches
from course_utils.grading.classroom.submissions import (
    Notebook,
    find_submissions,
    read_notebook,
)
from course_utils.grading.questions import EXERCISES, chapter_questions
from course_utils.grading.sandbox import sandbox
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
PAIR = "def another_pair(w_q, w_k):\n    return -w_q, -w_k"  # 2 points


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


def test_folders_of_nbgrader_folders_of_students_and_flat_files_are_understood(
    tmp_path,
):
    hand_in(tmp_path, "ann", SOLVED)
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / f"{NAME}.ipynb").write_text(BLANK)
    (tmp_path / f"carl_{NAME}.ipynb").write_text(BLANK)
    (tmp_path / "dora-06.ipynb").write_text(BLANK)
    (tmp_path / "emil_notes.ipynb").write_text(BLANK)
    hidden = tmp_path / "ann" / NAME / ".ipynb_checkpoints"
    hidden.mkdir()
    (hidden / f"{NAME}-checkpoint.ipynb").write_text(BLANK)
    found = find_submissions(tmp_path)
    assert [(s.student, s.chapter) for s in found] == [
        ("ann", "06"),
        ("bob", "06"),
        ("carl", "06"),
        ("dora-06", "06"),
        ("emil_notes", ""),
    ]
    assert found[-1].flags == ("unknown exercise",)
    assert all(s.chapter == "06" for s in find_submissions(tmp_path, "06"))


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
        (b'{"cells": []}', "not read: no code in it"),
        (b'{"cells": {"a": 1}, "cells": "text"}', "not read: no code in it"),
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


# -------------------------------------------------------------------- tables, shards


def row(student: str, key: str = "k", flags: tuple[str, ...] = ()) -> dict:
    question = {
        "points": 1,
        "max_points": 4,
        "parts": [["weights", 1, 4]],
        "misconception": "no_scale",
        "hint": "the scores are `not` scaled <b>",
    }
    return {
        "key": key,
        "student": student,
        "exercise": NAME,
        "score": 1,
        "max_score": 4,
        "flags": list(flags),
        "questions": {"06.1": question},
    }


def test_a_spreadsheet_takes_no_name_for_a_formula():
    names = ['=HYPERLINK("x")', "+1", "-1", "@x", "ann"]
    text = gradebook.as_csv([row(name) for name in names])
    cells = [line[0] for line in csv.reader(text.splitlines())][1:]
    assert cells == [f"'{name}" for name in names[:4]] + ["ann"]


def test_no_piece_of_a_cell_is_a_formula_where_semicolons_separate():
    flags = ("cell 1: x; =1+1", '; "@x', "＝1", "a-b; c=d")
    text = gradebook.as_csv([row("x;=1+1", flags=(flag,)) for flag in flags])
    cells = list(csv.reader(text.splitlines()))[1:]
    assert {line[0] for line in cells} == {"x;'=1+1"}
    assert [line[4] for line in cells] == [
        "cell 1: x; '=1+1",
        "; \"'@x",
        "'＝1",
        "a-b; c=d",
    ]


def test_the_columns_are_those_promised():
    header = gradebook.as_csv([row("ann")]).splitlines()[0]
    assert header == "student,exercise,score,max_score,flags,06.1"


def test_reports_escape_what_a_student_wrote_and_name_files_plainly():
    bad = row("../../<script>alert(1)</script>", flags=("<img src=x>",))
    for page in (student_page(bad), class_page([bad])):
        assert "<script>" not in page
        assert "<img" not in page
        assert "default-src 'none'" in page
    assert "/" not in file_name(bad)
    assert file_name(row("")) != file_name(row("", "other"))


def test_the_class_report_names_the_commonest_misconception_and_who_had_it():
    page = class_page([row("ann", "1"), row("bob", "2")])
    assert 'aria-label="Students who lost points, by question. 06.1: 2 of 2"' in page
    assert "<td>2</td><td>the scores are <code>not</code> scaled &lt;b&gt;<br>" in page
    assert "ann, bob" in page


def test_what_was_not_answered_is_listed_after_what_was_wrong():
    rows = [row("ann", "1"), row("bob", "2"), row("carl", "3")]
    for blank in rows[:2]:
        result = {"misconception": "unanswered", "hint": "not answered yet"}
        blank["questions"] = {"06.1": {**blank["questions"]["06.1"], **result}}
    page = class_page(rows)
    assert page.index("carl") < page.index("not answered yet")


def book(index: int, count: int, **changes) -> dict:
    rows = [row(f"s{index}", f"k{index}")]
    made = {"run": "r", "listing": "l", "submissions": count, "rows": rows}
    return {**made, "shard": [index, count], **changes}


def merging(*books: dict) -> dict:
    return gradebook.merged([(f"part{i}.json", b) for i, b in enumerate(books)])


def test_merge_joins_all_shards_and_notices_what_is_wrong():
    assert len(merging(book(2, 3), book(1, 3), book(3, 3))["rows"]) == 3
    with pytest.raises(ValueError, match="shard 2 of 3 is missing"):
        merging(book(1, 3), book(3, 3))
    with pytest.raises(ValueError, match="shard 1 of 2 is there twice: part0"):
        merging(book(1, 2), book(1, 2))
    with pytest.raises(ValueError, match="does not belong"):
        merging(book(1, 2), book(2, 2, run="another seed"))
    with pytest.raises(ValueError, match="does not belong"):
        merging(book(1, 2), book(2, 2, listing="other submissions"))
    with pytest.raises(ValueError, match="hold 2 rows of 3"):
        merging(book(1, 2, submissions=3), book(2, 2, submissions=3))
    with pytest.raises(ValueError, match="file of a graded shard"):
        merging({"rows": []})


def test_merge_names_the_file_that_is_none(tmp_path, capsys):
    for content in ("", "{", "[1]", '{"shard": [1, 2], "rows": []}'):
        (tmp_path / "part.json").write_text(content)
        assert main(["merge", str(tmp_path / "part.json")]) == 2
        assert "part.json is not the .json file" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "-1/4", "1/0"])
def test_a_wrong_shard_is_refused(text):
    with pytest.raises(ValueError, match="expected i/n with i from 1 to n"):
        gradebook.read_shard(text)


def test_the_journal_drops_a_torn_line_and_keeps_the_rest(tmp_path):
    path = tmp_path / "journal"
    gradebook.append_row(path, row("ann", "1"))
    with path.open("a") as file:
        file.write('\n{"key": "2", "stud')
    gradebook.append_row(path, row("bob", "3"))
    assert set(gradebook.read_journal(path)) == {"1", "3"}


# ------------------------------------------------------------------- what is looked at


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("check.__closure__[0].cell_contents", ["__closure__", "cell_contents"]),
        ("sys._getframe(1).f_back", ["_getframe", "f_back"]),
        ("ｅｘｅｃ('x')", ["exec"]),  # Python reads it as exec
        ("getattr(check, '__glo' + 'bals__')", ["getattr"]),
        ("getattr(check, '__globals__')", ["__globals__"]),
        ("import ctypes", ["ctypes"]),
        ("model.eval(); torch.compile(f); re.compile('x')", []),
        ("getattr(torch, 'softmax')(x, -1); x.__class__.__name__", []),
        ("# an evaluation, executed; variables (compiled)", []),
    ],
)
def test_words_that_reach_behind_a_call_are_found(code, words):
    assert reaches([code]) == words


def test_what_stops_the_judge_stops_no_other_grade(monkeypatch):
    def stumble(*_):
        raise ZeroDivisionError("x\x1b")

    monkeypatch.setattr(submission_grader, "judge", stumble)
    notebook = Notebook(("x = 1",))
    asked = chapter_questions("06")
    records = {question.id: [] for question in asked}
    results, flags = submission_grader.judge_all(notebook, asked, "secret", records)
    assert sum(result.points for result in results) == 0
    assert flags[0] == "06.1 not judged: ZeroDivisionError: x "


# --------------------------------------------------------------------- clear refusals


def test_no_seed_no_folder_no_notebook_and_no_sandbox_are_said(
    tmp_path, capsys, monkeypatch
):
    def refusal(*arguments: str) -> str:
        assert main(["grade", *arguments]) == 2
        return capsys.readouterr().err

    monkeypatch.delenv("COURSE_GRADING_SEED", raising=False)
    assert "no seed" in refusal(str(tmp_path))
    unsafe = ["--seed", "s", "--unsafe"]
    assert "is not a folder" in refusal(str(tmp_path / "none"), *unsafe)
    assert "there is no notebook" in refusal(str(tmp_path), *unsafe)
    assert "expected i/n" in refusal(str(tmp_path), *unsafe, "--shard", "9/8")
    assert "no extra tests" in refusal(str(tmp_path), *unsafe, "--extra-tests", ".git")
    monkeypatch.setattr(sandbox, "BUBBLEWRAP", None)
    assert "bubblewrap is not installed" in refusal(str(tmp_path), "--seed", "s")


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
    assert scores == {"solved": 21, "blank": 0, "'=1+1": 3, "killer": 2, "broken": 0}
    assert rows["solved"]["flags"] == rows["blank"]["flags"] == ""
    assert "not a notebook" in rows["broken"]["flags"]
    assert "06.1 missing" in rows["killer"]["flags"]
    assert {found["max_score"] for found in rows.values()} == {"21"}

    (tmp_path / "second").mkdir()
    hand_in(tmp_path / "second", "zoe", SOLVED)
    hand_in(tmp_path / "second", "killer", notebook("import os; os.kill(-1, 9)", PAIR))
    assert grade(tmp_path / "second", tmp_path / "b.csv", "--jobs", "1") == 0
    again = rows_of(tmp_path / "b.csv")
    assert again["killer"] == rows["killer"]
    assert {**again["zoe"], "student": "solved"} == rows["solved"]
    report = (tmp_path / "a_reports" / "index.html").read_text("utf-8")
    assert "Students who lost points" in report


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.parametrize("chapter", EXERCISES)
def test_every_solution_earns_everything_from_the_grader(chapter):
    notebook = read_notebook(ROOT / "solutions" / f"{EXERCISES[chapter]}.ipynb")
    asked = chapter_questions(chapter)
    records, flags = submission_grader.examine(
        notebook, asked, "secret", sandbox.Limits()
    )
    results, more = submission_grader.judge_all(notebook, asked, "secret", records)
    assert [result.hint for result in results if result.hint] == [*flags, *more] == []


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_notebook_that_changes_meanwhile_is_graded_as_it_is_and_flagged(
    tmp_path, monkeypatch
):
    path = hand_in(tmp_path / "in", "ann", notebook(PAIR))

    def found_then_changed(*arguments):
        kept = find_submissions(*arguments)
        real = cli.grade_one

        def grade_changed(*more):
            path.write_text(notebook(SPREAD, *["1 / 0"] * 30))
            return real(*more)

        monkeypatch.setattr(cli, "grade_one", grade_changed)
        return kept

    monkeypatch.setattr(cli, "find_submissions", found_then_changed)
    assert grade(tmp_path / "in", tmp_path / "grades.csv") == 0
    found = rows_of(tmp_path / "grades.csv")["ann"]
    assert found["score"] == "3"
    assert "changed while it was graded" in found["flags"]
    assert "10 more cells fail" in found["flags"]


@pytest.mark.sandbox
@pytest.mark.slow
def test_shards_merge_into_the_table_of_one_run(tmp_path, capsys):
    folder = tmp_path / "in"
    for student, cells in {
        "ann": [SPREAD],
        "bob": [PAIR],
        "carl": [PAIR, SPREAD],
    }.items():
        hand_in(folder, student, notebook(*cells))
    assert grade(folder, tmp_path / "whole.csv") == 0
    for i in (1, 2):
        assert grade(folder, tmp_path / f"part{i}.csv", "--shard", f"{i}/2") == 0
    parts = [str(tmp_path / f"part{i}.json") for i in (1, 2)]
    merged = tmp_path / "merged.csv"
    assert main(["merge", *parts, "--out", str(merged)]) == 0
    assert merged.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert main(["merge", parts[0], "--out", str(merged)]) == 2
    assert "shard 2 of 2 is missing" in capsys.readouterr().err


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
    journal = tmp_path / "grades.csv.journal"
    while not journal.exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    kept = len(gradebook.read_journal(journal))
    assert 1 <= kept < COUNT
    capsys.readouterr()
    assert grade(folder, out, "--jobs", "1") == 0
    assert f"{kept} of {COUNT} are graded" in capsys.readouterr().out
    assert {name: r["score"] for name, r in rows_of(out).items()} == {
        f"s{i}": "3" for i in range(COUNT)
    }
    assert not journal.exists()


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
    assert extra_parts(tmp_path / "extra")["06.6"][0].points == 5
    hand_in(tmp_path / "in", "ann", notebook(PAIR))
    out = tmp_path / "grades.csv"
    assert grade(tmp_path / "in", out, "--extra-tests", str(tmp_path / "extra")) == 0
    assert rows_of(out)["ann"]["06.6"] == "7"
    assert rows_of(out)["ann"]["max_score"] == "26"


@pytest.mark.slow
def test_unsafe_grades_trusted_submissions_with_no_sandbox(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "BUBBLEWRAP", None)
    hand_in(tmp_path / "in", "ann", notebook(SPREAD))
    assert grade(tmp_path / "in", tmp_path / "grades.csv", "--unsafe") == 0
    assert rows_of(tmp_path / "grades.csv")["ann"]["score"] == "3"
