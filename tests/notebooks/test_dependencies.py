"""A notebook runs again when something that its result was made from has changed."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from small_project import SHOWS_FRUIT

from tools.notebooks.dependencies import as_python, inputs, modules_used
from tools.notebooks.toc import page_sources


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


def test_a_stored_output_counts_where_it_is_compared(project: Path) -> None:
    notebook = nbformat.read(project / "book" / "fruit.ipynb", as_version=4)
    before = inputs(notebook, project)
    cell = notebook.cells[1]
    cell.outputs = [new_output("stream", name="stdout", text="42")]
    assert inputs(notebook, project) == before
    cell.metadata.tags = ["nbval-check-output"]
    tagged = inputs(notebook, project)
    cell.outputs[0].text = "43"
    assert inputs(notebook, project) != tagged


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


def test_an_experiment_counts_for_the_notebooks_that_name_it(project: Path) -> None:
    stored = project / "course_utils" / "experiments" / "06_peel.json"
    stored.parent.mkdir()
    stored.write_text("1")
    fruit = nbformat.read(project / "book" / "fruit.ipynb", as_version=4)
    names_it = new_code_cell(f'{SHOWS_FRUIT}\nexperiments.load("06_peel")')
    other = new_notebook(cells=[names_it])
    before = inputs(fruit, project), inputs(other, project)
    stored.write_text("2")
    assert inputs(fruit, project) == before[0]
    assert inputs(other, project) != before[1]
