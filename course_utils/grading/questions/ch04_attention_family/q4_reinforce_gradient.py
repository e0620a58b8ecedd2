"""`reinforce_gradient`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q1_attend import shares


def grad_log(scores: Tensor, chosen: Tensor) -> Tensor:
    return F.one_hot(chosen, len(scores)).float() - torch.softmax(scores, dim=0)


def ratio(scores: Tensor, old: Tensor, chosen: Tensor) -> Tensor:
    """How much likelier each draw is now than it was when it was drawn."""
    return (torch.softmax(scores, dim=0) / torch.softmax(old, dim=0))[chosen]


def reinforce(
    scores: Tensor, old: Tensor, chosen: Tensor, rewards: Tensor, baseline: float
) -> Tensor:
    gain = ratio(scores, old, chosen) * (rewards - baseline)
    return (gain[:, None] * grad_log(scores, chosen)).mean(dim=0)


def weighted(
    factor: Callable[[Tensor, Tensor, Tensor], Tensor],
    of: Callable[[Tensor, Tensor, Tensor], Tensor] = lambda s, old, c: grad_log(s, c),
) -> Any:
    """The estimate with another factor for each draw, or another gradient."""

    def wrong(s: Tensor, old: Tensor, c: Tensor, r: Tensor, b: float) -> Tensor:
        gain = factor(s, old, c) * (r - b)
        return (gain[:, None] * of(s, old, c)).mean(dim=0)

    return wrong


def likelihood(scores: Tensor, chosen: Tensor) -> Tensor:
    return torch.softmax(scores, dim=0)[chosen]


def self_normalised(s: Tensor, old: Tensor, c: Tensor, r: Tensor, b: float) -> Tensor:
    return reinforce(s, old, c, r, b) / ratio(s, old, c).mean()


def baseline_not_weighted(
    s: Tensor, old: Tensor, c: Tensor, r: Tensor, b: float
) -> Tensor:
    gain = ratio(s, old, c) * r - b
    return (gain[:, None] * grad_log(s, c)).mean(dim=0)


def draw_draws(rng: np.random.Generator, own: bool) -> list[Args]:
    """Draws from these scores themselves, or from others."""
    cases: list[Args] = []
    for _ in range(2):
        n, draws = sizes(rng, 2, least=4)
        scores = normal(rng, n)
        old = scores.copy() if own else normal(rng, n)
        chosen = rng.integers(0, n, 3 * draws)
        rewards = (3 + normal(rng, 3 * draws)).astype(np.float32)
        cases.append(
            (scores, old, chosen, rewards, float(np.round(3 + rng.random(), 2)))
        )
    return cases


QUESTION = Question(
    id="04.4",
    title="A gradient from another's draws",
    answer="reinforce_gradient",
    arguments=("scores", "old_scores", "chosen", "rewards", "baseline"),
    outputs=(Output("gradient", "score"),),
    reference=reinforce,
    difficulty="medium",
    minutes=12,
    next_step="write the estimate for draws from `scores`; then ask how much likelier "
    "each draw is now than when it was drawn.",
    parts=(
        Part(
            "other scores",
            2,
            lambda rng: draw_draws(rng, False),
            only_failure_hint="right for draws from these very scores, wrong for draws "
            "from others: each counts as many times as it is likelier now than then",
        ),
        Part("the same scores", 1, lambda rng: draw_draws(rng, True)),
    ),
    mistakes=(
        Mistake(
            "ratio_not_detached",
            "the ratio takes part in the gradient, beside the logarithm: there it is "
            "a plain number, how much likelier each draw is now (`detach`)",
            weighted(lambda s, old, c: ratio(s, old, c) * (1 + likelihood(s, c).log())),
        ),
        Mistake(
            "not_weighted",
            "this is the chapter's estimate, for draws from `scores`: these were drawn "
            "with `old_scores`, so some choices came up too often, others too rarely",
            weighted(lambda s, old, c: torch.ones(len(c))),
        ),
        Mistake(
            "upside_down",
            "the ratio is upside down: a choice that was drawn too rarely must count "
            "for more, not for less",
            weighted(lambda s, old, c: ratio(old, s, c)),
        ),
        Mistake(
            "squared",
            "the ratio stands in the product twice: each draw counts a/a_old times, "
            "not the square of that",
            weighted(lambda s, old, c: ratio(s, old, c) ** 2),
        ),
        Mistake(
            "not_normalised",
            "the ratio is one of exponentials, exp(score − old score): each softmax "
            "has its own sum to divide by",
            weighted(lambda s, old, c: (s - old).exp()[c]),
        ),
        Mistake(
            "log_ratio",
            "the draws are weighted by the logarithm of the ratio, which is 0 where "
            "nothing has changed: there each draw has to count once",
            weighted(lambda s, old, c: ratio(s, old, c).log()),
        ),
        Mistake(
            "new_probability_alone",
            "each draw is weighted by its probability now: how likely it was when it "
            "was drawn is missing",
            weighted(lambda s, old, c: likelihood(s, c)),
        ),
        Mistake(
            "old_probability_alone",
            "each draw is divided by its old probability alone: it has to be "
            "multiplied by the new one as well",
            weighted(lambda s, old, c: 1 / likelihood(old, c)),
        ),
        Mistake(
            "gradient_of_the_old",
            "the gradient is taken at the old scores: asked for is that of `scores`; "
            "the old ones matter for the ratio alone",
            weighted(ratio, lambda s, old, c: grad_log(old, c)),
        ),
        Mistake(
            "all_old",
            "this is the estimate at the old scores, for which the draws were made: "
            "asked for is the gradient at `scores`",
            weighted(
                lambda s, old, c: torch.ones(len(c)),
                lambda s, old, c: grad_log(old, c),
            ),
        ),
        Mistake(
            "self_normalised",
            "the estimate is divided by the mean ratio: a known variant, but here the "
            "draws are averaged as they are",
            self_normalised,
        ),
        Mistake(
            "baseline_not_weighted",
            "the ratio multiplies the reward, not the baseline: subtract the baseline "
            "first",
            baseline_not_weighted,
        ),
        Mistake(
            "no_baseline",
            "the baseline is not used: right on average, and as noisy as before",
            lambda s, o, c, r, b: reinforce(s, o, c, r, 0.0),
        ),
        Mistake(
            "baseline_added",
            "the baseline is added: what is common to all rewards should go, not "
            "double",
            lambda s, o, c, r, b: reinforce(s, o, c, r, -b),
        ),
        Mistake(
            "baseline_from_the_gradient",
            "the baseline is subtracted from the gradient itself: it belongs to the "
            "rewards, before they multiply anything",
            lambda s, o, c, r, b: reinforce(s, o, c, r, 0.0) - b,
        ),
        Mistake(
            "downhill",
            "every sign is turned round: a choice that went better than the baseline "
            "must become likelier",
            lambda s, o, c, r, b: -reinforce(s, o, c, r, b),
        ),
        Mistake(
            "summed",
            "the draws are added up, not averaged: more draws would mean a larger "
            "gradient",
            lambda s, o, c, r, b: len(c) * reinforce(s, o, c, r, b),
        ),
        Mistake(
            "only_the_chosen",
            "only the chosen score gets a gradient: when it rises all other weights "
            "fall, so the others have one too",
            weighted(ratio, lambda s, old, c: F.one_hot(c, len(s)).float()),
        ),
        Mistake(
            "scores_for_weights",
            "the scores stand where the weights belong: subtract α, after the softmax",
            weighted(ratio, lambda s, old, c: F.one_hot(c, len(s)).float() - s),
        ),
        Mistake(
            "mean_for_baseline",
            "the mean of the rewards is subtracted: a fine baseline, but not the one "
            "that is given",
            lambda s, o, c, r, b: reinforce(s, o, c, r, float(r.mean())),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def estimate(weigh):
    """A loop over the draws, each worth `weigh(reward, baseline, now, then)`."""

    def answer(scores, old_scores, chosen, rewards, baseline):
        now, then, total = shares(scores), shares(old_scores), torch.zeros(len(scores))
        for j, reward in zip(chosen.tolist(), rewards):
            step = -now.clone()
            step[j] += 1
            total += weigh(reward, baseline, now[j], then[j]) * step
        return total / len(chosen)

    return answer


def by_autograd(scores, old_scores, chosen, rewards, baseline):
    """The gradient of the mean of ratio times gain, by the scores."""
    scores = scores.double().requires_grad_()
    log_now = torch.log_softmax(scores, 0)[chosen]
    log_then = torch.log_softmax(old_scores.double(), 0)[chosen]
    gain = (log_now - log_then).exp() * (rewards - baseline)
    return torch.autograd.grad(gain.mean(), scores)[0]


def by_einsum(scores, old_scores, chosen, rewards, baseline):
    now, then = scores.softmax(0), old_scores.softmax(0)
    slopes = torch.diag(now) - torch.outer(now, now)  # row j: the gradient of now_j
    gain = (rewards - baseline) / then[chosen] / len(chosen)
    return torch.einsum("t,tn->n", gain, slopes[chosen])


def in_numpy(scores, old_scores, chosen, rewards, baseline):
    now, then = (np.exp(x.numpy()) for x in (scores, old_scores))
    now, then, j = now / now.sum(), then / then.sum(), chosen.numpy()
    gain = now[j] / then[j] * (rewards.numpy() - baseline)
    return (gain[:, None] * (np.eye(len(now))[j] - now)).mean(0)


RIGHT = [
    estimate(lambda r, b, now, then: (r - b) * now / then),
    by_autograd,
    by_einsum,
    in_numpy,
]
WRONG = [
    ("not_weighted", estimate(lambda r, b, now, then: r - b)),
    ("upside_down", estimate(lambda r, b, now, then: (r - b) * then / now)),
    ("squared", estimate(lambda r, b, now, then: (r - b) * (now / then) ** 2)),
    ("new_probability_alone", estimate(lambda r, b, now, then: (r - b) * now)),
    ("old_probability_alone", estimate(lambda r, b, now, then: (r - b) / then)),
    ("baseline_not_weighted", estimate(lambda r, b, now, then: r * now / then - b)),
    ("no_baseline", estimate(lambda r, b, now, then: r * now / then)),
    ("baseline_added", estimate(lambda r, b, now, then: (r + b) * now / then)),
    ("downhill", estimate(lambda r, b, now, then: (b - r) * now / then)),
    ("summed", lambda *given: by_einsum(*given) * len(given[2])),
    ("all_old", lambda s, o, c, r, b: by_einsum(o, o, c, r, b)),
]
PARTIAL = [(1, estimate(lambda r, b, now, then: r - b))]
