"""`merge`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

Partial = tuple[Tensor, Tensor, Tensor]


def summary(scores: np.ndarray, values: np.ndarray) -> Args:
    """What is carried after some keys: largest score, sum, sum of values."""
    largest = scores.max(-1)
    powers = np.exp(scores - largest[:, None])
    return largest, powers.sum(-1), powers @ values


def draw_parts(rng: np.random.Generator, spread: float = 2.0) -> Args:
    query, first, second, d_v = sizes(rng, 4)
    parts: list[np.ndarray] = []
    for n in (first, second):
        shift = spread * normal(rng, query, 1)
        parts += summary(normal(rng, query, n) + shift, normal(rng, n, d_v))
    return tuple(part.astype(np.float32) for part in parts)


def merge(
    m1: Tensor, l1: Tensor, c1: Tensor, m2: Tensor, l2: Tensor, c2: Tensor
) -> Partial:
    m = torch.maximum(m1, m2)
    f1, f2 = torch.exp(m1 - m), torch.exp(m2 - m)
    return m, l1 * f1 + l2 * f2, c1 * f1[:, None] + c2 * f2[:, None]


def merged_by(
    factors: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
) -> Callable[..., Partial]:
    """Merge with other factors for the two parts."""

    def wrong(m1, l1, c1, m2, l2, c2) -> Partial:  # type: ignore[no-untyped-def]
        f1, f2 = factors(m1, m2)
        total = l1 * f1 + l2 * f2
        return torch.maximum(m1, m2), total, c1 * f1[:, None] + c2 * f2[:, None]

    return wrong


def values_not_rescaled(m1, l1, c1, m2, l2, c2) -> Partial:  # type: ignore[no-untyped-def]
    m, total, _ = merge(m1, l1, c1, m2, l2, c2)
    return m, total, c1 + c2


def already_divided(m1, l1, c1, m2, l2, c2) -> Partial:  # type: ignore[no-untyped-def]
    m, total, summed = merge(m1, l1, c1, m2, l2, c2)
    return m, total, summed / total[:, None]


def averages_merged(m1, l1, c1, m2, l2, c2) -> Partial:  # type: ignore[no-untyped-def]
    """The sums of values are taken for averages, each weighted by its total."""
    m, total, summed = merge(m1, l1, l1[:, None] * c1, m2, l2, l2[:, None] * c2)
    return m, total, summed / total[:, None]


def with_largest(largest: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Partial]:
    """Merge with another number in the place of the common largest score."""

    def wrong(m1, l1, c1, m2, l2, c2) -> Partial:  # type: ignore[no-untyped-def]
        m = largest(m1, m2)
        f1, f2 = torch.exp(m1 - m), torch.exp(m2 - m)
        return m, l1 * f1 + l2 * f2, c1 * f1[:, None] + c2 * f2[:, None]

    return wrong


QUESTION = Question(
    id="15.4",
    title="Merge two halves of a softmax",
    answer="merge",
    arguments=("m1", "l1", "c1", "m2", "l2", "c2"),
    outputs=(Output("m", "query"), Output("l", "query"), Output("c", "query d_v")),
    reference=merge,
    difficulty="hard",
    minutes=15,
    next_step="take the larger m, and bring both sums to it before you add them.",
    parts=(
        Part(
            "largest and total",
            1,
            lambda rng: [draw_parts(rng), draw_parts(rng)],
            lambda v: v[:2],
        ),
        Part(
            "the sum of values",
            1,
            lambda rng: [draw_parts(rng), draw_parts(rng)],
            lambda v: v[2],
        ),
        Part(
            "large scores",
            1,
            lambda rng: [draw_parts(rng, 150.0) for _ in range(3)],
            only_failure_hint="right for small scores; with large ones something "
            "overflows: no exponent may be above 0",
        ),
    ),
    mistakes=(
        Mistake(
            "m_added",
            "the two largest scores are added: the largest of both halves is the "
            "larger of the two",
            with_largest(lambda m1, m2: m1 + m2),
        ),
        Mistake(
            "one_for_all",
            "one largest score is taken for all queries: each has its own",
            with_largest(
                lambda m1, m2: torch.maximum(m1.max(), m2.max()).expand_as(m1)
            ),
        ),
        Mistake(
            "not_rescaled",
            "the two sums are added as they are: each was built with its own largest "
            "score, so they are in different units",
            merged_by(lambda m1, m2: (torch.ones_like(m1), torch.ones_like(m2))),
        ),
        Mistake(
            "only_first_rescaled",
            "only the first half is rescaled: which half has the larger m is not known "
            "beforehand, so both need their factor",
            merged_by(
                lambda m1, m2: (
                    torch.exp(m1 - torch.maximum(m1, m2)),
                    torch.ones_like(m2),
                )
            ),
        ),
        Mistake(
            "wrong_direction",
            "the factors go the wrong way: the half with the *smaller* m must shrink",
            merged_by(
                lambda m1, m2: (
                    torch.exp(torch.maximum(m1, m2) - m1),
                    torch.exp(torch.maximum(m1, m2) - m2),
                )
            ),
        ),
        Mistake(
            "from_zero",
            "both halves are brought to a largest score of 0 instead of the common "
            "largest: m and the sums no longer fit, and large scores overflow",
            merged_by(lambda m1, m2: (torch.exp(m1), torch.exp(m2))),
        ),
        Mistake(
            "values_not_rescaled",
            "the totals are rescaled and the sums of values are not: both were built "
            "with the same m",
            values_not_rescaled,
        ),
        Mistake(
            "already_divided",
            "the sum of values has been divided by the total: that comes once, at the "
            "very end, or the next merge goes wrong",
            already_divided,
        ),
        Mistake(
            "averages_merged",
            "`c1` and `c2` are taken for averages: they are sums, not yet divided by "
            "`l1` and `l2`, and the merged one is a sum too",
            averages_merged,
        ),
        Mistake(
            "second_as_unit",
            "both sums are brought to `m2`, even where `m1` is the larger; `m` is the "
            "common largest, and the sums have to be built with that",
            merged_by(lambda m1, m2: (torch.exp(m1 - m2), torch.ones_like(m2))),
        ),
        Mistake(
            "first_as_unit",
            "both sums are brought to `m1`, even where `m2` is the larger; `m` is the "
            "common largest, and the sums have to be built with that",
            merged_by(lambda m1, m2: (torch.ones_like(m1), torch.exp(m2 - m1))),
        ),
        Mistake(
            "the_smaller",
            "the merged m is the smaller of the two: then some exponents are above 0",
            lambda m1, l1, c1, m2, l2, c2: (
                torch.minimum(m1, m2),
                l1 * torch.exp(m1 - torch.minimum(m1, m2))
                + l2 * torch.exp(m2 - torch.minimum(m1, m2)),
                c1 * torch.exp(m1 - torch.minimum(m1, m2))[:, None]
                + c2 * torch.exp(m2 - torch.minimum(m1, m2))[:, None],
            ),
        ),
        Mistake(
            "factors_exchanged",
            "the two factors have changed places: the half with the larger maximum "
            "keeps its sums, the other's shrink",
            lambda m1, l1, c1, m2, l2, c2: merge(m2, l1, c1, m1, l2, c2),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def merged(m1, l1, c1, m2, l2, c2):
    """With the first half as the unit of measure, where that does not overflow."""
    swap = (m2 > m1)[:, None]
    m = torch.where(swap[:, 0], m2, m1)
    smaller = torch.exp(-(m1 - m2).abs())
    total = torch.where(swap[:, 0], l2 + smaller * l1, l1 + smaller * l2)
    near, far = torch.where(swap, c2, c1), torch.where(swap, c1, c2)
    return m, total, near + smaller[:, None] * far


def averaged_contexts(m1, l1, c1, m2, l2, c2):
    """As if each half had divided by its own total already."""
    m, total, _ = merged(m1, l1, c1, m2, l2, c2)
    share = l1 * torch.exp(m1 - m) / total
    return m, total, torch.lerp(c2, c1, share[:, None])


RIGHT = [merged]
WRONG = [
    ("not_rescaled", lambda m1, l1, c1, m2, l2, c2: (m1.maximum(m2), l1 + l2, c1 + c2)),
    ("values_not_rescaled", lambda *a: (*merged(*a)[:2], a[2] + a[5])),
    (
        "already_divided",
        lambda *a: (*merged(*a)[:2], merged(*a)[2] / merged(*a)[1].unsqueeze(1)),
    ),
    (
        "only_first_rescaled",
        lambda m1, l1, c1, m2, l2, c2: (
            m1.maximum(m2),
            l1 * (m1 - m1.maximum(m2)).exp() + l2,
            c1 * (m1 - m1.maximum(m2)).exp().unsqueeze(1) + c2,
        ),
    ),
    ("averages_merged", averaged_contexts),
    (
        "second_as_unit",
        lambda m1, l1, c1, m2, l2, c2: (
            torch.where(m1 > m2, m1, m2),
            l2 + l1 * (m1 - m2).exp(),
            c2 + (m1 - m2).exp().unsqueeze(1) * c1,
        ),
    ),
    (
        "first_as_unit",
        lambda m1, l1, c1, m2, l2, c2: (
            torch.where(m1 > m2, m1, m2),
            l1 + l2 * (m2 - m1).exp(),
            c1 + (m2 - m1).exp().unsqueeze(1) * c2,
        ),
    ),
]
