"""A small site, built as the course's own: with its configuration, theme and tools."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from course_utils.display.figures import figure_html
from course_utils.display.interactive import button, widget
from course_utils.display.widgets.live_transformer import weights_element
from tools.build import JUPYTER_BOOK
from tools.notebooks.io import ROOT

DRAWING = '<svg role="img" aria-label="A drawing." viewBox="0 0 9 9"><path/></svg>'
PRINTED = {
    "does an output see later tokens? True\nlosses 0.1 0.2": True,
    "GRU        0.12": False,
    "[[1 0]\n [1 1]]": False,
    "written:\n   les chats": False,
}
QUERIES = r"""# Queries

By theorem 07.1, and
theorem 07.1 again: chapter 06, chapter
07, chapters 07 to 10, chapter 10, chapter 99, chapter 6 and `chapter 10`.

## After chapter 10

First $x$ then ($y$), the $k$-th and last $z$. It is so.
$\blacksquare$
"""
TABLES = r"""
| maths | code | shape & size | why |
|---|---|---|---|
| $Q$ | `qqqqqqqqqqqqqqqqqqqqqqqqqqqqqq` | (3,) | |

| | queries | keys | mask |
|---|---|---|---|
| encoder | the source | the source, too | only what is padding |

| line | formula | because |
|---|---|---|
| 1 | $a + b + c + d + e + f + g + h + i + j + k + l + m$ | so |

| a | b | c |
|---|---|---|
| 1 | $x$ | 3 |

| a | b | c | d | e | f | g |
|---|---|---|---|---|---|---|
| 9999999 | 9999999 | 9999999 | 9999999 | 9999999 | 9999999 | 9999999 |
"""
SET = """# A set

**Theorem 07.1 (a set).** It is so {cite:p}`one`. By theorem 07.1.

## Exercises

```{bibliography}
```
"""
EXERCISE = """# Exercises: queries

Questions on the chapter
*Queries*.

**Time** an hour.

Use chapter 06 and theorem 07.1.
"""


def card_faults(card: Path) -> list[str]:
    """What is wrong with the picture that a link shows: ink where no words belong."""
    picture = Image.open(card).convert("L")
    assert picture.size == (1146, 600)
    boxes = {
        "above": (0, 0, 910, 36),
        "left": (0, 36, 52, 570),
        "right": (1090, 36, 1146, 570),
        "beside the title": (900, 215, 1146, 400),
        "above the description": (0, 390, 1146, 415),
        "below the address": (0, 535, 1146, 570),
    }
    faults = [
        f"{card.name}: ink {name}"
        for name, box in boxes.items()
        if picture.crop(box).getextrema()[0] < 255
    ]
    title = picture.crop((52, 140, 900, 215))
    return faults + [f"{card.name}: no title"] * (title.getextrema()[0] > 128)


def shown(html: str) -> nbformat.NotebookNode:
    """The output of a cell that displays HTML."""
    return new_output("display_data", {"text/html": html, "text/plain": ""})


def chapter() -> nbformat.NotebookNode:
    """A notebook with one of everything that a cell can show."""
    script = "ui.say(`pressed`)"
    pressed = widget(
        "press", "Press", [button("go", "Go")], script=script, alt=30 * "x"
    )
    outputs = [
        *(new_output("stream", name="stdout", text=text) for text in PRINTED),
        shown("<figure><figcaption>Chapter 07: 0 of 4 points</figcaption></figure>"),
        shown(figure_html(DRAWING)),
        shown(figure_html(DRAWING, "Weights by $d_k$, as < in chapter 10.", "weights")),
        shown(figure_html(DRAWING, kind="course-diagram")),
        shown(weights_element("live", {"a": 1}) + pressed.html),
    ]
    code = [new_code_cell("x = f(1)", outputs=[output]) for output in outputs]
    parts = [new_markdown_cell(QUERIES), new_markdown_cell(TABLES), *code]
    last = new_markdown_cell("## Exercises\n\nMany.")
    python = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
    return new_notebook(cells=[*parts, last], metadata=python)


def build(folder: Path, pages: dict[str, str], **settings: object) -> str:
    """Build a site of these pages in `folder`; return what was complained about."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    config["sphinx"]["config"] |= {"renamed_anchors": {}, "redirects": {}, **settings}
    root, *others = pages
    toc = {"format": "jb-book", "root": root, "chapters": [{"file": p} for p in others]}
    for name in ("_static", "_templates"):
        shutil.copytree(ROOT / "book" / name, folder / "book" / name)
    (folder / "book" / "references.bib").write_text(
        "@article{one, author={A. Writer}, title={On sets}, journal={J}, year={2017}}"
    )
    for name, content in {"_config": config, "_toc": toc}.items():
        (folder / f"{name}.yml").write_text(yaml.safe_dump(content, sort_keys=False))
    for name, text in pages.items():
        end = ".ipynb" if text.startswith("{") else ".md"
        (folder / f"{name}{end}").parent.mkdir(exist_ok=True)
        (folder / f"{name}{end}").write_text(text, "utf-8")
    command = [sys.executable, "-c", JUPYTER_BOOK, "build", str(folder), "-q"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, env=environment, cwd=folder, text=True, capture_output=True
    )
    return done.stderr


PAGES = {
    "book/intro": "# Welcome\n\nChapters 06 and 07; figure 06.2.\n",
    "book/06_queries": nbformat.writes(chapter()),
    "book/07_set": SET,
    "book/10_heads": "# Heads\n\n## Exercises\n",
    "exercises/06_queries": EXERCISE,
    "book/api": "# API\n\n```{reference} course_utils.models.attention\n```\n",
}
