"""`read_alignment`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import first, normal, second
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def crossings_of(links: Tensor) -> int:
    later = torch.ones(len(links), len(links)).triu(1).bool()
    return int(((links[:, None] > links[None]) & later).sum())


def crossing_words(links: Tensor) -> tuple[int, ...]:
    """How many words are crossed by a later one, by an earlier one, by either."""
    crossed = (links[:, None] > links[None]).triu(1)
    earlier, later = crossed.any(dim=1), crossed.any(dim=0)
    return tuple(int(x.sum()) for x in (earlier, later, earlier | later))


def read_alignment(weights: Tensor) -> tuple[Tensor, int]:
    links = weights.argmax(dim=-1)
    return links, crossings_of(links)


def linked(
    count: Callable[[Tensor], Any], dim: int = -1
) -> Callable[[Tensor], tuple[Tensor, int]]:
    """Read links along some axis, and count something about them."""

    def read(weights: Tensor) -> tuple[Tensor, int]:
        links = weights.argmax(dim=dim)
        return links, int(count(links))

    return read


def draw_weights(target: int, source: int) -> Callable[..., list[Args]]:
    """Rows of weights with clear winners, two of which share a word and some cross."""

    def draw(rng: np.random.Generator) -> list[Args]:
        cases: list[Args] = []
        while len(cases) < 2:
            scores = 3 * normal(rng, target, source)
            links = scores.argmax(-1)
            neighbours = int((np.diff(links) < 0).sum())
            crossed = crossings_of(torch.from_numpy(links))
            shared = len(set(links.tolist())) < target
            if shared and crossed > neighbours > 0:
                powers = np.exp(scores - scores.max(-1, keepdims=True))
                cases.append((powers / powers.sum(-1, keepdims=True),))
        return cases

    return draw


QUESTION = Question(
    id="03.4",
    title="Links and crossings",
    answer="read_alignment",
    arguments=("weights",),
    outputs=(Output("links", "target"), Output("crossings")),
    reference=read_alignment,
    difficulty="easy",
    minutes=8,
    next_step="find the largest weight of every row, then compare all pairs of rows.",
    parts=(
        Part("links", 1, draw_weights(5, 7), view=first),
        Part("crossings", 1, draw_weights(5, 7), view=second),
        Part("other sizes", 1, draw_weights(7, 4)),
    ),
    mistakes=(
        Mistake(
            "best_target_of_each_source",
            "the largest entry of every column is taken: one row is one target word, "
            "and its links lie along that row",
            linked(crossings_of, dim=0),
        ),
        Mistake(
            "neighbours_only",
            "the links are right; crossings are counted between neighbouring target "
            "words only, but words far apart can cross too",
            linked(lambda links: (links.diff() < 0).sum()),
        ),
        Mistake(
            "ties_count",
            "the links are right; two target words that look at the same source word "
            "are counted as crossing, yet neither overtakes the other",
            linked(
                lambda links: (
                    (links[:, None] >= links[None]).float().triu(1).sum().item()
                )
            ),
        ),
        Mistake(
            "every_pair_twice",
            "the links are right; every crossing is counted twice, once from each side",
            linked(lambda links: 2 * crossings_of(links)),
        ),
        Mistake(
            "off_the_diagonal",
            "the links are right; words off the diagonal are counted, but a shift of "
            "the whole sentence crosses nothing: compare links with each other",
            linked(lambda links: (links != torch.arange(len(links))).sum()),
        ),
        Mistake(
            "in_order",
            "the links are right; the pairs that keep their order are counted: it is "
            "the others that cross",
            linked(
                lambda links: (
                    (links[:, None] < links[None]).float().triu(1).sum().item()
                )
            ),
        ),
        Mistake(
            "weights_for_places",
            "`links` holds the largest weights themselves; asked for are their places "
            "in the row",
            lambda weights: (weights.amax(-1), read_alignment(weights)[1]),
            lambda args, value: np.allclose(value[0], args[0].max(-1)),
        ),
        Mistake(
            "words_not_pairs",
            "the links are right; each word that takes part in a crossing is counted "
            "once: count the pairs, one word can be in several",
            lambda weights: (weights.argmax(-1), crossing_words(weights.argmax(-1))[0]),
            lambda args, value: (
                bool((value[0] == args[0].argmax(-1)).all())
                and value[1] in crossing_words(torch.from_numpy(args[0]).argmax(-1))
            ),
        ),
        Mistake(
            "pairs_either_way_round",
            "the links are right; every pair that looks at two different words is "
            "counted: only those cross whose later word looks further left",
            linked(lambda links: (links[:, None] > links[None]).sum()),
        ),
        Mistake(
            "first_word_missing",
            "the links are right; the first target word is compared with none: places "
            "are counted from 0",
            linked(lambda links: crossings_of(links[1:])),
        ),
        Mistake(
            "last_word_missing",
            "the links are right; the last target word is compared with none: a range "
            "ends before its second number",
            linked(lambda links: crossings_of(links[:-1])),
        ),
        Mistake(
            "places_from_one",
            "`links` counts the source words from 1: the first one is 0",
            lambda weights: (weights.argmax(-1) + 1, read_alignment(weights)[1]),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def pairs_where(crossed):
    def read(weights):
        links = [max(range(len(row)), key=row.__getitem__) for row in weights.tolist()]
        pairs = itertools.combinations(links, 2)
        return torch.tensor(links), sum(crossed(a, b) for a, b in pairs)

    return read


def turned(weights):
    links = weights.argmax(1).tolist()
    return sum(a > b for a, b in itertools.pairwise(links))


RIGHT = [pairs_where(lambda a, b: a > b)]
WRONG = [
    ("neighbours_only", lambda w: (w.max(1).indices, turned(w))),
    ("ties_count", pairs_where(lambda a, b: a >= b)),
    ("every_pair_twice", pairs_where(lambda a, b: 2 * (a > b))),
    ("in_order", pairs_where(lambda a, b: a < b)),
    (
        "best_target_of_each_source",
        lambda w: pairs_where(lambda a, b: a > b)(w.T.contiguous()),
    ),
    (
        "words_not_pairs",
        lambda w: (
            w.argmax(1),
            sum(bool((w.argmax(1)[i:] < w.argmax(1)[i]).any()) for i in range(len(w))),
        ),
    ),
    (
        "last_word_missing",
        lambda w: (
            w.argmax(1),
            pairs_where(lambda a, b: a > b)(w[: len(w) - 1])[1],
        ),
    ),
]
