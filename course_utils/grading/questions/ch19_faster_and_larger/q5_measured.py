"""An experiment, its numbers and specimen answers.

`tokens_a_pass` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import torch

from course_utils.grading.questions.experiment import Rows, experiment


def tokens_a_pass(seed: int, temperature: float) -> float:
    """Draft four tokens with the model's own logits at another temperature."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(500, 5, 64, generator=generator)  # (pass, draft, token)
    p, q = logits.softmax(dim=-1), (logits / temperature).softmax(dim=-1)
    drafted = torch.multinomial(q.flatten(0, 1), 1, generator=generator)
    drafted = drafted.view(500, 5, 1)
    accept = (p / q).gather(-1, drafted)[:, :4, 0]
    accepted = torch.rand(500, 4, generator=generator) < accept
    return (1 + accepted.long().cumprod(dim=1).sum(dim=1)).float().mean().item()


NUMBERS: Rows = [
    ({"seed": 0, "temperature": 0.5}, 2.5140),
    ({"seed": 0, "temperature": 0.75}, 3.5580),
    ({"seed": 0, "temperature": 1.5}, 3.2620),
    ({"seed": 0, "temperature": 2.0}, 2.6600),
    ({"seed": 0, "temperature": 3.0}, 2.1460),
    ({"seed": 1, "temperature": 0.5}, 2.5720),
    ({"seed": 1, "temperature": 0.75}, 3.6980),
    ({"seed": 1, "temperature": 1.5}, 3.1980),
    ({"seed": 1, "temperature": 2.0}, 2.5540),
    ({"seed": 1, "temperature": 3.0}, 2.0960),
    ({"seed": 2, "temperature": 0.5}, 2.5240),
    ({"seed": 2, "temperature": 0.75}, 3.6720),
    ({"seed": 2, "temperature": 1.5}, 3.2560),
    ({"seed": 2, "temperature": 2.0}, 2.5640),
    ({"seed": 2, "temperature": 3.0}, 2.1620),
]
QUESTION = experiment(
    id="19.5",
    title="An experiment: a draft that ranks as the model does",
    minutes=10,
    rows=NUMBERS,
    tolerance=0.01,
    reason="b",
    other_reasons={
        "a": "at every temperature the draft's most probable token is the model's",
        "c": "the token that replaces a rejected one comes from the same pass",
    },
    next_step="guess first, then run `tokens_a_pass` with the setting of your name.",
)
RUN = tokens_a_pass


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
RIGHT = [lambda: ("  ADA ", NUMBER, "B")]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "b")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "b")),
    ("reason_a", lambda: ("Ada", NUMBER, "a")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "b"))]
