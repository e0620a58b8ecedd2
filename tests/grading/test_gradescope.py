"""The Gradescope bundle runs as Gradescope runs it, and says what Gradescope reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import jsonschema
import pytest

from course_utils.grading.classroom.cli import main
from course_utils.grading.classroom.gradescope import as_results, grade_submission
from course_utils.grading.scoring import Result

# What Gradescope documents for results.json, as far as we write it, and nothing else.
SHOWN = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
SCHEMA = {
    "type": "object",
    "required": ["tests"],
    "additionalProperties": False,
    "properties": {
        "score": {"type": "number"},
        "execution_time": {"type": "number"},
        "output": {"type": "string"},
        "visibility": SHOWN,
        "stdout_visibility": SHOWN,
        "extra_data": {"type": "object"},
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "score": {"type": "number"},
                    "max_score": {"type": "number"},
                    "status": {"enum": ["passed", "failed"]},
                    "name": {"type": "string"},
                    "number": {"type": "string"},
                    "output": {"type": "string"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "visibility": SHOWN,
                    "extra_data": {"type": "object"},
                },
            },
        },
    },
}


def bundle(tmp_path: Path) -> Path:
    out = tmp_path / "autograder.zip"
    assert main(["gradescope", "06", "--out", str(out), "--seed", "secret"]) == 0
    return out


def test_results_have_the_documented_form():
    results = as_results(
        [Result("06.1", 1, 4, (("weights", 1, 1),), "x", "hint")], ["f"]
    )
    jsonschema.validate(results, SCHEMA)
    assert results["score"] == 1
    assert results["tests"][0]["output"] == "hint"


def test_no_notebook_is_said_and_scores_nothing(tmp_path):
    results = grade_submission("06", tmp_path, "secret", "none")
    jsonschema.validate(results, SCHEMA)
    assert results["score"] == 0
    assert "hand in 06_queries_keys_values.ipynb" in results["output"]


def test_of_several_notebooks_the_exercise_is_graded_and_the_rest_named(tmp_path):
    cell = {"cell_type": "code", "source": "def predict_spread():\n    return 8, 32, 4"}
    for name, cells in {"00_notes": [], "06_queries_keys_values": [cell]}.items():
        (tmp_path / f"{name}.ipynb").write_text(json.dumps({"cells": cells}))
    results = grade_submission("06", tmp_path, "secret", "none")
    assert results["score"] == 3
    assert "2 notebooks, graded 06_queries_keys_values.ipynb" in results["output"]


def test_the_bundle_is_the_same_each_time_and_holds_what_gradescope_starts(tmp_path):
    content = bundle(tmp_path).read_bytes()
    assert bundle(tmp_path).read_bytes() == content
    with zipfile.ZipFile(tmp_path / "autograder.zip") as found:
        assert {"setup.sh", "run_autograder", "seed"} <= set(found.namelist())
        for name in ("setup.sh", "run_autograder"):
            assert found.getinfo(name).external_attr >> 16 == 0o755
        assert b"course_utils.grading.classroom.gradescope 06" in found.read(
            "run_autograder"
        )


@pytest.mark.sandbox
@pytest.mark.slow
def test_the_unpacked_bundle_grades_a_submission(tmp_path):
    root = tmp_path / "autograder"
    for folder in ("source", "submission", "results"):
        (root / folder).mkdir(parents=True)
    with zipfile.ZipFile(bundle(tmp_path)) as found:
        found.extractall(root / "source")
    code = "def predict_spread():\n    return 8, 32, 1"
    cells = [{"cell_type": "code", "source": code}]
    (root / "submission" / "mine.ipynb").write_text(json.dumps({"cells": cells}))
    subprocess.run(
        [
            sys.executable,
            "-m",
            "course_utils.grading.classroom.gradescope",
            "06",
            "--root",
            str(root),
        ],
        cwd=root / "source",
        env={**os.environ, "PYTHONPATH": str(root / "source")},
        check=True,
    )
    results = json.loads((root / "results" / "results.json").read_text())
    jsonschema.validate(results, SCHEMA)
    assert results["score"] == 2
    by_number = {test["number"]: test for test in results["tests"]}
    assert "√d_k undoes what" in by_number["06.5"]["output"]
    assert (root / "source" / "seed").stat().st_mode & 0o077 == 0
