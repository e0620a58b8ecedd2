"""What a chapter of this book looks like, as checks that say how to mend it.

Every check takes a notebook and returns sentences: what, where, why and what to do.
They spare a reviewer the dull part; the rest of the style is a matter of taste.
"""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import yaml
from nbformat import NotebookNode

from tools.notebooks.io import ROOT, parse, tags
from tools.notebooks.toc import entries

MOST_PAIRS = 2  # places with no prose between two code cells
MOST_LINES = 25  # non-blank lines of a cell: a taught class, the longest thing there is
MOST_IMPORTS = 10  # non-blank lines of the imports cell
WIDTH = 88
SHORTEST_ALT = 20  # characters, of a caption too
CAPTIONED = {path.name[:2] for path in (ROOT / "book").glob("[0-9]*.ipynb")}
OPENING = {
    "**The question": "the one question that the chapter answers",
    "**You will be able to": "three things the reader will be able to do, as bullets",
    "**Time": "how long it takes, on a CPU and on a GPU",
    "**You need": "what the reader must know before",
}
SECTIONS = ("Summary", "Exercises", "Further reading")


def code_cells(nb: NotebookNode) -> list[NotebookNode]:
    """The code cells but the first, which only installs the course on Colab."""
    return [
        cell for cell in nb.cells if cell.cell_type == "code" and not is_colab(cell)
    ]


def is_colab(cell: NotebookNode) -> bool:
    """True for the cell that `python -m tools.notebooks stamp` writes."""
    return "colab" in tags(cell)


def prose(nb: NotebookNode) -> str:
    """All Markdown of the notebook."""
    return "\n\n".join(c.source for c in nb.cells if c.cell_type == "markdown")


# --------------------------------------------------------------------------- rhythm


def crowded(nb: NotebookNode) -> list[str]:
    """Code cells that follow each other with no prose between.

    One whose code the page hides is the picture of the cell before it: it may follow.
    """
    cells = [cell for cell in nb.cells if not is_colab(cell)]
    pairs = [
        f"{first.id} and {second.id}"
        for first, second in pairwise(cells)
        if first.cell_type == second.cell_type == "code"
        and "hide-input" not in tags(second)
    ]
    if len(pairs) <= MOST_PAIRS:
        return []
    return [
        f"{len(pairs)} places have two code cells with no prose between, {MOST_PAIRS} "
        f"are fine: {'; '.join(pairs)}. A reader needs to know what the next cell is "
        "for: say what happened and what to expect, or join the cells."
    ]


def long_cells(nb: NotebookNode) -> list[str]:
    """Cells that hold more than one idea."""
    counts = [
        (cell.id, sum(bool(line.strip()) for line in cell.source.split("\n")))
        for cell in code_cells(nb)
    ]
    return [
        f"cell {cell} has {count} lines of code, {MOST_LINES} are the most a reader "
        "takes in at once; cut it where you would say a sentence."
        for cell, count in counts
        if count > MOST_LINES
    ]


def wide_lines(nb: NotebookNode) -> list[str]:
    """Lines of code that scroll sideways."""
    return [
        f"cell {cell.id}, line {n}: {len(line)} characters, but a page shows {WIDTH}; "
        "run `ruff format` or break the line."
        for cell in code_cells(nb)
        for n, line in enumerate(cell.source.split("\n"), start=1)
        if len(line) > WIDTH
    ]


def imports(nb: NotebookNode) -> list[str]:
    """The first code that a reader sees: imports and seed, and soon over."""
    seen = (cell for cell in code_cells(nb) if "remove-input" not in tags(cell))
    first = next(seen, None)
    if first is None:
        return ["there is no code; a chapter shows what it says."]
    nodes = parse(first.source).body
    if not any(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes):
        return [
            f"the first code cell, {first.id}, imports nothing; put imports and seed "
            "there, so that a reader knows what the chapter stands on."
        ]
    count = sum(bool(line.strip()) for line in first.source.split("\n"))
    if count <= MOST_IMPORTS:
        return []
    return [
        f"the imports cell {first.id} has {count} lines, {MOST_IMPORTS} are enough; "
        "import the rest where it is first used, or set things up in a cell of its own."
    ]


# ------------------------------------------------------------------------- skeleton


