"""An experiment, its numbers and specimen answers.

`taken_by_one` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import torch

from course_utils.grading.questions.experiment import Rows, experiment, index_of


def taken_by_one(d_k: int, n_keys: int) -> float:
    """The share of queries that give one key more than 0.99, without the scale."""
    torch.manual_seed(0)
    queries = torch.randn(4000, 1, d_k)
    keys = torch.randn(4000, n_keys, d_k)
    weights = torch.softmax(queries @ keys.mT, dim=-1)
    return (weights.amax(dim=-1) > 0.99).float().mean().item()


NUMBERS: Rows = [
    ({"d_k": 16, "n_keys": 2}, 0.4042),
    ({"d_k": 16, "n_keys": 8}, 0.0905),
    ({"d_k": 16, "n_keys": 64}, 0.0195),
    ({"d_k": 64, "n_keys": 2}, 0.6833),
    ({"d_k": 64, "n_keys": 8}, 0.3728),
    ({"d_k": 64, "n_keys": 64}, 0.1817),
    ({"d_k": 256, "n_keys": 2}, 0.8382),
    ({"d_k": 256, "n_keys": 8}, 0.6482),
    ({"d_k": 256, "n_keys": 64}, 0.4715),
    ({"d_k": 512, "n_keys": 2}, 0.8863),
    ({"d_k": 512, "n_keys": 8}, 0.7458),
    ({"d_k": 512, "n_keys": 64}, 0.6),
]
QUESTION = experiment(
    id="06.8",
    title="An experiment: when one key takes all",
    minutes=10,
    rows=NUMBERS,
    tolerance=0.004,
    reason="b",
    other_reasons={
        "a": "equal shares come from equal scores: are these scores equal, or even "
        "near each other?",
        "c": "one score is one dot product: does its spread know how many other keys "
        "there are?",
    },
    next_step="guess first, then run `taken_by_one` with the setting of your name.",
    guesses={
        "equal_share": (
            "this is one in `n_keys`, the weight of a key when all are alike: the "
            "function returns the share of queries that give a single key nearly all",
            lambda d_k, n_keys: 1 / n_keys,
        )
    },
)
RUN = taken_by_one


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
SETTING = QUESTION.variants[index_of("Lin", len(NUMBERS))]
RIGHT = [
    lambda: ("  ADA ", NUMBER, "B"),
    lambda: ["ada", torch.tensor(round(NUMBER, 3)), " b"],
]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "b")),
    ("percent", lambda: ("Ada", 100 * NUMBER, "b")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "b")),
    ("reason_a", lambda: ("Ada", NUMBER, "a")),
    ("equal_share", lambda: ("Lin", 1 / SETTING["n_keys"], "b")),
    ("reason_c", lambda: ("Ada", NUMBER, "c")),
    ("no_reason", lambda: ("Ada", NUMBER, "more keys, nearer rivals")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "b"))]
