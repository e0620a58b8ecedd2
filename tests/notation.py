"""Compare the symbols of a chapter's formulas with the notation page.

A symbol is a letter, Latin or Greek. With a word attached to it, as `d_{\\text{model}}`
has, it is another one if the page lists it so. Other words, numbers and commands are
none. The page has two kinds of tables: symbols that mean the same in the whole course,
and local ones, which belong to some chapters. A chapter may use a symbol only if
exactly one row of the page covers it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nbformat import NotebookNode

CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
MATHS = re.compile(r"\$\$(.+?)\$\$|\$([^$]+)\$", re.DOTALL)
NAMED = re.compile(r"([A-Za-z])[_^]\{\\text\{(\w+)\}\}")
WORDS = re.compile(
    r"\\(?:text|mathrm|operatorname|begin|end|mathbf)\s*(?:\{[^{}]*\}|\w)"
)
GREEK = re.compile(
    r"\\(alpha|beta|gamma|delta|(?:var)?epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi"
    r"|rho|sigma|tau|upsilon|(?:var)?phi|chi|psi|omega|ell|nabla|Gamma|Delta|Theta|Lambda|Xi"
    r"|Pi|Sigma|Phi|Psi|Omega|mathbb\{E\})$"
)
TOKEN = re.compile(r"\\mathbb\{E\}|\\[A-Za-z]+|[A-Za-z](?:@\w+)?")


@dataclass(frozen=True)
class Row:
    """A symbol of the page: what it means, and in which chapters (none: in all)."""

    symbol: str
    meaning: str
    chapters: tuple[str, ...] = ()


def formulas(text: str) -> list[str]:
    """The formulas of a Markdown text."""
    return ["".join(found) for found in MATHS.findall(CODE.sub(" ", text))]


def plain(formula: str) -> str:
    """The formula with its words left out, but `d@model` where a letter has a name."""
    return WORDS.sub("|", NAMED.sub(r" \1@\2 ", formula)).strip()


def symbols(formula: str) -> set[str]:
    """The letters of a formula, Greek ones with a backslash, names as in `d_model`."""
    tokens = TOKEN.findall(plain(formula))
    letters = {t for t in tokens if not t.startswith("\\") or GREEK.match(t)}
    return {letter.replace("@", "_") for letter in letters}


def head(formula: str) -> set[str]:
    """The symbol that a formula begins with, as the page defines it."""
    first = TOKEN.match(plain(formula))
    return symbols(formula) & {first[0].replace("@", "_")} if first else set()


def used(nb: NotebookNode) -> dict[str, str]:
    """The symbols of a notebook's Markdown, each with the first formula that has it."""
    first: dict[str, str] = {}
    for cell in nb.cells:
        for formula in formulas(cell.source) if cell.cell_type == "markdown" else []:
            for symbol in symbols(formula):
                first.setdefault(symbol, " ".join(formula.split()))
    return first


def rows(page: str) -> list[Row]:
    """The symbols that the tables of the notation page define.

    The first column has them, each at the head of a formula. A column "chapters" makes
    them local.
    """
    found: list[Row] = []
    header: list[str] = []
    for line in page.splitlines():
        # a bar inside a formula is written \lvert, so that every | is a column's edge
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            header = []
        elif not header:
            header = cells
        elif header[0] == "maths" and set(line) - set("|-: "):
            chapters = cells[header.index("chapters")] if "chapters" in header else ""
            numbers = tuple(re.findall(r"\d\d", chapters))
            defined = [symbol for f in formulas(cells[0]) for symbol in head(f)]
            found += [Row(symbol, cells[-1], numbers) for symbol in defined]
    return found


def clashes(table: list[Row]) -> list[str]:
    """The symbols that the page itself gives two meanings in one chapter."""
    found = []
    for number, row in enumerate(table):
        for other in table[:number]:
            both = set(row.chapters) & set(other.chapters)
            if row.symbol != other.symbol:
                continue
            if both or not row.chapters or not other.chapters:
                where = f"chapter {', '.join(sorted(both))}" if both else "all chapters"
                found.append(
                    f"{row.symbol} means {other.meaning!r} and {row.meaning!r} in "
                    f"{where}; give one of them another letter."
                )
    return found


def strangers(chapter: str, nb: NotebookNode, table: list[Row]) -> list[str]:
    """The symbols that a chapter uses and the page does not have for it."""
    known = {r.symbol for r in table if not r.chapters or chapter in r.chapters}
    return [
        f"{symbol} in ${formula}$ is not on the notation page; use the letter that the "
        f"page has, or list {symbol} under Local symbols with chapter {chapter}."
        for symbol, formula in sorted(used(nb).items())
        if not {symbol, symbol.partition("_")[0]} & known
    ]


def leftovers(chapters: dict[str, NotebookNode], table: list[Row]) -> list[str]:
    """Local symbols that a chapter no longer uses."""
    return [
        f"{row.symbol} ({row.meaning}) is listed for chapter {chapter}, which does not "
        "use it; take the number out."
        for row in table
        for chapter in row.chapters
        if chapter not in chapters or row.symbol not in used(chapters[chapter])
    ]
