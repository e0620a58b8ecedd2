"""A JupyterLab or a classic Notebook of its own, and a browser in front, for tests."""

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from simulated_colab import without_mine

from tools.colab import ENVIRONMENT, colab_python
from tools.notebooks.io import ROOT
from tools.site.browser import LAUNCH, chromium

PATIENCE = 240_000  # milliseconds: a machine may be slow, and busy with other tests


@dataclass(frozen=True)
class Frontend:
    """How a notebook is opened in a browser, and what its parts are called there."""

    page: str
    idle: str
    cell: str
    code: str
    words: str
    output: str
    error: str  # a traceback, in whatever type
    selected: str
    editor: str
    run_all: tuple[str, str]
    interrupt: tuple[str, ...]
    opens_pages: bool  # of its own for a link, where the other opens a tab in the page


LAB = Frontend(
    page="lab/tree/{}?reset",  # with no tab of an earlier test
    idle="text=/Python 3.*Idle/",
    cell=".jp-Cell",
    code=".jp-CodeCell",
    words=".jp-RenderedMarkdown",
    output=".jp-OutputArea-output",
    error=".jp-OutputArea-output:has(.ansi-red-fg)",
    selected=".jp-mod-selected",
    editor=".cm-content",
    run_all=(
        ".lm-MenuBar-item:has-text('Run')",
        ".lm-Menu-item:has-text('Run All Cells')",
    ),
    interrupt=(
        "button[data-command='notebook:interrupt-kernel'], [title^='Interrupt']",
    ),
    opens_pages=False,
)
CLASSIC = Frontend(
    page="notebooks/{}",
    idle=".kernel_idle_icon",
    cell=".cell",
    code=".code_cell",
    words=".rendered_html",
    output=".output_subarea",
    error=".output_error",
    selected=".selected",
    editor=".CodeMirror",
    run_all=("#celllink", "#run_all_cells a"),
    interrupt=("#kernellink", "#int_kernel a"),
    opens_pages=True,
)


@contextlib.contextmanager
def served(start: list[str], root: str, environment: dict[str, str]) -> Iterator[str]:
    """The address of the server that this command starts, at a port that is free."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    app = "ServerApp" if "jupyterlab" in start else "NotebookApp"
    server = subprocess.Popen(
        [
            *(*start, "--no-browser", "--allow-root", f"--port={port}", root),
            *(f"--{app}.token=", f"--{app}.password="),
        ],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{address}/api", timeout=5)
                break
            except OSError:
                assert server.poll() is None, "the server ended at once"
                time.sleep(0.5)
        yield address
    finally:
        children = psutil.Process(server.pid).children(recursive=True)
        for process in (server, *children):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        server.wait()


def own_places(settings: Path) -> dict[str, str]:
    """Where a server keeps its files, apart from those of whoever runs the tests."""
    return {
        f"JUPYTER_{n}_DIR": str(settings / n) for n in ("CONFIG", "DATA", "RUNTIME")
    }


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
    own = own_places(settings) | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment = os.environ | own
    environment.pop("COURSE_PROGRESS", None)
    start = [sys.executable, "-m", "jupyterlab"]
    root = f"--ServerApp.root_dir={folder}"
    with served(start, root, environment | variables) as address:
        yield address


@contextlib.contextmanager
def served_classic(folder: Path, colab: Path, **variables: str) -> Iterator[str]:
    """The classic Notebook of Colab's versions on this folder; its address.

    It has the kernel of `colab`, a folder in which the course has been installed.
    """
    own = own_places(folder / "settings") | {"JUPYTER_PATH": str(colab)}
    patience = f"--MappingKernelManager.kernel_info_timeout={PATIENCE // 1000}"
    start = [str(colab_python(ENVIRONMENT)), "-m", "notebook", patience]
    root = f"--NotebookApp.notebook_dir={folder}"
    with served(start, root, without_mine() | own | variables) as address:
        yield address


@contextlib.contextmanager
def running_browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=LAUNCH)
        yield running
        running.close()


def opened(
    browser: Any, address: str, name: str, scheme: str = "light", look: Frontend = LAB
) -> Any:
    """A page with one notebook."""
    page = browser.new_page(
        viewport={"width": 1200, "height": 900}, color_scheme=scheme
    )
    page.set_default_timeout(PATIENCE)
    page.context.route("https://**", lambda route: route.abort())  # pictures of links
    page.goto(f"{address}/{look.page.format(name)}")
    page.wait_for_selector(look.cell)
    return page


def run_all(page: Any, look: Frontend = LAB) -> None:
    """Run all cells by the menu, once the kernel is ready."""
    page.wait_for_selector(look.idle)
    for item in look.run_all:
        page.click(item)
