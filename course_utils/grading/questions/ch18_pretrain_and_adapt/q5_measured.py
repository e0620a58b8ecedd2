"""An experiment, its numbers and specimen answers.

`share_kept` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import torch

from course_utils.grading.questions.experiment import Rows, experiment


def share_kept(seed: int, rank: int) -> float:
    """Fit a change of a layer by an adapter; return the share of it that is kept."""
    generator = torch.Generator().manual_seed(seed)
    d = 24
    wanted = torch.zeros(d, d)
    for k in range(8):  # eight directions, each weaker than the one before
        left, right = torch.randn(2, d, generator=generator) / d**0.5
        wanted += 0.7**k * torch.outer(left, right)
    down = torch.randn(rank, d, generator=generator) / d**0.5  # D
    up = torch.zeros(d, rank)  # U
    for _ in range(200):  # each in turn at its optimum
        up = wanted @ torch.linalg.pinv(down)
        down = torch.linalg.pinv(up) @ wanted
    missed = (wanted - up @ down).square().sum() / wanted.square().sum()
    return 1 - missed.item()


NUMBERS: Rows = [
    ({"seed": 0, "rank": 1}, 0.5001),
    ({"seed": 0, "rank": 2}, 0.8713),
    ({"seed": 0, "rank": 3}, 0.9595),
    ({"seed": 0, "rank": 4}, 0.9795),
    ({"seed": 1, "rank": 1}, 0.4894),
    ({"seed": 1, "rank": 2}, 0.7419),
    ({"seed": 1, "rank": 3}, 0.9147),
    ({"seed": 1, "rank": 4}, 0.9590),
    ({"seed": 2, "rank": 1}, 0.5636),
    ({"seed": 2, "rank": 2}, 0.8522),
    ({"seed": 2, "rank": 3}, 0.9115),
    ({"seed": 2, "rank": 4}, 0.9623),
]
QUESTION = experiment(
    id="18.5",
    title="An experiment: how much fits into a rank?",
    minutes=10,
    rows=NUMBERS,
    tolerance=0.01,
    reason="b",
    other_reasons={
        "a": "with one direction in the change, rank 1 would keep all of it, however "
        "few numbers it has",
        "c": "each of D and U is set to its optimum in every round: more rounds change "
        "nothing",
    },
    next_step="guess first, then run `share_kept` with the setting of your name.",
)
RUN = share_kept


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
RIGHT = [lambda: ("  ADA ", NUMBER, "B")]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "b")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "b")),
    ("reason_a", lambda: ("Ada", NUMBER, "a")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "b"))]
