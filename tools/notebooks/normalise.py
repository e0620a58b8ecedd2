"""Keep the notebooks in one canonical form, so that a diff shows only what changed.

    python -m tools.notebooks normalise [PATH …]   rewrite to the canonical form
    python -m tools.notebooks stamp [PATH …]       write what is derived: links, times
    python -m tools.notebooks record PATH …        run; keep the outputs that are tested
    python -m tools.notebooks check [PATH …]       say what is not so, and what mends it

With no path: every notebook of book/, exercises/ and solutions/.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from tools.notebooks.io import (
    CHECKED,
    ROOT,
    all_notebooks,
    dumps,
    name_of,
    read,
    rewrite,
    tags,
)
from tools.notebooks.previews import TAG, preview_findings, stored
from tools.notebooks.questions import question_findings, stamp_questions
from tools.notebooks.reading_time import minutes, timed
from tools.notebooks.repo_links import (
    blocks,
    pages,
    stamped,
    stamped_page,
    thumbnails,
)

METADATA = {
    "kernelspec": {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python"},
}
CELL_METADATA = ("tags", "mystnb")  # mystnb: captions and names of numbered figures
ID_LENGTH = 40
MEND = "run `python -m tools.notebooks stamp`"

# ------------------------------------------------------------------ canonical form


def slug(source: str) -> str:
    """A readable cell id from the first line that has something to say."""
    for line in source.splitlines():
        plain = unicodedata.normalize("NFKD", line).encode("ascii", "ignore").decode()
        words = re.findall(r"[a-z0-9]+", plain.lower())
        if words:
            break
    else:
        return "cell"
    text = words[0][:ID_LENGTH]
    for word in words[1:]:
        if len(text) + 1 + len(word) > ID_LENGTH:
            break
        text += "-" + word
    return text


def unique(wanted: str, taken: set[str]) -> str:
    """`wanted`, or `wanted-2`, `wanted-3`, … when others have it already."""
    candidate, n = wanted, 1
    while candidate in taken:
        n += 1
        candidate = f"{wanted}-{n}"
    return candidate


def clean_outputs(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Keep the text of outputs: what a test can compare on any machine."""
    cleaned: list[NotebookNode] = []
    for output in outputs:
        kind = output["output_type"]
        if kind == "stream":
            previous = cleaned[-1] if cleaned else {}
            if previous.get("name") == output["name"]:
                cleaned[-1]["text"] += output["text"]
            else:
                cleaned.append(NotebookNode(output))
        elif "text/plain" in output.get("data", {}):
            kept = nbformat.v4.new_output(
                kind, data={"text/plain": output["data"]["text/plain"]}
            )
            cleaned.append(kept)
    return cleaned


def clean_cell(cell: NotebookNode, cell_id: str) -> NotebookNode:
    """One cell with its source, the metadata we use and the outputs that git keeps."""
    source = cell.source.replace("\r\n", "\n")
    source = re.sub(r"\A(?:[^\S\n]*\n)+", "", source).rstrip()
    kept: dict[str, Any] = {
        key: cell.metadata[key] for key in CELL_METADATA if cell.metadata.get(key)
    }
    if "tags" in kept:
        kept["tags"] = tags(cell)
    if cell.cell_type == "code":
        outputs = stored(cell) if TAG in tags(cell) else []
        if CHECKED in tags(cell):
            outputs = clean_outputs(cell.outputs)
        # nbval takes a cell without a count for one that was never run
        count = 1 if outputs else None
        return new_code_cell(
            source, id=cell_id, metadata=kept, outputs=outputs, execution_count=count
        )
    if cell.cell_type == "raw":
        return new_raw_cell(source, id=cell_id, metadata=kept)
    clean = new_markdown_cell(source, id=cell_id, metadata=kept)
    if cell.get("attachments"):
        clean["attachments"] = cell["attachments"]
    return clean


def canonical(nb: NotebookNode) -> NotebookNode:
    """The notebook's one form in git: tested outputs and pictures, stable ids."""
    cells: list[NotebookNode] = []
    taken: set[str] = set()
    for cell in nb.cells:
        if not cell.source.strip():
            continue
        cell_id = unique(slug(cell.source), taken)
        taken.add(cell_id)
        cells.append(clean_cell(cell, cell_id))
    clean = new_notebook(cells=cells, metadata=METADATA)
    clean.nbformat_minor = 5
    return clean


# ------------------------------------------------------------------------ findings


def deviations(nb: NotebookNode, clean: NotebookNode) -> list[str]:
    """Where a notebook is not its canonical form."""
    if len(nb.cells) != len(clean.cells):
        return ["empty cells"]
    found = []
    if nb.metadata != clean.metadata:
        found.append("metadata is more or less than kernelspec and language_info")
    for n, (cell, wanted) in enumerate(zip(nb.cells, clean.cells)):
        keys = sorted({*cell, *wanted})
        wrong = [key for key in keys if cell.get(key) != wanted.get(key)]
        if wrong:
            found.append(f"{', '.join(wrong)} of cell {n} ({wanted.id})")
    return found


