"""Compare plain values: are they the same, and if not, how do they differ?"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np

NUMBERS = (np.ndarray, int, float)
TIMES = "times what it should be"


def same(left: Any, right: Any, tolerance: float = 1e-4) -> bool:
    """Compare plain values; numbers up to a tolerance, relative and absolute."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            same(a, b, tolerance) for a, b in zip(left, right)
        )
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            same(left[name], right[name], tolerance) for name in left
        )
    both = isinstance(left, NUMBERS) and isinstance(right, NUMBERS)
    if not both or isinstance(left, bool) or isinstance(right, bool):
        return type(left) is type(right) and bool(left == right)
    if np.shape(left) != np.shape(right) or np.size(left) != np.size(right):
        return False
    try:
        left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    except OverflowError:
        return False
    return bool(np.allclose(left, right, tolerance, tolerance / 10, equal_nan=True))


def fitted(value: Any, expected: Any) -> Any:
    """Write a value as the reference writes its own, where it means the same.

    A list of numbers may stand for a tensor, a tensor of one number for that number, a
    tensor for a list, and capitals make no other word: honest answers differ in this.
    """
    if isinstance(value, str) and isinstance(expected, str):
        return expected if value.strip().casefold() == expected.casefold() else value
    if isinstance(value, dict) and isinstance(expected, dict):
        return {name: fitted(x, expected.get(name)) for name, x in value.items()}
    if isinstance(value, np.ndarray):
        if isinstance(expected, bool) and value.dtype == bool and not value.ndim:
            return bool(value)
        if isinstance(expected, list) and value.ndim and len(value) == len(expected):
            value = list(value) if value.ndim > 1 else value.tolist()
    if isinstance(expected, list) and isinstance(value, list):
        if len(value) == len(expected):
            return [fitted(a, b) for a, b in zip(value, expected)]
    elif isinstance(expected, np.ndarray) and isinstance(value, list | int | float):
        try:
            array = np.array(value)
        except (ValueError, OverflowError):
            return value
        of_numbers = array.dtype.kind in "biuf" and (array.size or expected.size == 0)
        return array if of_numbers else value
    return value


def alike(left: np.ndarray, right: np.ndarray) -> str:
    """Tell whether two quantities are "equal", or "turned" (other axes), or neither."""
    if left.size != right.size or not np.isclose(
        np.nansum(finite(left)), np.nansum(finite(right)), 1e-4, 1e-4
    ):
        return ""
    left, right = left.squeeze(), right.squeeze()
    if same(left, right, 2e-5):  # what rounding leaves, and no more
        return "equal"
    if left.ndim == right.ndim <= 4:
        for order in permutations(range(left.ndim)):
            turned = tuple(left.shape[axis] for axis in order) == right.shape
            if turned and same(left.transpose(order), right, 2e-5):
                return "turned"
    return ""


def finite(value: np.ndarray) -> np.ndarray:
    """Leave out what is infinite, for a sum."""
    return np.where(np.isinf(value), 0, value)


def relation(got: np.ndarray, right: np.ndarray) -> str:
    """Find a simple relation between two arrays of one shape: "twice …", or nothing."""
    got, right = np.asarray(got, float), np.asarray(right, float)
    if not np.isfinite(got).all() or not np.isfinite(right).all():
        return ""
    large = np.abs(right) > 1e-6
    if large.any() and same(got[~large], right[~large]):
        ratios = got[large] / right[large]
        if np.allclose(ratios, ratios[0], 1e-3) and abs(ratios[0]) > 1e-6:
            factor = float(ratios[0])
            whole = max(abs(factor), 1 / abs(factor))
            if got.size == 1 and (whole > 16 or abs(whole - round(whole)) > 1e-3):
                return ""  # any two numbers have some ratio
            if np.isclose(factor, -1, 1e-3):
                return "has the wrong sign"
            if np.isclose(factor, 1, 1e-2):
                return ""  # it would be called once what it should be
            return f"is {factor:.4g} {TIMES}"
    if got.size > 1:
        if np.allclose(got - right, (got - right).flat[0], 1e-3, 1e-5):
            return f"is off by {(got - right).flat[0]:.4g} everywhere"
        for axis in range(got.ndim):
            if got.shape[axis] > 1 and same(np.flip(got, axis), right):
                return f"is right, but reversed along axis {axis}"
            shifts = (s for s in (1, -1) if same(np.roll(got, s, axis), right))
            if got.shape[axis] > 2 and next(shifts, 0):
                return f"is right, but shifted by one along axis {axis}"
        if len(np.unique(right)) > 2 and same(
            np.sort(got.ravel()), np.sort(right.ravel())
        ):
            return "holds the right numbers in wrong places"
    return ""


def multiples(*factors: float) -> tuple[Callable[[float], float], ...]:
    """Functions that multiply and divide a number by each factor."""
    both = [x for factor in factors for x in (factor, 1 / factor)]
    return tuple(partial(operator.mul, x) for x in both)


RELATIONS: dict[str, tuple[str, tuple[Callable[[float], float], ...]]] = {
    "negative": ("it has the wrong sign", (lambda b: -b,)),
    "factor_two": ("it is off by a factor of two", multiples(2)),
    "complement": (
        "yours and the right one add up to one: you counted the others",
        (lambda b: 1 - b,),
    ),
    "upside_down": (
        "it is upside down: one divided by the right one",
        (lambda b: 1 / b,),
    ),
    "squared": (
        "a root or a square is wrong: one of the two is the other's square",
        (lambda b: b**2, lambda b: abs(b) ** 0.5),
    ),
    "off_by_one": (
        "it is off by one: what is counted twice, or not at all?",
        (lambda b: b + 1, lambda b: b - 1),
    ),
    "percent": (
        "it is a hundred times too large or too small, as in per cent",
        multiples(100),
    ),
    "other_logarithm": (
        "a logarithm has another base: it is off by the factor log 2 or log 10",
        multiples(math.log(2), math.log(10)),
    ),
    "power": (
        "it is e or 10 to the power of the right one",
        (lambda b: math.exp(min(b, 99.0)), lambda b: 10 ** min(b, 99.0)),
    ),
    "whole_factor": (
        "it is off by a whole factor",
        multiples(*range(3, 11)),
    ),
}


def slip(got: Any, right: Any) -> str:
    """Name a simple relation of two numbers, without saying which is right."""
    numbers = (int, float)
    if not (isinstance(got, NUMBERS) and isinstance(right, numbers)) or np.ndim(got):
        return ""
    if isinstance(right, bool) or not np.isfinite(float(got)):
        return ""
    a, b = float(got), float(right)
    if a == b or b in (0, 1):
        return ""
    for name, (words, related) in RELATIONS.items():
        if name == "percent" and min(abs(a), abs(b)) > 1:
            continue  # neither is a share
        if any(np.isclose(a, f(b), 1e-3, 1e-9) for f in related):
            return words
    if abs(a - b) < 0.03 * abs(b):
        return (
            "it is near: give more digits if it was rounded; if not, what is counted "
            "once too often, or left out?"
        )
    return ""
