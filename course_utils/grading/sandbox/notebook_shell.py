"""What a notebook's code finds around it: `display`, magics, `!`, `await`.

Cells are read by IPython's own transformer, so that the grader takes for Python what
Jupyter takes for it. What they then ask of IPython is answered here: code that a magic
only times or captures is run, everything else is passed over with a word.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

RUNS_CODE = ("time", "timeit", "capture", "prun", "python", "python3")
SILENT = ("matplotlib", "config", "load_ext", "autoreload", "pip", "conda")
TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def transformed(source: str) -> str:
    """Turn a cell with magics into Python, as IPython does."""
    try:
        from IPython.core.inputtransformer2 import TransformerManager
    except ImportError:  # where there is none, such lines can only be left out
        return without_magics(source)
    return str(TransformerManager().transform_cell(source))


def without_magics(source: str) -> str:
    """Blank the lines that only IPython understands, keeping the lines' numbers."""
    lines = source.split("\n")
    if lines[0].startswith("%%"):
        keeps_python = lines[0][2:].split()[:1] in [[name] for name in RUNS_CODE]
        return "\n".join(["", *lines[1:]]) if keeps_python else ""
    return "\n".join(
        line[: len(line) - len(line.lstrip())] + "pass"
        if line.lstrip().startswith(("%", "!", "?")) or line.rstrip().endswith("?")
        else line
        for line in lines
    )


def parsed(source: str) -> ast.Module:
    """Parse a cell as Jupyter would: Python, `await` at the top, magics."""
    flags = ast.PyCF_ONLY_AST | TOP_LEVEL_AWAIT
    try:
        return compile(source, "<cell>", "exec", flags, True)  # type: ignore[return-value]
    except SyntaxError:
        python = transformed(source)
        return compile(python, "<cell>", "exec", flags, True)  # type: ignore[return-value]


class Lines(list[str]):
    """What `f = !ls` gives: no lines, since no command is run."""

    n = s = ""  # what IPython's own list gives in one piece


def event_loop() -> Any:
    """Make an event loop that wakes by a pipe: the sandbox refuses pairs of sockets."""
    import asyncio

    class Loop(asyncio.SelectorEventLoop):
        def _make_self_pipe(self) -> None:
            self._ends = os.pipe()
            for end in self._ends:
                os.set_blocking(end, False)
            read, _ = self._ends
            self._add_reader(read, os.read, read, 4096)  # type: ignore[attr-defined]

        def _close_self_pipe(self) -> None:
            self._remove_reader(self._ends[0])  # type: ignore[attr-defined]
            for end in self._ends:
                os.close(end)

        def _write_to_self(self) -> None:
            with suppress(OSError):  # full: it is awake already
                os.write(self._ends[1], b"\0")

    loop = Loop()
    asyncio.set_event_loop(loop)
    return loop


class Silence:
    """Whatever else a library asks of the shell: it is there, and does nothing."""

    def __getattr__(self, name: str) -> Silence:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: Any, **__: Any) -> None:
        return None

    def __contains__(self, _: object) -> bool:
        return False

    def __bool__(self) -> bool:
        return False


