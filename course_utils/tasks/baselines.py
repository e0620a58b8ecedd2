"""Chance levels: what a task gives to a model that knows nothing.

An accuracy means something only beside these. They are exact, by counting.
"""

from __future__ import annotations

import math
from itertools import pairwise

from course_utils.doors import check_arguments
from course_utils.shapes import require_sizes


def majority_chance(n_tokens: int, n_values: int) -> float:
    """Say how often the most frequent of the values is the one that was asked for.

    E[max_v N_v] / n for n independent uniform values, the best that weights all alike
    can do; E[max] = sum_{m < n} P(max > m), exactly, by counting. Used in chapter 04.
    """
    require_sizes(n_tokens=n_tokens, n_values=n_values)

    def at_most(m: int) -> int:
        """Count the sequences in which no value comes more than m times."""
        ways = [1] + [0] * n_tokens
        for _ in range(n_values):
            ways = [
                sum(math.comb(n, k) * ways[n - k] for k in range(min(m, n) + 1))
                for n in range(n_tokens + 1)
            ]
        return ways[n_tokens]

    every = n_values**n_tokens
    expected = sum(every - at_most(m) for m in range(n_tokens))
    return expected / (every * n_tokens)


def sorting_chance(n_tokens: int = 8, n_symbols: int = 10) -> float:
    """Say how well `sort_tokens` is answered from the position alone.

    The mean over positions of the likeliest symbol there, by the distribution of the
    i-th smallest: P(x_(i) <= v) = sum_{k > i} C(n, k) p^k (1 - p)^(n - k) with
    p = (v + 1) / V and i from 0. Exact. Used in chapter 11.
    """
    require_sizes(n_tokens=n_tokens, n_symbols=n_symbols)
    total = 0.0
    for i in range(n_tokens):
        below = [0.0]
        for v in range(n_symbols):
            p = (v + 1) / n_symbols
            below.append(
                sum(
                    math.comb(n_tokens, k) * p**k * (1 - p) ** (n_tokens - k)
                    for k in range(i + 1, n_tokens + 1)
                )
            )
        total += max(b - a for a, b in pairwise(below))
    return total / n_tokens


check_arguments(__name__)
