"""Questions of chapter 04: REINFORCE, with a baseline, for a hard choice of a key."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import first, normal, second, sizes

# ------------------------------------------------------------- 04.4 from rewards alone


def grad_log(scores: Tensor, chosen: Tensor) -> Tensor:
    return F.one_hot(chosen, len(scores)).float() - torch.softmax(scores, dim=0)


def reinforce(
    scores: Tensor, chosen: Tensor, rewards: Tensor, baseline: float
) -> Tensor:
    return ((rewards - baseline)[:, None] * grad_log(scores, chosen)).mean(dim=0)


def draw_draws(rng: np.random.Generator, baseline: float | None = None) -> list[Args]:
    cases = []
    for _ in range(2):
        n, draws = sizes(rng, 2, least=4)
        own = float(np.round(3 + rng.random(), 2)) if baseline is None else baseline
        chosen = rng.integers(0, n, 3 * draws)
        rewards = 3 + normal(rng, 3 * draws)
        cases.append((normal(rng, n), chosen, rewards.astype(np.float32), own))
    return cases


def no_log(scores: Tensor, chosen: Tensor, rewards: Tensor, baseline: float) -> Tensor:
    alpha = torch.softmax(scores, dim=0)[chosen][:, None]
    return ((rewards - baseline)[:, None] * alpha * grad_log(scores, chosen)).mean(0)


def divided_again(
    scores: Tensor, chosen: Tensor, rewards: Tensor, baseline: float
) -> Tensor:
    alpha = torch.softmax(scores, dim=0)[chosen][:, None]
    return ((rewards - baseline)[:, None] * grad_log(scores, chosen) / alpha).mean(0)


def weighted_again(
    scores: Tensor, chosen: Tensor, rewards: Tensor, baseline: float
) -> Tensor:
    alpha = torch.softmax(scores, dim=0)[chosen]
    each = (alpha * (rewards - baseline))[:, None] * grad_log(scores, chosen)
    return each.sum(dim=0) / alpha.sum()


def of_scores(
    scores: Tensor, chosen: Tensor, rewards: Tensor, baseline: float
) -> Tensor:
    hot = F.one_hot(chosen, len(scores)).float() - scores
    return ((rewards - baseline)[:, None] * hot).mean(dim=0)


def only_the_chosen(
    scores: Tensor, chosen: Tensor, rewards: Tensor, baseline: float
) -> Tensor:
    hot = F.one_hot(chosen, len(scores)).float()
    return ((rewards - baseline)[:, None] * hot).mean(dim=0)


REINFORCE = Question(
    id="04.4",
    title="A gradient from draws and rewards",
    answer="reinforce_gradient",
    arguments=("scores", "chosen", "rewards", "baseline"),
    outputs=(Output("gradient", "score"),),
    reference=reinforce,
    next_step="write the gradient of log α_j by the scores for one draw, then average.",
    parts=(
        Part("without a baseline", 1, lambda rng: draw_draws(rng, 0.0)),
        Part("with a baseline", 2, draw_draws),
    ),
    mistakes=(
        Mistake(
            "no_log",
            "this follows the gradient of α_j, not of log α_j: likely choices are "
            "drawn more often already, and so count twice",
            no_log,
        ),
        Mistake(
            "divided_again",
            "every draw is divided by its α_j once more: the gradient of log α_j has "
            "that division in it already",
            divided_again,
        ),
        Mistake(
            "weighted_again",
            "the draws are averaged with the weights α once more: that they come up in "
            "that proportion is weight enough",
            weighted_again,
        ),
        Mistake(
            "no_baseline",
            "the baseline is not used: right on average, and as noisy as before",
            lambda s, c, r, b: reinforce(s, c, r, 0.0),
        ),
        Mistake(
            "baseline_added",
            "the baseline is added: what is common to all rewards should go, not "
            "double",
            lambda s, c, r, b: reinforce(s, c, r, -b),
        ),
        Mistake(
            "baseline_from_the_gradient",
            "the baseline is subtracted from the gradient itself: it belongs to the "
            "rewards, before they multiply anything",
            lambda s, c, r, b: reinforce(s, c, r, 0.0) - b,
        ),
        Mistake(
            "downhill",
            "every sign is turned round: a choice that went better than the baseline "
            "must become likelier",
            lambda s, c, r, b: -reinforce(s, c, r, b),
        ),
        Mistake(
            "summed",
            "the draws are added up, not averaged: more draws would mean a larger "
            "gradient",
            lambda s, c, r, b: len(c) * reinforce(s, c, r, b),
        ),
        Mistake(
            "only_the_chosen",
            "only the chosen score gets a gradient: when it rises all other weights "
            "fall, so the others have one too",
            only_the_chosen,
        ),
        Mistake(
            "scores_for_weights",
            "the scores stand where the weights belong: subtract α, after the softmax",
            of_scores,
        ),
    ),
)


# -------------------------------------------------------------- 04.5 through a network


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


HARD = Question(
    id="04.5",
    title="Look elsewhere, and read better",
    answer="hard_gradients",
    arguments=("scores", "predictions", "target", "chosen", "baseline"),
    outputs=(Output("by_scores", "key"), Output("by_predictions", "key")),
    reference=hard_gradients,
    next_step="write the expression with two terms; in one of them the reward is only "
    "a number.",
    parts=(
        Part("by the scores", 2, draw_choice, view=first),
        Part("by the predictions", 2, draw_choice, view=second),
    ),
    mistakes=(
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

QUESTIONS = (REINFORCE, HARD)
