"""Which pages the book has, in order: `_toc.yml` read in one place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def entries(node: Any) -> list[str]:
    """Every page that `_toc.yml` lists, in order."""
    if isinstance(node, list):
        return [page for part in node for page in entries(part)]
    if not isinstance(node, dict):
        return []
    own = [node[key] for key in ("root", "file") if key in node]
    return own + [p for value in node.values() for p in entries(value)]


def page_sources(root: Path) -> list[Path]:
    """The files behind the pages of `_toc.yml`."""
    toc = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    sources = []
    for entry in entries(toc):
        found = [root / f"{entry}{end}" for end in ("", ".ipynb", ".md")]
        existing = [path for path in found if path.is_file()]
        if not existing:
            raise ValueError(
                f"_toc.yml lists {entry!r}, but there is no {entry}.ipynb and no "
                f"{entry}.md; add the page or take the line out."
            )
        sources.append(existing[0])
    return sources


def page_notebooks(root: Path) -> list[Path]:
    """The notebooks among the pages."""
    return [path for path in page_sources(root) if path.suffix == ".ipynb"]
