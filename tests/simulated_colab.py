"""Colab, as far as it can be had offline: its versions, and the course installed there.

The working tree takes the place of the repository, and wheels that of the network.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from tools.colab import ENVIRONMENT, WHEELS, colab_python
from tools.notebooks.execute import run_notebook
from tools.notebooks.io import ROOT
from tools.notebooks.repo_links import colab_source, repository

# Of two installs of a package Python imports the first: it is the one that counts.
VERSIONS = """
import importlib.metadata, json, pathlib
found = reversed(list(importlib.metadata.distributions()))
versions = {{each.metadata["Name"]: each.version for each in found}}
pathlib.Path({file!r}).write_text(json.dumps(versions))
"""


def git(*arguments: str, cwd: Path) -> str:
    """Run git as nobody in particular."""
    who = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.org"]
    done = subprocess.run(
        ["git", *who, *arguments], cwd=cwd, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.fixture(scope="session")
def redirected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git configuration that puts this working tree in place of the repository."""
    folder = tmp_path_factory.mktemp("colab")
    tree = folder / "tree"
    url, branch = repository()
    for name in git(
        "ls-files", "-coz", "--exclude-standard", "--deduplicate", cwd=ROOT
    ).split("\0"):
        if name and (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    git("init", "-q", "-b", branch, cwd=tree)
    git("add", "-A", cwd=tree)
    git("commit", "-q", "-m", "The working tree", cwd=tree)
    configuration = folder / "gitconfig"
    configuration.write_text(f'[url "file://{tree}"]\n    insteadOf = {url}\n')
    return configuration


def site_packages(folder: Path) -> Path:
    """Where the first cell's pip installs to: apart from what Colab has."""
    ask = "import sys; print('python%d.%d' % sys.version_info[:2])"
    command = [str(colab_python(ENVIRONMENT)), "-c", ask]
    version = subprocess.check_output(command, text=True).strip()
    return folder / "installed" / "lib" / version / "site-packages"


def write_kernel(configuration: Path, folder: Path) -> None:
    """A kernel like Colab, as far as it can be had offline, that installs here."""
    path = [ROOT / "tools" / "kernel", site_packages(folder)]
    path[1].mkdir(parents=True, exist_ok=True)  # Python remembers one that is missing
    environment = {
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "HOME": str(folder),
        "OMP_NUM_THREADS": "1",
        "COURSE_FAKE_COLAB": "1",
        "COURSE_OFFLINE": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(ENVIRONMENT / WHEELS),
        "PIP_PREFIX": str(folder / "installed"),
        "PIP_LOG": str(folder / "pip.log"),
        "GIT_CONFIG_GLOBAL": str(configuration),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "file",
    }
    python = str(colab_python(ENVIRONMENT))
    start = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel = {"argv": start, "display_name": "Colab", "env": environment}
    spec = folder / "kernels" / "colab" / "kernel.json"
    spec.parent.mkdir(parents=True, exist_ok=True)
    spec.write_text(json.dumps(kernel))


def without_mine() -> dict[str, str]:
    """This process's environment, but for what concerns the course and pip."""
    mine = ("PIP_", "COURSE_", "PYTHONPATH")
    return {k: v for k, v in os.environ.items() if not k.startswith(mine)}


def small(*sources: str) -> NotebookNode:
    """A notebook of these cells."""
    return new_notebook(cells=[new_code_cell(source) for source in sources])


def run_on_colab(notebook: NotebookNode, configuration: Path, folder: Path) -> None:
    """Run all cells of the notebook, with the course installed in `folder` or not."""
    write_kernel(configuration, folder)
    for cell in notebook.cells:
        cell.metadata.pop("tags", None)  # on Colab nothing is left out
    path = folder / "alone.ipynb"
    nbformat.write(notebook, path)
    mine = without_mine() | {"PYTHONPATH": str(ROOT), "JUPYTER_PATH": str(folder)}
    run = run_notebook(path, mine, "--nbval-kernel-name", "colab", "--any-output")
    outcome = asyncio.run(run)
    log = folder / "pip.log"
    said = log.read_text()[-2000:] if log.exists() else "nothing"
    assert not outcome.error, f"{outcome.error}\npip said: {said}"


def install_on_colab(first: str, configuration: Path, folder: Path) -> None:
    """Run a first cell, and check what it did to the packages that Colab has."""
    files = [folder / "before.json", folder / "after.json"]
    look = [VERSIONS.format(file=str(file)) for file in files]
    run_on_colab(small(look[0], first, look[1]), configuration, folder)
    before, after = (json.loads(file.read_text()) for file in files)
    assert "course-utils" in after, "the first cell did not install the course"
    assert {name: after.get(name) for name in before} == before, (
        "the first cell replaced what Colab has"
    )


@pytest.fixture(scope="session")
def installed(redirected: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the first cell has installed the course."""
    folder = tmp_path_factory.mktemp("installed")
    install_on_colab(colab_source(), redirected, folder)
    return folder