def skeleton(nb: NotebookNode) -> list[str]:
    """The parts that every chapter has, so that a reader finds their way in each."""
    text = prose(nb)
    titles = re.findall(r"(?m)^# .+$", text)
    found = []
    if len(titles) != 1:
        found.append(
            f"there are {len(titles)} titles (`# …`), expected one: the claim it makes."
        )
    opening = re.split(r"(?m)^## ", text, maxsplit=1)[0]
    for mark, what in OPENING.items():
        if mark not in opening:
            found.append(f"the opening has no `{mark}**`: write {what}.")
    found += able_to(opening) + time(opening)
    for section in SECTIONS:
        if not re.search(rf"(?m)^## {section}\s*$", text):
            found.append(
                f"there is no section `## {section}`; every chapter ends in it."
            )
    if "**Predict" not in text:
        found.append(
            "there is no **Predict**; ask for a guess before a result is shown: a "
            "reader who was wrong remembers."
        )
    return found


def paragraph(opening: str, mark: str) -> str:
    """What stands after a mark of the opening, up to the next one."""
    after = opening.partition(mark)[2].partition("**")[2]
    return re.split(r"(?m)^\*\*", after, maxsplit=1)[0]


def able_to(opening: str) -> list[str]:
    """Three things, no more and no fewer."""
    mark = "**You will be able to"
    bullets = re.findall(r"(?m)^\s*[-*] ", paragraph(opening, mark))
    if mark not in opening or len(bullets) == 3:
        return []
    return [
        f"`You will be able to` has {len(bullets)} bullets, expected three: what a "
        "reader keeps of a chapter is about that much."
    ]


def time(opening: str) -> list[str]:
    """Time to read, as computed, and to run with and without a GPU."""
    stated = paragraph(opening, "**Time")
    if "**Time" in opening and not re.match(r" about \d+ minutes to read;", stated):
        return [
            "`**Time**` does not begin with `about 50 minutes to read;`, whose number "
            "`python -m tools.notebooks stamp` keeps right."
        ]
    missing = [hardware for hardware in ("CPU", "GPU") if hardware not in stated]
    if "**Time" not in opening or not missing:
        return []
    return [f"`Time` says nothing of {' and '.join(missing)}; readers plan with it."]


# -------------------------------------------------------------------------- honesty


def assertions(nb: NotebookNode) -> list[str]:
    """A chapter asserts what it claims."""
    for cell in code_cells(nb):
        for node in ast.walk(parse(cell.source)):
            if isinstance(node, ast.Assert) or called(node).startswith("assert_"):
                return []
    return [
        "nothing is asserted; what the prose claims of a result should stop the "
        "notebook when it is no longer so: `assert …` or `torch.testing.assert_close`."
    ]


def tolerated_errors(nb: NotebookNode) -> list[str]:
    """A cell that may fail unseen."""
    mend = "an error on the page must be meant: catch it with try/except and print it."
    marked = ("raises-exception", "allow_errors", "skip-execution", "nbval-skip")
    found = [
        f"cell {cell.id} is tagged {tag}; {mend}"
        for cell in nb.cells
        for tag in tags(cell)
        if tag in (*marked, "nbval-ignore-output-and-errors")
    ]
    if "allow_errors" in str(nb.metadata):
        found.append(f"the notebook's metadata sets allow_errors; {mend}")
    return found


def twice_told(nb: NotebookNode) -> list[str]:
    """A cell that shows a training's line, which its bar has left already."""
    found = []
    for cell in code_cells(nb):
        body = parse(cell.source).body
        last = body[-1] if body else None
        if not isinstance(last, ast.Expr):
            continue
        history = '["history"]' in ast.unparse(last).replace("'", '"')
        trained = any(
            called(node).startswith("learn") for node in ast.walk(parse(cell.source))
        )
        if called(last.value) == "train" or (history and trained):
            found.append(
                f"cell {cell.id} shows its training's last line a second time: the bar "
                "leaves it; keep the history in a name."
            )
    return found


# -------------------------------------------------------------------------- figures


def called(node: ast.AST) -> str:
    """The last name of what is called: `show` of `plots.show(…)`; else nothing."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return getattr(function, "attr", "") or getattr(function, "id", "")


def draws(node: ast.AST) -> bool:
    """True for a call that makes a figure, with the course's `plots` or with pyplot."""
    name = called(node)
    owner = getattr(getattr(node, "func", None), "value", None)
    is_pyplot = bool(name) and getattr(owner, "id", "") == "plt"
    return is_pyplot or name.startswith("plot_") or name in ("subplots", "figure")


