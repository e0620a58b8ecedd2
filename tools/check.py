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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tools.notebooks.io import ROOT

PYTHON = [sys.executable, "-m"]
PROCESSORS = os.cpu_count() or 2
PARALLEL = ["-n", str(PROCESSORS), "-q"]
# One thread a worker; and UTF-8 on Windows, as everywhere else.
TEST_SETTINGS = {"OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}
NO_BROWSER = "not browser and not colab"


@dataclass
class Step:
    """A command to run, and whether it counts tests in a JUnit file."""

    name: str
    command: list[str]
    environment: dict[str, str]
    counts: bool = False
    beside: bool = False  # starts with the step before it, whose processor has room


def pytest(name: str, *arguments: str, **environment: str) -> Step:
    """A step that is a test run."""
    command = [*PYTHON, "pytest", *PARALLEL, *arguments]
    return Step(name, command, TEST_SETTINGS | environment, counts=True)


def command(name: str, *arguments: str) -> Step:
    """A step that passes or fails as a whole."""
    return Step(name, [*PYTHON, *arguments], {})


def unit_tests(markers: str) -> Step:
    """The tests of tests/ with these markers."""
    return pytest("unit tests", "-m", markers)


def notebooks(name: str, *folders: str, **environment: str) -> Step:
    """nbval: every notebook runs offline and gives the outputs that git keeps.

    What it ran is kept for the site, which then executes nothing a second time.
    """
    command = [*PYTHON, "tools.build", "execute", *folders]
    return Step(name, command, {"COURSE_SEED": ""} | environment, counts=True)


# import-linter has no `python -m` form
LINT_IMPORTS = "from importlinter.cli import lint_imports_command as run; run()"
LINT = [
    command("lint", "ruff", "check", "."),
    command("format", "ruff", "format", "--check", "."),
    command("types", "mypy"),
    Step("imports", [sys.executable, "-c", LINT_IMPORTS], {}),
]


def quick_steps() -> list[Step]:
    """What needs no notebook, and no training of more than a few seconds."""
    return [*LINT, unit_tests(f"{NO_BROWSER} and not slow")]


def all_steps() -> list[Step]:
    """Everything, what fails soonest first."""
    return [
        *LINT,
        unit_tests(NO_BROWSER),
        notebooks("notebooks", "book", "exercises"),
        notebooks("solutions", "solutions", COURSE_PRESET="tiny"),
        command("site", "tools.build", "book"),
        replace(pytest("simulated Colab", "-m", "colab"), beside=True),
        # one more than there are processors: a browser waits a good deal
        pytest("browser tests", "-m", "browser", "-n", str(PROCESSORS + 1)),
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


def run(step: Step) -> tuple[tuple[int, int, int], float]:
    """Run one step; return how many passed, failed and were skipped, and seconds."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        extra = [f"--junitxml={report}"] if step.counts else []
        with Path(folder, "output").open("w+") as output:
            ended = subprocess.run(
                step.command + extra,
                cwd=ROOT,
                env=os.environ | step.environment,
                stdout=output if step.beside else None,
                stderr=output if step.beside else None,
            )
            output.seek(0)
            print(output.read(), end="", flush=True)
        right = ended.returncode == 0
        if not step.counts:
            counts = int(right), int(not right), 0
        elif not report.exists():
            counts = 0, 1, 0
        else:
            passed, failed, skipped = counted(report)
            counts = passed, failed if right else max(failed, 1), skipped
    return counts, time.perf_counter() - begun


def run_all(steps: list[Step]) -> bool:
    """Run every step, also after a failure, and close with the sum."""
    groups: list[list[Step]] = []
    for step in steps:
        if step.beside:
            groups[-1].append(step)
        else:
            groups.append([step])
    sums, lines = (0, 0, 0), []
    for group in groups:
        for step in group:
            print(f"\n== {step.name}: {' '.join(step.command[1:])}", flush=True)
        with ThreadPoolExecutor() as pool:
            results = list(pool.map(run, group))
        for step, (counts, seconds) in zip(group, results, strict=True):
            sums = (sums[0] + counts[0], sums[1] + counts[1], sums[2] + counts[2])
            verdict = "FAILED" if counts[1] else "ok"
            counted_as = f"{said(counts)}, {seconds:.0f} s"
            lines.append(f"  {step.name:<16} {verdict:<7} {counted_as}")
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
