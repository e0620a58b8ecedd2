"""An experiment, its numbers and specimen answers.

`accuracy` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from course_utils.grading.questions.experiment import Rows, experiment


def accuracy(n_patches: int, pooling: str) -> float:
    """Train a classifier on pooled patches; return how often it is right."""
    torch.manual_seed(0)
    marks = torch.randn(2, 16)
    query, head = torch.zeros(16), 0.1 * torch.randn(16, 2)
    optimiser = torch.optim.Adam([query.requires_grad_(), head.requires_grad_()], 0.02)
    for step in range(400):
        answer = torch.randint(2, (128 if step < 399 else 4000,))
        patches = torch.randn(len(answer), n_patches, 16)
        patches[:, 0] += marks[answer]  # one patch says it, the others are noise
        scores = patches @ query if pooling == "attention" else patches[..., 0] * 0
        weights = torch.softmax(scores, dim=-1)
        logits = (weights[:, None] @ patches)[:, 0] @ head
        optimiser.zero_grad()
        F.cross_entropy(logits, answer).backward()
        optimiser.step()
    return (logits.argmax(dim=-1) == answer).float().mean().item()


NUMBERS: Rows = [
    ({"n_patches": 4, "pooling": "mean"}, 0.8953),
    ({"n_patches": 4, "pooling": "attention"}, 0.9835),
    ({"n_patches": 16, "pooling": "mean"}, 0.7398),
    ({"n_patches": 16, "pooling": "attention"}, 0.9685),
    ({"n_patches": 49, "pooling": "mean"}, 0.641),
    ({"n_patches": 49, "pooling": "attention"}, 0.9415),
]
QUESTION = experiment(
    id="14.7",
    title="An experiment: one patch that matters",
    minutes=12,
    rows=NUMBERS,
    tolerance=0.06,
    reason="b",
    other_reasons={
        "a": "the mean has 16 numbers, whatever the number of patches: what happens "
        "to the one that matters?",
        "c": "count the numbers in `head`: do they depend on the number of patches?",
    },
    next_step="guess first, then run `accuracy` with the setting of your name.",
)
RUN = accuracy


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
RIGHT = [lambda: ("  ADA ", NUMBER, "B")]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "b")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "b")),
    ("reason_a", lambda: ("Ada", NUMBER, "a")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "b"))]
