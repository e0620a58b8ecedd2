"""Draw the pictures that a chapter shows where nothing runs, as on GitHub.

    python -m tools.previews             draw those that are missing or stale
    python -m tools.previews PATH …      draw all of these chapters anew

Chromium draws them from the executed notebooks of `_build`, so build the book first.
`tools.notebooks.previews` says which figures these are, and when they are stale.
"""

from __future__ import annotations

import argparse
import base64
import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from nbformat import NotebookNode
from nbformat.v4 import new_output
from PIL import Image

from tools.notebooks.execute import right_result
from tools.notebooks.io import ROOT, dumps, name_of, read, rewrite, tags
from tools.notebooks.normalise import canonical
from tools.notebooks.previews import (
    KEY,
    LARGEST,
    TAG,
    chosen,
    code_cells,
    drawn_from,
    stale,
)
from tools.site.browser import LAUNCH, chromium

SCALE = 1.5  # pixels of a picture to one of the page
COLOURS = (64, 32, 16, 8)  # of a picture: the first number that makes it small enough
THUMBNAIL = (48, 32)  # the size at which two pictures are compared
FIGURE = re.compile(r'<figure class="course-figure.*?</figure>', re.S)


def chapters(root: Path = ROOT) -> list[Path]:
    """The notebooks that keep pictures."""
    return sorted((root / "book").glob("[0-9][0-9]_*.ipynb"))


def executed(path: Path, root: Path = ROOT) -> NotebookNode:
    """The notebook with the outputs of its present code."""
    result = right_result(path.resolve(), root, root / "_build" / "executed")
    if result is None:
        raise ValueError(
            f"{name_of(path)} has no result of its present code; run `make book` first."
        )
    return result


def figures(cell: NotebookNode) -> list[tuple[str, str]]:
    """The figures that an executed cell shows, each with the words for it."""
    shown = (output.get("data", {}) for output in cell.outputs)
    return [
        (found[0], data.get("text/plain", "").partition("\n")[0])
        for data in shown
        for found in FIGURE.finditer(data.get("text/html", ""))
    ]


# ----------------------------------------------------------------------------- drawing


@contextmanager
def drawing_page() -> Iterator[Any]:
    """A page of Chromium to draw on, light whatever the system prefers."""
    from playwright.sync_api import sync_playwright

    if not chromium():
        raise ValueError(
            "there is no Chromium to draw the pictures with; install it "
            "(apt-get install chromium) and run the command again."
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=LAUNCH)
        yield browser.new_page(
            viewport={"width": 800, "height": 900},
            device_scale_factor=SCALE,
            color_scheme="light",
        )
        browser.close()


def picture(page: Any, figure: str) -> bytes:
    """A figure as a small PNG, without its caption, in as many colours as fit."""
    page.set_content(f"<style>figcaption{{display:none}}</style>{figure}")
    whole = Image.open(io.BytesIO(page.locator("figure").screenshot())).convert("RGB")
    for colours in COLOURS:
        file = io.BytesIO()
        few = whole.quantize(colours, dither=Image.Dither.NONE)
        few.save(file, format="png", optimize=True)
        if file.tell() <= LARGEST:
            return file.getvalue()
    raise ValueError(
        f"a figure has {file.tell():,} bytes even in {COLOURS[-1]} colours, at most "
        f"{LARGEST:,} are stored; give the tag {TAG} to another cell."
    )


def pictures(
    cell: NotebookNode, ran: NotebookNode, digest: str, page: Any
) -> list[Any]:
    """The outputs that a cell keeps, drawn from those it has when it has run."""
    made = []
    for html, words in figures(ran):
        drawn = picture(page, html)
        size = {"width": round(int.from_bytes(drawn[16:20], "big") / SCALE)}
        coded = base64.b64encode(drawn).decode()
        data = {"image/png": coded, "text/plain": words}
        metadata = {KEY: digest, "image/png": size}
        made.append(new_output("display_data", data=data, metadata=metadata))
    if not made:
        raise ValueError(
            f"cell {cell.id} is tagged {TAG} and shows no figure; take the tag away."
        )
    return made


def with_pictures(
    nb: NotebookNode, result: NotebookNode, page: Any, anew: bool = False
) -> NotebookNode:
    """The notebook with the pictures that it lacks, or with all of them drawn anew."""
    nb = chosen(nb)
    due = [cell.id for cell in (code_cells(nb) if anew else stale(nb))]
    for cell, ran in zip(code_cells(nb), code_cells(result), strict=True):
        if TAG in tags(cell) and cell.id in due:
            cell.outputs = pictures(cell, ran, drawn_from(nb, cell.id), page)
    return nb


def difference(one: bytes, other: bytes) -> float:
    """How much two pictures differ: 0 if not at all, 1 if one is black, one white.

    Both are blurred to a thumbnail, in which other fonts and the last digit of a
    result are hardly seen; another figure, another shape or other colours are.
    """
    images = [Image.open(io.BytesIO(png)).convert("RGB") for png in (one, other)]
    shapes = [image.width / image.height for image in images]
    small = [np.asarray(image.resize(THUMBNAIL), float) / 255 for image in images]
    return float(np.abs(small[0] - small[1]).mean()) + abs(shapes[0] - shapes[1])


# ---------------------------------------------------------------------------- commands


def draw(paths: list[Path], root: Path = ROOT, anew: bool = False) -> None:
    """Bring the pictures of these chapters up to date."""
    waiting = []
    for path in paths:
        nb = chosen(read(path))
        if anew or stale(nb):
            waiting.append((path, nb, executed(path, root)))
    if not waiting:
        return
    with drawing_page() as page:
        for path, nb, result in waiting:
            rewrite(path, dumps(canonical(with_pictures(nb, result, page, anew))))


def main(arguments: list[str] | None = None) -> int:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(prog="python -m tools.previews")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    paths = parser.parse_args(arguments).paths
    try:
        draw(paths or chapters(), anew=bool(paths))
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
