"""A Gradescope autograder: the bundle to upload, and what runs there.

Gradescope gives every submission a container of its own. Where bubblewrap works in it,
it is used. Where it does not, the submission runs as another user, who can read neither
the seed nor the questions and cannot write the results, with a filter that refuses it a
second process and sockets. Where neither can be had, `results.json` says so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from course_utils.grading.classroom.engine import DEFAULTS, Settings, grade_text
from course_utils.grading.classroom.extra_tests import Extra, questions_of
from course_utils.grading.classroom.gradebook import write_whole
from course_utils.grading.classroom.layouts import files_under
from course_utils.grading.classroom.submissions import read_notebook, shown_name
from course_utils.grading.questions import EXERCISES, find_question
from course_utils.grading.sandbox.sandbox import (
    NOTHING,
    Isolation,
    Limits,
    SandboxError,
    converse,
    sandbox_problem,
)
from course_utils.grading.sandbox.system_calls import SYSTEM_CALLS
from course_utils.grading.scoring import Result

PACKAGE = Path(__file__).parents[2]
PINNED = ("einops", "ipython", "matplotlib", "numpy", "scikit-learn", "tqdm")
SETUP = """#!/usr/bin/env bash
set -e
apt-get update
apt-get install -y bubblewrap python3 python3-pip
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "Python is older than 3.11: choose a newer base image, such as Ubuntu 24.04"
  exit 1
}
pip_options=$(pip3 help install | grep -o -m1 -- --break-system-packages || true)
pip3 install $pip_options PINNED
pip3 install $pip_options TORCH --index-url https://download.pytorch.org/whl/cpu
"""
RUN = """#!/usr/bin/env bash
cd /autograder/source
python3 -m course_utils.grading.classroom.gradescope
"""
NO_SANDBOX = (
    "This submission was not graded, and nothing is held against it: the autograder's "
    "container lets no sandbox be made (no bubblewrap, no right to change the user). "
    "Tell your instructor."
)


def pinned(name: str) -> str:
    """Name a package in the version that is installed here."""
    return f"{name}=={version(name).partition('+')[0]}"


def write_bundle(
    chapter: str, out: Path, secret: str, limits: Limits = DEFAULTS, extra: Extra = ()
) -> None:
    """Write the zip: set-up, start, settings and this package; always the same bytes.

    The versions it installs are those that are installed here.
    """
    settings = {
        "chapter": chapter,
        "seed": secret,
        "seconds": limits.seconds,
        "memory": limits.memory,
        "extra": extra,
    }
    setup = SETUP.replace("PINNED", " ".join(map(pinned, PINNED)))
    files = {
        "setup.sh": setup.replace("TORCH", pinned("torch")),
        "run_autograder": RUN,
        "settings.json": json.dumps(settings, indent=1),
    }
    for path in sorted((*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.js"))):
        name = path.relative_to(PACKAGE.parent).as_posix()
        files[name] = path.read_text(encoding="utf-8")
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, text in sorted(files.items()):
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            runs = name in ("setup.sh", "run_autograder")
            entry.external_attr = (0o755 if runs else 0o644) << 16
            bundle.writestr(entry, text, zipfile.ZIP_DEFLATED)


def as_results(results: list[Result], flags: list[str]) -> dict[str, Any]:
    """Write results in the form that Gradescope documents for results.json."""
    return {
        "score": sum(result.points for result in results),
        "output": "\n".join(flags),
        "stdout_visibility": "hidden",
        "tests": [
            {
                "name": find_question(result.question).title,
                "number": result.question,
                "score": result.points,
                "max_score": result.max_points,
                "status": "passed" if result.points == result.max_points else "failed",
                "output": result.hint or "right",
                "visibility": "visible",
            }
            for result in results
        ],
    }


def notebooks_in(folder: Path, chapter: str) -> list[Path]:
    """What was handed in, the notebook with the exercise's own name first."""
    found = [path for path in files_under(folder) if path.suffix.lower() == ".ipynb"]
    return sorted(found, key=lambda path: (path.stem != EXERCISES[chapter], path.name))


def grade_submission(chapter: str, folder: Path, settings: Settings) -> dict[str, Any]:
    """Grade the one submission of a container; alone there, it is tried twice."""
    found = notebooks_in(folder, chapter)
    questions = questions_of(chapter, settings.extra)
    if not found:
        missing = [Result(q.id, 0, q.points, (), "missing") for q in questions]
        return as_results(missing, [f"hand in {EXERCISES[chapter]}.ipynb: none found."])
    name = shown_name(found[0].name)
    several = [f"{len(found)} notebooks, graded {name}"] * (len(found) > 1)
    notebook = read_notebook(found[0])
    row = grade_text(notebook, chapter, settings)
    if "again" in row:
        row = grade_text(notebook, chapter, settings, alone=True)
    results = [
        Result(**{**result, "parts": tuple(result["parts"])})
        for result in row["questions"].values()
    ]
    return as_results(results, [*several, *row["flags"], *row["notes"]])


def lock(source: Path, results: Path) -> None:
    """Keep settings, questions and results from every user but this one."""
    for path in (
        source / "settings.json",
        source / "course_utils" / "grading" / "questions",
        results,
    ):
        os.chmod(path, 0o700)


def usable_isolation() -> Isolation | None:
    """The best protection that this container allows, if any."""
    if sandbox_problem() is None:
        return "bubblewrap"
    if os.geteuid() or platform.machine() not in SYSTEM_CALLS:
        return None
    try:
        *_, last = converse(NOTHING, DEFAULTS, "user")
    except (SandboxError, OSError, subprocess.SubprocessError):
        return None
    return "user" if last["end"] == "done" else None


def main() -> None:
    """Grade the submission that Gradescope laid out, and write its results."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--root", type=Path, default=Path("/autograder"))
    root = options.parse_args().root
    source, results = root / "source", root / "results"
    lock(source, results)
    given = json.loads((source / "settings.json").read_text(encoding="utf-8"))
    isolation = usable_isolation()
    if isolation is None:
        graded = as_results([], [NO_SANDBOX])
    else:
        limits = Limits(seconds=given["seconds"], memory=given["memory"])
        extra = tuple((name, text) for name, text in given["extra"])
        settings = Settings(given["seed"], limits, isolation, extra)
        graded = grade_submission(given["chapter"], root / "submission", settings)
    write_whole(results / "results.json", json.dumps(graded, indent=1))


if __name__ == "__main__":
    main()
