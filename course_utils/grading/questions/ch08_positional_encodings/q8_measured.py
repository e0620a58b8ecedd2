"""An experiment, its numbers and specimen answers.

`turns_back` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import torch

from course_utils.grading.questions.experiment import Rows, experiment


def turns_back(base: int, d_head: int) -> float:
    """The first distance at which a token scores its own copy below zero."""
    speeds = base ** (-torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
    distance = torch.arange(20_000, dtype=torch.float64)
    scores = torch.cos(distance[:, None] * speeds).sum(dim=-1)
    return int((scores < 0).nonzero()[0])


NUMBERS: Rows = [
    ({"base": 100, "d_head": 8}, 9),
    ({"base": 100, "d_head": 16}, 16),
    ({"base": 100, "d_head": 64}, 46),
    ({"base": 1000, "d_head": 8}, 16),
    ({"base": 1000, "d_head": 16}, 52),
    ({"base": 1000, "d_head": 64}, 197),
    ({"base": 10000, "d_head": 8}, 91),
    ({"base": 10000, "d_head": 16}, 91),
    ({"base": 10000, "d_head": 64}, 725),
    ({"base": 1000000, "d_head": 8}, 292),
    ({"base": 1000000, "d_head": 16}, 1467),
    ({"base": 1000000, "d_head": 64}, 6235),
]
QUESTION = experiment(
    id="08.8",
    title="An experiment: where a rotated copy turns its back",
    minutes=10,
    rows=NUMBERS,
    tolerance=0.5,
    reason="c",
    other_reasons={
        "a": "the quickest wave is one term of many: what do the others add meanwhile?",
        "b": "nothing is trained here: look at what the function is given",
    },
    next_step="guess first, then run `turns_back` with the setting of your name.",
)
RUN = turns_back


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
RIGHT = [lambda: ("  ADA ", NUMBER, "C")]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "c")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "c")),
    ("reason_a", lambda: ("Ada", NUMBER, "a")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "c"))]
