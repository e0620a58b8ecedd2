"""Compare what a chapter teaches with what the package holds.

A definition that later chapters import lives in `course_utils` and stands in the
chapter that teaches it as its twin, in a cell tagged `twin`. The two are equal as
syntax trees, docstrings and annotations aside: what the reader studies is what runs.
"""

from __future__ import annotations

import ast
import copy
import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from tools.notebooks.io import ROOT, parse, tags

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
TAUGHT = re.compile(r"Taught\s+in\s+chapter\s+(\d\d)")


@dataclass(frozen=True)
class Original:
    """A definition of the package, and the module it stands in."""

    module: str
    node: Definition

    @property
    def path(self) -> str:
        """The module's file, seen from the package."""
        return self.module.replace(".", "/") + ".py"

    @property
    def chapter(self) -> str | None:
        """The number of the chapter that teaches it, if its docstring says one."""
        found = TAUGHT.search(ast.get_docstring(self.node) or "")
        return found[1] if found else None


# ------------------------------------------------------------------------- reading


def definitions(tree: ast.Module) -> list[Definition]:
    """The functions and classes that stand at the top of a module or cell."""
    return [node for node in tree.body if isinstance(node, Definition)]


def package(folder: Path = ROOT / "course_utils") -> dict[str, list[Original]]:
    """Every definition of the package by name (more than one: ambiguous)."""
    originals: dict[str, list[Original]] = {}
    rooms = (p for p in folder.rglob("*.py") if "grading" not in p.parts)
    for path in sorted(rooms):
        module = ".".join(path.relative_to(folder).with_suffix("").parts)
        for node in definitions(ast.parse(path.read_text(encoding="utf-8"))):
            originals.setdefault(node.name, []).append(Original(module, node))
    return originals


def twins(nb: NotebookNode) -> list[tuple[str, list[Definition]]]:
    """The cells tagged `twin`, by id, and what each defines."""
    return [
        (cell.id, definitions(parse(cell.source)))
        for cell in nb.cells
        if cell.cell_type == "code" and "twin" in tags(cell)
    ]


# ----------------------------------------------------------------------- comparing


class Bare(ast.NodeTransformer):
    """Take away docstrings and annotations."""

    def bare_body(self, node: ast.AST) -> ast.AST:
        """A definition without docstring, and with something left in its body."""
        assert isinstance(node, Definition)
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:]
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.bare_body(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.bare_body(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self.bare_body(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        if node.value is None:
            return None
        return ast.Assign(targets=[node.target], value=node.value, lineno=node.lineno)


def bare(node: Definition) -> str:
    """The definition's code in one layout, without docstrings and annotations."""
    return ast.unparse(ast.fix_missing_locations(Bare().visit(copy.deepcopy(node))))


def drift(
    nb: NotebookNode, name: str, originals: dict[str, list[Original]]
) -> list[str]:
    """The twins of a chapter that differ from the package, both sources shown."""
    found = []
    for cell, taught in twins(nb):
        where = f"{name}: cell {cell}"
        if not taught:
            found.append(f"{where} is tagged twin but defines nothing; drop the tag.")
        for node in taught:
            same_name = originals.get(node.name, [])
            if len(same_name) != 1:
                modules = ", ".join(f"course_utils.{o.module}" for o in same_name)
                found.append(
                    f"{where} teaches {node.name}, which stands in "
                    f"{modules or 'no module of course_utils'}; a twin has one "
                    "original: give it one name in one module, or drop the tag."
                )
                continue
            ours, theirs = bare(node), bare(same_name[0].node)
            if ours != theirs:
                module = f"course_utils/{same_name[0].path}"
                diff = difflib.unified_diff(
                    theirs.splitlines(), ours.splitlines(), module, name, lineterm=""
                )
                found.append(
                    f"{where} and {module} differ in {node.name}; make them equal "
                    "(docstrings and annotations aside):\n" + "\n".join(diff)
                )
    return found


def untaught(
    chapters: dict[str, NotebookNode], originals: dict[str, list[Original]]
) -> list[str]:
    """The definitions that name a chapter as theirs which has no twin of them."""
    found = []
    for name, nb in sorted(chapters.items()):
        taught = {node.name for _, nodes in twins(nb) for node in nodes}
        for original in (o for same_name in originals.values() for o in same_name):
            own = original.node.name
            if original.chapter != name[:2] or own.startswith("_") or own in taught:
                continue
            found.append(
                f"course_utils/{original.path} says that {own} is taught in "
                f"chapter {name[:2]}, but book/{name} has no cell tagged `twin` that "
                'defines it; add one, or write "Used in chapter" in the docstring.'
            )
    return found
