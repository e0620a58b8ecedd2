"""Typeset the site's mathematics while it is built: MathJax in V8, SVG on the page.

A reader gets no script, no font and no page that jumps while formulas appear; a formula
that MathJax can't read is a warning, and so stops the build. A Sphinx extension, chosen
by `html_math_renderer: built`. MathJax draws every glyph in groups of groups, thousands
of elements on a page, which a phone feels; here a formula is drawn by one path.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
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
  fontCache: "none", font: new all.output.svg.fonts.tex_ts.TeXFont(),
});
const page = all.mathjax.mathjax.document("", {InputJax: tex, OutputJax: svg});
function typeset(source, display) {
  tex.reset();
  try { return "ok" + adaptor.outerHTML(page.convert(source, {display})); }
  catch (error) { return "no" + error.message; }
}
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


# ------------------------------------------------------------------- one path a formula

SVG = re.compile(r"<svg.*</svg>", re.S)
WIDTH = re.compile(r'<svg[^>]*? width="([\d.]+)ex"')
CLINGING = re.compile(r"\A(?:-\w+|[.,;:?!)]+)")
NAMESPACE, TEXT_COLOUR = "{http://www.w3.org/2000/svg}", "currentColor"
MOVE = re.compile(r"(translate|scale)\(([^)]*)\)")
COMMAND = re.compile(r"([A-Za-z])([^A-Za-z]*)")
NUMBER = re.compile(r"-?[\d.]+")
# Which of a command's numbers are across (0) and which are up (1).
AXES: dict[str, tuple[int, ...]] = {
    "M": (0, 1),
    "L": (0, 1),
    "Q": (0, 1, 0, 1),
    "T": (0, 1),
    "H": (0,),
    "V": (1,),
    "Z": (),
}


def joined(numbers: list[int]) -> str:
    """Numbers as a path wants them: a minus separates, too."""
    return " ".join(map(str, numbers)).replace(" -", "-")


class Place:
    """Where a drawing stands in the formula: how large, and moved by how much."""

    def __init__(self, scale: tuple[float, float], shift: tuple[float, float]):
        self.scale, self.shift = scale, shift

    def within(self, transform: str) -> Place:
        """The place of what is drawn here under an SVG transform."""
        here = self
        for kind, numbers in MOVE.findall(transform):
            x, *rest = map(float, NUMBER.findall(numbers))
            y = rest[0] if rest else (x if kind == "scale" else 0.0)
            (sx, sy), (dx, dy) = here.scale, here.shift
            if kind == "scale":
                here = Place((sx * x, sy * y), here.shift)
            else:
                here = Place(here.scale, (dx + sx * x, dy + sy * y))
        return here

    def moved(self, outline: str) -> str:
        """An outline, drawn at this place, each command counted from the last point.

        So a glyph is the same text wherever it stands, which compresses well.
        """
        start, here = [0, 0], [0, 0]
        drawn: list[str] = []
        for command, numbers in COMMAND.findall(outline):
            axes = AXES[command]
            sizes = [self.scale[axis] for axis in axes]
            at = [round(s * float(n)) for s, n in zip(sizes, NUMBER.findall(numbers))]
            steps = [n - here[axis] for n, axis in zip(at, axes)]
            if command == "M":
                start = at
                if drawn:
                    drawn.append("m" + joined(steps))
                else:
                    shifted = [round(d) + n for d, n in zip(self.shift, at)]
                    drawn.append("M" + joined(shifted))
            else:
                drawn.append(command.lower() + joined(steps))
            for axis, n in zip(axes, at):
                here[axis] = n
            if command == "Z":
                here = list(start)
        return "".join(drawn)


def outlines(element: ElementTree.Element, place: Place) -> Iterator[str]:
    """What an element of MathJax's SVG draws; KeyError where it is no outline."""
    here = place.within(element.get("transform", ""))
    match element.tag.removeprefix(NAMESPACE):
        case "g" if element.get("fill", TEXT_COLOUR) == TEXT_COLOUR:
            for inner in element:
                yield from outlines(inner, here)
        case "path":
            yield here.moved(element.get("d", ""))
        case "rect":  # a bar of a fraction or a root, drawn in the sense of the glyphs
            x, y, width, height = (
                float(element.get(name, 0)) for name in ("x", "y", "width", "height")
            )
            yield here.moved(f"M{x} {y}V{y + height}H{x + width}V{y}Z")
        case other:
            raise KeyError(other)


def one_path(svg: str) -> str:
    """MathJax's SVG, its groups of glyphs drawn by one path in the text's colour.

    A formula with a brace put together from pieces, with a letter that MathJax's fonts
    lack or with a colour stays as it is: those are no outlines in the text's colour.
    """
    whole = ElementTree.fromstring(svg)
    corner = Place((1.0, 1.0), (0.0, 0.0))
    try:
        drawn = "".join(path for part in whole for path in outlines(part, corner))
    except KeyError:
        return svg
    kept = ("style", "width", "height", "viewBox")
    said = "".join(f' {name}="{whole.get(name, "")}"' for name in kept)
    return f'<svg{said} aria-hidden="true"><path d="{drawn}"></path></svg>'


@functools.cache
def typeset(source: str, display: bool) -> str:
    """The formula as SVG, beside its MathML for those who listen to the page."""
    answer: str = _engine().call("typeset", source, display)
    if answer.startswith("no"):
        raise ValueError(f"MathJax can't read {source!r}: {answer[2:]}")
    plain = re.sub(r' data-(mml-node|c|mjx-[a-z]+)="[^"]*"', "", answer[2:])
    return SVG.sub(lambda found: one_path(found[0]), plain)


def width(source: str) -> float:
    """The width of a formula of the running text, in ex; 0 if it can't be read.

    MathJax alone knows it, and says so only in the SVG.
    """
    try:
        return float(WIDTH.findall(typeset(source.strip(), False))[0])
    except ValueError:
        return 0.0


# ----------------------------------------------------------------- what stays together


class Punctuation(SphinxPostTransform):
    """Keep a formula and what clings to it on one line: punctuation, a bracket, "-th".

    The end of a proof stands behind its last word, not on a line of its own.
    """

    default_priority = 430
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Go over the formulas of the running text."""
        for formula in [*self.document.findall(nodes.math)]:
            self.keep_together(formula)

    def keep_together(self, formula: nodes.math) -> None:
        """Take what clings to a formula out of the texts beside it."""
        line = formula.parent
        at = line.index(formula)
        before, after = (
            str(line[i])
            if 0 <= i < len(line) and isinstance(line[i], nodes.Text)
            else ""
            for i in (at - 1, at + 1)
        )
        if "\\blacksquare" in formula.astext() and before:
            line[at - 1] = nodes.Text(before.rstrip() + "\N{NO-BREAK SPACE}")
        opening = "(" if before.endswith("(") else ""
        closing = "".join(CLINGING.findall(after)[:1])
        if not opening and not closing:
            return
        kept = nodes.inline("", opening, formula, classes=["keep"])
        kept += nodes.Text(closing)
        line[at] = kept
        if opening:
            line[at - 1] = nodes.Text(before.removesuffix(opening))
        if closing:
            line[at + 1] = nodes.Text(after.removeprefix(closing))


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
    """Register the renderer and what stays beside a formula."""
    app.add_post_transform(Punctuation)
    app.add_html_math_renderer("built", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": False}
