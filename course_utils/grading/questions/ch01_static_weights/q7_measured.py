"""An experiment, its numbers and specimen answers.

`learned_share` is what the exercise hands out; NUMBERS holds what it returned.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from course_utils.grading.questions.experiment import Rows, experiment, index_of


def learned_share(n_words: int, noise: int) -> float:
    """Train scores and vectors; return the mean weight of the word that matters."""
    torch.manual_seed(0)
    scores, vectors = torch.zeros(noise + 2), 0.1 * torch.randn(noise + 2, 2)
    learned = [scores.requires_grad_(), vectors.requires_grad_()]
    optimiser = torch.optim.Adam(learned, lr=0.05)
    for _ in range(400):
        words = torch.randint(2, noise + 2, (64, n_words))  # these say nothing
        answer = torch.randint(2, (64,))
        words[:, 0] = answer  # word 0 or word 1 tells the answer
        weights = torch.softmax(scores[words], dim=-1)
        average = (weights[..., None] * vectors[words]).sum(dim=1)
        loss = F.cross_entropy(average, answer)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return weights[:, 0].mean().item()


NUMBERS: Rows = [
    ({"n_words": 3, "noise": 10}, 0.982),
    ({"n_words": 3, "noise": 60}, 0.9777),
    ({"n_words": 8, "noise": 10}, 0.9633),
    ({"n_words": 8, "noise": 60}, 0.959),
    ({"n_words": 24, "noise": 10}, 0.9419),
    ({"n_words": 24, "noise": 60}, 0.9337),
    ({"n_words": 64, "noise": 10}, 0.9173),
    ({"n_words": 64, "noise": 60}, 0.9102),
    ({"n_words": 200, "noise": 10}, 0.8854),
    ({"n_words": 200, "noise": 60}, 0.8761),
]
QUESTION = experiment(
    id="01.7",
    title="An experiment: how much weight training gives",
    minutes=12,
    rows=NUMBERS,
    tolerance=0.002,
    reason="b",
    other_reasons={
        "a": "a softmax gives any share below 1 that one likes: what would have to "
        "push the scores further apart?",
        "c": "look at the vectors of the words that say nothing: what would the loss"
        " gain if they grew?",
    },
    next_step="guess first, then run `learned_share` with the setting of your name.",
    guesses={
        "share_at_the_start": (
            "this is one word's equal share, which it has before training: the "
            "function returns what it has afterwards",
            lambda n_words, noise: 1 / n_words,
        )
    },
)
RUN = learned_share


# ----------------------------------------------------------------------- specimens

NUMBER = QUESTION.reference()[1]
SETTING = QUESTION.variants[index_of("Lin", len(NUMBERS))]
RIGHT = [lambda: ("  ADA ", NUMBER, "B")]
WRONG = [
    ("no_name", lambda: ("Your name", NUMBER, "b")),
    ("not_this_run", lambda: ("Ada", NUMBER + 7777, "b")),
    ("reason_a", lambda: ("Ada", NUMBER, "a")),
    ("share_at_the_start", lambda: ("Lin", 1 / SETTING["n_words"], "b")),
]
PARTIAL = [(2, lambda: ("Ada", NUMBER, "z")), (1, lambda: ("Ada", -555.5, "b"))]
