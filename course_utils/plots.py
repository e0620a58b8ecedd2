"""One figure style for the whole course, and the few plots that its chapters share.

Every `plot_*` takes arrays and labels, draws, returns the axes and computes nothing but
what it draws. The title is the finding. `show` puts the figure on the page as SVG whose
colours are the page's own, so that it is as readable on a dark page as on a light one.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

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
}
CYCLE = ("blue", "orange", "green", "purple", "red", "grey")
_LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "P")

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
SHADE = 0.5  # of a cell with a number in it: ink can be read on it by day and by night


def _style() -> Any:
    from cycler import cycler

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
    with matplotlib.rc_context(_style()):
        made = Figure(figsize=(WIDTH, height), layout="constrained")
        return made, made.subplots(1, n_columns, sharey=share_y)


def _own_axes(ax: Axes | None, height: float = 3.4) -> Axes:
    return figure(height=height)[1] if ax is None else ax


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


# What stands before the drawing, and its style sheet, which is for the whole page.
_LEFT_OUT = re.compile(
    r"^.*?(?=<svg )|\s*<metadata>.*?</metadata>|\s*<defs>\s*<style.*?</defs>", re.S
)


def _svg(drawn: Figure, prefix: str) -> str:
    """The figure as SVG: colours by name of the page's palette, ids its own."""
    import matplotlib

    file = io.StringIO()
    _plain_powers(drawn)
    with matplotlib.rc_context(_style()):
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        drawn.savefig(file, format="svg", metadata=nothing)
    svg = _LEFT_OUT.sub("", file.getvalue())
    svg = _words(re.sub(r"(scale\([^)]*\)|\d+\.\d\d)\d*", r"\g<1>", svg))
    for name, colour in COLOURS.items():
        svg = re.sub(colour, f"var(--course-{name}, {colour})", svg, flags=re.I)
    return re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{prefix}-", svg)


def show(drawn: Figure | Axes, alt: str, name: str | None = None) -> None:
    """Display a figure as the cell's output, with the text that stands for it.

    `alt` says what is to be seen, for those who don't see it; `name`, where given, is
    the figure's anchor on the page.
    """
    from IPython.display import display

    if not isinstance(alt, str) or len(alt.strip()) < 20:
        raise ValueError(
            f"show got alt = {alt!r}, expected a sentence of 20 characters or more; "
            "say what the figure shows to a reader who can't see it."
        )
    whole: Any = getattr(drawn, "figure", drawn)
    text = html.escape(said := " ".join(alt.split()))
    prefix = name or "f" + hashlib.sha256(text.encode()).hexdigest()[:8]
    svg = _svg(whole, prefix)
    width, height = (round(96 * side) for side in whole.get_size_inches())
    svg = re.sub(
        r"<svg [^>]*?(viewBox=\"[^\"]*\")[^>]*>",
        rf'<svg xmlns="http://www.w3.org/2000/svg" '
        rf'xmlns:xlink="http://www.w3.org/1999/xlink" \1 width="{width}" '
        rf'height="{height}" role="img" aria-label="{text}" '
        r'style="max-width:100%;height:auto;stroke-linejoin:round;stroke-linecap:butt;'
        r'font-family:var(--course-sans, sans-serif)">',
        svg,
        count=1,
    )
    anchor = f' id="{name}"' if name else ""
    card = (
        f'<div class="course-figure"{anchor} style="background:var(--course-surface, '
        f"{COLOURS['surface']});border-radius:6px;padding:.6rem;width:fit-content;"
        f'max-width:100%;box-sizing:border-box">{svg}</div>'
    )
    display({"text/html": card, "text/plain": said}, raw=True)


# ------------------------------------------------------------------------------ plots


def _finish(ax: Axes, title: str, x_label: str, y_label: str, legend: bool) -> Axes:
    import matplotlib

    with matplotlib.rc_context(_style()):
        ax.set_title(title)
        ax.set(xlabel=x_label, ylabel=y_label)
        if legend:
            ax.legend()
    return ax


def _require_labels(labels: Sequence[str] | None, count: int, name: str) -> None:
    if labels is not None and len(labels) != count:
        raise ValueError(
            f"{name} holds {len(labels)} labels for {count} of them; give one each."
        )


def _cells(ax: Axes, colours: np.ndarray) -> None:
    """Draw RGBA cells, first row on top: vectors while few, an image when many."""
    rows, columns = colours.shape[:2]
    if rows * columns <= 1024:
        ax.pcolormesh(
            np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5, colours, lw=0
        )
        ax.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
        ax.set_aspect("equal")
    else:
        ax.imshow(colours, interpolation="none")
    ax.grid(False)
    ax.spines[:].set_visible(True)


def _ticks(ax: Axes, rows: Sequence[str] | None, columns: Sequence[str] | None) -> None:
    from matplotlib.ticker import MaxNLocator

    if rows is None:
        ax.yaxis.set_major_locator(MaxNLocator(8, integer=True))
    else:
        ax.set_yticks(range(len(rows)), rows)
    if columns is None:
        ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    elif sum(len(label) + 2 for label in columns) > 40:
        ax.set_xticks(range(len(columns)), columns, rotation=45, ha="right")
        for label in ax.get_xticklabels():
            label.set(rotation_mode="anchor", va="center")
    else:
        ax.set_xticks(range(len(columns)), columns)
    ax.tick_params(length=0)


def _height(rows: int, columns: int) -> float:
    """Inches for square cells in the figure's width, none of them huge."""
    return 1.4 + min(4.2 * min(rows / columns, 1.4), 0.75 * rows)


