"""Take out of the package what a question asks for, so that nobody can call it there.

A rule "write it yourself" then needs no watch: what gives the right results in a
sandbox where the package's own function does not exist did not come from it, whatever
thread, frame or file it went through. A notebook may call the function for another
purpose; the worker says so, and the notebook runs again with the whole package.
"""

from __future__ import annotations

import ast
import tempfile
import threading
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
LOCK = threading.Lock()
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


def covers(names: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """The files to lay over those of the package: which, and over which."""
    with LOCK:  # two threads would make two folders, and one of them would vanish
        return covers_of(names) if names else ()


@lru_cache
def folder_for_covers() -> tempfile.TemporaryDirectory[str]:
    """A folder that is deleted when this process ends."""
    return tempfile.TemporaryDirectory(prefix="course_absent_")


@lru_cache
def covers_of(names: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Write those files. Over a compiled module goes an empty one, which is no module.

    Python then reads the source.
    """
    pairs: list[tuple[str, str]] = []
    whole = folder_for_covers().name
    nothing = Path(whole, "nothing")
    nothing.touch()
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.is_relative_to(PACKAGE / "grading"):
            continue
        source = without(path.read_text(encoding="utf-8"), names)
        if source is None:
            continue
        folder = Path(tempfile.mkdtemp(dir=whole))
        (folder / path.name).write_text(source, encoding="utf-8")
        pairs.append((str(folder / path.name), str(path)))
        compiled = path.parent.glob(f"__pycache__/{path.stem}.*.pyc")
        pairs += [(str(nothing), str(one)) for one in compiled]
    return tuple(pairs)
