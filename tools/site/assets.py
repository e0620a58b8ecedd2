"""What a page loads before it can be shown, made small: one stylesheet, no waiting.

The theme and its extensions bring a dozen stylesheets and scripts, and a browser waits
for each of them before it shows a word. Here the stylesheets become one file without
the rules that no page can use, and the scripts run after the page has been read, in the
order they had.

The templates get one name while the pages are written; the file is made when the last
one is there, for only then it is known which rules are used. The theme's own files come
packed, so what no page needs is taken out of them with regular expressions: one that
finds nothing is an error, so that a new theme can't pass unnoticed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import tinycss2
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from tinycss2.ast import AtRule, Node, QualifiedRule

IMPORT = re.compile(r'@import\s+"([^"]+)";')
ADDRESS = re.compile(r"url\((?!['\"]?(?:data:|#))['\"]?([^'\")]+)['\"]?\)")
NAME = re.compile(r"[\w-]+")
CONDITIONS = ("media", "supports")
MADE_UP = {"bs-tooltip-auto"}  # a name that a script puts together
# What is taken out of the theme's files. They stand before Sphinx's own in a page.
THEME_STYLES = ("_static/styles/theme.css", "_static/styles/pydata-sphinx-theme.css")
THEME_SCRIPT = "_static/scripts/pydata-sphinx-theme.js"
UNUSED = ("scripts/fontawesome.js", "vendor")
# Whole rules of Font Awesome; course.css draws the few icons.
ICON_RULES = re.compile(
    r"@font-face\{[^}]*Font ?Awesome[^}]*\}"
    r'|(?:\.fa-[\w-]+:before,?)+\{content:"[^"]*"\}'
)
# The theme measures every box of a page at once, to make reachable by keyboard what
# scrolls in it; course.js does that, too, and a few milliseconds at a time.
TAB_STOPS = re.compile(
    re.escape(
        ".forEach((e=>{e.tabIndex=e.scrollWidth>e.clientWidth"
        "||e.scrollHeight>e.clientHeight?0:-1}))"
    )
)


def take_out(pattern: re.Pattern[str], file: Path) -> None:
    """Take all that matches out of a file of the theme; an error if nothing does."""
    text, count = pattern.subn("", file.read_text("utf-8"))
    if not count:
        raise ExtensionError(
            f"nothing in {file} matches {pattern.pattern}: the theme has changed. Look "
            "at it, and mend or delete the pattern in tools/site/assets.py."
        )
    file.write_text(text, "utf-8")


def names_in(site: Path) -> frozenset[str]:
    """Every word of the site's pages and scripts: what a selector can ask for."""
    files = [path for kind in ("*.html", "*.js") for path in site.rglob(kind)]
    found = (NAME.findall(path.read_text("utf-8")) for path in files)
    return frozenset(MADE_UP.union(*found))


def asked_for(selector: Iterable[Node]) -> Iterator[str]:
    """The elements, classes and ids that a selector names outside of brackets."""
    before = ""
    for token in selector:
        if token.type == "hash" or (token.type == "ident" and before != ":"):
            yield token.value
        before = token.value if token.type == "literal" else ""


def selectors(rule: QualifiedRule) -> list[list[Node]]:
    """A rule's selectors, one by one."""
    found: list[list[Node]] = [[]]
    for token in rule.prelude:
        if token.type == "literal" and token.value == ",":
            found.append([])
        else:
            found[-1].append(token)
    return found


def useful(rules: Iterable[Node], names: frozenset[str]) -> str:
    """The rules of which some selector names only what is on the site."""
    kept = []
    for rule in rules:
        if isinstance(rule, QualifiedRule):
            mine = [s for s in selectors(rule) if names.issuperset(asked_for(s))]
            head = ",".join(tinycss2.serialize(s).strip() for s in mine)
            if mine:
                kept.append(f"{head}{{{tinycss2.serialize(rule.content).strip()}}}")
        elif isinstance(rule, AtRule) and rule.lower_at_keyword in CONDITIONS:
            inside = useful(tinycss2.parse_rule_list(rule.content, True, True), names)
            head = tinycss2.serialize(rule.prelude).strip()
            if inside:
                kept.append(f"@{rule.lower_at_keyword} {head}{{\n{inside}\n}}")
        else:
            kept.append(rule.serialize())
    return "\n".join(kept)


def pruned(text: str, names: frozenset[str]) -> str:
    """A stylesheet without its comments and the rules that no page can use."""
    return useful(tinycss2.parse_stylesheet(text, True, True), names)


def stylesheet(path: Path, home: Path) -> str:
    """A stylesheet with what it imports, its addresses as seen from `home`."""

    def imported(found: re.Match[str]) -> str:
        return stylesheet(path.parent / found[1], home)

    def moved(found: re.Match[str]) -> str:
        there = os.path.relpath(path.parent / found[1], home)
        return f"url({Path(there).as_posix()})"

    return IMPORT.sub(imported, ADDRESS.sub(moved, path.read_text("utf-8")))


class Bundle:
    """The stylesheets of the pages as one file, their scripts deferred."""

    def __init__(self) -> None:
        self.styles: dict[str, tuple[str, ...]] = {}

    def link(
        self, app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any
    ) -> None:
        """Let a page load one stylesheet, and its scripts when it has been read.

        The settings that the scripts share are written into it. The stylesheet's name
        comes from what it is made of, as far as that is there already, so that no
        browser shows a page with an old one.
        """
        out = Path(app.outdir)
        files = sorted(context["css_files"], key=lambda file: file.priority)
        styles = (*THEME_STYLES, *(str(file.filename) for file in files))
        there = [out / style for style in styles if (out / style).is_file()]
        content = b"".join([*map(str.encode, styles), *map(Path.read_bytes, there)])
        name = f"_static/site.{hashlib.sha256(content).hexdigest()[:12]}.css"
        self.styles[name] = styles
        context["css_files"] = [type(files[0])(name, rel="stylesheet", type="text/css")]
        scripts = []
        for script in context["script_files"]:
            if script.filename and script.filename.endswith("documentation_options.js"):
                text = (out / script.filename).read_text("utf-8")
                script = type(script)(None, priority=script.priority, body=text)
            elif script.filename:
                script.attributes["defer"] = "defer"
            scripts.append(script)
        context["script_files"] = scripts

    def write(self, app: Sphinx, error: Exception | None) -> None:
        """Make the theme's files small, then one of all stylesheets."""
        if error is not None or app.builder.format != "html":
            return
        out = Path(app.outdir)
        take_out(ICON_RULES, out / THEME_STYLES[1])
        take_out(TAB_STOPS, out / THEME_SCRIPT)
        for unused in (out / "_static" / name for name in UNUSED):
            shutil.rmtree(unused) if unused.is_dir() else unused.unlink()
        for unused in (out / "_static").rglob("*.map"):
            unused.unlink()
        names = names_in(out)
        for name, styles in self.styles.items():
            texts = [stylesheet(out / style, out / "_static") for style in styles]
            (out / name).write_text(pruned("\n".join(texts), names), "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what is done to every page, and after the last."""
    bundle = Bundle()
    app.connect("html-page-context", bundle.link, priority=900)
    app.connect("build-finished", bundle.write, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
