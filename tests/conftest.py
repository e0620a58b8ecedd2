"""What all tests share: when one may be skipped, and where the project is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from simulated_colab import installed, redirected  # noqa: F401 (fixtures)

from tools.site.browser import chromium

ROOT = Path(__file__).resolve().parents[1]


def missing(item: pytest.Item) -> str:
    """What this machine lacks for the test, in one sentence; empty if nothing."""
    if item.get_closest_marker("browser"):
        if not chromium():
            return "there is no Chromium (apt-get install chromium)"
        site = Path(os.environ.get("COURSE_SITE", ROOT / "_build" / "html"))
        if not (site / "index.html").is_file():
            return "the site is not built (make book)"
    if item.get_closest_marker("sandbox") and not shutil.which("bwrap"):
        return "there is no bubblewrap (apt-get install bubblewrap)"
    colab = ROOT / ".venv-colab" / ".installed"
    if item.get_closest_marker("colab") and not colab.is_file():
        return "there is no environment with Colab's versions (make setup-colab)"
    return ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what this machine can't run, and say what it lacks."""
    if reason := missing(item):
        pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With COURSE_NO_SKIP=1 a skipped test has failed: CI leaves nothing out."""
    report = yield
    no_skip = os.environ.get("COURSE_NO_SKIP") == "1"
    if no_skip and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped under COURSE_NO_SKIP=1: {reason}"
    return report
