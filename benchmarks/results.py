"""The rows of `results.json`: made, kept, compared with earlier ones, and shown.

A row says how we compare with one other design at one size. `ratio` is ours divided by
theirs unless `unit` says otherwise, so that below 1 is better; a row meets its `target`
when its ratio is not above it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.timing import Ratio

RESULTS = Path(__file__).parent / "results.json"
AREAS = {
    "attention": "Multi-head attention, forward and backward",
    "gpt": "A training step of GPT",
    "loss": "What a minute of training reaches",
    "translation": "A training step of the encoder-decoder",
    "generation": "One generated token",
    "bahdanau": "A training step with Bahdanau's attention",
    "course": "The course itself",
    "growth": "Growth with the length n: the exponent p of nᵖ",
}


UNITS = {"times": "ratio", "nats": "difference", "exponent": "exponent"}
UNITS["bits"] = UNITS["nats"]


@dataclass(frozen=True)
class Row:
    """One comparison: what, at which size, against whom, with which result."""

    area: str
    name: str
    size: str
    ratio: float
    spread: float
    target: float | None
    baseline: str
    unit: str = "times"
    rounds: int = 1
    note: str = ""

    def __post_init__(self) -> None:
        if self.area not in AREAS:
            raise ValueError(
                f"area is {self.area!r}, expected one of {', '.join(AREAS)}."
            )

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What makes a row the same as one of an earlier run."""
        return (self.area, self.name, self.size, self.baseline)

    @property
    def met(self) -> bool:
        """Whether the target is reached; a row without one always does."""
        return self.target is None or self.ratio <= self.target


def made(
    area: str,
    name: str,
    size: str,
    ratio: Ratio,
    target: float | None,
    baseline: str,
    unit: str = "times",
    rounds: int = 1,
    note: str = "",
) -> Row:
    """Make a row of a measured ratio, rounded to what can be read from it."""
    return Row(
        area,
        name,
        size,
        float(f"{ratio.median:.4g}"),
        float(f"{ratio.spread:.3g}"),
        target,
        baseline,
        unit,
        rounds,
        note,
    )


# --------------------------------------------------------------------- kept in a file


def load(path: Path = RESULTS) -> list[Row]:
    """Read the rows of an earlier run; none where there was no run."""
    if not path.is_file():
        return []
    return [Row(**row) for row in json.loads(path.read_text("utf-8"))]


def save(rows: list[Row], path: Path = RESULTS) -> None:
    """Write the rows, one on a line, in the order of the areas."""
    order = list(AREAS)
    ordered = sorted(rows, key=lambda row: order.index(row.area))
    lines = [json.dumps(asdict(row), ensure_ascii=False) for row in ordered]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def merged(before: list[Row], now: list[Row]) -> list[Row]:
    """The rows of this run, and those of earlier runs whose area was left out of it."""
    again = {row.area for row in now}
    return [row for row in before if row.area not in again] + now


# ------------------------------------------------------------------------- compared


def slower(before: list[Row], now: list[Row]) -> list[str]:
    """Say which rows rose by more than their spreads explain.

    A median may move by the distance between the quartiles of either run; what rose by
    more than both together became slower.
    """
    known = {row.key: row for row in before}
    found = []
    for row in now:
        old = known.get(row.key)
        if old is None:
            continue
        rise, explained = row.ratio - old.ratio, row.spread + old.spread
        if rise > explained + 1e-9:
            found.append(
                f"{row.name}, {row.size}, against {row.baseline}: {old.ratio:.3g} "
                f"became {row.ratio:.3g}, and the spreads explain {explained:.2g} of it"
            )
    return found


def missed(rows: list[Row]) -> list[str]:
    """Say which rows are over their target, and by how much."""
    return [
        f"{row.name}, {row.size}, against {row.baseline}: {row.ratio:.3g}, target "
        f"{row.target:.3g}" + (f" ({row.note})" if row.note else "")
        for row in rows
        if not row.met and row.target is not None
    ]


# ----------------------------------------------------------------------------- shown


def number(value: float | None) -> str:
    """A number with three digits that count, or a dash."""
    if value is None:
        return "–"
    text = f"{value:.3f}" if abs(value) < 0.1 else f"{value:.2f}"
    return text.replace("-", "−")


def cells(row: Row) -> list[str]:
    """What the table says of a row."""
    spread = f"± {number(row.spread / 2)}" if row.spread else ""  # counted: no spread
    target = "–" if row.target is None else f"≤ {number(row.target)}"
    met = "" if row.target is None else "yes" if row.met else "**no**"
    return [row.name, row.size, row.baseline, number(row.ratio), spread, target, met]


HEAD = ["what", "size", "against", "ratio", "spread", "target", "met"]


def table(rows: list[Row]) -> str:
    """The rows as text in columns, one area below the other."""
    body = [cells(row) for row in rows]
    widths = [max(len(line[i]) for line in [HEAD, *body]) for i in range(len(HEAD))]

    def line(parts: list[str]) -> str:
        return "  ".join(part.ljust(w) for part, w in zip(parts, widths)).rstrip()

    text = []
    for area, title in AREAS.items():
        mine = [cells(row) for row in rows if row.area == area]
        if mine:
            text += ["", title, line(HEAD), *(line(parts) for parts in mine)]
    return "\n".join(text).replace("**", "").strip()


def shown(row: Row) -> str:
    """A row's number on the page, bold where it is over its target."""
    text = f"{number(row.ratio)}"
    if row.spread:
        text += f" ± {number(row.spread / 2)}"
    text = text.replace(" ", "\N{NO-BREAK SPACE}")
    return text if row.met else f"**{text}**"


def targets(rows: list[Row]) -> str:
    """The target of a line, or those of its columns in turn."""
    said = ["–" if r.target is None else f"≤ {number(r.target)}" for r in rows]
    text = said[0] if len(set(said)) == 1 else " / ".join(said)
    return text.replace(" ", "\N{NO-BREAK SPACE}").replace("\N{NO-BREAK SPACE}/", " /")


def lines(rows: list[Row]) -> list[str]:
    """An area as a table: a design on each line, a size in each column.

    Where each line has a size of its own, it stands on the line.
    """
    sizes = list(dict.fromkeys(row.size for row in rows))
    kinds = list(dict.fromkeys((row.name, row.baseline) for row in rows))
    shared = len(sizes) < len(rows)
    heads = sizes if shared else ["number"]
    found = [
        f"| what (target) | {' | '.join(heads)} |",
        "|---" * (len(heads) + 1) + "|",
    ]
    for name, baseline in kinds:
        mine = [row for row in rows if (row.name, row.baseline) == (name, baseline)]
        at = {row.size if shared else "number": shown(row) for row in mine}
        size = "" if shared else f", {mine[0].size}"
        asked = any(row.target is not None for row in mine)
        due = f" ({targets(mine)})" if asked else ""
        numbers = " | ".join(at.get(head, "") for head in heads)
        found.append(f"| {name}{size}, against {baseline}{due} | {numbers} |")
    return found


def markdown(rows: list[Row]) -> str:
    """The rows as one Markdown table for each area."""
    text = []
    for area, title in AREAS.items():
        mine = [row for row in rows if row.area == area]
        if not mine:
            continue
        units = " or ".join(dict.fromkeys(UNITS[row.unit] for row in mine))
        said = f"Each number is {'an' if units[0] == 'e' else 'a'} {units}."
        text += [f"### {title}", "", said, "", *lines(mine)]
        notes = dict.fromkeys(row.note for row in mine if row.note)
        text += [""] + [f"{note}\n" for note in notes]
    return "\n".join(text).strip() + "\n"
