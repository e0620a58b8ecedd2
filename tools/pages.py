"""What the site's pages need beyond their theme: a Sphinx extension.

The theme ships half a megabyte of icons as a script, and some of its HTML can't be used
by everyone. When the pages are written, this takes out what no page uses, mends what
the theme gets wrong, and puts the weights of a model into a file of their own, which is
loaded when a reader asks for it.
"""

from __future__ import annotations

import hashlib
import html
import os
import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

from tools.assets import names_in, quick
from tools.cards import with_card
from tools.files import ROOT
from tools.reference import taught
from tools.stamps import published

# Whole rules of Font Awesome in the theme's stylesheet; course.css draws the few icons.
ICON_RULES = re.compile(
    r"@font-face\{[^}]*Font ?Awesome[^}]*\}"
    r'|(?:\.fa-[\w-]+:before,?)+\{content:"[^"]*"\}'
)

# The theme measures every box of a page at once, to make reachable by keyboard what
# scrolls in it; course.js does that, too, and a few milliseconds at a time.
TAB_STOPS = (
    ".forEach((e=>{e.tabIndex=e.scrollWidth>e.clientWidth"
    "||e.scrollHeight>e.clientHeight?0:-1}))"
)

# What `live_transformer` embeds for notebooks: the packed weights of a model.
WEIGHTS = re.compile(
    r'(<script type="application/json" data-weights="([\w-]+)")>([^<]+)</script>'
)

# A formula and the punctuation that clings to it: no line breaks between them.
_FORMULA = r'<span class="math">(?:(?!</span>).)*</span>'
CLINGING = re.compile(rf"\(?{_FORMULA}[.,;:?!)]+|\({_FORMULA}", re.S)
# Names, signs and spaces of code, which have the colour of the text around them.
PLAIN = re.compile(r'<span class="(?:n|nn|o|p|w)">([^<]*)</span>')
# What a cell printed. Sentences go on in the next line where a screen is narrow; what
# has columns, with gaps or brackets in it, keeps its lines and is scrolled.
PRINTED = re.compile(
    r'<div class="output stream([^>]*>(?:<[^>]*>)*<pre>)(.*?)</pre>', re.S
)
COLUMNS = re.compile(r"\S {2,}\S|\[\[|^ +\S", re.M)
# What the theme and docutils write that some readers can't use.
MENDINGS = {
    # text outside every landmark
    '<div id="pst-primary-sidebar"': '<div role="complementary" aria-label="Pages" '
    'id="pst-primary-sidebar"',
    # a role that is deprecated, in a list that then has no items
    'role="doc-biblioentry"': 'role="listitem"',
    # a heading with nothing in it
    '<th class="head"><p></p></th>': "<td></td>",
}


def with_its_lines(found: re.Match[str]) -> str:
    """What a cell printed, marked where its lines may be broken."""
    if COLUMNS.search(re.sub(r"<[^>]*>", "", found[2])):
        return found[0]
    return f'<div class="output stream wraps{found[1]}{found[2]}</pre>'


def mended(page: str) -> str:
    """A page of the theme, with its faults mended."""
    page = re.sub(r"\s*<script src=\"[^\"]*fontawesome\.js[^>]*></script>", "", page)
    page = re.sub(r'\s*<link rel="preload" as="script"[^>]*>', "", page)
    page = CLINGING.sub(r'<span class="keep">\g<0></span>', page)
    page = PLAIN.sub(r"\1", page)
    page = PRINTED.sub(with_its_lines, page)
    for wrong, right in MENDINGS.items():
        page = page.replace(wrong, right)
    return page


# Where a page names another one, or itself (#): the sidebar, and the way on.
NAMES_A_PAGE = re.compile(
    r'(?:<li class="toctree-l1[^"]*"><a [^>]*href="([^"]*)"[^>]*>'
    r'|<a class="(?:left-prev|right-next)"\s+href="([^"]*)".*?"prev-next-title">)',
    re.S,
)
ARTICLE = re.compile(r'(<article class="bd-article">.*?)(?=<h1>)', re.S)
NUMBERED = re.compile(r"(?:^|/)(\d\d)_\w+(?:\.html)?$")


def with_numbers(page: str, name: str) -> str:
    """The page with the number of every chapter where its title stands.

    The text says "chapter 08"; titles alone would leave a reader to guess which it is.
    """

    def numbered(found: re.Match[str]) -> str:
        address, here = found[1] or found[2], posixpath.dirname(name)
        there = name if address == "#" else posixpath.join(here, address)
        number = NUMBERED.search(there)
        way_on_to_exercises = found[2] and "exercises/" in there
        if number is None or way_on_to_exercises:  # "01 Exercises" is no chapter
            return found[0]
        return f'{found[0]}<span class="course-number">{number[1]} </span>'

    page = NAMES_A_PAGE.sub(numbered, page)
    own = NUMBERED.search(name)
    if own is None:
        return page
    line = f'<p class="course-eyebrow">Chapter {own[1]}</p>\n'
    return ARTICLE.sub(lambda found: found[1] + line, page, count=1)


