"""`equal_shares`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

Factors = tuple[Tensor, Tensor]


def equal_shares(n_layers: int) -> Factors:
    layer = torch.arange(1, n_layers + 1, dtype=torch.float64)
    return (layer / (layer + 1)).sqrt(), (1 / (layer + 1)).sqrt()


def follow(value: Any) -> tuple[np.ndarray, np.ndarray]:
    """The stream's variance after each sum, and what each part has of it in the end."""
    keep, add = (np.asarray(x, float) ** 2 for x in value)
    variance, shares = [1.0], np.ones(1)
    for old, new in zip(keep, add):
        variance.append(old * variance[-1] + new)
        shares = np.append(old * shares, new)
    return np.array(variance[1:]), shares


def positive(value: Any) -> bool:
    return all((np.asarray(x) > 0).all() for x in value)


def keeps_variance(args: Args, value: Any) -> bool:
    return positive(value) and bool(np.allclose(follow(value)[0], 1, atol=1e-3))


def shares_alike(args: Args, value: Any) -> bool:
    shares = follow(value)[1]
    return positive(value) and bool(np.ptp(shares) < 2e-3 * shares.mean())


def of_layers(keep: Callable[[Any, int], Any], add: Callable[[Any, int], Any]) -> Any:
    """Wrong factors as functions of the layer's number, from 1, and of their count."""

    def wrong(n_layers: int) -> Factors:
        layer = torch.arange(1, n_layers + 1, dtype=torch.float64)
        ones = torch.ones(n_layers, dtype=torch.float64)
        return keep(layer, n_layers) * ones, add(layer, n_layers) * ones

    return wrong


def draw_depths(rng: np.random.Generator) -> list[Args]:
    return [(int(n),) for n in rng.permutation(np.arange(3, 13))[:3]]


QUESTION = Question(
    id="11.9",
    title="A stream in which every layer counts alike",
    answer="equal_shares",
    arguments=("n_layers",),
    outputs=(Output("keep", "layer"), Output("add", "layer")),
    reference=equal_shares,
    difficulty="hard",
    minutes=15,
    next_step="one layer first, then two: what has the second to do to the shares that "
    "are there already? Work with squares, and take roots at the end.",
    parts=(
        Part("the variance stays 1", 1, draw_depths, accepts=keeps_variance),
        Part("equal shares", 2, draw_depths, accepts=shares_alike),
        Part(
            "both at once",
            1,
            draw_depths,
            only_failure_hint="each of the two holds somewhere, but not both for all "
            "layers",
        ),
    ),
    mistakes=(
        Mistake(
            "plain_sum",
            "all shares are equal, but the stream grows with every layer: this is the "
            "pre-norm stream as it is",
            of_layers(lambda k, n: 1.0, lambda k, n: 1.0),
        ),
        Mistake(
            "scaled_at_the_start",
            "each layer adds as little as it may, but the start is kept whole: its "
            "share is n_layers times that of a layer, and the variance grows to 2",
            of_layers(lambda k, n: 1.0, lambda k, n: n**-0.5),
        ),
        Mistake(
            "half_and_half",
            "the variance stays 1, but every layer halves what is there already: the "
            "last one has half of everything, the first hardly anything",
            of_layers(lambda k, n: 0.5**0.5, lambda k, n: 0.5**0.5),
        ),
        Mistake(
            "same_for_all",
            "all layers have the same two factors: then each later layer shrinks the "
            "earlier ones, and the last has more than the first",
            of_layers(
                lambda k, n: (n / (n + 1)) ** 0.5, lambda k, n: (1 / (n + 1)) ** 0.5
            ),
        ),
        Mistake(
            "running_mean",
            "these are the factors of a running *mean*: a factor c turns a variance "
            "into c² times as much, so these lose variance; the squares must share it",
            of_layers(lambda k, n: k / (k + 1), lambda k, n: 1 / (k + 1)),
        ),
        Mistake(
            "start_forgotten",
            "the start has no share at all: count it among the parts, so that the "
            "first layer takes a half",
            of_layers(lambda k, n: ((k - 1) / k) ** 0.5, lambda k, n: k**-0.5),
        ),
        Mistake(
            "turned_round",
            "the factors are those of the last layer first: the more is there already, "
            "the less a new layer adds",
            lambda n: tuple(x.flip(0) for x in equal_shares(n)),
        ),
        Mistake(
            "exchanged",
            "keep and add have changed places: the first is for the stream",
            lambda n: equal_shares(n)[::-1],
        ),
        Mistake(
            "one_too_many",
            "the shares are those of one part too many: after the first layer there "
            "are two, the start and that layer",
            of_layers(
                lambda k, n: ((k + 1) / (k + 2)) ** 0.5, lambda k, n: (k + 2) ** -0.5
            ),
        ),
        Mistake(
            "stream_grows",
            "add is right for equal shares of 1, but the stream is not scaled down to "
            "make room for it",
            of_layers(lambda k, n: 1.0, lambda k, n: (k + 1) ** -0.5),
        ),
        Mistake(
            "not_positive",
            "all factors are to be above 0: a layer that adds nothing has no share, "
            "and a stream that is not kept loses the start",
            lambda n: (torch.ones(n), torch.zeros(n)),
            lambda args, value: not positive(value),
        ),
        Mistake(
            "variance_moves",
            "the variance does not stay 1: of two independent numbers with the factors "
            "keep and add it is keep² + add²",
            of_layers(lambda k, n: k / (k + 1), lambda k, n: 0.9),
            lambda args, value: not keeps_variance(args, value),
        ),
        Mistake(
            "unequal",
            "the variance stays 1, but the shares differ at the end: every later layer "
            "shrinks an earlier one by keep²",
            of_layers(
                lambda k, n: (1 - 1 / (k + 3)) ** 0.5, lambda k, n: (k + 3) ** -0.5
            ),
            lambda args, value: (
                keeps_variance(args, value) and not shares_alike(args, value)
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def step_by_step(n_layers):
    """Make room for one more part each time."""
    keep, add, parts = np.zeros(0), np.zeros(0), 1
    for _ in range(n_layers):
        keep = np.append(keep, (parts / (parts + 1)) ** 0.5)
        parts += 1
        add = np.append(add, parts**-0.5)
    return keep, add


def backwards(n_layers):
    """From the last layer, which is not shrunk any more, to the first."""
    squares, left = np.zeros(n_layers), 1.0
    for i in reversed(range(n_layers)):
        squares[i] = 1 / (n_layers + 1) / left
        left *= 1 - squares[i]
    return np.sqrt(1 - squares), np.sqrt(squares)


RIGHT = [step_by_step, lambda n: tuple(map(torch.tensor, backwards(n)))]
WRONG = [
    ("plain_sum", lambda n: (torch.ones(n), torch.ones(n))),
    ("half_and_half", lambda n: (torch.full((n,), 0.5).sqrt(),) * 2),
    ("exchanged", lambda n: step_by_step(n)[::-1]),
    ("turned_round", lambda n: [x[::-1].copy() for x in step_by_step(n)]),
    ("running_mean", lambda n: [x**2 for x in step_by_step(n)]),
]
PARTIAL = [
    (1, lambda n: (torch.full((n,), 0.8), torch.full((n,), 0.6))),
    (2, lambda n: (torch.ones(n), torch.ones(n))),
]
