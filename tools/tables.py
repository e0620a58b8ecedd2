"""Tables on a narrow screen: a row of many columns becomes a list.

A table that is wider than a phone would have to be scrolled, and few would see its last
column. Here such a table gets what the stylesheet needs to set each of its rows as a
list: every cell the name of its column, and, since a list is no table to a browser, the
roles that a table's parts have by nature.
"""

from __future__ import annotations

import html
import re

TABLE = re.compile(r'<table class="table">\n<thead>.*?</table>', re.S)
CELL = re.compile(r"<(t[dh])\b([^>]*)>(.*?)</\1>", re.S)
ROW = re.compile(r"<tr[^>]*>(.*?)</tr>", re.S)
FORMULA = re.compile(r"<mjx-container.*?</mjx-container>", re.S)
WIDTH = re.compile(r'<svg[^>]*? width="([\d.]+)ex"')
COLUMNS = range(3, 7)  # two fit beside each other, more than six are data
ROOM = 46  # letters, or ex of formulas, that fit beside each other on a phone
WIDE = 30  # ex: so wide a formula needs a line of its own
ROLES = {"table": "table", "thead": "rowgroup", "tbody": "rowgroup", "tr": "row"}
ROLES |= {"th": "columnheader", "td": "cell"}


def said(cell: str) -> str:
    """The words of a cell, without its formulas."""
    words = re.sub(r"<[^>]*>", "", FORMULA.sub("", cell))
    return " ".join(html.unescape(words).split()).rstrip(",:")


def widest(cell: str) -> float:
    """The width of a cell's widest formula, in ex; 0 where there is none."""
    return max(map(float, WIDTH.findall(cell)), default=0)


def needs(cell: str) -> tuple[float, float]:
    """The letters that a cell needs: at least, and for all of it on one line."""
    words, formulas = said(cell).split(), map(float, WIDTH.findall(cell))
    whole = len(" ".join(words)) + sum(formulas)
    return max([widest(cell), *map(len, words)]), whole


def too_wide(rows: list[list[str]]) -> bool:
    """Whether a table would have to be scrolled on a phone.

    Three columns break their words into lines; more are as wide as what is in them.
    """
    columns = [[needs(cell) for cell in column] for column in zip(*rows)]
    kind = 0 if len(columns) == 3 else 1
    gaps = 2 * len(columns)
    return gaps + sum(max(need[kind] for need in column) for column in columns) > ROOM


def labelled(row: str, names: list[str], wide: set[int]) -> str:
    """A row of the body, each cell with the name of its column.

    The first cell is the heading of its list and needs none, unless it is a number.
    """

    def cell(found: re.Match[str]) -> str:
        kind, attributes, inside = found.groups()
        (at, name), words = next(columns), said(inside)
        if not words and not FORMULA.search(inside):
            return f'<{kind}{attributes} class="course-blank">{inside}</{kind}>'
        attributes += ' class="course-wide"' if at in wide else ""
        if name and (at > 0 or words.isdigit()):
            attributes += f' data-label="{html.escape(name)}"'
        return f"<{kind}{attributes}>{inside}</{kind}>"

    columns = iter(enumerate(names))
    return CELL.sub(cell, row)


def stacked(found: re.Match[str]) -> str:
    """A table, prepared for a narrow screen if it is too wide for one."""
    table = found[0]
    head, body = table.split("</thead>")
    names = [said(cell[3]) for cell in CELL.finditer(head)]
    rows = [[cell[3] for cell in CELL.finditer(row)] for row in ROW.findall(table)]
    if len(names) not in COLUMNS or not too_wide(rows):
        return table
    columns = enumerate(zip(*rows))
    wide = {i for i, column in columns if max(map(widest, column)) > WIDE}
    body = ROW.sub(lambda row: labelled(row[0], names, wide), body)
    table = f"{head}</thead>{body}".replace('class="table"', 'class="table stacked"', 1)
    return re.sub(
        rf"<({'|'.join(ROLES)})\b(?!-)",
        lambda tag: f'<{tag[1]} role="{ROLES[tag[1]]}"',
        table,
    )


def with_stacked_tables(page: str) -> str:
    """The page, its wide tables prepared for a narrow screen."""
    return TABLE.sub(stacked, page)
