"""`hard_gradients`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.draw import first, normal, second
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q1_attend import shares

Gradients = tuple[Tensor, Tensor]


def hard_gradients(
    scores: Tensor, predictions: Tensor, target: float, chosen: int, baseline: float
) -> Gradients:
    loss = (predictions[chosen] - target) ** 2
    hot = F.one_hot(torch.tensor(chosen), len(scores)).float()
    by_scores = (loss + baseline) * (hot - torch.softmax(scores, dim=0))
    return by_scores, 2 * (predictions[chosen] - target) * hot


def surrogate(write: Any) -> Any:
    """The gradients of an expression that the learner might have written down."""

    def answer(
        scores: Tensor, predictions: Tensor, target: float, chosen: int, baseline: float
    ) -> Gradients:
        s, p = scores.clone().requires_grad_(), predictions.clone().requires_grad_()
        value = write(s, p, target, chosen, baseline)
        found = torch.autograd.grad(value, (s, p), allow_unused=True)
        return tuple(  # type: ignore[return-value]
            torch.zeros_like(of) if g is None else g for g, of in zip(found, (s, p))
        )

    return answer


def squared(p: Tensor, target: float, j: int) -> Tensor:
    return (p[j] - target) ** 2


def log_alpha(s: Tensor, j: int) -> Tensor:
    return torch.log_softmax(s, dim=0)[j]


def draw_choice(rng: np.random.Generator) -> list[Args]:
    cases = []
    for _ in range(3):
        n = int(rng.integers(4, 8))
        scores, predictions = normal(rng, n), normal(rng, n)
        target = float(np.round(1.5 + rng.random(), 2))
        baseline = -float(np.round(1 + rng.random(), 2))
        cases.append((scores, predictions, target, int(rng.integers(n)), baseline))
    return cases


QUESTION = Question(
    id="04.5",
    title="Look elsewhere, and read better",
    answer="hard_gradients",
    arguments=("scores", "predictions", "target", "chosen", "baseline"),
    outputs=(Output("by_scores", "key"), Output("by_predictions", "key")),
    reference=hard_gradients,
    difficulty="hard",
    minutes=15,
    next_step="write the expression with two terms; in one of them the reward is only "
    "a number.",
    parts=(
        Part("by the scores", 2, draw_choice, view=first),
        Part("by the predictions", 2, draw_choice, view=second),
    ),
    mistakes=(
        Mistake(
            "all_predictions",
            "the predictions for all keys are moved: only the chosen key was looked "
            "at, and the others have no part in the loss",
            lambda s, p, y, j, b: (hard_gradients(s, p, y, j, b)[0], 2 * (p - y)),
        ),
        Mistake(
            "not_detached",
            "the reward inside the second term still hangs on the predictions, so they "
            "are changed twice: there it must be a plain number",
            surrogate(
                lambda s, p, y, j, b: (
                    squared(p, y, j) + (squared(p, y, j) + b) * log_alpha(s, j)
                )
            ),
        ),
        Mistake(
            "no_reading_term",
            "the predictions get no gradient: the reader must learn from its loss too, "
            "besides the one who looks",
            surrogate(
                lambda s, p, y, j, b: (squared(p, y, j).detach() + b) * log_alpha(s, j)
            ),
        ),
        Mistake(
            "no_looking_term",
            "the scores get no gradient: a choice as such has none, so the second term "
            "has to supply one",
            surrogate(lambda s, p, y, j, b: squared(p, y, j)),
        ),
        Mistake(
            "no_log",
            "the second term has α_j itself where its logarithm belongs",
            surrogate(
                lambda s, p, y, j, b: (
                    squared(p, y, j)
                    + (squared(p, y, j).detach() + b) * torch.softmax(s, dim=0)[j]
                )
            ),
        ),
        Mistake(
            "reward_is_the_loss",
            "the scores move the wrong way: the reward is minus the loss, and a choice "
            "with a large loss must become less likely",
            surrogate(
                lambda s, p, y, j, b: (
                    squared(p, y, j) - (squared(p, y, j).detach() - b) * log_alpha(s, j)
                )
            ),
        ),
        Mistake(
            "uphill",
            "the gradient by the scores has the wrong sign: this one is for lowering "
            "the loss, not for raising the reward",
            surrogate(
                lambda s, p, y, j, b: (
                    squared(p, y, j) - (squared(p, y, j).detach() + b) * log_alpha(s, j)
                )
            ),
        ),
        Mistake(
            "no_baseline",
            "the baseline is not used in the second term",
            surrogate(
                lambda s, p, y, j, b: (
                    squared(p, y, j) + squared(p, y, j).detach() * log_alpha(s, j)
                )
            ),
        ),
        Mistake(
            "baseline_against_the_loss",
            "the baseline is subtracted from the loss; it is a typical *reward*, and "
            "rewards are negative here",
            surrogate(
                lambda s, p, y, j, b: (
                    squared(p, y, j) + (squared(p, y, j).detach() - b) * log_alpha(s, j)
                )
            ),
        ),
        Mistake(
            "soft",
            "these are the gradients of the average loss over all keys: only the "
            "chosen one was looked at, and no other loss is known",
            surrogate(
                lambda s, p, y, j, b: (torch.softmax(s, dim=0) * (p - y) ** 2).sum()
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_hand(read, look):
    """The two gradients by formula: `read(error, log a)`, `look(loss, baseline, a)`."""

    def answer(scores, predictions, target, chosen, baseline):
        alpha = shares(scores)
        error = predictions[chosen] - target
        by_scores = look(error**2, baseline, alpha[chosen]) * -alpha
        by_scores[chosen] += look(error**2, baseline, alpha[chosen])
        by_predictions = torch.zeros(len(scores))
        by_predictions[chosen] = read(error, alpha[chosen].log())
        return by_scores, by_predictions

    return answer


RIGHT = [by_hand(lambda e, log: 2 * e, lambda x, b, a: x + b)]
WRONG = [
    ("not_detached", by_hand(lambda e, log: 2 * e * (1 + log), lambda x, b, a: x + b)),
    ("no_reading_term", by_hand(lambda e, log: 0.0, lambda x, b, a: x + b)),
    ("no_looking_term", by_hand(lambda e, log: 2 * e, lambda x, b, a: 0.0)),
    ("no_log", by_hand(lambda e, log: 2 * e, lambda x, b, a: (x + b) * a)),
    ("uphill", by_hand(lambda e, log: 2 * e, lambda x, b, a: -x - b)),
    ("reward_is_the_loss", by_hand(lambda e, log: 2 * e, lambda x, b, a: b - x)),
    ("no_baseline", by_hand(lambda e, log: 2 * e, lambda x, b, a: x)),
    ("baseline_against_the_loss", by_hand(lambda e, log: 2 * e, lambda x, b, a: x - b)),
]
PARTIAL = [(2, by_hand(lambda e, log: 0.0, lambda x, b, a: x + b))]
