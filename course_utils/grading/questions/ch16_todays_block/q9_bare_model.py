"""`bare_model`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

EPS = 1e-5


def even(x: Tensor) -> Tensor:
    return x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + EPS)


def as_it_is(x: Tensor) -> Tensor:
    return x


def centred(x: Tensor) -> Tensor:
    return even(x - x.mean(dim=-1, keepdim=True))


def bent_square(z: Tensor) -> Tensor:
    return z.clamp(min=0).square()


def bare_model(
    tokens: Tensor, table: Tensor, w_in: Tensor, w_out: Tensor, head: Tensor, cap: float
) -> Tensor:
    return model(tokens, table, w_in, w_out, head, cap)


def model(
    tokens: Tensor,
    table: Tensor,
    w_in: Tensor,
    w_out: Tensor,
    head: Tensor,
    cap: float,
    *,
    start: Any = even,
    inside: Any = even,
    last: Any = even,
    bent: Any = bent_square,
    tied: bool = False,
    stream: Any = lambda x, update: x + update,
    bound: Any = lambda logits, cap: cap * torch.tanh(logits / cap),
) -> Tensor:
    """The model, or with one thing done otherwise."""
    x = start(table[tokens])
    x = stream(x, bent(inside(x) @ w_in) @ w_out)
    return bound(last(x) @ (table.mT if tied else head), cap)


def done_as(**change: Any) -> Any:
    return lambda *args: model(*args, **change)


def draw(rng: np.random.Generator, *batch: int) -> Args:
    token, d_model, d_hidden, n_tokens = sizes(rng, 4)
    return (
        rng.integers(n_tokens, size=(*batch, token)),
        0.3 * normal(rng, n_tokens, d_model) + np.float32(0.1),
        normal(rng, d_model, d_hidden),
        normal(rng, d_hidden, d_model) / np.float32(d_hidden),
        normal(rng, d_model, n_tokens),
        float(rng.uniform(2, 4)),
    )


QUESTION = Question(
    id="16.9",
    title="nanochat without its attention",
    answer="bare_model",
    arguments=("tokens", "table", "w_in", "w_out", "head", "cap"),
    outputs=(Output("logits", "token n_tokens"),),
    reference=bare_model,
    primitives=True,
    allowed=("tanh", "sigmoid"),
    difficulty="easy",
    minutes=10,
    next_step="look the tokens up and norm them; then the block; then norm, head, cap.",
    parts=(
        Part("one text", 2, lambda rng: [draw(rng, 1) for _ in range(3)]),
        Part(
            "a batch",
            1,
            lambda rng: [draw(rng, 2), draw(rng, 5)],
            only_failure_hint="right for one text, wrong for several: count axes from "
            "the end",
        ),
    ),
    mistakes=(
        Mistake(
            "no_norm_at_start",
            "the rows of the table go into the stream as they are: nanochat norms them "
            "first",
            done_as(start=as_it_is),
        ),
        Mistake(
            "no_norm_inside",
            "the feed-forward layer reads the stream as it is: it reads the normed one",
            done_as(inside=as_it_is),
        ),
        Mistake(
            "no_norm_at_end",
            "the head reads the stream as it is: a norm stands before it",
            done_as(last=as_it_is),
        ),
        Mistake(
            "mean_subtracted",
            "a mean is subtracted, as in LayerNorm: RMSNorm leaves it alone",
            done_as(start=centred, inside=centred, last=centred),
        ),
        Mistake(
            "not_squared",
            "the activation is a plain ReLU: here its result is squared",
            done_as(bent=lambda z: z.clamp(min=0)),
        ),
        Mistake(
            "square_alone",
            "the activation is a square: what is below 0 has to become 0 first",
            done_as(bent=torch.square),
        ),
        Mistake(
            "tied_head",
            "the table of the tokens scores them, too: this model has an output table "
            "of its own, `head`",
            done_as(tied=True),
        ),
        Mistake(
            "no_stream",
            "the block's result replaces the stream: it is added to it",
            done_as(stream=lambda x, update: update),
        ),
        Mistake(
            "no_cap",
            "the logits are as the head gives them: they go through a soft cap",
            done_as(bound=lambda logits, cap: logits),
        ),
        Mistake(
            "hard_cap",
            "the logits are cut at the cap: a soft cap bends them, with tanh",
            done_as(bound=lambda logits, cap: logits.clamp(-cap, cap)),
        ),
        Mistake(
            "cap_once",
            "the cap is used once: divide by it before tanh, and multiply by it after",
            done_as(bound=lambda logits, cap: cap * torch.tanh(logits)),
        ),
    ),
    packaged=("rms_norm", "soft_cap"),
)


# ----------------------------------------------------------------------- specimens


def by_hand(bend=lambda z: (z * (z > 0)) ** 2, begin=True, ends=True, cut=None):
    def level(x):
        return x * ((x * x).sum(-1, keepdim=True) / x.shape[-1] + 1e-5) ** -0.5

    def answer(tokens, table, w_in, w_out, head, cap):
        x = level(table)[tokens] if begin else table[tokens]
        x = x + bend(level(x) @ w_in) @ w_out
        scores = (level(x) if ends else x) @ head
        if cut:
            return cut(scores, cap)
        return cap * (2 * torch.sigmoid(2 * scores / cap) - 1)

    return answer


RIGHT = [by_hand()]
WRONG = [
    ("no_norm_at_start", by_hand(begin=False)),
    ("no_norm_at_end", by_hand(ends=False)),
    ("not_squared", by_hand(bend=lambda z: z * (z > 0))),
    ("square_alone", by_hand(bend=lambda z: z * z)),
    ("no_cap", by_hand(cut=lambda scores, cap: scores)),
    ("hard_cap", by_hand(cut=lambda scores, cap: scores.clamp(-cap, cap))),
]
