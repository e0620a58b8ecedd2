"""`ask_image`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import first, normal, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question
from course_utils.models.attention import masked_softmax

Pair = tuple[Tensor, Tensor]


def scores_of(words: Tensor, patches: Tensor, w_q: Tensor, w_k: Tensor) -> Tensor:
    return (words @ w_q) @ (patches @ w_k).mT / math.sqrt(w_k.shape[1])


def ask_image(
    words: Tensor, patches: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, seen: Tensor
) -> Pair:
    weights = masked_softmax(scores_of(words, patches, w_q, w_k), seen[:, None])
    return weights @ (patches @ w_v), weights


def ask_with(change: Any) -> Any:
    """Answer with weights that `change(scores, seen)` makes."""

    def wrong(
        x: Tensor, y: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, seen: Tensor
    ) -> Pair:
        weights = change(scores_of(x, y, w_q, w_k), seen[:, None])
        return weights @ (y @ w_v), weights

    return wrong


def patches_ask(
    x: Tensor, y: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, seen: Tensor
) -> Pair:
    weights = torch.softmax(scores_of(y, x, w_q, w_k), dim=-1)
    return weights @ (x @ w_v), weights


def scaled_by(divisor: Any) -> Any:
    """Answer with scores divided by `divisor(d, d_k)` in place of the root of d_k."""

    def wrong(
        x: Tensor, y: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, seen: Tensor
    ) -> Pair:
        d, d_k = w_k.shape
        return ask_image(x, y, w_q * (math.sqrt(d_k) / divisor(d, d_k)), w_k, w_v, seen)

    return wrong


def filled(scores: Tensor, mask: Tensor, value: float) -> Tensor:
    return torch.softmax(scores.masked_fill(~mask, value), dim=-1)


def draw_asking(blind: bool) -> Any:
    def draw(rng: np.random.Generator) -> list[Args]:
        cases: list[Args] = []
        for _ in range(2):
            word, patch, d_k, d_v = sizes(rng, 4)
            d = 2 * d_k + 1  # words and patches are equally wide: either could ask
            seen = rng.random((3, patch)) < 0.6
            seen[:, 0], seen[:, 1] = True, False
            seen[1] = False if blind else seen[1]
            x, y = normal(rng, 3, word, d), normal(rng, 3, patch, d)
            scale = np.float32(0.25)
            matrices = [scale * normal(rng, d, width) for width in (d_k, d_k, d_v)]
            cases.append((x, y, *matrices, seen))
        return cases

    return draw


QUESTION = Question(
    id="14.4",
    title="Words ask an image",
    answer="ask_image",
    arguments=("words", "patches", "w_q", "w_k", "w_v", "seen"),
    outputs=(Output("context", "word d_v"), Output("weights", "word patch")),
    reference=ask_image,
    primitives=True,
    difficulty="medium",
    minutes=12,
    next_step="queries from the words, keys and values from the patches, the mask.",
    parts=(
        Part("the weights", 2, draw_asking(False), view=second),
        Part("the context", 1, draw_asking(False), view=first),
        Part(
            "an image of which nothing may be seen",
            1,
            draw_asking(True),
            only_failure_hint="right as long as something may be seen: where an image "
            "is all hidden, both results must be zeros, without NaN",
        ),
    ),
    mistakes=(
        Mistake(
            "no_mask",
            "`seen` is not used: hidden patches get weight",
            ask_with(lambda s, m: torch.softmax(s, dim=-1)),
        ),
        Mistake(
            "inverted",
            "the mask is turned round: the words look only at what they may not see; "
            "True = may be seen",
            ask_with(lambda s, m: masked_softmax(s, ~m.expand_as(s))),
        ),
        Mistake(
            "after_the_softmax",
            "the weights are cut after the softmax, so that the rest no longer sums to "
            "one: what is hidden must not take part in the softmax",
            ask_with(lambda s, m: torch.softmax(s, dim=-1) * m),
        ),
        Mistake(
            "scores_times_mask",
            "hidden patches get the score 0, and exp(0) is 1, not 0: they still take "
            "part",
            ask_with(lambda s, m: torch.softmax(s * m, dim=-1)),
        ),
        Mistake(
            "mask_added",
            "the mask is added to the scores as 0 and 1: hidden patches get a little "
            "less weight, not none",
            ask_with(lambda s, m: torch.softmax(s + m, dim=-1)),
        ),
        Mistake(
            "blocked_row_nan",
            "right as long as something may be seen; where all is hidden, zero is "
            "divided by zero and gives NaN: such a row is to be zeros",
            ask_with(lambda s, m: filled(s, m, -torch.inf)),
        ),
        Mistake(
            "blocked_row_uniform",
            "right as long as something may be seen; where all scores are the same "
            "large negative number the softmax gives equal weights to hidden patches",
            ask_with(lambda s, m: filled(s, m, -1e9)),
        ),
        Mistake(
            "no_scale",
            "the scores are not divided by √d_k, the root of the width that queries "
            "and keys share",
            scaled_by(lambda d, d_k: 1),
        ),
        Mistake(
            "root_of_d",
            "the scores are divided by √d, the width of the words: take the width of "
            "what is multiplied, queries and keys",
            scaled_by(lambda d, d_k: math.sqrt(d)),
        ),
        Mistake(
            "no_root",
            "the scores are divided by d_k itself: it is the root of it",
            scaled_by(lambda d, d_k: d_k),
        ),
        Mistake(
            "over_the_words",
            "the softmax runs over the words: every word shares out one unit among the "
            "patches",
            ask_with(
                lambda s, m: torch.softmax(
                    s.masked_fill(~m, -torch.inf), dim=-2
                ).nan_to_num()
            ),
        ),
        Mistake(
            "patches_ask",
            "the patches ask and the words are asked: the words are to learn something "
            "from the image, so the queries come from the words",
            patches_ask,
            lambda args, value: (
                value[1].shape[1:] == (args[1].shape[1], args[0].shape[1])
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def ask(weigh, words, patches, w_q, w_k, w_v, seen):
    scores = torch.einsum("bwk,bpk->bwp", words @ w_q, patches @ w_k)
    scores = scores * w_q.shape[1] ** -0.5
    weights = weigh(scores, seen.unsqueeze(1).expand_as(scores))
    return torch.einsum("bwp,bpv->bwv", weights, patches @ w_v), weights


def with_weights(weigh):
    return lambda *args: ask(weigh, *args)


def renormalised(scores, seen):
    powers = scores.exp() * seen
    return powers / powers.sum(-1, keepdim=True).clamp_min(1e-30)


def rescaled(factor):
    """Scores `factor(d, d_k)` times as large as they ought to be."""

    def answer(words, patches, w_q, w_k, w_v, seen):
        w_q = w_q * factor(*w_q.shape)
        return ask(renormalised, words, patches, w_q, w_k, w_v, seen)

    return answer


RIGHT = [
    with_weights(renormalised),
    with_weights(lambda s, m: s.masked_fill(~m, -torch.inf).softmax(-1).nan_to_num()),
]
WRONG = [
    ("no_mask", with_weights(lambda s, m: s.softmax(2))),
    ("inverted", with_weights(lambda s, m: renormalised(s, ~m))),
    ("after_the_softmax", with_weights(lambda s, m: s.softmax(2).masked_fill(~m, 0))),
    (
        "blocked_row_nan",
        with_weights(
            lambda s, m: s.masked_fill(m.logical_not(), float("-inf")).softmax(2)
        ),
    ),
    (
        "blocked_row_uniform",
        with_weights(lambda s, m: torch.where(m, s, torch.tensor(-1e10)).softmax(2)),
    ),
    ("no_scale", rescaled(lambda d, d_k: d_k**0.5)),
    ("root_of_d", rescaled(lambda d, d_k: (d_k / d) ** 0.5)),
    ("no_root", rescaled(lambda d, d_k: d_k**-0.5)),
    ("mask_added", with_weights(lambda s, m: (s + m.float()).softmax(2))),
    (
        "blocked_row_nan",
        with_weights(lambda s, m: s.exp() * m / (s.exp() * m).sum(2, keepdim=True)),
    ),
]