def with_written_chapters(page: str, folder: Path) -> str:
    """The map of the course, each chapter that is written a link."""

    def link(found: re.Match[str]) -> str:
        written = (folder / f"{found[1]}.html").is_file()
        return f'<a href="{found[1]}.html">' if written else "<a>"

    return re.sub(r'<a data-page="(\w+)">', link, page)


def with_weights_apart(page: str, folder: Path, static: Path) -> str:
    """The page without its models' weights: each in a script that can be loaded.

    A script and not JSON, because a page that is opened from a file may load no other.
    """

    def move(found: re.Match[str]) -> str:
        element, name, weights = found.groups()
        mark = hashlib.sha256(weights.encode()).hexdigest()[:8]
        file = static / "weights" / f"{name}-{mark}.js"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f'(window.courseWeights ||= {{}})["{name}"] = {weights};\n', "utf-8"
        )
        address = Path(os.path.relpath(file, folder)).as_posix()
        return f'{element} data-src="{address}"></script>'

    return WEIGHTS.sub(move, page)


def finish(app: Sphinx, error: Exception | None) -> None:
    """Go over all that was written."""
    if error is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    static = out / "_static"
    theme = static / "styles" / "pydata-sphinx-theme.css"
    theme.write_text(ICON_RULES.sub("", theme.read_text("utf-8")), encoding="utf-8")
    script = static / "scripts" / "pydata-sphinx-theme.js"
    script.write_text(script.read_text("utf-8").replace(TAB_STOPS, ""), "utf-8")
    (static / "scripts" / "fontawesome.js").unlink(missing_ok=True)
    pages = [
        page
        for page in out.rglob("*.html")
        if "_static" not in page.relative_to(out).parts
    ]
    for page in pages:
        text = with_written_chapters(page.read_text("utf-8"), page.parent)
        text = with_weights_apart(text, page.parent, static)
        name = page.relative_to(out).with_suffix("").as_posix()
        text = with_card(text, name, static, published(), app.config.project)
        page.write_text(mended(with_numbers(text, name)), "utf-8")
    names = names_in(out)  # of all pages as they are now: the rules they can use
    for page in pages:
        text = quick(page.read_text("utf-8"), page.parent, static, names)
        page.write_text(text, "utf-8")
    shutil.rmtree(static / "vendor", ignore_errors=True)
    for unused in [*static.rglob("*.map"), *static.rglob("*.LICENSE.txt")]:
        unused.unlink()


def in_the_package(names: list[tuple[str, str]], reference: str) -> str:
    """A line that leads to the reference of what a chapter teaches."""
    links = [f'<a href="{reference}#{at}"><code>{x}</code></a>' for x, at in names]
    return f'<p class="course-see">In the package: {", ".join(links)}.</p>\n'


def with_companions(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Join chapter, exercise and reference: each leads to the others.

    The title of its chapter, which an exercise names, becomes a link; both end with the
    names that the chapter teaches. (A chapter links its exercise in its own text.)
    """
    folder, _, name = page.rpartition("/")
    if folder not in ("book", "exercises") or not name[:2].isdigit():
        return
    body = context["body"]
    if folder == "exercises":
        title = app.env.titles[f"book/{name}"].astext()
        link = app.builder.get_relative_uri(page, f"book/{name}")
        words = r"\s+".join(map(re.escape, html.escape(title, quote=False).split()))
        named = rf"<em>{words}</em>"  # wherever its lines break
        body = re.sub(named, rf'<a href="{link}">\g<0></a>', body, count=1)
    names = taught(Path(app.srcdir) / "book" / "api.md", ROOT).get(name[:2])
    if names and "book/api" in app.env.titles:
        line = in_the_package(names, app.builder.get_relative_uri(page, "book/api"))
        section = r'(<section id="exercises">.*?)(?=</section>)'
        if folder == "book":
            body = re.sub(section, lambda m: m[1] + line, body, count=1, flags=re.S)
        else:
            body = re.sub(r"(?=</section>\s*$)", lambda m: line, body, count=1)
    context["body"] = body


def tell_where(app: Sphinx, config: Config) -> None:
    """Give the address under which the site is published to all that name it."""
    config.ogp_site_url = config.html_baseurl = published()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the first step and the last."""
    app.connect("config-inited", tell_where)
    app.connect("html-page-context", with_companions)
    app.connect("build-finished", finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
