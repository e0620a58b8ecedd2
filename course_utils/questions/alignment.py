"""More questions of chapter 03: reading alignments, and what they don't say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import first, normal, second

# --------------------------------------------------------------- 03.4 read the matrix


def crossings_of(links: Tensor) -> int:
    later = torch.ones(len(links), len(links)).triu(1).bool()
    return int(((links[:, None] > links[None]) & later).sum())


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


READ = Question(
    id="03.4",
    title="Links and crossings",
    answer="read_alignment",
    arguments=("weights",),
    outputs=(Output("links", "target"), Output("crossings")),
    reference=read_alignment,
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
    ),
)


# ------------------------------------------------------------- 03.5 what may be said

YES, NO = "follows", "does not follow"
SAID = {
    "context": YES,
    "crossing": YES,
    "shared_out": YES,
    "column": YES,
    "reason": NO,
    "annotation": NO,
    "unique": NO,
    "no_influence": NO,
}


def answers_of(kind: str) -> Callable[[Any], Any]:
    names = [name for name, own in SAID.items() if own == kind]
    return lambda value: [value.get(name) for name in names]


def said(name: str) -> Callable[[], dict[str, str]]:
    """Everything right but one."""
    return lambda: SAID | {name: NO if SAID[name] == YES else YES}


def judged_wrongly(name: str) -> Callable[[Args, Any], bool]:
    return lambda args, value: value[name] != SAID[name]


def misjudged(name: str, hint: str) -> Mistake:
    return Mistake(f"{name}_misjudged", hint, said(name), judged_wrongly(name))


SAYS = Question(
    id="03.5",
    title="What the matrix says, and what it doesn't",
    answer="conclusions",
    arguments=(),
    outputs=(Output("conclusions"),),
    reference=lambda: dict(SAID),
    next_step="ask of each sentence: could it be false for the very same matrix?",
    parts=(
        Part("what follows", 2, lambda rng: [()], view=answers_of(YES)),
        Part("what does not", 2, lambda rng: [()], view=answers_of(NO)),
    ),
    mistakes=(
        Mistake(
            "not_all_or_other_words",
            "every one of the eight names needs one of the two texts: 'follows' or "
            "'does not follow'",
            lambda: dict.fromkeys(SAID, "perhaps"),
            lambda args, value: any(value.get(n) not in (YES, NO) for n in SAID),
        ),
        misjudged(
            "context",
            "look at `context` again: it only restates c_t = Σ a_tj h_j with the "
            "numbers of one row",
        ),
        misjudged(
            "crossing",
            "look at `crossing` again: find the largest weight of both rows and "
            "compare their columns",
        ),
        misjudged(
            "shared_out",
            "look at `shared_out` again: what do the weights of one row sum to, "
            "whatever the scores are?",
        ),
        misjudged(
            "column",
            "look at `column` again: add up the five numbers below the word; nothing "
            "forces that sum to be one",
        ),
        misjudged(
            "reason",
            "`reason` says what would happen with another input: no row of weights "
            "was computed for that input",
        ),
        misjudged(
            "annotation",
            "`annotation` takes a place for a word: what has the encoder read by the "
            "time it writes down a state?",
        ),
        misjudged(
            "unique",
            "`unique` claims something of all other rows: many averages of the same "
            "states may lead to the same word",
        ),
        misjudged(
            "no_influence",
            "`no_influence` counts one path only: by which other ways does a source "
            "word reach the decoder?",
        ),
    ),
)


# ------------------------------------------------------------ 03.6 error rate by hand

RATES = (4 / 5, 2 / 9)


def rate_is(index: int, *wrong: float) -> Callable[[Args, Any], bool]:
    """Recognise typical wrong numbers at one place, whatever stands at the other."""
    return lambda args, value: any(
        abs(float(value[index]) - number) < 0.006 for number in wrong
    )


RATE = Question(
    id="03.6",
    title="Alignment error rate by hand",
    answer="rates",
    arguments=(),
    outputs=(Output("accuracy"), Output("error_rate")),
    reference=lambda: RATES,
    tolerance=0.005,
    next_step="count |A|, |S|, |A ∩ S| and |A ∩ P| on paper, then put them in.",
    parts=(
        Part("accuracy", 1, lambda rng: [()], view=first),
        Part("error rate", 1, lambda rng: [()], view=second),
    ),
    mistakes=(
        Mistake(
            "sure_only",
            "the first number allows the sure links alone: a possible link is not a "
            "mistake",
            lambda: (3 / 5, RATES[1]),
            rate_is(0, 3 / 5),
        ),
        Mistake(
            "percent",
            "these are percentages: both numbers run from 0 to 1",
            lambda: (100 * RATES[0], 100 * RATES[1]),
            lambda args, value: any(float(number) > 1.5 for number in value),
        ),
        Mistake(
            "recall",
            "the first number divides by the sure links: it asks how many of the "
            "predicted ones are allowed",
            lambda: (3 / 4, RATES[1]),
            rate_is(0, 3 / 4, 1.0),
        ),
        Mistake(
            "possible_without_sure",
            "the first number counts those that are only possible: every sure link is "
            "possible too",
            lambda: (1 / 5, 1 - 4 / 9),
            rate_is(0, 1 / 5),
        ),
        Mistake(
            "one_minus_accuracy",
            "the second number is one minus the first: the error rate also asks how "
            "many of the sure links were found",
            lambda: (RATES[0], 1 / 5),
            rate_is(1, 1 / 5),
        ),
        Mistake(
            "not_subtracted",
            "the second number is the share that is right: an error rate is what "
            "remains of one",
            lambda: (RATES[0], 7 / 9),
            rate_is(1, 7 / 9),
        ),
        Mistake(
            "sure_counted_apart",
            "the second number leaves the sure links out of P: they are in both "
            "intersections",
            lambda: (RATES[0], 1 - 4 / 9),
            rate_is(1, 1 - 4 / 9),
        ),
        Mistake(
            "possible_in_the_denominator",
            "the second number divides by |A| + |P|: nobody has to find every "
            "possible link, only the sure ones count below",
            lambda: (RATES[0], 1 - 7 / 11),
            rate_is(1, 1 - 7 / 11, 1 - 7 / 10),
        ),
    ),
)

QUESTIONS = (READ, SAYS, RATE)
