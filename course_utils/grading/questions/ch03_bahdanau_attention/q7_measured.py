"""An experiment, its numbers and specimen answers.

`found` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from course_utils.grading.questions.experiment import Rows, experiment


def found(n_keys: int, squash: bool) -> float:
    """Train an additive look-up; return how often it names the digit asked for."""
    torch.manual_seed(0)
    names, marks = torch.randn(n_keys, 16), torch.randn(10, 16)
    shapes = (16, 64), (32, 64), (64, 1), (32, 10)
    w, u, v, out = ((torch.randn(s) / s[0] ** 0.5).requires_grad_() for s in shapes)
    optimiser = torch.optim.Adam([w, u, v, out], lr=0.01)
    for _ in range(500):
        digits, asked = torch.randint(10, (256, n_keys)), torch.randint(n_keys, (256,))
        states = torch.cat([names.expand(256, -1, -1), marks[digits]], dim=-1)
        scores = (names[asked] @ w)[:, None] + states @ u
        scores = (torch.tanh(scores) if squash else scores) @ v
        weights = torch.softmax(scores[..., 0], dim=-1)
        context = (weights[:, None] @ states)[:, 0]
        right = digits[torch.arange(256), asked]
        loss = F.cross_entropy(context @ out, right)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return ((context @ out).argmax(dim=-1) == right).float().mean().item()


NUMBERS: Rows = [
    ({"n_keys": 2, "squash": False}, 0.5469),
    ({"n_keys": 3, "squash": False}, 0.4492),
    ({"n_keys": 5, "squash": False}, 0.3789),
    ({"n_keys": 8, "squash": False}, 0.3359),
    ({"n_keys": 4, "squash": True}, 1.0),
]
QUESTION = experiment(
    id="03.7",
    title="An experiment: attention without its tanh",
    minutes=12,
    rows=NUMBERS,
    tolerance=0.07,
    reason="b",
    other_reasons={
        "a": "write the score as two terms, one of the query and one of the key: "
        "which of them differs from key to key?",
        "c": "what is left of the score when the query's term is gone? It still "
        "differs from key to key",
    },
    next_step="guess first, then run `found` with the setting of your name.",
    guesses={
        "one_of_the_keys": (
            "this is one in `n_keys`, as if it hit a key by chance: the function "
            "returns how often the digit is right after training",
            lambda n_keys, squash: 1 / n_keys,
        ),
        "one_of_ten": (
            "this is one in ten, a digit said at random: the function returns how "
            "often the digit is right after training",
            lambda n_keys, squash: 1 / 10,
        ),
    },
)
RUN = found


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
RIGHT = [lambda: ("  ADA ", NUMBER, "B")]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "b")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "b")),
    ("reason_a", lambda: ("Ada", NUMBER, "a")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "b"))]
