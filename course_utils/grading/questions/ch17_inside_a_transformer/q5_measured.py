"""An experiment, its numbers and specimen answers.

`right_after` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import torch

from course_utils.grading.questions.experiment import Rows, experiment


def right_after(seed: int, strength: float) -> float:
    """Build the circuit with random vectors; return the prefix-matching weight."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(64, 32, generator=generator)
    table = table / table.norm(dim=-1, keepdim=True)  # one vector for each token
    once = torch.rand(200, 64, generator=generator).argsort(dim=1)[:, :16]
    own = table[torch.cat([once, once], dim=1)]  # (row, token, feature)
    before = own.roll(1, dims=1)
    before[:, 0] = 0  # the first token has none before it
    scores = strength * own @ before.mT
    causal = torch.ones(32, 32, dtype=torch.bool).tril()
    weights = scores.masked_fill(~causal, -torch.inf).softmax(dim=-1)
    asked = torch.arange(16, 31)
    return weights[:, asked, asked - 15].mean().item()  # on what followed the copy


NUMBERS: Rows = [
    ({"seed": 0, "strength": 2.0}, 0.2403),
    ({"seed": 0, "strength": 4.0}, 0.6616),
    ({"seed": 0, "strength": 6.0}, 0.9143),
    ({"seed": 0, "strength": 8.0}, 0.9812),
    ({"seed": 1, "strength": 2.0}, 0.2378),
    ({"seed": 1, "strength": 4.0}, 0.6557),
    ({"seed": 1, "strength": 6.0}, 0.9116),
    ({"seed": 1, "strength": 8.0}, 0.9805),
    ({"seed": 2, "strength": 2.0}, 0.2371),
    ({"seed": 2, "strength": 4.0}, 0.654),
    ({"seed": 2, "strength": 6.0}, 0.9101),
    ({"seed": 2, "strength": 8.0}, 0.9794),
]
QUESTION = experiment(
    id="17.5",
    title="An experiment: how large must the scores be?",
    minutes=10,
    rows=NUMBERS,
    tolerance=0.0006,
    reason="c",
    other_reasons={
        "a": "layer 1 writes the same vectors at every strength: only scores change",
        "b": "the values are the tokens themselves, whatever the strength",
    },
    next_step="guess first, then run `right_after` with the setting of your name.",
)
RUN = right_after


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
RIGHT = [lambda: ("  ADA ", NUMBER, "C")]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "c")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "c")),
    ("reason_a", lambda: ("Ada", NUMBER, "a")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "c"))]
