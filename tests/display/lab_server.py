"""A JupyterLab of its own, and a browser in front of it, for tests."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from tools.notebooks.io import ROOT
from tools.site.browser import LAUNCH, chromium

PATIENCE = 240_000  # milliseconds: a machine may be slow, and busy with other tests
IDLE = "text=/Python 3.*Idle/"


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


@contextlib.contextmanager
def served_lab(folder: Path, **variables: str) -> Iterator[str]:
    """JupyterLab on this folder, as `make lab` starts it; its address.

    Every cell stays in the page, also far from the screen, for a test to find it.
    """
    own_settings = Path(sys.prefix, "share", "jupyter", "lab", "settings")
    own_settings.mkdir(parents=True, exist_ok=True)  # as `make lab` does
    shutil.copy(ROOT / "tools/lab_overrides.json", own_settings / "overrides.json")
    settings = folder / "settings"
    tracker = "CONFIG/lab/user-settings/@jupyterlab/notebook-extension/tracker"
    path = settings / f"{tracker}.jupyterlab-settings"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"windowingMode": "none"}))
    own = {f"JUPYTER_{n}_DIR": str(settings / n) for n in ("CONFIG", "DATA", "RUNTIME")}
    environment = os.environ | own | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment.pop("COURSE_PROGRESS", None)
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
            *(f"--port={port}", "--ServerApp.token=", "--ServerApp.password="),
            f"--ServerApp.root_dir={folder}",
        ],
        env=environment | variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{address}/api", timeout=5)
                break
            except OSError:
                assert server.poll() is None, "JupyterLab ended at once"
                time.sleep(0.5)
        yield address
    finally:
        children = psutil.Process(server.pid).children(recursive=True)
        for process in (server, *children):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        server.wait()


@contextlib.contextmanager
def running_browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=LAUNCH)
        yield running
        running.close()


def opened(browser: Any, lab: str, name: str, scheme: str = "light") -> Any:
    """A page of JupyterLab with one notebook, and no tab of an earlier test."""
    page = browser.new_page(
        viewport={"width": 1200, "height": 900}, color_scheme=scheme
    )
    page.set_default_timeout(PATIENCE)
    page.goto(f"{lab}/lab/tree/{name}?reset")
    page.wait_for_selector(".jp-Notebook:visible .jp-Cell")
    return page


def run_all(page: Any) -> None:
    page.click(".lm-MenuBar-item:has-text('Run')")
    page.click(".lm-Menu-item:has-text('Run All Cells')")
