"""A small translator for the front page: one sentence, lines to the source, switches.

The sentence is chosen when the page is built, among those that the model translates
rightly: the one that misses most of its heads, so that a switch has something to show.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from course_utils.data.corpus import BOS, EOS
from course_utils.display.drawing import Drawing
from course_utils.display.interactive import (
    Widget,
    button,
    script_of,
    widget,
)
from course_utils.display.quantised_export import model_in_page, unpack_transformer
from course_utils.display.svg import colour, path
from course_utils.display.widgets.live_transformer import still, weights_element
from course_utils.evaluation.ablation import Head, ablate, heads_of
from course_utils.evaluation.decoding import greedy
from course_utils.models.transformer import Transformer

Ids = Sequence[int]
MOST_WORDS = 9  # of the chosen sentence, its full stop counted
WIDE, NARROW, ROW = 356, 128, 28  # pixels of the drawing; on a phone, and per word
ASLEEP = "Where scripts may run, the words appear one by one and heads can be switched."


class Chosen(NamedTuple):
    """A sentence that is translated rightly, and what it becomes without a head."""

    source: list[int]
    target: list[int]
    missed: list[Head]  # those whose loss changes the translation, the worst first


def written(model: Transformer, source: Ids, most: int) -> list[int]:
    """The ids that a model writes for a source, up to the end or to so many."""
    found = greedy(model, torch.tensor([list(source)]), most, BOS, EOS).tokens
    return found[0].tolist()


def missed_heads(model: Transformer, source: Ids, target: Ids) -> list[Head]:
    """The heads without which another sentence is written, the furthest off first."""

    def changed(head: Head) -> int:
        other = written(ablate(model, [head]), source, len(target) + 2)
        same = sum(a == b for a, b in zip(other, target))
        return max(len(other), len(target)) - same

    far = {head: changed(head) for head in heads_of(model)}
    return sorted((h for h in far if far[h]), key=lambda head: -far[head])


def right_ones(
    model: Transformer, pairs: Iterable[tuple[Ids, Ids]], most: int
) -> Iterator[tuple[Ids, Ids]]:
    """Those of up to `most` ids, the end counted, that the model translates rightly."""
    for source, target in pairs:
        short = max(len(source), len(target)) <= most
        if short and written(model, source, most) == list(target):
            yield source, target


def choose(
    model: Transformer, lists: Sequence[Sequence[tuple[Ids, Ids]]], most: int
) -> Chosen:
    """Choose a sentence of up to `most` ids that the model translates rightly.

    From the first of the `lists` with one that a missing head changes, the one that
    most heads change.
    """
    for pairs in lists:
        right = right_ones(model, pairs, most)
        found = [Chosen([*s], [*t], missed_heads(model, s, t)) for s, t in right]
        best = max(found, key=lambda chosen: len(chosen.missed), default=None)
        if best and best.missed:
            return best
    raise ValueError(
        f"of {sum(map(len, lists))} sentences none has up to {most} tokens, is "
        "translated rightly and changes when a head is off; give more of them, or "
        "train the model longer."
    )


def front_translator(
    name: str,
    weights: str,
    packed: Mapping[str, Any],
    words: tuple[Sequence[str], Sequence[str]],
    lists: Sequence[Sequence[tuple[Ids, Ids]]],
) -> Widget:
    """Show one sentence being translated, and what a head that is off does to it.

    `packed` is the model as `pack` writes it, stored as `weights`; `words` are those of
    both vocabularies, and `lists` the sentences to choose from, as ids with the end.
    Used on the front page.
    """
    model = unpack_transformer(packed)
    chosen = choose(model, lists, MOST_WORDS + 1)
    data: dict[str, Any] = {
        "weights": weights,
        "sizes": {key: packed["sizes"][key] for key in ("n_layers", "n_heads")},
        "tokens": chosen.source,
        "rows": max(len(chosen.source), len(chosen.target)),
        "source": [words[0][i] for i in chosen.source if i != EOS],
        "target": list(words[1]),
        "missed": [f"{kind}-{layer}-{head}" for kind, layer, head in chosen.missed],
        "still": still(packed, chosen.source),
    }
    target = [words[1][i] for i in chosen.target if i != EOS]
    english, french = " ".join(data["source"]), " ".join(target)
    alt = (
        f"A transformer translates “{english}” into “{french}”. Lines lead from each "
        "French word to the English words that the model looked at to write it. Below "
        f"are its {len(heads_of(model))} heads, each with a switch."
    )
    made = widget(
        name,
        "A transformer at work, in your browser",
        [
            button("play", "Pause"),
            button("one", "Switch a head off"),
            button("all", "All on"),
        ],
        data=data,
        script=f"{model_in_page()}\n{script_of(__name__)}",
        alt=alt,
        height=WIDE,
        still=still_drawing(data, target),
        asleep=ASLEEP,
    )
    tall = NARROW + ROW * data["rows"]
    css = (
        f"<style>#{name}{{container-type:inline-size}}"
        f"#{name} .cw-controls{{gap:.5rem}}"
        # as wide as its longest word: nothing may jump when it changes
        f"#{name} [data-control=play]{{min-width:4.2rem}}"
        f"@container(max-width:540px){{#{name} svg{{height:{tall}px!important}}"
        f"#{name} .cw-controls button{{padding:.3rem .5rem}}}}"
        f"</style><noscript><style>#{name} svg{{height:auto!important}}"
        f"#{name} .cw-controls{{display:none}}</style></noscript>"
    )
    return Widget(css + made.html + weights_element(weights, packed), made.alt)


def still_drawing(data: Mapping[str, Any], target: Sequence[str]) -> Drawing:
    """The sentence and its translation with all lines, for pages without scripts."""
    width, rows = 640, ((data["source"], 24), (target, 150))
    drawn = Drawing(width, 174)
    at: list[list[float]] = []
    for found, y in rows:
        wide = [8 * len(word) + 18 for word in found]
        gap = min(8.0, (width - sum(wide)) / max(len(found) - 1, 1))
        x, centres = (width - sum(wide) - gap * (len(found) - 1)) / 2, []
        for word, side in zip(found, wide):
            drawn.box(x + side / 2, y, side, 28, role="blue", fill=0.06, thick=1)
            drawn.text(x + side / 2, y, html.escape(word), 14)
            centres.append(x + side / 2)
            x += side + gap
        at.append(centres)
    for step, x1 in zip(data["still"]["steps"], at[1]):
        for weight, x0 in zip(step["cross"].mean(dim=(0, 1)).tolist(), at[0]):
            if weight < 0.05:
                continue
            drawn.add(
                "path",
                d=path("M", x0, 38, "C", x0, 87, x1, 87, x1, 136),
                fill="none",
                stroke=colour("weights"),
                stroke_width=1 + 5 * weight,
                stroke_opacity=weight,
            )
    return drawn