class Shell:
    """Stands for IPython's shell, as far as a cell may ask for it."""

    def __init__(self, space: dict[str, Any], say: Callable[[str], None]) -> None:
        self.user_ns = space
        self._say = say
        self._loop: Any = None
        self._cell = ""
        self._local: Any = space  # names of the function that a magic stands in
        self._future = 0  # what `from __future__` turned on, for all cells to come
        space["get_ipython"] = lambda: self
        for name in ("display", "help", "exit", "quit"):
            space[name] = lambda *_, **__: None
        self._in = [""]
        self._out: dict[int, Any] = {}
        self._last: list[Any] = [""] * 3
        space.update(In=self._in, Out=self._out, _="", __="", ___="")

    def run(self, tree: ast.Module, source: str, name: str) -> None:
        """Run a cell, or a piece of one; its last value becomes `_`."""
        self._cell = name
        linecache.cache[name] = (0, None, source.splitlines(True), name)
        body, last = tree.body, None
        if body and isinstance(body[-1], ast.Expr):
            last = ast.Expression(body[-1].value)
            body = body[:-1]
        for node in body:  # one by one, as IPython does
            self._evaluate(ast.Module([node], []), name, "exec")
        if last is not None:
            value = self._evaluate(last, name, "eval")
            if value is not None:
                self._remember(value)

    def read(self, source: str) -> None:
        """Know a cell by its number; `_i` is the one before."""
        self.user_ns.update(_i=self._in[-1], _ii=self._in[-2:][0])
        self._in.append(source)

    def _remember(self, value: Any) -> None:
        space, names = self.user_ns, ("_", "__", "___")
        if all(space.get(name, x) is x for name, x in zip(names, self._last)):
            self._last = [value, *self._last[:2]]
            space.update(zip(names, self._last))
        self._out[len(self._in) - 1] = value

    def _evaluate(self, tree: Any, name: str, mode: str) -> Any:
        code = compile(tree, name, mode, TOP_LEVEL_AWAIT | self._future, True)
        self._future |= code.co_flags & annotations.compiler_flag
        result = eval(code, self.user_ns, self._local)
        if not code.co_flags & inspect.CO_COROUTINE:
            return result
        self._loop = self._loop or event_loop()
        return self._loop.run_until_complete(result)

    def _run_inside(self, source: str) -> None:
        outer, local = self._cell, self._local
        frame = sys._getframe(2)  # where the magic is called
        inside = frame.f_globals is self.user_ns
        self._local = frame.f_locals if inside else self.user_ns
        try:
            self.run(parsed(source), source, f"{outer.rstrip('>')}, inside>")
        finally:
            self._cell, self._local = outer, local

    def run_line_magic(self, name: str, line: str = "", *_: Any, **__: Any) -> None:
        """Run what a magic of one line only measures; pass over the others."""
        code = line.strip()
        if name in ("timeit", "time", "prun"):  # options come first
            code = re.sub(r"^(?:-[a-zA-Z]+\s*\d*\s+)*", "", code)
        if name in RUNS_CODE:
            self._run_inside(code)
        elif name == "run" and os.path.isfile(code.strip("'\"")):
            with open(code.strip("'\""), encoding="utf-8") as file:
                self._run_inside(file.read())
        elif name not in SILENT:
            self._say(f"%{name} is passed over")

    def run_cell_magic(self, name: str, line: str, cell: str) -> None:
        """Run the cell that a magic only measures, or keep it as the file it asks for.

        The others are passed over.
        """
        if name in ("writefile", "file") and line.split():
            *options, place = line.split()
            with open(place.strip("'\""), "a" if "-a" in options else "w") as file:
                file.write(cell)
            if os.getcwd() not in sys.path:  # for the next cell to import it
                sys.path.append(os.getcwd())
            return
        if name not in RUNS_CODE:
            self._say(f"%%{name} is passed over")
            return
        self._run_inside(cell)
        words = line.split()
        if name == "capture" and words and words[0].isidentifier():
            self.user_ns[words[0]] = ""

    def run_cell(self, source: str, *_: Any, **__: Any) -> None:
        """Run code that was given as a text."""
        self._run_inside(source)

    def system(self, *_: Any, **__: Any) -> None:
        """Pass over a command of the system."""

    def getoutput(self, *_: Any, **__: Any) -> Lines:
        """Pass over a command whose output was wanted."""
        return Lines()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Silence()


def offer(shell: Shell) -> None:
    """Let `from IPython import get_ipython` find this shell, if IPython is there.

    A command of the system is passed over, however it is called.
    """

    def said(*command: Any, **named: Any) -> Any:
        texts = ("text", "universal_newlines", "encoding", "errors")
        empty = "" if any(map(named.get, texts)) else b""
        return subprocess.CompletedProcess(command, 0, empty, empty)

    vars(subprocess).update(
        run=said, call=lambda *_, **__: 0, check_call=lambda *_, **__: 0
    )
    vars(subprocess)["check_output"] = lambda *x, **named: said(*x, **named).stdout
    module = sys.modules.get("IPython")
    for place in (module, sys.modules.get("IPython.core.getipython")):
        if place is not None:
            vars(place)["get_ipython"] = lambda: shell
