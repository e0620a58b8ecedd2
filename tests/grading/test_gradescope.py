"""The Gradescope bundle runs as Gradescope runs it, and says what Gradescope reads."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import jsonschema
import pytest

from course_utils.grading.classroom.cli import main
from course_utils.grading.classroom.engine import Settings
from course_utils.grading.classroom.gradescope import as_results, grade_submission
from course_utils.grading.scoring import Result

TRUSTED = Settings("secret", isolation="none")

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


def bundle(tmp_path: Path, *options: str) -> Path:
    out = tmp_path / "autograder.zip"
    given = ["--out", str(out), "--seed", "secret", *options]
    assert main(["gradescope", "06", *given]) == 0
    return out


def test_results_have_the_documented_form():
    results = as_results(
        [Result("06.1", 1, 4, (("weights", 1, 1),), "x", "hint")], ["f"]
    )
    jsonschema.validate(results, SCHEMA)
    assert results["score"] == 1
    assert results["tests"][0]["output"] == "hint"


def test_no_notebook_is_said_and_scores_nothing(tmp_path):
    results = grade_submission("06", tmp_path, TRUSTED)
    jsonschema.validate(results, SCHEMA)
    assert results["score"] == 0
    assert "hand in 06_queries_keys_values.ipynb" in results["output"]


def test_of_several_notebooks_the_exercise_is_graded_and_the_rest_named(tmp_path):
    cell = {"cell_type": "code", "source": "def predict_spread():\n    return 8, 32, 4"}
    for name, cells in {"00_notes": [], "06_queries_keys_values": [cell]}.items():
        (tmp_path / f"{name}.ipynb").write_text(json.dumps({"cells": cells}))
    results = grade_submission("06", tmp_path, TRUSTED)
    assert results["score"] == 3
    assert "2 notebooks, graded 06_queries_keys_values.ipynb" in results["output"]


def test_the_bundle_is_the_same_each_time_and_holds_what_gradescope_starts(tmp_path):
    content = bundle(tmp_path).read_bytes()
    assert bundle(tmp_path).read_bytes() == content
    with zipfile.ZipFile(tmp_path / "autograder.zip") as found:
        names = set(found.namelist())
        assert {"setup.sh", "run_autograder", "settings.json"} <= names
        for name in ("setup.sh", "run_autograder"):
            assert found.getinfo(name).external_attr >> 16 == 0o755
        assert b"course_utils.grading.classroom.gradescope" in found.read(
            "run_autograder"
        )
        setup = found.read("setup.sh").decode()
        for package in ("torch", "numpy", "einops", "ipython"):
            assert f"{package}=={version(package).partition('+')[0]}" in setup


# --------------------------------------------------- in something like its container

START = """\
import sys
from course_utils.grading.sandbox import sandbox
from course_utils.grading.classroom import gradescope
if "no namespaces" in sys.argv[1]:
    sandbox.BUBBLEWRAP = "/bin/false"
if "no rights" in sys.argv[1]:
    gradescope.os.geteuid = lambda: 1000
