"""`rate`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question
from course_utils.training.loop import lr_at


def rate(step: int, steps: int, lr: float, warmup: int, least: float) -> float:
    return scheduled(step, steps, lr, warmup, least)


def scheduled(
    step: int,
    steps: int,
    lr: float,
    warmup: int,
    least: float,
    rise: Callable[[int, int], float] = lambda step, warmup: (step + 1) / warmup,
    fall: Callable[[float], float] = lambda t: (1 + math.cos(math.pi * t)) / 2,
    done: Callable[[int, int, int], float] = lambda s, n, w: (s - w) / (n - 1 - w),
) -> float:
    if step < warmup:
        return lr * rise(step, warmup)
    return least + (lr - least) * fall(done(step, steps, warmup))


def but(**change: Any) -> Callable[..., float]:
    """The schedule with one of its three formulas written otherwise."""
    return lambda *args: scheduled(*args, **change)


def half_wave(t: float) -> float:
    return (1 + math.cos(math.pi * t)) / 2


def otherwise(formula: Callable[[float, float, float], float]) -> Any:
    """After the warm-up, another formula of lr, least and the half wave."""

    def wrong(step: int, steps: int, lr: float, warmup: int, least: float) -> float:
        if step < warmup:
            return lr * (step + 1) / warmup
        return formula(lr, least, half_wave((step - warmup) / (steps - 1 - warmup)))

    return wrong


def done_of(warmup: int) -> Callable[[int, int, int], float]:
    """The share that is done after a warm-up, also where it is negative."""
    return lambda s, n, _: (s - warmup) / (n - 1 - warmup)


def draw_steps(before: bool) -> Any:
    def cases(rng: np.random.Generator) -> list[Args]:
        drawn: list[Args] = []
        for part in (0.0, 0.4, 0.9):
            warmup = int(rng.integers(8, 20))
            steps = warmup + int(rng.integers(30, 60))
            span = warmup if before else steps - warmup
            step = int(part * span) + (0 if before else warmup)
            lr = round(float(rng.uniform(0.1, 1)), 3)
            drawn.append((step, steps, lr, warmup, round(0.15 * lr, 4)))
        if before:  # and its last step, in a long warm-up
            warmup, lr = int(rng.integers(35, 45)), drawn[-1][2]
            for step in (warmup // 2, warmup - 1):
                drawn.append((step, warmup + 12, lr, warmup, round(0.15 * lr, 4)))
        else:  # and the last step
            step, steps, *others = drawn[-1]
            drawn.append((steps - 1, steps, *others))
        return drawn

    return cases


def draw_cold(rng: np.random.Generator) -> list[Args]:
    """Schedules that begin with the cosine."""
    steps = int(rng.integers(30, 60))
    return [(step, steps, 0.5, 0, 0.05) for step in (0, int(0.3 * steps), steps - 1)]


QUESTION = Question(
    id="12.5",
    title="Warm-up, cosine, and a rate that is never zero",
    answer="rate",
    arguments=("step", "steps", "lr", "warmup", "least"),
    outputs=(Output("rate"),),
    reference=rate,
    difficulty="easy",
    minutes=8,
    next_step="two cases: before the end of the warm-up, and after it. What rate has "
    "the first step after it, and what rate the very last?",
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
            "whole_wave",
            "the rate falls and rises again: the cosine runs through a whole wave, "
            "and half of one is asked for, from 0 to π",
            but(fall=lambda t: (1 + math.cos(2 * math.pi * t)) / 2),
        ),
        Mistake(
            "the_chapters",
            "this is the chapter's schedule, which falls towards 0 and has no "
            "`least`; here the last step has the rate `least`",
            lambda s, n, lr, w, least: lr_at(s, n, lr, w),
        ),
        Mistake(
            "cut_off",
            "this is the chapter's schedule, cut off at `least`: it stays flat from "
            "there; here the whole wave is raised, and ends at `least`",
            lambda s, n, lr, w, least: (
                lr_at(s, n, lr, w) if s < w else max(lr_at(s, n, lr, w), least)
            ),
        ),
        Mistake(
            "lower_part_cut_off",
            "the wave falls to 0 and is cut off at `least`: the rate stays flat from "
            "there; here the whole wave is raised, and only its end is `least`",
            otherwise(lambda lr, least, wave: max(lr * wave, least)),
        ),
        Mistake(
            "cut_off_everywhere",
            "the whole schedule is cut off at `least`, the warm-up too: `least` is "
            "where the cosine ends, and the wave between is raised with it",
            lambda s, n, lr, w, least: max(lr_at(s, n, lr, w), least),
        ),
        Mistake(
            "one_step_short",
            "the wave would end one step after the last: count t so that it is 1 at "
            "step = steps − 1, as steps count from 0",
            but(done=lambda s, n, w: (s - w) / (n - w)),
        ),
        Mistake(
            "least_on_top",
            "`least` is added to a wave of full height: it begins at lr + least; the "
            "wave falls by lr − least",
            otherwise(lambda lr, least, wave: least + lr * wave),
        ),
        Mistake(
            "least_not_added",
            "the wave has the right height, lr − least, but ends at 0: raise it by "
            "`least`",
            otherwise(lambda lr, least, wave: (lr - least) * wave),
        ),
        Mistake(
            "ends_at_zero",
            "the wave falls to 0: `least` is not used, and the last step learns "
            "nothing",
            otherwise(lambda lr, least, wave: lr * wave),
        ),
        Mistake(
            "least_is_a_share",
            "`least` is used as a share of lr: it is a rate itself",
            otherwise(lambda lr, least, wave: lr * (least + (1 - least) * wave)),
        ),
        Mistake(
            "wave_upside_down",
            "the cosine rises from `least` to `lr`: after the warm-up the rate falls",
            otherwise(lambda lr, least, wave: lr + (least - lr) * wave),
        ),
        Mistake(
            "warmed_up_from_least",
            "the warm-up starts at `least`: `least` is for the end, and the warm-up "
            "rises in a line from lr / warmup",
            lambda s, n, lr, w, least: (
                least + (lr - least) * (s + 1) / w
                if s < w
                else scheduled(s, n, lr, w, least)
            ),
        ),
        Mistake(
            "starts_at_zero",
            "the first step has rate 0 and learns nothing: step 0 gets lr / warmup",
            but(rise=lambda s, w: s / w),
        ),
        Mistake(
            "warmed_up_one_step_late",
            "the rate reaches `lr` one step too late: the *last* step of the warm-up, "
            "number warmup − 1, has it already",
            but(rise=lambda s, w: (s + 1) / (w + 1)),
        ),
        Mistake(
            "no_warmup",
            "there is no warm-up: the rate starts at its full height",
            but(rise=lambda s, w: 1.0),
        ),
        Mistake(
            "cosine_from_the_start",
            "the cosine is counted from step 0: it begins where the warm-up ends, with "
            "the done fraction of the rest",
            but(done=lambda s, n, w: s / (n - 1)),
        ),
        Mistake(
            "rest_not_shortened",
            "the steps since the warm-up are divided by all steps: the warm-up's are "
            "not among them, so the rate never comes down to `least`",
            but(done=lambda s, n, w: (s - w) / (n - 1)),
        ),
        Mistake(
            "one_step_late",
            "after the warm-up the steps are counted from 1: the first step after it "
            "still has the full rate, so t starts at 0",
            but(done=lambda s, n, w: (s + 1 - w) / (n - w)),
        ),
        Mistake(
            "one_step_too_high",
            "the warm-up takes one step too many, and that step goes above lr: steps "
            "count from 0, so the warm-up ends before step = warmup",
            lambda s, n, lr, w, least: (
                lr * (s + 1) / w if s <= w else scheduled(s, n, lr, w, least)
            ),
        ),
        Mistake(
            "quarter_wave",
            "this is a quarter of a wave: cos(pi t / 2) falls fastest at the end; half "
            "a wave, (1 + cos(pi t)) / 2, ends gently",
            but(fall=lambda t: math.cos(math.pi * t / 2)),
        ),
        Mistake(
            "without_pi",
            "cos(t) is taken of a share from 0 to 1: a half wave needs cos(pi t), or "
            "the rate hardly falls",
            but(fall=lambda t: (1 + math.cos(t)) / 2),
        ),
        Mistake(
            "smaller_of_both",
            "the smaller of line and cosine is taken: before the warm-up ends the "
            "cosine is below `lr` as well; let `step` decide which of them counts",
            lambda s, n, lr, w, least: min(
                lr * (s + 1) / max(w, 1), scheduled(s, n, lr, 0, least, done=done_of(w))
            ),
        ),
        Mistake(
            "whole_cosine",
            "the cosine runs from 1 to −1: a negative rate climbs; add 1 and halve",
            but(fall=lambda t: math.cos(math.pi * t)),
        ),
        Mistake(
            "straight_line",
            "after the warm-up the rate falls in a line; the cosine stays high at "
            "first and ends gently",
            but(fall=lambda t: 1 - t),
        ),
        Mistake(
            "not_halved",
            "1 + cos starts at 2: the rate jumps to twice its height when the warm-up "
            "ends",
            but(fall=lambda t: 1 + math.cos(math.pi * t)),
        ),
        Mistake(
            "constant_after",
            "the rate stays where the warm-up left it: it should fall to `least`",
            but(fall=lambda t: 1.0),
        ),
        Mistake(
            "lr_forgotten",
            "this goes up to 1 whatever `lr` is: the rate is this share of lr",
            lambda s, n, lr, w, least: rate(s, n, 1.0, w, least),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def climb_and_fall(rise, fall):
    def answer(step, steps, lr, warmup, least):
        if step + 1 <= warmup:
            return lr * rise(step, warmup)
        wave = fall(step, steps, warmup)
        return lr * wave + least * (1 - wave)

    return answer


def up(step, warmup):
    return (1 + step) / warmup


def down(step, steps, warmup):
    return math.cos(math.pi / 2 * (step - warmup) / (steps - warmup - 1)) ** 2


def as_table(step, steps, lr, warmup, least):
    """All rates at once, in NumPy."""
    wave = (1 + np.cos(np.linspace(0, np.pi, steps - warmup))) / 2
    climb = np.arange(1, warmup + 1) / max(warmup, 1)
    return np.concatenate([lr * climb, least + (lr - least) * wave])[step]


def of_the_chapters(step, steps, lr, warmup, least):
    """The chapter's schedule of one step less, raised after the warm-up."""
    if step < warmup:
        return lr_at(step, steps, lr, warmup)
    return least + lr_at(step, steps - 1, lr - least, warmup)


