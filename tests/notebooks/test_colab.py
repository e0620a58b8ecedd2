"""Every notebook runs on Colab: alone in a folder, with Colab's versions, after the
cell below the title, which all notebooks share, has installed the course, and replaced
nothing that Colab has.

After a build, chapters that took longer than a minute are left to the weekly run, which
starts without one and takes them all.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from simulated_colab import install_on_colab, run_on_colab, site_packages, small

from tools.notebooks.execute import KEPT
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


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_notebook_alone_runs_on_colab(
    path: Path, redirected: Path, installed: Path
) -> None:
    notebook = read(path)
    _, install = notebook.cells[:2]
    assert install.source == colab_source()  # which `installed` has run
    del notebook.cells[1]
    run_on_colab(notebook, redirected, installed)


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
