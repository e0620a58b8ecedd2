"""What grading a class costs: processor and clock seconds for each submission.

    python -m benchmarks.grading [--submissions 30] [--jobs 2]

Half of the class hands in the solution of chapter 06, half a blank exercise. The
processor's seconds are those of the grader and of the workers in its sandboxes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from course_utils.grading.classroom import cli, submission_grader
from tools.notebooks.exercises import exercise_of
from tools.notebooks.io import ROOT, dumps, read

NAME = "06_queries_keys_values"
usual = submission_grader.converse
spent: list[float] = []


def counted(*arguments: Any) -> Iterator[dict[str, Any]]:
    """Pass on a worker's messages, and keep what it says of its processor time."""
    for message in usual(*arguments):
        spent.append(message.get("processor", 0.0))
        yield message


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--submissions", type=int, default=30)
    options.add_argument("--jobs", type=int, default=2)
    given = options.parse_args()
    solution = read(ROOT / "solutions" / f"{NAME}.ipynb")
    texts = [dumps(solution), dumps(exercise_of(solution))]
    vars(submission_grader)["converse"] = counted
    with tempfile.TemporaryDirectory() as folder:
        for i in range(given.submissions):
            path = Path(folder, "in", f"student{i:03}", f"{NAME}.ipynb")
            path.parent.mkdir(parents=True)
            path.write_text(texts[i % 2], encoding="utf-8")
        began, used = time.monotonic(), time.process_time()
        where = [str(Path(folder, "in")), "--out", str(Path(folder, "grades.csv"))]
        settings = ["--seed", "benchmark", "--quiet", "--jobs", str(given.jobs)]
        cli.main(["grade", *where, *settings])
        clock = (time.monotonic() - began) / given.submissions
        used = time.process_time() - used
        processor = (sum(spent) + used) / given.submissions
    print(f"{processor:.2f} processor seconds, {clock:.2f} of the clock, a submission")


if __name__ == "__main__":
    main()
