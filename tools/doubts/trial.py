"""Read the doubts, make their changes in a copy, and see which assertion fails."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tools.notebooks.execute import kernel_environment
from tools.notebooks.io import ROOT, parse, read, tags

LIMIT = 1800  # seconds after which a doubt is taken to hang
REFUTED, SURVIVED, ELSEWHERE = "refuted", "survived", "failed elsewhere"


class DoubtError(Exception):
    """A doubt that can't be tried: its text does not fit the chapter."""


@dataclass(frozen=True)
class Doubt:
    """A change under which a claim is false, and the assertion that has to notice."""

    chapter: str
    name: str
    claim: str
    old: str
    new: str
    fails_at: str
    cheap: bool = False
    file: str = ""
    experiment: str = ""

    def __str__(self) -> str:
        return f"{self.chapter[:2]}  {self.name}"

    def notebook(self, root: Path) -> Path:
        return root / "book" / f"{self.chapter}.ipynb"


@dataclass(frozen=True)
class Cell:
    """Code that runs as one, and what it is called in messages."""

    id: str
    source: str


@dataclass(frozen=True)
class Assertion:
    """Where an assertion stands; `inside` a function it fails when that is called."""

    cell: str
    first: int
    last: int
    text: str
    inside: bool


# --------------------------------------------------------------------------- reading


def load(path: Path) -> list[Doubt]:
    """The doubts of one chapter."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))["doubt"]
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise DoubtError(
            f"{path.name} is not a list of [[doubt]] tables ({error}); see "
            "tools/doubts/__init__.py"
        ) from error
    known = {field.name for field in fields(Doubt)} - {"chapter"}
    needed = known - {"cheap", "file", "experiment"}
    doubts: list[Doubt] = []
    for number, table in enumerate(tables, 1):
        if wrong := (needed - table.keys()) | (table.keys() - known):
            raise DoubtError(
                f"{path.name}, doubt {number}: {', '.join(sorted(wrong))} is missing "
                f"or unknown; the fields are {', '.join(sorted(known))}."
            )
        doubts.append(Doubt(path.stem, **table))
    names = [doubt.name for doubt in doubts]
    if twice := {name for name in names if names.count(name) > 1}:
        raise DoubtError(f"{path.name}: two doubts are called {', '.join(twice)}.")
    return doubts


def all_doubts(root: Path = ROOT, chapters: list[str] | None = None) -> list[Doubt]:
    """The doubts of these chapters, or of all, in reading order."""
    paths = sorted((root / "book" / "doubts").glob("*.toml"))
    chosen = [p for p in paths if not chapters or p.stem.startswith(tuple(chapters))]
    if chapters and not chosen:
        raise DoubtError(
            f"no doubts for chapter {', '.join(chapters)}; there are some for "
            f"{', '.join(p.stem[:2] for p in paths) or 'none'}."
        )
    return [doubt for path in chosen for doubt in load(path)]


def cells_of(doubt: Doubt, root: Path) -> list[Cell]:
    """What runs: the chapter's code cells, or the experiment and its smoke run."""
    if doubt.experiment:
        script = root / "book" / "experiments" / f"{doubt.experiment}.py"
        if not script.is_file():
            raise DoubtError(f"{doubt}: there is no {script.relative_to(root)}.")
        smoke = "check([point | run(point) for point in points(SMOKE)])"
        source = script.read_text(encoding="utf-8").lstrip()  # as IPython does
        return [Cell(script.name, source), Cell("smoke run", smoke)]
    notebook = doubt.notebook(root)
    if not notebook.is_file():
        raise DoubtError(
            f"book/doubts/{doubt.chapter}.toml: there is no book/{notebook.name}."
        )
    return [
        Cell(cell.id, cell.source)
        for cell in read(notebook).cells
        if cell.cell_type == "code" and "colab" not in tags(cell)
    ]


# -------------------------------------------------------------------------- changing


def replaced(text: str, doubt: Doubt, where: str) -> str:
    """The text with `old` changed to `new`; `old` has to be there exactly once."""
    count = text.count(doubt.old)
    if count != 1:
        raise DoubtError(
            f"{doubt}: {doubt.old!r} occurs {count} times in {where}, expected exactly "
            "once; quote more of the line, or the line as it stands now."
        )
    return text.replace(doubt.old, doubt.new)


