"""Every notebook runs on Colab: alone in a folder, with Colab's versions, after the
cell below the title, which all notebooks share, has installed the course, and replaced
nothing that Colab has.

After a build, chapters that took longer than a minute are left to the weekly run, which
starts without one and takes them all.
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
from tools.notebooks.execute import KEPT, run_notebook
from tools.notebooks.io import ROOT, all_notebooks, read
from tools.notebooks.repo_links import colab_source, repository

pytestmark = [pytest.mark.colab, pytest.mark.slow]

LONG = 60  # seconds


def seconds(path: Path) -> float:
    """How long the notebook took when the site was built; 0 if it was not."""
    executed = ROOT / "_build" / "executed" / path.relative_to(ROOT)
    return read(executed).metadata[KEPT]["seconds"] if executed.is_file() else 0.0


PAGES = [p for p in all_notebooks() if p.parent.name in ("book", "exercises")]
NOTEBOOKS = [path for path in PAGES if seconds(path) <= LONG]
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


def run_on_colab(notebook: NotebookNode, configuration: Path, folder: Path) -> None:
    """Run all cells of the notebook, with the course installed in `folder` or not."""
    write_kernel(configuration, folder)
    for cell in notebook.cells:
        cell.metadata.pop("tags", None)  # on Colab nothing is left out
    path = folder / "alone.ipynb"
    nbformat.write(notebook, path)
    mine = {
        k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "COURSE_"))
    }
    mine |= {"PYTHONPATH": str(ROOT), "JUPYTER_PATH": str(folder)}
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


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_notebook_alone_runs_on_colab(
    path: Path, redirected: Path, installed: Path
) -> None:
    notebook = read(path)
    _, install = notebook.cells[:2]
    assert install.source == colab_source()  # which `installed` has run
    del notebook.cells[1]
    run_on_colab(notebook, redirected, installed)


def small(*sources: str) -> NotebookNode:
    """A notebook of these cells."""
    return new_notebook(cells=[new_code_cell(source) for source in sources])


def test_the_first_cell_may_run_twice(redirected: Path, installed: Path) -> None:
    imports = "import course_utils.models.attention, sacrebleu"
    run_on_colab(small(imports, colab_source(), imports), redirected, installed)


def test_an_import_that_colab_lacks_is_caught(
    redirected: Path, installed: Path
) -> None:
    with pytest.raises(AssertionError, match="No module named 'jaxtyping'"):
        run_on_colab(small("import jaxtyping"), redirected, installed)


def test_a_wrong_address_is_caught(redirected: Path, tmp_path: Path) -> None:
    first = colab_source().replace(repository()[0], "https://x.org/y")
    with pytest.raises(AssertionError, match="did not install the course"):
        install_on_colab(first, redirected, tmp_path)


def test_an_install_that_replaces_a_package_of_colab_is_caught(
    redirected: Path, tmp_path: Path
) -> None:
    older = site_packages(tmp_path) / "numpy-1.0.dist-info"
    first = colab_source() + (
        "\nfrom pathlib import Path"
        f"\nPath({str(older)!r}).mkdir()"
        f"\nPath({str(older)!r}, 'METADATA').write_text('Name: numpy\\nVersion: 1.0')"
    )
    with pytest.raises(AssertionError, match="replaced what Colab has"):
        install_on_colab(first, redirected, tmp_path)
