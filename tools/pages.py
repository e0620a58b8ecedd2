"""What the site's pages need beyond their theme: a Sphinx extension.

The theme ships half a megabyte of icons as a script, and some of its HTML can't be used
by everyone. When the pages are written, this takes out what no page uses, puts in the
glyphs of the formulas, and mends what the theme gets wrong.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from tools.mathematics import with_glyphs

# Whole rules of Font Awesome in the theme's stylesheet; course.css draws the few icons.
ICON_RULES = re.compile(
    r'@font-face\{[^}]*Font ?Awesome[^}]*\}|(?:\.fa-[\w-]+:before,?)+\{content:"[^"]*"\}'
)


def mended(page: str) -> str:
    """A page of the theme, with its faults mended."""
    page = re.sub(r"\s*<script src=\"[^\"]*fontawesome\.js[^>]*></script>", "", page)
    page = re.sub(r'\s*<link rel="preload" as="script"[^>]*>', "", page)
    return with_glyphs(page)


def finish(app: Sphinx, error: Exception | None) -> None:
    """Go over all that was written."""
    if error is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    for page in out.rglob("*.html"):
        if "_static" not in page.relative_to(out).parts:
            page.write_text(mended(page.read_text("utf-8")), encoding="utf-8")
    static = out / "_static"
    theme = static / "styles" / "pydata-sphinx-theme.css"
    theme.write_text(ICON_RULES.sub("", theme.read_text("utf-8")), encoding="utf-8")
    shutil.rmtree(static / "vendor", ignore_errors=True)
    (static / "scripts" / "fontawesome.js").unlink(missing_ok=True)
    for unused in [*static.rglob("*.map"), *static.rglob("*.LICENSE.txt")]:
        unused.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the last step."""
    app.connect("build-finished", finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
