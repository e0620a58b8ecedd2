"""Tables on a narrow screen: a row of many columns becomes a list.

A table that is wider than a phone would have to be scrolled, and few would see its last
column. Here such a table gets what the stylesheet needs to set each of its rows as a
list: every cell the name of its column, and, since a list is no table to a browser, the
roles that a table's parts have by nature.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

TABLE = re.compile(r'<table class="table">\n<thead>.*?</table>', re.S)
CELL = re.compile(r"<(t[dh])\b([^>]*)>(.*?)</\1>", re.S)
ROW = re.compile(r"<tr[^>]*>(.*?)</tr>", re.S)
FORMULA = re.compile(r"<mjx-container.*?</mjx-container>", re.S)
WIDTH = re.compile(r'<svg[^>]*? width="([\d.]+)ex"')
COLUMNS = range(4, 7)  # fewer fit beside each other, more are data and stay a table
WIDE = 30  # ex: so wide a formula needs a line of its own on a phone
ROLES = {"table": "table", "thead": "rowgroup", "tbody": "rowgroup", "tr": "row"}
ROLES |= {"th": "columnheader", "td": "cell"}


def said(cell: str) -> str:
    """The words of a cell, without its formulas."""
    words = re.sub(r"<[^>]*>", "", FORMULA.sub("", cell))
    return " ".join(html.unescape(words).split()).rstrip(",:")


def labelled(row: str, names: list[str]) -> str:
    """A row of the body, each cell with the name of its column.

    The first cell is the heading of its list and needs none, unless it is a number.
    """

    def cell(found: re.Match[str]) -> str:
        kind, attributes, inside = found.groups()
        name, words = next(columns), said(inside)
        if not words and not FORMULA.search(inside):
            return f'<{kind}{attributes} class="course-blank">{inside}</{kind}>'
        widest = max(map(float, WIDTH.findall(inside)), default=0)
        attributes += ' class="course-wide"' if widest > WIDE else ""
        if name and (name != names[0] or words.isdigit()):
            attributes += f' data-label="{html.escape(name)}"'
        return f"<{kind}{attributes}>{inside}</{kind}>"

    columns: Iterator[str] = iter(names)
    return CELL.sub(cell, row)


def stacked(found: re.Match[str]) -> str:
    """A table, prepared for a narrow screen if it is too wide for one."""
    table = found[0]
    head, body = table.split("</thead>")
    names = [said(cell[3]) for cell in CELL.finditer(head)]
    widths = map(float, WIDTH.findall(body))
    if len(names) not in COLUMNS and not (
        len(names) == 3 and max(widths, default=0) > WIDE
    ):
        return table
    body = ROW.sub(lambda row: labelled(row[0], names), body)
    table = f"{head}</thead>{body}".replace('class="table"', 'class="table stacked"', 1)
    return re.sub(
        rf"<({'|'.join(ROLES)})\b(?!-)",
        lambda tag: f'<{tag[1]} role="{ROLES[tag[1]]}"',
        table,
    )


def with_stacked_tables(page: str) -> str:
    """The page, its wide tables prepared for a narrow screen."""
    return TABLE.sub(stacked, page)
