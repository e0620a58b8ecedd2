"""`masked_softmax`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question
from course_utils.models.attention import masked_softmax as right_softmax


def masked_softmax(scores: Tensor, mask: Tensor, sink: float) -> Tensor:
    return weighed(scores, mask, sink)


def weighed(
    scores: Tensor,
    mask: Tensor,
    sink: float,
    fill: float = -torch.inf,
    dim: int = -1,
    keep: bool = False,
) -> Tensor:
    """A softmax over the scores, masked with `fill`, and one more, the sink."""
    scores = scores.masked_fill(~mask, fill)
    extra = torch.full_like(scores.narrow(dim, 0, 1), sink)
    weights = torch.softmax(torch.cat([scores, extra], dim=dim), dim=dim)
    return weights if keep else weights.narrow(dim, 0, scores.shape[dim])


def unshifted(scores: Tensor, mask: Tensor, sink: float) -> Tensor:
    """The exponential of the sink beside powers that were made smaller."""
    open_scores = scores.masked_fill(~mask, -torch.inf)
    largest = open_scores.amax(dim=-1, keepdim=True)
    powers = (open_scores - largest).exp()
    return powers / (powers.sum(dim=-1, keepdim=True) + math.exp(sink))


def overflowing(scores: Tensor, mask: Tensor, sink: float) -> Tensor:
    powers = scores.exp() * mask
    return powers / (powers.sum(dim=-1, keepdim=True) + torch.tensor(sink).exp())


def draw_masked(rng: np.random.Generator, *batch: int, blocked: bool = False) -> Args:
    query, key = sizes(rng, 2, least=4)
    mask = rng.random((query, key)) < 0.5
    mask[np.arange(query), rng.integers(key, size=query)] = True
    mask[np.arange(query), rng.permutation(query) % key] = False
    mask[:, 0] = True
    if blocked:
        mask[1] = False
    sink = round(float(rng.uniform(0.5, 1.5)), 3)
    return normal(rng, *batch, query, key), mask, sink


def draw_extremes(rng: np.random.Generator) -> list[Args]:
    """Half precision with a blocked row, keys that are loud, and keys that are low.

    Blocked keys score 200 more in the one, open ones and the sink 1,000 below 0 in
    the other: a logarithm of their sum is right to four digits in 32 bits. Where they
    are 20,000 below, one key of a row is open and its weight is 1.

    In half precision four of eight keys are open, all scores are 0 and the sink far
    below: then the weights are exact, whatever the precision they were computed in.
    """
    mask = np.stack([rng.permutation(np.arange(8) < 4) for _ in range(5)])
    mask[2] = False
    scores = np.zeros((5, 8), np.float16)
    loud, open_mask, sink = draw_masked(rng)
    loud = loud + np.float32(200) * (~open_mask).astype(np.float32)
    low, low_mask, _ = draw_masked(rng)
    low = np.round(8 * low) / 8 - np.float32(1e3)  # so that 32 bits hold it exactly
    one_open = np.eye(5, 8, dtype=bool)[rng.permutation(5)]
    return [
        (scores, mask, -100.0),
        (loud, open_mask, sink),
        (low, low_mask, 0.75 - 1e3),
        (np.full((5, 8), -2e4, np.float32), one_open, -2e4 - 100),
    ]


QUESTION = Question(
    id="09.4",
    title="A masked softmax with a sink",
    answer="masked_softmax",
    arguments=("scores", "mask", "sink"),
    outputs=(Output("weights", "query key"),),
    reference=masked_softmax,
    difficulty="medium",
    minutes=12,
    next_step="think of the sink as one more key that is never blocked, and whose "
    "value is nothing.",
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
        Part(
            "half precision, loud keys, low keys",
            1,
            draw_extremes,
            only_failure_hint="right for scores of ordinary size; with very high "
            "blocked scores, very low open ones or in half precision it is not: is a "
            "number written over blocked scores, or an exponential taken unguarded?",
        ),
    ),
    mistakes=(
        Mistake(
            "no_sink",
            "the rows sum to one, so the sink has no share: added to every score it "
            "changes nothing, and dividing by the keys' own sum takes its share away; "
            "it stands beside the keys in the last denominator",
            lambda s, m, sink: right_softmax(s, m),
        ),
        Mistake(
            "no_sink_nan",
            "the sink takes no share, and a row in which everything is blocked becomes "
            "NaN: beside the keys the sink is always there to take the weight",
            lambda s, m, sink: torch.softmax(s.masked_fill(~m, -torch.inf), dim=-1),
        ),
        Mistake(
            "sink_returned",
            "the sink's own weight is returned as well: there is one weight for each "
            "key, and the sink is none",
            lambda s, m, sink: weighed(s, m, sink, keep=True),
        ),
        Mistake(
            "same_share_for_all",
            "the usual weights are all scaled by one number: how much the sink takes "
            "depends on the scores of the row",
            lambda s, m, sink: right_softmax(s, m) / (1 + math.exp(sink)),
        ),
        Mistake(
            "same_share_nan",
            "the usual weights are all scaled by one number, but how much the sink "
            "takes depends on the row's scores; and a blocked row becomes NaN",
            lambda s, m, sink: (
                torch.softmax(s.masked_fill(~m, -torch.inf), dim=-1)
                / (1 + math.exp(sink))
            ),
        ),
        Mistake(
            "sink_in_blocked",
            "every blocked key gets the sink's score: there is one sink in a row, "
            "however many keys are blocked",
            lambda s, m, sink: torch.softmax(s.masked_fill(~m, sink), dim=-1) * m,
        ),
        Mistake(
            "sink_not_exponentiated",
            "the sink is added to the sum of powers as it is: it is a score, so its "
            "exponential stands there",
            lambda s, m, sink: s.exp() * m / ((s.exp() * m).sum(-1, True) + sink),
        ),
        Mistake(
            "sink_of_zero",
            "the sink's score is taken for 0 (its power for 1): it is an argument",
            lambda s, m, sink: weighed(s, m, 0.0),
        ),
        Mistake(
            "sink_not_shifted",
            "the largest score was subtracted from the scores and not from the sink: "
            "all terms of the denominator need the same factor",
            unshifted,
        ),
        Mistake(
            "overflow",
            "the exponential of a raw score overflows or vanishes when scores are far "
            "from 0, and ∞ · 0 is NaN: block *before* it; a softmax does the rest",
            overflowing,
        ),
        Mistake(
            "overflow_hidden",
            "the exponential of a raw score overflows or vanishes when scores are far "
            "from 0, and the NaN is then taken for 0: block before the exponential",
            lambda s, m, sink: overflowing(s, m, sink).nan_to_num(),
        ),
        Mistake(
            "minus_1e9",
            "−1e9 is only a low score: half precision can't hold the number; −∞ is "
            "what no score can be below",
            lambda s, m, sink: weighed(s, m, sink, fill=-1e9),
        ),
        Mistake(
            "zero_score",
            "a blocked score is set to 0, and e⁰ = 1: 0 is a score like any other",
            lambda s, m, sink: weighed(s, m, sink, fill=0.0),
        ),
        Mistake(
            "not_renormalised",
            "the zeros come after the softmax, so blocked keys still have their share "
            "of the denominator: what is left knows what was blocked",
            lambda s, m, sink: weighed(s, m | True, sink) * m,
        ),
        Mistake(
            "inverted",
            "the allowed keys are blocked and the blocked ones seen: True means “may "
            "attend”",
            lambda s, m, sink: weighed(s, ~m, sink),
        ),
        Mistake(
            "over_queries",
            "the softmax runs over the queries, so that the columns share a sink: each "
            "query shares out its own weight",
            lambda s, m, sink: weighed(s, m, sink, dim=-2),
        ),
        Mistake(
            "mask_ignored",
            "the mask is not used: these are the weights without it",
            lambda s, m, sink: weighed(s, m | True, sink),
        ),
    ),
    packaged=("masked_softmax",),
)


# ----------------------------------------------------------------------- specimens


def by_row(weigh):
    """Weigh row by row, with Python's loop and the exponential."""

    def answer(scores, mask, sink):
        flat = scores.float().reshape(-1, *mask.shape)
        rows = [
            torch.stack([weigh(s, m, sink) for s, m in zip(table, mask)])
            for table in flat
        ]
        return torch.stack(rows).reshape(scores.shape)

    return answer


