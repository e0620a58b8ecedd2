"""More questions of chapter 12: how a transformer is trained, and how it writes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import normal, sizes

# ------------------------------------------------------------- 12.4 label smoothing


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


SMOOTHING = Question(
    id="12.4",
    title="Label smoothing",
    answer="smoothed_loss",
    arguments=("logits", "right", "epsilon"),
    outputs=(Output("loss"),),
    reference=smoothed_loss,
    next_step="log-probabilities first, then the two terms of the formula.",
    parts=(
        Part("without smoothing", 1, draw_smoothing(0.0)),
        Part("with smoothing", 2, draw_smoothing(0.2)),
    ),
    mistakes=(
        Mistake(
            "not_smoothed",
            "epsilon is not used: this is the ordinary cross-entropy",
            lambda logits, right, epsilon: F.cross_entropy(logits, right),
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
                F.cross_entropy(logits, right)
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
    ),
)


# ------------------------------------------------------------------- 12.5 warm-up


def rate(step: int, steps: int, lr: float, warmup: int) -> float:
    return scheduled(step, steps, lr, warmup)


def scheduled(
    step: int,
    steps: int,
    lr: float,
    warmup: int,
    rise: Callable[[int, int], float] = lambda step, warmup: (step + 1) / warmup,
    fall: Callable[[float], float] = lambda t: (1 + math.cos(math.pi * t)) / 2,
) -> float:
    if step < warmup:
        return lr * rise(step, warmup)
    return lr * fall((step - warmup) / (steps - warmup))


def draw_steps(before: bool) -> Any:
    def cases(rng: np.random.Generator) -> list[Args]:
        drawn: list[Args] = []
        for part in (0.0, 0.4, 0.9):
            warmup = int(rng.integers(8, 20))
            steps = warmup + int(rng.integers(30, 60))
            span = warmup if before else steps - warmup
            step = int(part * span) + (0 if before else warmup)
            drawn.append((step, steps, round(float(rng.uniform(0.1, 1)), 3), warmup))
        return drawn

    return cases


RATE = Question(
    id="12.5",
    title="Warm-up and cosine",
    answer="rate",
    arguments=("step", "steps", "lr", "warmup"),
    outputs=(Output("rate"),),
    reference=rate,
    next_step="two cases: before the end of the warm-up, and after it.",
    parts=(
        Part("while it warms up", 1, draw_steps(True)),
        Part("after the warm-up", 2, draw_steps(False)),
    ),
    mistakes=(
        Mistake(
            "starts_at_zero",
            "the first step has rate 0 and learns nothing: step 0 gets lr / warmup",
            lambda s, n, lr, w: scheduled(s, n, lr, w, rise=lambda s, w: s / w),
        ),
        Mistake(
            "no_warmup",
            "there is no warm-up: the rate starts at its full height",
            lambda s, n, lr, w: scheduled(s, n, lr, w, rise=lambda s, w: 1.0),
        ),
        Mistake(
            "cosine_from_the_start",
            "the cosine is counted from step 0: it begins where the warm-up ends, with "
            "the done fraction of the rest",
            lambda s, n, lr, w: (
                lr * (s + 1) / w if s < w else lr * (1 + math.cos(math.pi * s / n)) / 2
            ),
        ),
        Mistake(
            "rest_not_shortened",
            "the steps since the warm-up are divided by all steps: the rest has "
            "steps − warmup of them, so the rate never comes down to zero",
            lambda s, n, lr, w: (
                lr * (s + 1) / w
                if s < w
                else lr * (1 + math.cos(math.pi * (s - w) / n)) / 2
            ),
        ),
        Mistake(
            "one_step_late",
            "after the warm-up the steps are counted from 1: the first step after it "
            "still has the full rate, so t starts at 0",
            lambda s, n, lr, w: (
                lr * (s + 1) / w
                if s < w
                else lr * (1 + math.cos(math.pi * (s + 1 - w) / (n - w))) / 2
            ),
        ),
        Mistake(
            "one_step_too_high",
            "the warm-up takes one step too many, and that step goes above lr: steps "
            "count from 0, so the warm-up ends before step = warmup",
            lambda s, n, lr, w: lr * (s + 1) / w if s <= w else scheduled(s, n, lr, w),
        ),
        Mistake(
            "last_step_wasted",
            "the rest is counted one step too short, so that the last step has rate 0 "
            "and learns nothing: it has steps − warmup steps",
            lambda s, n, lr, w: (
                lr * (s + 1) / w
                if s < w
                else lr * (1 + math.cos(math.pi * (s - w) / (n - w - 1))) / 2
            ),
        ),
        Mistake(
            "quarter_wave",
            "this is a quarter of a wave: cos(pi t / 2) falls fastest at the end; half "
            "a wave, (1 + cos(pi t)) / 2, ends gently",
            lambda s, n, lr, w: scheduled(
                s, n, lr, w, fall=lambda t: math.cos(math.pi * t / 2)
            ),
        ),
        Mistake(
            "whole_cosine",
            "the cosine runs from 1 to −1: a negative rate climbs; add 1 and halve",
            lambda s, n, lr, w: scheduled(
                s, n, lr, w, fall=lambda t: math.cos(math.pi * t)
            ),
        ),
        Mistake(
            "straight_line",
            "after the warm-up the rate falls in a line; the cosine stays high at "
            "first and ends gently",
            lambda s, n, lr, w: scheduled(s, n, lr, w, fall=lambda t: 1 - t),
        ),
        Mistake(
            "not_halved",
            "1 + cos starts at 2: the rate jumps to twice its height when the warm-up "
            "ends",
            lambda s, n, lr, w: scheduled(
                s, n, lr, w, fall=lambda t: 1 + math.cos(math.pi * t)
            ),
        ),
        Mistake(
            "constant_after",
            "the rate stays where the warm-up left it: it should fall to zero",
            lambda s, n, lr, w: scheduled(s, n, lr, w, fall=lambda t: 1.0),
        ),
        Mistake(
            "cosine_for_the_warmup",
            "the cosine is there, the warm-up is not: below `warmup` the rate rises in "
            "a line",
            lambda s, n, lr, w: lr * (1 + math.cos(math.pi * (s - w) / (n - w))) / 2,
        ),
        Mistake(
            "lr_forgotten",
            "this goes up to 1 whatever `lr` is: the rate is this share of lr",
            lambda s, n, lr, w: rate(s, n, 1.0, w),
        ),
    ),
    packaged=("lr_at",),
)


# ------------------------------------------------------------- 12.6 one step of a beam


def extend(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return chosen(log_p[:, None] + gain, len(log_p))


def chosen(total: Tensor, n_beams: int) -> tuple[Tensor, Tensor, Tensor]:
    best = total.flatten().topk(n_beams)
    n_words = total.shape[1]
    return best.indices // n_words, best.indices % n_words, best.values


def each_its_own(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    best = (log_p[:, None] + gain).max(dim=-1)
    return torch.arange(len(log_p)), best.indices, best.values


def best_beam_only(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    parent = log_p.argmax()
    best = (log_p[parent] + gain[parent]).topk(len(log_p))
    return parent.expand(len(log_p)), best.indices, best.values


def parent_forgotten(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    _, word, total = extend(log_p, gain)
    return torch.arange(len(log_p)), word, total


def divided_by_beams(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    best = (log_p[:, None] + gain).flatten().topk(len(log_p))
    n = len(log_p)
    return best.indices // n, best.indices % n, best.values


def worst_first(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    parent, word, total = extend(log_p, gain)
    return parent.flip(0), word.flip(0), total.flip(0)


def exchanged(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    parent, word, total = extend(log_p, gain)
    return word, parent, total


def flat_places(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    parent, word, total = extend(log_p, gain)
    return parent, parent * gain.shape[1] + word, total


def as_probabilities(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    parent, word, total = extend(log_p, gain)
    return parent, word, total.exp()


def gains_kept(log_p: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    parent, word, _ = extend(log_p, gain)
    return parent, word, gain[parent, word]


def draw_beams(rng: np.random.Generator) -> list[Args]:
    """Draw beams of which one has the two best ways on, and one is given up."""
    drawn: list[Args] = []
    for n_beams in (3, 4):
        word = sizes(rng, 1, least=n_beams + 2)[0]
        log_p = -np.linspace(0.5, 2.0, n_beams) - 0.1 * rng.random(n_beams)
        gain = torch.log_softmax(torch.tensor(normal(rng, n_beams, word)), -1).numpy()
        order = rng.permutation(n_beams)
        leader = int(np.argmax(log_p[order]))
        best, share = rng.permutation(word)[:2], 1 + rng.random(word)
        share[best] = 0
        share *= 0.1 / share.sum()
        share[best] = 0.5, 0.4
        gain[leader] = np.log(share)
        drawn.append((log_p[order].astype(np.float32), gain.astype(np.float32)))
    return drawn


BEAM = Question(
    id="12.6",
    title="One step of beam search",
    answer="extend",
    arguments=("log_p", "gain"),
    outputs=(
        Output("parent", "beam"),
        Output("word", "beam"),
        Output("log_p", "beam"),
    ),
    reference=extend,
    next_step="every beam with every word makes one table; take the best of all of it.",
    parts=(
        Part("which beams go on", 2, draw_beams, view=lambda value: value[0]),
        Part("with which words", 1, draw_beams, view=lambda value: value[1]),
        Part("and how probable", 1, draw_beams, view=lambda value: value[2]),
    ),
    mistakes=(
        Mistake(
            "each_its_own",
            "every beam is continued with its own best word: then none is ever given "
            "up; the best of all continuations stay, wherever they come from",
            each_its_own,
        ),
        Mistake(
            "best_beam_only",
            "only the best beam goes on: continuations of the others may be better "
            "than its third",
            best_beam_only,
        ),
        Mistake(
            "past_forgotten",
            "what a beam has cost so far is not added: the new words are compared "
            "without their beginnings",
            lambda log_p, gain: chosen(gain, len(log_p)),
        ),
        Mistake(
            "gains_kept",
            "the log-probability returned is that of the last word alone; it is the "
            "sum over the whole beginning",
            gains_kept,
        ),
        Mistake(
            "parent_forgotten",
            "the parents are just 0, 1, 2, …: the place in the flat table, divided by "
            "the number of words, says which beam goes on",
            parent_forgotten,
        ),
        Mistake(
            "divided_by_beams",
            "the place in the flat table is divided by the number of beams; a row of "
            "it is as long as there are words",
            divided_by_beams,
        ),
        Mistake(
            "worst_first",
            "the right continuations, but the best of them has to come first",
            worst_first,
        ),
        Mistake(
            "exchanged",
            "beam and word have changed places: the place in the flat table, divided "
            "by the number of words, is the beam; the remainder is the word",
            exchanged,
        ),
        Mistake(
            "flat_places",
            "the places in the flat table are returned as words: the remainder after "
            "division by the number of words is the word",
            flat_places,
        ),
        Mistake(
            "as_probabilities",
            "probabilities are returned in place of their logarithms, which the next "
            "step will have to add to",
            as_probabilities,
        ),
        Mistake(
            "worst_kept",
            "the least probable continuations are kept: log-probabilities are "
            "negative, and the largest is the best",
            lambda log_p, gain: chosen_worst(log_p[:, None] + gain, len(log_p)),
        ),
        Mistake(
            "multiplied",
            "log-probabilities are multiplied: probabilities multiply, their "
            "logarithms add",
            lambda log_p, gain: chosen(log_p[:, None] * gain, len(log_p)),
        ),
    ),
    packaged=("extend_beams",),
)


def chosen_worst(total: Tensor, n_beams: int) -> tuple[Tensor, Tensor, Tensor]:
    parent, word, values = chosen(-total, n_beams)
    return parent, word, -values


QUESTIONS = (SMOOTHING, RATE, BEAM)
