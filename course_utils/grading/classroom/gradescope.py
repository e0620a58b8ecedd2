"""A Gradescope autograder: the bundle to upload, and what runs there.

Gradescope gives every submission a container of its own. Where bubblewrap works in it,
it is used; where it does not, the submission runs as another user, who can read neither
the seed nor the questions and cannot write the results.
"""

from __future__ import annotations

import argparse
import json
import os
import zipfile
from pathlib import Path
from typing import Any

from course_utils.grading.classroom.gradebook import write_whole
from course_utils.grading.classroom.submission_grader import examine, judge_all
from course_utils.grading.classroom.submissions import find_submissions, read_notebook
from course_utils.grading.questions import EXERCISES, chapter_questions, find_question
from course_utils.grading.sandbox.sandbox import Isolation, Limits, sandbox_problem
from course_utils.grading.scoring import Result

PACKAGE = Path(__file__).parents[2]
SETUP = """#!/usr/bin/env bash
set -e
apt-get update
apt-get install -y bubblewrap python3 python3-pip
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "Python is older than 3.11: choose a newer base image, such as Ubuntu 24.04"
  exit 1
}
pip_options=$(pip3 help install | grep -o -m1 -- --break-system-packages || true)
pip3 install $pip_options numpy einops
pip3 install $pip_options torch --index-url https://download.pytorch.org/whl/cpu
"""
RUN = """#!/usr/bin/env bash
cd /autograder/source
python3 -m course_utils.grading.classroom.gradescope CHAPTER
"""


def write_bundle(chapter: str, out: Path, secret: str) -> None:
    """Write the zip: set-up, start, seed and this package; the same bytes each time."""
    files = {
        "setup.sh": SETUP,
        "run_autograder": RUN.replace("CHAPTER", chapter),
        "seed": secret,
    }
    for path in sorted(PACKAGE.rglob("*.py")):
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


def grade_submission(
    chapter: str, folder: Path, secret: str, isolation: Isolation
) -> dict[str, Any]:
    """Grade the one submission of a container."""
    found = find_submissions(folder, chapter)
    if not found:
        questions = chapter_questions(chapter)
        missing = [Result(q.id, 0, q.points, (), "missing") for q in questions]
        return as_results(missing, [f"hand in {EXERCISES[chapter]}.ipynb: none found."])
    right = [one for one in found if one.path.stem == EXERCISES[chapter]]
    chosen = (right or found)[0]
    several = [f"{len(found)} notebooks, graded {chosen.path.name}"] * (len(found) > 1)
    notebook = read_notebook(chosen.path)
    questions = chapter_questions(chapter)
    records, flags = examine(notebook, questions, secret, Limits(), isolation)
    results, more = judge_all(notebook, questions, secret, records)
    notes = [*several, *chosen.flags, *notebook.flags, *flags, *more]
    return as_results(results, notes)


def lock(source: Path, results: Path) -> None:
    """Keep seed, questions and results from every user but this one."""
    for path in (
        source / "seed",
        source / "course_utils" / "grading" / "questions",
        results,
    ):
        os.chmod(path, 0o700)


def main() -> None:
    """Grade the submission that Gradescope laid out, and write its results."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("chapter")
    options.add_argument("--root", type=Path, default=Path("/autograder"))
    given = options.parse_args()
    source, results = given.root / "source", given.root / "results"
    lock(source, results)
    isolation: Isolation = "bubblewrap" if sandbox_problem() is None else "user"
    secret = (source / "seed").read_text(encoding="utf-8")
    graded = grade_submission(
        given.chapter, given.root / "submission", secret, isolation
    )
    write_whole(results / "results.json", json.dumps(graded, indent=1))


if __name__ == "__main__":
    main()
