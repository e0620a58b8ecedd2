"""An experiment, its numbers and specimen answers.

`draws_saved` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import torch

from course_utils.grading.questions.experiment import Rows, experiment


def draws_saved(n_choices: int, level: float) -> float:
    """By which factor the mean reward as a baseline cuts the variance."""
    torch.manual_seed(n_choices)
    p = torch.softmax(torch.randn(n_choices), dim=0)
    rewards = level + torch.randn(n_choices)
    grad_log = torch.eye(n_choices) - p  # row j: the gradient of log p_j

    def variance(baseline):
        estimates = (rewards - baseline)[:, None] * grad_log
        return p @ (estimates - p @ estimates).pow(2).sum(dim=-1)

    return (variance(0.0) / variance(p @ rewards)).item()


NUMBERS: Rows = [
    ({"n_choices": 3, "level": 0.0}, 2.6407),
    ({"n_choices": 3, "level": 3.0}, 23.5083),
    ({"n_choices": 3, "level": 10.0}, 354.5991),
    ({"n_choices": 5, "level": 0.0}, 0.9786),
    ({"n_choices": 5, "level": 3.0}, 8.2764),
    ({"n_choices": 5, "level": 10.0}, 84.5988),
    ({"n_choices": 10, "level": 0.0}, 0.9264),
    ({"n_choices": 10, "level": 3.0}, 11.1128),
    ({"n_choices": 10, "level": 10.0}, 103.3997),
    ({"n_choices": 30, "level": 0.0}, 0.992),
    ({"n_choices": 30, "level": 3.0}, 6.8058),
    ({"n_choices": 30, "level": 10.0}, 63.274),
]
QUESTION = experiment(
    id="04.8",
    title="An experiment: what a baseline saves",
    minutes=10,
    rows=NUMBERS,
    tolerance=0.06,  # it is asked for to one decimal
    reason="a",
    other_reasons={
        "b": "compare variants with as many choices and another level: is the factor"
        " the same?",
        "c": "the mean is the same with any baseline: that is why one may subtract it",
    },
    next_step="guess first, then run `draws_saved` with the setting of your name.",
)
RUN = draws_saved


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
RIGHT = [lambda: ("  ADA ", NUMBER, "A")]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "a")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "a")),
    ("reason_b", lambda: ("Ada", NUMBER, "b")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "a"))]
