"""How long a chapter takes to read: computed from its words, never guessed.

Prose is read at 200 words a minute, code and mathematics at half of that. A word is
what stands between two spaces. The chapter's **Time** line gets the result, rounded
to five minutes, from `python -m tools.notebooks stamp`.
"""

from __future__ import annotations

import re

from nbformat import NotebookNode

from tools.notebooks.io import tags

PROSE, CODE = 200, 100  # words a minute
MATHS = re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.DOTALL)
TIME = re.compile(r"(?m)^\*\*Time\*\* about \d+ minutes to read\b")


def minutes(nb: NotebookNode) -> float:
    """The minutes that the notebook takes to read."""
    prose = slow = 0
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            formulas = MATHS.findall(cell.source)
            slow += sum(len(formula.strip("$").split()) for formula in formulas)
            prose += len(MATHS.sub(" ", cell.source).split())
        elif cell.cell_type == "code" and "remove-cell" not in tags(cell):
            slow += len(cell.source.split())
    return prose / PROSE + slow / CODE


def timed(nb: NotebookNode) -> NotebookNode:
    """The notebook with its reading time in the **Time** line, where it has one."""
    rounded = 5 * round(minutes(nb) / 5)
    line = f"**Time** about {rounded} minutes to read"
    cells = [
        NotebookNode(cell, source=TIME.sub(line, cell.source))
        if cell.cell_type == "markdown"
        else cell
        for cell in nb.cells
    ]
    return NotebookNode(nb, cells=cells)