def _numbers(ax: Axes, array: np.ndarray, digits: int) -> None:
    for (row, column), value in np.ndenumerate(array):
        text = f"{value:.{digits}f}".replace("-", "\N{MINUS SIGN}")
        ax.text(column, row, text, ha="center", va="center", c=COLOURS["ink"], size=11)


def plot_attention(
    weights: ArrayLike,
    query_labels: Sequence[str] | None = None,
    key_labels: Sequence[str] | None = None,
    *,
    ax: Axes | None = None,
    title: str = "",
    annotate: bool = False,
) -> Axes:
    """Draw attention weights: rows are queries, columns keys, white 0 and blue 1."""
    array = np.asarray(weights, dtype=float)
    if array.ndim != 2:
        raise ValueError(
            f"weights has shape {array.shape}, expected (query, key); pick one batch "
            "entry and one head first, as in `weights[0]`."
        )
    if array.size and not (array.min() >= -1e-6 and array.max() <= 1 + 1e-6):
        raise ValueError(
            f"weights run from {array.min():.3g} to {array.max():.3g}, expected 0 to 1"
            "; scores before the softmax are drawn by plot_matrix."
        )
    _require_labels(query_labels, array.shape[0], "query_labels")
    _require_labels(key_labels, array.shape[1], "key_labels")
    from matplotlib.colors import to_rgba

    ax = _own_axes(ax, _height(*array.shape))
    colours = np.tile(to_rgba(COLOURS["blue"]), (*array.shape, 1))
    colours[..., 3] = array.clip(0, 1) * (SHADE if annotate else 1)
    _cells(ax, colours)
    _ticks(ax, query_labels, key_labels)
    if annotate:
        _numbers(ax, array, digits=2)
    return _finish(ax, title, "key", "query", legend=False)


def plot_matrix(
    array: ArrayLike,
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    *,
    ax: Axes | None = None,
    title: str = "",
    annotate: bool = False,
    limit: float | None = None,
) -> Axes:
    """Draw any matrix: blue above zero, orange below, full colour at `limit`."""
    array = np.asarray(array, dtype=float)
    if array.ndim != 2:
        raise ValueError(f"array has shape {array.shape}, expected (row, column).")
    _require_labels(row_labels, array.shape[0], "row_labels")
    _require_labels(column_labels, array.shape[1], "column_labels")
    from matplotlib.colors import to_rgba

    ax = _own_axes(ax, _height(*array.shape))
    full = np.abs(array).max() if limit is None else limit
    strength = np.abs(array / (full or 1.0)).clip(0, 1)
    positive = (array >= 0)[..., None]
    colours = np.where(positive, to_rgba(COLOURS["blue"]), to_rgba(COLOURS["orange"]))
    colours[..., 3] = strength * (SHADE if annotate else 1)
    _cells(ax, colours)
    _ticks(ax, row_labels, column_labels)
    if annotate:
        _numbers(ax, array, digits=1)
    return _finish(ax, title, "", "", legend=False)


def plot_lines(
    x: ArrayLike,
    series: Mapping[str, ArrayLike],
    *,
    ax: Axes | None = None,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    log_x: bool = False,
    log_y: bool = False,
    middle: str = "mean",
) -> Axes:
    """Draw one line per label: the mean (or median) over seeds in its min-max band.

    Each array is `(x,)` for one run or `(seed, x)` for several.
    """
    if middle not in ("mean", "median"):
        raise ValueError(f"middle is {middle!r}, expected 'mean' or 'median'.")
    across = np.asarray(x)
    ax = _own_axes(ax)
    for index, (label, values) in enumerate(series.items()):
        runs = np.atleast_2d(np.asarray(values, dtype=float))
        if runs.ndim != 2 or runs.shape[1] != len(across):
            raise ValueError(
                f"{label!r} has shape {np.shape(values)}, expected (seed, "
                f"{len(across)}) or ({len(across)},): one value for each x."
            )
        colour = COLOURS[CYCLE[index % len(CYCLE)]]
        ax.plot(
            across,
            getattr(np, middle)(runs, axis=0),
            color=colour,
            linestyle=_LINES[index % len(_LINES)],
            marker=_MARKERS[index % len(_MARKERS)] if len(across) <= 20 else None,
            markersize=5,
            label=label,
        )
        if len(runs) > 1:
            ax.fill_between(
                across, runs.min(0), runs.max(0), color=colour, alpha=0.18, lw=0
            )
    if log_x:
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter("{x:g}")
    if log_y:
        ax.set_yscale("log")
    return _finish(ax, title, x_label, y_label, legend=len(series) > 1)


def plot_bars(
    groups: Mapping[str, ArrayLike],
    *,
    ax: Axes | None = None,
    title: str = "",
    y_label: str = "",
) -> Axes:
    """Draw a bar at each label's mean and a dot for every seed, so that none hides."""
    ax = _own_axes(ax)
    for index, (label, values) in enumerate(groups.items()):
        seeds = np.atleast_1d(np.asarray(values, dtype=float))
        if seeds.ndim != 1 or not seeds.size:
            raise ValueError(
                f"{label!r} has shape {seeds.shape}, expected one number per seed."
            )
        colour = COLOURS[CYCLE[index % len(CYCLE)]]
        ax.bar(index, seeds.mean(), width=0.6, color=colour, alpha=0.35)
        spread = np.linspace(-0.15, 0.15, len(seeds)) if len(seeds) > 1 else [0.0]
        ax.scatter(index + np.asarray(spread), seeds, color=colour, s=22, zorder=3)
    ax.set_xticks(range(len(groups)), list(groups))
    ax.grid(False, axis="x")
    return _finish(ax, title, "", y_label, legend=False)
