# mypy: disable-error-code="var-annotated"
"""An experiment, its numbers and specimen answers.

`bits` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import math

import torch

from course_utils.grading.questions.experiment import Rows, experiment


def bits(order: int, n_tokens: int) -> float:
    """Bits for each letter of a new text, by counting what follows `order` letters."""
    torch.manual_seed(0)
    chain = torch.softmax(1.5 * torch.randn(4, 4, 4, 4), dim=-1).tolist()
    text = [0, 0, 0, 0, 0]
    for u in torch.rand(n_tokens + 5000).tolist():
        p = chain[text[-3]][text[-2]][text[-1]]  # three letters decide the next
        text.append(min(sum(u > sum(p[: i + 1]) for i in range(4)), 3))
    counts, loss = {}, 0.0
    for t in range(5, len(text)):
        seen = counts.setdefault(tuple(text[t - order : t]), [1, 1, 1, 1])
        if t < n_tokens:
            seen[text[t]] += 1  # training: count
        else:
            loss -= math.log2(seen[text[t]] / sum(seen))  # test: only look up
    return loss / 5000


NUMBERS: Rows = [
    ({"order": 1, "n_tokens": 100}, 2.0914),
    ({"order": 1, "n_tokens": 2000}, 1.9651),
    ({"order": 2, "n_tokens": 100}, 1.9158),
    ({"order": 2, "n_tokens": 2000}, 1.8114),
    ({"order": 3, "n_tokens": 100}, 1.7714),
    ({"order": 3, "n_tokens": 2000}, 1.4617),
    ({"order": 4, "n_tokens": 100}, 1.8657),
    ({"order": 4, "n_tokens": 2000}, 1.5505),
    ({"order": 5, "n_tokens": 100}, 1.9103),
    ({"order": 5, "n_tokens": 2000}, 1.6594),
]
QUESTION = experiment(
    id="13.7",
    title="An experiment: how much context pays",
    minutes=12,
    rows=NUMBERS,
    tolerance=0.02,
    reason="c",
    other_reasons={
        "a": "five letters contain the three that decide: what could be missing?",
        "b": "both texts are drawn from the same table `chain`: look at the code",
    },
    next_step="guess first, then run `bits` with the setting of your name.",
)
RUN = bits


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
RIGHT = [lambda: ("  ADA ", NUMBER, "C")]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "c")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "c")),
    ("reason_a", lambda: ("Ada", NUMBER, "a")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "c"))]