sys.argv[1:] = ["--root", sys.argv[-1]]
gradescope.main()
"""


# Python in a locked folder is no part of what is tested: another user may run it.
UNLOCK = """
set -e
mkdir "$1/kept"; mount --bind "$2" "$1/kept"
mount -t tmpfs -o mode=755 none "$3"
mkdir -p "$2"; mount --bind "$1/kept" "$2"
shift 3; exec "$@"
"""


def enterable(command: list[str], folder: Path) -> list[str]:
    """Let every user run Python, in a view of the files that no other process has."""
    prefix = Path(sys.base_prefix)
    locked = [x for x in prefix.parents if not x.stat().st_mode & 0o001]
    if os.geteuid() or not locked:
        return command
    places = [str(folder), str(prefix), str(locked[-1])]
    return ["unshare", "-m", "sh", "-c", UNLOCK, "sh", *places, *command]


@pytest.fixture
def container(tmp_path):
    """Unpack a bundle, hand something in, start it, read what it says."""
    folder = Path(tempfile.mkdtemp())  # which every user may enter
    folder.chmod(0o755)

    def run(*cells: str, state: str = "", options: tuple[str, ...] = ()) -> dict:
        root = folder / "autograder"
        for name in ("source", "submission", "results"):
            (root / name).mkdir(parents=True)
        with zipfile.ZipFile(bundle(tmp_path, *options)) as found:
            found.extractall(root / "source")
        made = [{"cell_type": "code", "source": cell} for cell in cells]
        path = root / "submission" / "mine.ipynb"
        path.write_text(json.dumps({"cells": made}))
        command = [sys.executable, "-c", START, state, str(root)]
        subprocess.run(
            enterable(command, folder) if state == "no namespaces" else command,
            cwd=root / "source",
            env={**os.environ, "PYTHONPATH": str(root / "source")},
            check=True,
        )
        results = json.loads((root / "results" / "results.json").read_text())
        jsonschema.validate(results, SCHEMA)
        assert (root / "source" / "settings.json").stat().st_mode & 0o077 == 0
        return results

    yield run
    shutil.rmtree(folder)


ALMOST = "def predict_spread():\n    return 8, 32, 1"


@pytest.mark.sandbox
@pytest.mark.slow
def test_the_unpacked_bundle_grades_a_submission(container):
    results = container(ALMOST)
    assert results["score"] == 2
    by_number = {test["number"]: test for test in results["tests"]}
    assert "√d_k undoes what" in by_number["06.5"]["output"]


ATTACK = """
import glob, os, socket
def attempt(what):
    try:
        what()
    except OSError as error:
        return type(error).__name__
    return "done"
def fork():
    if not os.fork():
        os._exit(0)
found = [path for path in glob.glob("/tmp/*/autograder/source/settings.json")]
tried = {
    "socket": attempt(lambda: socket.create_connection(("127.0.0.1", 9), 1)),
    "process": attempt(lambda: os.posix_spawn("/bin/true", ["true"], {})),
    "fork": attempt(fork),
    **{path: attempt(lambda: open(path)) for path in found},
    "results": attempt(lambda: [open(f"{path[:-20]}results/x", "w") for path in found]),
}
assert found
wrong = {name for name, what in tried.items() if what != "PermissionError"}
assert not wrong, wrong
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as in a container")
def test_without_namespaces_another_user_gets_no_process_no_socket_and_no_secret(
    container,
):
    results = container(ATTACK, ALMOST, state="no namespaces")
    assert results["score"] == 2
    assert "cell 1" not in results["output"]


@pytest.mark.slow
def test_with_no_usable_sandbox_the_results_say_so(tmp_path, container, monkeypatch):
    results = container(ALMOST, state="no namespaces, no rights")
    assert results["tests"] == []
    assert "was not graded, and nothing is held against it" in results["output"]


EXTRA = """
import numpy as np
from course_utils.grading.questions.model import Part

def zeros(rng):
    return [(np.zeros((4, 3), np.float32), np.ones((4, 3), np.float32))]

PARTS = {"06.6": (Part("weights of zero", 5, zeros, accepts=lambda args, value: True),)}
"""


@pytest.mark.sandbox
@pytest.mark.slow
def test_time_memory_and_extra_tests_go_into_the_bundle(tmp_path, container):
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra" / "mine.py").write_text(EXTRA)
    limits = ("--time-limit", "2", "--memory", "3000")
    extra = ("--extra-tests", str(tmp_path / "extra"))
    endless = "def predict_spread():\n    while True: pass"
    pair = "    u, s, v = w_q.svd()\n    return u, w_k @ v * s"
    pair = f"def another_pair(w_q, w_k):\n{pair}"
    results = container(endless, pair, options=(*limits, *extra))
    assert results["score"] == 7
    assert "06.5 never ends" in results["output"]
    with zipfile.ZipFile(tmp_path / "autograder.zip") as found:
        settings = json.loads(found.read("settings.json"))
    assert (settings["seconds"], settings["memory"]) == (2.0, 3000 << 20)


def test_an_impossible_limit_is_refused(tmp_path, capsys):
    out = ["--out", str(tmp_path / "x.zip"), "--seed", "s"]
    assert main(["gradescope", "06", *out, "--memory", "1"]) == 2
    assert "--memory is 1" in capsys.readouterr().err
