"""`labels_to_reach`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def found(
    counts: Tensor, accuracies: Tensor, goal: float, log: bool = True, mean: bool = True
) -> float:
    curve = (accuracies.mean(dim=0) if mean else accuracies.amax(dim=0)).tolist()
    places = [math.log(c) if log else float(c) for c in counts.tolist()]
    for i in range(1, len(curve)):
        if curve[i - 1] < goal <= curve[i]:
            share = (goal - curve[i - 1]) / (curve[i] - curve[i - 1])
            place = places[i - 1] + share * (places[i] - places[i - 1])
            return math.exp(place) if log else place
    return math.inf


def next_point(counts: Tensor, accuracies: Tensor, goal: float) -> float:
    curve = accuracies.mean(dim=0)
    return float(counts[int((curve >= goal).nonzero()[0, 0])])


def last_crossing(counts: Tensor, accuracies: Tensor, goal: float) -> float:
    n = len(counts)
    cut = max(i for i in range(n) if accuracies.mean(dim=0)[i] < goal)
    return found(counts[cut:], accuracies[:, cut:], goal)


def labels_to_reach(counts: Tensor, accuracies: Tensor, goal: float) -> float:
    return found(counts, accuracies, goal)


def draw(rng: np.random.Generator) -> Args:
    counts = np.array([5, 20, 100, 500, 2000])
    middle = np.array([0.52, 0.6, 0.82, 0.7, 0.93]) + rng.uniform(-0.02, 0.02, 5)
    accuracies = middle + rng.uniform(-0.06, 0.06, (4, 5))
    return counts, accuracies.astype(np.float32), float(rng.uniform(0.73, 0.75))


QUESTION = Question(
    id="18.4",
    title="Read a curve by label count",
    answer="labels_to_reach",
    arguments=("counts", "accuracies", "goal"),
    outputs=(Output("labels"),),
    reference=labels_to_reach,
    difficulty="medium",
    minutes=12,
    tolerance=0.05,
    next_step="draw the mean over a logarithmic axis, and the goal as a line.",
    parts=(Part("the number", 3, lambda rng: [draw(rng) for _ in range(3)]),),
    mistakes=(
        Mistake(
            "linear_axis",
            "the number is read on a linear axis: from 20 to 100 labels the middle is "
            "45, not 60; go along log n",
            lambda c, a, g: found(c, a, g, log=False),
        ),
        Mistake(
            "best_seed",
            "the curve is that of the best seed: take the mean over seeds",
            lambda c, a, g: found(c, a, g, mean=False),
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


RIGHT = [by_numpy]
WRONG = [
    ("linear_axis", lambda c, a, g: by_numpy(c, a, g, same, same)),
    ("best_seed", lambda c, a, g: by_numpy(c, a, g, seeds=np.max)),
    ("next_measured_point", lambda c, a, g: float(c[np.argmax(a.mean(0) >= g)])),
    ("the_last_crossing", last_crossing),
]
