"""`attention`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.draw import first, normal, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def draw_qkv(rng: np.random.Generator, *batch: int) -> Args:
    query, key, d_k, d_v = sizes(rng, 4)
    return (
        normal(rng, *batch, query, d_k),
        normal(rng, *batch, key, d_k),
        normal(rng, *batch, key, d_v),
    )


def attention(queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(keys.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ values, weights


def attend(scores: Tensor, values: Tensor, dim: int = -1) -> tuple[Tensor, Tensor]:
    """Finish attention from scores that went wrong earlier, or on the wrong axis."""
    weights = torch.softmax(scores, dim=dim)
    return weights @ values, weights


def products(queries: Tensor, keys: Tensor) -> Tensor:
    return queries @ keys.transpose(-2, -1)


def scale_after_softmax(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    weights = torch.softmax(products(q, k), dim=-1) / math.sqrt(k.shape[-1])
    return weights @ v, weights


def no_softmax(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    weights = products(q, k) / math.sqrt(k.shape[-1])
    return weights @ v, weights


def one_softmax_for_all(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    scores = products(q, k) / math.sqrt(k.shape[-1])
    weights = torch.softmax(scores.flatten(-2), dim=-1).reshape(scores.shape)
    return weights @ v, weights


def best_key_alone(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    scores = products(q, k)
    weights = (scores == scores.amax(-1, keepdim=True)).float()
    return weights @ v, weights


def weights_first(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    context, weights = attention(q, k, v)
    return weights, context


def columns_sum_to_one(args: Args, value: Any) -> bool:
    weights = value[-1]
    return np.allclose(weights.sum(-2), 1, atol=1e-3) and not np.allclose(
        weights.sum(-1), 1, atol=1e-3
    )


SCALE_MISSING = (
    "the scores are not scaled: at a larger d_k they spread more widely and the "
    "softmax saturates"
)
OVER_QUERIES = (
    "the rows do not sum to one, the columns do: the softmax runs over the queries; it "
    "runs over the keys, so that each query shares out one unit of attention"
)


QUESTION = Question(
    id="06.1",
    title="Scaled dot-product attention",
    answer="attention",
    arguments=("queries", "keys", "values"),
    outputs=(Output("context", "query d_v"), Output("weights", "query key")),
    reference=attention,
    primitives=True,
    difficulty="easy",
    minutes=8,
    next_step="write the body of `attention`: scores, softmax, weighted average.",
    parts=(
        Part("weights", 1, lambda rng: [draw_qkv(rng), draw_qkv(rng)], view=second),
        Part("context", 1, lambda rng: [draw_qkv(rng), draw_qkv(rng)], view=first),
        Part(
            "batch and heads",
            1,
            lambda rng: [draw_qkv(rng, 2), draw_qkv(rng, 2, 3)],
            only_failure_hint="right for one sequence, wrong when batch and head axes "
            "stand in front: count axes from the end (-1, -2)",
        ),
        Part(
            "no loop",
            1,
            lambda rng: (
                [
                    (normal(rng, n, 4), normal(rng, m, 4), normal(rng, m, 6))
                    for n, m in ((2, 3), (40, 5), (5, 40))
                ]
                + [tuple(normal(rng, b, 3, 4) for _ in "qkv") for b in (2, 40)]
            ),
            constant_steps=True,
        ),
    ),
    mistakes=(
        Mistake(
            "directions_alone",
            "queries and keys are divided by their lengths: that is the cosine, and a "
            "long key no longer counts for more; here it is the plain dot product",
            lambda q, k, v: attend(
                products(F.normalize(q, dim=-1), F.normalize(k, dim=-1))
                / math.sqrt(k.shape[-1]),
                v,
            ),
        ),
        Mistake("no_scale", SCALE_MISSING, lambda q, k, v: attend(products(q, k), v)),
        Mistake(
            "scale_d_v",
            "the scale uses d_v, the width of the values; the spread of q·k grows with "
            "the number of terms in that product, which is another width",
            lambda q, k, v: attend(products(q, k) / math.sqrt(v.shape[-1]), v),
        ),
        Mistake(
            "scale_keys",
            "the scale uses the number of keys; the spread of one score comes from the "
            "terms of its own dot product, however many keys there are",
            lambda q, k, v: attend(products(q, k) / math.sqrt(k.shape[-2]), v),
        ),
        Mistake(
            "scale_queries",
            "the scale uses the number of queries; the spread of one score comes from "
            "the terms of its own dot product, however many queries there are",
            lambda q, k, v: attend(products(q, k) / math.sqrt(q.shape[-2]), v),
        ),
        Mistake(
            "scale_no_root",
            "the scores are divided by d_k itself: d_k is their variance; what must be "
            "undone is their standard deviation",
            lambda q, k, v: attend(products(q, k) / k.shape[-1], v),
        ),
        Mistake(
            "scale_multiplied",
            "the scores are multiplied by √d_k: that makes their spread √d_k times "
            "wider still; the scale must undo it, so divide",
            lambda q, k, v: attend(products(q, k) * math.sqrt(k.shape[-1]), v),
        ),
        Mistake(
            "scale_after_softmax",
            "the scale comes after the softmax, so the rows no longer sum to one; it "
            "belongs on the scores, before it",
            scale_after_softmax,
        ),
        Mistake(
            "softmax_over_queries",
            OVER_QUERIES,
            lambda q, k, v: attend(products(q, k) / math.sqrt(k.shape[-1]), v, dim=-2),
            columns_sum_to_one,
        ),
        Mistake(
            "axis_from_the_left",
            "the axis of the softmax is counted from the left: right for one sequence, "
            "but with a batch axis in front it is no longer that of the keys; count "
            "from the end",
            lambda q, k, v: attend(products(q, k) / math.sqrt(k.shape[-1]), v, dim=1),
        ),
        Mistake(
            "all_axes_reversed",
            "`.T` reverses all axes, the batch with them; only the last two axes of "
            "the keys change places",
            lambda q, k, v: attend(q @ k.T / math.sqrt(k.shape[-1]), v),
        ),
        Mistake(
            "keys_not_transposed",
            "queries and keys are multiplied as they are: a score is a dot product "
            "along d_k, so d_k must be the axis that is summed over",
            lambda q, k, v: attend(q @ k / math.sqrt(k.shape[-1]), v),
        ),
        Mistake(
            "queries_transposed",
            "the scores have keys as rows: rows are queries, each with one score per "
            "key",
            lambda q, k, v: attend(products(k, q) / math.sqrt(k.shape[-1]), v),
        ),
        Mistake(
            "no_softmax",
            "the scores are used as weights as they are: without the softmax they may "
            "be negative and do not sum to one",
            no_softmax,
        ),
        Mistake(
            "best_key_alone",
            "all weight goes to the key with the largest score: the softmax gives "
            "every key a share, by its score",
            best_key_alone,
        ),
        Mistake(
            "one_softmax_for_all",
            "the whole table of weights sums to one; every query has a softmax of its "
            "own, so that each row does",
            one_softmax_for_all,
        ),
        Mistake(
            "order",
            "the two results come in the wrong order: context first, then weights",
            weights_first,
        ),
    ),
    packaged=("attention",),
)


# ----------------------------------------------------------------------- specimens


def by_loop(scores_of, weights_of):
    def answer(queries, keys, values):
        flat = [t.reshape(-1, *t.shape[-2:]) for t in (queries, keys, values)]
        weights = torch.stack(
            [weights_of(scores_of(q, k, v)) for q, k, v in zip(*flat)]
        )
        context = torch.einsum("bqk,bkd->bqd", weights, flat[2])
        lead = queries.shape[:-2]
        return (
            context.reshape(*lead, *context.shape[1:]),
            weights.reshape(*lead, *weights.shape[1:]),
        )

    return answer


def over_keys(scores):
    exponentials = (scores - scores.amax(1, keepdim=True)).exp()
    return exponentials / exponentials.sum(1, keepdim=True)


def dots(queries, keys):
    return (queries[:, None, :] * keys[None, :, :]).sum(-1)


def scaled(q, k, v):
    return dots(q, k) * q.shape[1] ** -0.5


def unit_rows(x):
    return x / dots(x, x).diag().sqrt()[:, None]


def by_einsum(q, k, v):
    scores = torch.einsum("...qd,...kd->...qk", q, k) * q.shape[-1] ** -0.5
    weights = torch.softmax(scores, -1)
    return torch.einsum("...qk,...kd->...qd", weights, v), weights


RIGHT = [
    by_einsum,
    lambda q, k, v: [t.float() for t in by_einsum(q.double(), k.double(), v.double())],
]
WRONG = [
    (
        "directions_alone",
        by_loop(lambda q, k, v: scaled(unit_rows(q), unit_rows(k), v), over_keys),
    ),
    ("no_scale", by_loop(lambda q, k, v: dots(q, k), over_keys)),
    ("scale_d_v", by_loop(lambda q, k, v: dots(q, k) / v.shape[1] ** 0.5, over_keys)),
    ("scale_keys", by_loop(lambda q, k, v: dots(q, k) / len(k) ** 0.5, over_keys)),
    ("scale_no_root", by_loop(lambda q, k, v: dots(q, k).div(q.shape[1]), over_keys)),
    (
        "scale_multiplied",
        by_loop(lambda q, k, v: dots(q * q.shape[1] ** 0.5, k), over_keys),
    ),
    ("softmax_over_queries", by_loop(scaled, lambda s: over_keys(s.T).T)),
    (
        "softmax_over_queries",
        by_loop(lambda q, k, v: dots(q, k), lambda s: s.softmax(0)),
    ),
    ("no_softmax", by_loop(scaled, lambda s: s)),
    ("one_softmax_for_all", by_loop(scaled, lambda s: s.exp() / s.exp().sum())),
    (
        "scale_after_softmax",
        lambda q, k, v: tuple(
            x / math.sqrt(q.shape[-1])
            for x in by_loop(lambda q, k, v: dots(q, k), over_keys)(q, k, v)
        ),
    ),
    ("order", lambda q, k, v: by_loop(scaled, over_keys)(q, k, v)[::-1]),
    ("best_key_alone", by_loop(scaled, lambda s: (s == s.amax(1, keepdim=True)) * 1.0)),
]
