"""`cross_attention`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import first, normal, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q1_attention import (
    OVER_QUERIES,
    SCALE_MISSING,
    attend,
    attention,
    columns_sum_to_one,
    products,
)


def cross_attention(
    x: Tensor, memory: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor
) -> tuple[Tensor, Tensor]:
    return attention(x @ w_q, memory @ w_k, memory @ w_v)


def draw_cross(rng: np.random.Generator, same_width: bool) -> Args:
    query, key, d_model, d_memory, d_k, d_v = sizes(rng, 6)
    d_memory = d_model if same_width else d_memory
    scale = np.float32(1 / math.sqrt(d_model))
    return (
        normal(rng, 2, query, d_model),
        normal(rng, 2, key, d_memory),
        normal(rng, d_model, d_k) * scale,
        normal(rng, d_memory, d_k) * scale,
        normal(rng, d_memory, d_v) * scale,
    )


QUESTION = Question(
    id="06.3",
    title="Cross-attention",
    answer="cross_attention",
    arguments=("x", "memory", "w_q", "w_k", "w_v"),
    outputs=(Output("context", "query d_v"), Output("weights", "query key")),
    reference=cross_attention,
    difficulty="easy",
    minutes=5,
    next_step="decide which sequence asks and which answers, then call your "
    "`attention`.",
    parts=(
        Part("weights", 1, lambda rng: [draw_cross(rng, True)], view=second),
        Part("context", 1, lambda rng: [draw_cross(rng, True)], view=first),
        Part(
            "a memory of another width",
            1,
            lambda rng: [draw_cross(rng, False)],
            only_failure_hint="right while x and memory are equally wide, wrong when "
            "they are not: each weight multiplies the sequence it was made for",
        ),
    ),
    mistakes=(
        Mistake(
            "roles_swapped",
            "the memory asks and x answers: the sequence to be updated asks, so "
            "queries come from x, keys and values from the memory",
            lambda x, m, q, k, v: attention(m @ q, x @ k, x @ v),
        ),
        Mistake(
            "values_from_x",
            "the values come from x: what is fetched lies where the keys are, one "
            "value for each key",
            lambda x, m, q, k, v: attention(x @ q, m @ k, x @ v),
        ),
        Mistake(
            "keys_from_x",
            "the keys come from x: a query looks for its match in the memory, so the "
            "memory must advertise",
            lambda x, m, q, k, v: attention(x @ q, x @ k, m @ v),
        ),
        Mistake(
            "self_attention",
            "the memory is never looked at: this is self-attention of x",
            lambda x, m, q, k, v: attention(x @ q, x @ k, x @ v),
        ),
        Mistake(
            "memory_self_attention",
            "x is never looked at: this is self-attention of the memory, with a row "
            "per memory token instead of one per token of x",
            lambda x, m, q, k, v: attention(m @ q, m @ k, m @ v),
        ),
        Mistake(
            "softmax_over_queries",
            OVER_QUERIES,
            lambda x, m, q, k, v: attend(
                products(x @ q, m @ k) / math.sqrt(k.shape[-1]), m @ v, dim=-2
            ),
            columns_sum_to_one,
        ),
        Mistake(
            "no_scale",
            SCALE_MISSING,
            lambda x, m, q, k, v: attend(products(x @ q, m @ k), m @ v),
        ),
        Mistake(
            "scale_d_model",
            "the scale uses d_model, the width before the projection; the dot product "
            "has as many terms as a query has entries after it",
            lambda x, m, q, k, v: attend(
                products(x @ q, m @ k) / math.sqrt(x.shape[-1]), m @ v
            ),
        ),
        Mistake(
            "values_not_projected",
            "the context is an average of the memory itself: w_v is not used, so what "
            "a token advertises and what it carries cannot differ",
            lambda x, m, q, k, v: attention(x @ q, m @ k, m),
        ),
    ),
    packaged=("CrossAttention",),
)


# ----------------------------------------------------------------------- specimens


def attend_by_bmm(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT * keys.size(-1) ** -0.5, -1)
    return torch.bmm(weights, values), weights


RIGHT = [lambda x, m, q, k, v: attend_by_bmm(x @ q, m @ k, m @ v)]
WRONG = [
    ("roles_swapped", lambda x, m, q, k, v: attend_by_bmm(m @ q, x @ k, x @ v)),
    ("self_attention", lambda x, m, q, k, v: attend_by_bmm(x @ q, x @ k, x @ v)),
    ("values_from_x", lambda x, m, q, k, v: attend_by_bmm(x @ q, m @ k, x @ v)),
    ("values_not_projected", lambda x, m, q, k, v: attend_by_bmm(x @ q, m @ k, m)),
    (
        "scale_d_model",
        lambda x, m, q, k, v: attend_by_bmm(
            x @ q * math.sqrt(k.size(1) / x.size(2)), m @ k, m @ v
        ),
    ),
]
