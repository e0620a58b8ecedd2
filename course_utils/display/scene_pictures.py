"""Images of digits on their grid, with attention weights laid over the cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from course_utils.display import plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE, CELL = 24, 8  # pixels of an image and of a cell


def draw_scenes(
    images: Tensor, names: Sequence[str], title: str, weights: Tensor | None = None
) -> Figure:
    """Draw images side by side, a name above each; weights shade the cells in orange.

    `images` is (image, 1, 24, 24), `weights` (image, 9). Used in chapter 04.
    """
    from matplotlib.colors import to_rgba

    if len(names) != len(images) or (weights is not None and len(weights) < len(names)):
        raise ValueError(
            f"{len(images)} images for {len(names)} names; give one name, and one row "
            "of weights if any, for each image."
        )
    drawn, panels = plots.figure(n_columns=len(images), height=2.1)
    for i, ax in enumerate(panels):
        grey = images[i].reshape(SIDE, SIDE).clamp(0, 1).numpy()
        ax.imshow(grey, cmap="gray_r", vmin=0, vmax=1, interpolation="none")
        for edge in (CELL - 0.5, 2 * CELL - 0.5):
            ax.axhline(edge, color=plots.COLOURS["grey"], linewidth=0.6)
            ax.axvline(edge, color=plots.COLOURS["grey"], linewidth=0.6)
        if weights is not None:
            colours = [[*to_rgba(plots.COLOURS["orange"])] for _ in range(9)]
            for colour, weight in zip(colours, weights[i].tolist()):
                colour[3] = 0.6 * weight
            rows = [colours[row : row + 3] for row in (0, 3, 6)]
            whole = (-0.5, SIDE - 0.5, SIDE - 0.5, -0.5)
            ax.imshow(rows, extent=whole, interpolation="none")
        ax.set(xticks=[], yticks=[])
        ax.grid(False)
        ax.spines[:].set_visible(True)
        ax.set_title(names[i], fontsize=11, color=plots.COLOURS["ink"])
    ink = plots.COLOURS["ink"]
    drawn.suptitle(title, x=0.01, ha="left", weight="bold", size=13, color=ink)
    return drawn
