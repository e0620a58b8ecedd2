"""`smoothed_loss`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def smoothed_loss(logits: Tensor, right: Tensor, epsilon: float) -> Tensor:
    return mixed(torch.log_softmax(logits, dim=-1), right, epsilon)


def picked(log_p: Tensor, right: Tensor) -> Tensor:
    return log_p.gather(-1, right[:, None])[:, 0]


def mixed(log_p: Tensor, right: Tensor, epsilon: float) -> Tensor:
    rest = log_p.mean(dim=-1)
    return -((1 - epsilon) * picked(log_p, right) + epsilon * rest).mean()


def others_only(logits: Tensor, right: Tensor, epsilon: float) -> Tensor:
    log_p = torch.log_softmax(logits, dim=-1)
    chosen = picked(log_p, right)
    rest = (log_p.sum(dim=-1) - chosen) / (logits.shape[-1] - 1)
    return -((1 - epsilon) * chosen + epsilon * rest).mean()


def own_share_missing(logits: Tensor, right: Tensor, epsilon: float) -> Tensor:
    log_p = torch.log_softmax(logits, dim=-1)
    chosen = picked(log_p, right)
    rest = (log_p.sum(dim=-1) - chosen) / logits.shape[-1]
    return -((1 - epsilon) * chosen + epsilon * rest).mean()


def draw_smoothing(epsilon: float) -> Any:
    def cases(rng: np.random.Generator) -> list[Args]:
        drawn: list[Args] = []
        for _ in range(2):
            token, word = sizes(rng, 2, least=4)
            right = rng.integers(0, word, size=token)
            drawn.append((2 * normal(rng, token, word), right, epsilon))
        return drawn

    return cases


def every_pair(logits: Tensor, right: Tensor, epsilon: float) -> Tensor:
    log_p = torch.log_softmax(logits, dim=-1)
    return -((1 - epsilon) * log_p[:, right] + epsilon * log_p.mean(dim=-1)).mean()


QUESTION = Question(
    id="12.4",
    title="Label smoothing",
    answer="smoothed_loss",
    arguments=("logits", "right", "epsilon"),
    outputs=(Output("loss"),),
    reference=smoothed_loss,
    primitives=True,
    difficulty="easy",
    minutes=8,
    next_step="log-probabilities first, then the two terms of the formula.",
    parts=(
        Part("without smoothing", 1, draw_smoothing(0.0)),
        Part("with smoothing", 2, draw_smoothing(0.2)),
    ),
    mistakes=(
        Mistake(
            "not_smoothed",
            "epsilon is not used: this is the ordinary cross-entropy",
            lambda logits, right, epsilon: smoothed_loss(logits, right, 0.0),
        ),
        Mistake(
            "others_only",
            "epsilon is shared out among the wrong words alone; the formula spreads it "
            "over all words, the right one among them",
            others_only,
        ),
        Mistake(
            "own_share_missing",
            "the right word gets 1 − epsilon and the others 1/V of epsilon each: the "
            "right one has its share of epsilon too, or the weights sum to less than "
            "one",
            own_share_missing,
        ),
        Mistake(
            "summed_over_words",
            "the second term is the sum over all words; it is their mean, 1/V of it",
            lambda logits, right, epsilon: (
                -(
                    (1 - epsilon) * picked(torch.log_softmax(logits, -1), right)
                    + epsilon * torch.log_softmax(logits, -1).sum(dim=-1)
                ).mean()
            ),
        ),
        Mistake(
            "weights_exchanged",
            "epsilon and 1 − epsilon have changed places: nearly all of the weight "
            "belongs to the right word",
            lambda logits, right, epsilon: mixed(
                torch.log_softmax(logits, -1), right, 1 - epsilon
            ),
        ),
        Mistake(
            "weight_not_taken_away",
            "the right word keeps its full weight and epsilon comes on top: the "
            "weights would sum to more than one",
            lambda logits, right, epsilon: (
                smoothed_loss(logits, right, 0.0)
                - epsilon * torch.log_softmax(logits, -1).mean()
            ),
        ),
        Mistake(
            "no_softmax",
            "the scores are used as if they were log-probabilities: a log-softmax "
            "makes them so",
            lambda logits, right, epsilon: mixed(logits, right, epsilon),
        ),
        Mistake(
            "softmax_over_tokens",
            "the softmax runs over the tokens of the sentence; every token has its own "
            "distribution over the words",
            lambda logits, right, epsilon: mixed(
                torch.log_softmax(logits, 0), right, epsilon
            ),
        ),
        Mistake(
            "no_logarithm",
            "probabilities are averaged in place of their logarithms",
            lambda logits, right, epsilon: mixed(
                torch.softmax(logits, -1), right, epsilon
            ),
        ),
        Mistake(
            "sign_missing",
            "the sign is missing: log-probabilities are negative, a loss is to be made "
            "small",
            lambda logits, right, epsilon: -smoothed_loss(logits, right, epsilon),
        ),
        Mistake(
            "summed_over_tokens",
            "the losses of the tokens are added up: the loss is their mean, or long "
            "sentences would count for more",
            lambda logits, right, epsilon: (
                smoothed_loss(logits, right, epsilon) * len(right)
            ),
        ),
        Mistake(
            "every_pair",
            "from every row the right words of all tokens are taken; each row has one "
            "right word of its own",
            every_pair,
        ),
        Mistake(
            "probabilities_smoothed",
            "the model's probabilities are mixed with the uniform ones before the "
            "logarithm; what is smoothed is the label, so two logarithms are mixed",
            lambda z, right, e: (
                -((1 - e) * picked(z.softmax(-1), right) + e / z.shape[-1]).log().mean()
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def wanted(n_words, right, epsilon, others_only=False):
    """The distribution that smoothed labels ask for."""
    share = epsilon / (n_words - 1) if others_only else epsilon / n_words
    target = torch.full((len(right), n_words), share)
    target[torch.arange(len(right)), right] += 1 - epsilon - share * others_only
    return target


def smoothed(logits, right, epsilon, **options):
    target = wanted(logits.shape[1], right, epsilon, **options)
    log_p = logits - logits.logsumexp(dim=1, keepdim=True)
    return -(target * log_p).sum(dim=1).mean()


RIGHT = [smoothed]
WRONG = [
    ("not_smoothed", lambda z, right, e: smoothed(z, right, 0.0)),
    ("others_only", lambda z, right, e: smoothed(z, right, e, others_only=True)),
    (
        "own_share_missing",
        lambda z, right, e: (
            smoothed(z, right, e) - e / z.shape[1] * smoothed(z, right, 0)
        ),
    ),
    ("weights_exchanged", lambda z, right, e: smoothed(z, right, 1 - e)),
    (
        "softmax_over_tokens",
        lambda z, right, e: (
            -(wanted(z.shape[1], right, e) * (z - z.logsumexp(dim=0))).sum(1).mean()
        ),
    ),
    (
        "no_softmax",
        lambda z, right, e: -(wanted(z.shape[1], right, e) * z).sum(1).mean(),
    ),
    ("sign_missing", lambda z, right, e: 0 - smoothed(z, right, e)),
    (
        "library",
        lambda z, right, e: nn.CrossEntropyLoss(label_smoothing=e)(z, right),
    ),
]
