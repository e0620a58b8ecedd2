"""`head_terms`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from einops import rearrange
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q3_multi_head_attention import concatenated, merge_heads


def head_terms(context: Tensor, w_o: Tensor) -> Tensor:
    bands = rearrange(w_o, "(h d) o -> h d o", h=context.shape[1])
    return context @ bands


def by_columns(context: Tensor, w_o: Tensor) -> Tensor:
    return context @ rearrange(w_o, "o (h d) -> h d o", h=context.shape[1])


def dealt_rows(context: Tensor, w_o: Tensor) -> Tensor:
    return context @ rearrange(w_o, "(d h) o -> h d o", h=context.shape[1])


def first_rows(context: Tensor, w_o: Tensor) -> Tensor:
    return context @ w_o[: context.shape[-1]]


def equal_parts(context: Tensor, w_o: Tensor) -> Tensor:
    n_heads = context.shape[1]
    whole = merge_heads(context) @ w_o
    return whole[:, None].expand(-1, n_heads, -1, -1) / n_heads


def draw_context(rng: np.random.Generator) -> Args:
    batch, heads, token, d_head = sizes(rng, 4, least=2)
    width = heads * d_head
    return normal(rng, batch, heads, token, d_head), normal(rng, width, width)


def added_up(value: Any) -> Any:
    return np.asarray(value).sum(axis=1)


QUESTION = Question(
    id="10.5",
    title="What each head adds",
    answer="head_terms",
    arguments=("context", "w_o"),
    outputs=(Output("terms", "batch head token d_model"),),
    reference=head_terms,
    difficulty="medium",
    minutes=10,
    next_step="find the rows of W_O that the features of head h are multiplied with.",
    parts=(
        Part("every term", 2, lambda rng: [draw_context(rng) for _ in range(2)]),
        Part(
            "their sum",
            1,
            lambda rng: [draw_context(rng) for _ in range(2)],
            view=added_up,
        ),
    ),
    mistakes=(
        Mistake(
            "bands_reversed",
            "the bands of rows are dealt out from the last head to the first: head 0 "
            "has the first band",
            lambda context, w_o: head_terms(
                context, w_o.unflatten(0, (context.shape[1], -1)).flip(0).flatten(0, 1)
            ),
        ),
        Mistake(
            "cumulated",
            "each term holds those of the heads before it as well, so that the last "
            "is the whole output: keep them apart",
            lambda context, w_o: head_terms(context, w_o).cumsum(dim=1),
        ),
        Mistake(
            "equal_parts",
            "the terms add up to the output, but the output is only shared out "
            "equally: each head's term comes from its own context alone",
            equal_parts,
        ),
        Mistake(
            "columns_for_rows",
            "bands of columns are used: the features of a head meet rows of W_O when "
            "the merged context is multiplied from the left",
            by_columns,
        ),
        Mistake(
            "same_rows",
            "every head is multiplied with the first head's rows: each has a band of "
            "its own",
            first_rows,
        ),
        Mistake(
            "dealt_rows",
            "the rows are dealt out to the heads in turn; merged heads lie in blocks, "
            "and so do their rows",
            dealt_rows,
        ),
        Mistake(
            "already_added",
            "this is the sum, the layer's whole output: keep the terms apart, one for "
            "each head",
            lambda context, w_o: merge_heads(context) @ w_o,
        ),
        Mistake(
            "heads_before_batch",
            "the terms are right, but the head axis stands in front of the batch; the "
            "order is batch, head, token, features",
            lambda context, w_o: head_terms(context, w_o).transpose(0, 1),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def terms(band):
    def answer(context, w_o):
        n, d = context.shape[1], context.shape[3]
        return torch.stack(
            [context[:, h] @ band(w_o, h, n, d) for h in range(n)], dim=1
        )

    return answer


RIGHT = [terms(lambda o, h, n, d: o[h * d : (h + 1) * d])]
WRONG = [
    (
        "cumulated",
        lambda c, o: torch.stack(
            [
                sum(c[:, i] @ o[i * c.shape[3] :][: c.shape[3]] for i in range(h + 1))
                for h in range(c.shape[1])
            ],
            1,
        ),
    ),
    (
        "equal_parts",
        lambda c, o: torch.stack([concatenated(c) @ o / c.shape[1]] * c.shape[1], 1),
    ),
    ("columns_for_rows", terms(lambda o, h, n, d: o[:, h * d :][:, :d].T)),
    ("same_rows", terms(lambda o, h, n, d: o[:d])),
    ("dealt_rows", terms(lambda o, h, n, d: o[h::n])),
    (
        "already_added",
        lambda c, o: terms(lambda o, h, n, d: o[h * d :][:d])(c, o).sum(1),
    ),
    (
        "heads_before_batch",
        lambda c, o: torch.stack(
            [c[:, h] @ part for h, part in enumerate(o.split(c.shape[3]))]
        ),
    ),
]
