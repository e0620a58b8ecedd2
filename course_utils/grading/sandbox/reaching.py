"""Names by which code could look behind its own calls, to blind whoever watches it.

Honest code may use them, so they cost nothing: a person is told. They are read from
what Python parsed before the first cell ran: no comment and no text counts.
"""

from __future__ import annotations

import ast
import re

NAMES = re.compile(
    r"__(?:closure|globals|code|dict|self|func|builtins|getattribute|traceback"
    r"|subclasses|match_args)__|cell_contents|_getframe|currentframe|_current_frames"
    r"|f_(?:back|locals|globals|builtins)|(?:tb|gi|cr|ag)_frame|get_objects"
    r"|get_refer(?:rers|ents)|[gs]et(?:trace|profile)|addaudithook|getsignal|ctypes"
    r"|attrgetter|methodcaller|getmembers\w*|getattr_static|getclosurevars|monitoring"
    r"|_thread|start_new(?:_thread)?|_\w+_profiler\w*|_enable_record_function|_C|_ops"
)
CALLS = ("exec", "eval", "compile", "vars", "globals", "locals", "setattr")
LIBRARIES = ("torch", "np", "numpy", "builtins", "sys", "F", "nn")


def reaching_words(tree: ast.Module) -> set[str]:
    """List such names in a cell; to patch a library is of the same kind."""
    return {word for node in ast.walk(tree) for word in words_of(node)}


def words_of(node: ast.AST) -> list[str]:
    """The names by which one piece of code reaches behind its calls."""
    if isinstance(node, ast.Attribute):
        stored = isinstance(node.ctx, ast.Store) and is_library(node.value)
        patched = [f"{ast.unparse(node)[:60]} = …"] if stored else []
        return [*patched, *filter(NAMES.fullmatch, [node.attr])]
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [alias.name for alias in node.names]
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        return [x for name in names for x in name.split(".") if NAMES.fullmatch(x)]
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return []
    called, name = node.func.id, node.args[1] if len(node.args) > 1 else None
    if called == "getattr" and isinstance(name, ast.Constant):
        return [x for x in [str(name.value)] if NAMES.fullmatch(x)]
    return [called] if called in (*CALLS, "getattr") else []


def is_library(node: ast.expr) -> bool:
    """Tell whether an expression is a library or in one, its settings aside."""
    while isinstance(node, ast.Attribute):
        if node.attr == "backends":
            return False
        node = node.value
    return isinstance(node, ast.Name) and node.id in LIBRARIES
