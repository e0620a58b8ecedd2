"""Run the project's checks one after the other and count what passed.

    python -m tools.check test    everything; continues after a failure
    python -m tools.check quick   what needs no notebook and no site

The last line is the sum: `N passed, N failed, N skipped`. Every test counts as one, and
so does each step that is not a test run (lint, types, the site).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from tools.execute import kernel_environment
from tools.files import FOLDERS, ROOT

PYTHON = [sys.executable, "-m"]
PARALLEL = ["-n", str(os.cpu_count() or 2), "-q"]
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
NO_BROWSER = "not browser and not colab"


@dataclass
class Step:
    """A command to run, and whether pytest counts for it."""

    name: str
    command: list[str]
    environment: dict[str, str]
    counts: bool = False


def pytest(name: str, *arguments: str, **environment: str) -> Step:
    """A step that is a test run."""
    command = [*PYTHON, "pytest", *PARALLEL, *arguments]
    return Step(name, command, ONE_THREAD | environment, counts=True)


def command(name: str, *arguments: str) -> Step:
    """A step that passes or fails as a whole."""
    return Step(name, [*PYTHON, *arguments], {})


def unit_tests(markers: str) -> Step:
    """The tests of tests/ with these markers."""
    return pytest("unit tests", "-m", markers)


def notebooks() -> Step:
    """nbval: every notebook runs offline and gives the outputs that git keeps.

    What it ran is kept for the site, which then executes nothing a second time.
    """
    return pytest(
        "notebooks",
        *("--nbval-lax", "--nbval-current-env", "--dist", "loadfile"),
        *("-p", "no:cacheprovider", "-p", "tools.validated", *FOLDERS),
        **kernel_environment(ROOT, ROOT / "_build"),
        COURSE_SEED="",
    )


LINT = [
    command("lint", "ruff", "check", "."),
    command("format", "ruff", "format", "--check", "."),
    command("types", "mypy"),
]


def quick_steps() -> list[Step]:
    """What needs no notebook: under two minutes."""
    return [*LINT, unit_tests(f"{NO_BROWSER} and not slow")]


def all_steps() -> list[Step]:
    """Everything, what fails soonest first."""
    return [
        *LINT,
        unit_tests(NO_BROWSER),
        notebooks(),
        command("site", "tools.build", "book"),
        pytest("browser tests", "-m", "browser"),
        pytest("simulated Colab", "-m", "colab"),
    ]


def counted(report: Path) -> tuple[int, int, int]:
    """The tests that passed, failed and were skipped, from pytest's JUnit file."""
    passed = failed = skipped = 0
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        total, wrong, left_out = (
            int(suite.get(name, 0)) for name in ("tests", "failures", "skipped")
        )
        wrong += int(suite.get("errors", 0))
        failed += wrong
        skipped += left_out
        passed += total - wrong - left_out
    return passed, failed, skipped


def run(step: Step) -> tuple[int, int, int]:
    """Run one step; return how many passed, failed and were skipped."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        extra = [f"--junitxml={report}"] if step.counts else []
        environment = os.environ | step.environment
        ended = subprocess.run(step.command + extra, cwd=ROOT, env=environment)
        right = ended.returncode == 0
        if not step.counts:
            return int(right), int(not right), 0
        if not report.exists():
            return 0, 1, 0
        passed, failed, skipped = counted(report)
    return passed, failed if right else max(failed, 1), skipped


def run_all(steps: list[Step]) -> bool:
    """Run every step, also after a failure, and close with the sum."""
    sums, lines = (0, 0, 0), []
    for step in steps:
        print(f"\n== {step.name}: {' '.join(step.command[1:])}", flush=True)
        begun = time.perf_counter()
        result = run(step)
        sums = (sums[0] + result[0], sums[1] + result[1], sums[2] + result[2])
        verdict = "FAILED" if result[1] else "ok"
        seconds = time.perf_counter() - begun
        lines.append(f"  {step.name:<16} {verdict:<7} {said(result)}, {seconds:.0f} s")
    print("\n" + "\n".join(lines))
    print(said(sums), flush=True)
    return sums[1] == 0


def said(counts: tuple[int, int, int]) -> str:
    """The counts in words."""
    return f"{counts[0]} passed, {counts[1]} failed, {counts[2]} skipped"


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tools.check")
    parser.add_argument("which", choices=["test", "quick"])
    steps = all_steps() if parser.parse_args().which == "test" else quick_steps()
    try:
        return 0 if run_all(steps) else 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
