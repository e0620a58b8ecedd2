"""One operator, many scores: what a query may look at when it weighs the keys.

A score is any function of `queries` and `keys` that returns one number for each pair of
them. `attend` does the rest: softmax over the keys, weighted average of the values. The
additive score stands in `course_utils.models.rnn`, whose models are built on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.models.attention import masked_softmax
from course_utils.models.rnn import additive_scores
from course_utils.shapes import (
    Bool,
    Float,
    require_qkv,
    require_sequence,
    require_sizes,
    shape_of,
)

Score = Callable[[Tensor, Tensor], Tensor]


def attend(
    queries: Float[Tensor, "*batch query d_query"],
    keys: Float[Tensor, "*batch key d_key"],
    values: Float[Tensor, "*batch key d_v"],
    score: Score,
    mask: Bool[Tensor, "..."] | None = None,
) -> tuple[Float[Tensor, "*batch query d_v"], Float[Tensor, "*batch query key"]]:
    """Look values up by any score: attention in general.

    $c = sum_i a_i v_i$ with $a = softmax_i(s(q, k_i))$. Returns context and weights.
    Taught in chapter 04.
    """
    scores = score(queries, keys)
    require_scores(scores, queries, keys, values)
    weights = masked_softmax(scores, mask)
    return weights @ values, weights


def require_scores(
    scores: Tensor, queries: Tensor, keys: Tensor, values: Tensor
) -> None:
    """Refuse scores that are not one number for each query and key of this input.

    Used in chapter 04.
    """
    for name, tensor in (("queries", queries), ("keys", keys), ("values", values)):
        if tensor.dim() < 2:
            raise ValueError(
                f"{name} has shape {shape_of(tensor)}, expected at least two axes "
                "(tokens, features); one token alone is `x[None, :]`."
            )
    if keys.shape[-2] != values.shape[-2]:
        raise ValueError(
            f"keys {shape_of(keys)} and values {shape_of(values)} differ in their key "
            f"axis ({keys.shape[-2]} against {values.shape[-2]}); every key carries "
            "one value: make both from the same tokens."
        )
    if not isinstance(scores, Tensor):
        raise ValueError(
            f"score returned a {type(scores).__name__}, expected a tensor (…, query, "
            "key): one number for each query and key."
        )
    expected = (queries.shape[-2], keys.shape[-2])
    if tuple(scores.shape[-2:]) != expected:
        raise ValueError(
            f"score returned shape {shape_of(scores)} for queries {shape_of(queries)} "
            f"and keys {shape_of(keys)}, expected (…, query, key) = (…, {expected[0]}, "
            f"{expected[1]}): one number for each query and key."
        )
    try:
        torch.broadcast_shapes(scores.shape[:-2], values.shape[:-2])
    except RuntimeError:
        raise ValueError(
            f"values {shape_of(values)} and scores {shape_of(scores)} differ in the "
            "axes before the last two; every sequence of a batch has its own values."
        ) from None


def dot_scores(
    queries: Float[Tensor, "*batch query d_k"], keys: Float[Tensor, "*batch key d_k"]
) -> Float[Tensor, "*batch query key"]:
    """Score by similarity: $s(q, k) = q . k$, nothing to learn.

    Taught in chapter 04.
    """
    require_qkv(queries, keys, keys)
    return queries @ keys.transpose(-2, -1)


def scaled_dot_scores(
    queries: Float[Tensor, "*batch query d_k"], keys: Float[Tensor, "*batch key d_k"]
) -> Float[Tensor, "*batch query key"]:
    """Score by similarity, whatever the width: $s(q, k) = q . k / sqrt(d_k)$.

    Taught in chapter 04; the reason for the scale in 06.
    """
    return dot_scores(queries, keys) / math.sqrt(keys.shape[-1])


class LocationScore(nn.Module):
    """Score places, not keys: $s_i = w_i . q + b_i$, a learned $w_i$ for each place.

    The keys are never read; only how many there are matters. Taught in chapter 04.
    """

    def __init__(self, d_query: int, n_places: int):
        super().__init__()
        require_sizes(d_query=d_query, n_places=n_places)
        self.places = nn.Linear(d_query, n_places)

    def forward(
        self,
        queries: Float[Tensor, "batch query d_query"],
        keys: Float[Tensor, "batch key d_key"],
    ) -> Float[Tensor, "batch query key"]:
        """Return the scores of the first places, as many as there are keys."""
        require_sequence(queries, self.places.in_features, "queries")
        require_places(keys, self.places.out_features)
        return self.places(queries)[..., : keys.shape[-2]]


def require_places(keys: Tensor, n_places: int) -> None:
    """Refuse more keys than there are learned places. Used in chapter 04."""
    if keys.dim() < 2 or keys.shape[-2] > n_places:
        raise ValueError(
            f"keys has shape {shape_of(keys)}, expected (batch, key, d_key) with at "
            f"most {n_places} keys: a location score knows {n_places} places and no "
            "other; build it with a larger n_places."
        )


class GeneralScore(nn.Module):
    """Score by a learned comparison of query and key: $s(q, k) = q W k^T$, rows.

    Also called bilinear or multiplicative. Taught in chapter 04.
    """

    def __init__(self, d_query: int, d_key: int):
        super().__init__()
        require_sizes(d_query=d_query, d_key=d_key)
        self.w = nn.Linear(d_query, d_key, bias=False)

    def forward(
        self,
        queries: Float[Tensor, "batch query d_query"],
        keys: Float[Tensor, "batch key d_key"],
    ) -> Float[Tensor, "batch query key"]:
        """Carry the queries into the keys' space, then take dot products."""
        require_sequence(queries, self.w.in_features, "queries")
        require_sequence(keys, self.w.out_features, "keys")
        return dot_scores(self.w(queries), keys)


class AdditiveScore(nn.Module):
    """Score by a small network: $s(q, k) = tanh(q W + k U + b) . v$.

    Taught in chapter 04; as the score of a translation model in 03.
    """

    def __init__(self, d_query: int, d_key: int, d_score: int):
        super().__init__()
        require_sizes(d_query=d_query, d_key=d_key, d_score=d_score)
        self.query = nn.Linear(d_query, d_score)
        self.key = nn.Linear(d_key, d_score, bias=False)
        self.v = nn.Parameter(torch.empty(d_score).uniform_(-1, 1) / d_score**0.5)

    def forward(
        self,
        queries: Float[Tensor, "batch query d_query"],
        keys: Float[Tensor, "batch key d_key"],
    ) -> Float[Tensor, "batch query key"]:
        """Project queries and keys to d_score numbers, then compare."""
        require_sequence(queries, self.query.in_features, "queries")
        require_sequence(keys, self.key.in_features, "keys")
        return additive_scores(self.query(queries), self.key(keys), self.v)


check_arguments(__name__)
