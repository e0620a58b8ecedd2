"""One figure style for the whole course, and how a figure comes on the page.

`show` puts a figure there as SVG whose colours are the page's own, so that it is as
readable on a dark page as on a light one, with its caption below it. On the site the
page has these colours; elsewhere (JupyterLab, Colab) a figure brings them along.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of figures, interactives and site, by day. Safe for colour-blind readers;
# on its surface every colour has a contrast of 4.5 or more (the grid apart).
COLOURS = {
    "ink": "#1b2330",
    "muted": "#566070",
    "grid": "#d5dae2",
    "surface": "#fdfdfe",
    "blue": "#1f5fa8",
    "orange": "#b35300",
    "green": "#0a7657",
    "purple": "#8a3d8f",
    "red": "#b3261e",
    "grey": "#69707d",
    "gold": "#7a6200",
}
# The same palette on a dark page.
COLOURS_DARK = {
    "ink": "#e6e9ef",
    "muted": "#a8b1bf",
    "grid": "#3b4452",
    "surface": "#191e27",
    "blue": "#74b3ff",
    "orange": "#f2a65a",
    "green": "#4cc9a0",
    "purple": "#d79adb",
    "red": "#ff9188",
    "grey": "#9ba4b1",
    "gold": "#cdb045",
}
# What a colour means wherever attention is drawn: what is learned has a solid frame,
# what is fixed a dashed one, the residual stream is thick, what is masked is hatched.
ROLE_COLOURS = {
    "queries": "orange",
    "keys": "blue",
    "values": "green",
    "weights": "blue",
    "mask": "muted",
    "stream": "grey",
}
# One colour for each model, in every chapter; a transformer is made of attention.
MODEL_COLOURS = {
    "attention": "blue",
    "transformer": "blue",
    "GRU": "orange",
    "GRU with attention": "green",
    "GPT": "purple",
    "counts": "grey",
    "state space": "red",
    "convolution": "gold",
}
CYCLE = ("blue", "orange", "green", "purple", "red", "grey")

_STYLE: dict[str, Any] = {
    "font.size": 12,
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": COLOURS["muted"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.titlecolor": COLOURS["ink"],
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "grid.color": COLOURS["grid"],
    "text.color": COLOURS["ink"],
    "xtick.color": COLOURS["muted"],
    "ytick.color": COLOURS["muted"],
    "xtick.labelcolor": COLOURS["ink"],
    "ytick.labelcolor": COLOURS["ink"],
    "legend.frameon": False,
    "legend.fontsize": 12,
    "lines.linewidth": 2,
    "savefig.facecolor": "none",
    "svg.hashsalt": "course",
    "svg.fonttype": "none",  # words, not outlines: small, and in the page's own font
}
WIDTH = 6.0  # inches: with 12-point text still readable on a phone
SHADE = 0.5  # of a colour: up to here ink can be read on it, by day and by night
ON_SHADE = "text_on_"  # the id of words on a stronger shade begins so, and names it


def style() -> Any:
    """Matplotlib's settings for the figures of the course."""
    from matplotlib.rcsetup import cycler

    return _STYLE | {"axes.prop_cycle": cycler(color=[COLOURS[c] for c in CYCLE])}


def figure(
    n_columns: int = 1, height: float = 3.4, share_y: bool = False
) -> tuple[Figure, Any]:
    """Start a figure in the course's style; return it with its axes (an array if many).

    No pyplot state is touched: nothing to close, no backend chosen.
    """
    import matplotlib
    from matplotlib.figure import Figure

    if n_columns < 1:
        raise ValueError(f"figure got n_columns = {n_columns}, expected 1 or more.")
    with matplotlib.rc_context(style()):
        made = Figure(figsize=(WIDTH, height), layout="constrained")
        return made, made.subplots(1, n_columns, sharey=share_y)


# ------------------------------------------------------------------------ on the page


