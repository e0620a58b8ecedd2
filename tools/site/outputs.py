"""What the cells of a notebook show, made ready for a page.

Figures get their numbers and captions; printed text says whether its lines may break.
Figures and interactives leave behind what the site has once for all of them, their
style, and interactives what is loaded only when a reader asks for it, the weights of a
model.
"""

from __future__ import annotations

import hashlib
import html
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from course_utils.display.figures import figure_style
from course_utils.display.interactive import style
from tools.site.crossrefs import chapter_number

logger = logging.getLogger(__name__)
# What `figure_html` writes. A cell's output is one piece of HTML; this reads our own.
FIGURE = re.compile(
    r'<figure class="(course-figure[^"]*)"(?: id="([\w-]+)")?[^>]*>(.*?)'
    r"(?:<figcaption[^>]*>(.*)</figcaption>)?</figure>",
    re.S,
)
# What `live_transformer` embeds for notebooks: the packed weights of a model.
WEIGHTS = re.compile(
    r'(<script type="application/json" data-weights="([\w-]+)")>([^<]+)</script>'
)
# Gaps, brackets or an indentation: what has columns keeps its lines and is scrolled.
COLUMNS = re.compile(r"\S {2,}\S|\[\[|^ +\S", re.M)


class Outputs(SphinxPostTransform):
    """Go over what the cells of a page show."""

    default_priority = 390  # before what a caption names becomes a link
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Text, then figures and interactives in their order."""
        for text in self.document.findall(nodes.literal_block):
            printed = {"output", "stream"} <= {*text["classes"]}
            if printed and not COLUMNS.search(text.astext()):
                text["classes"].append("wraps")
        here, count = self.env.docname, 0
        chapter = chapter_number(here) if here.startswith("book/") else ""
        for shown in [*self.document.findall(nodes.raw)]:
            if figure_style() in shown.astext():
                shown[:] = [nodes.Text(shown.astext().replace(figure_style(), ""))]
            if 'class="course-figure' in shown.astext():
                count += 1
                self.number(shown, chapter, count)
            elif 'class="course-widget' in shown.astext():
                self.lighten(shown)

    def number(self, shown: nodes.raw, chapter: str, count: int) -> None:
        """Put a figure of its own in place of the HTML that holds one."""
        found = FIGURE.fullmatch(shown.astext().strip())
        if found is None:
            logger.warning(
                "a figure that figure_html did not write: %s…",
                shown.astext()[:80],
                location=shown,
            )
            return
        kinds, name, drawing, caption = found.groups()
        anchor = "-".join(filter(None, ("figure", chapter, str(count))))
        figure = nodes.figure("", nodes.raw("", drawing, format="html"))
        figure["classes"] = kinds.split()
        figure["ids"] = [*filter(None, (name,)), anchor]
        below = nodes.caption()
        if chapter:
            number = f"Figure {chapter}.{count}{'. ' if caption else ''}"
            below += nodes.inline("", number, classes=["caption-number"])
        below += text_and_maths(html.unescape(caption or ""))
        figure += below if len(below) else []
        shown.parent.replace(shown, figure)  # without the classes of a cell's output

    def lighten(self, shown: nodes.raw) -> None:
        """Take the style and the weights out of an interactive."""
        page, once = shown.astext(), f"<style>{style()}</style>"
        if once not in page:
            logger.warning(
                "an interactive without the style of all; execute the notebook again.",
                location=shown,
            )
        page = WEIGHTS.sub(self.move_weights, page.replace(once, ""))
        shown[:] = [nodes.Text(page)]

    def move_weights(self, found: re.Match[str]) -> str:
        """Put weights into a script that the page can load.

        A script and not JSON, because a page opened from a file may load no other.
        """
        element, name, weights = found.groups()
        mark = hashlib.sha256(weights.encode()).hexdigest()[:8]
        file = f"_static/weights/{name}-{mark}.js"
        path = Path(self.app.outdir, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f'(window.courseWeights ||= {{}})["{name}"] = {weights};\n', "utf-8"
        )
        up = "../" * self.env.docname.count("/")
        return f'{element} data-src="{up}{file}"></script>'


def text_and_maths(caption: str) -> list[nodes.Node]:
    """A caption as nodes: what stands between dollars is a formula."""
    parts = enumerate(caption.split("$"))
    return [nodes.math("", x) if i % 2 else nodes.Text(x) for i, x in parts if x]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform."""
    app.add_post_transform(Outputs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
