"""Numbers by which a reader finds a place, and links to the places that are named.

The text says "chapter 08", "theorem 07.1" and "figure 06.2". Here every chapter gets
its number where its title stands in the contents, every theorem an anchor, and what the
text names becomes a link: each theorem and figure, and each other chapter where a page
names it first. What has been renamed keeps its old anchor besides the new one.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

logger = logging.getLogger(__name__)
NO_BREAK = "\N{NO-BREAK SPACE}"
THEOREM = re.compile(r"Theorem (\d\d)\.(\d+)\b")
MENTION = re.compile(
    r"\b(?P<kind>[Tt]heorem|[Ff]igure)\s(?P<chapter>\d\d)\.(?P<count>\d+)"
    r"|\b[Cc]hapters?\s\d\d(?:(?:,|\sto|,?\sand)\s\d\d)*\b"
)
NUMBER = re.compile(r"(\d\d)")
# What may hold no link of ours; code, formulas and raw HTML are fixed text.
NO_LINKS = (
    nodes.reference,
    nodes.title,
    nodes.literal,
    nodes.math,
    nodes.label,
    nodes.FixedTextElement,
)


def chapter_number(page: str) -> str:
    """The two digits with which the file of a chapter or its exercise begins."""
    found = re.match(r"\d\d(?=_)", posixpath.basename(page))
    return found[0] if found else ""


def number_contents(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Put the number of each chapter before its title in the sidebar."""
    for page, contents in env.tocs.items():
        link = contents.next_node(nodes.reference)
        number = chapter_number(page)
        if number and link is not None and not link.next_node(nodes.inline):
            link.insert(0, nodes.inline("", f"{number} ", classes=["course-number"]))
    return []


def number_page(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give the templates a chapter's number, and those of the pages before and after.

    An exercise is no chapter: "next: 06 Exercises" would promise one.
    """
    context["chapter"] = chapter_number(page)
    neighbours = app.env.collect_relations().get(page, [None] * 3)[1:]
    for way, neighbour in zip(("prev", "next"), neighbours):
        number = chapter_number(neighbour or "")
        if number and str(neighbour).startswith("book/"):
            before = f'<span class="course-number">{number} </span>'
            context[way]["title"] = before + context[way]["title"]


def join_lines(element: nodes.TextElement) -> None:
    """Make one text of the lines that the parser keeps apart: a name may span two."""
    parts: list[nodes.Node] = []
    for is_text, run in groupby(element, lambda node: isinstance(node, nodes.Text)):
        same = [*run]
        parts += [nodes.Text("".join(same))] if is_text else same
    element[:] = parts


class Crossrefs(SphinxPostTransform):
    """Link what the text of a page names."""

    default_priority = 400  # when Sphinx has resolved the text's own links
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Mark the theorems, then link all that is named."""
        here = self.env.docname
        self.own = chapter_number(here) if here.startswith("book/") else ""
        self.addresses = {
            chapter_number(page): self.app.builder.get_relative_uri(here, page)
            for page in self.env.found_docs
            if page.startswith("book/") and chapter_number(page)
        }
        links = {link.get("refuri") for link in self.document.findall(nodes.reference)}
        self.linked = {n for n, to in self.addresses.items() if to in links}
        for paragraph in self.document.findall(nodes.paragraph):
            first = next((part for part in paragraph if part.astext()), None)
            bold = first.astext() if isinstance(first, nodes.strong) else ""
            if named := THEOREM.match(bold):
                paragraph["ids"].append(f"theorem-{named[1]}-{named[2]}")
                paragraph["classes"].append("course-theorem")
        for element in self.document.findall(nodes.TextElement):
            join_lines(element)
        for text in [*self.document.findall(self.may_link)]:
            text.parent.replace(text, [*self.with_links(text.astext())])

    def may_link(self, node: nodes.Node) -> bool:
        """Whether a node is text that names something and may hold a link to it."""
        if not isinstance(node, nodes.Text) or not MENTION.search(node.astext()):
            return False
        parent = node.parent
        if isinstance(parent, nodes.strong) and THEOREM.match(node.astext()):
            return False  # the theorem's own name, and then a figure's
        if "caption-number" in parent["classes"]:
            return False
        while parent is not None and not isinstance(parent, NO_LINKS):
            parent = parent.parent
        return parent is None

    def with_links(self, text: str) -> Iterator[nodes.Node]:
        """A text in pieces, what it names linked."""
        end = 0
        for mention in MENTION.finditer(text):
            yield nodes.Text(text[end : mention.start()])
            yield from self.linked_mention(mention)
            end = mention.end()
        yield nodes.Text(text[end:])

    def linked_mention(self, mention: re.Match[str]) -> Iterator[nodes.Node]:
        """One mention; of several chapters all become links, or none."""
        words, kind, chapter = mention[0], mention["kind"], mention["chapter"]
        if kind and chapter in self.addresses:
            anchor = f"#{kind.lower()}-{chapter}-{mention['count']}"
            yield self.link(words, chapter, anchor)
            return
        named = set(NUMBER.findall(words)) & (self.addresses.keys() - {self.own})
        if kind or named <= self.linked:
            yield nodes.Text(words)
            return
        self.linked |= named
        several = words.lower().startswith("chapters")
        for part in NUMBER.split(words) if several else [words]:
            number = part if several else part[-2:]
            yield self.link(part, number) if number in named else nodes.Text(part)

    def link(self, words: str, chapter: str, anchor: str = "") -> nodes.reference:
        """A link whose words stay on one line."""
        page = "" if chapter == self.own else self.addresses[chapter]
        together = NO_BREAK.join(words.split())
        return nodes.reference("", together, internal=True, refuri=page + anchor)


class RenamedAnchors(SphinxPostTransform):
    """Keep the links of others alive: what was renamed answers to its old name, too.

    `renamed_anchors` in _config.yml says {page: {old: new}}; names that end in "-"
    stand for all that begin so. (Pages that moved: `redirects`, of sphinx-reredirects.)
    """

    default_priority = 410
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Add the old anchors of a page."""
        renamed = self.config.renamed_anchors.get(self.env.docname, {})
        places = [n for n in self.document.findall(nodes.Element) if n.get("ids")]
        for old, new in renamed.items():
            whole = "" if new.endswith("-") else "$"
            pattern = re.compile(re.escape(new) + whole)
            found = [(p, i) for p in places for i in p["ids"] if pattern.match(i)]
            for place, anchor in found:
                place["ids"].append(old + anchor.removeprefix(new))
            if not found:
                logger.warning(
                    "renamed_anchors in _config.yml leads from %r to %r, which is not "
                    "on the page; mend or delete the line.",
                    old,
                    new,
                    location=self.env.docname,
                )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the numbers and the links."""
    app.add_config_value("renamed_anchors", {}, "env", types=frozenset({dict}))
    app.add_post_transform(Crossrefs)
    app.add_post_transform(RenamedAnchors)
    app.connect("env-updated", number_contents)
    app.connect("html-page-context", number_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
