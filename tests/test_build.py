"""The build shows no old result, loses nothing, and says what failed and where."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.build import page_sources, with_outputs
from tools.check import counted
from tools.dependencies import as_python, inputs, modules_used
from tools.files import ROOT

FILES = {
    "_config.yml": "title: Fruit\nonly_build_toc_files: true\n"
    'execute: {execute_notebooks: "off"}\n',
    "_toc.yml": "format: jb-book\nroot: book/intro\nchapters:\n- file: book/fruit\n",
    "requirements.txt": "",
    "pyproject.toml": '[project]\nname = "course-utils"\ndependencies = ["numpy>=1"]\n',
    "book/intro.md": "# Welcome\n",
    "course_utils/__init__.py": "",
    "course_utils/fruit.py": "from .basket import NAME\ndef name():\n  return NAME\n",
    "course_utils/basket.py": 'NAME = "pomegranate"\n',
    "course_utils/other.py": "x = 1\n",
}
SHOWS_FRUIT = "from course_utils.fruit import name\nname()"


def write_notebook(path: Path, *sources: str) -> None:
    """Write a notebook with a title and these code cells."""
    cells = [new_markdown_cell("# Fruit"), *map(new_code_cell, sources)]
    nbformat.write(new_notebook(cells=cells), path)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with a package, a page and a notebook."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    write_notebook(tmp_path / "book" / "fruit.ipynb", SHOWS_FRUIT)
    return tmp_path


def command(project: Path, *arguments: str) -> list[str]:
    """The command line of the build for this project."""
    return [sys.executable, "-m", "tools.build", "--root", str(project), *arguments]


def build(project: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """Run the build; return its exit status and all it printed."""
    done = subprocess.run(
        command(project, *arguments),
        cwd=ROOT,
        env=os.environ | environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.returncode, done.stdout


def page(project: Path) -> str:
    """The built page of the notebook."""
    return (project / "_build" / "html" / "book" / "fruit.html").read_text()


def executed(said: str) -> int:
    """How many notebooks the build says it executed."""
    found = re.search(r"(\d+) executed", said)
    assert found, said
    return int(found[1])


# ------------------------------------------------------------------ dependencies


def test_a_module_imported_through_another_counts(project: Path) -> None:
    used = modules_used(SHOWS_FRUIT, project)
    assert used == {"course_utils", "course_utils.fruit", "course_utils.basket"}


@pytest.mark.parametrize(
    "code",
    [
        "import importlib\nimportlib.import_module(name)",
        "__import__(name)",
        "exec(text)",
        "from course_utils import *",
        "%%time\nfrom course_utils import fruit",
        "run(f'course_utils.{name}')",
        "this is no Python",
    ],
)
def test_code_that_hides_its_imports_depends_on_all(project: Path, code: str) -> None:
    notebook = new_notebook(cells=[new_code_cell(code)])
    assert "course_utils.other" in modules_used(as_python(notebook), project)


def test_a_module_named_in_a_command_counts(project: Path) -> None:
    notebook = new_notebook(cells=[new_code_cell("!python -m course_utils.fruit")])
    used = modules_used(as_python(notebook), project)
    assert used == {"course_utils", "course_utils.fruit", "course_utils.basket"}


def test_a_bare_string_and_an_eval_method_hide_nothing(project: Path) -> None:
    code = "'''as in course_utils.other'''\nmodel.eval()\n" + SHOWS_FRUIT
    assert "course_utils.other" not in modules_used(code, project)


@pytest.mark.parametrize(
    "change",
    ["requirements.txt", "course_utils/basket.py", "course_utils/data.json"],
)
def test_a_changed_file_changes_the_inputs(project: Path, change: str) -> None:
    notebook = nbformat.read(project / "book" / "fruit.ipynb", as_version=4)
    before = inputs(notebook, project)
    (project / change).write_text("# changed")
    assert inputs(notebook, project) != before


def test_changed_code_changes_the_inputs_and_changed_prose_does_not(
    project: Path,
) -> None:
    notebook = nbformat.read(project / "book" / "fruit.ipynb", as_version=4)
    before = inputs(notebook, project)
    notebook.cells[0].source = "# Other fruit"
    assert inputs(notebook, project) == before
    notebook.cells[1].source += " * 2"
    assert inputs(notebook, project) != before


@pytest.mark.parametrize("variable", ["COURSE_SEED", "COURSE_PRESET"])
def test_another_seed_or_preset_changes_the_inputs(
    project: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = nbformat.read(project / "book" / "fruit.ipynb", as_version=4)
    before = inputs(notebook, project)
    monkeypatch.setenv(variable, "7")
    assert inputs(notebook, project) != before


def test_a_page_that_is_not_there_is_named(project: Path) -> None:
    (project / "book" / "intro.md").unlink()
    with pytest.raises(ValueError, match=r"lists 'book/intro', but there is no"):
        page_sources(project)


# ------------------------------------------------------------------ the site


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


# ------------------------------------------------------------------ execution


@pytest.mark.slow
def test_a_failing_cell_is_named_and_the_others_finish(project: Path) -> None:
    write_notebook(project / "book" / "fruit.ipynb", "1", "1 / 0", "2")
    write_notebook(project / "book" / "good.ipynb", "1")
    with (project / "_toc.yml").open("a") as toc:
        toc.write("- file: book/good\n")
    status, said = build(project, "book")
    assert status == 1
    assert "book/fruit.ipynb: code cell 2" in said
    assert "ZeroDivisionError: division by zero" in said
    assert "site: NOT built" in said
    assert (project / "_build" / "executed" / "book" / "good.ipynb").is_file()
    assert not (project / "_build" / "html").exists()


@pytest.mark.slow
def test_a_cell_that_ends_its_process_is_named(project: Path) -> None:
    write_notebook(project / "book" / "fruit.ipynb", "1", "import os; os._exit(3)")
    status, said = build(project, "execute")
    assert status == 1
    assert "code cell 2" in said
    assert "The kernel died" in said


def interruptible() -> None:
    """Heed Ctrl-C even where the tests run in the background of a shell."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_build_goes_on_where_it_was(
    project: Path, number: signal.Signals
) -> None:
    begun, free = project / "begun", project / "free"
    write_notebook(
        project / "book" / "waits.ipynb",
        f"from pathlib import Path; import time; Path({str(begun)!r}).touch()",
        f"while not Path({str(free)!r}).exists(): time.sleep(0.05)",
    )
    with (project / "_toc.yml").open("a") as toc:
        toc.write("- file: book/waits\n")
    done = project / "_build" / "executed" / "book" / "fruit.ipynb"
    running = subprocess.Popen(
        command(project, "execute"), cwd=ROOT, preexec_fn=interruptible
    )
    deadline = time.monotonic() + 120
    while not (begun.exists() and done.exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(number)
    assert running.wait(60) != 0
    free.touch()
    status, said = build(project, "execute")
    assert (status, executed(said)) == (0, 1), said
    assert re.search(r"book/fruit.ipynb +unchanged", said)


@pytest.mark.slow
def test_a_result_is_not_kept_if_the_package_changed_while_it_was_made(
    project: Path,
) -> None:
    basket = project / "course_utils" / "basket.py"
    write_notebook(
        project / "book" / "fruit.ipynb",
        SHOWS_FRUIT,
        f"open({str(basket)!r}, 'a').write('# edited\\n')",
    )
    status, said = build(project, "execute")
    assert status == 1
    assert "course_utils/basket.py changed while it ran" in said
    assert not (project / "_build" / "executed" / "book" / "fruit.ipynb").exists()


@pytest.mark.slow
def test_a_result_that_is_cut_short_is_made_again(project: Path) -> None:
    assert build(project, "execute")[0] == 0
    result = project / "_build" / "executed" / "book" / "fruit.ipynb"
    result.write_text(result.read_text()[:-40])
    status, said = build(project, "execute")
    assert (status, executed(said)) == (0, 1), said


@pytest.mark.slow
def test_a_notebook_that_needs_the_network_fails(project: Path) -> None:
    write_notebook(
        project / "book" / "fruit.ipynb",
        "import socket\n"
        "here = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(here.getsockname())",
        "import urllib.request\nurllib.request.urlopen('http://192.0.2.1/')",
    )
    status, said = build(project, "execute")
    assert status == 1
    assert "code cell 2" in said
    assert "a connection to '192.0.2.1' was refused" in said


@pytest.mark.slow
def test_a_notebook_runs_in_an_empty_folder_on_one_thread(project: Path) -> None:
    write_notebook(
        project / "book" / "fruit.ipynb",
        "import os\nassert os.listdir() == []",
        "import torch\nassert torch.get_num_threads() == 1",
    )
    status, said = build(project, "execute", OMP_NUM_THREADS="2", MPLBACKEND="pdf")
    assert status == 0, said


@pytest.mark.slow
def test_other_seeds_are_tried_and_the_one_that_fails_is_named(project: Path) -> None:
    write_notebook(
        project / "book" / "fruit.ipynb",
        "import os\nassert os.environ['COURSE_SEED'] != '2'",
    )
    status, said = build(project, "seeds", "1", "2", "3")
    assert status == 1
    assert "failed with seeds 2" in said
    assert not (project / "_build" / "executed").exists()


def test_an_error_counts_as_a_failure(tmp_path: Path) -> None:
    suite = '<testsuite tests="9" failures="1" errors="2" skipped="1"/>'
    (tmp_path / "report.xml").write_text(f"<testsuites>{suite}{suite}</testsuites>")
    assert counted(tmp_path / "report.xml") == (10, 6, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("no_skip", "closing"), [("", "1 passed, 1 skipped"), ("1", "1 failed, 1 passed")]
)
def test_nothing_is_skipped_where_that_is_asked(
    tmp_path: Path, no_skip: str, closing: str
) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
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


# ------------------------------------------------------------------ the Makefile


def test_every_target_has_one_rule_and_a_line_of_help() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    named = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert named
    rules = re.findall(r"^([a-z-]+):.*## \S", text, re.MULTILINE)
    assert sorted(rules) == sorted(named[1].split())


# ------------------------------------------------------------------ what nbval ran


def nbval(project: Path, **environment: str) -> tuple[int, str]:
    """Run nbval on the project as `make test` does; return its status and words."""
    (project / "pytest.ini").write_text("[pytest]\n")
    options = ["--nbval-lax", "--nbval-current-env", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-p", "tools.validated", "book"],
        cwd=project,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(map(str, (project, ROOT)))}
        | environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.returncode, done.stdout


@pytest.mark.slow
def test_the_site_shows_the_run_that_nbval_checked(project: Path) -> None:
    path = project / "book" / "fruit.ipynb"
    write_notebook(path, SHOWS_FRUIT, "print(6 * 7)")
    status, said = nbval(project)
    assert status == 0, said
    result = project / "_build" / "executed" / "book" / "fruit.ipynb"
    kept = nbformat.read(result, 4)
    status, said = build(project, "execute")
    assert status == 0, said
    assert "0 executed, 1 unchanged" in said
    # the build's own run has the same outputs
    result.unlink()
    assert executed(build(project, "execute")[1]) == 1
    built = nbformat.read(result, 4)
    outputs = [[c.get("outputs") for c in nb.cells] for nb in (kept, built)]
    assert outputs[0] == outputs[1]
    assert "pomegranate" in str(outputs)
    # nbval ran with this state of the package: another one needs another run
    (project / "course_utils" / "basket.py").write_text('NAME = "quince"\n')
    assert executed(build(project, "execute")[1]) == 1
    assert "quince" in result.read_text()


def test_a_page_carries_no_state_of_live_widgets() -> None:
    source, result = (new_notebook(cells=[new_code_cell("1")]) for _ in range(2))
    result.metadata["widgets"] = {"state": {}}
    result.cells[0].execution_count = 3
    page = with_outputs(source, result)
    assert page.cells[0].execution_count == 3
    assert "widgets" not in page.metadata


LIVE_WIDGET = (
    "from IPython.display import display\n"
    "view = {'application/vnd.jupyter.widget-view+json': {'model_id': 'a'}}\n"
    "display(view, raw=True)"
)


@pytest.mark.slow
def test_a_live_widget_that_the_site_leaves_out_costs_no_second_run(
    project: Path,
) -> None:
    path = project / "book" / "fruit.ipynb"
    write_notebook(path, SHOWS_FRUIT, LIVE_WIDGET)
    notebook = nbformat.read(path, 4)
    notebook.cells[-1].metadata.tags = ["remove-cell"]
    nbformat.write(notebook, path)
    status, said = nbval(project)
    assert status == 0, said
    assert executed(build(project, "execute")[1]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "sources",
    [
        pytest.param(("1 / 0", "2"), id="the first cell fails"),
        pytest.param(("2", "1 / 0"), id="the last cell fails"),
        pytest.param(
            ("open('../course_utils/basket.py', 'a').write('# new')",),
            id="the package changes while it runs",
        ),
        pytest.param((LIVE_WIDGET,), id="a live widget"),
    ],
)
def test_a_run_that_can_not_be_shown_is_not_kept(
    project: Path, sources: tuple[str, ...]
) -> None:
    imports = "import course_utils.fruit\n"
    write_notebook(project / "book" / "fruit.ipynb", imports, *sources)
    nbval(project)
    assert not (project / "_build" / "executed").exists()
