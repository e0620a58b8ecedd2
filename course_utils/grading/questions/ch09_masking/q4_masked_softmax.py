"""`masked_softmax`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question
from course_utils.models.attention import masked_softmax as right_softmax


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    return right_softmax(scores, mask)


def filled(number: float, dim: int = -1) -> Any:
    """The softmax with a number written over what is blocked."""
    return lambda s, m: torch.softmax(s.masked_fill(~m, number), dim=dim)


def late(scores: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-1) * mask


def renormalised(scores: Tensor, mask: Tensor) -> Tensor:
    rest = late(scores, mask)
    return rest / rest.sum(dim=-1, keepdim=True)


def lowest(scores: Tensor, mask: Tensor) -> Tensor:
    return filled(torch.finfo(scores.dtype).min)(scores, mask)


def draw_masked(rng: np.random.Generator, *batch: int, blocked: bool = False) -> Args:
    query, key = sizes(rng, 2, least=4)
    mask = rng.random((query, key)) < 0.5
    mask[np.arange(query), rng.integers(key, size=query)] = True
    mask[np.arange(query), rng.permutation(query) % key] = False
    mask[:, 0] = True
    if blocked:
        mask[1] = False
    return normal(rng, *batch, query, key), mask


def draw_extremes(rng: np.random.Generator) -> list[Args]:
    """Half precision with a blocked row, keys that are loud, and keys that are low.

    Blocked keys score 200 more in the one, open ones 20,000 below 0 in the other.

    In half precision four of eight keys are open and all scores are 0: then the
    weights are exact, and it does not matter in which precision they were computed.
    """
    mask = np.stack([rng.permutation(np.arange(8) < 4) for _ in range(5)])
    mask[2] = False
    scores = np.zeros((5, 8), np.float16)
    loud, open_mask = draw_masked(rng)
    loud = loud + np.float32(200) * (~open_mask).astype(np.float32)
    low, low_mask = draw_masked(rng)
    return [(scores, mask), (loud, open_mask), (low - np.float32(2e4), low_mask)]


QUESTION = Question(
    id="09.4",
    title="A masked softmax for every row",
    answer="masked_softmax",
    arguments=("scores", "mask"),
    outputs=(Output("weights", "query key"),),
    reference=masked_softmax,
    difficulty="medium",
    minutes=10,
    next_step="write the body of `masked_softmax`; think of a row of the mask that is "
    "False throughout.",
    parts=(
        Part("weights", 1, lambda rng: [draw_masked(rng), draw_masked(rng)]),
        Part(
            "a row with nothing to see",
            1,
            lambda rng: [draw_masked(rng, blocked=True)],
            only_failure_hint="right as long as every query may see something; what "
            "should one receive that may see nothing?",
        ),
        Part(
            "batch and heads",
            1,
            lambda rng: [draw_masked(rng, 2), draw_masked(rng, 2, 3, blocked=True)],
            only_failure_hint="right for one table, wrong when batch and head axes "
            "stand in front: count axes from the end, and let the mask broadcast",
        ),
        Part("half precision, loud keys", 1, draw_extremes),
    ),
    mistakes=(
        Mistake(
            "nan",
            "a row in which everything is blocked becomes NaN: all its scores are −∞, "
            "and the softmax divides 0 by 0",
            filled(-torch.inf),
        ),
        Mistake(
            "minus_1e9",
            "−1e9 is only a low score: where everything is blocked all are equally low "
            "and share the weight, and half precision can't hold the number",
            filled(-1e9),
        ),
        Mistake(
            "lowest_number",
            "the lowest number is still a number: where everything is blocked, all "
            "scores are equal and everything is seen",
            lowest,
        ),
        Mistake(
            "zero_score",
            "a blocked score is set to 0, and e⁰ = 1: 0 is a score like any other",
            filled(0.0),
        ),
        Mistake(
            "not_renormalised",
            "the zeros come after the softmax, so the rows no longer sum to one, and "
            "what is left still knows what was blocked",
            late,
        ),
        Mistake(
            "renormalised",
            "the softmax runs over everything and is renormalised after: where a "
            "blocked key scores much higher, the rest was already rounded to 0",
            lambda s, m: renormalised(s, m).nan_to_num(),
        ),
        Mistake(
            "renormalised_nan",
            "the softmax runs over everything and is renormalised after: where all is "
            "blocked, or a blocked key scores much higher, the sum is 0, and 0 / 0 is "
            "NaN",
            renormalised,
        ),
        Mistake(
            "inverted",
            "the allowed keys are blocked and the blocked ones seen: True means “may "
            "attend”",
            lambda s, m: right_softmax(s, ~m),
        ),
        Mistake(
            "over_queries",
            "the softmax runs over the queries, so that the columns sum to one: each "
            "query shares out its own weight",
            lambda s, m: filled(-torch.inf, dim=-2)(s, m).nan_to_num(),
        ),
        Mistake(
            "mask_ignored",
            "the mask is not used: these are the weights without it",
            lambda s, m: torch.softmax(s, dim=-1),
        ),
    ),
    packaged=("masked_softmax",),
)


# ----------------------------------------------------------------------- specimens


def by_row(weigh):
    """Weigh row by row, with Python's loop and the exponential."""

    def answer(scores, mask):
        flat = scores.float().reshape(-1, *mask.shape)
        rows = [
            torch.stack([weigh(s, m) for s, m in zip(table, mask)]) for table in flat
        ]
        return torch.stack(rows).reshape(scores.shape)

    return answer


def careful(s, m):
    if not m.any():
        return torch.zeros_like(s)
    powers = torch.where(m, (s - s[m].max()).exp(), torch.zeros_like(s))
    return powers / powers.sum()


def softmax_with_added(scores, mask):
    weights = (
        scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
    ).softmax(-1)
    return weights.nan_to_num(0.0)


RIGHT = [
    by_row(careful),
    softmax_with_added,
    lambda s, m: F.scaled_dot_product_attention(
        s.float(), torch.eye(s.shape[-1]), torch.eye(s.shape[-1]), m, scale=1.0
    ),
]
WRONG = [
    ("nan", by_row(lambda s, m: s.where(m, -torch.inf).softmax(0))),
    (
        "lowest_number",
        by_row(lambda s, m: careful(s, m) if m.any() else torch.ones_like(s) / len(s)),
    ),
    ("minus_1e9", lambda s, m: s.masked_fill(m.logical_not(), -1e9).softmax(-1)),
    ("zero_score", by_row(lambda s, m: (s * m).softmax(0))),
    ("not_renormalised", by_row(lambda s, m: s.softmax(0).where(m, 0.0))),
    (
        "renormalised",
        by_row(lambda s, m: F.normalize(s.softmax(0) * m, p=1, dim=0, eps=1e-30)),
    ),
    (
        "renormalised_nan",
        by_row(lambda s, m: s.softmax(0) * m / (s.softmax(0) * m).sum()),
    ),
    ("inverted", by_row(lambda s, m: careful(s, ~m))),
    ("mask_ignored", by_row(lambda s, m: s.softmax(0))),
]
