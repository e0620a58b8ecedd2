"""The vision transformer from image to classes, and scenes of nine cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from course_utils.display import plots
from course_utils.display.drawing import Diagram, Drawing, require_toy
from course_utils.display.svg import colour
from course_utils.display.trace import trace
from course_utils.models.vision import VisionTransformer, patchify
from course_utils.tasks.scenes import GRID, SIDE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CELL = 8.0


def vision_transformer(
    model: VisionTransformer, image: Tensor, size: int, follow: int = 1
) -> Diagram:
    """Draw how an image of one channel becomes tokens and then a class (chapter 14).

        diagrams.show(vision_transformer(toy, scan[None], size=4), alt="…", caption="…")

    Every matrix has as many cells as it has numbers, and its shape was measured in a
    forward pass; the patch to `follow` is framed in all of them. The weights are those
    of the last block, averaged over its heads: the class token's is the first row.
    """
    _, side, _ = image.shape
    patches = patchify(image[None], size)
    _, n, d_patch = patches.shape
    d_model = model.embed.out_features
    n_classes = model.readout.out_features
    require_toy(side=(side, 8), n_patches=(n, 4), d_patch=(d_patch, 16))
    require_toy(d_model=(d_model, 9), n_classes=(n_classes, 12))
    sizes = {"n": n, "(n + 1)": n + 1, "d_patch": d_patch, "d_model": d_model}
    sizes["n_classes"] = n_classes
    record = trace(model, patches, need_weights=True)
    embedded, tokens = record["embed"].output[0], record["cat"].output[0]
    states, logits = record["encoder"].output[0], record["readout"].output
    with torch.no_grad():
        maps = model(patches, need_weights=True)[1]
    weights = torch.as_tensor(maps[-1][0]).mean(dim=0)  # (token, token)
    blocks = len(maps)

    def pixels(d: Drawing, x: float, y: float, gap: float = 0) -> None:
        """The image around a point; its patches apart if there is a gap."""
        cell, per_row = 11.0, side // size
        whole = cell * side + gap * (per_row - 1)
        left, top = x - whole / 2, y - whole / 2
        for i, row in enumerate(image[0].tolist()):
            for j, value in enumerate(row):
                d.add(
                    "rect",
                    x=left + cell * j + gap * (j // size),
                    y=top + cell * i + gap * (i // size),
                    width=cell,
                    height=cell,
                    fill=colour("ink"),
                    fill_opacity=min(max(value, 0.0), 1.0),
                    stroke=colour("grid"),
                    stroke_width=0.6,
                )
        for patch in range(n if gap else 1):
            r, q = divmod(patch, per_row)
            across = cell * (size if gap else side)
            d.add(
                "rect",
                x=left + (across + gap) * q,
                y=top + (across + gap) * r,
                width=across,
                height=across,
                fill="none",
                stroke=colour("ink"),
                stroke_width=2.4 if gap and patch == follow else 0.9,
            )

    def flattened(d: Drawing, x: float, y: float) -> None:
        """The tokens as they are cut: a row of numbers for each patch."""
        table = patches[0]
        left, top = x - CELL * d_patch / 2, y - CELL * n / 2
        for i, row in enumerate(table.tolist()):
            for j, value in enumerate(row):
                cell = {"x": left + CELL * j, "y": top + CELL * i}
                cell |= {"width": CELL, "height": CELL}
                paint = {"fill": colour("ink"), "fill_opacity": min(max(value, 0), 1)}
                d.add("rect", **cell, **paint, stroke=colour("grid"), stroke_width=0.6)
        place = {"x": left, "y": top + CELL * follow}
        place |= {"width": CELL * d_patch, "height": CELL}
        d.add("rect", **place, fill="none", stroke=colour("ink"), stroke_width=2)
        d.shape(x, top + CELL * n + 13, table)

    def with_class(d: Drawing, x: float, y: float, table: Tensor) -> None:
        """Tokens behind the class token, which is orange."""
        d.tensor(x, y, table, "grey", "", CELL, row=follow + 1)
        top, across = y - CELL * (n + 1) / 2, CELL * d_model
        frame = {"x": x - across / 2, "y": top, "width": across, "height": CELL}
        paint = {"fill": colour("orange"), "fill_opacity": 0.5}
        d.add("rect", **frame, **paint, stroke=colour("orange"), stroke_width=2)

    def encoder(d: Drawing, x: float, y: float) -> None:
        """The blocks as one box, with the weights of the last."""
        d.box(x, y, 86, 104)
        d.text(x, y - 38, "encoder")
        d.tensor(x, y, weights, "weights", "", 9, ramp=True, label=False)
        d.text(x, y + 38, f"{blocks} blocks", fill="muted")

    def learned(d: Drawing, x: float, y: float, table: Tensor, name: str) -> None:
        """A learned table with its name above it."""
        role = "orange" if len(table) == 1 else "grey"
        d.tensor(x, y, table, role, "", CELL, learned=True, label=False)
        d.text(x, y - CELL * len(table) / 2 - 13, name)

    def wide() -> Drawing:
        d, y, low = Drawing(736, 268, sizes), 78.0, 208.0
        d.text(52, 10, "image")
        pixels(d, 52, y)
        d.arrow((100, y), (118, y))
        d.text(172, 10, f"{n} patches")
        pixels(d, 172, y, gap=8)
        d.arrow((226, y), (246, y))
        d.text(314, y - 30, "a row for each")
        flattened(d, 314, y)
        d.arrow((382, y), (402, y))
        d.box(450, y, 94, 30, "linear layer")
        d.arrow((499, y), (521, y))
        d.tensor(549, y, embedded, "grey", "", CELL, row=follow)
        d.arrow((577, y), (605, y), head=False)
        d.plus(613, y)
        learned(d, 690, y, model.positions, "positions")
        d.arrow((663, y), (622, y))
        d.arrow((613, y + 9), (613, low - 24))
        learned(d, 690, low - 16, model.class_token, "class token")
        d.arrow((663, low - 16), (640, low - 16), role="orange")
        with_class(d, 613, low, tokens)
        d.arrow((585, low), (543, low))
        encoder(d, 498, low)
        d.arrow((453, low), (411, low))
        with_class(d, 383, low, states)
        d.arrow((355, low - 16), (305, low - 16), role="orange")
        d.box(256, low - 16, 94, 30, "linear layer")
        d.arrow((207, low - 16), (163, low - 16), role="orange")
        d.tensor(118, low - 16, logits, "orange", "", CELL)
        d.text(118, low - 36, "a logit for each class")
        return d

    def narrow() -> Drawing:
        d = Drawing(340, 604, sizes)
        d.text(80, 10, "image")
        pixels(d, 80, 72)
        d.arrow((128, 72), (190, 72))
        d.text(246, 10, f"{n} patches")
        pixels(d, 246, 76, gap=8)
        d.arrow((246, 130), (246, 150))
        d.text(90, 170, "a row for each")
        flattened(d, 246, 170)
        d.arrow((246, 208), (246, 224))
        d.box(246, 239, 104, 30, "linear layer")
        d.arrow((246, 254), (246, 270))
        d.tensor(246, 288, embedded, "grey", "", CELL, row=follow)
        d.arrow((246, 326), (246, 340), head=False)
        d.plus(246, 348)
        learned(d, 110, 348, model.positions, "positions")
        d.arrow((136, 348), (237, 348))
        d.arrow((246, 356), (246, 392))
        learned(d, 110, 398, model.class_token, "class token")
        d.arrow((136, 398), (219, 398), role="orange")
        with_class(d, 246, 414, tokens)
        d.arrow((246, 456), (246, 472))
        encoder(d, 272, 526)
        d.arrow((228, 526), (184, 526))
        with_class(d, 154, 526, states)
        d.arrow((128, 510), (100, 510), role="orange")
        d.box(53, 510, 90, 26, "linear layer")
        d.arrow((53, 523), (53, 544), role="orange")
        d.tensor(53, 550, logits, "orange", "", CELL)
        d.text(84, 592, "a logit for each class")
        return d

    return Diagram(wide(), narrow())


# ----------------------------------------------------------------- scenes of nine cells


def bare(ax: Axes, text: str = "") -> None:
    """Leave an image without ticks and grid, with a few words above it."""
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
    ax.set_title(text, fontsize=11, color=plots.COLOURS["ink"])


def draw_cells(ax: Axes, image: Tensor, text: str = "", bar: int | None = None) -> None:
    """Draw a scene of chapter 14 with gaps between its cells.

    Grey scenes are dark on light, coloured ones bright on black. `bar` is the number of
    a marked cell, whose bar is drawn in orange.
    """
    from matplotlib.patches import Rectangle

    pixels = patchify(image[None], SIDE)[0].unflatten(-1, (-1, SIDE, SIDE))
    for number, cell in enumerate(pixels):
        y, x = ((SIDE + 1) * part for part in divmod(number, GRID))
        bright = cell + 0.27 * cell.amax(dim=0)  # pure blue is hard to see on black
        shown = bright.permute(1, 2, 0) if len(cell) == 3 else 0.8 * cell[0]
        extent = (x, x + SIDE, y + SIDE, y)
        style: dict[str, Any] = {
            "cmap": "gray_r",
            "vmin": 0,
            "vmax": 1,
            "interpolation": "none",
        }
        ax.imshow(shown.clamp(0, 1).numpy(), extent=extent, **style)
        if bar is not None and number == bar:
            ax.add_patch(Rectangle((x, y), 1, SIDE, color=plots.COLOURS["orange"]))
    side = GRID * (SIDE + 1) - 1
    ax.set(xlim=(-0.5, side + 0.5), ylim=(side + 0.5, -0.5))
    ax.spines[:].set_visible(False)
    bare(ax, text)


def frame_cells(ax: Axes, weights: Tensor) -> None:
    """Frame every cell as thickly as its weight, and write the weights that count."""
    from matplotlib.patches import Rectangle

    for number, weight in enumerate(weights.tolist()):
        y, x = ((SIDE + 1) * part for part in divmod(number, GRID))
        style: dict[str, Any] = {"fill": False, "edgecolor": plots.COLOURS["orange"]}
        corner, side = (x - 0.3, y - 0.3), SIDE + 0.6
        ax.add_patch(Rectangle(corner, side, side, linewidth=4 * weight, **style))
        if weight > 0.02:
            where = (x + SIDE - 0.2, y + SIDE - 0.6)
            ground = {
                "facecolor": plots.COLOURS["surface"],
                "edgecolor": "none",
                "pad": 1,
            }
            text: dict[str, Any] = {
                "ha": "right",
                "size": 11,
                "color": plots.COLOURS["ink"],
            }
            ax.text(*where, f"{weight:.2f}", bbox=ground, **text)
