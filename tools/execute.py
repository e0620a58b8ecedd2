"""Execute notebooks, several at a time, and keep every result that is still right.

A result stands in one file, written whole or not at all, together with the inputs it
was made from (see `tools.dependencies`). Interrupted at any point, the next call goes
on with what is missing. Each notebook runs in an empty folder, on one thread, with the
network refused and with no settings of the user's: the same result in any order.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, CellExecutionError, DeadKernelError
from nbformat import NotebookNode

from tools.dependencies import inputs
from tools.files import ROOT, dumps, read, write_text

CELL_LIMIT = 1800  # seconds after which a cell is taken to hang
CELL_BUDGET, CHAPTER_BUDGET, BOOK_BUDGET = 60, 180, 20 * 60  # seconds, on two cores
KEPT = "course"  # the notebook metadata that holds a result's inputs and seconds


@dataclass
class Outcome:
    """What became of one notebook."""

    name: str
    cell_seconds: list[float] = field(default_factory=list)
    seconds: float = 0.0
    ran: bool = False
    error: str = ""

    @property
    def slowest(self) -> tuple[int, float]:
        """The slowest code cell, counted from 1, and its seconds."""
        return max(
            enumerate(self.cell_seconds, 1), key=lambda c: c[1], default=(0, 0.0)
        )


class NotebookFailed(Exception):
    """A cell raised, hung or took its kernel with it, or the result can't be kept."""


# ------------------------------------------------------------------ one notebook


class OnlyThisPython(KernelSpecManager):
    """Knows one kernel: the given Python, whatever is registered on the machine."""

    python = sys.executable

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        argv = [self.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        argv += [
            "--log-level=40"
        ]  # errors alone: not that local sockets are in the clear
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


def kernel_environment(root: Path, folder: Path) -> dict[str, str]:
    """A notebook's environment: one thread, offline, none of the user's settings."""
    environment = {k: v for k, v in os.environ.items() if k != "MPLBACKEND"}
    threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    path = [str(ROOT / "tools" / "kernel"), str(root)]
    return (
        environment
        | dict.fromkeys(threads, "1")
        | {
            "PYTHONPATH": os.pathsep.join(path),
            "PYTHONHASHSEED": "0",
            "COURSE_OFFLINE": "1",
            "IPYTHONDIR": str(folder / "ipython"),
            "MPLCONFIGDIR": str(root / "_build" / "matplotlib"),
        }
    )


@contextlib.asynccontextmanager
async def kernel(
    python: str, environment: dict[str, str], cwd: Path
) -> AsyncIterator[AsyncKernelManager]:
    """A running kernel, ended on the way out whatever happens."""
    specs = OnlyThisPython()
    specs.python = python
    manager = AsyncKernelManager(kernel_spec_manager=specs)
    await manager.start_kernel(env=environment, cwd=str(cwd))
    try:
        yield manager
    finally:
        await manager.shutdown_kernel(now=True)


def explain(error: Exception, source: str) -> str:
    """The cell and what happened in it, as it reads well in a terminal."""
    if isinstance(error, CellExecutionError):  # its traceback has the source in it
        return re.sub(r"\x1b\[[0-9;]*m", "", error.traceback).strip()
    if isinstance(error, DeadKernelError):
        return f"{source}\n\nThe kernel died: out of memory, or the cell ended it."
    return f"{source}\n\nThe cell was still running after {CELL_LIMIT} s."


async def run_cells(
    notebook: NotebookNode, python: str, environment: dict[str, str], cwd: Path
) -> list[float]:
    """Run the code cells in place; return each one's seconds."""
    seconds: list[float] = []
    async with kernel(python, environment, cwd) as manager:
        client = NotebookClient(
            notebook, km=manager, timeout=CELL_LIMIT, coalesce_streams=True
        )
        try:
            channels = await client.async_start_new_kernel_client()
        except RuntimeError as error:
            raise NotebookFailed(f"no kernel started from {python}: {error}") from error
        try:
            for index, cell in enumerate(notebook.cells):
                if cell.cell_type != "code":
                    continue
                begun = time.perf_counter()
                try:
                    await client.async_execute_cell(cell, index, len(seconds) + 1)
                except (CellControlSignal, DeadKernelError) as error:
                    task = asyncio.current_task()
                    if task and task.cancelling():  # nbclient reports it as a death
                        raise asyncio.CancelledError from None
                    raise NotebookFailed(
                        f"code cell {len(seconds) + 1} ({cell.get('id', 'no id')}) "
                        f"failed\n\n{explain(error, cell.source)}"
                    ) from error
                seconds.append(time.perf_counter() - begun)
            client.set_widgets_metadata()
        finally:
            channels.stop_channels()
    return seconds


# ------------------------------------------------------------------ results, kept


def kept_result(source: Path, root: Path, out: Path) -> NotebookNode | None:
    """The notebook's result of an earlier call, right or not; None if there is none."""
    path = out / source.relative_to(root)
    try:
        result = read(path)
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


def keep(
    notebook: NotebookNode, made_from: dict[str, str], outcome: Outcome, out: Path
) -> None:
    """Write an executed notebook together with what it was made from."""
    notebook.metadata[KEPT] = {
        "inputs": made_from,
        "seconds": round(outcome.seconds, 2),
        "cell_seconds": [round(s, 2) for s in outcome.cell_seconds],
    }
    path = out / outcome.name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, dumps(notebook))


