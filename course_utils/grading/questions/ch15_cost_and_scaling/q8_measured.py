"""An experiment, its numbers and specimen answers.

`last_state` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import torch

from course_utils.grading.questions.experiment import Rows, experiment


def last_state(decay: float, dtype: str) -> float:
    """20,000 steps of h = decay * h + 1, in one precision."""
    state = torch.zeros((), dtype=getattr(torch, dtype))
    for _ in range(20_000):
        state = decay * state + 1
    return state.item()


NUMBERS: Rows = [
    ({"decay": 0.9, "dtype": "bfloat16"}, 9.75),
    ({"decay": 0.9, "dtype": "float16"}, 9.9688),
    ({"decay": 0.98, "dtype": "bfloat16"}, 44.0),
    ({"decay": 0.98, "dtype": "float16"}, 49.25),
    ({"decay": 0.99, "dtype": "bfloat16"}, 64.0),
    ({"decay": 0.99, "dtype": "float16"}, 96.875),
    ({"decay": 0.995, "dtype": "bfloat16"}, 128.0),
    ({"decay": 0.995, "dtype": "float16"}, 187.5),
    ({"decay": 0.999, "dtype": "bfloat16"}, 256.0),
    ({"decay": 0.999, "dtype": "float16"}, 750.0),
]
QUESTION = experiment(
    id="15.8",
    title="An experiment: a sum that stops growing",
    minutes=10,
    rows=NUMBERS,
    tolerance=0.01,
    reason="b",
    other_reasons={
        "a": "bfloat16 has the range of float32: which of the two would overflow "
        "first?",
        "c": "print the state after 10,000 steps as well: does it still move?",
    },
    next_step="guess first, then run `last_state` with the setting of your name.",
)
RUN = last_state


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
RIGHT = [lambda: ("  ADA ", NUMBER, "B")]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "b")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "b")),
    ("reason_a", lambda: ("Ada", NUMBER, "a")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "b"))]
