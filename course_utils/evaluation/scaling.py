"""Scaling laws: fit how the loss falls with parameters and data, and use the fit.

Exponents are searched on a grid, and for given exponents the rest is a least-squares
fit without negative terms: no starting point, no step size, the same answer each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from course_utils.doors import check_arguments

Numbers = Sequence[float] | NDArray[np.float64]
EXPONENTS = np.arange(0.01, 1.5, 0.01)


class ScalingLaw(NamedTuple):
    """The loss $L = E + A / N^alpha + B / D^beta$ for N parameters and D tokens."""

    floor: float  # E
    a: float
    alpha: float
    b: float
    beta: float

    def __call__(self, n: float, d: float) -> float:
        """Return the loss that the law expects."""
        return self.floor + self.a * n**-self.alpha + self.b * d**-self.beta

    def best_size(self, operations: float) -> float:
        """Return the N that makes L least where 6 N D operations are given.

        With $D = C / (6 N)$ the derivative of L is 0 at
        $N = (alpha A / (beta B))^(1 / (alpha + beta)) (C / 6)^(beta / (alpha + beta))$.
        """
        both = self.alpha + self.beta
        ratio = (self.alpha * self.a / (self.beta * self.b)) ** (1 / both)
        return float(ratio * (operations / 6) ** (self.beta / both))


def least_squares(
    table: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Return the factors of the columns, none below 0, and the error that is left.

    The best such fit is the plain one of the columns that it uses: try them all.
    """
    n_columns, best, factors = table.shape[1], np.inf, np.zeros(table.shape[1])
    for n_used in range(n_columns, 0, -1):
        for used in map(list, combinations(range(n_columns), n_used)):
            found = np.linalg.lstsq(table[:, used], y, rcond=None)[0]
            error = float(np.linalg.norm(table[:, used] @ found - y))
            if found.min() >= 0 and error < best:
                best, factors = error, np.zeros(n_columns)
                factors[used] = found
                if n_used == n_columns:
                    return factors, best
    return factors, best


def fit_scaling_law(n: Numbers, d: Numbers, loss: Numbers) -> ScalingLaw:
    """Fit E, A, alpha, B and beta to measured losses, by least squares.

    Used in chapter 19.
    """
    n, d, loss = require_positive(n=n, d=d, loss=loss)
    best, law = np.inf, ScalingLaw(0, 0, 1, 0, 1)
    ones = np.ones_like(loss)
    for alpha in EXPONENTS:
        for beta in EXPONENTS:
            # scaled to 1 where n and d are least, so that no column is tiny
            table = [ones, (n / n.min()) ** -alpha, (d / d.min()) ** -beta]
            found, error = least_squares(np.stack(table, 1), loss)
            if error < best:
                a, b = found[1] * n.min() ** alpha, found[2] * d.min() ** beta
                best = error
                law = ScalingLaw(*map(float, (found[0], a, alpha, b, beta)))
    return law


class PowerLaw(NamedTuple):
    """A loss $E + A / N^alpha$, with $E = 0$ for a pure power law."""

    floor: float
    a: float
    alpha: float

    def __call__(self, n: float) -> float:
        """Return the loss that the law expects."""
        return self.floor + self.a * n**-self.alpha


def fit_power_law(n: Numbers, loss: Numbers, floor: bool = True) -> PowerLaw:
    """Fit E, A and alpha; without `floor` E is 0, a line on logarithmic axes.

    Used in chapter 19.
    """
    n, loss = require_positive(n=n, loss=loss)
    if not floor:
        slope, start = np.polyfit(np.log(n), np.log(loss), 1)
        return PowerLaw(0.0, float(np.exp(start)), float(-slope))
    best, law = np.inf, PowerLaw(0, 0, 1)
    for alpha in EXPONENTS:
        table = np.stack([np.ones_like(n), (n / n.min()) ** -alpha], 1)
        found, error = least_squares(table, loss)
        if error < best:
            best = error
            a = found[1] * n.min() ** alpha
            law = PowerLaw(*map(float, (found[0], a, alpha)))
    return law


def require_positive(**columns: Numbers) -> list[NDArray[np.float64]]:
    """Refuse columns of unequal length, too few points, and what has no logarithm."""
    arrays = {name: np.asarray(x, np.float64) for name, x in columns.items()}
    lengths = {name: array.shape for name, array in arrays.items()}
    if len(set(lengths.values())) > 1 or min(map(len, lengths.values())) != 1:
        raise ValueError(f"the columns have shapes {lengths}, expected one length.")
    if min(map(len, arrays.values())) < 3:
        raise ValueError(
            f"{len(next(iter(arrays.values())))} points, expected 3 or more to fit."
        )
    for name, array in arrays.items():
        if not (np.isfinite(array).all() and (array > 0).all()):
            raise ValueError(f"{name} holds {array.min()}, expected numbers above 0.")
    return list(arrays.values())


check_arguments(__name__)
