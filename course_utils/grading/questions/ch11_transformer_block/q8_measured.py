# mypy: disable-error-code="union-attr"
"""An experiment, its numbers and specimen answers.

`arrives` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from course_utils.grading.questions.experiment import Rows, experiment


def arrives(wiring: str, gain: float) -> float:
    """log10 of the gradient at the input of 24 layers, compared with the output's."""
    torch.manual_seed(0)
    start = torch.randn(8, 64, requires_grad=True)
    x, pull = start, torch.randn(8, 64)
    for _ in range(24):
        w = gain / 8 * torch.randn(64, 64)
        if wiring == "plain":
            x = torch.tanh(x @ w)
        elif wiring == "residual":
            x = x + torch.tanh(x @ w)
        elif wiring == "pre-norm":
            x = x + torch.tanh(F.layer_norm(x, (64,)) @ w)
        else:
            x = F.layer_norm(x + torch.tanh(x @ w), (64,))
    (x * pull).sum().backward()
    return math.log10(start.grad.norm() / pull.norm())


NUMBERS: Rows = [
    ({"wiring": "plain", "gain": 0.3}, -12.5833),
    ({"wiring": "plain", "gain": 1.0}, -0.7668),
    ({"wiring": "plain", "gain": 2.0}, 1.3476),
    ({"wiring": "residual", "gain": 0.3}, 0.3506),
    ({"wiring": "residual", "gain": 1.0}, 0.9313),
    ({"wiring": "residual", "gain": 2.0}, 1.7106),
    ({"wiring": "pre-norm", "gain": 0.3}, 0.2288),
    ({"wiring": "pre-norm", "gain": 1.0}, 0.6088),
    ({"wiring": "pre-norm", "gain": 2.0}, 0.9753),
    ({"wiring": "post-norm", "gain": 0.3}, 0.0481),
    ({"wiring": "post-norm", "gain": 1.0}, 0.1553),
    ({"wiring": "post-norm", "gain": 2.0}, 1.185),
]
QUESTION = experiment(
    id="11.8",
    title="An experiment: how much gradient arrives",
    minutes=10,
    rows=NUMBERS,
    tolerance=0.15,
    reason="b",
    other_reasons={
        "a": "the wiring `residual` has no norm either: how does it do?",
        "c": "what is the slope of tanh near 0?",
    },
    next_step="guess first, then run `arrives` with the setting of your name.",
)
RUN = arrives


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
RIGHT = [lambda: ("  ADA ", NUMBER, "B")]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "b")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "b")),
    ("reason_a", lambda: ("Ada", NUMBER, "a")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "b"))]
