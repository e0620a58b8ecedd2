"""Area 6: the course itself, measured on what `make book` made last.

Seconds of each notebook against the budget of a chapter, the bytes of a first visit to
each page against the limit of the site's tests, the processor time of grading one
submission, and what the course's one thread saves on a busy machine.
"""

from __future__ import annotations

import gzip
import importlib.util
import os
import re
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path

from benchmarks.results import Row, made
from benchmarks.tasks import Plan, Task
from benchmarks.threads import under_load
from benchmarks.timing import Ratio
from tools.notebooks.execute import BOOK_BUDGET, CHAPTER_BUDGET, KEPT
from tools.notebooks.io import ROOT, read

AREA = "course"
PAGE_LIMIT = 400_000  # bytes of a first visit, gzipped, as in the site's tests
SUBMISSION_LIMIT = 1.3  # processor seconds
LINKED = re.compile(r'(?:src|href)="([^"#?:]+\.(?:css|js|svg|png|woff2))')


CLOCK = (
    "Seconds of chapters are the clock's, from the last `make book`: they count "
    "whatever else the machine did."
)


def row(
    name: str, size: str, value: float, limit: float, unit: str, note: str = ""
) -> Row:
    """How much of a limit is used."""
    share = value / limit
    baseline = f"a limit of {limit:g} {unit}"
    return made(AREA, name, size, Ratio(share, share, share), 1.0, baseline, note=note)


def chapter_rows(plan: Plan) -> list[Row]:
    """The slowest chapter, the median one, and all of them on two cores."""
    executed = ROOT / "_build" / "executed" / "book"
    found = {
        path.stem: read(path).metadata[KEPT]["seconds"]
        for path in sorted(executed.glob("[0-9][0-9]_*.ipynb"))
    }
    if not found:
        print("no notebook was executed yet; `make book` first, for their seconds")
        return []
    slowest = max(found, key=lambda name: found[name])
    middle = statistics.median(found.values())
    whole = sum(found.values()) / 2
    count = f"{len(found)} chapters"
    return [
        row("the slowest chapter", slowest, found[slowest], CHAPTER_BUDGET, "s", CLOCK),
        row("the median chapter", count, middle, CHAPTER_BUDGET, "s", CLOCK),
        row("all chapters, two at a time", count, whole, BOOK_BUDGET, "s", CLOCK),
    ]


def first_visit(page: Path) -> int:
    """The gzipped bytes of a page and of the files that it names."""
    files = {page}
    for name in LINKED.findall(page.read_text("utf-8")):
        file = (page.parent / name).resolve()
        if file.is_file():
            files.add(file)
    return sum(len(gzip.compress(file.read_bytes())) for file in files)


def page_rows(plan: Plan) -> list[Row]:
    """The heaviest page and the median one."""
    folder = ROOT / "_build" / "html"
    weights = {
        path.stem: first_visit(path)
        for path in sorted((folder / "book").glob("[0-9][0-9]_*.html"))
    }
    if not weights:
        print("the site was not built yet; `make book` first, for its pages' weight")
        return []
    heaviest = max(weights, key=lambda name: weights[name])
    middle = statistics.median(weights.values()) / 1000
    limit = PAGE_LIMIT / 1000
    return [
        row("the heaviest page", heaviest, weights[heaviest] / 1000, limit, "kB"),
        row("the median page", f"{len(weights)} chapters", middle, limit, "kB"),
    ]


def grading_rows(count: int, plan: Plan) -> list[Row]:
    """Grade a small class by `benchmarks.grading`, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.grading"]
    command += ["--submissions", str(count), "--jobs", "2"]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    found = re.search(r"([\d.]+) processor seconds", done.stdout)
    if done.returncode or found is None:
        print("grading could not be measured; `python -m benchmarks.grading` says why")
        return []
    size = f"{count} of chapter 06, solved and blank, 2 jobs"
    return [row("grading a submission", size, float(found[1]), SUBMISSION_LIMIT, "s")]


def thread_rows(plan: Plan) -> list[Row]:
    """Steps on one thread against steps on every core, beside busy processes."""
    found, many, count = under_load(2 if plan.quick else 5)
    size = f"chapter 06's layer, beside {count} busy processes"
    baseline = f"{many} threads, as PyTorch takes"
    note = "Waiting on a busy machine is measured by the clock."
    return [made(AREA, "steps on one thread", size, found, 1.0, baseline, note=note)]


def tasks(plan: Plan) -> list[Task]:
    """Chapters and pages are read from what was built; grading is run."""
    found = [Task("chapters", 0.5, chapter_rows), Task("pages", 1.0, page_rows)]
    found.append(Task("threads", 30.0, thread_rows))
    count = 4 if plan.quick else 30
    if importlib.util.find_spec("course_utils.grading") is not None:
        found.append(Task("grading", 1.0 * count, partial(grading_rows, count)))
    return found
