"""`dropout`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def dropout(x: Tensor, keep: Tensor, p: float, training: bool) -> Tensor:
    return x * keep / (1 - p) if training else x


def draw_dropout(training: bool) -> Any:
    def cases(rng: np.random.Generator) -> list[Args]:
        drawn: list[Args] = []
        for p in (0.2, 0.4):
            token, d_model = sizes(rng, 2, least=4)
            keep = rng.random((token, d_model)) >= p
            keep[0, :2] = True, False  # one of each, whatever was drawn
            drawn.append((normal(rng, token, d_model), keep, p, training))
        return drawn

    return cases


QUESTION = Question(
    id="11.2",
    title="Dropout by hand",
    answer="dropout",
    arguments=("x", "keep", "p", "training"),
    outputs=(Output("y", "token d_model"),),
    reference=dropout,
    difficulty="easy",
    minutes=6,
    next_step="two cases: while training, and afterwards.",
    parts=(
        Part("while training", 2, draw_dropout(True)),
        Part("afterwards", 1, draw_dropout(False)),
    ),
    mistakes=(
        Mistake(
            "not_scaled",
            "what stays is not made larger: on average the next layer then gets less "
            "while training than afterwards",
            lambda x, keep, p, training: x * keep if training else x,
        ),
        Mistake(
            "scaled_by_p",
            "what stays is divided by p, the share that is dropped; make up for it by "
            "the share that stays",
            lambda x, keep, p, training: x * keep / p if training else x,
        ),
        Mistake(
            "made_smaller",
            "what stays is made smaller by the share that stays; it must make up for "
            "what is gone",
            lambda x, keep, p, training: x * keep * (1 - p) if training else x,
        ),
        Mistake(
            "mask_inverted",
            "what should stay is dropped, and the other way round: keep is True where "
            "a number stays",
            lambda x, keep, p, training: x * ~keep / (1 - p) if training else x,
        ),
        Mistake(
            "minus_infinity",
            "what is dropped becomes −∞: that blocks a score before a softmax; a "
            "number that is dropped becomes 0",
            lambda x, keep, p, training: (
                x.masked_fill(~keep, -torch.inf) / (1 - p) if training else x
            ),
        ),
        Mistake(
            "taken_out",
            "what is dropped is taken out, so that a plain row of numbers is left: "
            "the shape stays, with 0 in those places",
            lambda x, keep, p, training: x[keep] / (1 - p) if training else x,
        ),
        Mistake(
            "always_on",
            "numbers are dropped after training as well: then one input gets another "
            "answer each time",
            lambda x, keep, p, training: x * keep / (1 - p),
        ),
        Mistake(
            "scaled_afterwards",
            "the factor stands in the other case: dropout as it was first written "
            "scales afterwards; here what runs after training stays untouched",
            lambda x, keep, p, training: x * keep if training else x * (1 - p),
        ),
        Mistake(
            "scaled_in_both",
            "numbers are made larger after training too: there nothing is missing, so "
            "there is nothing to make up for",
            lambda x, keep, p, training: (x * keep if training else x) / (1 - p),
        ),
        Mistake(
            "made_up_for_twice",
            "what is dropped is made up for twice, while training and once more "
            "afterwards; once is enough",
            lambda x, keep, p, training: (
                x * keep / (1 - p) if training else x * (1 - p)
            ),
        ),
        Mistake(
            "cases_exchanged",
            "numbers are dropped after training and not while training: the two cases "
            "have changed places",
            lambda x, keep, p, training: x.clone() if training else x * keep / (1 - p),
        ),
        Mistake(
            "counted_coins",
            "what stays is divided by the share that happened to stay; the factor is "
            "fixed by p, so that it does not change with the coins",
            lambda x, keep, p, training: (
                x * keep / keep.float().mean() if training else x
            ),
        ),
        Mistake(
            "never_on",
            "nothing is ever dropped: while training some numbers become zero",
            lambda x, keep, p, training: x.clone(),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def zeroed(x, keep, factor):
    return torch.where(keep, x * factor, torch.zeros_like(x))


RIGHT = [lambda x, k, p, on: zeroed(x, k, 1 / (1 - p)) if on else x + 0]
WRONG = [
    (
        "minus_infinity",
        lambda x, k, p, on: torch.where(k, x / (1 - p), -torch.inf) if on else x * 1,
    ),
    (
        "taken_out",
        lambda x, k, p, on: torch.masked_select(x, k) / (1 - p) if on else x * 1,
    ),
    ("not_scaled", lambda x, k, p, on: zeroed(x, k, 1) if on else x * 1),
    ("scaled_by_p", lambda x, k, p, on: zeroed(x, k, 1 / p) if on else x * 1),
    ("made_smaller", lambda x, k, p, on: zeroed(x, k, 1 - p) if on else x * 1),
    (
        "mask_inverted",
        lambda x, k, p, on: x.masked_fill(k, 0) / (1 - p) if on else x * 1,
    ),
    ("always_on", lambda x, k, p, on: zeroed(x, k, 1 / (1 - p))),
    ("scaled_afterwards", lambda x, k, p, on: zeroed(x, k, 1) if on else x - p * x),
    (
        "scaled_in_both",
        lambda x, k, p, on: zeroed(x, k if on else k | True, 1 / (1 - p)),
    ),
    (
        "made_up_for_twice",
        lambda x, k, p, on: zeroed(x, k, 1 / (1 - p)) if on else x - p * x,
    ),
    ("cases_exchanged", lambda x, k, p, on: x * 1 if on else zeroed(x, k, 1 / (1 - p))),
    (
        "counted_coins",
        lambda x, k, p, on: zeroed(x, k, k.numel() / k.sum()) if on else x * 1,
    ),
]