async def execute(source: Path, root: Path, out: Path) -> Outcome:
    """Execute one notebook and keep its result together with what it was made from."""
    outcome = Outcome(source.relative_to(root).as_posix(), ran=True)
    begun = time.perf_counter()
    try:
        notebook = read(source)
        made_from = inputs(notebook, root)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            empty = Path(folder, "empty")
            empty.mkdir()
            environment = kernel_environment(root, Path(folder))
            outcome.cell_seconds = await run_cells(
                notebook, sys.executable, environment, empty
            )
        now = inputs(read(source), root)
        if now != made_from:
            raise NotebookFailed(f"{reason(made_from, now)} while it ran; call again")
    except (NotebookFailed, ValueError) as error:
        outcome.error = str(error)
    outcome.seconds = time.perf_counter() - begun
    if not outcome.error:
        keep(notebook, made_from, outcome, out)
    return outcome


# ------------------------------------------------------------------ all of them


async def execute_all(
    sources: list[Path], root: Path, out: Path, jobs: int
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
            outcome = await execute(source, root, out)
        said = "FAILED" if outcome.error else why
        print(f"  {outcome.name:<44} {outcome.seconds:6.1f} s   {said}", flush=True)
        return outcome

    return outcomes + list(await asyncio.gather(*(run(s, w) for _, s, w in waiting)))


def forget_vanished(sources: list[Path], root: Path, out: Path) -> None:
    """Delete the kept results of notebooks that are no longer there."""
    wanted = {out / source.relative_to(root) for source in sources}
    for path in out.rglob("*.ipynb"):
        if path not in wanted:
            path.unlink()


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
    if outcomes:
        slow = max(outcomes, key=lambda o: o.slowest[1])
        number, slowest = slow.slowest
        print(
            f"slowest cell: {slowest:.1f} s ({slow.name}, code cell {number}); "
            f"all notebooks: {whole:.0f} s, {jobs} at a time"
        )


def over_budget(what: str, seconds: float, budget: int) -> None:
    """Warn, without failing, of something slower than a reader should wait for."""
    print(f"warning: {what} took {seconds:.0f} s, its budget is {budget} s")


def execute_and_report(sources: list[Path], root: Path, out: Path, jobs: int) -> bool:
    """Execute what has changed, report, and say whether every result is right."""
    print(f"executing notebooks ({len(sources)}), {jobs} at a time:", flush=True)
    begun = time.perf_counter()
    outcomes = asyncio.run(execute_all(sources, root, out, jobs))
    report(outcomes, jobs, time.perf_counter() - begun)
    return not any(outcome.error for outcome in outcomes)
