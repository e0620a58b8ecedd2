"""`reinforce_gradient`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q1_attend import shares


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


QUESTION = Question(
    id="04.4",
    title="A gradient from draws and rewards",
    answer="reinforce_gradient",
    arguments=("scores", "chosen", "rewards", "baseline"),
    outputs=(Output("gradient", "score"),),
    reference=reinforce,
    difficulty="medium",
    minutes=10,
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
        Mistake(
            "mean_for_baseline",
            "the mean of the rewards is subtracted: a fine baseline, but not the one "
            "that is given",
            lambda s, c, r, b: reinforce(s, c, r, float(r.mean())),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def estimate(weigh):
    """REINFORCE by a loop over the draws, each worth `weigh(reward, baseline, a)`."""

    def answer(scores, chosen, rewards, baseline):
        alpha, total = shares(scores), torch.zeros(len(scores))
        for j, reward in zip(chosen.tolist(), rewards):
            step = -alpha.clone()
            step[j] += 1
            total += weigh(reward, baseline, alpha[j]) * step
        return total / len(chosen)

    return answer


RIGHT = [estimate(lambda r, b, a: r - b)]
WRONG = [
    ("no_log", estimate(lambda r, b, a: (r - b) * a)),
    ("divided_again", estimate(lambda r, b, a: (r - b) / a)),
    ("no_baseline", estimate(lambda r, b, a: r)),
    ("baseline_added", estimate(lambda r, b, a: r + b)),
    ("downhill", estimate(lambda r, b, a: b - r)),
    (
        "summed",
        lambda s, c, r, b: estimate(lambda r, b, a: r - b)(s, c, r, b) * c.numel(),
    ),
    (
        "baseline_from_the_gradient",
        lambda s, c, r, b: estimate(lambda r, b, a: r)(s, c, r, b) - b,
    ),
    (
        "only_the_chosen",
        lambda s, c, r, b: torch.zeros(len(s)).index_add(0, c, r - b) / len(c),
    ),
]
