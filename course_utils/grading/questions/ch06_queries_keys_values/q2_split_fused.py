"""`split_fused`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import first, normal, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def split_fused(x: Tensor, weight: Tensor, d_k: int) -> tuple[Tensor, ...]:
    d_v = weight.shape[0] - 2 * d_k
    return tuple((x @ weight.T).split([d_k, d_k, d_v], dim=-1))


def split_as(order: str, x: Tensor, weight: Tensor, d_k: int) -> tuple[Tensor, ...]:
    """Split as if the rows of the fused weight stood in another order."""
    width = {"q": d_k, "k": d_k, "v": weight.shape[0] - 2 * d_k}
    parts = (x @ weight.T).split([width[name] for name in order], dim=-1)
    return tuple(parts[order.index(name)] for name in "qkv")


def cut_at(x: Tensor, weight: Tensor, d_k: int, end: int) -> tuple[Tensor, ...]:
    """The right split, but for the place where the values end."""
    made = x @ weight.T
    return made[..., :d_k], made[..., d_k : 2 * d_k], made[..., 2 * d_k : end]


def swapped_widths(x: Tensor, weight: Tensor, d_k: int) -> tuple[Tensor, ...]:
    d_v = weight.shape[0] - 2 * d_k
    parts = (x @ weight.T).split([d_v, d_v, weight.shape[0] - 2 * d_v], dim=-1)
    return tuple(parts)


def draw_fused(rng: np.random.Generator, *batch: int, wide: bool = False) -> Args:
    """Draw tokens and a fused weight; where it is wide, d_v is more than d_model."""
    token, d_model, d_k, more = sizes(rng, 4)
    d_model += 2 * more
    d_v = int(rng.choice([n for n in range(d_k - 1, d_k + 4) if n != d_k]))
    d_v = d_model + 2 if wide else d_v
    weight = normal(rng, 2 * d_k + d_v, d_model)
    return normal(rng, *batch, token, d_model), weight, d_k


def draw_fused_batches(rng: np.random.Generator) -> list[Args]:
    return [draw_fused(rng, 2), draw_fused(rng, 5)]


def draw_wide_batches(rng: np.random.Generator) -> list[Args]:
    return [*draw_fused_batches(rng), draw_fused(rng, 2, wide=True)]


QUESTION = Question(
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
    difficulty="easy",
    minutes=6,
    next_step="write the body of `split_fused`: one product, then a split.",
    parts=(
        Part("queries", 1, draw_fused_batches, view=first),
        Part("keys", 1, draw_fused_batches, view=second),
        Part("values", 1, draw_wide_batches, view=lambda value: value[2]),
        Part(
            "one sequence alone",
            1,
            lambda rng: [draw_fused(rng)],
            only_failure_hint="right for a batch, wrong for one sequence with no "
            "batch axis: count axes from the end (-1, -2)",
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
        Mistake(
            "values_as_wide_as_tokens",
            "the values are taken to be d_model wide, as the tokens are: d_v is any "
            "width, and the number of the weight's rows says which",
            lambda x, weight, d_k: cut_at(x, weight, d_k, 2 * d_k + x.shape[-1]),
        ),
        Mistake(
            "values_d_k_wide",
            "the values are cut to a width of d_k: theirs is another one, all that is "
            "left when queries and keys are cut off",
            lambda x, weight, d_k: cut_at(x, weight, d_k, 3 * d_k),
        ),
        Mistake(
            "last_d_k",
            "the values are the last d_k numbers: theirs is another width, all that is "
            "left when queries and keys are cut off",
            lambda x, weight, d_k: (
                *split_fused(x, weight, d_k)[:2],
                (x @ weight.T)[..., -d_k:],
            ),
        ),
        Mistake(
            "keys_and_the_rest",
            "the values begin where the keys do: both are cut off before them",
            lambda x, weight, d_k: (
                *split_fused(x, weight, d_k)[:2],
                (x @ weight.T)[..., d_k:],
            ),
        ),
        Mistake(
            "values_before_keys",
            "keys and values have changed places: the fused rows come as queries, "
            "keys, values",
            lambda x, weight, d_k: split_as("qvk", x, weight, d_k),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def thirds(x, weight, d_k):
    n = -(-len(weight) // 3)
    return tuple(torch.nn.functional.linear(x, w) for w in weight.split(n))


def cut_rows(*order):
    def answer(x, weight, d_k):
        d_v = weight.shape[0] - 2 * d_k
        widths = [d_v if role == "v" else d_k for role in order]
        rows = dict(zip(order, torch.split(weight, widths, dim=0)))
        return [torch.einsum("...i,oi->...o", x, rows[role]) for role in "qkv"]

    return answer


def values_from(rows):
    """The values by some rows of the weight."""

    def answer(x, weight, d_k):
        queries, keys = (x @ w.mT for w in weight[: 2 * d_k].split(d_k))
        return queries, keys, x @ rows(weight, d_k).mT

    return answer


RIGHT = [cut_rows("q", "k", "v")]
WRONG = [
    ("equal_thirds", thirds),
    ("keys_before_queries", cut_rows("k", "q", "v")),
    ("values_first", cut_rows("v", "q", "k")),
    (
        "interleaved",
        lambda x, w, d_k: [torch.nn.functional.linear(x, w[i::3]) for i in range(3)],
    ),
    ("values_before_keys", cut_rows("q", "v", "k")),
    ("values_as_wide_as_tokens", values_from(lambda w, d: w[2 * d :][: w.shape[1]])),
    ("values_d_k_wide", values_from(lambda w, d: w[2 * d :][:d])),
    ("last_d_k", values_from(lambda w, d: w[len(w) - d :])),
    ("keys_and_the_rest", values_from(lambda w, d: w[d:])),
]
PARTIAL = [(1, cut_rows("k", "q", "v"))]
