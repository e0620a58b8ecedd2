"""Tables on a narrow screen: a row of many columns becomes a list.

A table that is wider than a phone would have to be scrolled, and few would see its last
column. Here such a table gets what the stylesheet needs to set each of its rows as a
list: every cell the name of its column, and, since a list is no table to a browser, the
roles that a table's parts have by nature.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator

from tools.site.mathematics import width

COLUMNS = range(3, 7)  # two fit beside each other, more than six are data
ROOM = 46  # letters, or ex of formulas, that fit beside each other on a phone
WIDE = 30  # ex: so wide a formula needs a line of its own
ROLES = {nodes.thead: "rowgroup", nodes.tbody: "rowgroup", nodes.row: "row"}


class Translator(HTML5Translator):
    """Sphinx's translator, which writes a node's `html` attributes as they are."""

    def starttag(
        self,
        node: Any,
        tagname: str,
        suffix: str = "\n",
        empty: bool = False,
        **atts: Any,
    ) -> str:
        """Open an element."""
        return super().starttag(
            node, tagname, suffix, empty, **atts | node.get("html", {})
        )

    def visit_entry(self, node: nodes.entry) -> None:
        """Open a cell; a heading with nothing in it is none to those who listen."""
        super().visit_entry(node)
        if self.context[-1] == "</th>\n" and not node.astext().strip():
            self.body[-1] = self.starttag(node, "td", "")
            self.context[-1] = "</td>\n"

    def visit_citation(self, node: nodes.citation) -> None:
        """Open a reference; docutils' role is deprecated, and its list has no items."""
        node["html"] = {"role": "listitem"}
        super().visit_citation(node)


def words(cell: nodes.entry) -> str:
    """The words of a cell, without its formulas."""
    texts = cell.findall(nodes.Text)
    said = "".join(text for text in texts if not isinstance(text.parent, nodes.math))
    return " ".join(said.split()).rstrip(",:")


def formulas(cell: nodes.entry) -> list[float]:
    """The widths of a cell's formulas, in ex."""
    return [width(formula.astext()) for formula in cell.findall(nodes.math)]


def needs(cell: nodes.entry) -> tuple[float, float]:
    """The letters that a cell needs: at least, and for all of it on one line."""
    said, wide = words(cell), formulas(cell)
    return max([0, *wide, *map(len, said.split())]), len(said) + sum(wide)


def too_wide(columns: list[tuple[nodes.entry, ...]]) -> bool:
    """Whether a table would have to be scrolled on a phone.

    Three columns break their words into lines; more are as wide as what is in them.
    """
    kind = 0 if len(columns) == 3 else 1
    widest = [max(needs(cell)[kind] for cell in column) for column in columns]
    return 2 * len(columns) + sum(widest) > ROOM


class Tables(SphinxPostTransform):
    """Prepare the wide tables of a page for a narrow screen."""

    default_priority = 420
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Find them."""
        for table in self.document.findall(nodes.table):
            rows = [row.children for row in table.findall(nodes.row)]
            columns = list(zip(*rows))
            headed = table.next_node(nodes.thead) is not None
            if headed and len(columns) in COLUMNS and too_wide(columns):
                self.stack(table, columns)

    def stack(self, table: nodes.table, columns: list[tuple[nodes.entry, ...]]) -> None:
        """Name the parts of a table and the column of each cell.

        The first cell is the heading of its list and needs none, unless it is a number.
        """
        table["classes"].append("stacked")
        table["html"] = {"role": "table"}
        for part in table.findall(lambda node: type(node) in ROLES):
            part["html"] = {"role": ROLES[type(part)]}
        for at, (head, *cells) in enumerate(columns):
            head["html"] = {"role": "columnheader" if head.astext() else "cell"}
            is_wide = max(max(formulas(c), default=0) for c in (head, *cells)) > WIDE
            for cell in cells:
                cell["html"] = {"role": "cell"}
                if not cell.astext().strip():
                    cell["classes"].append("course-blank")
                    continue
                cell["classes"] += ["course-wide"] * is_wide
                if words(head) and (at > 0 or words(cell).isdigit()):
                    cell["html"]["data-label"] = words(head)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform and the translator that writes what it says."""
    app.set_translator("html", Translator)
    app.add_post_transform(Tables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
