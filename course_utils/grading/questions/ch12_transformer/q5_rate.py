"""`rate`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question
from course_utils.training.loop import lr_at


def rate(step: int, steps: int, lr: float, warmup: int) -> float:
    return scheduled(step, steps, lr, warmup)


def scheduled(
    step: int,
    steps: int,
    lr: float,
    warmup: int,
    rise: Callable[[int, int], float] = lambda step, warmup: (step + 1) / warmup,
    fall: Callable[[float], float] = lambda t: (1 + math.cos(math.pi * t)) / 2,
) -> float:
    if step < warmup:
        return lr * rise(step, warmup)
    return lr * fall((step - warmup) / (steps - warmup))


def draw_steps(before: bool) -> Any:
    def cases(rng: np.random.Generator) -> list[Args]:
        drawn: list[Args] = []
        for part in (0.0, 0.4, 0.9):
            warmup = int(rng.integers(8, 20))
            steps = warmup + int(rng.integers(30, 60))
            span = warmup if before else steps - warmup
            step = int(part * span) + (0 if before else warmup)
            drawn.append((step, steps, round(float(rng.uniform(0.1, 1)), 3), warmup))
        return drawn

    return cases


def draw_cold(rng: np.random.Generator) -> list[Args]:
    """Schedules that begin with the cosine."""
    steps = int(rng.integers(30, 60))
    return [(step, steps, 0.5, 0) for step in (0, int(0.3 * steps))]


QUESTION = Question(
    id="12.5",
    title="Warm-up and cosine",
    answer="rate",
    arguments=("step", "steps", "lr", "warmup"),
    outputs=(Output("rate"),),
    reference=rate,
    difficulty="easy",
    minutes=8,
    next_step="two cases: before the end of the warm-up, and after it.",
    parts=(
        Part("while it warms up", 1, draw_steps(True)),
        Part("after the warm-up", 1, draw_steps(False)),
        Part(
            "no warm-up at all",
            1,
            draw_cold,
            only_failure_hint="right with a warm-up, wrong with `warmup` 0: what is "
            "divided by it, and when?",
        ),
    ),
    mistakes=(
        Mistake(
            "starts_at_zero",
            "the first step has rate 0 and learns nothing: step 0 gets lr / warmup",
            lambda s, n, lr, w: scheduled(s, n, lr, w, rise=lambda s, w: s / w),
        ),
        Mistake(
            "no_warmup",
            "there is no warm-up: the rate starts at its full height",
            lambda s, n, lr, w: scheduled(s, n, lr, w, rise=lambda s, w: 1.0),
        ),
        Mistake(
            "cosine_from_the_start",
            "the cosine is counted from step 0: it begins where the warm-up ends, with "
            "the done fraction of the rest",
            lambda s, n, lr, w: (
                lr * (s + 1) / w if s < w else lr * (1 + math.cos(math.pi * s / n)) / 2
            ),
        ),
        Mistake(
            "rest_not_shortened",
            "the steps since the warm-up are divided by all steps: the rest has "
            "steps − warmup of them, so the rate never comes down to zero",
            lambda s, n, lr, w: (
                lr * (s + 1) / w
                if s < w
                else lr * (1 + math.cos(math.pi * (s - w) / n)) / 2
            ),
        ),
        Mistake(
            "one_step_late",
            "after the warm-up the steps are counted from 1: the first step after it "
            "still has the full rate, so t starts at 0",
            lambda s, n, lr, w: (
                lr * (s + 1) / w
                if s < w
                else lr * (1 + math.cos(math.pi * (s + 1 - w) / (n - w))) / 2
            ),
        ),
        Mistake(
            "one_step_too_high",
            "the warm-up takes one step too many, and that step goes above lr: steps "
            "count from 0, so the warm-up ends before step = warmup",
            lambda s, n, lr, w: lr * (s + 1) / w if s <= w else scheduled(s, n, lr, w),
        ),
        Mistake(
            "last_step_wasted",
            "the rest is counted one step too short, so that the last step has rate 0 "
            "and learns nothing: it has steps − warmup steps",
            lambda s, n, lr, w: (
                lr * (s + 1) / w
                if s < w
                else lr * (1 + math.cos(math.pi * (s - w) / (n - w - 1))) / 2
            ),
        ),
        Mistake(
            "quarter_wave",
            "this is a quarter of a wave: cos(pi t / 2) falls fastest at the end; half "
            "a wave, (1 + cos(pi t)) / 2, ends gently",
            lambda s, n, lr, w: scheduled(
                s, n, lr, w, fall=lambda t: math.cos(math.pi * t / 2)
            ),
        ),
        Mistake(
            "whole_cosine",
            "the cosine runs from 1 to −1: a negative rate climbs; add 1 and halve",
            lambda s, n, lr, w: scheduled(
                s, n, lr, w, fall=lambda t: math.cos(math.pi * t)
            ),
        ),
        Mistake(
            "straight_line",
            "after the warm-up the rate falls in a line; the cosine stays high at "
            "first and ends gently",
            lambda s, n, lr, w: scheduled(s, n, lr, w, fall=lambda t: 1 - t),
        ),
        Mistake(
            "not_halved",
            "1 + cos starts at 2: the rate jumps to twice its height when the warm-up "
            "ends",
            lambda s, n, lr, w: scheduled(
                s, n, lr, w, fall=lambda t: 1 + math.cos(math.pi * t)
            ),
        ),
        Mistake(
            "constant_after",
            "the rate stays where the warm-up left it: it should fall to zero",
            lambda s, n, lr, w: scheduled(s, n, lr, w, fall=lambda t: 1.0),
        ),
        Mistake(
            "cosine_for_the_warmup",
            "the cosine is there, the warm-up is not: below `warmup` the rate rises in "
            "a line",
            lambda s, n, lr, w: lr * (1 + math.cos(math.pi * (s - w) / (n - w))) / 2,
        ),
        Mistake(
            "lr_forgotten",
            "this goes up to 1 whatever `lr` is: the rate is this share of lr",
            lambda s, n, lr, w: rate(s, n, 1.0, w),
        ),
    ),
    packaged=("lr_at",),
)


# ----------------------------------------------------------------------- specimens


def climb_and_fall(rise, fall):
    def answer(step, steps, lr, warmup):
        if step + 1 <= warmup:
            return lr * rise(step, warmup)
        return lr * fall(step, steps, warmup)

    return answer


def up(step, warmup):
    return (1 + step) / warmup


def down(step, steps, warmup):
    return math.cos(math.pi / 2 * (step - warmup) / (steps - warmup)) ** 2


RIGHT = [
    climb_and_fall(up, down),
    lambda step, steps, lr, warmup: lr_at(step, steps, lr, warmup),
]
WRONG = [
    ("starts_at_zero", climb_and_fall(lambda s, w: s / w, down)),
    ("no_warmup", climb_and_fall(lambda s, w: 1, down)),
    (
        "cosine_from_the_start",
        climb_and_fall(up, lambda s, n, w: math.cos(math.pi / 2 * s / n) ** 2),
    ),
    (
        "rest_not_shortened",
        climb_and_fall(up, lambda s, n, w: math.cos(math.pi / 2 * (s - w) / n) ** 2),
    ),
    ("one_step_late", climb_and_fall(up, lambda s, n, w: down(s + 1, n, w))),
    (
        "one_step_too_high",
        lambda s, n, lr, w: lr * (s + 1) / w if s - w < 1 else lr * down(s, n, w),
    ),
    ("last_step_wasted", climb_and_fall(up, lambda s, n, w: down(s, n - 1, w))),
    ("quarter_wave", climb_and_fall(up, lambda s, n, w: math.sqrt(down(s, n, w)))),
    ("whole_cosine", climb_and_fall(up, lambda s, n, w: 2 * down(s, n, w) - 1)),
    ("straight_line", climb_and_fall(up, lambda s, n, w: (n - s) / (n - w))),
    ("not_halved", climb_and_fall(up, lambda s, n, w: 2 * down(s, n, w))),
    ("constant_after", climb_and_fall(up, lambda s, n, w: 1)),
]
