"""Store what became of each doubt, and show it as a page of the book."""

from __future__ import annotations

import contextlib
import datetime
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nbformat.v4 import new_code_cell, new_notebook

from tools.doubts.trial import REFUTED, Doubt, all_doubts, cells_of
from tools.notebooks.dependencies import VARIABLES, digest, inputs
from tools.notebooks.io import ROOT, read, title, write_text
from tools.notebooks.repo_links import stamped_page

Result = dict[str, Any]


def results_file(root: Path = ROOT) -> Path:
    """Where the results of all chapters are stored."""
    return root / "book" / "doubts" / "results.json"


def stored(root: Path = ROOT) -> dict[str, dict[str, Result]]:
    """The results by chapter and by the doubt's name."""
    with contextlib.suppress(FileNotFoundError):
        return dict(json.loads(results_file(root).read_text(encoding="utf-8")))
    return {}


def result_of(doubt: Doubt, root: Path = ROOT) -> Result:
    """What is stored for one doubt; empty if nothing is."""
    return stored(root).get(doubt.chapter, {}).get(doubt.name, {})


def text_digest(doubt: Doubt) -> str:
    """The doubt as it is written."""
    return digest(json.dumps(asdict(doubt)))


def circumstances(doubt: Doubt, root: Path = ROOT) -> Result:
    """What a result depends on: the doubt, the code that runs, the versions."""
    cells = [new_code_cell(cell.source) for cell in cells_of(doubt, root)]
    facts = inputs(new_notebook(cells=cells), root)
    files = {k: v for k, v in facts.items() if "/" in k or k == "its code"}
    others = facts.keys() - files.keys() - {*VARIABLES, "requirements.txt"}
    return {
        "doubt": text_digest(doubt),
        "code": digest(json.dumps(files, sort_keys=True)),
        "versions": {name: facts[name] for name in sorted(others)},
    }


def is_current(doubt: Doubt, root: Path = ROOT, versions: bool = True) -> bool:
    """Whether the stored result is of this doubt and of the code as it is now."""
    have, now = result_of(doubt, root), circumstances(doubt, root)
    parts = ("doubt", "code", "versions") if versions else ("doubt", "code")
    return all(have.get(part) == now[part] for part in parts)


def store(doubt: Doubt, outcome: Result, root: Path = ROOT) -> None:
    """Add one result, and drop those of doubts that are gone."""
    everything = stored(root)
    everything.setdefault(doubt.chapter, {})[doubt.name] = {
        **outcome,
        "date": datetime.date.today().isoformat(),
        **circumstances(doubt, root),
    }
    names = {(other.chapter, other.name) for other in all_doubts(root)}
    left = {
        chapter: {name: r for name, r in sorted(of.items()) if (chapter, name) in names}
        for chapter, of in sorted(everything.items())
    }
    write_text(results_file(root), json.dumps(left, indent=1) + "\n")


# ------------------------------------------------------------------------------ page


def in_a_table(text: str) -> str:
    """Text that leaves a table's columns alone."""
    return " ".join(text.split()).replace("|", r"\|")


def tables(root: Path = ROOT) -> str:
    """A table for each chapter: a claim, its doubt and where it failed."""
    parts: list[str] = []
    chapter = ""
    for doubt in all_doubts(root):
        if doubt.chapter != chapter:
            chapter = doubt.chapter
            heading = f"[{title(read(doubt.notebook(root)))}]({chapter}.ipynb)"
            parts.append(
                f"\n## {heading}\n\n| claim | doubt | failed at |\n|---|---|---|"
            )
        result = result_of(doubt, root)
        where = "not tried"
        if result:
            where = f"`{in_a_table(result['where'])}`"
        if result and result["verdict"] != REFUTED:
            where = f"**{result['verdict']}**: {where}"
        cells = (in_a_table(doubt.claim), in_a_table(doubt.name), where)
        parts.append(f"| {' | '.join(cells)} |")
    return "\n".join(parts).strip()


def page(root: Path = ROOT) -> tuple[Path, str]:
    """`book/doubts.md`, and its text with the tables as they should be."""
    path = root / "book" / "doubts.md"
    return path, stamped_page(path.read_text("utf-8"), {"doubts": tables(root)})
