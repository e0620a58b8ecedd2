"""A pytest plugin around nbval: what it checks is what the site shows.

Loaded with `-p`, it gives nbval a kernel with a watchdog, leaves out the cells that the
site leaves out, names a failing cell as a reader counts them, and writes the notebook
with its outputs when every cell has passed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Generator
from pathlib import Path

import nbval.plugin
import pytest
from nbval.plugin import IPyNbCell

from tools.notebooks.io import dumps, tags, write_text
from tools.notebooks.watched_kernel import LostReply, WatchedKernel

LOST = 75  # the exit status after a lost reply: try again
LOST_KEY = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """What `tools.notebooks.execute` asks for."""
    parser.addoption("--result", type=Path, help="the file for the executed notebook")
    parser.addoption("--patience", type=float, help="seconds before a reply is lost")
    parser.addoption("--any-output", action="store_true", help="compare no output")


def pytest_configure(config: pytest.Config) -> None:
    """Give nbval the kernel that is watched."""
    nbval.plugin.RunningKernel = functools.partial(
        WatchedKernel, patience=config.getoption("patience")
    )


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[IPyNbCell]
) -> None:
    """Leave out the cells that no page shows: they need a live kernel, or Colab."""
    items[:] = [item for item in items if "remove-cell" not in tags(item.cell)]
    for item in items:
        item.options["check"] &= not config.getoption("any_output")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: IPyNbCell, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Take over the outputs of a cell that passed; name one that failed."""
    report = yield
    number = item.cell_num + 1
    if call.excinfo:
        error = call.excinfo.value
        item.config.stash[LOST_KEY] = isinstance(error, LostReply)
        traceback = getattr(error, "inner_traceback", None) or ""
        report.longrepr = re.sub(
            r"\x1b\[[0-9;]*m",
            "",
            f"code cell {number} ({item.cell.get('id', 'no id')}) failed\n\n"
            f"{item.cell.source}\n\n{error}\n{traceback}",
        )
    elif call.when == "call":
        item.cell.outputs, item.cell.execution_count = item.test_outputs, number
        for output in item.test_outputs:
            if "execution_count" in output:  # nbval's kernel counts nothing
                output.execution_count = number
    return report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write the notebook if all of it passed; ask for another try after a loss."""
    if exitstatus == pytest.ExitCode.OK:
        first: IPyNbCell = session.items[0]
        write_text(session.config.getoption("result"), dumps(first.parent.nb))
    elif session.config.stash.get(LOST_KEY, False):
        session.exitstatus = LOST
