"""`failing_input`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from einops import rearrange
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def attend(x: Tensor, n_heads: int, mask: Tensor) -> Tensor:
    """The layer without matrices; `mask` meets scores (batch, head, query, key)."""
    heads = rearrange(x, "b t (h d) -> b h t d", h=n_heads)
    scores = heads @ heads.transpose(-2, -1) / heads.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)
    return rearrange(weights @ heads, "b h t d -> b t (h d)")


def is_boolean(value: Any) -> bool:
    return bool(value[2].dtype == np.bool_)


def fits(value: Any) -> bool:
    x, heads, mask = value[0], float(value[1]), value[2]
    whole = heads >= 1 and heads == int(heads) and x.shape[2] % int(heads) == 0
    return whole and mask.shape == (*x.shape[:2], x.shape[1])


def runs(value: Any) -> bool:
    """Whether the colleague's version lines up sentences and heads without an error."""
    return len(value[0]) in (1, int(value[1])) or int(value[1]) == 1


def sees_nothing(value: Any) -> bool:
    return not value[2].any(axis=-1).all()


def differ(args: Args, value: Any) -> bool:
    if not (is_boolean(value) and fits(value) and runs(value)) or sees_nothing(value):
        return False
    x, mask = torch.tensor(np.asarray(value[0], np.float64)), torch.tensor(value[2])
    right = attend(x, int(value[1]), mask[:, None])
    wrong = attend(x, int(value[1]), mask)
    return right.shape != wrong.shape or bool((right - wrong).abs().max() > 0.01)


def failing_input() -> tuple[Tensor, int, Tensor]:
    mask = torch.tensor([[[1, 0], [0, 1]], [[1, 1], [1, 1]]]).bool()
    return torch.arange(8.0).reshape(2, 2, 2), 2, mask


def failing(name: str, hint: str, wrong: tuple[Any, ...], sign: Any) -> Mistake:
    return Mistake(name, hint, lambda: wrong, lambda args, value: sign(value))


SENTENCES = torch.arange(12.0).reshape(2, 3, 2)
CAUSAL = torch.ones(3, 3).tril().bool()
MASKS = torch.stack([CAUSAL, CAUSAL.mT])


QUESTION = Question(
    id="10.7",
    title="Find the input that fails",
    answer="failing_input",
    arguments=(),
    outputs=(
        Output("x", "batch token d_model", free=True),
        Output("n_heads"),
        Output("mask", "batch query key", free=True),
    ),
    reference=failing_input,
    difficulty="hard",
    minutes=12,
    next_step="write down the shapes of scores and mask, and see which axes meet.",
    parts=(Part("the outputs differ", 2, lambda rng: [()], accepts=differ),),
    mistakes=(
        failing(
            "not_boolean",
            "the mask does not hold True and False: finish it with `.bool()`",
            (SENTENCES, 2, MASKS.float()),
            lambda value: not is_boolean(value),
        ),
        failing(
            "does_not_fit",
            "the sizes don't belong together: the heads must divide d_model, and the "
            "mask has one table (token, token) for each sentence of `x`",
            (SENTENCES, 2, MASKS[:1]),
            lambda value: not fits(value),
        ),
        failing(
            "stops",
            "here the colleague's layer stops with an error, which nobody overlooks; "
            "which two axes does it line up, and when do they fit by accident?",
            (SENTENCES.reshape(2, 2, 3), 3, MASKS[:, :2, :2]),
            lambda value: not runs(value),
        ),
        failing(
            "one_sentence",
            "with a single sentence there is one table, and it is right for every head",
            (SENTENCES[:1], 2, MASKS[:1]),
            lambda value: len(value[0]) == 1,
        ),
        failing(
            "sees_nothing",
            "some query may see no key at all, and a softmax over nothing is no "
            "number, in either version; leave every query at least one key",
            (SENTENCES, 2, torch.stack([CAUSAL, CAUSAL & False])),
            sees_nothing,
        ),
        failing(
            "nothing_blocked",
            "the mask blocks nothing: it does not matter where it ends up",
            (SENTENCES, 2, torch.ones(2, 3, 3).bool()),
            lambda value: value[2].all(),
        ),
        failing(
            "same_masks",
            "all sentences have the same table, so it does not matter which of them "
            "gets which",
            (SENTENCES, 2, CAUSAL.expand(2, 3, 3)),
            lambda value: (value[2] == value[2][:1]).all(),
        ),
        failing(
            "tokens_alike",
            "within a sentence all tokens are alike: whichever of them a query may "
            "see, it receives the same average",
            (torch.ones(2, 3, 2), 2, MASKS),
            lambda value: np.ptp(value[0], axis=1).max() < 1e-6,
        ),
        failing(
            "hardly_differs",
            "the outputs differ by less than 0.01; let the tokens of a sentence differ "
            "more",
            (SENTENCES / 10000, 2, MASKS),
            lambda value: not differ((), value),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def masks(batch, token):
    """A table for each sentence: sentence i hides the key i from every query."""
    hidden = torch.arange(batch)[:, None] % token == torch.arange(token)
    return ~hidden[:, None].repeat(1, token, 1)


RIGHT = [
    lambda: (torch.linspace(-1, 1, 60).reshape(3, 4, 5), 1, masks(3, 4)),
    lambda: (3 * torch.eye(6)[:4].expand(3, 4, 6), np.int64(3), masks(3, 4)),
]
WRONG = [
    ("not_boolean", lambda: (torch.randn(2, 4, 6), 2, masks(2, 4).int())),
    ("does_not_fit", lambda: (torch.randn(2, 4, 7), 2, masks(2, 4))),
    ("does_not_fit", lambda: (torch.randn(2, 4, 6), 0, masks(2, 4))),
    ("does_not_fit", lambda: (torch.randn(2, 4, 6), 2, masks(3, 4))),
    ("does_not_fit", lambda: (torch.randn(2, 4, 6), 2, masks(2, 3))),
    ("stops", lambda: (torch.randn(2, 4, 6), 3, masks(2, 4))),
    ("stops", lambda: (torch.randn(3, 4, 6), 2, masks(3, 4))),
    ("one_sentence", lambda: (torch.randn(1, 4, 6), 3, masks(1, 4))),
    ("nothing_blocked", lambda: (torch.randn(3, 4, 6), 3, masks(3, 4) | True)),
    ("same_masks", lambda: (torch.randn(3, 4, 6), 3, masks(3, 4)[[0, 0, 0]])),
    ("sees_nothing", lambda: (torch.randn(2, 4, 6), 2, masks(2, 4) & False)),
    ("tokens_alike", lambda: (torch.full((3, 4, 6), 2.5), 3, masks(3, 4))),
    ("hardly_differs", lambda: (torch.eye(4).expand(4, 4, 4) / 999, 4, masks(4, 4))),
]
