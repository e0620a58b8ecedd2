"""The book's page on performance: its tables and figure come from `results.json`."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.figure import figure
from benchmarks.results import Row, markdown
from tools.notebooks.io import ROOT, write_text

PAGE = ROOT / "book" / "performance.md"
BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"


def verdict(rows: list[Row]) -> str:
    """How many rows meet their target, in a sentence."""
    asked = [row for row in rows if row.target is not None]
    over = [row for row in asked if not row.met]
    text = f"{len(asked) - len(over)} of the {len(asked)} rows with a target meet it."
    if not over:
        return text
    names = "; ".join(
        f"{row.name}, {row.size}, against {row.baseline} ({row.ratio:.3g}, target "
        f"{row.target:.3g})"
        for row in over
    )
    return f"{text} Over it: {names}."


def filled(page: str, rows: list[Row]) -> str:
    """The page with what stands between the two marks made from the rows."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"expected one {BEGIN} and one {END} on the page.")
    made = "\n\n".join([verdict(rows), figure(rows), markdown(rows).strip()])
    pattern = re.escape(BEGIN) + ".*" + re.escape(END)
    whole = f"{BEGIN}\n\n{made}\n\n{END}"
    return re.sub(pattern, lambda _: whole, page, flags=re.S)


def write_page(rows: list[Row], path: Path = PAGE) -> None:
    """Bring the page up to date."""
    write_text(path, filled(path.read_text("utf-8"), rows))
