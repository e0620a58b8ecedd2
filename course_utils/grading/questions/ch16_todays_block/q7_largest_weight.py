"""`largest_weight`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.grading.questions.draw import first, second
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def largest_weight(d_head: int, n_keys: int, cap: float) -> tuple[float, float]:
    return share(math.sqrt(d_head), n_keys), share(cap, n_keys)


def share(bound: float, n_keys: int, others: float | None = None) -> float:
    """One key's weight with its score at the bound and all others at `others`."""
    others = -bound if others is None else others
    return 1 / (1 + (n_keys - 1) * math.exp(others - bound))


def normed_is(name: str, hint: str, formula: Callable[[int, int], float]) -> Mistake:
    def wrong(d_head: int, n_keys: int, cap: float) -> tuple[float, float]:
        return formula(d_head, n_keys), share(cap, n_keys)

    def sign(args: Args, value: Any) -> bool:
        return abs(float(value[0]) - formula(args[0], args[1])) < 1e-5

    return Mistake(name, hint, wrong, sign)


def draw_bounds(rng: np.random.Generator) -> list[Args]:
    return [
        (int(d), int(rng.integers(20, 200)), float(rng.integers(15, 35)) / 10)
        for d in rng.permutation([2, 3, 5, 6, 7])[:3]
    ]


QUESTION = Question(
    id="16.7",
    title="How sure can attention be?",
    answer="largest_weight",
    arguments=("d_head", "n_keys", "cap"),
    outputs=(Output("normed"), Output("capped")),
    reference=largest_weight,
    difficulty="hard",
    minutes=15,
    next_step="what is the largest score that a query and a key can have, and where "
    "would the other keys' scores have to be?",
    tolerance=1e-5,
    parts=(
        Part("QK-norm", 2, draw_bounds, view=first),
        Part("soft cap", 1, draw_bounds, view=second),
    ),
    mistakes=(
        Mistake(
            "cap_on_normed_scores",
            "the soft cap is given the largest score that QK-norm leaves: without "
            "QK-norm scores have no bound of their own, and come near the cap itself",
            lambda d, n, cap: (
                share(math.sqrt(d), n),
                share(cap * math.tanh(math.sqrt(d) / cap), n),
            ),
        ),
        Mistake(
            "others_at_zero",
            "all other keys have the score 0: a score can be negative, and then its "
            "key gets less still",
            lambda d, n, cap: (share(math.sqrt(d), n, 0.0), share(cap, n, 0.0)),
            lambda args, value: (
                abs(float(value[0]) - share(math.sqrt(args[0]), args[1], 0.0)) < 1e-5
            ),
        ),
        normed_is(
            "unit_length",
            "queries and keys are taken to have length 1: their root mean *square* is "
            "1, so the squares add up to more",
            lambda d, n: share(1 / math.sqrt(d), n),
        ),
        normed_is(
            "score_of_one",
            "the largest score is taken to be 1, as of a cosine: QK-norm brings the "
            "root mean square to 1, not the length, and the scale doesn't undo it all",
            lambda d, n: share(1.0, n),
        ),
        normed_is(
            "evenly_spread",
            "the other keys are spread evenly, as far from each other as can be: they "
            "may all point the same way, against the query",
            lambda d, n: share(math.sqrt(d), n, -math.sqrt(d) / (n - 1)),
        ),
        normed_is(
            "not_scaled",
            "the scores are not scaled: attention still divides the dot product",
            lambda d, n: share(float(d), n),
        ),
        normed_is(
            "one_key_too_many",
            "the key itself is counted among the others: they are one fewer",
            lambda d, n: share(math.sqrt(d), n + 1),
        ),
        Mistake(
            "no_limit",
            "a weight of 1 would need a score without limit: both remedies set one",
            lambda d, n, cap: (1.0, 1.0),
            lambda args, value: abs(float(value[0]) - 1) < 1e-9,
        ),
        Mistake(
            "equal_shares",
            "that is the share of each key when all scores are equal: the smallest "
            "that the *largest* weight can be",
            lambda d, n, cap: (1 / n, 1 / n),
            lambda args, value: abs(float(value[0]) - 1 / args[1]) < 1e-9,
        ),
        Mistake(
            "cap_scaled",
            "the cap is divided by the root of d_head: it bends scores that are "
            "scaled already",
            lambda d, n, cap: (share(math.sqrt(d), n), share(cap / math.sqrt(d), n)),
        ),
        Mistake(
            "cap_bent_again",
            "the cap goes through tanh once more: tanh itself comes as near 1 as you "
            "like, so the bound is the cap",
            lambda d, n, cap: (share(math.sqrt(d), n), share(cap * math.tanh(1), n)),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_softmax(d_head, n_keys, cap):
    found = []
    for bound in (d_head / d_head**0.5, cap):
        scores = np.array([bound] + [-bound] * (n_keys - 1))
        found.append(float((np.exp(scores) / np.exp(scores).sum())[0]))
    return tuple(found)


def with_zeros(d_head, n_keys, cap):
    return tuple(np.exp(s) / (np.exp(s) + n_keys - 1) for s in (d_head**0.5, cap))


RIGHT = [by_softmax, lambda *a: list(by_softmax(*a))]
WRONG = [
    (
        "cap_on_normed_scores",
        lambda d, n, c: (
            by_softmax(d, n, c)[0],
            by_softmax((c * math.tanh(d**0.5 / c)) ** 2, n, c)[0],
        ),
    ),
    ("others_at_zero", with_zeros),
    ("not_scaled", lambda d, n, c: by_softmax(d * d, n, c)),
    ("score_of_one", lambda d, n, c: by_softmax(1, n, c)),
    ("no_limit", lambda d, n, c: (1, 1)),
]
PARTIAL = [
    (1, lambda d, n, c: (0.123, by_softmax(d, n, c)[1])),
    (2, lambda d, n, c: (by_softmax(d, n, c)[0], 0.123)),
]
