"""The reference of the package, made from its source: a Sphinx extension.

    ```{reference} course_utils.attention
    ```

writes every public function and class of the module: its signature as code, its docstring
as Markdown, and a link to the chapter that teaches it.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

Definition = ast.FunctionDef | ast.ClassDef


def public(body: list[ast.stmt]) -> list[Definition]:
    """The definitions that a reader may use."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [x for x in body if isinstance(x, kinds) and not x.name.startswith("_")]


def signature(node: Definition) -> str:
    """The definition's first lines, as it would be called."""
    if isinstance(node, ast.ClassDef):
        makers = [x for x in node.body if getattr(x, "name", "") == "__init__"]
        fields = [x for x in node.body if isinstance(x, ast.AnnAssign)]
        if not makers:
            inside = ", ".join(ast.unparse(field) for field in fields)
            return f"class {node.name}({inside})"
        start, function = f"class {node.name}", makers[0]
    else:
        start, function = f"def {node.name}", node
    assert isinstance(function, ast.FunctionDef)
    arguments = function.args
    arguments.args = [a for a in arguments.args if a.arg != "self"]
    inside, returns = ast.unparse(arguments), function.returns
    ending = f" -> {ast.unparse(returns)}" if returns and start[:3] == "def" else ""
    line = f"{start}({inside}){ending}"
    if len(line) <= 76:
        return line
    parts = re.split(r", (?=[*\w]+(?:[:=]|$|, ))", inside)
    return f"{start}(\n    " + ",\n    ".join(parts) + f",\n){ending}"


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
        module = ast.parse(source.read_text("utf-8"))
        lines = [*inspect.cleandoc(ast.get_docstring(module) or "").splitlines(), ""]
        for node in public(module.body):
            lines += self.entry(name, node)
        box = nodes.container()
        self.state.nested_parse(StringList(lines, source=str(source)), 0, box)
        return box.children

    def entry(self, module: str, node: Definition) -> list[str]:
        """One definition as Markdown."""
        kind = "class-" if isinstance(node, ast.ClassDef) else ""
        anchor = f"{module}-{kind}{node.name}".replace("_", "-").replace(".", "-")
        text = ast.get_docstring(node) or ""
        return [
            f"({anchor})=",
            "```python",
            *signature(node).splitlines(),
            "```",
            "",
            *self.with_links(text).splitlines(),
            "",
        ]

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
