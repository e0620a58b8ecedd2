"""The build shows no old result, and its checks count what failed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from small_project import build, executed

from tools.build import stage, with_outputs
from tools.check import Step, counted, run_all
from tools.notebooks.io import ROOT, dumps, read
from tools.notebooks.repo_links import BADGE, stamped


def page(project: Path) -> str:
    """The built page of the notebook."""
    return (project / "_build" / "html" / "book" / "fruit.html").read_text()


@pytest.mark.slow
def test_the_site_never_shows_an_old_result(project: Path) -> None:
    status, said = build(project, "book")
    assert status == 0, said
    assert executed(said) == 1
    assert "pomegranate" in page(project)

    status, said = build(project, "book")
    assert (status, executed(said)) == (0, 0), said
    assert "site: unchanged" in said

    (project / "course_utils" / "other.py").write_text("x = 2\n")
    status, said = build(project, "book")
    assert (status, executed(said)) == (0, 0), said

    (project / "course_utils" / "basket.py").write_text('NAME = "clementine"\n')
    status, said = build(project, "book")
    assert (status, executed(said)) == (0, 1), said
    assert "course_utils/basket.py changed" in said
    assert "clementine" in page(project)
    assert "pomegranate" not in page(project)


@pytest.mark.slow
def test_new_prose_shows_without_an_execution_and_old_pages_vanish(
    project: Path,
) -> None:
    assert build(project, "book")[0] == 0
    path = project / "book" / "fruit.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].source = "# Exotic fruit"
    nbformat.write(notebook, path)
    (project / "book" / "intro.md").rename(project / "book" / "start.md")
    toc = (project / "_toc.yml").read_text().replace("book/intro", "book/start")
    (project / "_toc.yml").write_text(toc)
    status, said = build(project, "book")
    assert (status, executed(said)) == (0, 0), said
    assert "Exotic fruit" in page(project)
    assert "pomegranate" in page(project)
    pages = {p.name for p in (project / "_build" / "html" / "book").glob("*.html")}
    assert pages == {"fruit.html", "start.html"}


@pytest.mark.slow
def test_a_warning_keeps_the_earlier_site_and_fails(project: Path) -> None:
    assert build(project, "book")[0] == 0
    (project / "book" / "intro.md").write_text("# Welcome\n\n[](nowhere.md)\n")
    for _ in range(2):
        status, said = build(project, "book")
        assert status == 1, said
        assert "nowhere.md" in said
    assert "pomegranate" in page(project)


@pytest.mark.slow
def test_pages_are_not_built_from_a_result_that_is_old(project: Path) -> None:
    assert build(project, "execute")[0] == 0
    (project / "course_utils" / "basket.py").write_text('NAME = "clementine"\n')
    status, said = build(project, "site")
    assert status == 1
    assert "book/fruit.ipynb has no result of its present code" in said


# ------------------------------------------------------------------ the checks


def test_an_error_counts_as_a_failure(tmp_path: Path) -> None:
    suite = '<testsuite tests="9" failures="1" errors="2" skipped="1"/>'
    (tmp_path / "report.xml").write_text(f"<testsuites>{suite}{suite}</testsuites>")
    assert counted(tmp_path / "report.xml") == (10, 6, 2)


def test_the_links_of_a_notebook_are_left_out_of_its_page(project: Path) -> None:
    path, staged = project / "book" / "fruit.ipynb", project / "staged"
    nb = stamped(read(path), "book", path.name)
    path.write_text(dumps(nb))
    assert BADGE in path.read_text()
    stage(project, staged, executed=False)
    for page in (read(staged / "book" / "fruit.ipynb"), with_outputs(nb, nb)):
        assert page.cells[0].source == "# Fruit"
        assert "%pip" not in dumps(page)


WAITS_FOR = """
import time
from pathlib import Path
deadline = time.monotonic() + 60
Path({mine!r}).touch()
while not Path({other!r}).exists():
    assert time.monotonic() < deadline
    time.sleep(0.01)
"""


def test_a_step_runs_beside_the_one_before_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    names = [str(tmp_path / name) for name in "ab"]
    codes = [
        WAITS_FOR.format(mine=mine, other=other) + "print('done')"
        for mine, other in (names, names[::-1])
    ]
    commands = [[sys.executable, "-c", code] for code in codes]
    one, two = Step("one", commands[0], {}), Step("two", commands[1], {}, beside=True)
    assert run_all([one, two])
    said = capfd.readouterr().out
    assert said.splitlines().count("done") == 2
    assert said.endswith("\n2 passed, 0 failed, 0 skipped\n")


def test_a_step_that_counts_nothing_or_ends_badly_has_failed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    silent = Step("silent", [sys.executable, "-c", ""], {}, counts=True)
    bad = Step("bad", [sys.executable, "-c", "raise SystemExit(1)"], {}, beside=True)
    assert not run_all([silent, bad])
    assert capfd.readouterr().out.endswith("\n0 passed, 2 failed, 0 skipped\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("no_skip", "closing"), [("", "1 passed, 1 skipped"), ("1", "1 failed, 1 passed")]
)
def test_nothing_is_skipped_where_that_is_asked(
    tmp_path: Path, no_skip: str, closing: str
) -> None:
    for name in ("conftest.py", "simulated_colab.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path)
    (tmp_path / "test_two.py").write_text(
        "import pytest\n"
        "def test_left_out(): pytest.skip('there is no Chromium')\n"
        "@pytest.mark.xfail\ndef test_expected(): assert False\n"
        "def test_right(): pass\n"
    )
    run = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(
        run,
        cwd=tmp_path,
        env=os.environ | {"COURSE_NO_SKIP": no_skip, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert closing in done.stdout
    assert "there is no Chromium" in done.stdout or not no_skip
