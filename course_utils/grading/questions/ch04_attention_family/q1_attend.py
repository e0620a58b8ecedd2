"""`attend`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

Pair = tuple[Tensor, Tensor]


def scores_of(queries: Tensor, keys: Tensor, score: str, w: Tensor) -> Tensor:
    if score == "general":
        return queries @ w @ keys.mT
    products = queries @ keys.mT
    return products / math.sqrt(keys.shape[-1]) if score == "scaled dot" else products


def finish(scores: Tensor, values: Tensor, dim: int = -1) -> Pair:
    weights = torch.softmax(scores, dim=dim)
    return weights @ values, weights


def attend(q: Tensor, k: Tensor, v: Tensor, score: str, w: Tensor) -> Pair:
    return finish(scores_of(q, k, score, w), v)


def draw_asked(score: str, *batch: int) -> Any:
    def draw(rng: np.random.Generator) -> list[Args]:
        cases = []
        for _ in range(2):
            query, key, d_k, d_v, d_q = sizes(rng, 5)
            d_q = d_q if score == "general" else d_k
            cases.append(
                (
                    normal(rng, *batch, query, d_q),
                    normal(rng, *batch, key, d_k),
                    normal(rng, *batch, key, d_v),
                    score,
                    normal(rng, d_q, d_k),
                )
            )
        return cases

    return draw


def general_everywhere(q: Tensor, k: Tensor, v: Tensor, score: str, w: Tensor) -> Pair:
    return finish(q @ w @ k.mT, v)


def matrix_then_scale(q: Tensor, k: Tensor, v: Tensor, score: str, w: Tensor) -> Pair:
    return finish(scores_of(q @ w, k, score.replace("general", "dot"), w), v)


def always_scaled(q: Tensor, k: Tensor, v: Tensor, score: str, w: Tensor) -> Pair:
    return finish(scores_of(q, k, score, w) / math.sqrt(k.shape[-1]), v)


def all_scaled_once(q: Tensor, k: Tensor, v: Tensor, score: str, w: Tensor) -> Pair:
    plain = scores_of(q, k, score.replace("scaled ", ""), w)
    return finish(plain / math.sqrt(k.shape[-1]), v)


def general_scaled(q: Tensor, k: Tensor, v: Tensor, score: str, w: Tensor) -> Pair:
    scores = scores_of(q, k, score, w)
    return finish(scores / math.sqrt(k.shape[-1]) if score == "general" else scores, v)


def scale_ignored(q: Tensor, k: Tensor, v: Tensor, score: str, w: Tensor) -> Pair:
    return finish(scores_of(q, k, score.replace("scaled ", ""), w), v)


def without_softmax(q: Tensor, k: Tensor, v: Tensor, score: str, w: Tensor) -> Pair:
    scores = scores_of(q, k, score, w)
    return scores @ v, scores


def weights_first(q: Tensor, k: Tensor, v: Tensor, score: str, w: Tensor) -> Pair:
    return finish(scores_of(q, k, score, w), v)[::-1]


def no_root(q: Tensor, k: Tensor, v: Tensor, score: str, w: Tensor) -> Pair:
    scores = scores_of(q, k, score.replace("scaled ", ""), w)
    return finish(scores / (k.shape[-1] if score == "scaled dot" else 1), v)


QUESTION = Question(
    id="04.1",
    title="The operator with a score to choose",
    answer="attend",
    arguments=("queries", "keys", "values", "score", "w"),
    outputs=(Output("context", "query d_v"), Output("weights", "query key")),
    reference=attend,
    primitives=True,
    difficulty="medium",
    minutes=10,
    next_step="compute the scores by name first; what follows is the same for all.",
    parts=(
        Part("dot", 1, draw_asked("dot")),
        Part("scaled dot", 1, draw_asked("scaled dot")),
        Part("general", 1, draw_asked("general")),
        Part(
            "a batch",
            1,
            lambda rng: [
                case
                for score in ("dot", "scaled dot", "general")
                for case in draw_asked(score, 2)(rng)
            ],
            only_failure_hint="right for one sequence, wrong with a batch axis in "
            "front: count axes from the end (-1, -2)",
        ),
    ),
    mistakes=(
        Mistake(
            "softmax_over_queries",
            "the columns of the weights sum to one, the rows do not: each query shares "
            "out one unit of attention among the keys",
            lambda q, k, v, score, w: finish(scores_of(q, k, score, w), v, dim=-2),
        ),
        Mistake(
            "keys_averaged",
            "the keys are averaged, not the values: a key says where to look, a value "
            "what is fetched there",
            lambda q, k, v, score, w: finish(scores_of(q, k, score, w), k),
        ),
        Mistake(
            "axis_from_the_left",
            "the axis of the softmax is counted from the left: with a batch axis in "
            "front it is no longer that of the keys",
            lambda q, k, v, score, w: finish(scores_of(q, k, score, w), v, dim=1),
        ),
        Mistake(
            "always_scaled",
            "every score is divided by √d_k; only one of the three is called scaled",
            always_scaled,
        ),
        Mistake(
            "general_scaled",
            "the general score is divided by √d_k as well: its matrix is learned and "
            "can take care of its own size",
            general_scaled,
        ),
        Mistake(
            "scale_ignored",
            "'scaled dot' gives what 'dot' gives: the division is missing",
            scale_ignored,
        ),
        Mistake(
            "scale_no_root",
            "the scaled score is divided by d_k itself, not by its root",
            no_root,
        ),
        Mistake(
            "matrix_everywhere",
            "w is used whatever the score is called; 'dot' and 'scaled dot' compare "
            "query and key as they are",
            general_everywhere,
        ),
        Mistake(
            "matrix_then_scale",
            "the scale is right, but w is used in every score; 'dot' and 'scaled dot' "
            "compare query and key as they are",
            matrix_then_scale,
        ),
        Mistake(
            "matrix_transposed",
            "w stands the wrong way round: it has one row for each number of a query "
            "and one column for each number of a key",
            lambda q, k, v, score, w: (
                finish(q @ w.T @ k.mT, v)
                if score == "general"
                else attend(q, k, v, score, w)
            ),
        ),
        Mistake(
            "no_softmax",
            "the scores are used as weights as they are: they may be negative and do "
            "not sum to one",
            without_softmax,
        ),
        Mistake(
            "order",
            "the two results come in the wrong order: context first, then weights",
            weights_first,
        ),
        Mistake(
            "scaled_everywhere",
            "every score is divided by the root of d_k: only the score of that name is",
            all_scaled_once,
        ),
    ),
    packaged=("attend",),
)


# ----------------------------------------------------------------------- specimens


def shares(scores, axis=-1):
    powers = torch.exp(scores - scores.amax(axis, keepdim=True))
    return powers / powers.sum(axis, keepdim=True)


def pairs(queries, keys):
    return torch.einsum("...qd,...kd->...qk", queries, keys)


def operator(score_of, axis=-1, weigh=shares):
    def answer(queries, keys, values, score, w):
        weights = weigh(score_of(queries, keys, score, w), axis)
        return torch.einsum("...qk,...kv->...qv", weights, values), weights

    return answer


def named(queries, keys, score, w):
    if score.startswith("g"):
        return pairs(torch.einsum("...qi,ij->...qj", queries, w), keys)
    return pairs(queries, keys) * (keys.shape[-1] ** -0.5 if "sc" in score else 1)


RIGHT = [operator(named)]
WRONG = [
    ("softmax_over_queries", operator(named, axis=-2)),
    ("axis_from_the_left", operator(named, axis=1)),
    ("keys_averaged", lambda q, k, v, s, w: operator(named)(q, k, k, s, w)),
    (
        "always_scaled",
        operator(lambda q, k, s, w: named(q, k, s, w) / k.shape[-1] ** 0.5),
    ),
    ("scale_ignored", operator(lambda q, k, s, w: named(q, k, s[-7:], w))),
    (
        "scale_no_root",
        operator(
            lambda q, k, s, w: named(q, k, s, w) / (k.shape[-1] ** 0.5) ** ("sc" in s)
        ),
    ),
    (
        "general_scaled",
        operator(
            lambda q, k, s, w: (
                named(q, k, s, w) / (math.sqrt(k.shape[-1]) if s[0] == "g" else 1.0)
            )
        ),
    ),
    ("matrix_everywhere", operator(lambda q, k, s, w: named(q, k, "g", w))),
    (
        "matrix_then_scale",
        operator(
            lambda q, k, s, w: (
                named(q, k, "g", w) / (k.shape[-1] ** 0.5 if s[0] == "s" else 1.0)
            )
        ),
    ),
    ("no_softmax", operator(named, weigh=lambda scores, axis: scores)),
    ("order", lambda *given: operator(named)(*given)[::-1]),
]
