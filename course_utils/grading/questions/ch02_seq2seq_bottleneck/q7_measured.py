# mypy: disable-error-code="union-attr"
"""An experiment, its numbers and specimen answers.

`steps_back` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import math

import torch

from course_utils.grading.questions.experiment import Rows, experiment


def steps_back(gain: float, seed: int) -> float:
    """Count the steps after which 1 % of the gradient is left."""
    torch.manual_seed(seed)
    weight = gain * torch.linalg.qr(torch.randn(64, 64))[0]  # keeps lengths, times gain
    states = [torch.zeros(64, requires_grad=True)]
    for _ in range(200):
        states.append(torch.tanh(states[-1] @ weight + 0.3 * torch.randn(64)))
        states[-1].retain_grad()
    (states[-1] * torch.randn(64)).sum().backward()
    norms = [state.grad.norm().item() for state in reversed(states)]
    return next((k for k, n in enumerate(norms) if n < 0.01 * norms[0]), 200)


NUMBERS: Rows = [
    ({"gain": 0.5, "seed": 0}, 6),
    ({"gain": 0.5, "seed": 1}, 6),
    ({"gain": 0.7, "seed": 0}, 10),
    ({"gain": 0.7, "seed": 1}, 10),
    ({"gain": 0.8, "seed": 0}, 13),
    ({"gain": 0.8, "seed": 1}, 14),
    ({"gain": 0.9, "seed": 0}, 18),
    ({"gain": 0.9, "seed": 1}, 19),
    ({"gain": 1.0, "seed": 0}, 25),
    ({"gain": 1.0, "seed": 1}, 28),
    ({"gain": 1.1, "seed": 0}, 40),
    ({"gain": 1.1, "seed": 1}, 42),
]
QUESTION = experiment(
    id="02.7",
    title="An experiment: how far back a state remembers",
    minutes=12,
    rows=NUMBERS,
    tolerance=2.5,
    reason="c",
    other_reasons={
        "a": "rounding errors are about one part in ten million a step: how many "
        "steps would they need?",
        "b": "a turn changes the direction of the gradient: does it change its length?",
    },
    next_step="guess first, then run `steps_back` with the setting of your name.",
    guesses={
        "by_the_gain": (
            "so many steps would it take by the gain alone, as the formula in brackets "
            "says: the function counts those that the network needs",
            lambda gain, seed: (
                math.log(0.01) / math.log(gain) if gain != 1 else math.nan
            ),
        )
    },
)
RUN = steps_back


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
RIGHT = [lambda: ("  ADA ", NUMBER, "C")]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "c")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "c")),
    ("reason_a", lambda: ("Ada", NUMBER, "a")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "c"))]
