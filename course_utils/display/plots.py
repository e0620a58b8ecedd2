"""The few plots that the course's chapters share.

Every `plot_*` takes arrays and labels, draws, returns the axes and computes nothing but
what it draws. The title is the finding. `show` puts the figure on the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from course_utils.display.figures import (
    COLOURS,
    CYCLE,
    MODEL_COLOURS,
    ON_SHADE,
    SHADE,
    figure,
    show,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "COLOURS",
    "CYCLE",
    "MODEL_COLOURS",
    "SHADE",
    "colours_of",
    "figure",
    "plot_attention",
    "plot_bars",
    "plot_lines",
    "plot_matrix",
    "show",
]

_LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "P")


def _own_axes(ax: Axes | None, height: float = 3.4) -> Axes:
    return figure(height=height)[1] if ax is None else ax


def _finish(ax: Axes, title: str, x_label: str, y_label: str, legend: bool) -> Axes:
    import matplotlib

    with matplotlib.rc_context(style()):
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
    if not rows * columns:  # a translator may write nothing at all
        ax.text(0, 0, "nothing to show", ha="center", va="center", c=COLOURS["muted"])
        ax.set(xlim=(-1, 1), ylim=(-1, 1))
    elif rows * columns <= 1024:
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
    return 1.4 + min(4.2 * min(rows / max(columns, 1), 1.4), 0.75 * rows)


def _numbers(ax: Axes, array: np.ndarray, strength: np.ndarray, digits: int) -> None:
    """Write each value into its cell: in ink, or light where the cell is dark."""
    for (row, column), value in np.ndenumerate(array):
        text = f"{value:.{digits}f}".replace("-", "\N{MINUS SIGN}")
        strong = strength[row, column] > SHADE
        ax.text(
            column,
            row,
            text,
            ha="center",
            va="center",
            c=COLOURS["surface" if strong else "ink"],
            size=11,
            gid=f"{ON_SHADE}{_sign_colour(value)}_{row}_{column}" if strong else None,
        )


def _sign_colour(value: float) -> str:
    return "blue" if value >= 0 else "orange"


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
    colours[..., 3] = array.clip(0, 1)
    _cells(ax, colours)
    _ticks(ax, query_labels, key_labels if array.size else [])
    if annotate:
        _numbers(ax, array, colours[..., 3], digits=2)
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
    colours[..., 3] = strength
    _cells(ax, colours)
    _ticks(ax, row_labels, column_labels)
    if annotate:
        _numbers(ax, array, strength, digits=1)
    return _finish(ax, title, "", "", legend=False)


def _model_of(label: str) -> str | None:
    """The longest name of a model with which a label begins: "GRU, gates open"."""
    names = (n for n in MODEL_COLOURS if label.startswith(n))
    names = (n for n in names if not label[len(n) :][:1].isalpha())
    return max(names, key=len, default=None)


def colours_of(
    labels: Iterable[str], models: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Choose a colour for each label: its model's, or the next of the cycle."""
    labels, models = list(labels), models or {}
    for label, model in models.items():
        if label not in labels or model not in MODEL_COLOURS:
            raise ValueError(
                f"models says {label!r} is {model!r}; expected one of the labels "
                f"{labels} and one of the models {sorted(MODEL_COLOURS)}."
            )
    found = {label: models.get(label) or _model_of(label) for label in labels}
    named = {k: MODEL_COLOURS[model] for k, model in found.items() if model}
    free = [c for c in CYCLE if c not in named.values()] or list(CYCLE)
    others = (label for label in labels if label not in named)
    named |= {label: free[i % len(free)] for i, label in enumerate(others)}
    return {label: COLOURS[named[label]] for label in labels}


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
    models: Mapping[str, str] | None = None,
) -> Axes:
    """Draw one line per label: the mean (or median) over seeds in its min-max band.

    Each array is `(x,)` for one run or `(seed, x)` for several. A label that begins
    with the name of a model has its colour; `models` says it of other labels.
    """
    if middle not in ("mean", "median"):
        raise ValueError(f"middle is {middle!r}, expected 'mean' or 'median'.")
    across = np.asarray(x)
    ax = _own_axes(ax)
    colours = colours_of(series, models)
    for index, (label, values) in enumerate(series.items()):
        runs = np.atleast_2d(np.asarray(values, dtype=float))
        if runs.ndim != 2 or runs.shape[1] != len(across):
            raise ValueError(
                f"{label!r} has shape {np.shape(values)}, expected (seed, "
                f"{len(across)}) or ({len(across)},): one value for each x."
            )
        colour = colours[label]
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
    models: Mapping[str, str] | None = None,
) -> Axes:
    """Draw a bar at each label's mean and a dot for every seed, so that none hides.

    Labels and `models` choose the colours as in `plot_lines`.
    """
    ax = _own_axes(ax)
    colours = colours_of(groups, models)
    for index, (label, values) in enumerate(groups.items()):
        seeds = np.atleast_1d(np.asarray(values, dtype=float))
        if seeds.ndim != 1 or not seeds.size:
            raise ValueError(
                f"{label!r} has shape {seeds.shape}, expected one number per seed."
            )
        colour = colours[label]
        ax.bar(index, seeds.mean(), width=0.6, color=colour, alpha=0.35)
        spread = np.linspace(-0.15, 0.15, len(seeds)) if len(seeds) > 1 else [0.0]
        ax.scatter(index + np.asarray(spread), seeds, color=colour, s=22, zorder=3)
    ax.set_xticks(range(len(groups)), list(groups))
    ax.grid(False, axis="x")
    return _finish(ax, title, "", y_label, legend=False)
