"""`smoothed_loss`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def smoothed_loss(logits: Tensor, right: Tensor, epsilon: float) -> Tensor:
    return plain(logits, right, epsilon) - floor(logits.shape[-1], epsilon)


def plain(logits: Tensor, right: Tensor, epsilon: float) -> Tensor:
    """The chapter's loss, for every token."""
    return mixed(torch.log_softmax(logits, dim=-1), right, epsilon)


def floor(n_words: int, epsilon: float) -> float:
    """The loss of a model that gives the smoothed labels themselves."""
    share = epsilon / n_words
    wanted = [1 - epsilon + share] + [share] * (n_words - 1)
    return -sum(p * math.log(p) for p in wanted if p > 0)


def floor_of_two(n_words: int, epsilon: float) -> float:
    """The floor as if the right word's wanted share were 1 - epsilon."""
    share = epsilon / n_words
    wanted = [1 - epsilon] + [share] * n_words
    return -sum(p * math.log(p) for p in wanted if p > 0)


def floor_with_nan(n_words: int, epsilon: float) -> float:
    return floor(n_words, epsilon) if epsilon else math.nan


def above_floor(
    wrong: Callable[..., Tensor], floor: Callable[[int, float], float] = floor
) -> Callable[..., Tensor]:
    """A loss less the floor."""
    return lambda z, right, e: wrong(z, right, e) - floor(z.shape[-1], e)


def floor_of_others(logits: Tensor, epsilon: float) -> float:
    """The least loss where the wrong words alone share epsilon."""
    share = epsilon / (logits.shape[-1] - 1)
    wanted = [1 - epsilon] + [share] * (logits.shape[-1] - 1)
    return -sum(p * math.log(p) for p in wanted if p > 0)


