"""GPT as what is left of the transformer, and the key-value cache as a strip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from course_utils.display import plots
from course_utils.display.architecture import transformer
from course_utils.display.drawing import Diagram, Drawing, require_toy
from course_utils.display.svg import colour, path
from course_utils.models.transformer import GPT, Transformer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# What GPT lacks, in the picture of the transformer: left, top, right, bottom.
ENCODER = (1.0, 200.0, 164.0, 599.0)
CROSS = (164.0, 237.0, 322.0, 354.0)
MEMORY = (164.0, 222.0, 186.0, 237.0)  # where keys and values leave the encoder
STREAM = 312.0
CELL = 20.0


def _fade(d: Drawing, area: tuple[float, float, float, float]) -> None:
    left, top, right, bottom = area
    place = {"x": left, "y": top, "width": right - left, "height": bottom - top}
    d.add("rect", **place, fill=colour("surface"), fill_opacity=0.72)


def _strike(d: Drawing, area: tuple[float, float, float, float]) -> None:
    """Cross out a part of a picture."""
    left, top, right, bottom = area
    inset = 10
    wide, high = right - left - 2 * inset, bottom - top - 2 * inset
    down = ("M", left + inset, top + inset, "l", wide, high)
    up = ("M", left + inset, bottom - inset, "l", wide, -high)
    d.line(path(*down, *up), "red", 3)


def decoder_only(model: Transformer, source: Tensor, target: Tensor) -> Diagram:
    """Draw the transformer with encoder and cross-attention struck out (chapter 13).

    diagrams.show(decoder_only(model, source, target), alt="…", caption="…")
    """
    d = transformer(model, source, target).wide
    for area in (ENCODER, CROSS, MEMORY):
        _fade(d, area)
    d.line(path("M", STREAM, CROSS[1], "V", CROSS[3]), "stream", 6)  # it goes through
    for area in (ENCODER, (*CROSS[:2], STREAM - 10, CROSS[3])):
        _strike(d, area)
    return Diagram(d)


def cache_strip(model: GPT, tokens: Tensor, words: Sequence[str]) -> Diagram:
    """Draw one step with a cache: old columns grey, one new (chapter 13).

    The last of the `tokens` is the new one; what is drawn is the first head of the
    first layer, its keys and values as the step leaves them and its row of weights.
    """
    n, room = tokens.shape[1], model.max_length
    d_head = model.embedding.embedding_dim // model.n_heads
    require_toy(max_length=(room, 9), d_head=(d_head, 4))
    if len(words) != n:
        raise ValueError(f"words holds {len(words)} words for {n} tokens.")
    with torch.no_grad():
        caches = model.start(tokens[:, :-1])
        model.step(tokens[:, -1], caches)
        _, weights = model(tokens, need_weights=True)
    cache, row = caches[0], weights[0, 0, 0, -1:]  # type: ignore[index]
    d = Drawing(340, 240)
    left, high = 84.0, CELL * d_head / 2
    for i, word in enumerate(words):
        last = i == n - 1
        d.text(left + CELL * (i + 0.5), 34, word, 12, "start", upright=True, bold=last)
    for name, top, kept, role in (
        ("keys", 44, cache.keys, "keys"),
        ("values", 152, cache.values, "values"),
    ):
        stored = kept[0, 0].T  # (d_head, max_length)
        d.text(left - 10, top + high / 2, name, anchor="end")
        _columns(d, left, top, stored, cache.length, role)
        d.text(left - 10, top + high / 2 + 16, d_text(stored), 12, "end", "muted")
    below = 44 + high + 18
    d.text(left - 10, below + CELL / 2, "weights", anchor="end")
    d.weights(left, below, CELL, row.tolist())
    place = {"x": left, "y": below, "width": CELL * n, "height": CELL}
    d.add("rect", **place, fill="none", stroke=colour("weights"), stroke_width=1.2)
    asks, middle = left + CELL * (room + 1.2), below + CELL / 2
    place = {"x": asks - CELL / 2, "y": 44, "width": CELL, "height": high}
    d.add("rect", **place, fill=colour("queries"), fill_opacity=0.75)
    d.text(asks, 33, "query")
    way = (asks, 44 + high), (asks, middle), (left + CELL * n, middle)
    d.arrow(*way, role="queries")
    d.arrow((left + CELL * n / 2, below + CELL), (left + CELL * n / 2, 150))
    _legend(d, 152 + high + 30)
    return Diagram(d)


def d_text(stored: Tensor) -> str:
    """The shape of what is stored, as numbers."""
    return " × ".join(map(str, stored.shape))


def _columns(
    d: Drawing, left: float, top: float, stored: Tensor, length: int, role: str
) -> None:
    """Columns of a cache: old ones grey, the newest in its colour, free ones empty."""
    high = CELL * stored.shape[0] / 2
    for i in range(stored.shape[1]):
        place = {"x": left + CELL * i, "y": top, "width": CELL, "height": high}
        if i < length:
            new = i == length - 1
            fill = {"fill": colour(role if new else "grey")}
            d.add("rect", **place, **fill, fill_opacity=0.75 if new else 0.35)
            d.add("rect", **place, fill="none", stroke=colour("surface"))
        else:
            line = {"fill": "none", "stroke": colour("muted")}
            d.add("rect", **place, **line, stroke_dasharray="3 3", stroke_width=1)


def _legend(d: Drawing, y: float) -> None:
    """Say which column is which."""
    for x, role, opacity in ((20, "grey", 0.35), (82, "keys", 0.75)):
        place = {"x": x, "y": y - 7, "width": 14, "height": 14}
        d.add("rect", **place, fill=colour(role), fill_opacity=opacity)
    place = {"x": 98, "y": y - 7, "width": 14, "height": 14}
    d.add("rect", **place, fill=colour("values"), fill_opacity=0.75)
    d.text(40, y, "kept", 12, "start")
    d.text(118, y, "new", 12, "start")
    place = {"x": 166, "y": y - 7, "width": 14, "height": 14}
    line = {"fill": "none", "stroke": colour("muted"), "stroke_dasharray": "3 3"}
    d.add("rect", **place, **line)
    d.text(186, y, "set aside, not used yet", 12, "start")


def dots_by_row(
    groups: Mapping[str, Sequence[float]],
    lines: Mapping[str, float],
    x_label: str,
    title: str,
) -> Axes:
    """Draw a row of dots for each name, one a seed, and dotted lines to compare with.

    Labels of lines stand at the lower end of the picture.
    """
    axes = plots.figure()[1]
    for row, values in enumerate(groups.values()):
        at = [row] * len(values)
        axes.plot(values, at, "o", color=plots.COLOURS["blue"], alpha=0.7)
    axes.set_yticks(range(len(groups)), list(groups))
    axes.set_ylim(len(groups), -0.6)
    for name, value in lines.items():
        axes.axvline(value, color=plots.COLOURS["grey"], linestyle=":")
        style = {"color": plots.COLOURS["muted"], "va": "center", "ha": "right"}
        axes.text(value, len(groups) - 0.4, f"{name} ", **style)
    axes.locator_params(axis="x", nbins=6)
    axes.set_xlabel(x_label)
    axes.set_title(title, weight="bold", loc="left")
    return axes
