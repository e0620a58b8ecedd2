"""Importing is quick, quiet and one-way; what is public is documented."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import course_utils

PACKAGE = Path(course_utils.__file__).parent
FILES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.name not in ("__init__.py", "__main__.py")
}
# What the functions of a question are for is said by its mistakes and hints.
MODULES = {name: path for name, path in FILES.items() if ".questions.ch" not in name}
# Longer than 330 lines: dozens of mistakes, and what still waits to be split.
LONGER = {"q7_decoder_layer": 580, "q3_cut": 390, "diagnosis": 440, "mutants": 350}
LONGER |= {"q1_decoder_block": 385, "q9_matrix_states": 345, "q1_layer_norm": 345}
LONGER |= {"q4_smoothed_loss": 345}
LONGER |= {"answer_runner": 340, "lexicon": 360, "sentences": 370, "q9_narrowest": 420}
# Loaded only by the function that needs it.
HEAVY = ["matplotlib", "sklearn", "datasets", "sacrebleu", "IPython", "ipywidgets"]


def loaded_by(statement: str) -> set[str]:
    """Return the top-level modules in a fresh process after `statement`."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in json.loads(result.stdout)}


def test_importing_the_package_loads_nothing():
    loaded = loaded_by("import course_utils")
    assert loaded.isdisjoint({"torch", "numpy", "einops", *HEAVY})


def test_no_module_loads_what_it_may_not_need():
    """One process for all modules: if one loads something heavy, say which."""
    imports = "; ".join(f"import {name}" for name in FILES)
    found = loaded_by(imports) & set(HEAVY)
    if found:
        guilty = {
            name: sorted(loaded_by(f"import {name}") & set(HEAVY)) for name in FILES
        }
        pytest.fail(f"loaded at import: { ({n: h for n, h in guilty.items() if h}) }")


def test_the_models_work_where_jaxtyping_is_not_installed():
    """jaxtyping is a tool of the developers: readers do without it."""
    hidden = "import sys; sys.modules['jaxtyping'] = None"
    loaded = loaded_by(
        f"{hidden}\nimport course_utils.models.transformer, course_utils.models.rnn"
    )
    assert "torch" in loaded
    assert "beartype" not in loaded


def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}


def undocumented(tree: ast.Module) -> list[str]:
    """Return a module's public functions and classes without a docstring."""
    missing = [] if ast.get_docstring(tree) else ["the module"]
    for node in tree.body:
        named = isinstance(node, ast.FunctionDef | ast.ClassDef)
        if named and not node.name.startswith("_") and not ast.get_docstring(node):
            missing.append(node.name)
    return missing


def test_everything_public_has_a_docstring():
    missing = {name: undocumented(tree) for name, tree in trees().items()}
    assert {name: what for name, what in missing.items() if what} == {}


def test_a_missing_docstring_is_found():
    tree = ast.parse("def f(): pass\nclass C: 'described'\ndef _g(): pass")
    assert undocumented(tree) == ["the module", "f"]


@pytest.mark.parametrize("name", FILES)
def test_a_module_stays_short_enough_to_read(name):
    lines = sum(bool(x.strip()) for x in FILES[name].read_text("utf-8").splitlines())
    most = LONGER.get(name.rpartition(".")[2], 330)
    assert lines <= most, f"{name} has {lines} lines that are not blank: split it"


def test_every_room_says_what_it_is_for():
    rooms = {path.parent for path in FILES.values()}
    silent = [
        str(room.relative_to(PACKAGE.parent))
        for room in sorted(rooms)
        if not ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8")))
    ]
    assert silent == []


def lint_imports(config: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the contracts of a `pyproject.toml`."""
    command = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [str(command), "--config", str(config), "--no-cache"],
        capture_output=True,
        text=True,
        cwd=PACKAGE.parent,
    )


def test_an_import_against_the_direction_of_the_rooms_is_refused(tmp_path):
    """The contracts can fail: turned round, they do."""
    config = (PACKAGE.parent / "pyproject.toml").read_text("utf-8")
    right = '"course_utils.display",\n    "course_utils.tasks",'
    wrong = '"course_utils.tasks",\n    "course_utils.display",'
    assert right in config
    turned = tmp_path / "pyproject.toml"
    turned.write_text(config.replace(right, wrong), encoding="utf-8")
    result = lint_imports(turned)
    assert result.returncode != 0
    refused = "course_utils.display is not allowed to import course_utils.tasks"
    assert refused in " ".join(result.stdout.split())
