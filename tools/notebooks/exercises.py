"""Make the exercise notebooks from the solution notebooks, which are the source.

    python -m tools.notebooks.exercises generate   write exercises/NN_name.ipynb
    python -m tools.notebooks.exercises check      exit 1 when one is stale

In a code cell of `solutions/NN_name.ipynb` the answer stands between the lines
`### BEGIN SOLUTION` and `### END SOLUTION`, both at the indentation of the answer. In a
function the exercise raises NotImplementedError there (only once called); elsewhere
each name that the answer assigns becomes `name = ...`: a blank exercise still runs.
A cell tagged `solution` or `solutions-only` is left out of the exercise. Whatever is
doubtful is an error: better no exercise than one that gives the answer away.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import re
import sys
from pathlib import Path

from nbformat import NotebookNode

from tools.notebooks.io import ROOT, dumps, name_of, parse, read, rewrite, tags
from tools.notebooks.normalise import CHECKED, canonical
from tools.notebooks.repo_links import stamped

MARKER = re.compile(r"([ \t]*)### (BEGIN|END) SOLUTION[ \t]*")
STUB = ("# YOUR CODE HERE", 'raise NotImplementedError("write your answer here")')
LEFT_OUT = ("solution", "solutions-only")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Lines of an answer that give nothing away, wherever they stand.
SHORTEST_SECRET = 10
TRIVIAL = re.compile(r"return [\w, ]+|super\(\)\.__init__\(\)|(import|from) .*|\W*")


class SolutionError(ValueError):
    """A solution notebook from which no exercise can safely be made."""


# ------------------------------------------------------------------------- markers


def looks_like_a_marker(line: str) -> bool:
    """True for a comment that someone may have meant as a marker.

    That is one with two # or more, or a short one with a word much like "solution".
    """
    for marks, comment in re.findall(r"(#+)([^#]*)", line):
        words = re.findall(r"[a-z]+", comment.lower())
        near = any(difflib.get_close_matches(w, ["solution"], 1, 0.7) for w in words)
        if len(marks) > 1 or (near and len(words) <= 3):
            return True
    return False


def regions(lines: list[str], where: str) -> list[tuple[int, int]]:
    """The 1-based lines (begin, end) of each pair of markers."""
    found: list[tuple[int, int]] = []
    begin, begin_indent = 0, ""
    for n, line in enumerate(lines, start=1):
        marker = MARKER.fullmatch(line)
        if marker is None:
            if looks_like_a_marker(line):
                raise SolutionError(
                    f"{where}, line {n}: {line.strip()!r} looks like a marker but is "
                    "none; write `### BEGIN SOLUTION` or `### END SOLUTION` alone on "
                    "its line, and other comments with one #."
                )
            continue
        indent, kind = marker.groups()
        if kind == "BEGIN" and begin:
            raise SolutionError(
                f"{where}, line {n}: a second BEGIN SOLUTION before the END of the one "
                f"in line {begin}; end that one first."
            )
        if kind == "BEGIN":
            begin, begin_indent = n, indent
        elif not begin:
            raise SolutionError(
                f"{where}, line {n}: END SOLUTION with no BEGIN SOLUTION before it."
            )
        elif indent != begin_indent:
            raise SolutionError(
                f"{where}, line {n}: END SOLUTION is not indented as its BEGIN in line "
                f"{begin}; put both at the indentation of the answer."
            )
        else:
            found.append((begin, n))
            begin = 0
    if begin:
        raise SolutionError(
            f"{where}, line {begin}: BEGIN SOLUTION with no END SOLUTION after it."
        )
    return found


# ---------------------------------------------------------------------------- cuts


def stub(tree: ast.Module, begin: int, end: int, indent: str, where: str) -> list[str]:
    """The lines that stand in the exercise in place of the answer."""
    where = f"{where}, line {begin}"
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    answer = [node for node in statements if begin < node.lineno < end]
    if not answer:
        raise SolutionError(f"{where}: there is no code in this solution.")
    for node in statements:
        last = node.end_lineno or node.lineno
        is_compound = hasattr(node, "body") or isinstance(node, ast.Match)
        holds_begin = node.lineno < begin < last and not is_compound
        if holds_begin or (node in answer and last > end):
            raise SolutionError(
                f"{where}: a marker stands inside the statement of line {node.lineno}; "
                "put whole statements between the markers."
            )
    first = min(answer, key=lambda node: node.lineno)
    if first.col_offset != len(indent) or any(
        node.col_offset < len(indent) for node in answer
    ):
        raise SolutionError(
            f"{where}: the markers are not indented as the answer between them; put "
            "both at the indentation of the answer."
        )
    functions = [node for node in statements if isinstance(node, FUNCTIONS)]
    if any(
        node.body[0].lineno <= first.lineno <= (node.end_lineno or 0)
        for node in functions
    ):
        return [indent + line for line in STUB]
    if any(isinstance(node, (*FUNCTIONS, ast.ClassDef)) for node in answer):
        raise SolutionError(
            f"{where}: a whole definition stands between the markers; put them inside "
            "its body, so that the learner keeps the signature."
        )
    names = bound_names(answer)
    if not names:
        raise SolutionError(
            f"{where}: this solution assigns no name, so the learner would have "
            "nothing to fill in; assign the answer to a name."
        )
    return [f"{indent}{name} = ...  # your answer" for name in names]


def bound_names(statements: list[ast.stmt]) -> list[str]:
    """The names that these statements assign, in the order in which they stand."""
    targets: list[ast.expr] = []
    for statement in statements:
        if isinstance(statement, ast.Assign):
            targets += statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets.append(statement.target)
    names = [
        node
        for target in targets
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    names.sort(key=lambda node: (node.lineno, node.col_offset))
    return list(dict.fromkeys(node.id for node in names))


def cut(source: str, where: str = "cell") -> tuple[str, list[str]]:
    """A code cell without its answers, and the lines of the answers."""
    lines = source.split("\n")
    found = regions(lines, where)
    tree = parsed(source, where)
    kept: list[str] = []
    secrets: list[str] = []
    after = 0
    for begin, end in found:
        marker = lines[begin - 1]
        indent = marker[: len(marker) - len(marker.lstrip())]
        kept += lines[after : begin - 1] + stub(tree, begin, end, indent, where)
        secrets += lines[begin : end - 1]
        after = end
    exercise = "\n".join(kept + lines[after:])
    parsed(exercise, f"{where} (after cutting)")
    return exercise, secrets


def parsed(source: str, where: str) -> ast.Module:
    """The cell's syntax tree; a cell that is not Python is refused by name."""
    try:
        return parse(source)
    except SyntaxError as error:
        raise SolutionError(f"{where}, line {error.lineno}: {error.msg}.") from error


