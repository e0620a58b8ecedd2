"""Numbers by which a reader can find a place, and links to the places they name.

The text says "chapter 08" and "theorem 07.1". Here every chapter gets its number where
its title stands, every figure one of its own, and what is named becomes a link: each
theorem, and each other chapter where a page names it first.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

NO_BREAK = "\N{NO-BREAK SPACE}"
NUMBERED = re.compile(r"(?:^|/)(\d\d)_\w+(?:\.html)?$")
# Where a page names another one, or itself (#): the sidebar, and the way on.
NAMES_A_PAGE = re.compile(
    r'(?:<li class="toctree-l1[^"]*"><a [^>]*href="([^"]*)"[^>]*>'
    r'|<a class="(?:left-prev|right-next)"\s+href="([^"]*)".*?"prev-next-title">)',
    re.S,
)
ARTICLE = re.compile(r'<article class="bd-article">.*?</article>', re.S)
FIGURE = re.compile(
    r'<div class="course-figure"(?: id="([\w-]+)")?([^>]*>\s*<svg.*?</svg>)\s*</div>',
    re.S,
)
THEOREM = re.compile(r"<p>(<strong>Theorem (\d\d)\.(\d+))\b")
# A run of text, or what is passed over: a theorem's own name, other tags, and what may
# hold no link of ours.
NO_LINKS = (
    "a|code|pre|svg|script|style|button|title|h[1-6]|figure|mjx-container|details"
)
TEXT = re.compile(
    rf"{THEOREM.pattern}|<(?P<no>{NO_LINKS})\b.*?</(?P=no)>|<[^>]*>|(?P<text>[^<]+)",
    re.S,
)
MENTION = re.compile(
    r"\b[Tt]heorem\s(?P<chapter>\d\d)\.(?P<theorem>\d+)"
    r"|\b[Cc]hapters?\s\d\d(?:(?:,|\sto|,?\sand)\s\d\d)*\b"
)


def number_of(page: str) -> str | None:
    """The two digits with which a chapter's or an exercise's file begins."""
    found = NUMBERED.search(page)
    return found[1] if found else None


def with_chapter_numbers(page: str, name: str) -> str:
    """The page with the number of every chapter where its title stands.

    The text says "chapter 08"; titles alone would leave a reader to guess which it is.
    """

    def numbered(found: re.Match[str]) -> str:
        address, here = found[1] or found[2], posixpath.dirname(name)
        there = name if address == "#" else posixpath.join(here, address)
        number = number_of(there)
        way_on_to_exercises = found[2] and "exercises/" in there
        if number is None or way_on_to_exercises:  # "01 Exercises" is no chapter
            return found[0]
        return f'{found[0]}<span class="course-number">{number} </span>'

    page = NAMES_A_PAGE.sub(numbered, page)
    own = number_of(name)
    if own is None:
        return page
    line = f'<p class="course-eyebrow">Chapter {own}</p>\n'
    before_title = r'(<article class="bd-article">.*?)(?=<h1>)'
    return re.sub(before_title, lambda m: m[1] + line, page, count=1, flags=re.S)


def with_figure_numbers(page: str, name: str) -> str:
    """The page, each figure of a chapter with its number below it, a link to it."""
    own, count = number_of(name), 0
    if own is None:
        return page

    def numbered(found: re.Match[str]) -> str:
        nonlocal count
        count += 1
        anchor, drawn = found[1] or f"figure-{own}-{count}", found[2]
        link = f'<a href="#{anchor}">Figure {own}.{count}</a>'
        return (
            f'<div class="course-figure" id="{anchor}"{drawn}'
            f'<p class="course-caption">{link}</p></div>'
        )

    return FIGURE.sub(numbered, page)


def with_links(page: str, name: str, chapters: Iterable[str]) -> str:
    """The page, what its text names a link to where it stands.

    Every theorem can be linked to; `chapters` are the names of all chapters' pages.
    """
    own, here = number_of(name), posixpath.dirname(name)
    article = ARTICLE.search(page)
    written = article[0] if article else ""
    where = {
        number: posixpath.relpath(f"{chapter}.html", here)
        for chapter in chapters
        if (number := number_of(chapter))
    }
    # a chapter does not link itself, nor what its text links already
    linked = {number for number, to in where.items() if f'href="{to}"' in written}
    linked |= {own} if own and here == "book" else set()

    def chapter(words: str, number: str) -> str:
        if number in linked or number not in where:
            return words
        linked.add(number)
        together = NO_BREAK.join(words.split())
        return f'<a href="{where[number]}">{together}</a>'

    def mention(found: re.Match[str]) -> str:
        number, theorem = found["chapter"], found["theorem"]
        if theorem:
            page = "" if number == own and here == "book" else where.get(number)
            anchor = f"{page}#theorem-{number}-{theorem}"
            together = NO_BREAK.join(found[0].split())
            return found[0] if page is None else f'<a href="{anchor}">{together}</a>'
        if not re.match(r"[Cc]hapters", found[0]):
            return chapter(found[0], found[0][-2:])
        named = set(re.findall(r"\d\d", found[0]))
        linked.difference_update(named - linked and named - {own})  # all, or none
        return re.sub(r"\d\d", lambda m: chapter(m[0], m[0]), found[0])

    def text(found: re.Match[str]) -> str:
        return MENTION.sub(mention, found["text"]) if found["text"] else found[0]

    page = ARTICLE.sub(lambda found: TEXT.sub(text, found[0]), page, count=1)
    return THEOREM.sub(r'<p class="course-theorem" id="theorem-\2-\3">\1', page)


def with_numbers(page: str, name: str, chapters: Iterable[str]) -> str:
    """The page with all numbers, and links to the places they name."""
    page = with_figure_numbers(with_chapter_numbers(page, name), name)
    return with_links(page, name, chapters)
