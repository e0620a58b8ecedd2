"""What most questions need: to draw inputs, and to pick one output of several."""

from __future__ import annotations

from typing import Any

import numpy as np


def sizes(rng: np.random.Generator, count: int, least: int = 3) -> list[int]:
    """Draw sizes that all differ, so that a swapped axis cannot hide."""
    return [
        int(n) for n in rng.permutation(np.arange(least, least + count + 3))[:count]
    ]


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw an array of standard normal numbers."""
    return rng.standard_normal(shape, dtype=np.float32)


def first(value: Any) -> Any:
    """Pick the first output, for a part's `view`."""
    return value[0]


def second(value: Any) -> Any:
    """Pick the second output, for a part's `view`."""
    return value[1]