# ---------------------------------------------------------------------- notebooks


def exercise_of(solution: NotebookNode, name: str = "solutions") -> NotebookNode:
    """The exercise notebook that belongs to a solution notebook."""
    cells: list[NotebookNode] = []
    secrets: list[str] = []
    n_answers = 0
    for n, cell in enumerate(canonical(solution).cells):
        where = f"{name}: cell {n} ({cell.id})"
        if cell.cell_type == "code":
            source, answers = cut(cell.source, where)
            n_answers += bool(answers)
        else:
            source, answers = cell.source, []
            if re.search(r"#\s*(BEGIN|END) SOLUTION", source, re.IGNORECASE):
                raise SolutionError(
                    f"{where}: a marker in a {cell.cell_type} cell; tag the whole cell "
                    "`solution` to leave it out of the exercise."
                )
        secrets += answers
        if "solution" in tags(cell):
            secrets += cell.source.splitlines()
        if any(tag in LEFT_OUT for tag in tags(cell)):
            continue
        kept = [tag for tag in tags(cell) if tag != CHECKED]
        metadata = NotebookNode(cell.metadata, tags=kept)
        cells.append(NotebookNode(cell, source=source, metadata=metadata))
    if not n_answers:
        raise SolutionError(
            f"{name}: no `### BEGIN SOLUTION` anywhere, so there is nothing to answer."
        )
    exercise = canonical(NotebookNode(solution, cells=cells))
    refuse_leaks(exercise, secrets, name)
    return exercise


def refuse_leaks(exercise: NotebookNode, secrets: list[str], name: str) -> None:
    """Stop if a line of an answer can be read anywhere in the exercise."""
    for secret in (line.strip() for line in secrets):
        if len(secret) < SHORTEST_SECRET or TRIVIAL.fullmatch(secret):
            continue
        for n, cell in enumerate(exercise.cells):
            if secret in cell.source:
                raise SolutionError(
                    f"{name}: the solution's line {secret!r} also stands in cell {n} "
                    f"({cell.id}) of the exercise, where it gives the answer away; "
                    "write one of them differently, or leave that cell out."
                )


def generated(root: Path = ROOT) -> dict[Path, str]:
    """The text of every exercise notebook, made anew."""
    made = {}
    for path in sorted((root / "solutions").glob("*.ipynb")):
        exercise = exercise_of(read(path), name_of(path))
        exercise = canonical(stamped(exercise, "exercises", path.name, root))
        made[root / "exercises" / path.name] = dumps(exercise)
    return made


# ------------------------------------------------------------------------ commands


def generate(root: Path = ROOT) -> None:
    """Write the exercises, all or (if one solution is in doubt) none."""
    for path, text in generated(root).items():
        rewrite(path, text)


def check(root: Path = ROOT) -> list[str]:
    """The exercises that are not what `generate` would write."""
    wanted = generated(root)
    found = []
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            state = "is stale" if path.exists() else "is missing"
            found.append(
                f"{name_of(path)} {state}; change solutions/{path.name} (never the "
                "exercise), then run `python -m tools.notebooks.exercises generate`"
            )
    for path in sorted((root / "exercises").glob("*.ipynb")):
        if path not in wanted:
            found.append(
                f"{name_of(path)} has no solutions/{path.name} to be made from; move "
                "it there with its answers between the markers, or delete it"
            )
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.notebooks.exercises")
    parser.add_argument("command", choices=["generate", "check"])
    options = parser.parse_args(arguments)
    try:
        if options.command == "generate":
            generate()
            return 0
        found = check()
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(found) or "every exercise is what its solution makes it")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
