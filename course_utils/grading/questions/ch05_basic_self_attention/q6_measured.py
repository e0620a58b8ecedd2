"""An experiment, its numbers and specimen answers.

`final_loss` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from course_utils.grading.questions.experiment import Rows, experiment


def final_loss(n_tokens: int, learned: bool) -> float:
    """Let each token learn to look at the next; return the loss that is left."""
    torch.manual_seed(0)
    wanted = (torch.arange(n_tokens) + 1) % n_tokens  # in a circle
    x = torch.randn(n_tokens, 16).requires_grad_()
    w = torch.eye(16).requires_grad_()
    optimiser = torch.optim.Adam([x, w] if learned else [x], lr=0.03)
    for _ in range(2000):
        loss = F.cross_entropy(x @ w @ x.T, wanted)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return loss.item()


NUMBERS: Rows = [
    ({"n_tokens": 2, "learned": False}, 0.6931),
    ({"n_tokens": 3, "learned": False}, 1.0986),
    ({"n_tokens": 4, "learned": False}, 1.3863),
    ({"n_tokens": 5, "learned": False}, 1.5116),
    ({"n_tokens": 6, "learned": False}, 1.5236),
    ({"n_tokens": 8, "learned": False}, 1.489),
    ({"n_tokens": 5, "learned": True}, 0.0),
]
QUESTION = experiment(
    id="05.6",
    title="An experiment: a circle of wishes",
    minutes=12,
    rows=NUMBERS,
    tolerance=0.02,
    reason="b",
    other_reasons={
        "a": "the matrix in between lets the same training reach a loss near 0: was "
        "it slower?",
        "c": "with more numbers the table of dot products is still symmetric: does "
        "the width change that?",
    },
    next_step="guess first, then run `final_loss` with the setting of your name.",
    guesses={
        "log_n": (
            "this is log n, what guessing gives: the function returns the loss that "
            "is left after training, and in your setting that is another one",
            lambda n_tokens, learned: math.log(n_tokens),
        )
    },
)
RUN = final_loss


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
RIGHT = [lambda: ("  ADA ", NUMBER, "B")]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "b")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "b")),
    ("reason_a", lambda: ("Ada", NUMBER, "a")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "b"))]
