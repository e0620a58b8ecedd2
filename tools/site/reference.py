"""The reference of the package, made from its source: a Sphinx extension.

    ```{reference} course_utils.models.attention
    ```

writes a section for every public function and class of the module: its signature as
code, its docstring as Markdown with formulas (see `tools.site.formulas`), and a link to
the chapter that teaches it.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from pathlib import Path
from typing import Any, TypeVar

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from tools.site.formulas import with_formulas

Definition = ast.FunctionDef | ast.ClassDef
Parent = TypeVar("Parent", bound=nodes.Element)
WIDTH = 88  # columns of code that a page shows without scrolling


def public(body: list[ast.stmt]) -> list[Definition]:
    """The definitions that a reader may use."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [x for x in body if isinstance(x, kinds) and not x.name.startswith("_")]


def signature(node: Definition, source: list[str]) -> str:
    """The definition's head, as its author wrote it."""
    first = node.body[0].lineno - 1
    head = inspect.cleandoc("\n".join(source[node.lineno - 1 : first])).rstrip(": ")
    if isinstance(node, ast.FunctionDef):
        return head
    made = [x for x in node.body if isinstance(x, ast.FunctionDef)]
    made = [x for x in made if x.name == "__init__"]
    fields = [x for x in node.body if isinstance(x, ast.AnnAssign)]
    if made:
        inside = re.sub(r"self,\s*", "", signature(made[0], source))
        return re.sub(r"def __init__", f"class {node.name}", inside)
    if fields:
        each = [ast.unparse(x) for x in fields]
        line = f"class {node.name}({', '.join(each)})"
        lines = "".join(f"    {x},\n" for x in each)
        return line if len(line) <= WIDTH else f"class {node.name}(\n{lines})"
    return head


def anchor(module: str, node: Definition) -> str:
    """The place of a definition in the reference, in small letters as all ids."""
    kind = "class-" if isinstance(node, ast.ClassDef) else ""
    return f"{module}-{kind}{node.name}".replace("_", "-").replace(".", "-").lower()


def taught(page: Path, root: Path) -> dict[str, list[tuple[str, str]]]:
    """By chapter, what it teaches of a page's modules: each name, and its place."""
    found: dict[str, list[tuple[str, str]]] = {}
    for module in re.findall(r"\{reference\} ([\w.]+)", page.read_text("utf-8")):
        path = root / module.replace(".", "/")
        source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        for node in public(ast.parse(source.read_text("utf-8")).body):
            said = " ".join((ast.get_docstring(node) or "").split())
            for text in re.findall(r"Taught in (chapters? \d\d(?: and \d\d)?)", said):
                for chapter in re.findall(r"\d\d", text):
                    place = (node.name, anchor(module, node))
                    found.setdefault(chapter, []).append(place)
    return found


class Reference(SphinxDirective):
    """One module of the package."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write the module as Markdown and let the parser read it."""
        name = self.arguments[0]
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            raise self.error(f"there is no module {name}")
        source = Path(found.origin)
        self.env.note_dependency(str(source))
        text = source.read_text("utf-8")
        module = ast.parse(text)
        about = with_formulas(ast.get_docstring(module) or "").splitlines()
        entries = [
            self.entry(name, node, text.splitlines()) for node in public(module.body)
        ]
        return [*self.parsed(about, nodes.container()).children, *entries]

    def entry(self, module: str, node: Definition, source: list[str]) -> nodes.section:
        """One definition: its name as a heading, its head as code, its docstring."""
        section = nodes.section(ids=[anchor(module, node)])
        section += nodes.title("", "", nodes.literal("", node.name))
        code = ["```python", *signature(node, source).splitlines(), "```", ""]
        text = self.with_links(with_formulas(ast.get_docstring(node) or ""))
        return self.parsed([*code, *text.splitlines()], section)

    def parsed(self, lines: list[str], parent: Parent) -> Parent:
        """Let the parser read lines of Markdown into a node."""
        self.state.nested_parse(StringList(lines, source=self.arguments[0]), 0, parent)
        return parent

    def with_links(self, text: str) -> str:
        """The docstring, each chapter that exists a link."""
        chapters = {
            p.name[:2]: p.stem for p in Path(self.env.srcdir).glob("book/[01]*")
        }

        def link(found: re.Match[str]) -> str:
            page = chapters.get(found[1])
            return f"{{doc}}`chapter {found[1]} <{page}>`" if page else found[0]

        return re.sub(r"chapter (\d\d)", link, text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("reference", Reference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
