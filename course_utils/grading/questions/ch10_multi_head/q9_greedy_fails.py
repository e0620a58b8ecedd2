"""`greedy_fails`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

KEPT = 2


def error(terms: np.ndarray, heads: Iterable[int]) -> float:
    """How far the sum of some heads is from the whole, compared with the whole."""
    whole = terms.sum(axis=0)
    left = terms[list(heads)].sum(axis=0)
    return float(np.linalg.norm(left - whole)) / max(float(np.linalg.norm(whole)), 1e-9)


def greedy(terms: np.ndarray) -> list[int]:
    left: list[int] = list(range(len(terms)))
    while len(left) > KEPT:
        without = [[i for i in left if i != head] for head in left]
        left = min(without, key=lambda rest: error(terms, rest))
    return left


def best(terms: np.ndarray) -> list[int]:
    pairs = combinations(range(len(terms)), KEPT)
    return list(min(pairs, key=lambda pair: error(terms, pair)))


def errors(value: Any) -> tuple[float, float]:
    """The error of the greedy pair, and of the best one."""
    terms = np.asarray(value, float)
    return error(terms, greedy(terms)), error(terms, best(terms))


def has_whole(value: Any) -> bool:
    terms = np.asarray(value, float)
    return bool(np.linalg.norm(terms.sum(axis=0)) > 0.01)


def differ(args: Args, value: Any) -> bool:
    found, possible = errors(value)
    return has_whole(value) and len(value) <= 12 and found > possible + 0.1


def badly(args: Args, value: Any) -> bool:
    found, possible = errors(value)
    return differ(args, value) and found >= 1 and possible < 0.1


def greedy_fails() -> Tensor:
    return torch.tensor([[9.0], [-9.0], [1.0], [1.0]])


def failing(name: str, hint: str, terms: Tensor, sign: Any) -> Mistake:
    return Mistake(name, hint, lambda: terms, lambda args, value: sign(value))


QUESTION = Question(
    id="10.9",
    title="Heads for which greed fails",
    answer="greedy_fails",
    arguments=(),
    outputs=(Output("terms", "head d_model", free=True),),
    reference=greedy_fails,
    difficulty="hard",
    minutes=15,
    next_step="which two heads could be dropped together without any loss, and why "
    "would the greedy search never drop the first of them?",
    parts=(
        Part("greed is not best", 2, lambda rng: [()], accepts=differ),
        Part("and as bad as nothing", 1, lambda rng: [()], accepts=badly),
    ),
    mistakes=(
        failing(
            "too_few_heads",
            "with three heads a single one is taken away, and the search tries them "
            "all: it can't be wrong; with two nothing is taken away. Use more",
            torch.tensor([[5.0], [-5.0], [1.0]]),
            lambda value: len(value) <= 3,
        ),
        failing(
            "too_many_heads",
            "so many heads are not needed: at most twelve",
            torch.ones(13, 2),
            lambda value: len(value) > 12,
        ),
        failing(
            "whole_is_zero",
            "all terms together give nothing, and an error can't be compared with "
            "nothing: let the sum be larger than 0.01",
            torch.tensor([[1.0], [-1.0], [2.0], [-2.0]]),
            lambda value: not has_whole(value),
        ),
        failing(
            "all_alike",
            "all heads add the same, so every pair is as good as any other",
            torch.ones(4, 2),
            lambda value: np.ptp(value, axis=0).max() < 1e-9,
        ),
        failing(
            "all_one_way",
            "no two heads oppose each other, and here the search keeps the best pair: "
            "how could a head that is missed a lot be superfluous all the same?",
            torch.tensor([[4.0, 0], [3, 0], [2, 0], [1, 0]]),
            lambda value: (value @ value.T >= -1e-9).all() and not differ((), value),
        ),
        failing(
            "cancel_but_small",
            "some heads cancel, but the search finds that out: the first of them is "
            "missed so little that it goes at once; when would it stay?",
            torch.tensor([[0.5], [-0.5], [3.0], [4.0]]),
            lambda value: (value @ value.T < 0).any() and errors(value)[0] < 1e-6,
        ),
        failing(
            "best_as_bad",
            "the search ends at the best pair, or close to it: let two heads make up "
            "the whole sum, and see to it that the search drops one of *them* first",
            torch.tensor([[9.0, 0], [-9, 0], [5, 5], [5, -5], [0, 5]]),
            lambda value: not differ((), value),
        ),
        failing(
            "not_bad_enough",
            "greed is not best here; for the last point it must be as bad as no heads "
            "at all (an error of 1 or more), and the best pair nearly perfect",
            torch.tensor([[2.0, 0], [-1.2, 0.3], [1, 1], [1, -1]]),
            lambda value: differ((), value) and not badly((), value),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [
    lambda: torch.tensor([[0.0, 20, 0], [3, 1, 0], [0, -20, 0], [3, -1, 0]]),
    lambda: np.array([[1.0, 0], [50, 50], [1, 0], [-50, -50]]),
    lambda: [[6.0], [-6.0], [1.0], [1.5]],
]
WRONG = [
    ("too_few_heads", lambda: torch.tensor([[7.0, 1], [-7, 1], [1, 0]])),
    ("all_alike", lambda: torch.full((6, 3), 2.0)),
    ("all_one_way", lambda: torch.eye(5)),
    ("whole_is_zero", lambda: torch.tensor([[1.0, 2], [-1, -2], [3, 1], [-3, -1]])),
    ("cancel_but_small", lambda: torch.tensor([[0.1], [-0.1], [1.0], [2.0]])),
]