def careful(s, m, sink):
    largest = max([float(x) for x, seen in zip(s, m) if seen] + [sink])
    powers = torch.where(m, (s - largest).exp(), torch.zeros_like(s))
    return powers / (powers.sum() + math.exp(sink - largest))


def times_a_sigmoid(scores, mask, sink):
    """The usual weights, times the share of all that does not go to the sink."""
    blocked = scores.double().masked_fill(~mask, -torch.inf)
    total = blocked.logsumexp(dim=-1, keepdim=True)
    return torch.softmax(blocked, dim=-1).nan_to_num() * torch.sigmoid(total - sink)


def of_numpy(scores, mask, sink):
    s = np.where(mask.numpy(), scores.double().numpy(), -np.inf)
    total = np.logaddexp.reduce(s, axis=-1, keepdims=True)
    return torch.from_numpy(np.exp(s - np.logaddexp(total, sink)))


def by_logarithm(scores, mask, sink):
    """The logarithm of the denominator, in 32 bits."""
    s = scores.float().masked_fill(~mask, -torch.inf)
    total = torch.logaddexp(s.logsumexp(-1, keepdim=True), torch.tensor(sink))
    return (s - total).exp()


RIGHT = [by_row(careful), times_a_sigmoid, of_numpy, by_logarithm]
WRONG = [
    (
        "no_sink",
        lambda s, m, sink: (
            of_numpy(s, m, sink)
            / of_numpy(s, m, sink).sum(-1, keepdim=True).clamp(min=1e-30)
        ),
    ),
    (
        "no_sink",
        by_row(lambda s, m, sink: s.where(m, -torch.inf).softmax(0).nan_to_num()),
    ),
    ("no_sink_nan", by_row(lambda s, m, sink: s.where(m, -torch.inf).softmax(0))),
    (
        "minus_1e9",
        lambda s, m, sink: torch.cat(
            [s.masked_fill(m.logical_not(), -1e9), s[..., :1] * 0 + sink], -1
        ).softmax(-1)[..., :-1],
    ),
    ("zero_score", by_row(lambda s, m, sink: careful(s * m, m | True, sink))),
    ("not_renormalised", by_row(lambda s, m, sink: careful(s, m | True, sink) * m)),
    ("inverted", by_row(lambda s, m, sink: careful(s, ~m, sink))),
    ("mask_ignored", by_row(lambda s, m, sink: careful(s, m | True, sink))),
]