def changed_cells(doubt: Doubt, root: Path) -> list[Cell]:
    """The cells with the change made, unless it is made in a file of the package."""
    cells = cells_of(doubt, root)
    if doubt.file:
        replaced((root / doubt.file).read_text(encoding="utf-8"), doubt, doubt.file)
        return cells
    where = doubt.experiment or doubt.chapter
    mark = "\n\0\n"  # no `old` matches across two cells
    whole = replaced(mark.join(cell.source for cell in cells), doubt, where)
    return [Cell(c.id, text) for c, text in zip(cells, whole.split(mark))]


def is_assertion(node: ast.AST) -> bool:
    """`assert …`, or a call such as `torch.testing.assert_close(…)`."""
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    function = node.value.func
    name = getattr(function, "attr", "") or getattr(function, "id", "")
    return name.startswith("assert_")


def assertions(cell: Cell) -> Iterator[Assertion]:
    """Every assertion of a cell."""
    tree = parse(cell.source)
    lines = cell.source.splitlines()
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and is_assertion(node):
            last = node.end_lineno or node.lineno
            text = "\n".join(lines[node.lineno - 1 : last])
            yield Assertion(cell.id, node.lineno, last, text, id(node) in inside)


def named_assertion(doubt: Doubt, cells: list[Cell]) -> Assertion:
    """The one assertion that has the text of `fails_at` in it."""
    wanted = "".join(doubt.fails_at.split())
    found = [
        assertion
        for cell in cells
        for assertion in assertions(cell)
        if wanted in "".join(assertion.text.split())
    ]
    if len(found) != 1:
        raise DoubtError(
            f"{doubt}: {doubt.fails_at!r} is a piece of {len(found)} assertions, "
            "expected exactly one; quote more of it, or quote it as it stands now."
        )
    return found[0]


def needs_mending(doubt: Doubt, root: Path = ROOT) -> str:
    """Why the doubt does not fit the chapter as it stands; empty if it does."""
    try:
        changed_cells(doubt, root)
        named_assertion(doubt, cells_of(doubt, root))
    except (DoubtError, OSError) as error:
        return str(error)
    return ""


# ---------------------------------------------------------------------------- trying


def report_of(cells: list[Cell], doubt: Doubt, root: Path) -> dict[str, Any]:
    """Run the cells against the package, changed if the doubt says so."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        copy = Path(folder)
        package = root
        if doubt.file:
            package = copy
            shutil.copytree(root / "course_utils", copy / "course_utils")
            target = copy / doubt.file
            text = target.read_text(encoding="utf-8")
            target.write_text(replaced(text, doubt, doubt.file), encoding="utf-8")
        given, report, empty = copy / "cells", copy / "report", copy / "empty"
        given.write_text(json.dumps([asdict(cell) for cell in cells]), encoding="utf-8")
        empty.mkdir()
        path = [str(ROOT / "tools" / "kernel"), str(package)]
        environment = kernel_environment(root) | {
            "PYTHONPATH": os.pathsep.join(path),
            "MPLBACKEND": "agg",
            "COURSE_SEED": "",
        }
        command = [sys.executable, "-m", "run_cells", str(given), str(report)]
        try:
            ended = subprocess.run(
                command,
                cwd=empty,
                env=environment,
                capture_output=True,
                text=True,
                timeout=LIMIT,
            )
        except subprocess.TimeoutExpired:
            return {
                "cell": "",
                "line": 0,
                "type": "Hang",
                "message": f"after {LIMIT} s",
            }
        if not report.is_file():
            last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
            return {"cell": "", "line": 0, "type": "Crash", "message": last}
        return dict(json.loads(report.read_text(encoding="utf-8")))


def attempt(doubt: Doubt, root: Path = ROOT) -> dict[str, Any]:
    """Make the change and say whether the named assertion failed."""
    cells = changed_cells(doubt, root)
    named = named_assertion(doubt, cells)
    if not named.inside:  # what comes after it is not needed
        ids = [cell.id for cell in cells]
        cells = cells[: ids.index(named.cell) + 1]
    begun = time.perf_counter()
    report = report_of(cells, doubt, root)
    seconds = round(time.perf_counter() - begun, 1)
    if not report:
        return {"verdict": SURVIVED, "where": "nowhere", "seconds": seconds}
    there = report["cell"] == named.cell and named.first <= report["line"] <= named.last
    if there and report["type"] == "AssertionError":
        where = " ".join(named.text.split())
        return {"verdict": REFUTED, "where": where, "seconds": seconds}
    message = (report["message"].splitlines() or [""])[0]
    where = f"{report['cell']}, line {report['line']}: {report['type']}: {message}"
    return {"verdict": ELSEWHERE, "where": where, "seconds": seconds}
