"""`as_dot`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q1_attend import Pair


def as_dot(queries: Tensor, weight: Tensor, bias: Tensor) -> Pair:
    ones = torch.ones(len(queries), 1)
    return torch.cat([queries, ones], 1), torch.cat([weight, bias[:, None]], 1)


def draw_location(rng: np.random.Generator) -> list[Args]:
    cases = []
    for _ in range(2):
        query, place, d_query = sizes(rng, 3)
        while place == d_query + 1:  # keys that are turned round would fit
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


def with_one(queries: np.ndarray, after: int) -> np.ndarray:
    return np.pad(queries, ((0, 0), (1 - after, after)), constant_values=1)


def is_multiple(args: Args, value: Any) -> bool:
    """Whether the products are the scores times one number."""
    queries, weight, bias = (np.asarray(x, np.float64) for x in args)
    products, due = np.asarray(value[0]) @ np.asarray(value[1]).T, queries @ weight.T
    due = due + bias
    factor = (products * due).sum() / (due**2).sum()
    return bool(factor > 0 and np.allclose(products, factor * due, atol=1e-3))


QUESTION = Question(
    id="04.2",
    title="The location score is a dot product",
    answer="as_dot",
    arguments=("queries", "weight", "bias"),
    outputs=(
        Output("new_queries", "query d", free=True),
        Output("new_keys", "key d", free=True),
    ),
    reference=as_dot,
    difficulty="medium",
    minutes=8,
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
            "keys_in_columns",
            "the keys are turned round: the second result has one row for each place, "
            "and it is the product that takes its transpose",
            lambda q, w, b: (as_dot(q, w, b)[0], as_dot(q, w, b)[1].T),
            lambda args, value: (
                len(value[1]) == value[0].shape[1] != value[1].shape[1] == len(args[1])
            ),
        ),
        Mistake(
            "ends_do_not_meet",
            "the appended numbers do not meet: what stands first in a query is "
            "multiplied by what stands first in a key",
            lambda q, w, b: (as_dot(q, w, b)[0], torch.cat([b[:, None], w], 1)),
            lambda args, value: (
                gives(lambda q, w, b: with_one(q, 0) @ np.c_[w, b].T)(args, value)
                or gives(lambda q, w, b: with_one(q, 1) @ np.c_[b, w].T)(args, value)
            ),
        ),
        Mistake(
            "scaled",
            "all products are the location scores times one number: a softmax of "
            "larger scores is sharper, and nothing divides them here",
            lambda q, w, b: (
                as_dot(q, w, b)[0] * q.shape[1] ** 0.5,
                as_dot(q, w, b)[1],
            ),
            lambda args, value: fits(args, value) and is_multiple(args, value),
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
        Mistake(
            "other_products",
            "the dot products of these queries and keys are not the location scores: "
            "write down one of them, term by term, and see which number meets which",
            lambda q, w, b: (q.flip(1), w),
            lambda args, value: fits(args, value) and not same_weights(args, value),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def appended(query_column, key_column):
    def answer(queries, weight, bias):
        return (
            F.pad(queries, (0, 1), value=query_column),
            torch.column_stack([weight, key_column(bias)]),
        )

    return answer


RIGHT = [
    appended(1.0, lambda b: b),
    appended(-0.5, lambda b: -2 * b),
    lambda q, w, b: (F.pad(q, (1, 0), value=1.0), torch.column_stack([b, w])),
    lambda q, w, b: (torch.eye(len(q)), (q @ w.T + b).T),
]
WRONG = [
    ("no_bias", lambda q, w, b: (q * 2, w / 2)),
    ("no_bias", appended(0.0, lambda b: b)),
    ("bias_twice", appended(2.0, lambda b: b)),
    ("bias_negative", appended(1.0, lambda b: -b)),
    ("bias_in_every_entry", lambda q, w, b: (q, (w.T + b).T)),
    ("widths_differ", lambda q, w, b: (F.pad(q, (0, 2)), w)),
    (
        "roles_swapped",
        lambda q, w, b: (torch.column_stack([w, b]), F.pad(q, (0, 1), value=1.0)),
    ),
]