def findings(path: Path, root: Path = ROOT) -> list[str]:
    """What about this notebook is not as it should stand in git, and what mends it."""
    nb = read(path)
    clean = canonical(nb)
    found = []
    wrong = deviations(nb, clean)
    if not wrong and path.read_text(encoding="utf-8") != dumps(clean):
        wrong = ["the file's layout (indent, line ends or nbformat version)"]
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        found.append(
            f"not in canonical form: {'; '.join(wrong[:3])}{more}; run `python -m "
            "tools.notebooks normalise`"
        )
    found += [
        f"cell {n} ({cell.id}) is tagged {CHECKED} but stores no output, so nothing is "
        f"compared; run `python -m tools.notebooks record {name_of(path)}`"
        for n, cell in enumerate(clean.cells)
        if CHECKED in tags(cell) and not cell.get("outputs")
    ]
    if clean != canonical(stamped(nb, path.parent.name, path.name, root)):
        found.append(
            "the links below the title, or the cell after it that installs the course "
            "on Colab, are not those of _config.yml; run `python -m tools.notebooks "
            "stamp`"
        )
    if clean != canonical(timed(nb)):
        found.append(
            f"the Time line does not say {minutes(nb):.0f} minutes, rounded to five; "
            "run `python -m tools.notebooks stamp`"
        )
    if clean != canonical(stamp_questions(nb, path)):
        found.append(
            "a heading of a question, or how many there are, is not what the files in "
            "course_utils/grading/questions say; run `python -m tools.notebooks stamp`"
        )
    return found + question_findings(nb, path) + preview_findings(clean, path)


def check(paths: list[Path], root: Path = ROOT) -> list[str]:
    """Every finding in these notebooks and in the pages, one line each."""
    found = [f"{name_of(p)}: {what}" for p in paths for what in findings(p, root)]
    wanted = blocks(root)
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        if text != stamped_page(text, wanted):
            found.append(f"{name_of(page)}: a block is stale; {MEND}")
    for file, (picture, _) in thumbnails(root).items():
        if not file.exists() or file.read_bytes() != picture:
            found.append(f"{name_of(file)}: not the chapter's first picture; {MEND}")
    return found


# ------------------------------------------------------------------------ commands


def normalise(paths: list[Path]) -> None:
    """Rewrite the notebooks to their canonical form."""
    for path in paths:
        rewrite(path, dumps(canonical(read(path))))


def stamp(paths: list[Path], root: Path = ROOT) -> None:
    """Write what is said elsewhere: links, Colab cell, time, headings, blocks."""
    for path in paths:
        nb = stamped(read(path), path.parent.name, path.name, root)
        nb = stamp_questions(timed(nb), path)
        rewrite(path, dumps(canonical(nb)))
    wanted = blocks(root)
    for page in pages(root):
        rewrite(page, stamped_page(page.read_text(encoding="utf-8"), wanted))
    for file, (picture, _) in thumbnails(root).items():
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_bytes() != picture:
            file.write_bytes(picture)


def record(path: Path) -> None:
    """Run the notebook and store the outputs of the cells whose output is tested."""
    from tools.notebooks.execute import THIS_PYTHON, kernel_environment, run_notebook

    environment = kernel_environment(ROOT)
    run = run_notebook(path, environment, THIS_PYTHON, "--any-output")
    outcome = asyncio.run(run)
    if outcome.notebook is None:
        raise ValueError(f"{name_of(path)}: {outcome.error}")
    nb = read(path)
    for kept, cell in zip(nb.cells, outcome.notebook.cells, strict=True):
        rich = {
            kind
            for output in cell.get("outputs", [])
            for kind in output.get("data", {})
            if kind != "text/plain"
        }
        if CHECKED in tags(cell) and rich:
            raise ValueError(
                f"{name_of(path)}: cell {cell.id} is tagged {CHECKED} and shows "
                f"{', '.join(sorted(rich))}; only text is compared: print the rounded "
                "values in a cell of their own and tag that one."
            )
        if CHECKED in tags(cell):
            kept.outputs = cell.outputs
    rewrite(path, dumps(canonical(nb)))


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.notebooks")
    parser.add_argument("command", choices=["normalise", "stamp", "record", "check"])
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    options = parser.parse_args(arguments)
    if options.command == "record" and not options.paths:
        parser.error("record runs a notebook, which takes a while: name it")
    paths = options.paths or all_notebooks()
    try:
        if options.command == "normalise":
            normalise(paths)
        elif options.command == "stamp":
            stamp(paths)
        elif options.command == "record":
            for path in paths:
                record(path)
        else:
            found = check(paths)
            print("\n".join(found) or f"{len(paths)} notebooks in canonical form")
            return 1 if found else 0
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
