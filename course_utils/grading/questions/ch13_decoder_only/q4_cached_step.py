"""`cached_step`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question
from course_utils.models.attention import KeyValueCache, fused_attention

Step = tuple[Tensor, Tensor, Tensor]


def cached_step(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, keys: Tensor, values: Tensor
) -> Step:
    keys = torch.cat([keys, (x @ w_k)[:, None]], dim=1)
    values = torch.cat([values, (x @ w_v)[:, None]], dim=1)
    return look(x @ w_q, keys, values), keys, values


def look(
    query: Tensor, keys: Tensor, values: Tensor, power: float = 0.5, dim: int = -1
) -> Tensor:
    """Attend with one query for each text: (batch, d_k) to (batch, d_v)."""
    scores = torch.einsum("bd,btd->bt", query, keys) / keys.shape[-1] ** power
    return torch.einsum("bt,btd->bd", torch.softmax(scores, dim=dim), values)


def with_context(change: Any) -> Any:
    """The right cache, and a context that came about in another way."""

    def wrong(
        x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, keys: Tensor, values: Tensor
    ) -> Step:
        _, all_keys, all_values = cached_step(x, w_q, w_k, w_v, keys, values)
        return change(x @ w_q, all_keys, all_values), all_keys, all_values

    return wrong


def put_first(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, keys: Tensor, values: Tensor
) -> Step:
    keys = torch.cat([(x @ w_k)[:, None], keys], dim=1)
    values = torch.cat([(x @ w_v)[:, None], values], dim=1)
    return look(x @ w_q, keys, values), keys, values


def not_kept(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, keys: Tensor, values: Tensor
) -> Step:
    context, _, _ = cached_step(x, w_q, w_k, w_v, keys, values)
    return context, keys, values


def only_new(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, keys: Tensor, values: Tensor
) -> Step:
    context, keys, values = cached_step(x, w_q, w_k, w_v, keys, values)
    return context, keys[:, -1:], values[:, -1:]


def overwritten(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, keys: Tensor, values: Tensor
) -> Step:
    _, keys, values = cached_step(x, w_q, w_k, w_v, keys[:, :-1], values[:, :-1])
    return look(x @ w_q, keys, values), keys, values


def query_as_key(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, keys: Tensor, values: Tensor
) -> Step:
    return cached_step(x, w_q, w_q, w_v, keys, values)


def exchanged(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, keys: Tensor, values: Tensor
) -> Step:
    return cached_step(x, w_k, w_q, w_v, keys, values)


def scaled_by_width(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, keys: Tensor, values: Tensor
) -> Step:
    narrower = math.sqrt(keys.shape[-1] / x.shape[-1])
    _, keys, values = cached_step(x, w_q, w_k, w_v, keys, values)
    return look(x @ w_q * narrower, keys, values), keys, values


def first_key_only(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    return values[:, 0]


def draw_cache(rng: np.random.Generator) -> list[Args]:
    drawn: list[Args] = []
    for _ in range(2):
        batch, token, d_model, d_k, d_v = sizes(rng, 5)
        drawn.append(
            (
                normal(rng, batch, d_model),
                normal(rng, d_model, d_k),
                normal(rng, d_model, d_k),
                normal(rng, d_model, d_v),
                normal(rng, batch, token, d_k),
                normal(rng, batch, token, d_v),
            )
        )
    return drawn


QUESTION = Question(
    id="13.4",
    title="One step with a cache",
    answer="cached_step",
    arguments=("x", "w_q", "w_k", "w_v", "keys", "values"),
    outputs=(
        Output("context", "batch d_v"),
        Output("keys", "batch token d_k"),
        Output("values", "batch token d_v"),
    ),
    reference=cached_step,
    difficulty="medium",
    minutes=10,
    next_step="make the new token's key and value, and put them behind the old ones.",
    parts=(
        Part("the cache", 2, draw_cache, view=lambda value: value[1:]),
        Part("what the token finds", 2, draw_cache, view=lambda value: value[0]),
    ),
    mistakes=(
        Mistake(
            "itself_not_seen",
            "the new token looks at the old ones alone: under a causal mask it sees "
            "itself, too",
            with_context(lambda q, k, v: look(q, k[:, :-1], v[:, :-1])),
        ),
        Mistake(
            "itself_only",
            "the new token looks at itself alone: the old keys and values are what "
            "the cache is for",
            with_context(lambda q, k, v: v[:, -1]),
        ),
        Mistake(
            "first_key_only",
            "the query sees the first key alone: that is a triangle whose corner is at "
            "the first token; the one query here is the last",
            with_context(first_key_only),
        ),
        Mistake(
            "put_first",
            "the new key and value stand in front of the old ones: a cache is in the "
            "order of the text",
            put_first,
        ),
        Mistake(
            "not_kept",
            "the cache comes back as it was: the next token will not find this one",
            not_kept,
        ),
        Mistake(
            "only_new",
            "only the new key and value are returned: the old ones are forgotten",
            only_new,
        ),
        Mistake(
            "overwritten",
            "the last old token is overwritten: the new one comes after it",
            overwritten,
        ),
        Mistake(
            "no_scale",
            "the scores are not divided by the square root of d_k",
            with_context(lambda q, k, v: look(q, k, v, power=0)),
        ),
        Mistake(
            "softmax_over_batch",
            "the softmax runs over the batch: each text shares out its own weight, "
            "over its tokens",
            with_context(lambda q, k, v: look(q, k, v, dim=0)),
        ),
        Mistake(
            "query_as_key",
            "the new key is made with the matrix of the queries",
            query_as_key,
        ),
        Mistake(
            "exchanged",
            "query and key have exchanged their matrices: `w_q` makes the query, `w_k` "
            "the key that is kept",
            exchanged,
        ),
        Mistake(
            "root_missing",
            "the scores are divided by d_k: it is the square root of d_k",
            with_context(lambda q, k, v: look(q, k, v, power=1)),
        ),
        Mistake(
            "scaled_by_width",
            "the scores are divided by the root of d_model: what counts is the width "
            "of the keys, d_k",
            scaled_by_width,
        ),
        Mistake(
            "mean_of_values",
            "all tokens get the same weight: the query has to decide",
            with_context(lambda q, k, v: v.mean(dim=1)),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def with_the_cache(x, w_q, w_k, w_v, keys, values):
    """The package's cache and kernel, with a head axis of one."""
    room = (len(x), 1, keys.shape[1] + 3)
    cache = KeyValueCache(
        torch.zeros(*room, keys.shape[2]), torch.zeros(*room, values.shape[2])
    )
    cache.extend(keys[:, None], values[:, None])
    every = cache.extend((x @ w_k)[:, None, None], (x @ w_v)[:, None, None])
    context, _ = fused_attention((x @ w_q)[:, None, None], *every)
    return context[:, 0, 0], every[0][:, 0], every[1][:, 0]


