"""Loss against size, data and operations, and laws that are drawn beyond their points.

Used in chapter 19.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.display.figures import COLOURS, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = Mapping[str, Any]


def _log_axes(ax: Axes, ticks: Sequence[float], x_label: str) -> None:
    ax.set(xscale="log", yscale="log", xlabel=x_label)
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_yticks([], minor=True)


def plot_scaling(points: Sequence[Point], title: str) -> Axes:
    """Draw `test` against `parameters`, a line for each `tokens`, and beside it against
    operations, a line for each size. Bands reach from the lowest seed to the highest.
    """
    _, (left, right) = figure(2, height=3.8, share_y=True)
    tokens, sizes = (
        sorted({p[key] for p in points}) for key in ("tokens", "parameters")
    )
    runs = {
        (n, d): [p["test"] for p in points if (p["parameters"], p["tokens"]) == (n, d)]
        for n in sizes
        for d in tokens
    }
    roles = ("grey", "orange", "green", "blue")
    for d, marker, role in zip(tokens, "osD^", roles):
        colour, found = COLOURS[role], [runs[n, d] for n in sizes]
        means = [float(np.mean(f)) for f in found]
        left.plot(
            sizes, means, marker=marker, ms=4.5, color=colour, label=f"{d / 1e6:g}"
        )
        low, high = [min(f) for f in found], [max(f) for f in found]
        left.fill_between(sizes, low, high, color=colour, alpha=0.2, lw=0)
    for i, n in enumerate(sizes):
        means = [float(np.mean(runs[n, d])) for d in tokens]
        shade = 0.3 + 0.7 * i / max(len(sizes) - 1, 1)
        spent = [6 * n * d for d in tokens]
        right.plot(spent, means, ".-", lw=1.3, color=COLOURS["purple"], alpha=shade)
    _log_axes(left, (1.5, 2, 2.5), "parameters N")
    _log_axes(right, (1.5, 2, 2.5), "operations 6ND")
    left.set_ylabel("nats a byte, test")
    left.legend(title="million tokens", fontsize=10, title_fontsize=10)
    left.set_title(title, loc="left", weight="bold")
    return left


def plot_laws(
    points: Sequence[Point],
    laws: Mapping[str, Callable[[float], float]],
    larger: float,
    truth: Sequence[float],
    title: str,
) -> Axes:
    """Draw known losses, the laws up to a `larger` size, and what was found there."""
    _, ax = figure(height=3.8)
    n = [p["parameters"] for p in points]
    losses = [p["test"] for p in points]
    ax.plot(n, losses, "o", color=COLOURS["purple"], ms=4, label="known")
    across = np.geomspace(min(n), larger, 60)
    styles = zip(laws.items(), (":", "-", "--"), ("orange", "blue", "green"))
    for (name, law), style, role in styles:
        found = [law(float(x)) for x in across]
        ax.plot(across, found, style, color=COLOURS[role], lw=1.8, label=name)
    where = [larger] * len(truth)
    ax.plot(where, truth, "D", color=COLOURS["red"], ms=5, label="trained afterwards")
    _log_axes(ax, (1.25, 1.5, 2, 2.5), "parameters N")
    ax.set_ylabel("nats a byte, test")
    ax.legend(fontsize=10)
    ax.set_title(title, loc="left", weight="bold")
    return ax
