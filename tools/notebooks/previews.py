"""Pictures for those who look at a notebook where nothing runs, as on GitHub.

GitHub shows neither our SVG nor a script, so a chapter keeps a few of its figures as
small PNGs, in the outputs of cells tagged `preview`: its first diagram, and its first
and its last plot, unless its author has tagged others. `python -m tools.previews` draws
them from the executed notebook.

A picture knows what it was drawn from: beside it stands a digest of the chapter's code
up to its cell, and a notebook whose code says something else is stale. Code and not
pixels or numbers, for these differ a little from one machine to the next, and a test
that now and then fails for that is soon believed by nobody. What the digest can't see,
a change in the package or its data, is left to a second look: when the book has been
built, each picture must resemble the figure drawn now (`tools.previews.difference`).
"""

from __future__ import annotations

import ast
import base64
import hashlib
import re
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_output

from tools.notebooks.io import CHECKED, parse, tags

TAG = "preview"
KEY = "drawn-from"  # in the metadata of an output: the digest
LARGEST = 40_000  # bytes of a picture
RUN = "python -m tools.previews"


# -------------------------------------------------------------------------- which cells


def code_cells(nb: NotebookNode) -> list[NotebookNode]:
    """The cells that a build runs."""
    return [
        cell
        for cell in nb.cells
        if cell.cell_type == "code" and "remove-cell" not in tags(cell)
    ]


def kind(cell: NotebookNode) -> str:
    """What a cell shows by its last call of `show`: a diagram, a plot or nothing."""
    calls = (
        node for node in ast.walk(parse(cell.source)) if isinstance(node, ast.Call)
    )
    owners = [
        getattr(call.func.value, "id", "")
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "show"
    ]
    known = {"diagrams": "diagram", "plots": "plot"}
    return next((known[owner] for owner in reversed(owners) if owner in known), "")


def chosen(nb: NotebookNode) -> NotebookNode:
    """The notebook with the tag where nobody has put it for a diagram, or for a plot.

    A cell whose text is compared keeps nothing else.
    """
    cells = [cell for cell in code_cells(nb) if CHECKED not in tags(cell)]
    wanted: list[str] = []
    for what, ends in (("diagram", slice(1)), ("plot", slice(None))):
        mine = [cell for cell in cells if kind(cell) == what]
        if any(TAG in tags(cell) for cell in mine):
            continue
        mine = mine[ends]
        wanted += [cell.id for cell in (*mine[:1], *mine[-1:])]

    def tagged(cell: NotebookNode) -> NotebookNode:
        metadata = NotebookNode(cell.metadata, tags=[*tags(cell), TAG])
        return NotebookNode(cell, metadata=metadata)

    cells = [tagged(cell) if cell.id in wanted else cell for cell in nb.cells]
    return NotebookNode(nb, cells=cells)


def drawn_from(nb: NotebookNode, cell_id: str) -> str:
    """A digest of the code up to a cell; comments and layout don't count."""
    codes = []
    for cell in code_cells(nb):
        codes.append(ast.dump(parse(cell.source)))
        if cell.id == cell_id:
            break
    return hashlib.sha256("\n".join(codes).encode()).hexdigest()[:16]


# ----------------------------------------------------------------------- what is stored


def stored(cell: NotebookNode) -> list[NotebookNode]:
    """The pictures among a cell's outputs: all that it keeps, and as it keeps them."""
    return [
        new_output(
            "display_data",
            data={key: output.data[key] for key in ("image/png", "text/plain")},
            metadata=output.metadata,
        )
        for output in cell.outputs
        if KEY in output.get("metadata", {}) and "image/png" in output.get("data", {})
    ]


def png(output: NotebookNode) -> bytes:
    """The bytes of a picture."""
    return base64.b64decode(output.data["image/png"])


def thumbnail(nb: NotebookNode) -> NotebookNode | None:
    """The first picture of a chapter, which stands for it in the README."""
    return next((o for cell in code_cells(nb) for o in stored(cell)), None)


def stale(nb: NotebookNode) -> list[NotebookNode]:
    """The cells whose pictures are missing, or were drawn from other code."""
    return [
        cell
        for cell in code_cells(nb)
        if TAG in tags(cell)
        and {output.metadata[KEY] for output in stored(cell)}
        != {drawn_from(nb, cell.id)}
    ]


def preview_findings(nb: NotebookNode, path: Path) -> list[str]:
    """What is not right about the pictures of a chapter; others need none."""
    is_chapter = re.match(r"\d\d_", path.name) and path.parent.name == "book"
    found = []
    if is_chapter and chosen(nb) != nb:
        found.append(f"its main figures are not tagged {TAG}; run `{RUN}`")
    for cell in stale(nb):
        found.append(
            f"cell {cell.id} is tagged {TAG} and its picture was drawn from other "
            f"code, or there is none; run `make book`, then `{RUN}`"
        )
    for cell in code_cells(nb):
        large = [len(png(output)) for output in stored(cell)]
        if large and max(large) > LARGEST:
            found.append(
                f"the picture of cell {cell.id} has {max(large):,} bytes, at most "
                f"{LARGEST:,} are stored; run `{RUN}`"
            )
    return found
