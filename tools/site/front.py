"""The front page: a translator at work, the map of the course, pictures of its parts.

All of it is made from the model that `book/transformer_in_the_page` trained, as it
stands in the executed notebook:

    ```{front} translator      one sentence, chosen among those that come out right
    ```{front} map             the transformer, drawn from a forward pass of the model
    {part}`01`                 a small picture of the part that begins with a chapter
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import torch
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective, SphinxRole

from course_utils.data.corpus import BOS, EOS
from course_utils.display.diagrams import diagram_html, transformer
from course_utils.display.drawing import Drawing
from course_utils.display.quantised_export import unpack_transformer
from course_utils.display.widgets.front_translator import front_translator, right_ones

PAGE = "book/transformer_in_the_page.ipynb"
WEIGHTS = re.compile(r'data-weights="([\w-]+)">([^<]+)</script>')
DATA = re.compile(r"const data=(.*);\n")
DRAWN = 7  # tokens of the source that the map has room for
ALT = (
    "The transformer as the map of the course: each box is a link to its chapter. "
    "Left, the encoder: embedding, positions, self-attention, feed-forward layer. "
    "Right, the decoder: masked self-attention, cross-attention to what the "
    "encoder returns, feed-forward layer, and the logits on top."
)
CAPTION = (
    "The map. Press a box to go to the chapter that builds it. Shapes and weights are "
    "those of the model above, in a forward pass for “{}”."
)


class Live(NamedTuple):
    """The model of the live page, with its words and the sentences it is tried on."""

    weights: str
    packed: dict[str, Any]
    words: tuple[list[str], list[str]]
    lists: tuple[list[tuple[list[int], list[int]]], ...]


@lru_cache(maxsize=1)
def live(path: Path) -> Live:
    """Read the model from the executed notebook that shows it."""
    cells = nbformat.read(path, as_version=4).cells  # type: ignore[no-untyped-call]
    shown = (out.get("data", {}) for c in cells for out in c.get("outputs", []))
    for page in (data.get("text/html", "") for data in shown):
        if weights := WEIGHTS.search(page):
            found = DATA.search(page)
            assert found, "an interactive without data"
            data = json.loads(found[1])
            words = data["source"], data["target"]
            ids = [{word: i for i, word in enumerate(side)} for side in words]
            examples = [
                tuple(
                    [*map(known.get, text.split()), EOS] for known, text in zip(ids, p)
                )
                for p in data["gold"].items()
            ]
            lists = examples, [tuple(pair) for pair in data["tested"]]
            return Live(weights[1], json.loads(weights[2]), words, lists)  # type: ignore[arg-type]
    raise ExtensionError(
        f"{path.name} shows no model, which the front page needs; does its cell still "
        "end in `live_transformer(…)`, and was it executed?"
    )


# ------------------------------------------------------------------------ what is shown


def translator(model: Live) -> str:
    """The translator, with the weights beside it."""
    name, packed, words, lists = model
    return front_translator("translator", name, packed, words, lists).html


def course_map(model: Live) -> str:
    """The diagram of chapter 12, of the trained model and a sentence it gets right."""
    small = unpack_transformer(model.packed)
    pairs = right_ones(small, chain(*model.lists), DRAWN)
    source, target = next(pairs, ((), ()))
    if not source:
        raise ValueError(
            f"the model translates no sentence of up to {DRAWN} tokens rightly; give "
            "more of them, or train it longer."
        )
    # fewer words written than read: axes are named by their sizes, which must differ
    written = [BOS, *target][: len(source) - 2]
    drawn = transformer(small, torch.tensor([source]), torch.tensor([written]))
    sentence = " ".join(model.words[0][i] for i in source[:-1])
    return diagram_html(drawn, ALT, "map", CAPTION.format(sentence))


def part_picture(chapter: str) -> str:
    """A small picture of a part, by the chapter that it begins with."""
    if chapter not in PICTURES:
        raise ExtensionError(
            f"there is no picture of a part that begins with chapter {chapter!r}; "
            f"expected one of {', '.join(PICTURES)}."
        )
    d = Drawing(96, 56)
    PICTURES[chapter](d)
    return (
        f'<svg class="course-part" aria-hidden="true" viewBox="0 0 {d.width} '
        f'{d.height}" width="{d.width}" height="{d.height}">{"".join(d.parts)}</svg>'
    )


def bars(d: Drawing, values: Sequence[float], left: float, step: float) -> None:
    """Bars of weights on a line."""
    for i, value in enumerate(values):
        high = 40 * value
        d.add(
            "rect", x=left + step * i, y=48 - high, width=step - 3, height=high, rx=1.5,
            fill=BLUE, fill_opacity=0.25 + 0.75 * value,
        )  # fmt: skip
    d.line(f"M{left - 2} 48.5h{step * len(values) + 1}", "muted")


def static_weights(d: Drawing) -> None:
    """One weight for each word, the same for every question."""
    bars(d, (0.15, 0.9, 0.3, 0.1, 0.6, 0.2), 6, 14)


def recurrent(d: Drawing) -> None:
    """A chain of states, and one word that looks back at all of them."""
    for i, weight in enumerate((0.15, 0.8, 0.35, 0.1)):
        x = 12 + 24 * i
        d.add(
            "path", d=f"M{x} 36C{x} 22 48 24 48 12", fill="none", stroke=BLUE,
            stroke_width=1 + 3 * weight, stroke_opacity=0.2 + 0.8 * weight,
        )  # fmt: skip
        d.box(x, 44, 15, 15, role="purple")
        if i < 3:
            d.arrow((x + 8, 44), (x + 16, 44), role="purple", thick=1.2)
    d.box(48, 9, 17, 15, role="purple")


def attention_alone(d: Drawing) -> None:
    """A table of weights: everybody asks everybody."""
    scores = torch.tensor(
        [[3.0 * (i == (j * 3 + 1) % 5) for j in range(5)] for i in range(5)]
    )
    d.tensor(
        48, 28, torch.softmax(scores, -1), "weights", cell=10, ramp=True, label=False
    )


def two_stacks(d: Drawing) -> None:
    """Encoder and decoder."""
    for x, top in ((28, 2), (70, 1)):
        d.line(f"M{x} 54V3", "stream", 4)
        for i in range(top + 1):
            d.box(x, 42 - 17 * i, 30, 12, role="orange", opaque=True)
    d.arrow((44, 25), (54, 25), role="keys", thick=1.4)


def image_and_text(d: Drawing) -> None:
    """An image in patches, asked by a word."""
    seen = torch.tensor([[0.05, 0.1, 0.1, 0.05], [0.1, 0.5, 0.9, 0.1],
                         [0.05, 0.4, 0.6, 0.1], [0.05, 0.05, 0.1, 0.05]])  # fmt: skip
    d.tensor(30, 28, seen, "weights", cell=12, ramp=True, label=False)
    d.arrow((74, 28), (58, 28), role="green", thick=1.4)
    d.box(84, 28, 18, 16, role="green")


def circuit(d: Drawing) -> None:
    """Two rows of heads, and the path of one prediction through them."""
    for y in (42, 14):
        for x in (14, 37, 60, 83):
            d.box(x, y, 15, 12, role="grey")
    d.arrow((37, 55), (37, 48), role="keys", thick=1.4)
    d.arrow((37, 36), (37, 28), (60, 28), (60, 20), role="keys", thick=1.4)
    d.arrow((60, 8), (60, 1), role="values", thick=1.4)
    for x, y, role in ((37, 42, "keys"), (60, 14, "values")):
        d.box(x, y, 15, 12, role=role)


BLUE = "var(--course-blue, #1f5fa8)"
PICTURES = {
    "01": static_weights,
    "02": recurrent,
    "05": attention_alone,
    "11": two_stacks,
    "14": image_and_text,
    "16": circuit,
}
SHOWN = {"translator": translator, "map": course_map}


# ------------------------------------------------------------------------- in a page


class Front(SphinxDirective):
    """Something that the front page shows of the trained model."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Make it; what can't be made is an error of the page."""
        name = self.arguments[0]
        if name not in SHOWN:
            raise self.error(f"there is no {name!r}; expected {' or '.join(SHOWN)}")
        path = Path(self.env.srcdir, PAGE)
        self.env.note_dependency(str(path))
        try:
            return [nodes.raw("", SHOWN[name](live(path)), format="html")]
        except (ValueError, OSError) as error:
            raise self.error(f"the front page has no {name}: {error}") from error


class Part(SphinxRole):
    """A small picture of a part of the course."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Draw it."""
        return [nodes.raw("", part_picture(self.text), format="html")], []


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and the role."""
    app.add_directive("front", Front)
    app.add_role("part", Part())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
