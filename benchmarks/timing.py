"""Fair times on a machine that does other things too.

Designs that are compared take turns: in each round every one of them runs, in an order
that is turned round from one round to the next, and only times of one round are divided
by each other. What disturbs the machine disturbs both sides of a ratio. The clock is
the processor's, so that waiting for a core does not count. The result is the median of
the ratios; their spread is the distance between the quartiles.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Work = Callable[[], Any]
LEAST = 0.02  # seconds that one measurement lasts at least: short work is repeated


class Ratio(NamedTuple):
    """The median of the ratios of all rounds, and the middle half of them."""

    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """The distance between the quartiles: how far apart the middle half lies."""
        return self.high - self.low


def seconds(work: Work, repeats: int = 1) -> float:
    """The processor time of one call, the mean of `repeats`."""
    began = time.process_time()
    for _ in range(repeats):
        work()
    return (time.process_time() - began) / repeats


def repeats_for(work: Work, least: float = LEAST) -> int:
    """How often to call so that a measurement lasts `least` seconds; warms up too."""
    work()
    once = max(seconds(work), 1e-7)
    return max(1, round(least / once))


def interleaved(
    works: Mapping[str, Work],
    rounds: int,
    least: float = LEAST,
    tick: Callable[[], None] = lambda: None,
) -> dict[str, list[float]]:
    """Time all works in turns: for each of them the seconds of every round."""
    if rounds < 1:
        raise ValueError(f"rounds is {rounds}, expected 1 or more.")
    repeats = {name: repeats_for(work, least) for name, work in works.items()}
    times: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds):
        names = list(works) if number % 2 == 0 else list(works)[::-1]
        for name in names:
            times[name].append(seconds(works[name], repeats[name]))
        tick()
    return times


def ratio_of(ours: list[float], theirs: list[float]) -> Ratio:
    """Divide round by round, and take the median and quartiles of what comes out."""
    if not ours or len(ours) != len(theirs):
        raise ValueError(
            f"{len(ours)} and {len(theirs)} times, expected as many on both sides, and "
            "at least one: only times of the same round are compared."
        )
    ratios = [a / b for a, b in zip(ours, theirs)]
    return summary(ratios)


def summary(values: list[float]) -> Ratio:
    """The median and the quartiles of some numbers."""
    if not values:
        raise ValueError("no values, expected at least one.")
    middle = statistics.median(values)
    if len(values) == 1:
        return Ratio(middle, middle, middle)
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return Ratio(middle, low, high)
