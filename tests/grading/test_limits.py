"""What a submission may use, and that who uses more hurts nobody else."""

from __future__ import annotations

import csv
import json
import os
import platform
import time
from pathlib import Path

import pytest

from course_utils.grading.classroom.cli import main
from course_utils.grading.classroom.submission_grader import examine
from course_utils.grading.classroom.submissions import Notebook
from course_utils.grading.questions import chapter_questions
from course_utils.grading.sandbox.excess import usage_of
from course_utils.grading.sandbox.sandbox import (
    NOTHING,
    Allowance,
    Limits,
    converse,
    request_of,
)

NAME = "06_queries_keys_values"
SPREAD = "def predict_spread():\n    return 8, 32, 4"  # 3 points
WASTE = {
    "fork bomb": "import os\nwhile True:\n    os.fork()",
    "many files": "for i in range(10_000): open(f'/tmp/{i}', 'w').close()",
    "disk filler": (
        "for i in range(10_000): open(f'/tmp/{i}', 'wb').write(bytes(1 << 20))"
    ),
    "sleeper": "import time\ntime.sleep(1e9)",
    "spinner": (
        "import threading, time\n"
        "def spin():\n    while True: sum(range(1000))\n"
        "for _ in range(20): threading.Thread(target=spin, daemon=True).start()"
    ),
}


def hand_in(folder: Path, student: str, *cells: str) -> None:
    path = folder / student / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    made = [{"cell_type": "code", "source": cell} for cell in cells]
    path.write_text(json.dumps({"cells": made}))


def workers() -> set[int]:
    """The processes of sandboxes that this process started."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            command = (place / "cmdline").read_bytes()
            mine = f"PPid:\t{os.getpid()}\n" in (place / "status").read_text()
        except OSError:
            continue
        if mine and b"sandbox" in command:
            found.add(int(place.name))
    return found


@pytest.mark.sandbox
@pytest.mark.slow
def test_who_wastes_hurts_no_neighbour_and_leaves_nothing(tmp_path):
    before, files = workers(), set(os.listdir("/tmp"))
    for i, (name, code) in enumerate(WASTE.items()):
        hand_in(tmp_path / "in", name, code, SPREAD)
        hand_in(tmp_path / "in", f"neighbour {i}", f"number = {i}", SPREAD)
    out = tmp_path / "grades.csv"
    options = ["--seed", "secret", "--quiet", "--time-limit", "2", "--jobs", "4"]
    assert main(["grade", str(tmp_path / "in"), "--out", str(out), *options]) == 0
    with out.open(encoding="utf-8", newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    honest = [row for name, row in rows.items() if name.startswith("neighbour")]
    assert [row["06.5"] for row in honest] == ["3"] * len(WASTE)
    assert len({row["flags"] for row in honest}) == 1
    idle = WASTE.keys() - {"spinner"}  # whose threads spend its own time
    assert {name: rows[name]["06.5"] for name in idle} == dict.fromkeys(idle, "3")
    assert workers() <= before | replayers(before)
    left = {name for name in set(os.listdir("/tmp")) - files if "course" in name}
    assert left == set()


def replayers(before: set[int]) -> set[int]:
    """Sandboxes that wait for programs to replay: at hand until the grader ends."""
    return {x for x in workers() - before if usage_of(x).threads < 8}


@pytest.mark.sandbox
@pytest.mark.slow
def test_many_threads_together_get_the_processor_time_of_one():
    """Twenty threads spin in every worker; together they stop at the total."""
    limits = Limits(seconds=1.0)
    cells = (WASTE["spinner"], "import time\ntime.sleep(1e9)", SPREAD)
    began = time.process_time(), os.times().children_user
    notebook = Notebook(cells, digest="x")
    found = examine(notebook, chapter_questions("06")[4:5], "secret", limits)
    assert found.records["06.5"][0].failure is None
    assert time.process_time() - began[0] < limits.total
    assert os.times().children_user - began[1] < limits.total + 1


@pytest.mark.parametrize(
    ("isolation", "user", "release", "limited"),
    [
        ("bubblewrap", 1000, "6.1.0-13-amd64", True),
        ("bubblewrap", 1000, "5.10.0", False),  # it would count the user's others
        ("bubblewrap", 0, "6.1.0", False),  # it never counts those of root
        ("user", 0, "5.10.0", True),
    ],
)
def test_the_kernel_counts_threads_where_it_can(
    isolation, user, release, limited, monkeypatch
):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(platform, "release", lambda: release)
    asked = request_of(Limits(), isolation, "mark")["limits"]
    assert ("RLIMIT_NPROC" in asked) == limited


@pytest.mark.sandbox
def test_all_tries_of_a_submission_share_one_budget_of_output():
    left = Allowance(output=150)  # two short messages
    *_, last = converse(NOTHING, Limits(), left=left)
    assert last == {"end": "output"}
