"""Diagrams of the course's models, drawn from a forward pass of the model they show.

    diagrams.show(diagrams.heads(layer, x), alt="…", caption="…")

Give toy sizes that all differ (batch 2, $n = 5$, $d_k = 4$, …): the shapes on the edges
are measured, and their axes named by size. `course_map` shows where a chapter stands.
"""

from __future__ import annotations

import html
import re

from torch import Tensor

from course_utils.display.architecture import map_of, transformer
from course_utils.display.drawing import Diagram, Drawing, require_toy
from course_utils.display.figures import figure_html, figure_style, require_alt
from course_utils.display.svg import colour
from course_utils.display.trace import trace
from course_utils.models.attention import MultiHeadAttention, SelfAttention
from course_utils.models.blocks import EncoderBlock

__all__ = [
    "block",
    "course_map",
    "heads",
    "queries_keys_values",
    "show",
    "transformer",
]

ROLES = {"Q": "queries", "K": "keys", "V": "values"}
FORMULA = "$C = softmax(QK^T / √d_k) V$"


# ------------------------------------------------------------------------ on the page


def _svg(
    drawn: Drawing, attributes: str, scale: float = 1.0, hidden: bool = False
) -> str:
    """A drawing as an element; its links can be reached only if it is no image."""
    width, height = (round(scale * side) for side in (drawn.width, drawn.height))
    shown = "none" if hidden else "block"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {drawn.width} '
        f'{drawn.height}" width="{width}" height="{height}" {attributes} '
        f'style="display:{shown};max-width:100%;height:auto;margin:auto;'
        f'font-family:var(--course-sans, sans-serif)">{"".join(drawn.parts)}</svg>'
    )


def diagram_html(
    diagram: Diagram, alt: str, name: str | None = None, caption: str = ""
) -> str:
    """A diagram as a page shows it.

    Where there are two drawings the site's style sheet shows the one that fits.
    """
    label = f'aria-label="{html.escape(require_alt(alt))}"'
    role = "group" if diagram.wide.addresses else "img"
    if diagram.narrow is None:
        svg = _svg(diagram.wide, f'role="{role}" {label}', scale=1.25)
    else:
        svg = _svg(diagram.wide, f'class="course-wide" role="{role}" {label}')
        narrow = f'class="course-narrow" role="{role}" {label}'
        svg += _svg(diagram.narrow, narrow, hidden=True)
    return figure_html(svg, caption, name, "course-diagram")


def show(
    diagram: Diagram, alt: str, name: str | None = None, caption: str = ""
) -> None:
    """Display a diagram as the cell's output, as `plots.show` does a figure."""
    from IPython.display import display

    page = diagram_html(diagram, alt, name, caption)
    plain = "\n".join(filter(None, (require_alt(alt), " ".join(caption.split()))))
    display({"text/html": page, "text/plain": plain}, raw=True)


def course_map(chapter: str) -> None:
    """Display the transformer in small, the part lit that a chapter is about.

    It is no figure of the chapter but a way about the course: it has no number.
    """
    from IPython.display import display

    drawn, said = map_of(chapter)
    label = f'role="group" aria-label="{html.escape(said)}"'
    page = (
        '<nav class="course-diagram" aria-label="Map of the course" style="background:'
        f'{colour("surface")};border-radius:6px;width:fit-content;max-width:100%">'
        f"{figure_style()}{_svg(drawn, label, scale=1.1)}</nav>"
    )
    display({"text/html": page, "text/plain": said}, raw=True)


# -------------------------------------------------------------------------- the models


