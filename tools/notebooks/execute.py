"""Execute notebooks with nbval, several at a time, and keep what is still right.

Each notebook runs in a process of its own (see `tools.notebooks.nbval_plugin`), in an
empty folder, on one thread, with the network refused and no settings of the user's: the
same result in any order. A result stands in one file, written whole or not at all,
together with the inputs it was made from (see `tools.notebooks.dependencies`).
Interrupted at any point, the next call goes on with what is missing.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from tools.notebooks.dependencies import VARIABLES, inputs
from tools.notebooks.io import ROOT, dumps, read, write_text
from tools.notebooks.nbval_plugin import LOST

CELL_LIMIT = 1800  # seconds after which a cell is interrupted
PATIENCE = 60.0  # seconds in which a kernel may do nothing for its cell
CELL_BUDGET, CHAPTER_BUDGET, BOOK_BUDGET = 60, 180, 20 * 60  # seconds, on two cores
KEPT = "course"  # the notebook metadata that holds a result's inputs and seconds
NO_CELLS = 5  # pytest's exit status where there was nothing to run
THIS_PYTHON = "--nbval-current-env"
NBVAL = [
    *("-m", "pytest", "-p", "tools.notebooks.nbval_plugin", "-p", "nbval.plugin"),
    *("-p", "no:cacheprovider", "--nbval-lax", "--nbval-cell-timeout", str(CELL_LIMIT)),
    *("-x", "-o", "junit_duration_report=call"),
]


@dataclass
class Outcome:
    """What became of one notebook."""

    name: str
    cell_seconds: dict[str, float] = field(default_factory=dict)  # by number, from 1
    seconds: float = 0.0
    ran: bool = False
    error: str = ""
    notebook: NotebookNode | None = None  # with its outputs, if it ran without error

    @property
    def slowest(self) -> tuple[str, float]:
        """The number and the seconds of the slowest code cell."""
        return max(self.cell_seconds.items(), key=lambda c: c[1], default=("0", 0.0))


# ------------------------------------------------------------------ one notebook


def kernel_environment(root: Path) -> dict[str, str]:
    """A notebook's environment: one thread, offline, none of the user's settings."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "MPLBACKEND" and not name.startswith("PYTEST_")
    }
    threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    path = [str(ROOT / "tools" / "kernel"), str(root), str(ROOT)]
    return (
        environment
        | dict.fromkeys(threads, "1")
        | {
            "PYTHONPATH": os.pathsep.join(path),
            "PYTHONHASHSEED": "0",
            "COURSE_OFFLINE": "1",
            "COURSE_PROGRESS": "0",
            "MPLCONFIGDIR": str(root / "_build" / "matplotlib"),
        }
    )


async def nbval(
    path: Path, environment: dict[str, str], folder: Path, *options: str
) -> int:
    """Run nbval on one notebook, in a process that ends with this call."""
    (folder / "empty").mkdir()
    command = [sys.executable, *NBVAL, *options, str(path.resolve())]
    command += ["--result", f"{folder}/result", "--junitxml", f"{folder}/report"]
    settings = {
        "IPYTHONDIR": f"{folder}/ipython",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    with (folder / "output").open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder / "empty",
            env=environment | settings,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()


def read_outcome(path: Path, folder: Path, status: int) -> Outcome:
    """What nbval has written about the notebook."""
    outcome = Outcome(path.name, ran=True)
    report = folder / "report"
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
        for problem in case:
            outcome.error = problem.text or ""
        if not len(case):
            number = int(case.attrib["name"].removeprefix("Cell ")) + 1
            outcome.cell_seconds[str(number)] = round(float(case.attrib["time"]), 2)
    if status in (0, NO_CELLS):
        outcome.notebook = read(folder / "result" if status == 0 else path)
    elif not outcome.error:
        output = (folder / "output").read_text("utf-8", errors="replace")
        outcome.error = f"nbval ended with status {status} and wrote:\n\n{output}"
    return outcome


async def run_notebook(
    path: Path, environment: dict[str, str], *options: str, patience: float = PATIENCE
) -> Outcome:
    """Run a notebook in a process of its own; after a lost reply, once more."""
    begun = time.perf_counter()
    for tries in (1, 2):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            watch = ("--patience", str(patience))
            status = await nbval(path, environment, Path(folder), *watch, *options)
            outcome = read_outcome(path, Path(folder), status)
        if status != LOST or tries == 2:
            break
        print(f"  {path.name}: its kernel stopped answering; once more", flush=True)
    outcome.seconds = time.perf_counter() - begun
    return outcome


# ------------------------------------------------------------------ results, kept


def kept_result(source: Path, root: Path, out: Path) -> NotebookNode | None:
    """The notebook's result of an earlier call, right or not; None if there is none."""
    try:
        result = read(out / source.relative_to(root))
    except (ValueError, OSError):
        return None
    return result if KEPT in result.metadata else None


def right_result(source: Path, root: Path, out: Path) -> NotebookNode | None:
    """The kept result if nothing it was made from has changed."""
    result = kept_result(source, root, out)
    if result and result.metadata[KEPT]["inputs"] == inputs(read(source), root):
        return result
    return None


def reason(before: dict[str, str], now: dict[str, str]) -> str:
    """Why a notebook has to run again, in a few words."""
    if not before:
        return "first run"
    names = before.keys() | now.keys()
    changed = sorted(n for n in names if before.get(n) != now.get(n))
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return f"{changed[0]}{more} changed" if changed else "nothing changed"


async def execute(source: Path, root: Path, out: Path, patience: float) -> Outcome:
    """Execute one notebook and keep its result together with what it was made from."""
    made_from = inputs(read(source), root)
    # the outputs that git keeps belong to the course's own seed and sizes
    other = ["--any-output"] if any(map(os.environ.get, VARIABLES)) else []
    outcome = await run_notebook(
        source, kernel_environment(root), THIS_PYTHON, *other, patience=patience
    )
    outcome.name = source.relative_to(root).as_posix()
    if outcome.notebook is None:
        return outcome
    now = inputs(read(source), root)
    if now != made_from:
        outcome.error = f"{reason(made_from, now)} while it ran; call again"
        return outcome
    outcome.notebook.metadata[KEPT] = {
        "inputs": made_from,
        "seconds": round(outcome.seconds, 2),
        "cell_seconds": outcome.cell_seconds,
    }
    path = out / outcome.name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, dumps(outcome.notebook))
    return outcome


