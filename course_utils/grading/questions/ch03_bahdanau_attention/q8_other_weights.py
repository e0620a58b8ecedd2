"""`other_weights`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

Answer = tuple[Tensor, bool]


def free_directions(states: Tensor) -> Tensor:
    """The changes of the weights that move neither the context nor the sum, as rows."""
    table = torch.cat([states.T, torch.ones(1, len(states))]).double()
    _, s, vh = torch.linalg.svd(table)
    rank = int((s > 1e-5 * s[0]).sum())
    return vh[rank:]


def moved(weights: Tensor, direction: Tensor) -> Tensor:
    """Go along a direction until the first weight is zero."""
    falls = direction < -1e-9
    step = (weights.double()[falls] / -direction[falls]).min()
    return (weights.double() + step * direction).clamp(min=0).float()


def other_weights(weights: Tensor, states: Tensor) -> Answer:
    directions = free_directions(states)
    if not len(directions):
        return weights.clone(), False
    return moved(weights, directions[0]), True


def draw_attention(
    rng: np.random.Generator, source: int, d: int, rank: int = 0
) -> Args:
    """Positive weights; `rank` makes the annotations depend on each other."""
    powers = np.exp(normal(rng, source))
    states = normal(rng, source, d)
    if rank:
        states = normal(rng, source, rank) @ normal(rng, rank, d)
    return (powers / powers.sum()).astype(np.float32), states.astype(np.float32)


def draw_many(rng: np.random.Generator) -> list[Args]:
    return [draw_attention(rng, 7, 3), draw_attention(rng, 9, 4)]


def draw_few(rng: np.random.Generator) -> list[Args]:
    return [
        draw_attention(rng, 4, 6),
        draw_attention(rng, 4, 3),
        draw_attention(rng, 5, 8),
    ]


def draw_dependent(rng: np.random.Generator) -> list[Args]:
    """Wide annotations that all lie in a plane, or two that are equal."""
    weights, states = draw_attention(rng, 5, 6)
    states[3] = states[1]
    return [draw_attention(rng, 6, 8, rank=2), (weights, states)]


# ------------------------------------------------------------------------- the judge


def gap(args: Args, value: Any) -> float:
    return float(np.abs(np.asarray(value[0], np.float64) - args[0]).max())


def is_distribution(value: Any) -> bool:
    row = np.asarray(value[0], np.float64)
    return bool((row > -1e-5).all() and abs(row.sum() - 1) < 1e-4)


def same_context(args: Args, value: Any) -> bool:
    states = np.asarray(args[1], np.float64)
    moved_by = (np.asarray(value[0], np.float64) - args[0]) @ states
    return bool(np.abs(moved_by).max() < 1e-4 * max(1.0, np.abs(states).max()))


def exists(args: Args) -> bool:
    states = np.asarray(args[1], np.float64)
    table = np.hstack([states, np.ones((len(states), 1))])
    return bool(np.linalg.matrix_rank(table, tol=1e-4) < len(states))


def is_right(args: Args, value: Any) -> bool:
    if not exists(args):
        return value[1] is False
    fits = is_distribution(value) and same_context(args, value)
    return value[1] is True and fits and gap(args, value) > 1e-3


def where_there_is_one(test: Any) -> Any:
    """A sign that looks at the cases in which other weights exist."""

    def sign(args: Args, value: Any) -> bool:
        proper = abs(float(np.sum(args[0])) - 1) < 1e-3  # a probe changes the weights
        return test(args, value) if exists(args) and proper else True

    return sign


def says(yes: bool) -> Any:
    return lambda args, value: value[1] is yes


def softly(weights: Tensor) -> Tensor:
    return torch.softmax(torch.log(weights) / 2, dim=-1)


QUESTION = Question(
    id="03.8",
    title="Other weights, the same context",
    answer="other_weights",
    arguments=("weights", "states"),
    outputs=(Output("other", "source"), Output("exists")),
    reference=other_weights,
    difficulty="hard",
    minutes=25,
    next_step="write down which changes of the weights move neither context nor sum.",
    parts=(
        Part("many words, few numbers", 2, draw_many, accepts=is_right),
        Part(
            "few words, many numbers",
            1,
            draw_few,
            accepts=is_right,
            only_failure_hint="with few words and many numbers in an annotation there "
            "is one row of weights and no other: how do you notice?",
        ),
        Part(
            "annotations that depend on each other",
            1,
            draw_dependent,
            accepts=is_right,
            only_failure_hint="comparing the number of words with the width is not "
            "enough: what if two annotations are equal, or all lie in one plane?",
        ),
    ),
    mistakes=(
        Mistake(
            "unchanged",
            "these are the given weights: asked for are others with the same context",
            lambda w, h: (w.clone(), True),
            where_there_is_one(lambda args, value: gap(args, value) < 1e-5),
        ),
        Mistake(
            "too_near",
            "these differ from the given weights by less than 0.001: go further along "
            "your direction",
            lambda w, h: (w + 1e-4 * (other_weights(w, h)[0] - w), many(h)),
            where_there_is_one(lambda args, value: gap(args, value) < 1e-3),
        ),
        Mistake(
            "direction_alone",
            "this is a direction in which the weights may change, not the weights: go "
            "a step along it from those given",
            lambda w, h: (
                free_directions(h)[0].float() if many(h) else w,
                many(h),
            ),
            where_there_is_one(
                lambda args, value: (
                    abs(np.sum(value[0])) < 1e-4
                    and np.abs(value[0] @ args[1]).max() < 1e-3
                )
            ),
        ),
        Mistake(
            "exchanged",
            "True and False are exchanged: True says that there are other weights",
            lambda w, h: (other_weights(w, h)[0], not many(h)),
            lambda args, value: value[1] is (not exists(args)),
        ),
        Mistake(
            "negative",
            "some weights are negative: attention gives none such; go less far along "
            "your direction, until the first weight is zero",
            lambda w, h: (
                (w + 9 * free_directions(h)[0]).float() if many(h) else w,
                many(h),
            ),
            where_there_is_one(
                lambda args, value: (
                    np.min(value[0]) < -1e-5 and same_context(args, value)
                )
            ),
        ),
        Mistake(
            "sum_forgotten",
            "the context is the same, but the weights do not sum to one: the sum is a "
            "condition like each number of the context",
            lambda w, h: (
                (w + 0.01 * null_of(h.T)).float() if many(h) else w,
                many(h),
            ),
            where_there_is_one(
                lambda args, value: (
                    same_context(args, value) and abs(np.sum(value[0]) - 1) > 1e-4
                )
            ),
        ),
        Mistake(
            "context_moved",
            "these weights sum to one, but the context is another one: not every "
            "change of the weights leaves it where it was",
            lambda w, h: (softly(w) if many(h) else w, many(h)),
            where_there_is_one(
                lambda args, value: (
                    is_distribution(value)
                    and gap(args, value) > 1e-4
                    and not same_context(args, value)
                )
            ),
        ),
        Mistake(
            "cut_afterwards",
            "these don't sum to one, and the context is another one: is your direction "
            "one that moves neither? (`clamp` or `abs` afterwards spoil both)",
            lambda w, h: (
                (w + free_directions(h)[0]).clamp(min=0).float() if many(h) else w,
                many(h),
            ),
            where_there_is_one(
                lambda args, value: (
                    np.min(value[0]) >= 0
                    and not is_distribution(value)
                    and not same_context(args, value)
                )
            ),
        ),
        Mistake(
            "always",
            "you say that there are always others: with as many independent "
            "annotations as words, the context fixes every weight",
            lambda w, h: (other_weights(w, h)[0], True),
            says(True),
        ),
        Mistake(
            "never",
            "you say that there are never others: a context has d numbers, and the "
            "sum is one more; how many weights are there to choose?",
            lambda w, h: (w.clone(), False),
            says(False),
        ),
        Mistake(
            "counts_only",
            "you decide by comparing the number of words with the width: equal "
            "annotations, or some in one plane, leave freedom at any width",
            lambda w, h: (other_weights(w, h)[0], len(w) > h.shape[1] + 1),
            lambda args, value: value[1] is (args[1].shape[0] > args[1].shape[1] + 1),
        ),
        Mistake(
            "sum_not_counted",
            "you decide by the annotations alone: that the weights sum to one is one "
            "more condition on them",
            lambda w, h: (
                other_weights(w, h)[0],
                len(w) > int(torch.linalg.matrix_rank(h, tol=1e-4)),
            ),
            lambda args, value: (
                value[1] is bool(len(args[0]) > np.linalg.matrix_rank(args[1], 1e-4))
            ),
        ),
    ),
)


def many(states: Tensor) -> bool:
    return bool(len(free_directions(states)))


def null_of(table: Tensor) -> Tensor:
    """A change that leaves the context alone, and not the sum."""
    _, s, vh = torch.linalg.svd(table.double())
    rest = vh[int((s > 1e-5 * s[0]).sum()) :]
    return rest[rest.sum(dim=1).abs().argmax()]


# ----------------------------------------------------------------------- specimens


def by_pairs(weights, states):
    """Half a step along the direction of a random change, projected; in NumPy."""
    table = np.vstack([states.double().numpy().T, np.ones(len(states))])
    change = np.arange(len(states)) ** 2.0 - 3 * np.arange(len(states)) + 0.3
    change = change - np.linalg.pinv(table, 1e-5) @ (table @ change)
    if np.abs(change).max() < 1e-4:
        return weights, False
    w = weights.double().numpy()
    step = np.min(w[change < 0] / -change[change < 0]) / 2
    return w + step * change, True


def by_rank(weights, states):
    table = torch.cat([states, torch.ones(len(states), 1)], dim=1).double()
    if torch.linalg.matrix_rank(table, tol=1e-4) == len(states):
        return weights.tolist(), torch.tensor(False)
    _, directions = torch.linalg.eigh(table @ table.T)
    direction = directions[:, 0]
    step = 0.5 * (weights / direction.abs()).min()
    return (weights + step * direction).tolist(), torch.tensor(True)


def folded(weights, states):
    """A step that is too long, and its negative weights turned round."""
    other, found = by_pairs(weights, states)
    return (weights + 5 * (torch.as_tensor(other) - weights)).abs(), found


RIGHT = [by_pairs, by_rank]
WRONG = [
    ("never", lambda w, h: (w, False)),
    ("context_moved", lambda w, h: (torch.full_like(w, 1 / len(w)), by_rank(w, h)[1])),
    ("context_moved", lambda w, h: (w.flip(0), by_rank(w, h)[1])),
    ("exchanged", lambda w, h: (by_pairs(w, h)[0], not by_pairs(w, h)[1])),
    (
        "direction_alone",
        lambda w, h: (torch.as_tensor(by_pairs(w, h)[0]) - w, by_pairs(w, h)[1]),
    ),
    ("cut_afterwards", lambda w, h: folded(w, h)),
    ("order", lambda w, h: by_pairs(w, h)[::-1]),
    ("counts_only", lambda w, h: (by_pairs(w, h)[0], h.shape[0] - 1 > h.shape[1])),
]
PARTIAL = [(1, lambda w, h: (w, False)), (3, lambda w, h: (by_pairs(w, h)[0], True))]