def row_by_row(
    sees=lambda n: range(n),
    size=lambda query, x: math.sqrt(len(query)),
    order=lambda old, new: old + new,
):
    """Attention with Python sums: `sees` says which of the n keys count."""

    def answer(x, w_q, w_k, w_v, keys, values):
        contexts, new_keys, new_values = [], [], []
        for b in range(len(x)):
            own_keys = order(list(keys[b]), [x[b] @ w_k])
            own_values = order(list(values[b]), [x[b] @ w_v])
            query = x[b] @ w_q
            seen = list(sees(len(own_keys)))
            scores = [float(query @ own_keys[j]) / size(query, x[b]) for j in seen]
            powers = [math.exp(score - max(scores)) for score in scores]
            mix = sum(p * own_values[j] for p, j in zip(powers, seen)) / sum(powers)
            contexts.append(mix)
            new_keys.append(torch.stack(own_keys))
            new_values.append(torch.stack(own_values))
        return torch.stack(contexts), torch.stack(new_keys), torch.stack(new_values)

    return answer


RIGHT = [with_the_cache, row_by_row()]
WRONG = [
    ("itself_not_seen", row_by_row(sees=lambda n: range(n - 1))),
    ("itself_only", row_by_row(sees=lambda n: [n - 1])),
    ("first_key_only", row_by_row(sees=lambda n: [0])),
    ("put_first", row_by_row(order=lambda old, new: new + old)),
    ("overwritten", row_by_row(order=lambda old, new: old[:-1] + new)),
    ("no_scale", row_by_row(size=lambda query, x: 1.0)),
    ("root_missing", row_by_row(size=lambda query, x: len(query))),
    ("scaled_by_width", row_by_row(size=lambda query, x: math.sqrt(len(x)))),
    ("exchanged", lambda x, w_q, w_k, *rest: with_the_cache(x, w_k, w_q, *rest)),
    ("not_kept", lambda *args: (with_the_cache(*args)[0], *args[4:])),
]
