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
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__")
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
    imports = "; ".join(f"import course_utils.{name}" for name in MODULES)
    found = loaded_by(imports) & set(HEAVY)
    if found:
        guilty = {
            name: sorted(loaded_by(f"import course_utils.{name}") & set(HEAVY))
            for name in MODULES
        }
        pytest.fail(f"loaded at import: { ({n: h for n, h in guilty.items() if h}) }")


def test_the_models_work_where_jaxtyping_is_not_installed():
    """jaxtyping is a tool of the developers: readers do without it."""
    hidden = "import sys; sys.modules['jaxtyping'] = None"
    loaded = loaded_by(f"{hidden}\nimport course_utils.transformer, course_utils.rnn")
    assert "torch" in loaded
    assert "beartype" not in loaded


def trees() -> dict[str, ast.Module]:
    return {name: ast.parse((PACKAGE / f"{name}.py").read_text()) for name in MODULES}


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


@pytest.mark.parametrize("name", MODULES)
def test_a_module_stays_short_enough_to_read(name):
    text = (PACKAGE / f"{name}.py").read_text()
    lines = sum(bool(line.strip()) for line in text.splitlines())
    assert lines <= 330, f"{name}.py has {lines} lines that are not blank: split it"


def own_imports(tree: ast.Module) -> set[str]:
    """Return the modules of the package that a module imports, at any depth."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "course_utils":
                found |= {alias.name for alias in node.names}
            elif node.module.startswith("course_utils."):
                found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            found |= {n.split(".")[1] for n in names if n.startswith("course_utils.")}
    return found & set(MODULES)


@pytest.mark.parametrize("name", ["data", "attention", "plots"])
def test_the_sources_of_the_flow_import_nothing_of_ours(name):
    assert own_imports(trees()[name]) <= {"shapes"}


def test_no_two_modules_import_each_other():
    graph = {name: own_imports(tree) for name, tree in trees().items()}
    order: list[str] = []
    while len(order) < len(graph):
        free = [n for n in graph if n not in order and graph[n] <= set(order)]
        assert free, f"a circle among {sorted(set(graph) - set(order))}"
        order += free
