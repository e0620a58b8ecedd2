"""A class that outgrows a machine: Dask's workers give the table of one machine."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest
from distributed import LocalCluster

from course_utils.grading.classroom import engine, gradebook
from course_utils.grading.classroom.cli import main, results_file
from course_utils.grading.sandbox import sandbox

NAME = "06_queries_keys_values"
ANSWERS = (
    "def predict_spread():\n    return 8, 32, 4",
    "def another_pair(w_q, w_k):\n    u, s, v = w_q.svd()\n    return u, w_k @ v * s",
    "def predict_spread():\n    return 8, 32, 1",
    "raise SystemExit",
)


def a_class(folder: Path, count: int) -> Path:
    for i in range(count):
        path = folder / f"student{i:02}" / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        sources = [f"number = {i}", ANSWERS[i % 4], ANSWERS[(i + 1) % 4]]
        cells = [{"cell_type": "code", "source": source} for source in sources]
        path.write_text(json.dumps({"cells": cells}))
    return folder


def grade(folder: Path, out: Path, *more: str) -> int:
    options = ["--seed", "secret", "--quiet", "--time-limit", "2", *more]
    return main(["grade", str(folder), "--out", str(out), *options])


@pytest.fixture
def cluster():
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**settings) as made:
        yield made


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_killed_worker_costs_no_row_and_no_row_comes_twice(tmp_path, cluster):
    count = 8
    folder = a_class(tmp_path / "in", count)
    out = tmp_path / "cluster.csv"
    store = results_file(out)
    killed = []

    def kill_one() -> None:
        while len(gradebook.read_results(store)[0]) < 2:
            time.sleep(0.02)
        victim = next(iter(cluster.workers.values())).pid
        os.kill(victim, 9)
        killed.append(victim)

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    assert grade(folder, out, "--scheduler", cluster.scheduler_address) == 0
    killer.join(10)
    assert killed
    lines = [x for x in store.read_text().splitlines() if x]
    assert len(lines) == count
    assert grade(folder, tmp_path / "here.csv") == 0
    assert out.read_text() == (tmp_path / "here.csv").read_text()
    assert len(out.read_text().splitlines()) == count + 1


def test_no_scheduler_no_workers_and_unfit_ones_are_said(tmp_path, capsys, monkeypatch):
    folder = a_class(tmp_path / "in", 1)
    monkeypatch.setattr(engine, "CONNECTING", 1)

    def refusal(address: str) -> str:
        assert grade(folder, tmp_path / "x.csv", "--scheduler", address) == 2
        return capsys.readouterr().err

    assert "no scheduler answers at" in refusal("tcp://127.0.0.1:9")
    assert "no scheduler answers at" in refusal("nonsense://")
    alone = {"processes": False, "dashboard_address": None, "n_workers": 0}
    with LocalCluster(**alone) as empty:
        assert "has no workers" in refusal(empty.scheduler_address)
        empty.scale(1)
        empty.sync(empty._correct_state)
        with monkeypatch.context() as patch:  # its worker is a thread of this process
            patch.setattr(sandbox, "BUBBLEWRAP", None)
            assert "bubblewrap is not installed" in refusal(empty.scheduler_address)
        digests = iter("ab")
        with monkeypatch.context() as patch:
            patch.setattr(engine, "sources_digest", lambda _: next(digests))
            patch.setattr(engine.Settings, "key_of", lambda *_: "key")
            patch.setattr(engine, "sandbox_problem", lambda: None)
            assert "another version of the course" in refusal(empty.scheduler_address)
