"""The words of a figure: how large they are, where they break, where they collide."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

_PIECES = re.compile(r"(?:\$[^$]*\$|[^\s$])+?(?:-|\s+|$)|\S+")


def whole_of(part: Any) -> Any:
    """The figure that something is a part of."""
    return part.get_figure(root=True)


def extent(word: Text, said: str) -> tuple[float, float]:
    """Width and height of a text in this word's font, whatever its rotation."""
    from matplotlib.text import Text

    probe = Text(0, 0, said, fontproperties=word.get_fontproperties())
    probe.set_figure(whole_of(word))
    box = probe.get_window_extent()
    return box.width, box.height


def _lines(word: Text, said: str, room: float) -> list[str]:
    """Break a line between words, and after a hyphen, where it is wider than `room`."""
    lines = [""]
    for piece in _PIECES.findall(said):
        if lines[-1] and extent(word, (lines[-1] + piece).rstrip())[0] > room:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def wrapped(word: Text, said: str, room: float) -> str:
    """Break a text into as few lines as have room, all of them about as long."""
    broken = []
    for line in said.split("\n"):
        lines = _lines(word, line, room)
        if len(lines) == 1:
            broken += lines
            continue
        for twentieths in range(19, 9, -1):
            tighter = _lines(word, line, room * twentieths / 20)
            if len(tighter) > len(lines):
                break
            lines = tighter
        broken += lines
    return "\n".join(broken)


def tick_labels(axes: Axes, which: str = "xy") -> Iterator[Text]:
    """The labels of an axes' ticks that are drawn."""
    if not (axes.axison and axes.get_visible()):
        return
    for axis in (getattr(axes, f"{name}axis") for name in which):
        low, high = sorted(axis.get_view_interval())
        slack = 1e-6 * (high - low)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            for label in (tick.label1, tick.label2):
                inside = low - slack <= tick.get_loc() <= high + slack
                shown = axis.get_visible() and label.get_visible()
                if inside and shown and label.get_text():
                    yield label


def words(drawn: Figure) -> list[Text]:
    """Every text of a figure that is drawn."""
    from matplotlib.axis import Tick
    from matplotlib.text import Text

    ticks = {id(w) for tick in drawn.findobj(Tick) for w in tick.findobj(Text)}
    others = [word for word in drawn.findobj(Text) if id(word) not in ticks]
    found = [*(label for axes in drawn.axes for label in tick_labels(axes)), *others]
    return [w for w in found if w.get_visible() and w.get_text().strip()]


def faults(drawn: Figure) -> list[str]:
    """Words that lie over one another or leave the drawing, when it has been drawn."""
    found, boxes = [], []
    width, height = drawn.bbox.width, drawn.bbox.height
    for word in words(drawn):
        box = word.get_window_extent()
        if min(box.x0, box.y0, width - box.x1, height - box.y1) < -0.5:
            found.append(f"{word.get_text()!r} leaves the drawing")
        if word.get_rotation() % 90 == 0:  # slanted labels have boxes that overlap
            boxes.append((word, box))
    for (one, a), (other, b) in combinations(boxes, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        if across > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 3:
            found.append(f"{one.get_text()!r} lies on {other.get_text()!r}")
    return found


def touch(labels: list[Text]) -> bool:
    """Whether labels beside one another have hardly a gap."""
    boxes = [label.get_window_extent() for label in labels]
    return any(a.x1 + 3 > b.x0 for a, b in pairwise(boxes))
