"""`predict_reach`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import torch

from course_utils.grading.questions.model import Mistake, Output, Part, Question

REACHES = (7, 15, 465)


def number_is(index: int, *wrong: float) -> Any:
    return lambda args, value: any(float(value[index]) == each for each in wrong)


def number_at(index: int) -> Any:
    return lambda value: value[index]


QUESTION = Question(
    id="09.7",
    title="How far does it see?",
    answer="predict_reach",
    arguments=(),
    outputs=(Output("last_input"), Output("places_back"), Output("tokens_read")),
    reference=lambda: REACHES,
    tolerance=1e-6,
    difficulty="easy",
    minutes=6,
    next_step="draw the mask of one layer, then follow a token from layer to layer.",
    parts=(
        Part("off by one, four layers", 1, lambda rng: [()], view=number_at(0)),
        Part("a window, five layers", 1, lambda rng: [()], view=number_at(1)),
        Part("all beginnings", 1, lambda rng: [()], view=number_at(2)),
    ),
    mistakes=(
        Mistake(
            "one_layer_leak",
            "the first number is that of a single layer: what its neighbour saw in the "
            "layer before comes along",
            lambda: (4, 15, 465),
            number_is(0, 4),
        ),
        Mistake(
            "counted_from_one",
            "the first number is one too large: inputs count from 0, and output 3 "
            "begins at input 3",
            lambda: (8, 15, 465),
            number_is(0, 8),
        ),
        Mistake(
            "leak_one_layer_short",
            "the first number is one layer short: every one of the four layers carries "
            "something one step ahead",
            lambda: (6, 15, 465),
            number_is(0, 6),
        ),
        Mistake(
            "no_leak",
            "the first number would be right for a causal mask; this one allows one "
            "key more in every layer",
            lambda: (3, 15, 465),
            number_is(0, 3),
        ),
        Mistake(
            "all_tokens",
            "the first number takes the leak for boundless: how many steps ahead can "
            "four layers carry something?",
            lambda: (9, 15, 465),
            number_is(0, 9, 10, 11),
        ),
        Mistake(
            "one_layer_window",
            "the second number is the window of one layer: the tokens in it have "
            "looked back themselves",
            lambda: (7, 3, 465),
            number_is(1, 3, 4),
        ),
        Mistake(
            "window_with_itself",
            "the second number counts the token itself in every layer: how many steps "
            "back does one layer carry something?",
            lambda: (7, 20, 465),
            number_is(1, 20),
        ),
        Mistake(
            "window_of_tokens",
            "the second number counts the tokens that are seen, the output's own among "
            "them: how many positions *back* is the farthest?",
            lambda: (7, 16, 465),
            number_is(1, 16),
        ),
        Mistake(
            "window_one_layer_short",
            "the second number is one layer short: every one of the five layers looks "
            "three places back",
            lambda: (7, 12, 465),
            number_is(1, 12),
        ),
        Mistake(
            "window_one_layer_more",
            "the second number is one layer too large: the inputs themselves look back "
            "at nothing",
            lambda: (7, 18, 465),
            number_is(1, 18),
        ),
        Mistake(
            "window_and_layers_added",
            "the second number adds the layers to the window: each layer looks three "
            "places back from where the one before it arrived",
            lambda: (7, 8, 465),
            number_is(1, 8),
        ),
        Mistake(
            "powers",
            "the second number multiplies windows with each other: steps of different "
            "layers add up",
            lambda: (7, 243, 465),
            number_is(1, 243, 1024, 1023, 81, 256),
        ),
        Mistake(
            "squared",
            "the third number reads the whole text in every pass: the first pass reads "
            "a single token",
            lambda: (7, 15, 900),
            number_is(2, 900),
        ),
        Mistake(
            "last_pass_missing",
            "the third number leaves one pass out: count the beginnings, the whole "
            "text is one of them",
            lambda: (7, 15, 435),
            number_is(2, 435),
        ),
        Mistake(
            "one_pass_too_many",
            "the third number counts one pass too many: there are as many beginnings "
            "as tokens",
            lambda: (7, 15, 496),
            number_is(2, 496),
        ),
        Mistake(
            "half_the_square",
            "the third number is half of the square: that is nearly the sum, which "
            "has one more half of each token",
            lambda: (7, 15, 450),
            number_is(2, 450),
        ),
        Mistake(
            "parallel",
            "the third number is that of the parallel pass, which needs the mask",
            lambda: (7, 15, 30),
            number_is(2, 30),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [lambda: (7, torch.tensor(15), 465.0)]
WRONG = [
    ("window_one_layer_more", lambda: (7, 3 * 6, 465)),
    ("one_pass_too_many", lambda: (7, 15, 31 * 32 / 2)),
    ("one_layer_leak", lambda: (4, 15, 465)),
    ("leak_one_layer_short", lambda: (6, 15, 465)),
    ("window_one_layer_short", lambda: (7, 12, 465)),
    ("window_and_layers_added", lambda: (7, 8, 465)),
    ("counted_from_one", lambda: (8, 20, 900)),
    ("window_with_itself", lambda: [7, torch.tensor(20.0), 465]),
    ("one_layer_window", lambda: (7, 3, 30)),
    ("last_pass_missing", lambda: (7, 15, 435)),
    ("parallel", lambda: (7, 15, 30)),
]
NOT_IN_HINTS = {str(number) for number in REACHES}