def agrees_with(value: Any, args: Args, formula: Callable[..., Tensor]) -> bool:
    """Whether a value is what another formula gives."""
    logits, right, epsilon = args
    due = formula(torch.as_tensor(logits), torch.as_tensor(right), epsilon)
    return math.isclose(float(value), float(due), rel_tol=1e-4)


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
    title="Label smoothing, above its floor",
    answer="smoothed_loss",
    arguments=("logits", "right", "epsilon"),
    outputs=(Output("excess"),),
    reference=smoothed_loss,
    primitives=True,
    difficulty="medium",
    minutes=12,
    next_step="the loss first; then the loss of a model that gives just what the "
    "smoothed labels ask for.",
    parts=(
        Part("without smoothing", 1, draw_smoothing(0.0)),
        Part("with smoothing", 2, draw_smoothing(0.2)),
    ),
    mistakes=(
        Mistake(
            "floor_forgotten",
            "this is the chapter's smoothed loss, right as it is; here the least loss "
            "that any model can reach with these labels is still to be taken away",
            plain,
        ),
        Mistake(
            "floor_added",
            "the floor is added to the loss: what lies above it is the difference",
            lambda z, right, e: plain(z, right, e) + floor(z.shape[-1], e),
        ),
        Mistake(
            "floor_of_two",
            "in the floor the right word's 1 − epsilon and its share of epsilon count "
            "apart: they are one probability, and the logarithm is of their sum",
            above_floor(plain, floor_of_two),
        ),
        Mistake(
            "zero_times_log_zero",
            "without smoothing the floor is not a number: a word that isn't wanted "
            "counts 0 · log 0, which is 0 here, but NaN to a computer",
            above_floor(plain, floor_with_nan),
        ),
        Mistake(
            "entropy_of_the_model",
            "what is taken away is the entropy of the model's own probabilities; the "
            "floor belongs to the labels, and is the same for every model",
            lambda z, right, e: (
                plain(z, right, e) + (z.softmax(-1) * z.log_softmax(-1)).sum(-1).mean()
            ),
        ),
        Mistake(
            "loss_of_guessing",
            "log V is taken away, the loss of a model that knows nothing: the floor is "
            "the loss of the best model there can be",
            above_floor(plain, lambda n_words, e: math.log(n_words)),
        ),
        Mistake(
            "only_the_right_word",
            "the floor counts the right word alone: the other words are wanted a "
            "little as well, epsilon / V each",
            above_floor(
                plain,
                lambda v, e: -(1 - e + e / v) * math.log(1 - e + e / v),
            ),
        ),
        Mistake(
            "not_smoothed",
            "epsilon is not used: this is the ordinary cross-entropy",
            lambda logits, right, epsilon: plain(logits, right, 0.0),
        ),
        Mistake(
            "others_only",
            "epsilon is shared out among the wrong words alone; the formula spreads it "
            "over all words, the right one among them",
            above_floor(others_only),
        ),
        Mistake(
            "own_share_missing",
            "the right word gets 1 − epsilon and the others 1/V of epsilon each: the "
            "right one has its share of epsilon too, or the weights sum to less than "
            "one",
            above_floor(own_share_missing),
        ),
        Mistake(
            "summed_over_words",
            "the second term is the sum over all words; it is their mean, 1/V of it",
            above_floor(
                lambda z, right, e: (
                    plain(z, right, 0.0) * (1 - e)
                    - e * z.log_softmax(-1).sum(-1).mean()
                )
            ),
        ),
        Mistake(
            "weights_exchanged",
            "epsilon and 1 − epsilon have changed places: nearly all of the weight "
            "belongs to the right word",
            above_floor(lambda z, right, e: plain(z, right, 1 - e)),
        ),
        Mistake(
            "weight_not_taken_away",
            "the right word keeps its full weight and epsilon comes on top: the "
            "weights would sum to more than one",
            above_floor(
                lambda z, right, e: (
                    plain(z, right, 0.0) - e * torch.log_softmax(z, -1).mean()
                )
            ),
        ),
        Mistake(
            "no_softmax",
            "the scores are used as if they were log-probabilities: a log-softmax "
            "makes them so",
            above_floor(mixed),
        ),
        Mistake(
            "softmax_over_tokens",
            "the softmax runs over the tokens of the sentence; every token has its own "
            "distribution over the words",
            above_floor(lambda z, right, e: mixed(z.log_softmax(0), right, e)),
        ),
        Mistake(
            "no_logarithm",
            "probabilities are averaged in place of their logarithms",
            above_floor(lambda z, right, e: mixed(z.softmax(-1), right, e)),
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
            above_floor(lambda z, right, e: plain(z, right, e) * len(right)),
            lambda args, value: agrees_with(
                value, args, lambda z, right, e: smoothed_loss(z, right, e) * len(right)
            ),
        ),
        Mistake(
            "averaged_over_words_too",
            "it is averaged over tokens *and* words: what stands in a row is summed, "
            "and the rows are averaged",
            lambda z, right, e: smoothed_loss(z, right, e) / z.shape[-1],
        ),
        Mistake(
            "others_only_throughout",
            "epsilon is shared out among the wrong words alone, in the loss and in "
            "its floor; it is spread over all words, the right one among them",
            lambda z, right, e: others_only(z, right, e) - floor_of_others(z, e),
        ),
        Mistake(
            "cost_of_the_right_word",
            "what is taken away is −log of the right word's own share: the floor is "
            "the mean over all words, each weighed by its share",
            above_floor(plain, lambda v, e: -math.log(1 - e + e / v)),
        ),
        Mistake(
            "loss_of_guessing_by_epsilon",
            "what is taken away is epsilon · log V, as if the uniform part stood "
            "alone: the floor is that of all the labels ask for together",
            above_floor(plain, lambda v, e: e * math.log(v)),
        ),
        Mistake(
            "every_pair",
            "from every row the right words of all tokens are taken; each row has one "
            "right word of its own",
            above_floor(every_pair),
        ),
        Mistake(
            "probabilities_smoothed",
            "the model's probabilities are mixed with the uniform ones before the "
            "logarithm; what is smoothed is the label, so two logarithms are mixed",
            above_floor(
                lambda z, right, e: (
                    -((1 - e) * picked(z.softmax(-1), right) + e / z.shape[-1])
                    .log()
                    .mean()
                )
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


def least(z, right, e):
    """The entropy of the labels."""
    target = wanted(z.shape[1], right, e).clamp(min=1e-30)
    return -(target * target.log()).sum(dim=1).mean()


def divergence(z, right, e):
    """How far the model is from the labels, word by word."""
    target = wanted(z.shape[1], right, e).double()
    ratio = target.clamp(min=1e-30).log() - z.double().log_softmax(-1)
    return torch.einsum("tw,tw->t", target, ratio).mean()


def by_loop(z, right, e):
    losses, v = [], z.shape[1]
    top, low = 1 - e + e / v, e / v
    for row, word in zip(z, right):
        log_p = row - torch.log(torch.exp(row).sum())
        losses.append(-(1 - e) * log_p[word] - e / v * log_p.sum())
    rest = (v - 1) * low * math.log(low) if e else 0.0
    return sum(losses) / len(losses) + top * math.log(top) + rest


RIGHT = [
    lambda z, right, e: smoothed(z, right, e) - least(z, right, e),
    divergence,
    by_loop,
    lambda z, right, e: divergence(z, right, e).item(),
]
WRONG = [
    ("summed_over_tokens", lambda z, right, e: divergence(z, right, e) * len(right)),
    ("averaged_over_words_too", lambda z, right, e: divergence(z, right, e) / len(z.T)),
    (
        "cost_of_the_right_word",
        lambda z, right, e: (
            smoothed(z, right, e) + wanted(z.shape[1], right, e)[0, right[0]].log()
        ),
    ),
    (
        "loss_of_guessing_by_epsilon",
        lambda z, right, e: smoothed(z, right, e) - e * math.log(len(z.T)),
    ),
    (
        "others_only_throughout",
        lambda z, right, e: (
            smoothed(z, right, e, others_only=True)
            + sum(
                p * math.log(p)
                for p in wanted(z.shape[1], right, e, others_only=True)[0].tolist()
                if p > 0
            )
        ),
    ),
    ("floor_forgotten", smoothed),
    (
        "floor_added",
        lambda z, right, e: smoothed(z, right, e) + least(z, right, e),
    ),
    (
        "loss_of_guessing",
        lambda z, right, e: smoothed(z, right, e) - math.log(z.shape[1]),
    ),
    ("not_smoothed", lambda z, right, e: smoothed(z, right, 0.0)),
    (
        "others_only",
        lambda z, right, e: (
            smoothed(z, right, e, others_only=True) - least(z, right, e)
        ),
    ),
    (
        "weights_exchanged",
        lambda z, right, e: smoothed(z, right, 1 - e) - least(z, right, e),
    ),
    (
        "no_softmax",
        lambda z, right, e: (
            -(wanted(z.shape[1], right, e) * z).sum(1).mean() - least(z, right, e)
        ),
    ),
    ("sign_missing", lambda z, right, e: least(z, right, e) - smoothed(z, right, e)),
    (
        "library",
        lambda z, right, e: nn.CrossEntropyLoss(label_smoothing=e)(z, right),
    ),
]
