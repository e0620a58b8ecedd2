"""`labels_to_reach`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def mean_of(accuracies: Tensor) -> Tensor:
    return accuracies.mean(dim=0)


def along(share: float) -> float:
    return share


def found(
    counts: Tensor,
    accuracies: Tensor,
    goal: float,
    *,
    curve_of: Callable[[Tensor], Tensor] = mean_of,
    axis: Callable[[float], float] = math.log,
    back: Callable[[float], float] = math.exp,
    way: Callable[[float], float] = along,
    later: int = 0,
) -> float:
    """Read the curve; the keywords are what may be done otherwise."""
    curve = curve_of(accuracies).tolist()
    if curve[0] >= goal:
        return math.inf
    places = [axis(c) for c in counts.tolist()]
    for i in range(1, len(curve)):
        if curve[i - 1] < goal <= curve[i]:
            i = min(i + later, len(curve) - 1)
            share = (goal - curve[i - 1]) / (curve[i] - curve[i - 1])
            return back(places[i - 1] + way(share) * (places[i] - places[i - 1]))
    return math.inf


def found_with(**change: Any) -> Any:
    return lambda counts, accuracies, goal: found(counts, accuracies, goal, **change)


def next_point(counts: Tensor, accuracies: Tensor, goal: float) -> float:
    curve = accuracies.mean(dim=0)
    return float(counts[int((curve >= goal).nonzero()[0, 0])])


def last_below(counts: Tensor, accuracies: Tensor, goal: float) -> float:
    curve = accuracies.mean(dim=0)
    return float(counts[int((curve >= goal).nonzero()[0, 0]) - 1])


def seed_by_seed(counts: Tensor, accuracies: Tensor, goal: float) -> float:
    each = [found(counts, row[None], goal) for row in accuracies]
    return sum(each) / len(each)


def searched(counts: Tensor, accuracies: Tensor, goal: float) -> float:
    places = np.log(counts.numpy())
    return float(np.exp(np.interp(goal, accuracies.mean(dim=0).numpy(), places)))


def last_crossing(counts: Tensor, accuracies: Tensor, goal: float) -> float:
    n = len(counts)
    cut = max(i for i in range(n) if accuracies.mean(dim=0)[i] < goal)
    return found(counts[cut:], accuracies[:, cut:], goal)


def from_end_to_end(counts: Tensor, accuracies: Tensor, goal: float) -> float:
    ends = torch.tensor([0, -1])
    return found(counts[ends], accuracies[:, ends], goal)


def tensors(args: Args) -> tuple[Tensor, Tensor, float]:
    return torch.as_tensor(args[0]), torch.as_tensor(args[1]), args[2]


def labels_to_reach(counts: Tensor, accuracies: Tensor, goal: float) -> float:
    return found(counts, accuracies, goal)


def of_seeds(
    holds: Callable[[list[float], float], bool],
) -> Callable[[Args, Any], bool]:
    """A sign from the number that each seed gives; a probe may begin above the goal."""

    def sign(args: Args, value: Any) -> bool:
        counts, accuracies, goal = tensors(args)
        each = [found(counts, row[None], goal) for row in accuracies]
        return math.inf in each or holds(each, float(value))

    return sign


def draw(rng: np.random.Generator, below: int = 2) -> Args:
    """A curve that reaches the goal after some points, falls, and reaches it again."""
    middle = [*[0.5, 0.54, 0.58, 0.6, 0.62][:below], 0.84, 0.68, 0.69, 0.93]
    n = len(middle)
    counts = 50 * 4 ** np.arange(n)
    accuracies = middle + rng.uniform(-0.06, 0.06, (4, n))
    accuracies[0, below - 1] -= 0.1  # one seed is slow, so that its own way is long
    return counts, accuracies.astype(np.float32), float(rng.uniform(0.74, 0.76))


QUESTION = Question(
    id="18.4",
    title="Read a curve by label count",
    answer="labels_to_reach",
    arguments=("counts", "accuracies", "goal"),
    outputs=(Output("labels"),),
    reference=labels_to_reach,
    difficulty="medium",
    minutes=12,
    tolerance=0.005,  # a whole number of labels will do
    next_step="draw the mean over a logarithmic axis, and the goal as a line.",
    parts=(
        Part("the number", 3, lambda rng: [draw(rng, below) for below in (2, 1, 5)]),
    ),
    mistakes=(
        Mistake(
            "from_end_to_end",
            "the line goes from the first point to the last: interpolate between the "
            "two points around the goal",
            from_end_to_end,
        ),
        Mistake(
            "linear_axis",
            "the number is read on a linear axis: from 20 to 100 labels the middle is "
            "45, not 60; go along log n",
            found_with(axis=float, back=float),
        ),
        Mistake(
            "best_seed",
            "the curve is that of the best seed: take the mean over seeds",
            found_with(curve_of=lambda a: a.amax(dim=0)),
        ),
        Mistake(
            "one_seed",
            "the curve is that of one seed: take the mean over seeds",
            found_with(curve_of=lambda a: a[0]),
            of_seeds(lambda each, value: min(abs(x / value - 1) for x in each) < 0.005),
        ),
        Mistake(
            "median_seed",
            "the curve is the median over seeds: take the mean",
            found_with(curve_of=lambda a: a.median(dim=0).values),
        ),
        Mistake(
            "searched",
            "the goal is looked up as in a sorted list, and the curve is not sorted: "
            "where it falls again, another crossing may be found than the first",
            searched,
        ),
        Mistake(
            "seed_by_seed",
            "every seed's curve is read by itself, and the numbers are averaged: take "
            "the mean curve first, and read that",
            seed_by_seed,
            of_seeds(
                lambda each, value: abs(sum(each) / len(each) / value - 1) < 0.005
            ),
        ),
        Mistake(
            "logarithm_returned",
            "this is the logarithm of the number of labels: take it back",
            found_with(back=float),
            lambda args, value: any(
                math.isclose(float(value), log(found(*tensors(args))), rel_tol=1e-3)
                for log in (math.log, math.log2, math.log10)
            ),
        ),
        Mistake(
            "two_bases",
            "the logarithm and the way back have different bases: `log` belongs to "
            "`exp`, `log2` to 2 ** x, `log10` to 10 ** x",
            found_with(axis=math.log2),
            lambda args, value: any(
                math.isclose(
                    float(value), base ** log(found(*tensors(args))), rel_tol=0.01
                )
                for log in (math.log, math.log2, math.log10)
                for base in (2, math.e, 10)
            ),
        ),
        Mistake(
            "from_the_wrong_end",
            "the way between the two points is counted from the wrong end: at the goal "
            "of the lower point you should be at the lower number",
            found_with(way=lambda share: 1 - share),
        ),
        Mistake(
            "halfway",
            "this is the middle between two measured points, wherever the goal lies "
            "between them: take the share of the way that the goal asks for",
            found_with(way=lambda share: 0.5),
        ),
        Mistake(
            "one_interval_late",
            "the line is drawn through the point that reaches the goal and the one "
            "after it: it belongs between that point and the one before",
            found_with(later=1),
        ),
        Mistake(
            "last_below",
            "this is the last number of labels below the goal: interpolate between it "
            "and the next",
            last_below,
        ),
        Mistake(
            "next_measured_point",
            "this is the next number of labels that was measured: interpolate between "
            "it and the one before",
            next_point,
        ),
        Mistake(
            "the_last_crossing",
            "the curve falls again later, and this is its last crossing: the question "
            "is where it first reaches the goal",
            last_crossing,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_numpy(counts, accuracies, goal, axis=np.log, back=np.exp, seeds=np.mean):
    curve, where = seeds(accuracies.numpy(), axis=0), axis(counts.numpy())
    crossed = np.flatnonzero((curve[:-1] < goal) & (curve[1:] >= goal))
    if not len(crossed):
        return math.inf
    i = int(crossed[0]) + 1
    share = (goal - curve[i - 1]) / (curve[i] - curve[i - 1])
    return float(back(where[i - 1] + share * (where[i] - where[i - 1])))


def same(x):
    return np.asarray(x, dtype=float)


def median_seed(c, a, g):
    def middle(x, axis):  # of an even number, the lower one
        return np.sort(x, axis)[(len(x) - 1) // 2]

    return by_numpy(c, a, g, seeds=middle)


def seeds_apart(c, a, g):
    return np.mean([by_numpy(c, row[None], g) for row in a])


RIGHT = [by_numpy, lambda c, a, g: round(by_numpy(c, a, g))]
WRONG = [
    ("from_end_to_end", lambda c, a, g: by_numpy(c[[0, -1]], a[:, [0, -1]], g)),
    ("linear_axis", lambda c, a, g: by_numpy(c, a, g, same, same)),
    ("best_seed", lambda c, a, g: by_numpy(c, a, g, seeds=np.max)),
    ("one_seed", lambda c, a, g: by_numpy(c, a[:1], g)),
    ("median_seed", lambda c, a, g: torch.tensor(median_seed(c, a, g))),
    ("seed_by_seed", seeds_apart),
    ("logarithm_returned", lambda c, a, g: by_numpy(c, a, g, back=same)),
    ("logarithm_returned", lambda c, a, g: by_numpy(c, a, g, np.log10, same)),
    ("two_bases", lambda c, a, g: by_numpy(c, a, g, np.log2)),
    ("two_bases", lambda c, a, g: by_numpy(c, a, g, np.log10)),
    ("last_below", lambda c, a, g: c[np.argmax(a.mean(0) >= g) - 1]),
    ("next_measured_point", lambda c, a, g: float(c[np.argmax(a.mean(0) >= g)])),
    ("the_last_crossing", last_crossing),
]
