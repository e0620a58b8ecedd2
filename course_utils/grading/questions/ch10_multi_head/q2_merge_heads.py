"""`merge_heads`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from einops import rearrange
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def merge_heads(context: Tensor) -> Tensor:
    return rearrange(context, "b h t d -> b t (h d)")


def counted_back(context: Tensor) -> Tensor:
    batch, head, token, d_head = context.shape
    return context.reshape(batch, token, head * d_head)


def draw_context(rng: np.random.Generator) -> Args:
    return (normal(rng, *sizes(rng, 4, least=2)),)


QUESTION = Question(
    id="10.2",
    title="Put the heads side by side again",
    answer="merge_heads",
    arguments=("context",),
    outputs=(Output("merged", "batch token d_model"),),
    reference=merge_heads,
    difficulty="easy",
    minutes=5,
    next_step="for each token, put the results of its heads next to each other.",
    parts=(
        Part("several heads", 2, lambda rng: [draw_context(rng) for _ in range(3)]),
        Part(
            "one head",
            1,
            lambda rng: [(normal(rng, 2, 1, 3, 5),)],
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
            "interleaved",
            "the heads' features are shuffled together; each head's result stays in "
            "one piece, head 1 first, then head 2, and so on",
            lambda context: rearrange(context, "b h t d -> b t (d h)"),
        ),
        Mistake(
            "averaged",
            "the heads are averaged: that leaves d_head features and mixes what they "
            "found; they are put next to each other, and W_O does the mixing",
            lambda context: context.mean(dim=1),
        ),
        Mistake(
            "added",
            "the heads are added up as they are: each must first go through its own "
            "rows of W_O; here they are only put next to each other",
            lambda context: context.sum(dim=1),
        ),
        Mistake(
            "one_after_the_other",
            "the heads are joined along the tokens, as if there were more of them: "
            "each token keeps one row, which gets wider",
            lambda context: rearrange(context, "b h t d -> b (h t) d"),
        ),
        Mistake(
            "not_joined",
            "the axes are in order, but head and features are still two: join them",
            lambda context: rearrange(context, "b h t d -> b t h d"),
        ),
    ),
    packaged=("merge_heads",),
)


# ----------------------------------------------------------------------- specimens


def concatenated(context):
    return torch.cat(list(context.unbind(1)), dim=-1)


RIGHT = [concatenated]
WRONG = [
    ("view_without_transpose", lambda c: c.reshape(-1).view(c.size(0), c.size(2), -1)),
    ("interleaved", lambda c: torch.stack(c.unbind(1), dim=-1).flatten(2)),
    ("averaged", lambda c: sum(c.unbind(1)) / c.shape[1]),
    ("added", lambda c: sum(c.unbind(1))),
    ("one_after_the_other", lambda c: c.flatten(1, 2)),
    ("not_joined", lambda c: torch.stack(c.unbind(1), dim=2)),
]
