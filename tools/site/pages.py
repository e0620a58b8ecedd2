"""What the site's pages need beyond their theme: a Sphinx extension.

Each chapter leads to its exercise and to the reference, and back. The templates in
`book/_templates` mend what the theme gets wrong; its files are made small by `assets`.
"""

from __future__ import annotations

import logging as python_logging
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.formatters import HtmlFormatter
from pygments.token import Name, Operator, Punctuation, Text, Token
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from course_utils.display.interactive import style
from tools.notebooks.io import ROOT
from tools.notebooks.repo_links import published
from tools.site.crossrefs import chapter_number
from tools.site.reference import taught

logger = logging.getLogger(__name__)
# For those who meet an exercise on the site, where no cell can be run.
HOW_TO_ANSWER = (
    "This page shows the questions before anybody has answered. To answer, open the "
    "notebook: the rocket at the top opens it in Colab, "
)


def plain(text: str) -> str:
    """Words with single spaces between them, wherever their lines break."""
    return " ".join(text.split())


def note(*parts: nodes.Node) -> nodes.paragraph:
    """A line that says where to go on."""
    return nodes.paragraph("", "", *parts, classes=["course-see"])


class Companions(SphinxPostTransform):
    """Join chapter, exercise and reference: each leads to the others.

    The title of its chapter, which an exercise names, becomes a link; both end with the
    names that the chapter teaches. (A chapter links its exercise in its own text.)
    """

    default_priority = 380  # before the crossrefs: one link to the chapter is enough
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Add the lines of a chapter or an exercise."""
        page = self.env.docname
        if not chapter_number(page):
            return
        if page.startswith("exercises/"):
            self.link_chapter(page.replace("exercises/", "book/", 1))
            self.say_how_to_answer()
        self.name_what_is_taught(page)

    def found(self, what: str, *places: nodes.Element) -> nodes.Element | None:
        """The first of the places; a warning, and so an error, if there is none."""
        if not places:
            logger.warning("there is no %s on this page", what, location=self.document)
        return places[0] if places else None

    def link_chapter(self, chapter: str) -> None:
        """Link the title of the chapter where an exercise names it."""
        title = plain(self.env.titles[chapter].astext())
        emphasised = self.document.findall(nodes.emphasis)
        named = [node for node in emphasised if plain(node.astext()) == title]
        if place := self.found(f"*{title}*, the chapter's title", *named):
            there = self.app.builder.get_relative_uri(self.env.docname, chapter)
            link = nodes.reference(
                "", "", place.deepcopy(), refuri=there, internal=True
            )
            place.replace_self(link)

    def say_how_to_answer(self) -> None:
        """Tell where the questions can be answered, below the time they take."""
        paragraphs = self.document.findall(nodes.paragraph)
        time = [p for p in paragraphs if p.astext().startswith("Time")]
        if place := self.found("paragraph **Time**", *time):
            command = nodes.literal("", "make lab")
            end = nodes.Text(" on your own machine.")
            here = place.parent.index(place) + 1
            place.parent.insert(here, note(nodes.Text(HOW_TO_ANSWER), command, end))

    def name_what_is_taught(self, page: str) -> None:
        """End with links to what the chapter teaches in the reference."""
        if "book/api" not in self.env.found_docs:
            return
        names = taught(Path(self.env.srcdir, "book", "api.md"), ROOT)
        mine = names.get(chapter_number(page), [])
        reference = self.app.builder.get_relative_uri(page, "book/api")
        line: list[nodes.Node] = []
        for name, anchor in mine:
            code = nodes.literal("", name)
            there = f"{reference}#{anchor}"
            link = nodes.reference("", "", code, refuri=there, internal=True)
            line += [nodes.Text(", " if line else "In the package: "), link]
        sections = [*self.document.findall(nodes.section)]
        if page.startswith("book/"):
            sections = [s for s in sections if "exercises" in s["ids"]]
        if line and (place := self.found("section ## Exercises", *sections)):
            place += note(*line, nodes.Text("."))


class Lean(HtmlFormatter):
    """Code in which names, signs and spaces, coloured as the text, have no element."""

    UNCOLOURED = (Name, Name.Namespace, Operator, Punctuation, Text.Whitespace)

    def format_unencoded(self, tokensource: Any, outfile: Any) -> None:
        """Write the code, those tokens as plain text."""
        lean = ((Token.Text if t in self.UNCOLOURED else t, v) for t, v in tokensource)
        super().format_unencoded(lean, outfile)


def tell_where(app: Sphinx, config: Config) -> None:
    """Give the address under which the site is published to all that name it."""
    config.ogp_site_url = config.html_baseurl = published()


def prepare(app: Sphinx) -> None:
    """Write code leanly, and put the style of all interactives among the others."""
    if app.builder.format != "html":
        return
    app.builder.highlighter.formatter = Lean  # type: ignore[attr-defined]
    static = Path(app.outdir, "_static")
    static.mkdir(parents=True, exist_ok=True)
    (static / "interactive.css").write_text(style(), "utf-8")


def name_card(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Let the card that a link shows be called as its page: opengraph describes it."""
    if doctree:
        context["meta"]["og:image:alt"] = app.env.titles[page].astext()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what joins the pages, and what they share."""
    # opengraph asks for a bold face that its own font lacks, and draws the other
    python_logging.getLogger("matplotlib.font_manager").setLevel("ERROR")
    app.setup_extension("tools.site.front")
    app.add_css_file("interactive.css", priority=900)  # after course.css, as in a cell
    app.add_post_transform(Companions)
    app.connect("config-inited", tell_where)
    app.connect("builder-inited", prepare)
    app.connect("html-page-context", name_card, priority=400)  # before opengraph
    return {"parallel_read_safe": True, "parallel_write_safe": True}