def forget_vanished(root: Path, out: Path) -> None:
    """Delete the kept results of notebooks that are no longer there."""
    for path in out.rglob("*.ipynb"):
        if not (root / path.relative_to(out)).exists():
            path.unlink()


# ------------------------------------------------------------------ all of them


async def execute_all(
    sources: list[Path], root: Path, out: Path, jobs: int, patience: float
) -> list[Outcome]:
    """Execute what has changed, the longest first, and say what became of each."""
    outcomes, waiting = [], []
    for source in sources:
        name = source.relative_to(root).as_posix()
        kept = kept_result(source, root, out)
        facts: Any = {"inputs": {}, "seconds": math.inf}
        if kept:
            facts = kept.metadata[KEPT]
        try:
            now = inputs(read(source), root)
        except ValueError as error:
            outcomes.append(Outcome(name, error=str(error)))
            continue
        if facts["inputs"] == now:
            outcomes.append(Outcome(name, facts["cell_seconds"], facts["seconds"]))
            print(f"  {name:<44} unchanged", flush=True)
        else:
            waiting.append((facts["seconds"], source, reason(facts["inputs"], now)))
    waiting.sort(key=lambda entry: -entry[0])
    free = asyncio.Semaphore(jobs)

    async def run(source: Path, why: str) -> Outcome:
        async with free:
            outcome = await execute(source, root, out, patience)
        verdict = "FAILED" if outcome.error else why
        print(f"  {outcome.name:<44} {outcome.seconds:6.1f} s   {verdict}", flush=True)
        return outcome

    return outcomes + list(await asyncio.gather(*(run(s, w) for _, s, w in waiting)))


def report(outcomes: list[Outcome], jobs: int, seconds: float) -> None:
    """Say what failed and where, how long it took, and what is over its budget."""
    failed = [o for o in outcomes if o.error]
    for outcome in failed:
        print(f"\n{outcome.name}: {outcome.error}")
    ran = sum(o.ran for o in outcomes)
    kept = sum(not o.ran and not o.error for o in outcomes)
    print(
        f"\nnotebooks: {ran} executed, {kept} unchanged, {len(failed)} failed, "
        f"in {seconds:.0f} s"
    )
    for outcome in outcomes:
        number, slowest = outcome.slowest
        if slowest > CELL_BUDGET:
            over_budget(f"{outcome.name}, code cell {number}", slowest, CELL_BUDGET)
        if outcome.seconds > CHAPTER_BUDGET:
            over_budget(outcome.name, outcome.seconds, CHAPTER_BUDGET)
    times = [o.seconds for o in outcomes]
    whole = max(sum(times) / jobs, *times, 0)
    if whole > BOOK_BUDGET:
        over_budget(f"the whole book, {jobs} at a time,", whole, BOOK_BUDGET)


def over_budget(what: str, seconds: float, budget: int) -> None:
    """Warn, without failing, of something slower than a reader should wait for."""
    print(f"warning: {what} took {seconds:.0f} s, its budget is {budget} s")


def write_junit(outcomes: list[Outcome], path: Path) -> None:
    """Count every cell as a test, in the file in which pytest counts its own."""
    suites = ElementTree.Element("testsuites")
    for outcome in outcomes:
        failures = int(bool(outcome.error))
        tests = len(outcome.cell_seconds) + failures
        counts = {"tests": str(tests), "failures": str(failures)}
        ElementTree.SubElement(suites, "testsuite", counts, name=outcome.name)
    ElementTree.ElementTree(suites).write(path)


def execute_and_report(
    sources: list[Path],
    root: Path,
    out: Path,
    jobs: int,
    junit: Path | None = None,
    patience: float = PATIENCE,
) -> bool:
    """Execute what has changed, report, and say whether every result is right."""
    print(f"executing notebooks ({len(sources)}), {jobs} at a time:", flush=True)
    begun = time.perf_counter()
    outcomes = asyncio.run(execute_all(sources, root, out, jobs, patience))
    report(outcomes, jobs, time.perf_counter() - begun)
    if junit:
        write_junit(outcomes, junit)
    return not any(outcome.error for outcome in outcomes)
