"""Questions of chapter 04: one operator with a score to choose, and location."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import normal, sizes

Pair = tuple[Tensor, Tensor]

# --------------------------------------------------------------- 04.1 pluggable score


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


OPERATOR = Question(
    id="04.1",
    title="The operator with a score to choose",
    answer="attend",
    arguments=("queries", "keys", "values", "score", "w"),
    outputs=(Output("context", "query d_v"), Output("weights", "query key")),
    reference=attend,
    primitives=True,
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
            alone="right for one sequence, wrong with a batch axis in front: count "
            "axes from the end (-1, -2)",
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
    ),
    packaged=("attend",),
)


# ------------------------------------------------------- 04.2 location, as dot product


def as_dot(queries: Tensor, weight: Tensor, bias: Tensor) -> Pair:
    ones = torch.ones(len(queries), 1)
    return torch.cat([queries, ones], 1), torch.cat([weight, bias[:, None]], 1)


def draw_location(rng: np.random.Generator) -> list[Args]:
    cases = []
    for _ in range(2):
        query, place, d_query = sizes(rng, 3)
        weight, bias = normal(rng, place, d_query), 2 * normal(rng, place)
        cases.append((normal(rng, query, d_query), weight, bias))
    return cases


def row_softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def location_weights(args: Args) -> np.ndarray:
    queries, weight, bias = (np.asarray(x, np.float64) for x in args)
    return row_softmax(queries @ weight.T + bias)


def dot_weights(value: Any) -> np.ndarray:
    queries, keys = (np.asarray(x, np.float64) for x in value)
    return row_softmax(queries @ keys.T)


def fits(args: Args, value: Any) -> bool:
    queries, keys = value
    return (
        len(queries) == len(args[0])
        and len(keys) == len(args[1])
        and queries.shape[1] == keys.shape[1]
    )


def same_weights(args: Args, value: Any) -> bool:
    return fits(args, value) and np.allclose(
        dot_weights(value), location_weights(args), atol=1e-3
    )


def gives(make: Any) -> Any:
    """Recognise a pair by the scores it leads to, however it was written."""

    def sign(args: Args, value: Any) -> bool:
        wrong = row_softmax(make(*(np.asarray(x, np.float64) for x in args)))
        return fits(args, value) and np.allclose(dot_weights(value), wrong, atol=1e-3)

    return sign


LOCATION = Question(
    id="04.2",
    title="The location score is a dot product",
    answer="as_dot",
    arguments=("queries", "weight", "bias"),
    outputs=(
        Output("new_queries", "query d", free=True),
        Output("new_keys", "key d", free=True),
    ),
    reference=as_dot,
    next_step="look for one number to append to every query, and one to every key.",
    parts=(
        Part("the same weights", 2, draw_location, accepts=same_weights),
        Part(
            "without a bias",
            1,
            lambda rng: [(q, w, np.zeros_like(b)) for q, w, b in draw_location(rng)],
            accepts=same_weights,
        ),
    ),
    mistakes=(
        Mistake(
            "no_bias",
            "the bias is lost: this is right only where all of it is zero",
            lambda queries, weight, bias: (queries.clone(), weight.clone()),
            gives(lambda q, w, b: q @ w.T),
        ),
        Mistake(
            "bias_twice",
            "the bias is counted twice: what do the appended numbers multiply to?",
            lambda q, w, b: (
                torch.cat([q, torch.ones(len(q), 1)], 1),
                torch.cat([w, 2 * b[:, None]], 1),
            ),
            gives(lambda q, w, b: q @ w.T + 2 * b),
        ),
        Mistake(
            "bias_negative",
            "the bias enters with the wrong sign",
            lambda q, w, b: (
                torch.cat([q, -torch.ones(len(q), 1)], 1),
                torch.cat([w, b[:, None]], 1),
            ),
            gives(lambda q, w, b: q @ w.T - b),
        ),
        Mistake(
            "bias_in_every_entry",
            "the bias is added to the entries of the keys, so that it is multiplied by "
            "the query; it has to meet a constant",
            lambda q, w, b: (q.clone(), w + b[:, None]),
            gives(lambda q, w, b: q @ (w + b[:, None]).T),
        ),
        Mistake(
            "one_beside_the_bias",
            "both got a 1 (or the same number for all): a number that every key has "
            "moves all scores alike, and the softmax does not see it",
            lambda q, w, b: (
                torch.cat([q, torch.ones(len(q), 1)], 1),
                torch.cat([w, torch.full((len(w), 1), 3.0)], 1),
            ),
            lambda args, value: (
                value[1].shape[1] > args[1].shape[1]
                and gives(lambda q, w, b: q @ w.T)(args, value)
            ),
        ),
        Mistake(
            "widths_differ",
            "the new queries and the new keys differ in width: a dot product needs as "
            "many numbers on both sides",
            lambda q, w, b: (q.clone(), torch.cat([w, b[:, None]], 1)),
            lambda args, value: value[0].shape[1] != value[1].shape[1],
        ),
        Mistake(
            "roles_swapped",
            "the places ask and the queries are asked: the first result has one row "
            "for each query, the second one row for each place",
            lambda q, w, b: as_dot(q, w, b)[::-1],
            lambda args, value: (
                len(value[0]) == len(args[1]) and len(value[1]) == len(args[0])
            ),
        ),
    ),
)

QUESTIONS = (OPERATOR, LOCATION)
