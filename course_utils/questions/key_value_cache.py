"""More questions of chapter 13: a step with a cache, and what a model costs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import normal, sizes

# ------------------------------------------------------------ 13.4 a step with a cache

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


CACHE = Question(
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

# ------------------------------------------------------------------- 13.5 what it costs


def costs(
    n_tokens: int, d_model: int, n_layers: int, length: int, tied: bool
) -> tuple[int, int]:
    return parameters(n_tokens, d_model, n_layers, length, tied), stored(
        d_model, n_layers, length
    )


def parameters(
    n_tokens: int,
    d_model: int,
    n_layers: int,
    length: int,
    tied: bool,
    tables: int | None = None,
    places: int = 1,
    last_norm: int = 2,
    biases: bool = True,
    attentions: int = 1,
    norms: int = 2,
    matrices: int = 4,
    wide: tuple[int, int] = (8, 5),
) -> int:
    """Count a GPT's parameters; the options leave something out or put it in twice.

    `wide` counts the feed-forward layer: its weights in d_model², biases in d_model.
    """
    tables = (1 if tied else 2) if tables is None else tables
    attention = matrices * (d_model**2 + d_model * biases)
    feed_forward = wide[0] * d_model**2 + wide[1] * d_model * biases
    block = attentions * attention + feed_forward + norms * 2 * d_model
    return (
        tables * n_tokens * d_model
        + places * length * d_model
        + n_layers * block
        + last_norm * d_model
    )


def stored(d_model: int, n_layers: int, length: int) -> int:
    return 2 * n_layers * length * d_model * 4


def miscounted(name: str, hint: str, **options: Any) -> Mistake:
    """A mistake in the parameters, known whatever the bytes are."""

    def wrong(
        n_tokens: int, d_model: int, n_layers: int, length: int, tied: bool
    ) -> tuple[int, int]:
        return (
            parameters(n_tokens, d_model, n_layers, length, tied, **options),
            stored(d_model, n_layers, length),
        )

    return Mistake(name, hint, wrong, lambda args, value: value[0] == wrong(*args)[0])


def misstored(name: str, hint: str, change: Any) -> Mistake:
    """A mistake in the bytes, known whatever the parameters are."""

    def wrong(
        n_tokens: int, d_model: int, n_layers: int, length: int, tied: bool
    ) -> tuple[int, int]:
        right = stored(d_model, n_layers, length)
        return (
            parameters(n_tokens, d_model, n_layers, length, tied),
            int(change(right, d_model, n_layers, length)),
        )

    return Mistake(name, hint, wrong, lambda args, value: value[1] == wrong(*args)[1])


def draw_models(rng: np.random.Generator) -> list[Args]:
    return [
        (
            int(rng.integers(50, 90)),
            int(rng.integers(3, 6)) * 4,
            int(rng.integers(2, 5)),
            int(rng.integers(30, 45)),
            tied,
        )
        for tied in (True, False)
    ]


COSTS = Question(
    id="13.5",
    title="Parameters and bytes",
    answer="costs",
    arguments=("n_tokens", "d_model", "n_layers", "length", "tied"),
    outputs=(Output("parameters"), Output("bytes")),
    reference=costs,
    tolerance=1e-7,
    next_step="tables, blocks, the last norm; then what a layer keeps of each token.",
    parts=(
        Part("parameters", 2, draw_models, view=lambda value: value[0]),
        Part("bytes of the cache", 2, draw_models, view=lambda value: value[1]),
    ),
    mistakes=(
        miscounted(
            "always_two_tables",
            "a tied model has one table for reading and writing: it is counted twice",
            tables=2,
        ),
        miscounted(
            "always_one_table",
            "a model that is not tied has a second table, for writing",
            tables=1,
        ),
        miscounted(
            "no_positions",
            "the table of positions is missing: one row for each place",
            places=0,
        ),
        miscounted(
            "no_last_norm",
            "the norm after the last block is missing",
            last_norm=0,
        ),
        miscounted(
            "norms_without_shift",
            "a norm has a scale and a shift for each feature",
            last_norm=1,
            norms=1,
        ),
        miscounted(
            "no_biases",
            "the matrices of attention and feed-forward layer have biases",
            biases=False,
        ),
        miscounted(
            "cross_attention",
            "every block is counted with a second attention: there is no memory to ask",
            attentions=2,
            norms=3,
        ),
        miscounted(
            "one_norm_a_block",
            "every block has two norms, one before the attention and one before the "
            "feed-forward layer",
            norms=1,
        ),
        miscounted(
            "no_norms",
            "the norms are missing: two in every block and one at the end, each with a "
            "scale and a shift",
            norms=0,
            last_norm=0,
        ),
        miscounted(
            "no_block_norms",
            "the norms inside the blocks are missing: two in each, with a scale and a "
            "shift",
            norms=0,
        ),
        miscounted(
            "three_matrices",
            "attention has a fourth matrix: after those of queries, keys and values "
            "the one that mixes the heads",
            matrices=3,
        ),
        miscounted(
            "narrow_feed_forward",
            "the feed-forward layer is counted as wide as the model: inside it is four "
            "times as wide",
            wide=(2, 2),
        ),
        miscounted(
            "one_way_feed_forward",
            "the feed-forward layer has two matrices: one makes a token four times as "
            "wide, the other brings it back",
            wide=(4, 4),
        ),
        miscounted(
            "short_biases",
            "a bias has one number for each output: the wide layer has four times "
            "d_model of them",
            wide=(8, 2),
        ),
        misstored(
            "keys_only",
            "half of the cache is missing: each token leaves a key and a value",
            lambda right, *sizes: right / 2,
        ),
        misstored(
            "one_layer",
            "that is the cache of one layer; each layer has keys and values of its own",
            lambda right, d, layers, length: right / layers,
        ),
        misstored(
            "numbers_not_bytes",
            "that counts numbers; a float32 has four bytes",
            lambda right, *sizes: right / 4,
        ),
        misstored(
            "table_of_weights",
            "the weights of attention are not kept: they are made anew by each query; "
            "keys and values stay",
            lambda right, d, layers, length: 4 * layers * length**2,
        ),
        misstored(
            "queries_too",
            "queries are counted as well: an old token's query is never asked again",
            lambda right, *sizes: 1.5 * right,
        ),
    ),
)

QUESTIONS = (CACHE, COSTS)