def has_text(node: ast.Call, name: str, at: int) -> bool:
    """True if the call to `show` is given a sentence, by name or as argument `at`."""
    by_name = [keyword.value for keyword in node.keywords if keyword.arg == name]
    for text in by_name or node.args[at : at + 1]:
        if not isinstance(text, ast.Constant):
            return True  # computed (an f-string): `show` itself refuses a short one
        return isinstance(text.value, str) and len(text.value.strip()) >= SHORTEST_ALT
    return False


def has_alt(node: ast.Call) -> bool:
    """True if the call to `show` says what is to be seen."""
    return has_text(node, "alt", 1)


def shows(source: str) -> list[ast.Call]:
    """The calls to `show` in a cell."""
    calls = [node for node in ast.walk(parse(source)) if isinstance(node, ast.Call)]
    return [node for node in calls if called(node) == "show"]


def captions(nb: NotebookNode) -> list[str]:
    """Figures that leave it to the reader what dots, bands and dotted lines mean."""
    return [
        f"cell {cell.id} shows a figure without a caption; give `show` one that says "
        "what is drawn, what dots, bands and dotted lines mean, and how many seeds."
        for cell in code_cells(nb)
        if "remove-cell" not in tags(cell)  # the answer of a live kernel
        if not all(has_text(node, "caption", 3) for node in shows(cell.source))
    ]


def figures(nb: NotebookNode) -> list[str]:
    """Figures that say nothing to those who can't see them."""
    found = []
    for cell in code_cells(nb):
        tree = parse(cell.source)
        shown = shows(cell.source)
        drawn = any(draws(node) for top in tree.body for node in run_by(top))
        if (drawn and not shown) or not all(map(has_alt, shown)):
            found.append(
                f"cell {cell.id} draws a figure without alt text; end the cell in "
                '`plots.show(ax, alt="…")` with a sentence of what is to be seen.'
            )
    return found + [f"{what} in the prose" for what in images(prose(nb))]


def run_by(top: ast.stmt) -> list[ast.AST]:
    """What a statement of a cell runs itself; a function runs only once called."""
    is_definition = isinstance(top, ast.FunctionDef | ast.ClassDef)
    return [] if is_definition else list(ast.walk(top))


def images(text: str) -> list[str]:
    """Images of a Markdown text that have no alt text."""
    bare = re.findall(r"!\[\s*\]\([^)]*\)|<img (?![^>]*alt=\"[^\"])[^>]*>", text)
    blocks = r"(?s)(`{3,}|:{3,})\{(figure|image)\}.*?\n\1"
    directives = [found[0] for found in re.finditer(blocks, text)]
    bare += [d.splitlines()[0] for d in directives if not re.search(r":alt:\s*\S", d)]
    return [
        f"an image without alt text, {image}; say what is to be seen" for image in bare
    ]


# ------------------------------------------------------------------ table of contents


def contents(root: Path) -> list[str]:
    """Where `_toc.yml` and the files on disk disagree."""
    names = entries(yaml.safe_load((root / "_toc.yml").read_text("utf-8")))
    names = [re.sub(r"\.(ipynb|md)$", "", name) for name in names]
    missing = [
        name
        for name in names
        if not any((root / f"{name}{ending}").exists() for ending in (".ipynb", ".md"))
    ]
    found = [f"_toc.yml lists {name}, which is not there." for name in missing]
    for folder in ("book", "exercises"):
        for path in sorted((root / folder).glob("*.ipynb")):
            name = f"{folder}/{path.stem}"
            if name not in names:
                found.append(
                    f"{name}.ipynb is not in _toc.yml, so nobody finds it; add it."
                )
    return found + [
        f"_toc.yml lists {n} twice." for n in sorted(set(names)) if names.count(n) > 1
    ]


CHAPTER = (
    crowded,
    long_cells,
    wide_lines,
    imports,
    skeleton,
    assertions,
    tolerated_errors,
    twice_told,
    figures,
)
EXERCISES = (wide_lines, tolerated_errors, figures)