_SUPERSCRIPT = str.maketrans("-\N{MINUS SIGN}0123456789", "⁻⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _plain_powers(drawn: Figure) -> None:
    """Write 10⁻³ on logarithmic axes in letters, where matplotlib sets a formula."""
    from matplotlib.ticker import LogFormatterMathtext, LogFormatterSciNotation

    class Powers(LogFormatterSciNotation):
        def __call__(self, x: float, pos: int | None = None) -> str:
            said = re.sub(r"\$|\\mathdefault\{(.*)\}", r"\1", super().__call__(x, pos))
            said = said.replace("\\times", "·")
            said = re.sub(r"\^\{(.*?)\}", lambda m: m[1].translate(_SUPERSCRIPT), said)
            return "1" if said == "10⁰" else said.removesuffix("·10⁰")

    for axis in (axis for ax in drawn.axes for axis in (ax.xaxis, ax.yaxis)):
        for kind in ("major", "minor"):
            formatter = getattr(axis, kind).formatter
            if isinstance(formatter, LogFormatterMathtext):
                plain = Powers(labelOnlyBase=formatter.labelOnlyBase)
                getattr(axis, f"set_{kind}_formatter")(plain)


def _words(svg: str) -> str:
    """The figure without what matplotlib says of every word: `show` says it once."""
    svg = re.sub(r"(; )?font-family: '[^;\"]*", "", svg)
    return re.sub(r' transform="rotate\(-?0 [^"]*"', "", svg)


def _rim(found: re.Match[str]) -> str:
    """Give light words on a strong shade a rim of the full colour.

    On a half-strong shade neither ink nor light is easy to read; on the full colour of
    the palette light is, by day and by night.
    """
    rim = f"stroke: {COLOURS[found[1]]}; stroke-width: 2.5px; paint-order: stroke; "
    return found[0] + rim


# What stands before the drawing, and its style sheet, which is for the whole page.
_LEFT_OUT = re.compile(
    r"^.*?(?=<svg )|\s*<metadata>.*?</metadata>|\s*<defs>\s*<style.*?</defs>", re.S
)


def _shorter_numbers(tag: re.Match[str]) -> str:
    """Coordinates to two digits; the words between two tags stay as they are."""
    return re.sub(r"(scale\([^)]*\)|\d+\.\d\d)\d*", r"\g<1>", tag[0])


def _with_all_words(drawn: Figure) -> Any:
    """The figure's box in inches, made larger where words would run over its edge.

    A page sets them in its own font, a little larger or smaller than matplotlib does.
    """
    from matplotlib.transforms import Bbox

    drawn.draw_without_rendering()
    return Bbox.union([drawn.bbox_inches, drawn.get_tightbbox().padded(0.1)])


def _svg(drawn: Figure, prefix: str, whole: bool = False) -> str:
    """The figure as SVG: colours by name of the page's palette, ids its own.

    A figure that is `whole` has no words that run over its edge.
    """
    import matplotlib

    file = io.StringIO()
    _plain_powers(drawn)
    with matplotlib.rc_context(style()):
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        box = None if whole else _with_all_words(drawn)
        drawn.savefig(file, format="svg", metadata=nothing, bbox_inches=box)
    svg = _LEFT_OUT.sub("", file.getvalue())
    svg = _words(re.sub(r"<[^>]+>", _shorter_numbers, svg))
    svg = re.sub(rf'"{ON_SHADE}([a-z]+)[^"]*">\s*<text style="', _rim, svg)
    for name, colour in COLOURS.items():
        svg = re.sub(colour, f"var(--course-{name}, {colour})", svg, flags=re.I)
    return re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{prefix}-", svg)


def palette_css(colours: dict[str, str]) -> str:
    """A palette as CSS variables."""
    return "".join(f"--course-{name}:{colour};" for name, colour in colours.items())


def dark_css(what: str, declarations: str) -> str:
    """CSS for the elements `what` where the page is dark, or else its reader's system.

    The site says so by `data-theme`, Colab by `theme`, JupyterLab by
    `data-jp-theme-light`; the system is asked only where none of them has chosen.
    """
    undecided = ":root:not([data-theme],[theme]) body:not([data-jp-theme-light])"
    dark = ":is([data-theme=dark],[theme=dark],[data-jp-theme-light=false])"
    return (
        f"@media(prefers-color-scheme:dark){{{undecided} {what}{{{declarations}}}}}"
        f"{dark} {what}{{{declarations}}}"
    )


def figure_style() -> str:
    """The style that a figure or a diagram brings along; the site has its own.

    What is drawn in black for want of a colour, and the ground of a legend, follow too;
    of two drawings a phone shows the one that was made for it.
    """
    ink, surface, grid = (
        f"var(--course-{name},{COLOURS[name]})" for name in ("ink", "surface", "grid")
    )
    return (
        f"<style>.course-figure svg{{fill:{ink}}}"
        '.course-figure g[id*="-legend_"]>g:first-child>path[style*="#ffffff"]'
        f"{{fill:{surface}!important;stroke:{grid}!important}}"
        "@media(max-width:600px){.course-figure .course-wide{display:none!important}"
        ".course-figure .course-narrow{display:block!important}}"
        f"{dark_css(':is(.course-figure,.course-diagram)', palette_css(COLOURS_DARK))}"
        "</style>"
    )


def figure_html(
    drawing: str, caption: str = "", name: str | None = None, kind: str = ""
) -> str:
    """A drawing as a page shows it: on the page's surface, its caption below it.

    Maths in the caption stands between dollars, as in Markdown; JupyterLab sets it, and
    so does the site, which also numbers the figure. `kind` is a second class.
    """
    words = " ".join(caption.split())
    if words.count("$") % 2:
        raise ValueError(
            f"the caption {words!r} has {words.count('$')} dollars, expected an even "
            "number; put one before and one after each formula."
        )
    anchor = f' id="{name}"' if name else ""
    below = (
        '<figcaption style="font-size:.9em;line-height:1.45;margin-top:.4em;width:0;'
        f'min-width:100%;color:var(--course-muted, {COLOURS["muted"]})">'
        f"{html.escape(words)}</figcaption>"
    )
    return (
        f'<figure class="{f"course-figure {kind}".strip()}"{anchor} style="background:'
        f"var(--course-surface, {COLOURS['surface']});border-radius:6px;padding:.6rem;"
        'margin:0;width:fit-content;max-width:100%;box-sizing:border-box">'
        f"{figure_style()}{drawing}{below if words else ''}</figure>"
    )


def require_alt(alt: Any) -> str:
    """The text that stands for a figure, in one line; refuse one that says nothing."""
    if not isinstance(alt, str) or len(alt.strip()) < 20:
        raise ValueError(
            f"show got alt = {alt!r}, expected a sentence of 20 characters or more; "
            "say what the figure shows to a reader who can't see it."
        )
    return " ".join(alt.split())


def _element(svg: str, size: Any, attributes: str, hidden: bool = False) -> str:
    """A drawing with the size, in pixels, and the font that it has on the page."""
    width, height = (round(side) for side in size)
    shown = "display:none;margin:auto;" if hidden else ""
    return re.sub(
        r"<svg [^>]*?(viewBox=\"[^\"]*\")[^>]*>",
        rf'<svg xmlns="http://www.w3.org/2000/svg" '
        rf'xmlns:xlink="http://www.w3.org/1999/xlink" \1 width="{width}" '
        rf'height="{height}" {attributes} style="{shown}max-width:100%;height:auto;'
        r"stroke-linejoin:round;stroke-linecap:butt;"
        r'font-family:var(--course-sans, sans-serif)">',
        svg,
        count=1,
    )


def show(
    drawn: Figure | Axes,
    alt: str,
    name: str | None = None,
    caption: str = "",
    narrow: bool = True,
) -> None:
    """Display a figure as the cell's output, with the text that stands for it.

    `alt` says what is to be seen, for those who don't see it; `name`, where given, is
    the figure's anchor on the page; `caption` says what dots, bands and dotted lines
    mean, and over how many seeds. A phone shows a second drawing, laid out for it,
    unless `narrow` is False.
    """
    from IPython.display import display

    from course_utils.display.narrow import narrow as laid_out_narrow

    said = require_alt(alt)
    whole: Any = getattr(drawn, "figure", drawn)
    text = html.escape(said)
    prefix = name or "f" + hashlib.sha256(text.encode()).hexdigest()[:8]
    role = f'role="img" aria-label="{text}"'
    svg, size = _svg(whole, prefix), 96 * whole.get_size_inches()
    small = laid_out_narrow(whole) if narrow else None
    if small is None:
        svg = _element(svg, size, role)
    else:
        svg = _element(svg, size, f'class="course-wide" {role}')
        second, size = _svg(small, f"{prefix}-narrow", True), small.bbox.size
        svg += _element(second, size, f'class="course-narrow" {role}', hidden=True)
    page = figure_html(svg, caption, name)
    plain = "\n".join(filter(None, (said, " ".join(caption.split()))))
    display({"text/html": page, "text/plain": plain}, raw=True)
