"""`two_memories`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

STEPS, MOST = 60, 20.0
FADED, ALIVE = 1e-6, 0.1


def run(u: float, w: float, first: float, later: float) -> list[float]:
    """The states of h = tanh(u h + w x): x is `first`, then `later` 59 times."""
    states = [math.tanh(w * first)]
    for _ in range(STEPS - 1):
        states.append(math.tanh(u * states[-1] + w * later))
    return states


# h grows with u h and with w x, so the worst inputs are all at one end of their range;
# alternating ones are tried too, for networks with a negative u.
LATER = (-0.5, 0.0, 0.5)


def all_runs(u: float, w: float) -> list[list[float]]:
    runs = [run(u, w, first, x) for first in (1.0, -1.0) for x in LATER]
    for first in (1.0, -1.0):
        for sign in (0.5, -0.5):
            states = [math.tanh(w * first)]
            for t in range(STEPS - 1):
                states.append(math.tanh(u * states[-1] + w * sign * (-1) ** t))
            runs.append(states)
    return runs


def remembers(u: float, w: float) -> bool:
    """The last state has the first input's sign, clearly, whatever comes later."""
    runs = all_runs(u, w)
    half = len(LATER)
    plus = runs[:half] + runs[2 * half : 2 * half + 2]
    minus = runs[half : 2 * half] + runs[2 * half + 2 :]
    return min(x[-1] for x in plus) > 0.1 and max(x[-1] for x in minus) < -0.1


def gradient(u: float, states: list[float]) -> float:
    """∂h_60 / ∂h_1, by its size."""
    return math.prod(abs(u) * (1 - h * h) for h in states[1:])


def gradients(u: float, w: float) -> list[float]:
    return [gradient(u, states) for states in all_runs(u, w)]


def numbers(value: Any) -> tuple[float, float, float, float]:
    u1, w1, u2, w2 = (float(x) for x in value)
    return u1, w1, u2, w2


def in_range(value: Any) -> bool:
    return all(math.isfinite(x) and abs(x) <= MOST for x in numbers(value))


def keeps_untaught(args: Args, value: Any) -> bool:
    u, w, _, _ = numbers(value)
    return in_range(value) and remembers(u, w) and max(gradients(u, w)) < FADED


def taught_but_forgets(args: Args, value: Any) -> bool:
    _, _, u, w = numbers(value)
    alive = in_range(value) and min(gradients(u, w)) > ALIVE
    return alive and w != 0 and not remembers(u, w)


def two_memories() -> tuple[float, float, float, float]:
    return 3.0, 1.0, 1.0, 0.01


def first_is(test: Any) -> Any:
    return lambda args, value: in_range(value) and test(*numbers(value)[:2])


def second_is(test: Any) -> Any:
    return lambda args, value: in_range(value) and test(*numbers(value)[2:])


QUESTION = Question(
    id="02.8",
    title="Kept, and yet not taught",
    answer="two_memories",
    arguments=(),
    outputs=tuple(
        Output(name) for name in ("u_kept", "w_kept", "u_taught", "w_taught")
    ),
    reference=two_memories,
    difficulty="hard",
    minutes=20,
    next_step="draw tanh(u h) against h: where does it meet the diagonal?",
    parts=(
        Part("kept, not taught", 2, lambda rng: [()], accepts=keeps_untaught),
        Part("taught, not kept", 2, lambda rng: [()], accepts=taught_but_forgets),
    ),
    mistakes=(
        Mistake(
            "out_of_range",
            "each number is to lie between -20 and 20: with larger ones everything is "
            "rounded to 1",
            lambda: (1e6, 1.0, 1.0, 0.01),
            lambda args, value: not in_range(value),
        ),
        Mistake(
            "exchanged",
            "the two networks have changed places: first the one that keeps its sign, "
            "then the one whose gradient stays alive",
            lambda: (1.0, 0.01, 3.0, 1.0),
            lambda args, value: (
                keeps_untaught(args, (*numbers(value)[2:], 1.0, 0.01))
                and taught_but_forgets(args, (3.0, 1.0, *numbers(value)[:2]))
            ),
        ),
        Mistake(
            "first_forgets_at_once",
            "the first network forgets even when nothing comes later: its only resting "
            "state is 0; how steep must tanh(u h) be at 0 for others?",
            lambda: (0.9, 1.0, 1.0, 0.01),
            first_is(lambda u, w: abs(run(u, w, 1.0, 0.0)[-1]) < 0.1),
        ),
        Mistake(
            "first_has_the_other_sign",
            "the first network's last state has the opposite sign of the first input "
            "even when nothing comes later: a sign changes on the way",
            lambda: (3.0, -1.0, 1.0, 0.01),
            first_is(lambda u, w: run(u, w, 1.0, 0.0)[-1] <= -0.1),
        ),
        Mistake(
            "first_turns_over",
            "the first network keeps its sign while nothing comes, but the later "
            "inputs turn it over: they must not outweigh what holds it",
            lambda: (1.2, 2.0, 1.0, 0.01),
            first_is(
                lambda u, w: not remembers(u, w) and abs(run(u, w, 1.0, 0.0)[-1]) >= 0.1
            ),
        ),
        Mistake(
            "first_can_be_taught",
            "the first network remembers, but its gradient is above a millionth in "
            "some run: at its resting state tanh must be flatter",
            lambda: (1.5, 0.1, 1.0, 0.01),
            first_is(lambda u, w: remembers(u, w) and max(gradients(u, w)) >= FADED),
        ),
        Mistake(
            "second_never_hears",
            "the second network has w = 0: no input reaches it, so there is nothing "
            "that it could forget",
            lambda: (3.0, 1.0, 1.0, 0.0),
            second_is(lambda u, w: w == 0),
        ),
        Mistake(
            "second_fades",
            "the second network's gradient falls below 0.1 in some run: near h = 0 a "
            "step multiplies it by u; keep u near 1 and the states small",
            lambda: (3.0, 1.0, 0.9, 0.01),
            second_is(lambda u, w: min(gradients(u, w)) <= ALIVE),
        ),
        Mistake(
            "second_remembers",
            "the second network remembers too: the last state has the sign of the "
            "first input; let the later inputs turn it over",
            lambda: (3.0, 1.0, 3.0, 1.0),
            second_is(remembers),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [
    lambda: (np.float64(10), 2, torch.tensor(1.0), 1e-3),
    lambda: [5.0, 1.0, 0.99, 0.001],
]
WRONG = [
    ("out_of_range", lambda: (50, 1, 1, 0.01)),
    ("exchanged", lambda: (0.99, 0.001, 5, 1)),
    ("first_forgets_at_once", lambda: (0.5, 3, 1, 0.01)),
    ("first_turns_over", lambda: (1.0, 1.0, 1, 0.01)),
    ("first_has_the_other_sign", lambda: (-3, 1, 1, 0.01)),
    ("first_turns_over", lambda: (1.5, 20.0, 1, 0.01)),
    ("second_fades", lambda: (3, 1, 1, 1)),
    ("second_fades", lambda: (3, 1, 0.5, 0.001)),
]
PARTIAL = [(2, lambda: (3, 1, 3, 1)), (2, lambda: (0, 0, 1, 0.01))]
