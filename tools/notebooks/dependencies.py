"""What a notebook's results depend on, so that an old result is never shown.

A notebook depends on its code and the outputs that are compared, on every module of the
package that it could import, directly or through another, on the package's data files,
on the installed versions and on the course's environment variables. `inputs` names each
with a digest: results made from equal inputs are kept, all others are made again.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from tools.notebooks.io import CHECKED, tags
from tools.notebooks.previews import TAG

PACKAGE = "course_utils"
VARIABLES = ("COURSE_SEED", "COURSE_PRESET")


def digest(data: bytes | str) -> str:
    """A short fingerprint of the content."""
    raw = data.encode() if isinstance(data, str) else data
    return hashlib.sha256(raw).hexdigest()[:20]


def package_files(root: Path) -> list[Path]:
    """Every file of the package that is part of an install."""
    found = (root / PACKAGE).rglob("*")
    return sorted(p for p in found if p.is_file() and "__pycache__" not in p.parts)


def module_names(root: Path) -> dict[str, Path]:
    """The package's modules by their dotted names."""
    modules = {}
    for path in package_files(root):
        if path.suffix == ".py":
            parts = path.relative_to(root).with_suffix("").parts
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def texts(tree: ast.Module) -> list[str]:
    """The strings of the code that name the package; documentation does not count.

    A `%%time` cell, a shell line or a subprocess has its imports in a string.
    """
    alone = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if PACKAGE in node.value and id(node) not in alone
    ]


def is_unclear(tree: ast.Module) -> bool:
    """Whether the code may import what can't be read from it.

    It imports by a computed name, or runs text as code.
    """
    for node in ast.walk(tree):
        match node:
            case ast.Name(id="__import__" | "exec" | "eval" | "import_module"):
                return True
            case ast.Attribute(attr="import_module"):
                return True
            case ast.alias(name="runpy" | "pkgutil"):
                return True
    half_a_name = re.compile(rf"\bimport\b|\b{PACKAGE}\.(?!\w)")
    return any(half_a_name.search(text) for text in texts(tree))


def imported(tree: ast.Module, package: str = "") -> set[str]:
    """Every dotted name that the code could load: imported, or named in a string.

    `package` is where relative imports start from. `from a import b` may load the
    module `a.b` as well as `a`; `from a import *` counts as the name `a.*`.
    """
    named = re.compile(rf"\b{PACKAGE}(?:\.\w+)*")
    names = {name for text in texts(tree) for name in named.findall(text)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                above = ".".join(parents[: len(parents) - node.level + 1])
                base = f"{above}.{base}" if base else above
            names |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return names


def package_of(module: str, path: Path) -> str:
    """Where relative imports inside the module start from."""
    return module if path.name == "__init__.py" else module.rpartition(".")[0]


def with_parents(names: Iterable[str]) -> set[str]:
    """The names and the packages around them, whose `__init__` runs as well."""
    return {
        ".".join(parts[:end])
        for parts in (name.split(".") for name in names)
        for end in range(1, len(parts) + 1)
    }


def modules_used(code: str, root: Path) -> set[str]:
    """The package's modules that running the code could load: all, where unclear."""
    modules = module_names(root)
    used: set[str] = set()
    waiting: list[tuple[str, str]] = [(code, "")]
    while waiting:
        source, package = waiting.pop()
        try:
            tree = ast.parse(source)
        except SyntaxError:
            return set(modules)
        names = imported(tree, package)
        starred = {modules.get(name[:-2]) for name in names if name.endswith(".*")}
        if is_unclear(tree) or any(p and p.name == "__init__.py" for p in starred):
            return set(modules)
        for name in (with_parents(names) & modules.keys()) - used:
            used.add(name)
            path = modules[name]
            waiting.append((path.read_text("utf-8"), package_of(name, path)))
    return used


def data_files(root: Path, modules: set[Path], code: str = "") -> set[Path]:
    """The package's files that are not Python and that these modules could read.

    A file named as a module beside it (`token_order.js`) belongs to that module alone,
    a stored experiment to the notebooks whose code names it, any other file to all.
    """

    def counts(path: Path) -> bool:
        owner = path.with_suffix(".py")
        if path.parent == root / PACKAGE / "experiments":
            return path.stem in code
        return owner in modules or not owner.exists()

    return {p for p in package_files(root) if p.suffix != ".py" and counts(p)}


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that run."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def as_python(notebook: NotebookNode) -> str:
    """The notebook's code with the magics turned into Python."""
    python = TransformerManager()
    return "\n".join(python.transform_cell(c.source) for c in code_cells(notebook))


def installed(root: Path) -> dict[str, str]:
    """The installed version of each dependency that `pyproject.toml` states."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    versions = {}
    for requirement in project.get("dependencies", []):
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def inputs(notebook: NotebookNode, root: Path) -> dict[str, str]:
    """All that the notebook's results depend on, each with a digest or a version."""
    code = as_python(notebook)
    used = modules_used(code, root)
    modules = module_names(root)
    files = {modules[name] for name in used}
    if used:
        files |= data_files(root, files, code)
    files.add(root / "requirements.txt")
    cells = [
        [c.source, sorted({*tags(c)} - {TAG}), CHECKED in tags(c) and c.outputs]
        for c in code_cells(notebook)
    ]
    return (
        {"its code": digest(json.dumps(cells)), "python": platform.python_version()}
        | installed(root)
        | {name: os.environ.get(name, "") for name in VARIABLES}
        | {p.relative_to(root).as_posix(): digest(p.read_bytes()) for p in files}
    )
