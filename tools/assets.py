"""What a page loads before it can be shown, made small: one stylesheet, no waiting.

The theme and its extensions bring a dozen stylesheets and scripts, and a browser waits
for each of them before it shows a word. Here the stylesheets become one file, and the
scripts run after the page has been read, in the order they had.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

STYLESHEET = re.compile(r'[ \t]*<link[^>]*href="([^":]+\.css)(?:\?[^"]*)?"[^>]*>\n?')
SCRIPT = re.compile(r'<script src="([^":]+\.js)(?:\?[^"]*)?"></script>')
IMPORT = re.compile(r'@import\s+"([^"]+)";')
ADDRESS = re.compile(r"url\((?!['\"]?(?:data:|#))['\"]?([^'\")]+)['\"]?\)")


def stylesheet(path: Path, home: Path) -> str:
    """A stylesheet with what it imports, its addresses as seen from `home`."""

    def imported(found: re.Match[str]) -> str:
        return stylesheet(path.parent / found[1], home)

    def moved(found: re.Match[str]) -> str:
        there = os.path.relpath(path.parent / found[1], home)
        return f"url({Path(there).as_posix()})"

    return IMPORT.sub(imported, ADDRESS.sub(moved, path.read_text("utf-8")))


def one_stylesheet(page: str, folder: Path, static: Path) -> str:
    """The page with one link in place of its stylesheets, which become one file.

    Pages that load the same stylesheets share the file: its name is its content's.
    """
    links = list(STYLESHEET.finditer(page))
    if not links:
        return page
    parts = [stylesheet(folder / link[1], static) for link in links]
    text = "\n".join(parts)
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


def quick(page: str, folder: Path, static: Path) -> str:
    """A page that shows its words before its scripts run."""
    return no_waiting(one_stylesheet(page, folder, static), folder)