def queries_keys_values(layer: SelfAttention, x: Tensor, row: int = 2) -> Diagram:
    """Draw one head of self-attention, from the tokens to the context (chapter 06).

        with torch.random.fork_rng(devices=[]):  # other random numbers stay as they are
            toy, x = SelfAttention(d_model=8, d_k=4, d_v=6), 2 * torch.randn(2, 5, 8)
        diagrams.show(diagrams.queries_keys_values(toy, x), alt="…", caption="…")

    Every matrix has as many cells as it has numbers, and its shape in names; the darker
    `row` follows one token: its query, its scores and weights, its context.
    """
    batch, n, d_model = x.shape
    d_k, _, d_v = layer.sizes
    require_toy(n=(n, 5), d_model=(d_model, 9), d_k=(d_k, 6), d_v=(d_v, 7))
    sizes = {"batch": batch, "n": n, "d_model": d_model, "d_k": d_k, "d_v": d_v}
    record = trace(layer, x)
    learned = dict(zip("QKV", (w.T for w in layer.qkv.weight.split(layer.sizes))))
    parts = {name: part[0] for name, part in zip("QKV", record["split"].outputs)}
    products = record["matmul"].output[0]
    scores, weights = record["div"].output[0], record["softmax"].output[0]
    context = record["matmul:2"].output[0]

    def wide() -> Drawing:
        d, cell = Drawing(736, 372, sizes), 9
        heights = {"Q": 58, "K": 184, "V": 310}
        middle, low = (heights["Q"] + heights["K"]) / 2, heights["V"]
        d.tensor(46, heights["K"], x[0], "grey", "$X$", row=row)
        for name, y in heights.items():
            role, half = ROLES[name], cell * parts[name].shape[1] / 2
            d.arrow((84, 184), (104, 184), (104, y), (153 - half, y))
            d.tensor(156, y, learned[name], role, f"$W_{name}$", learned=True)
            d.arrow((158 + half, y), (241 - half, y), role=role)
            marked = row if name == "Q" else None
            d.tensor(244, y, parts[name], role, f"${name}$", row=marked)
        for name, end in (("Q", middle - 16), ("K", middle + 16)):
            y, right = heights[name], 246 + cell * d_k / 2
            d.arrow((right, y), (318, y), (318, end), role=ROLES[name])
        d.box(318, middle, 56, 30, "$QK^T$", learned=False, size=15)
        d.arrow((346, middle), (392, middle))
        d.shape(368, middle - 11, products)
        d.box(420, middle, 56, 30, "÷ $√d_k$", learned=False, size=15)
        d.arrow((448, middle), (467, middle))
        d.tensor(492, middle, scores, "weights", "$S$", row=row)
        d.arrow((517, middle), (534, middle))
        d.box(567, middle, 66, 30, "softmax", learned=False)
        d.arrow((600, middle), (617, middle))
        d.tensor(642, middle, weights, "weights", "$A$", row=row, ramp=True)
        d.arrow((642, middle + 45), (642, low - 16), role="weights")
        d.arrow((246 + cell * d_v / 2, low), (621, low), role="values")
        d.box(642, low, 40, 30, "$AV$", learned=False, size=15)
        d.arrow((662, low), (676, low), role="values")
        d.tensor(704, low, context, "values", "$C$", row=row)
        d.text(440, low - 22, FORMULA, 17)
        return d

    def narrow() -> Drawing:
        d, cell = Drawing(340, 688, sizes), 8
        across = {"Q": 50, "K": 162, "V": 284}
        middle, right = (across["Q"] + across["K"]) / 2, across["V"]
        d.tensor(162, 48, x[0], "grey", "$X$", cell, row=row)
        for name, left in across.items():
            role = ROLES[name]
            d.arrow((162, 90), (162, 98), (left, 98), (left, 110))
            d.tensor(left, 166, learned[name], role, f"$W_{name}$", cell, learned=True)
            d.arrow((left, 222), (left, 236), role=role)
            marked = row if name == "Q" else None
            d.tensor(left, 282, parts[name], role, f"${name}$", cell, row=marked)
        for name, side in (("Q", -29), ("K", 29)):
            left = across[name]
            way = (left, 324), (left, 352), (middle + side, 352)
            d.arrow(*way, role=ROLES[name])
        d.box(middle, 352, 56, 30, "$QK^T$", learned=False, size=15)
        d.arrow((middle, 367), (middle, 390))
        d.shape(middle + 32, 379, products)
        d.box(middle, 406, 56, 30, "÷ $√d_k$", learned=False, size=15)
        d.arrow((middle, 421), (middle, 438))
        d.tensor(middle, 462, scores, "weights", "", cell, row=row)
        d.text(middle - 34, 462, "$S$", 16)
        d.arrow((middle, 502), (middle, 516))
        d.box(middle, 531, 66, 28, "softmax", learned=False)
        d.arrow((middle, 545), (middle, 562))
        d.tensor(middle, 586, weights, "weights", "", cell, row=row, ramp=True)
        d.text(middle - 34, 586, "$A$", 16)
        d.arrow((middle + 25, 586), (right - 21, 586), role="weights")
        d.arrow((right, 324), (right, 570), role="values")
        d.box(right, 586, 40, 30, "$AV$", learned=False, size=15)
        d.arrow((right, 601), (right, 620), role="values")
        d.tensor(right, 644, context, "values", "", cell, row=row)
        d.text(right - 38, 644, "$C$", 16)
        d.text(110, 652, FORMULA, 15)
        return d

    return Diagram(wide(), narrow())


