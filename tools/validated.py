"""A pytest plugin: the site shows the very run that nbval has checked.

nbval executes every notebook, cell by cell, and the site needs the executed notebooks.
Loaded with `-p tools.validated`, this keeps what nbval ran as `tools.execute` would
have kept it, so that one execution serves both. A notebook is kept when all of its
cells passed and nothing it was made from changed meanwhile. One that shows a live
widget is not, since nbval drops a widget's state: the build executes it again. (What
the site leaves out may hold one.)
"""

from __future__ import annotations

import functools
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from nbval.plugin import IPyNbCell, IPyNbFile

from tools.build import page_notebooks
from tools.dependencies import code_cells, inputs
from tools.execute import Outcome, keep
from tools.files import read, tags

WIDGET = "application/vnd.jupyter.widget-view+json"


@functools.cache
def pages(root: Path) -> frozenset[Path]:
    """The notebooks that the site shows."""
    return frozenset(page_notebooks(root))


class Run:
    """One notebook's cells as nbval runs them."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path, self.root = path, root
        self.notebook = read(path)
        self.made_from = inputs(self.notebook, root)
        self.outcome = Outcome(path.relative_to(root).as_posix(), ran=True)

    def add(self, number: int, outputs: list[Any], seconds: float) -> None:
        """Take over a cell that passed; with the last one keep the notebook."""
        done = len(self.outcome.cell_seconds)
        if number != done:
            return  # a cell before it failed
        cells = code_cells(self.notebook)
        cell, count = cells[number], number + 1
        cell.outputs, cell.execution_count = outputs, count
        for output in outputs:
            if "execution_count" in output:  # nbval's kernel counts nothing
                output.execution_count = count
        self.outcome.cell_seconds.append(seconds)
        self.outcome.seconds += seconds
        shown = [cell for cell in cells if "remove-cell" not in tags(cell)]
        live = any(WIDGET in o.get("data", {}) for c in shown for o in c.outputs)
        if done + 1 < len(cells) or live:
            return
        if inputs(read(self.path), self.root) == self.made_from:
            out = self.root / "_build" / "executed"
            keep(self.notebook, self.made_from, self.outcome, out)


def run_of(file: IPyNbFile, root: Path) -> Run | None:
    """The run that the file's cells belong to; None for a notebook the site lacks."""
    if not hasattr(file, "course_run"):
        path = Path(file.path)
        file.course_run = Run(path, root) if path in pages(root) else None
    return file.course_run


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Follow every cell: start the run before the first, add each that passed."""
    report = yield
    if isinstance(item, IPyNbCell):
        run = run_of(item.parent, Path(item.config.rootpath))
        if run and report.when == "call" and report.passed:
            run.add(item.cell_num, item.test_outputs, report.duration)
    return report
