"""Typeset the site's mathematics while it is built: MathJax in V8, SVG on the page.

A reader gets no script, no font and no page that jumps while formulas appear; a formula
that MathJax can't read is a warning, and so stops the build. A Sphinx extension, chosen
by `html_math_renderer: built`. Each glyph's outline stands once on every page that uses
it: `with_glyphs` adds them.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

# The parts of MathJax that a build needs, each building on those before.
_PARTS = (
    "loader.js",
    "core.js",
    "adaptors/liteDOM.js",
    "input/tex.js",
    "output/svg.js",
    "output/svg/fonts/tex.js",
    "a11y/assistive-mml.js",
)
_BEFORE = """
var self = globalThis, global = globalThis;
var console = {log() {}, warn() {}, error() {}};
globalThis.MathJax = {};
"""
_AFTER = """
const all = MathJax._;
const adaptor = all.adaptors.liteAdaptor.liteAdaptor();
all.a11y["assistive-mml"].AssistiveMmlHandler(
  all.handlers.html_ts.RegisterHTMLHandler(adaptor));
const tex = new all.input.tex_ts.TeX({
  packages: ["base", "ams", "newcommand"],
  formatError(jax, error) { throw Error(error.message); },
});
const svg = new all.output.svg_ts.SVG({
  fontCache: "global", font: new all.output.svg.fonts.tex_ts.TeXFont(),
});
const page = all.mathjax.mathjax.document("", {InputJax: tex, OutputJax: svg});
function typeset(source, display) {
  tex.reset();
  try { return "ok" + adaptor.outerHTML(page.convert(source, {display})); }
  catch (error) { return "no" + error.message; }
}
function glyphs() { return adaptor.outerHTML(svg.fontCache.getCache()); }
"""


@functools.cache
def _engine() -> Any:
    """MathJax, loaded once."""
    from py_mini_racer import MiniRacer

    found = importlib.util.find_spec("sphinx-mathjax-offline")
    if found is None or found.origin is None:
        raise RuntimeError("MathJax is missing: pip install sphinx-mathjax-offline")
    folder = Path(found.origin).parent / "static" / "mathjax"
    engine = MiniRacer()
    atexit.register(engine.close)  # left to the interpreter's end, it would hang there
    engine.eval(_BEFORE)
    for part in _PARTS:
        engine.eval((folder / part).read_text("utf-8"))
    engine.eval(_AFTER)
    return engine


@functools.cache
def typeset(source: str, display: bool) -> str:
    """The formula as SVG, beside its MathML for those who listen to the page."""
    answer: str = _engine().call("typeset", source, display)
    if answer.startswith("no"):
        raise ValueError(f"MathJax can't read {source!r}: {answer[2:]}")
    return re.sub(r' data-(mml-node|c|mjx-[a-z]+)="[^"]*"', "", answer[2:])


def with_glyphs(page: str) -> str:
    """The page with the outlines of the glyphs that its formulas use."""
    used = set(re.findall(r'xlink:href="#(MJX-[^"]+)"', page))
    if not used:
        return page
    outlines = re.findall(r'(<path id="([^"]+)".*?</path>)', _engine().call("glyphs"))
    kept = "".join(path for path, name in outlines if name in used)
    hidden = '<svg aria-hidden="true" style="display:none"><defs>'
    return page.replace("</body>", f"{hidden}{kept}</defs></svg></body>", 1)


# ------------------------------------------------------------------- Sphinx's visitors


def _typeset_or_warn(node: nodes.Element, display: bool) -> str:
    try:
        return typeset(node.astext().strip(), display)
    except ValueError as error:
        logger.warning("%s", error, location=node, type="math")
        return ""


def visit_math(self: Any, node: nodes.math) -> None:
    """Write a formula of the running text."""
    self.body.append(f'<span class="math">{_typeset_or_warn(node, False)}</span>')
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, with its number where it has one."""
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if node.get("number"):
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append(_typeset_or_warn(node, True) + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("built", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": False}
