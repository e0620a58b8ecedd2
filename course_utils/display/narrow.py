"""A figure once more for a phone: as wide as its screen, with words that can be read.

`narrow` lays a copy of a figure out anew. One unit of the copy is one pixel of a phone,
so no word is smaller than `SMALLEST` pixels. Panels stand one below the other, pictures
side by side where their words fit; titles and labels are broken into lines, legends
stand below. Everything is measured, nothing is guessed.
"""

from __future__ import annotations

import copy
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from course_utils.display.figure_words import (
    extent,
    faults,
    tick_labels,
    touch,
    whole_of,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Text

WIDTH = 345  # pixels: what a page leaves on a screen of 390, and a little less
SMALLEST = 11.25  # pixels of a word's size: 11 and more on a screen of 390
GAP = 12  # pixels between two panels, and between a panel and its legend
PICTURE = 110  # pixels that a picture in a row has at least
EDGE = 6  # pixels that stay free around everything
_NUMBER = re.compile(r"[^A-Za-z]*")


class NoNarrow(Exception):
    """A figure whose parts stand where no panel is: it has one drawing only."""


# --------------------------------------------------------------------------- the panels


class _Panel:
    """Axes that stand in one place, with all that stands around them."""

    def __init__(self, axes: list[Axes]) -> None:
        self.axes, self.main = axes, axes[0]
        self.legends: list[Legend] = []
        place = self.main.get_position()
        size = whole_of(self.main).get_size_inches() * 72
        self.picture = self.main.get_aspect() != "auto"
        self.height = place.height * size[1]
        self.ratio = place.height * size[1] / (place.width * size[0])
        self.margins = (40.0, 5.0, 25.0, 30.0)  # left, right, top, bottom
        self.box = (0.0, 0.0, 1.0, 1.0)
        self.said: dict[Text, str] = {}

    def bars(self) -> list[Axes]:
        """The colour bars of this panel."""
        every = whole_of(self.main).axes
        return [ax for ax in every if self.main in _info(ax).get("parents", [])]

    def measure(self) -> None:
        """See how much room the words around the box need."""
        boxes = [
            box
            for ax in (*self.axes, *self.bars())
            if (box := ax.get_tightbbox(for_layout_only=True)) is not None
        ]
        inner = self.main.get_window_extent()
        self.margins = (
            max(0.0, inner.x0 - min(b.x0 for b in boxes)),
            max(0.0, max(b.x1 for b in boxes) - inner.x1),
            max(0.0, max(b.y1 for b in boxes) - inner.y1),
            max(0.0, inner.y0 - min(b.y0 for b in boxes)),
        )

    def wrap(self, word: Text, room: float) -> None:
        """Break a text anew, from what it was at first."""
        said = self.said.setdefault(word, word.get_text())
        word.set_text(wrapped(word, said, room))

    def fit(self, left: float, right: float) -> None:
        """Break the words around the box: they may go from `left` to `right`."""
        x, _, width, height = self.box
        titles = (getattr(self.main, f"{k}title") for k in ("_left_", "_right_", ""))
        for title in titles:
            self.wrap(title, right - left)
            if title.get_ha() == "left":
                title.set_x((left - x) / width)
        label = self.main.xaxis.label
        self.wrap(label, right - left)
        half = extent(label, label.get_text())[0] / 2
        middle = min(max(x + width / 2, left + half), right - half)
        label.set_x((middle - x) / width)
        self.wrap(self.main.yaxis.label, height)
        self.fit_rows()
        self.fit_ticks()

    def fit_rows(self) -> None:
        """Make the box so high that labels of rows don't touch."""
        boxes = [label.get_window_extent() for label in tick_labels(self.main, "y")]
        tops = sorted(box.y1 for box in boxes)
        most = max((box.height for box in boxes), default=0.0)
        if len(tops) > 1:
            near = min(b - a for a, b in pairwise(tops))
            self.height *= min(max(1.0, 1.1 * most / max(near, 1.0)), 2.0)

    def fit_ticks(self) -> None:
        """Let no label of the x axis touch the next: break, thin or slant them."""
        axes = self.main
        labels = sorted(tick_labels(axes, "x"), key=lambda w: w.get_window_extent().x0)
        if len(labels) < 2:
            return
        size, slant = float(labels[0].get_fontsize()), labels[0].get_rotation()
        said = [label.get_text() for label in labels]
        at = [label.get_unitless_position()[0] for label in labels]
        points = [float(axes.transData.transform((x, 0))[0]) for x in at]
        room = min(abs(b - a) for a, b in pairwise(points))
        if slant % 90:
            if room * 0.71 < 0.95 * size:
                axes.tick_params(axis="x", labelrotation=90)
        elif not touch(labels):
            return
        elif all(_NUMBER.fullmatch(text) for text in said):
            axes.set_xticks(at[::2], said[::2])
        elif all(
            extent(label, text)[0] < room - 2
            for label in labels
            for text in wrapped(label, label.get_text(), room - 4).split("\n")
        ):
            axes.set_xticks(at, [wrapped(labels[0], text, room - 4) for text in said])
        else:
            whole = [text.replace("-\n", "-").replace("\n", " ") for text in said]
            axes.set_xticks(at, whole, rotation=45, ha="right")
            for label in axes.get_xticklabels():
                label.set(rotation_mode="anchor", va="center")


def _info(axes: Axes) -> dict[str, Any]:
    """What a colour bar's axes knows of it."""
    return getattr(axes, "_colorbar_info", {})


def _panels(drawn: Figure) -> list[_Panel]:
    """The places of a figure, from left to right and from top to bottom."""
    places: dict[tuple[int, int], list[Axes]] = {}
    for axes in drawn.axes:
        spec = axes.get_subplotspec()
        if spec is not None:
            place = spec.get_topmost_subplotspec()
            places.setdefault((place.num1, place.num2), []).append(axes)
        elif not _info(axes):
            raise NoNarrow
    title = drawn._suptitle  # type: ignore[attr-defined]
    others = [text for text in drawn.texts if text is not title]
    if not places or others or drawn.subfigs:
        raise NoNarrow
    return [_Panel(axes) for _, axes in sorted(places.items())]


# ------------------------------------------------------------------------- the drawing


def _set_sizes(drawn: Figure) -> None:
    """No word smaller than it may be."""
    from matplotlib.text import Text

    for word in drawn.findobj(Text):
        word.set_fontsize(max(word.get_fontsize(), SMALLEST))
    for axis in (axis for ax in drawn.axes for axis in (ax.xaxis, ax.yaxis)):
        for which in ("major", "minor"):
            for tick in getattr(axis, f"get_{which}_ticks")(1)[:1]:
                axis.set_tick_params(which, labelsize=tick.label1.get_fontsize())


def _legend_below(owner: Any, legend: Legend) -> Legend:
    """The same legend in as many columns as fit, to be put where there is room."""
    texts, title = legend.get_texts(), legend.get_title().get_text()
    if legend.axes is None:
        owner.legends.remove(legend)  # `legend.remove` would ask the figure copied
    size = max((text.get_fontsize() for text in texts), default=SMALLEST)
    for columns in range(len(texts), -1, -1):
        made = owner.legend(
            [handle for handle in legend.legend_handles if handle is not None],
            [text.get_text() for text in texts],
            title=title or None,
            fontsize=size,
            title_fontsize=size,
            labelcolor=[text.get_color() for text in texts],
            loc="upper left",
            bbox_to_anchor=(0, 0),
            bbox_transform=whole_of(owner).transFigure,
            ncols=max(columns, 1),
            alignment="left",
            borderpad=0,
            borderaxespad=0,
            columnspacing=1.2,
            frameon=False,
        )
        made.set_in_layout(False)
        if columns < 2 or made.get_window_extent().width <= WIDTH - 2 * EDGE:
            return made
        made.remove()
    raise AssertionError("a legend of no columns")


def _own_labels(panels: list[_Panel]) -> None:
    """Panels that had their numbers and names from a neighbour get their own."""
    for one, other in pairwise(panels):
        a, b = one.main, other.main
        if a.get_shared_y_axes().joined(a, b):
            b.tick_params(axis="y", labelleft=True)
            b.set_ylabel(b.get_ylabel() or a.get_ylabel())
        if a.get_shared_x_axes().joined(a, b):
            a.tick_params(axis="x", labelbottom=True)
            a.set_xlabel(a.get_xlabel() or b.get_xlabel())


class _Page:
    """A figure while it is laid out, with so many panels in a row."""

    def __init__(self, drawn: Figure, in_row: int, scale: float) -> None:
        self.drawn, self.in_row, self.scale = drawn, in_row, scale
        panels = _panels(drawn)
        self.rows = [panels[i : i + in_row] for i in range(0, len(panels), in_row)]
        drawn.set_layout_engine("none")
        drawn.set_dpi(72)
        drawn.set_size_inches(WIDTH / 72, drawn.get_size_inches()[1])
        _set_sizes(drawn)
        if in_row == 1:
            _own_labels(panels)
        for panel in panels:
            legends = [(ax, legend) for ax in panel.axes if (legend := ax.get_legend())]
            panel.legends = [_legend_below(*each) for each in legends]
        self.legends = [_legend_below(drawn, legend) for legend in [*drawn.legends]]
        self.title = drawn._suptitle  # type: ignore[attr-defined]
        if self.title is not None:
            room = WIDTH - 2 * EDGE
            said = wrapped(self.title, self.title.get_text(), room)
            self.title.set(text=said, ha="left", va="top")
        for _ in range(4):  # room decides on lines and numbers, and these on room
            self.place()
            drawn.draw_without_rendering()
            for row in self.rows:
                for i, panel in enumerate(row):
                    panel.fit(*self.cell(i))
                    panel.measure()
        self.place()
        drawn.draw_without_rendering()

    def cell(self, i: int) -> tuple[float, float]:
        """Where the i-th panel of a row begins and ends, with all that is around it."""
        width = (WIDTH - 2 * EDGE + GAP) / self.in_row
        return EDGE + i * width, EDGE + (i + 1) * width - GAP

    def slanted(self) -> bool:
        """Whether panels in one row are so narrow that words below them slant."""
        labels = (tick_labels(ax, "x") for ax in self.drawn.axes)
        return self.in_row > 1 and any(
            w.get_rotation() for each in labels for w in each
        )

    def place(self) -> None:
        """Put everything below one another; the drawing is as high as that makes it."""
        down, put = float(EDGE), []
        if self.title is not None:
            put.append((self.title, EDGE, down))
            down += extent(self.title, self.title.get_text())[1] + 8
        for row in self.rows:
            down = self.place_row(row, down, put) + GAP
        down -= GAP
        for legend in self.legends:
            put.append((legend, EDGE, down + GAP / 2))
            down += GAP / 2 + legend.get_window_extent().height
        self.finish(down + EDGE, put)

    def place_row(self, row: list[_Panel], down: float, put: list[Any]) -> float:
        """Give each panel of a row its box, and say how far down the row goes."""
        top, end = max(panel.margins[2] for panel in row), down
        for i, panel in enumerate(row):
            left, right = self.cell(i)
            left += max(other[i].margins[0] for other in self.rows)
            width = max(right - panel.margins[1] - left, PICTURE)
            height = panel.height * self.scale
            if panel.picture:
                height = min(width * panel.ratio, 1.35 * panel.height)
                width = height / panel.ratio
            panel.box = (left, down + top, width, height)
            under = down + top + height + panel.margins[3]
            for legend in panel.legends:
                put.append((legend, left if len(row) > 1 else EDGE, under + GAP / 2))
                under += GAP / 2 + legend.get_window_extent().height
            end = max(end, under)
        return end

    def finish(self, height: float, put: list[Any]) -> None:
        """Set the height, and with it all places, which count from below."""
        self.drawn.set_size_inches(WIDTH / 72, height / 72)
        for row in self.rows:
            for panel in row:
                x, y, w, h = panel.box
                place = (x / WIDTH, 1 - (y + h) / height, w / WIDTH, h / height)
                for axes in panel.axes:
                    axes.set_position(place)
                beside = ((x + w + 8) / WIDTH, place[1], 12 / WIDTH, place[3])
                for bar in panel.bars():
                    bar.set_box_aspect(None)
                    bar.set_position(beside)
        for what, x, y in put:
            at = (x / WIDTH, 1 - y / height)
            if what is self.title:
                what.set_position(at)
            else:
                what.set_bbox_to_anchor(at, self.drawn.transFigure)


def narrow(drawn: Figure) -> Figure | None:
    """A copy of a figure for a phone; None where its parts are not panels.

    Pictures stay side by side while their words have room; where words lie over one
    another the panels become higher.
    """
    import matplotlib

    from course_utils.display.figures import style

    try:
        panels = _panels(drawn)
    except NoNarrow:
        return None
    pictures = all(panel.picture for panel in panels)
    most = min(len(panels), WIDTH // PICTURE) if pictures else 1
    in_row = [n for n in range(most, 0, -1) if len(panels) % n == 0]
    ways = [(n, 1.0) for n in in_row] + [(1, 1.25), (1, 1.5)]
    tried: list[tuple[int, int, Figure]] = []
    with matplotlib.rc_context(style()):
        for columns, scale in ways:
            made = copy.deepcopy(drawn)
            page = _Page(made, columns, scale)
            tried.append((len(faults(made)) + page.slanted(), len(tried), made))
            if not tried[-1][0]:
                break
    return min(tried, key=lambda found: found[:2])[2]
