"""An experiment, its numbers and specimen answers.

`accuracy` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from course_utils.grading.questions.experiment import Rows, experiment


def accuracy(task: str, n_tokens: int) -> float:
    """Train attention without positions on a task; return how often it is right."""
    torch.manual_seed(0)
    answers = {
        "largest above 7": lambda t: t.max(dim=1).values > 7,
        "first above 4": lambda t: t[:, 0] > 4,
        "first below last": lambda t: t[:, 0] < t[:, -1],
    }
    embed, out = torch.nn.Embedding(10, 32), torch.nn.Linear(64, 2)
    look = torch.nn.MultiheadAttention(32, 2, batch_first=True)
    think = torch.nn.Linear(32, 64)
    layers = torch.nn.ModuleList([embed, look, think, out])
    optimiser = torch.optim.Adam(layers.parameters(), lr=3e-3)
    for step in range(400):
        tokens = torch.randint(10, (256 if step < 399 else 4000, n_tokens))
        right = answers[task](tokens).long()
        x = embed(tokens)
        x = (x + look(x, x, x, need_weights=False)[0]).mean(dim=1)
        logits = out(torch.relu(think(x)))
        optimiser.zero_grad()
        F.cross_entropy(logits, right).backward()
        optimiser.step()
    return (logits.argmax(dim=-1) == right).float().mean().item()


NUMBERS: Rows = [
    ({"task": "largest above 7", "n_tokens": 4}, 1.0),
    ({"task": "first above 4", "n_tokens": 2}, 0.7415),
    ({"task": "first above 4", "n_tokens": 4}, 0.685),
    ({"task": "first above 4", "n_tokens": 8}, 0.636),
    ({"task": "first below last", "n_tokens": 2}, 0.5487),
    ({"task": "first below last", "n_tokens": 3}, 0.5447),
]
QUESTION = experiment(
    id="07.8",
    title="An experiment: what can be learned without positions",
    minutes=12,
    rows=NUMBERS,
    tolerance=0.05,
    reason="a",
    other_reasons={
        "b": "chapter 07's theorem: what would its output be if the first token "
        "changed places with another?",
        "c": "how far does a fair coin stray from one half in 4000 throws?",
    },
    next_step="guess first, then run `accuracy` with the setting of your name.",
)
RUN = accuracy


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
RIGHT = [lambda: ("  ADA ", NUMBER, "A")]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "a")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "a")),
    ("reason_b", lambda: ("Ada", NUMBER, "b")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "a"))]
