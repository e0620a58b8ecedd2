"""`paths`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def draw_distance(rng: np.random.Generator, low: int, high: int) -> Args:
    return (int(rng.integers(low, high)),)


def dilated(k: int) -> int:
    layers = 1
    while 2 * (2**layers - 1) < k:
        layers += 1
    return layers


def paths(k: int) -> tuple[int, int, int, int]:
    return 1, k, math.ceil(k / 2), dilated(k)


def with_path(place: int, value: Any) -> Any:
    """The right paths of a distance, but for one of them."""

    def wrong(k: int) -> tuple[Any, ...]:
        right = list(paths(k))
        right[place] = value(k)
        return tuple(right)

    return wrong


QUESTION = Question(
    id="15.2",
    title="How long is the way back?",
    answer="paths",
    arguments=("k",),
    outputs=tuple(
        Output(name) for name in ("attention", "gru", "convolutions", "dilated")
    ),
    reference=paths,
    difficulty="medium",
    minutes=10,
    next_step="work out for each kind how far one layer or one step reaches back.",
    parts=(
        Part(
            "attention and GRU",
            1,
            lambda rng: [draw_distance(rng, 30, 200) for _ in range(2)],
            lambda v: v[:2],
        ),
        Part(
            "convolutions",
            1,
            lambda rng: [(2 * draw_distance(rng, 20, 90)[0] + odd,) for odd in (0, 1)],
            lambda v: v[2],
            only_failure_hint="right but for the plain convolutions: try k = 2, 3 and "
            "4 by hand",
        ),
        Part(
            "dilated convolutions",
            1,
            lambda rng: [(14,), (15,), (62,), (64,), draw_distance(rng, 100, 900)],
            lambda v: v[3],
            only_failure_hint="right but for the dilated ones: three of them reach 14 "
            "tokens back, as in the chapter; what do four reach?",
        ),
    ),
    mistakes=(
        Mistake(
            "kernel_reaches_three",
            "a kernel of 3 sees three tokens, its own among them: so how far back does "
            "one layer reach?",
            with_path(2, lambda k: math.ceil(k / 3)),
        ),
        Mistake(
            "rounded_down",
            "the layers are rounded down, so that the last token is not quite reached",
            with_path(2, lambda k: k // 2),
        ),
        Mistake(
            "one_token_a_layer",
            "the plain convolutions move one token a layer: a kernel of 3 does more",
            with_path(2, lambda k: k),
        ),
        Mistake(
            "one_layer_too_many",
            "for an even k, one plain convolution too many: k = 2 is reached by the "
            "first layer already",
            with_path(2, lambda k: k // 2 + 1),
        ),
        Mistake(
            "not_whole",
            "layers come whole: the formula gives a number with a fraction, and a "
            "layer that is used in part is needed all the same",
            lambda k: (1, k, k / 2, math.log2(k / 2 + 1)),
        ),
        Mistake(
            "own_token_counted",
            "the dilated stack is compared with the number of tokens *seen*, the own "
            "one included; k counts the tokens back",
            with_path(3, lambda k: dilated(k - 1)),
        ),
        Mistake(
            "dilated_rounded_down",
            "the dilated layers are rounded down, so that the last token is not quite "
            "reached",
            with_path(3, lambda k: dilated(k + 1) - 1),
        ),
        Mistake(
            "gap_only",
            "one gap is counted for each dilated layer: a kernel of 3 has a token two "
            "gaps back as well",
            with_path(3, lambda k: next(n for n in range(1, 99) if 2**n > k)),
        ),
        Mistake(
            "dilated_does_not_add",
            "only the last layer's own reach is counted; a message may step back in "
            "every layer, so the reaches add up",
            with_path(3, lambda k: math.ceil(math.log2(k))),
        ),
        Mistake(
            "attention_for_nothing",
            "attention is given no step at all: one weighted average brings the token, "
            "and that is a step",
            with_path(0, lambda k: 0),
        ),
        Mistake(
            "attention_walks",
            "attention is given a way that grows with the distance: what lies between "
            "two tokens there?",
            with_path(0, lambda k: k),
        ),
        Mistake(
            "gru_jumps",
            "the GRU is given a way of one step: its state passes through every token "
            "in between",
            with_path(1, lambda k: 1),
        ),
        Mistake(
            "gru_tokens_between",
            "in the GRU only the tokens in between are counted; the last step, into "
            "the token that listens, is one too",
            with_path(1, lambda k: k - 1),
        ),
        Mistake(
            "gru_both_ends",
            "in the GRU both ends are counted: from one token to the next is *one* "
            "step",
            with_path(1, lambda k: k + 1),
        ),
    ),
    tolerance=1e-6,
)


# ----------------------------------------------------------------------- specimens


def dilated_by_sum(k):
    reach, layers = 0, 0
    while reach < k:
        reach += 2 * 2**layers
        layers += 1
    return layers


RIGHT = [
    lambda k: (1, k, (k + 1) // 2, dilated_by_sum(k)),
    lambda k: (1.0, np.int64(k), -(-k // 2), math.ceil(math.log2(k / 2 + 1))),
]
WRONG = [
    ("kernel_reaches_three", lambda k: (1, k, -(-k // 3), dilated_by_sum(k))),
    ("rounded_down", lambda k: (1, k, int(k / 2), dilated_by_sum(k))),
    ("one_token_a_layer", lambda k: (1, k, k, dilated_by_sum(k))),
    ("own_token_counted", lambda k: (1, k, (k + 1) // 2, dilated_by_sum(k - 1))),
    ("one_layer_too_many", lambda k: (1, k, math.floor(k / 2 + 1), dilated_by_sum(k))),
    (
        "dilated_rounded_down",
        lambda k: (1, k, (k + 1) // 2, math.floor(math.log2(k / 2 + 1))),
    ),
    (
        "gru_tokens_between",
        lambda k: (1, len(range(1, k)), (k + 1) // 2, dilated_by_sum(k)),
    ),
    (
        "gru_both_ends",
        lambda k: (1, len(range(k + 1)), (k + 1) // 2, dilated_by_sum(k)),
    ),
    ("not_whole", lambda k: (1, k, 0.5 * k, math.log2(k + 2) - 1)),
    ("attention_for_nothing", lambda k: (0, k, (k + 1) // 2, dilated_by_sum(k))),
    ("gap_only", lambda k: (1, k, (k + 1) // 2, k.bit_length())),
    ("dilated_does_not_add", lambda k: (1, k, (k + 1) // 2, (k - 1).bit_length())),
    ("attention_walks", lambda k: (k, k, (k + 1) // 2, dilated_by_sum(k))),
    ("gru_jumps", lambda k: (1, 1, (k + 1) // 2, dilated_by_sum(k))),
]
