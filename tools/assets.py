"""What a page loads before it can be shown, made small: one stylesheet, no waiting.

The theme and its extensions bring a dozen stylesheets and scripts, and a browser waits
for each of them before it shows a word. Here the stylesheets become one file without
the rules that no page can use, and the scripts run after the page has been read, in the
order they had.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import tinycss2
from tinycss2.ast import AtRule, Node, QualifiedRule

STYLESHEET = re.compile(r'[ \t]*<link[^>]*href="([^":]+\.css)(?:\?[^"]*)?"[^>]*>\n?')
SCRIPT = re.compile(r'<script src="([^":]+\.js)(?:\?[^"]*)?"></script>')
IMPORT = re.compile(r'@import\s+"([^"]+)";')
ADDRESS = re.compile(r"url\((?!['\"]?(?:data:|#))['\"]?([^'\")]+)['\"]?\)")
NAME = re.compile(r"[\w-]+")
CONDITIONS = ("media", "supports")
MADE_UP = {"bs-tooltip-auto"}  # a name that a script puts together


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


@lru_cache(maxsize=4)
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


def one_stylesheet(page: str, folder: Path, static: Path, names: frozenset[str]) -> str:
    """The page with one link in place of its stylesheets, which become one file.

    Pages that load the same stylesheets share the file: its name is its content's.
    """
    links = list(STYLESHEET.finditer(page))
    if not links:
        return page
    parts = [stylesheet(folder / link[1], static) for link in links]
    text = pruned("\n".join(parts), names)
    name = f"site.{hashlib.sha256(text.encode()).hexdigest()[:12]}.css"
    (static / name).write_text(text, encoding="utf-8")
    up = "../" * len(folder.relative_to(static.parent).parts)
    first = f'    <link rel="stylesheet" href="{up}_static/{name}">\n'
    start = links[0].start()
    return page[:start] + first + STYLESHEET.sub("", page[start:])


def no_waiting(page: str, folder: Path) -> str:
    """The page with its scripts deferred, the settings they share written into it."""

    def later(found: re.Match[str]) -> str:
        if found[1].endswith("documentation_options.js"):
            return f"<script>{(folder / found[1]).read_text('utf-8')}</script>"
        return found[0].replace("<script ", "<script defer ")

    return SCRIPT.sub(later, page)


def quick(page: str, folder: Path, static: Path, names: frozenset[str]) -> str:
    """A page that shows its words before its scripts run."""
    return no_waiting(one_stylesheet(page, folder, static, names), folder)