RIGHT = [
    climb_and_fall(up, down),
    as_table,
    of_the_chapters,
    lambda *args: torch.tensor(as_table(*args)),
]
WRONG = [
    (
        "warmed_up_one_step_late",
        lambda s, n, lr, w, least: (
            np.linspace(0, lr, w + 2)[s + 1] if s <= w else as_table(s, n, lr, w, least)
        ),
    ),
    (
        "the_chapters",
        lambda s, n, lr, w, least: climb_and_fall(
            up, lambda s, n, w: down(s, n + 1, w)
        )(s, n, lr, w, 0),
    ),
    ("one_step_short", climb_and_fall(up, lambda s, n, w: down(s, n + 1, w))),
    ("ends_at_zero", lambda s, n, lr, w, least: as_table(s, n, lr, w, 0)),
    (
        "least_is_a_share",
        lambda s, n, lr, w, least: as_table(s, n, lr, w, lr * least),
    ),
    (
        "lower_part_cut_off",
        lambda s, n, lr, w, least: (
            lr * up(s, w) if s < w else max(as_table(s, n, lr, w, 0), least)
        ),
    ),
    ("starts_at_zero", climb_and_fall(lambda s, w: s / w, down)),
    ("no_warmup", climb_and_fall(lambda s, w: 1, down)),
    (
        "cosine_from_the_start",
        climb_and_fall(up, lambda s, n, w: math.cos(math.pi / 2 * s / (n - 1)) ** 2),
    ),
    ("one_step_late", climb_and_fall(up, lambda s, n, w: down(s + 1, n + 1, w))),
    ("quarter_wave", climb_and_fall(up, lambda s, n, w: math.sqrt(down(s, n, w)))),
    ("whole_cosine", climb_and_fall(up, lambda s, n, w: 2 * down(s, n, w) - 1)),
    ("straight_line", climb_and_fall(up, lambda s, n, w: (n - 1 - s) / (n - 1 - w))),
    ("not_halved", climb_and_fall(up, lambda s, n, w: 2 * down(s, n, w))),
    (
        "without_pi",
        climb_and_fall(up, lambda s, n, w: 0.5 + 0.5 * math.cos((s - w) / (n - w - 1))),
    ),
    (
        "smaller_of_both",
        lambda s, n, lr, w, least: min(
            lr * (s + 1) / max(w, 1), least + (lr - least) * down(s, n, w)
        ),
    ),
    ("constant_after", climb_and_fall(up, lambda s, n, w: 1)),
]