def heads(layer: MultiHeadAttention, x: Tensor) -> Diagram:
    """Draw split, attend, concatenate, project: several heads (chapter 10)."""
    batch, n, d_model = x.shape
    n_heads = layer.n_heads
    require_toy(n=(n, 5), d_model=(d_model, 12), n_heads=(n_heads, 3))
    sizes = {"batch": batch, "n": n, "d_model": d_model, "d_head": d_model // n_heads}
    record = trace(layer, x, need_weights=True)
    split = [record[step].output[0] for step in ("permute", "permute:2", "permute:3")]
    weights = record["softmax"].output[0]
    contexts = record["matmul:2"].output[0]
    joined, output = record["reshape:4"].output[0], record["output"].output[0]
    d, cell = Drawing(340, 622, sizes), 7
    wide, middle = cell * d_model / n_heads, 170.0
    columns = [middle + (head - (n_heads - 1) / 2) * 110 for head in range(n_heads)]

    def piece(head: int, centre: float, gap: float) -> float:
        return centre + (head - (n_heads - 1) / 2) * (wide + gap)

    d.tensor(middle, 44, x[0], "grey", "$X$", cell)
    for i, (name, left) in enumerate(zip("QKV", (60, 170, 280))):
        role = ROLES[name]
        d.arrow((middle, 82), (middle, 90), (left, 90), (left, 102))
        d.box(left, 116, 44, 26, f"$W_{name}$", role, size=15)
        d.arrow((left, 129), (left, 146), role=role)
        for head, column in enumerate(columns):
            at, end = piece(head, left, 4), column + 14 * (i - 1)
            d.tensor(at, 166, split[i][head], role, "", cell, label=False)
            way = f"M{at:.1f} 206C{at:.1f} 236 {end:.1f} 222 {end:.1f} 252"
            d.line(way, role, 1.4)
    said = f"split into {n_heads} heads, each {d.names(split[0][0])}"
    d.text(middle, 195, said, fill="muted")
    for head, column in enumerate(columns):
        d.box(column, 328, 92, 150, learned=False, fill=0.05)
        d.text(column, 266, f"head {head + 1}")
        d.tensor(column, 306, weights[head], "weights", "", 11, ramp=True)
        d.arrow((column, 353), (column, 361), head=False)
        d.tensor(column, 380, contexts[head], "values", "", cell, label=False)
        d.text(column + 29, 380, f"$C_{head + 1}$", 15)
        at = piece(head, middle, 0)
        way = f"M{column:.1f} 405C{column:.1f} 432 {at:.1f} 424 {at:.1f} 450"
        d.line(way, "values", 1.4)
        d.tensor(at, 470, contexts[head], "values", "", cell, label=False)
    d.text(64, 470, "concatenate", fill="muted")
    d.shape(middle, 500, joined)
    d.arrow((middle, 510), (middle, 524))
    d.box(middle, 538, 44, 26, "$W_O$", size=15)
    d.arrow((middle, 551), (middle, 562))
    d.tensor(middle, 582, output, "grey", "", cell)
    return Diagram(d)


def block(layer: EncoderBlock, x: Tensor) -> Diagram:
    """Draw a block: a stream, and two branches that add to it (chapter 11).

    The norms stand where they stand in `layer`: in the branches, or on the stream.
    """
    batch, n, d_model = x.shape
    d_hidden = layer.feed_forward.wide.out_features
    require_toy(n=(n, 5), n_heads=(layer.attention.n_heads, 3))
    sizes = {"batch": batch, "n": n, "d_model": d_model, "d_hidden": d_hidden}
    record = trace(layer, x, need_weights=True)
    names = list(record.steps)
    pre = names.index("around_attention.norm") < names.index("attention")
    between = r"feed_forward\.(?!wide|narrow)(\w+)"
    found = (re.fullmatch(between, name) for name in names)
    activation = ", ".join(match[1] for match in found if match)
    d, stream, branch, beside = Drawing(340, 516, sizes), 44, 182, 299
    d.arrow((stream, d.height - 4), (stream, 4), role="stream", thick=8)
    d.text(stream - 20, 200, "residual stream", fill="muted", upright=True)
    d.text(stream + 16, d.height - 12, "$x$", 16, "start")
    d.shape(stream + 68, d.height - 12, x[0])

    def fork(y: float, norm: str) -> float:
        """Leave the stream at `y`; return where the branch's layer can begin."""
        d.arrow((stream, y), (branch, y), (branch, y - 21), head=pre)
        if not pre:
            return y - 21
        d.box(branch, y - 34, 150, 26, "LayerNorm")
        d.shape(beside, y - 34, record[norm].output[0])
        return y - 47

    def join(y: float) -> float:
        """Add what leaves the branch at `y`; return where the stream goes on."""
        d.arrow((branch, y), (branch, y - 24), (stream + 9, y - 24))
        d.plus(stream, y - 24)
        if not pre:
            d.box(stream, y - 58, 78, 26, "LayerNorm", opaque=True)
        return y - (50 if pre else 84)

    y = fork(d.height - 40, "around_attention.norm")
    if not pre:
        d.line(f"M{branch - 42} {y}h84")
    for shift, role in zip((-42, 0, 42), ROLES.values()):
        d.arrow((branch + shift, y), (branch + shift, y - 20), role=role)
    d.box(branch, y - 58, 150, 76)
    d.text(branch, y - 33, "multi-head attention")
    maps = record["attention.softmax"].output[0]
    for head, weights in enumerate(maps):
        at = branch + 42 * (head - (len(maps) - 1) / 2)
        d.tensor(at, y - 69, weights, "weights", cell=7, ramp=True, label=False)
    d.text(beside, y - 58, "tokens\nmix", fill="muted")
    y = fork(join(y - 96), "around_feed_forward.norm")
    thick, thin = 150, 150 * d_model / d_hidden
    d.arrow((branch, y), (branch, y - 18))
    d.funnel(branch, y - 18, thin, y - 54, thick, "$W_1$")
    d.box(branch, y - 71, thick, 26, activation, learned=False)
    d.shape(beside, y - 71, record["feed_forward.wide"].output[0])
    d.funnel(branch, y - 88, thick, y - 124, thin, "$W_2$")
    d.text(beside, y - 108, "each token\nalone", fill="muted")
    join(y - 124)
    d.shape(stream + 50, 12, record["add:2"].output[0])
    return Diagram(d)
