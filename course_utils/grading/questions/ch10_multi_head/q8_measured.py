"""An experiment, its numbers and specimen answers.

`error_after` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import torch

from course_utils.grading.questions.experiment import Rows, experiment


def error_after(seed: int, n_kept: int) -> float:
    """Take heads away, each time the one missed least; return the error at the end."""
    torch.manual_seed(seed)
    shared = torch.randn(50, 16)  # something that several heads add
    terms = torch.randn(8, 50, 16) + 2 * torch.randn(8, 1, 1) * shared
    whole, left = terms.sum(dim=0), list(range(8))
    while len(left) > n_kept:
        without = [[i for i in left if i != h] for h in left]
        left = min(without, key=lambda rest: (terms[rest].sum(dim=0) - whole).norm())
    return ((terms[left].sum(dim=0) - whole).norm() / whole.norm()).item()


NUMBERS: Rows = [
    ({"seed": 0, "n_kept": 3}, 0.9083),
    ({"seed": 0, "n_kept": 5}, 0.6618),
    ({"seed": 0, "n_kept": 6}, 0.537),
    ({"seed": 1, "n_kept": 3}, 0.2305),
    ({"seed": 1, "n_kept": 5}, 0.1182),
    ({"seed": 1, "n_kept": 6}, 0.085),
    ({"seed": 2, "n_kept": 3}, 0.3875),
    ({"seed": 2, "n_kept": 5}, 0.2637),
    ({"seed": 2, "n_kept": 6}, 0.1676),
    ({"seed": 3, "n_kept": 3}, 0.2601),
    ({"seed": 3, "n_kept": 5}, 0.1961),
    ({"seed": 3, "n_kept": 6}, 0.1428),
]
QUESTION = experiment(
    id="10.8",
    title="An experiment: which heads to keep",
    minutes=12,
    rows=NUMBERS,
    tolerance=0.002,
    reason="b",
    other_reasons={
        "a": "write down the term of one head (10.5): does any other head occur in it?",
        "c": "try it with two vectors that point in opposite directions",
    },
    next_step="guess first, then run `error_after` with the setting of your name.",
)
RUN = error_after


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
RIGHT = [lambda: ("  ADA ", NUMBER, "B")]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "b")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "b")),
    ("reason_a", lambda: ("Ada", NUMBER, "a")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "b"))]
