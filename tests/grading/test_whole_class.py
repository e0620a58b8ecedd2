"""A week of a whole class, killed on the way, ends in one table that is right.

With `COURSE_CLASS=300` in the environment the class has 300 students (24 otherwise).
"""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from made_class import LAYOUTS, Handed, MadeClass, make_class

from course_utils.grading.classroom import gradebook
from course_utils.grading.questions import EXERCISES, chapter_questions

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]
COUNT = int(os.environ.get("COURSE_CLASS", "24"))
ALL = tuple(question.id for question in chapter_questions("06"))


def command(made: MadeClass, out: Path, jobs: int) -> list[str]:
    folders = [str(made.root / "in" / layout) for layout in LAYOUTS]
    options = f"--seed secret --time-limit 2 --quiet --jobs {jobs}".split()
    about = ["--class", str(made.write()), "--out", str(out)]
    grade = [sys.executable, "-m", "course_utils.grading", "grade"]
    return [*grade, *folders, *about, *options]


def graded(made: MadeClass, out: Path, jobs: int = 2) -> str:
    """Grade to the end; returns what was said."""
    run = subprocess.run(command(made, out, jobs), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def kept(out: Path) -> int:
    return len(gradebook.read_results(out.with_suffix(".results.jsonl"))[0])


def killed(made: MadeClass, out: Path, rows: int) -> None:
    """Start to grade, and kill the grader as soon as it has graded so many."""
    process = subprocess.Popen(
        command(made, out, 2), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while process.poll() is None and kept(out) < rows:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not out.exists()


def differences(made: MadeClass, out: Path) -> list[object]:
    """Every cell of the table that is not what was expected, and every flag."""
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {(row["id"], row["exercise"]): row for row in rows}
    expected = made.expected()
    assert len(rows) == len(found)
    assert found.keys() == expected.keys()
    wrong: list[object] = []
    for key, row in expected.items():
        wrong += [
            (key, name, value, found[key][name], found[key]["flags"])
            for name, value in row.items()
            if found[key][name] != value
        ]
        flag = made.flag(key[0], key[1][:2])
        wrong += [(key, flag, found[key]["flags"])] * (flag not in found[key]["flags"])
    return wrong


def test_a_week_of_a_class_ends_in_one_right_table(tmp_path):
    made = make_class(tmp_path, COUNT)
    out = tmp_path / "grades.csv"
    handed_in = sum(len(student.work) for student in made.students.values())
    killed(made, out, handed_in // 3)
    killed(made, out, 2 * handed_in // 3)
    before = kept(out)
    said = graded(made, out)
    assert f"{before} of {handed_in} are graded already" in said
    assert differences(made, out) == []

    fixed, withdrawn, missing = "1004", "1003", "1011"
    lost = [x for x in made.students[fixed].work if x.chapter != "06"]
    made.change(fixed, Handed("06", ALL), *lost)
    made.change(withdrawn)
    made.change(missing, Handed("06", ALL[:3]))
    made.corrections[("1001", "06", "06.2")] = 3
    made.corrections[("1000", "06", "late")] = 0
    before = kept(out)
    for new in (2, 0):
        said = graded(made, out)
        assert kept(out) == before + new
        before += new
        assert differences(made, out) == []
    assert "seen in person" in out.read_text("utf-8")
    totals = (tmp_path / "grades_totals.csv").read_text("utf-8").splitlines()
    assert len(totals) == COUNT + 1
    assert totals[0].endswith(",".join([*EXERCISES.values()][5:7]) + ",total,max_total")


BUSY = "while True: pass"
SLOW = """
import time
def predict_spread():
    ends = time.process_time() + 0.1
    while time.process_time() < ends: pass
    return 8, 32, 4
began = time.process_time()
while time.process_time() < began + 1.2: pass
"""


@contextmanager
def busy_machine() -> Iterator[None]:
    """Keep two processes at work beside whatever is measured."""
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def test_a_table_is_the_same_for_any_number_of_jobs_on_a_busy_machine(tmp_path):
    made = make_class(tmp_path, COUNT // 4)
    for i in range(2):  # 1.2 of 2 seconds in one cell
        path = tmp_path / "in" / "student" / f"slow {i}" / f"{EXERCISES['06']}.ipynb"
        path.parent.mkdir()
        cells = [{"cell_type": "code", "source": f"{SLOW}\nnumber = {i}"}]
        path.write_text(json.dumps({"cells": cells}))
    tables = []
    with busy_machine():
        for jobs in (1, 2, 6):
            out = tmp_path / f"with_{jobs}_jobs.csv"
            graded(made, out, jobs)
            tables.append(out.read_text("utf-8"))
    assert tables[0] == tables[1] == tables[2]
    slow = [line for line in tables[0].splitlines() if line.startswith("slow ")]
    assert [line.split(",")[3] for line in slow] == ["3"] * 2
    assert not any("never ends" in line for line in slow)
