"""An experiment, its numbers and specimen answers.

`training_loss` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from course_utils.grading.questions.experiment import Rows, experiment


def training_loss(diagonal: int, n_letters: int) -> float:
    """Train on letters drawn at random, with the mask tril(diagonal)."""
    torch.manual_seed(0)
    mask = torch.ones(12, 12).tril(diagonal).bool()
    embed, places = torch.nn.Embedding(n_letters, 32), torch.nn.Embedding(12, 32)
    w_q, w_k, w_v, out = (torch.nn.Linear(32, n) for n in (32, 32, 32, n_letters))
    layers = torch.nn.ModuleList([embed, places, w_q, w_k, w_v, out])
    optimiser = torch.optim.Adam(layers.parameters(), lr=0.01)
    for _ in range(300):
        text = torch.randint(n_letters, (64, 13))
        x = embed(text[:, :-1]) + places.weight
        scores = w_q(x) @ w_k(x).mT / math.sqrt(32)
        weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
        loss = F.cross_entropy(out(weights @ w_v(x)).mT, text[:, 1:])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return loss.item()


NUMBERS: Rows = [
    ({"diagonal": 0, "n_letters": 3}, 1.0999),
    ({"diagonal": 0, "n_letters": 6}, 1.7906),
    ({"diagonal": 0, "n_letters": 12}, 2.4853),
    ({"diagonal": 1, "n_letters": 3}, 0.1115),
    ({"diagonal": 1, "n_letters": 6}, 0.1723),
    ({"diagonal": 1, "n_letters": 12}, 0.2274),
    ({"diagonal": 2, "n_letters": 6}, 0.1712),
]
QUESTION = experiment(
    id="09.8",
    title="An experiment: a loss that is too good",
    minutes=12,
    rows=NUMBERS,
    tolerance=0.01,
    reason="a",
    other_reasons={
        "b": "look at the scores it would take: what stops them from growing?",
        "c": "with `diagonal=1` the query at place t sees the key at place t + 1: "
        "for how many of the 12 places is there one?",
    },
    next_step="guess first, then run `training_loss` with the setting of your name.",
)
RUN = training_loss


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
RIGHT = [lambda: ("  ADA ", NUMBER, "A")]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "a")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "a")),
    ("reason_b", lambda: ("Ada", NUMBER, "b")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "a"))]
