"""An experiment, its numbers and specimen answers.

`beams_help` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import torch

from course_utils.grading.questions.experiment import Rows, experiment


def beams_help(n_beams: int, sharpness: float) -> float:
    """How often beam search finds a likelier sentence than the greedy search."""
    torch.manual_seed(0)
    better = 0
    for _ in range(200):
        gain = torch.log_softmax(sharpness * torch.randn(8, 8), dim=-1)
        best = []
        for kept in (1, n_beams):
            log_p, word = torch.zeros(1), torch.zeros(1, dtype=torch.long)
            for _ in range(6):
                total = (log_p[:, None] + gain[word]).flatten()
                log_p, place = total.topk(min(kept, len(total)))
                word = place % 8
            best.append(log_p[0].item())
        better += best[1] > best[0] + 1e-6
    return better / 200


NUMBERS: Rows = [
    ({"n_beams": 2, "sharpness": 0.5}, 0.45),
    ({"n_beams": 2, "sharpness": 1.0}, 0.4),
    ({"n_beams": 2, "sharpness": 2.0}, 0.305),
    ({"n_beams": 2, "sharpness": 5.0}, 0.15),
    ({"n_beams": 3, "sharpness": 0.5}, 0.545),
    ({"n_beams": 3, "sharpness": 1.0}, 0.5),
    ({"n_beams": 3, "sharpness": 2.0}, 0.365),
    ({"n_beams": 3, "sharpness": 5.0}, 0.17),
    ({"n_beams": 6, "sharpness": 0.5}, 0.615),
    ({"n_beams": 6, "sharpness": 1.0}, 0.55),
    ({"n_beams": 6, "sharpness": 2.0}, 0.395),
    ({"n_beams": 6, "sharpness": 5.0}, 0.175),
]
QUESTION = experiment(
    id="12.8",
    title="An experiment: how often beams help",
    minutes=10,
    rows=NUMBERS,
    tolerance=0.02,
    reason="a",
    other_reasons={
        "b": "beams find likelier sentences or the same: what becomes rare when one "
        "word is nearly sure?",
        "c": "the numbers are around −10: is that hard to compare?",
    },
    next_step="guess first, then run `beams_help` with the setting of your name.",
)
RUN = beams_help


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
RIGHT = [lambda: ("  ADA ", NUMBER, "A")]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "a")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "a")),
    ("reason_b", lambda: ("Ada", NUMBER, "b")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "a"))]
