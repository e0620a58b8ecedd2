"""Every notebook runs on Colab: alone in a folder, with Colab's versions, installed by
its own first cell, which replaces nothing that Colab has.

After a build, chapters that took longer than a minute are left to the weekly run, which
starts without one and takes them all: `make test` has executed them twice by then.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from tools.colab import ENVIRONMENT, WHEELS, colab_python
from tools.execute import KEPT, NotebookFailed, run_cells
from tools.files import ROOT, all_notebooks, read
from tools.stamps import colab_source, repository

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
def versions():
    import importlib.metadata, json
    found = reversed(list(importlib.metadata.distributions()))
    print(json.dumps({each.metadata["Name"]: each.version for each in found}))

versions()
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


def colab_environment(configuration: Path, folder: Path) -> dict[str, str]:
    """Colab as far as it can be had offline: installs come from local wheels."""
    mine = {
        k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "COURSE_"))
    }
    path = [ROOT / "tools" / "kernel", site_packages(folder)]
    path[1].mkdir(parents=True)  # Python remembers a folder that is not there
    return mine | {
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "HOME": str(folder),
        "OMP_NUM_THREADS": "1",
        "COURSE_FAKE_COLAB": "1",
        "COURSE_OFFLINE": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(ENVIRONMENT / WHEELS),
        "PIP_PREFIX": str(folder / "installed"),
        "GIT_CONFIG_GLOBAL": str(configuration),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "file",
    }


def printed(cell: NotebookNode) -> str:
    """What the cell printed."""
    return "".join(output.get("text", "") for output in cell.outputs)


def run_on_colab(notebook: NotebookNode, configuration: Path, folder: Path) -> None:
    """Run the notebook, and check what its first cell did to Colab's packages."""
    look = [new_code_cell(VERSIONS), new_code_cell(VERSIONS)]
    first, *rest = notebook.cells
    notebook.cells = [look[0], first, look[1], *rest]
    alone = folder / "alone"
    alone.mkdir()
    environment = colab_environment(configuration, folder)
    python = str(colab_python(ENVIRONMENT))
    try:
        asyncio.run(run_cells(notebook, python, environment, alone))
    except NotebookFailed as error:
        error.add_note(f"The first cell said: {printed(first)}")
        raise
    before, after = (json.loads(printed(cell)) for cell in look)
    assert "course-utils" not in before
    assert "course-utils" in after, f"the first cell did not install: {printed(first)}"
    assert {name: after.get(name) for name in before} == before, (
        "the first cell replaced what Colab has"
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_notebook_alone_runs_on_colab(
    path: Path, redirected: Path, tmp_path: Path
) -> None:
    run_on_colab(read(path), redirected, tmp_path)


def small(*sources: str) -> NotebookNode:
    """A notebook with the course's first cell."""
    cells = [new_code_cell(source) for source in (colab_source(), *sources)]
    return new_notebook(cells=cells)


def test_the_first_cell_may_run_twice(redirected: Path, tmp_path: Path) -> None:
    notebook = small(colab_source(), "import course_utils.attention, sacrebleu")
    run_on_colab(notebook, redirected, tmp_path)


def test_an_import_that_colab_lacks_is_caught(redirected: Path, tmp_path: Path) -> None:
    with pytest.raises(NotebookFailed, match="No module named 'jaxtyping'"):
        run_on_colab(small("import jaxtyping"), redirected, tmp_path)


def test_a_wrong_address_is_caught(redirected: Path, tmp_path: Path) -> None:
    notebook = small("import course_utils")
    notebook.cells[0].source = colab_source().replace(
        repository()[0], "https://x.org/y"
    )
    with pytest.raises(NotebookFailed, match="No module named 'course_utils'"):
        run_on_colab(notebook, redirected, tmp_path)


def test_an_install_that_replaces_a_package_of_colab_is_caught(
    redirected: Path, tmp_path: Path
) -> None:
    notebook = small()
    older = site_packages(tmp_path) / "numpy-1.0.dist-info"
    notebook.cells[0].source += (
        "\nfrom pathlib import Path"
        f"\nPath({str(older)!r}).mkdir()"
        f"\nPath({str(older)!r}, 'METADATA').write_text('Name: numpy\\nVersion: 1.0')"
    )
    with pytest.raises(AssertionError, match="replaced what Colab has"):
        run_on_colab(notebook, redirected, tmp_path)
