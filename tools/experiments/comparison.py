"""Say where two measurements of the same points disagree."""

from __future__ import annotations

import math
from typing import Any

from tools.experiments.script import Point, same_point

TOLERANCE = 1e-3  # relative; rounding differs between processors


def is_close(one: Any, other: Any, tolerance: float) -> bool:
    """Equal up to rounding; lists item by item, and NaN is NaN."""
    if isinstance(one, list) and isinstance(other, list):
        pairs = zip(one, other)
        return len(one) == len(other) and all(is_close(*p, tolerance) for p in pairs)
    if isinstance(one, float) and isinstance(other, int | float):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-9)
    return bool(one == other)


def differences(
    stored: list[Point], now: list[Point], tolerance: float = TOLERANCE
) -> list[str]:
    """Where two lists of measured points disagree, seconds aside."""
    if len(stored) != len(now):
        return [f"{len(stored)} points are stored and {len(now)} were measured"]
    return [
        f"{key} is {new.get(key)!r}, stored is {old.get(key)!r}, at {shown(new)}"
        for old, new in zip(stored, now)
        for key in sorted((old.keys() | new.keys()) - {"seconds"})
        if not is_close(old.get(key), new.get(key), tolerance)
    ]


def shown(point: Point) -> str:
    """A point's plain values, for a message."""
    values = ((k, v) for k, v in point.items() if not isinstance(v, list))
    return ", ".join(f"{key}={value!r}" for key, value in values)


def outside_spread(
    stored: list[Point], now: list[Point], names: list[str]
) -> list[str]:
    """The results whose mean over seeds moved by more than their recorded spread.

    The spread of a group of points that differ in their seed alone is its range,
    largest less smallest. Five runs of one distribution have means that differ by so
    much less than once in a thousand times.
    """
    found = []
    groups: dict[str, list[tuple[Point, Point]]] = {}
    for new in now:
        key = {name: new[name] for name in names if name != "seed"}
        wanted = key | {"seed": new["seed"]}
        old = next(p for p in stored if same_point(wanted, p))
        groups.setdefault(shown(key), []).append((old, new))
    for where, pairs in groups.items():
        first = pairs[0][0]
        for name in sorted(first.keys() - {*names, "seconds"}):
            if not isinstance(first[name], int | float):
                continue
            before, after = ([pair[side][name] for pair in pairs] for side in (0, 1))
            moved = abs(sum(after) - sum(before)) / len(pairs)
            allowed = max(before) - min(before) + TOLERANCE * abs(max(before, key=abs))
            if not moved <= allowed:
                found.append(f"{name} moved by {moved:.3g} of {allowed:.3g} at {where}")
    return found
