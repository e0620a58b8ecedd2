"""The questions of chapter 06, queries, keys and values, with their wrong answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question

# ------------------------------------------------------------------------- the inputs


def sizes(rng: np.random.Generator, count: int, least: int = 3) -> list[int]:
    """Draw sizes that all differ, so that a swapped axis cannot hide."""
    return [
        int(n) for n in rng.permutation(np.arange(least, least + count + 3))[:count]
    ]


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


def draw_qkv(rng: np.random.Generator, *batch: int) -> Args:
    query, key, d_k, d_v = sizes(rng, 4)
    return (
        normal(rng, *batch, query, d_k),
        normal(rng, *batch, key, d_k),
        normal(rng, *batch, key, d_v),
    )


def first(value: Any) -> Any:
    return value[0]


def second(value: Any) -> Any:
    return value[1]


# ----------------------------------------------------------------------- 06.1 attention


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

ATTENTION = Question(
    id="06.1",
    title="Scaled dot-product attention",
    answer="attention",
    arguments=("queries", "keys", "values"),
    outputs=(Output("context", "query d_v"), Output("weights", "query key")),
    reference=attention,
    primitives=True,
    next_step="write the body of `attention`: scores, softmax, weighted average.",
    parts=(
        Part("weights", 1, lambda rng: [draw_qkv(rng), draw_qkv(rng)], view=second),
        Part("context", 1, lambda rng: [draw_qkv(rng), draw_qkv(rng)], view=first),
        Part(
            "batch and heads",
            1,
            lambda rng: [draw_qkv(rng, 2), draw_qkv(rng, 2, 3)],
            alone="right for one sequence, wrong when batch and head axes stand in "
            "front: count axes from the end (-1, -2)",
        ),
        Part(
            "no loop",
            1,
            lambda rng: [
                (normal(rng, n, 4), normal(rng, m, 4), normal(rng, m, 6))
                for n, m in ((2, 3), (9, 5), (5, 11))
            ],
            steady=True,
        ),
    ),
    mistakes=(
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
            "the scores are multiplied by √d_k: the scale must undo their spread, not "
            "double it",
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


# ------------------------------------------------------------------- 06.2 fused weights


def split_fused(x: Tensor, weight: Tensor, d_k: int) -> tuple[Tensor, ...]:
    d_v = weight.shape[0] - 2 * d_k
    return tuple((x @ weight.T).split([d_k, d_k, d_v], dim=-1))


def split_as(order: str, x: Tensor, weight: Tensor, d_k: int) -> tuple[Tensor, ...]:
    """Split as if the rows of the fused weight stood in another order."""
    width = {"q": d_k, "k": d_k, "v": weight.shape[0] - 2 * d_k}
    parts = (x @ weight.T).split([width[name] for name in order], dim=-1)
    return tuple(parts[order.index(name)] for name in "qkv")


def swapped_widths(x: Tensor, weight: Tensor, d_k: int) -> tuple[Tensor, ...]:
    d_v = weight.shape[0] - 2 * d_k
    parts = (x @ weight.T).split([d_v, d_v, weight.shape[0] - 2 * d_v], dim=-1)
    return tuple(parts)


def draw_fused(rng: np.random.Generator, *batch: int) -> Args:
    token, d_model, d_k, more = sizes(rng, 4)
    d_v = int(rng.choice([n for n in range(d_k - 1, d_k + 4) if n != d_k]))
    weight = normal(rng, 2 * d_k + d_v, d_model + 2 * more)
    return normal(rng, *batch, token, d_model + 2 * more), weight, d_k


def draw_fused_batches(rng: np.random.Generator) -> list[Args]:
    return [draw_fused(rng, 2), draw_fused(rng, 5)]


FUSED = Question(
    id="06.2",
    title="One matrix for queries, keys and values",
    answer="split_fused",
    arguments=("x", "weight", "d_k"),
    outputs=(
        Output("queries", "token d_k"),
        Output("keys", "token d_k"),
        Output("values", "token d_v"),
    ),
    reference=split_fused,
    next_step="write the body of `split_fused`: one product, then a split.",
    parts=(
        Part("queries", 1, draw_fused_batches, view=first),
        Part("keys", 1, draw_fused_batches, view=second),
        Part("values", 1, draw_fused_batches, view=lambda value: value[2]),
        Part(
            "one sequence alone",
            1,
            lambda rng: [draw_fused(rng)],
            alone="right for a batch, wrong for one sequence with no batch axis: count "
            "axes from the end (-1, -2)",
        ),
    ),
    mistakes=(
        Mistake(
            "equal_thirds",
            "the columns are cut into three equal parts; values may be wider than "
            "queries and keys: only two of the widths are d_k",
            lambda x, weight, d_k: (x @ weight.T).chunk(3, dim=-1),
        ),
        Mistake(
            "keys_before_queries",
            "queries and keys have changed places: the fused rows come as queries, "
            "keys, values",
            lambda x, weight, d_k: split_as("kqv", x, weight, d_k),
        ),
        Mistake(
            "values_first",
            "the split takes the values first: the fused rows come as queries, keys, "
            "values",
            lambda x, weight, d_k: split_as("vqk", x, weight, d_k),
        ),
        Mistake(
            "widths_swapped",
            "d_k and d_v have changed places in the split: two parts are d_k wide, "
            "what remains is d_v",
            swapped_widths,
        ),
        Mistake(
            "weight_not_transposed",
            "the weight is used as it lies: nn.Linear stores (out, in) and computes "
            "x Wᵀ, so that d_model is the axis summed over",
            lambda x, weight, d_k: (x @ weight).split(
                [d_k, d_k, weight.shape[0] - 2 * d_k], dim=-1
            ),
        ),
        Mistake(
            "tokens_split",
            "the split cuts the token axis: every token needs a query, a key and a "
            "value; cut the features",
            lambda x, weight, d_k: (x @ weight.T).split(
                [d_k, d_k, weight.shape[0] - 2 * d_k], dim=-2
            ),
        ),
        Mistake(
            "input_split",
            "the input's features are shared out, so that the queries see only some of "
            "them; x stays whole, the rows of the weight are what is split",
            lambda x, weight, d_k: x.split([d_k, d_k, x.shape[-1] - 2 * d_k], dim=-1),
        ),
        Mistake(
            "interleaved",
            "the rows are dealt out in turn (every third); they lie in blocks: all "
            "queries, then all keys, then all values",
            lambda x, weight, d_k: tuple((x @ weight.T)[..., i::3] for i in range(3)),
        ),
    ),
)


# ----------------------------------------------------------------- 06.3 cross-attention


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


CROSS = Question(
    id="06.3",
    title="Cross-attention",
    answer="cross_attention",
    arguments=("x", "memory", "w_q", "w_k", "w_v"),
    outputs=(Output("context", "query d_v"), Output("weights", "query key")),
    reference=cross_attention,
    next_step="decide which sequence asks and which answers, then call your "
    "`attention`.",
    parts=(
        Part("weights", 1, lambda rng: [draw_cross(rng, True)], view=second),
        Part("context", 1, lambda rng: [draw_cross(rng, True)], view=first),
        Part(
            "a memory of another width",
            1,
            lambda rng: [draw_cross(rng, False)],
            alone="right while x and memory are equally wide, wrong when they are not: "
            "each weight multiplies the sequence it was made for",
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

QUESTIONS = (ATTENTION, FUSED, CROSS)
