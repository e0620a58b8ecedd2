"""`split_heads`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from einops import rearrange
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question
from course_utils.models.attention import split_heads as package_split_heads


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    return rearrange(x, "b t (h d) -> b h t d", h=n_heads)


def counted_anew(x: Tensor, n_heads: int) -> Tensor:
    batch, token, width = x.shape
    return x.reshape(batch, n_heads, token, width // n_heads)


def transposed_first(x: Tensor, n_heads: int) -> Tensor:
    batch, token, width = x.shape
    return x.transpose(1, 2).reshape(batch, n_heads, token, width // n_heads)


def draw_tokens(rng: np.random.Generator) -> Args:
    batch, token, heads, d_head = sizes(rng, 4, least=2)
    return normal(rng, batch, token, heads * d_head), heads


def draw_one_head(rng: np.random.Generator) -> list[Args]:
    return [(normal(rng, 2, 3, 5), 1)]


QUESTION = Question(
    id="10.1",
    title="Cut the features into heads",
    answer="split_heads",
    arguments=("x", "n_heads"),
    outputs=(Output("heads", "batch head token d_head"),),
    reference=split_heads,
    difficulty="easy",
    minutes=5,
    next_step="give the features two axes, head and d_head, then move the head axis.",
    parts=(
        Part("several heads", 3, lambda rng: [draw_tokens(rng) for _ in range(3)]),
        Part(
            "one head",
            1,
            draw_one_head,
            only_failure_hint="right for several heads, wrong for one: it also needs "
            "its axis",
        ),
    ),
    mistakes=(
        Mistake(
            "view_without_transpose",
            "the shape is right, the numbers are not: a reshape only counts them anew, "
            "so that a head gets pieces of the sentence; axes have to change places",
            counted_anew,
        ),
        Mistake(
            "transposed_too_early",
            "the tokens change places with the features before the features are cut: "
            "cut them into head and d_head first, then move the head axis",
            transposed_first,
        ),
        Mistake(
            "dealt_out",
            "the features are dealt out to the heads in turn; they lie in blocks: the "
            "first d_head features all belong to the first head",
            lambda x, n: rearrange(x, "b t (d h) -> b h t d", h=n),
        ),
        Mistake(
            "heads_after_tokens",
            "the features are cut rightly, but the head axis still stands behind the "
            "tokens: attention would then run over heads; bring it in front of them",
            lambda x, n: rearrange(x, "b t (h d) -> b t h d", h=n),
        ),
        Mistake(
            "heads_before_batch",
            "the head axis stands in front of the batch; the course's order is batch, "
            "head, token, features",
            lambda x, n: rearrange(x, "b t (h d) -> h b t d", h=n),
        ),
        Mistake(
            "features_before_tokens",
            "tokens and features have changed places within a head: rows are tokens, "
            "the features of a token stay its last axis",
            lambda x, n: rearrange(x, "b t (h d) -> b h d t", h=n),
        ),
        Mistake(
            "number_for_width",
            "n_heads is taken for the width of a head: it says how many heads there "
            "are; the width is what is left for each",
            lambda x, n: rearrange(x, "b t (h d) -> b h t d", d=n),
        ),
    ),
    packaged=("split_heads",),
)


# ----------------------------------------------------------------------- specimens


def by_slices(x, n_heads):
    width = x.shape[-1] // n_heads
    return torch.stack([x[..., h * width :][..., :width] for h in range(n_heads)], 1)


def viewed(x, n_heads):
    return x.contiguous().view(x.size(0), n_heads, x.size(1), x.size(2) // n_heads)


RIGHT = [by_slices, lambda x, n: package_split_heads(x, n)[0]]
WRONG = [
    ("view_without_transpose", viewed),
    ("transposed_too_early", lambda x, n: viewed(x.mT.reshape(x.shape), n)),
    ("dealt_out", lambda x, n: torch.stack([x[..., h::n] for h in range(n)], dim=1)),
    ("heads_after_tokens", lambda x, n: by_slices(x, n).transpose(1, 2)),
    ("heads_before_batch", lambda x, n: torch.stack(x.chunk(n, dim=-1))),
    ("features_before_tokens", lambda x, n: by_slices(x, n).mT),
    ("number_for_width", lambda x, n: torch.stack(x.split(n, -1), 1)),
]
