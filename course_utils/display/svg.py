"""SVG as text: attributes, paths, and words with formulas in them.

Colours are the page's own, by name, so that a drawing is as readable on a dark page as
on a light one.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from course_utils.display.figures import COLOURS, ROLE_COLOURS

SERIF = "'STIX Two Text', Charter, Georgia, 'Times New Roman', serif"
FORMULA = re.compile(r"([_^])(\w+)|([A-Za-zα-ω]+)|([^_^A-Za-zα-ω]+)")
LIFT = {"": 0.0, "_": 0.22, "^": -0.36}  # of the text's size, downwards


def colour(name: str) -> str:
    """A colour of the page, by its name or its role; light where there is no page."""
    name = ROLE_COLOURS.get(name, name)
    return f"var(--course-{name}, {COLOURS[name]})"


def number(value: float) -> str:
    """A number in as few characters as the eye needs."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def element(tag: str, content: str | None = None, /, **attributes: Any) -> str:
    """An element; attributes that are None are left out, `_` in a name is a hyphen."""
    inside = "/>" if content is None else f">{content}</{tag}>"
    return f"<{tag}{attributes_of(**attributes)}{inside}"


def attributes_of(**values: Any) -> str:
    """Attributes as they stand in a tag."""
    return "".join(
        f' {key.replace("_", "-")}="{number(v) if isinstance(v, int | float) else v}"'
        for key, v in values.items()
        if v is not None
    )


def path(*parts: str | float) -> str:
    """Letters and numbers as the `d` of a path: path("M", 1, 2, "h", 3)."""
    said = (part if isinstance(part, str) else f"{number(part)} " for part in parts)
    return "".join(said).strip()


def runs_of(text: str) -> Iterator[tuple[str, str, bool]]:
    """Cut a text into runs: the words, `_`, `^` or nothing, and if it is a formula."""
    parts = text.split("$")
    if len(parts) % 2 == 0:
        raise ValueError(
            f"{text!r} has one `$` too many; write `$d_k$` around a formula."
        )
    for i, part in enumerate(parts):
        if i % 2 == 0:
            yield part, "", False
        else:
            for mark, small, letters, rest in FORMULA.findall(part):
                yield small or letters or rest, mark, True


def words(text: str, size: float) -> str:
    """The content of a `<text>`: between `$` letters slant, `_` lowers, `^` lifts.

    Of letters in a formula one or two are symbols and slant; more are a word.
    """
    parts, shift = [], 0.0
    for run, mark, formula in runs_of(text):
        if not run:
            continue
        now = size * LIFT[mark]
        style = attributes_of(
            dy=now - shift if now != shift else None,
            font_family=SERIF if formula else None,
            font_size=(0.8 if mark else 1.08) * size if formula else None,
            font_style="italic" if formula and run.isalpha() and len(run) < 3 else None,
        )
        escaped, shift = html.escape(run), now
        parts.append(f"<tspan{style}>{escaped}</tspan>" if style else escaped)
    return "".join(parts)
