"""`merge_heads`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from einops import rearrange
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def merge_heads(context: Tensor, n_heads: int) -> Tensor:
    return rearrange(context, "(b h) t d -> b t (h d)", h=n_heads)


def merged_as(layout: str) -> Any:
    return lambda context, n_heads: rearrange(context, layout, h=n_heads)


def counted_back(context: Tensor, n_heads: int) -> Tensor:
    rows, token, d_head = context.shape
    return context.reshape(rows // n_heads, token, n_heads * d_head)


def draw_context(rng: np.random.Generator) -> Args:
    batch, head, token, d_head = sizes(rng, 4, least=2)
    return normal(rng, batch * head, token, d_head), head


QUESTION = Question(
    id="10.2",
    title="Put the heads side by side again",
    answer="merge_heads",
    arguments=("context", "n_heads"),
    outputs=(Output("merged", "batch token d_model"),),
    reference=merge_heads,
    difficulty="easy",
    minutes=6,
    next_step="for each token, put the results of its heads next to each other.",
    parts=(
        Part("several heads", 2, lambda rng: [draw_context(rng) for _ in range(3)]),
        Part(
            "one head",
            1,
            lambda rng: [(normal(rng, 2, 3, 5), 1)],
            only_failure_hint="right for several heads, wrong for one",
        ),
    ),
    mistakes=(
        Mistake(
            "view_without_transpose",
            "the shape is right, the numbers are not: a reshape joins whatever lies "
            "side by side in memory, and there a head's tokens do, not a token's heads",
            counted_back,
        ),
        Mistake(
            "heads_outside",
            "the first axis is taken apart the wrong way: the heads of the first text "
            "come first, all together, then those of the second",
            merged_as("(h b) t d -> b t (h d)"),
        ),
        Mistake(
            "interleaved",
            "the heads' features are shuffled together; each head's result stays in "
            "one piece, head 1 first, then head 2, and so on",
            merged_as("(b h) t d -> b t (d h)"),
        ),
        Mistake(
            "averaged",
            "the heads are averaged: that leaves d_head features and mixes what they "
            "found; they are put next to each other, and W_O does the mixing",
            lambda context, n: context.unflatten(0, (-1, n)).mean(dim=1),
        ),
        Mistake(
            "added",
            "the heads are added up as they are: each must first go through its own "
            "rows of W_O; here they are only put next to each other",
            lambda context, n: context.unflatten(0, (-1, n)).sum(dim=1),
        ),
        Mistake(
            "one_after_the_other",
            "the heads are joined along the tokens, as if there were more of them: "
            "each token keeps one row, which gets wider",
            merged_as("(b h) t d -> b (h t) d"),
        ),
        Mistake(
            "not_joined",
            "the axes are in order, but head and features are still two: join them",
            merged_as("(b h) t d -> b t h d"),
        ),
        Mistake(
            "features_first",
            "the head has changed places with the features: bring it behind the "
            "*tokens*, in front of its own features",
            merged_as("(b h) t d -> b d (t h)"),
        ),
        Mistake(
            "tokens_first",
            "tokens stand before texts: the first axis stays the batch, without its "
            "heads",
            merged_as("(b h) t d -> t b (h d)"),
        ),
        Mistake(
            "transposed_then_counted",
            "tokens change places with texts and heads together, and a reshape counts "
            "the rest anew: take text and head apart first, then move the head",
            lambda context, n: context.transpose(0, 1).reshape(
                context.shape[0] // n, context.shape[1], -1
            ),
        ),
        Mistake(
            "number_for_batch",
            "n_heads is taken for the number of texts: it says how many heads each "
            "text has",
            lambda context, n: rearrange(context, "(b h) t d -> b t (h d)", b=n),
        ),
        Mistake(
            "texts_joined",
            "the heads of all texts stand side by side: each text keeps its own rows, "
            "and joins its own heads alone",
            lambda context, n: context.transpose(0, 1).flatten(1),
        ),
        Mistake(
            "last_head_first",
            "the heads are joined from the last to the first: head 1 comes first",
            lambda context, n: merge_heads(
                context.unflatten(0, (-1, n)).flip(1).flatten(0, 1), n
            ),
        ),
    ),
    packaged=("merge_heads",),
)


# ----------------------------------------------------------------------- specimens


def concatenated(context, n_heads):
    texts = context.split(n_heads)
    return torch.stack([torch.cat(list(text), dim=-1) for text in texts])


def by_steps(context, n_heads):
    return torch.cat([context[head::n_heads] for head in range(n_heads)], dim=-1)


def four_axes(context, n_heads):
    return context.reshape(-1, n_heads, *context.shape[1:])


RIGHT = [
    concatenated,
    by_steps,
    lambda c, n: four_axes(c, n).permute(0, 2, 1, 3).flatten(2),
]
WRONG = [
    ("texts_joined", lambda c, n: torch.cat(list(c), dim=-1)),
    (
        "last_head_first",
        lambda c, n: torch.cat([c[h::n] for h in range(n)][::-1], dim=-1),
    ),
    ("features_first", lambda c, n: four_axes(c, n).transpose(1, 3).flatten(2)),
    ("view_without_transpose", lambda c, n: c.reshape(len(c) // n, c.size(1), -1)),
    ("heads_outside", lambda c, n: torch.cat(c.chunk(n), dim=-1)),
    ("interleaved", lambda c, n: four_axes(c, n).permute(0, 2, 3, 1).flatten(2)),
    ("averaged", lambda c, n: sum(c[h::n] for h in range(n)) / n),
    ("added", lambda c, n: sum(c[h::n] for h in range(n))),
    ("one_after_the_other", lambda c, n: four_axes(c, n).flatten(1, 2)),
    ("not_joined", lambda c, n: four_axes(c, n).transpose(1, 2)),
]
