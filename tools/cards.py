"""The picture that a link to a page shows where it is sent: one card a page.

The title of the page and the name of the course, beside a small causal attention map
whose weights are made from the title, so that every page has a pattern of its own.
"""

from __future__ import annotations

import html
import re
import textwrap
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_utils.plots import COLOURS

PAPER = "white"
TITLE = re.compile(r"<h1>(.*?)<a class=\"headerlink\"", re.S)
SIZE, DPI, TOKENS = (12.0, 6.3), 100, 7


def title_of(page: str) -> str | None:
    """The heading of a page as plain text; None if it has none."""
    found = TITLE.search(page)
    return html.unescape(re.sub(r"<[^>]+>", "", found[1])).strip() if found else None


def weights(title: str) -> np.ndarray:
    """A causal table of attention weights that belongs to the title."""
    scores = np.random.default_rng(crc32(title.encode())).normal(size=(TOKENS, TOKENS))
    scores = np.where(np.tri(TOKENS, dtype=bool), 1.6 * scores, -np.inf)
    table = np.exp(scores - scores.max(axis=1, keepdims=True))
    table /= table.sum(axis=1, keepdims=True)
    return np.ma.masked_equal(table, 0)


def card(title: str, course: str) -> Figure:
    """Draw one card, 1200 by 630 pixels."""
    figure = Figure(figsize=SIZE, dpi=DPI, facecolor=PAPER)
    figure.add_artist(Rectangle((0, 0.965), 1, 0.035, color=COLOURS["blue"]))
    axes = figure.add_axes((0.71, 0.26, 0.25, 0.476))
    table = weights(title)[::-1]
    axes.pcolormesh(
        table, cmap="Blues", vmin=-0.2, vmax=1, linewidth=4, edgecolor=PAPER
    )
    axes.set_axis_off()
    size, width = (44, 17) if len(title) <= 40 else (32, 24)
    style: dict[str, Any] = {"ha": "left", "family": "DejaVu Sans"}
    style |= {"size": size, "weight": "bold", "color": COLOURS["ink"]}
    figure.text(0.06, 0.52, textwrap.fill(title, width), va="center", **style)
    style |= {"size": 20, "weight": "normal", "color": COLOURS["muted"]}
    figure.text(0.06, 0.08, course, va="bottom", **style)
    return figure


def with_card(page: str, name: str, static: Path, home: str, course: str) -> str:
    """The page with the address of its card in its head; the card is drawn."""
    title = title_of(page)
    if title is None or 'property="og:title"' not in page:
        return page
    file = static / "cards" / f"{name.replace('/', '_')}.png"
    file.parent.mkdir(exist_ok=True)
    FigureCanvasAgg(card(title, course)).print_png(file)
    image = f"{home}_static/cards/{file.name}"
    alternative = html.escape(f"{title}. {course}.", quote=True)
    tags = [
        f'<meta property="og:image" content="{image}" />',
        '<meta property="og:image:width" content="1200" />',
        '<meta property="og:image:height" content="630" />',
        f'<meta property="og:image:alt" content="{alternative}" />',
        '<meta name="twitter:card" content="summary_large_image" />',
    ]
    return page.replace("<title>", "\n".join(tags) + "\n    <title>", 1)
