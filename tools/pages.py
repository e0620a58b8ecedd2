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
import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

from course_utils.interactive import style
from tools.assets import names_in, quick
from tools.cards import with_card
from tools.files import ROOT
from tools.numbers import with_numbers
from tools.reference import taught
from tools.stamps import published
from tools.tables import with_stacked_tables

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

# Every interactive brings its style along; on the site the stylesheet has it, once. A
# style that stands in the page's body makes the browser look at all elements again.
WIDGET_STYLE = re.compile(r'(<div class="course-widget[^>]*>)<style>.*?</style>', re.S)

# A formula and the punctuation that clings to it: no line breaks between them.
_FORMULA = r'<span class="math">(?:(?!</span>).)*</span>'
CLINGING = re.compile(rf"\(?{_FORMULA}(?:-\w+|[.,;:?!)]+)|\({_FORMULA}", re.S)
# The end of a proof, which stands behind its last word and not on a line of its own.
PROVED = re.compile(r'\s+(?=<span class="math">(?:(?!</span>).)*◼)', re.S)
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
    # looks for a list that the page does not have, and then at every link of the page;
    # course.js marks the section that is being read
    ' data-bs-spy="scroll"': "",
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
    page = WIDGET_STYLE.sub(r"\1", page)
    page = PROVED.sub("&nbsp;", page)
    page = CLINGING.sub(r'<span class="keep">\g<0></span>', page)
    page = PLAIN.sub(r"\1", page)
    page = PRINTED.sub(with_its_lines, page)
    for wrong, right in MENDINGS.items():
        page = page.replace(wrong, right)
    return with_stacked_tables(page)


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
    (static / "interactive.css").write_text(style(), "utf-8")
    pages = [
        page
        for page in out.rglob("*.html")
        if "_static" not in page.relative_to(out).parts
    ]
    chapters = [f"book/{page.stem}" for page in pages if page.parent.name == "book"]
    for page in pages:
        text = with_written_chapters(page.read_text("utf-8"), page.parent)
        text = with_weights_apart(text, page.parent, static)
        name = page.relative_to(out).with_suffix("").as_posix()
        text = with_card(text, name, static, published(), app.config.project)
        page.write_text(mended(with_numbers(text, name, chapters)), "utf-8")
    names = names_in(out)  # of all pages as they are now: the rules they can use
    for page in pages:
        text = quick(page.read_text("utf-8"), page.parent, static, names)
        page.write_text(text, "utf-8")
    shutil.rmtree(static / "vendor", ignore_errors=True)
    for unused in [*static.rglob("*.map"), *static.rglob("*.LICENSE.txt")]:
        unused.unlink()


# For those who meet an exercise on the site, where no cell can be run.
HOW_TO_ANSWER = (
    '<p class="course-see">This page shows the questions before anybody has answered. '
    "To answer, open the notebook: the rocket at the top opens it in Colab, "
    "<code>make lab</code> on your own machine.</p>\n"
)


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
        time = r"<p><strong>Time</strong>.*?</p>\n"
        body = re.sub(time, rf"\g<0>{HOW_TO_ANSWER}", body, count=1, flags=re.S)
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
    app.add_css_file("interactive.css", priority=900)  # after course.css, as in a cell
    app.connect("config-inited", tell_where)
    app.connect("html-page-context", with_companions)
    app.connect("build-finished", finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
