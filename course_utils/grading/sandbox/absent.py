"""Take out of the package what a question asks for, so that nobody can call it there.

A rule "write it yourself" then needs no watch: what gives the right results in a
sandbox where the package's own function does not exist did not come from it, whatever
thread, frame or file it went through. A notebook may call the function for another
purpose; the worker says so, and the notebook runs again with the whole package.
"""

from __future__ import annotations

import ast
import threading
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
PARSING = threading.RLock()  # Python 3.11 cannot parse in two threads at a time
CALLED = "absent_was_called"  # set on `sys` by whatever was taken out
INSTEAD = """
import sys as _sys
_sys.{called} = True
raise RuntimeError('the package has no `{name}` while its question is graded')
"""


def without(source: str, names: frozenset[str]) -> str | None:
    """A module's source with other bodies for some definitions; None if it has none."""
    if not any(f" {name}" in source for name in names):
        return None
    tree = ast.parse(source)
    found = False
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in names:
            found = True
            body = ast.parse(INSTEAD.format(called=CALLED, name=node.name)).body
            node.decorator_list = []
            if isinstance(node, ast.ClassDef):
                (maker,) = ast.parse("def __init__(self, *_, **__): ...").body
                assert isinstance(maker, ast.FunctionDef)
                maker.body, body = body, [maker]
            node.body = body
    return ast.unparse(tree) if found else None


Covers = tuple[tuple[str, str | None], ...]
MADE: dict[frozenset[str], Covers] = {}


def covers(names: frozenset[str]) -> Covers:
    """The files of the package to cover, made once."""
    if names not in MADE:
        with PARSING:
            MADE[names] = make_covers(names)
    return MADE[names]


def make_covers(names: frozenset[str]) -> Covers:
    """The files of the package to cover, and the text that takes the place of each.

    None covers a compiled module, so that Python reads the source.
    """
    pairs: list[tuple[str, str | None]] = []
    for path in sorted(PACKAGE.rglob("*.py")) if names else ():
        if path.is_relative_to(PACKAGE / "grading"):
            continue
        source = without(path.read_text(encoding="utf-8"), names)
        if source is None:
            continue
        pairs.append((str(path), source))
        compiled = path.parent.glob(f"__pycache__/{path.stem}.*.pyc")
        pairs += [(str(one), None) for one in compiled]
    return tuple(pairs)
