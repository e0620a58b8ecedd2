"""`decoder_step`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q1_additive_scores import additive_scores, scored, weighed
from .q2_look import columns_sum_to_one, mixed

Step = Callable[..., tuple[Tensor, Tensor]]


def weights_of(s: Tensor, h: Tensor, w: Tensor, u: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(additive_scores(s, h, w, u, v), dim=-1)


def averaged(weights: Tensor, h: Tensor) -> Tensor:
    return (weights[:, None] @ h)[:, 0]


def step_with(
    context_of: Callable[[Tensor, Tensor], Tensor] = averaged,
    join: Callable[..., tuple[Tensor, ...]] = lambda token, context, s: (
        token,
        context,
        s,
    ),
    squash: Callable[[Tensor], Tensor] = torch.tanh,
) -> Step:
    """A step of the decoder, of which some part may have gone wrong."""

    def step(token: Tensor, s: Tensor, h: Tensor, *wuv_cell: Tensor) -> Any:
        *wuv, cell = wuv_cell
        weights = weights_of(s, h, *wuv)
        joined = torch.cat(join(token, context_of(weights, h), s), dim=-1)
        return squash(joined @ cell), weights

    return step


decoder_step = step_with()


def attends_with_the_new_state(
    token: Tensor, s: Tensor, h: Tensor, *wuv_cell: Tensor
) -> tuple[Tensor, Tensor]:
    new, _ = decoder_step(token, s, h, *wuv_cell)
    return new, weights_of(new, h, *wuv_cell[:-1])


def state_made_first(
    token: Tensor, s: Tensor, h: Tensor, *wuv_cell: Tensor
) -> tuple[Tensor, Tensor]:
    nothing = step_with(lambda weights, h: torch.zeros_like(h[:, 0]))
    early, _ = nothing(token, s, h, *wuv_cell)
    weights = weights_of(early, h, *wuv_cell[:-1])
    joined = torch.cat([token, averaged(weights, h), s], dim=-1)
    return torch.tanh(joined @ wuv_cell[-1]), weights


def step_over_the_batch(
    token: Tensor, s: Tensor, h: Tensor, *wuv_cell: Tensor
) -> tuple[Tensor, Tensor]:
    *wuv, cell = wuv_cell
    weights = torch.softmax(additive_scores(s, h, *wuv), dim=0)
    joined = torch.cat([token, averaged(weights, h), s], dim=-1)
    return torch.tanh(joined @ cell), weights


def draw_step(rng: np.random.Generator) -> Args:
    batch, source, d_embedding, d_annotation, d_state, d_score = sizes(rng, 6)
    scale = np.float32(0.4)
    return (
        normal(rng, batch, d_embedding),
        normal(rng, batch, d_state),
        normal(rng, batch, source, d_annotation),
        normal(rng, d_state, d_score) * scale,
        normal(rng, d_annotation, d_score) * scale,
        normal(rng, d_score),
        normal(rng, d_embedding + d_annotation + d_state, d_state) * scale,
    )


QUESTION = Question(
    id="03.3",
    title="One step of the decoder",
    answer="decoder_step",
    arguments=("token", "decoder_state", "encoder_states", "w", "u", "v", "cell"),
    outputs=(Output("new_state", "d_state"), Output("weights", "source")),
    reference=decoder_step,
    difficulty="medium",
    minutes=10,
    next_step="scores from the state before, weights, context, then the new state.",
    parts=(
        Part("where it looks", 1, lambda rng: [draw_step(rng)] * 2, view=second),
        Part("the new state", 2, lambda rng: [draw_step(rng) for _ in range(2)]),
    ),
    mistakes=(
        Mistake(
            "attends_with_the_new_state",
            "the weights are those of the new state: but it needs the context to be "
            "made, so the decoder looks with the state it has",
            attends_with_the_new_state,
        ),
        Mistake(
            "context_before_token",
            "the context stands before the token: the rows of `cell` belong to token, "
            "context and state, in this order",
            step_with(averaged, lambda y, c, s: (c, y, s)),
        ),
        Mistake(
            "state_before_the_rest",
            "the state stands first: the rows of `cell` belong to token, context and "
            "state, in this order",
            step_with(averaged, lambda y, c, s: (s, y, c)),
        ),
        Mistake(
            "state_before_context",
            "the state stands before the context: the rows of `cell` belong to token, "
            "context and state, in this order",
            step_with(averaged, lambda y, c, s: (y, s, c)),
        ),
        Mistake(
            "softmax_over_the_batch",
            "the softmax runs over the batch: each sentence shares out a unit of its "
            "own among its words",
            step_over_the_batch,
            columns_sum_to_one,
        ),
        Mistake(
            "scores_returned",
            "the second result holds the scores: asked for are the weights, after the "
            "softmax",
            lambda *args: (decoder_step(*args)[0], additive_scores(*args[1:6])),
        ),
        Mistake(
            "plain_mean",
            "the context is the plain mean of the annotations: the weights are made "
            "and then not used",
            step_with(lambda weights, h: h.mean(1)),
        ),
        Mistake(
            "last_annotation",
            "the context is the last annotation, the same at every step: that is the "
            "fixed vector again",
            step_with(lambda weights, h: h[:, -1]),
        ),
        Mistake(
            "summed_annotations",
            "the annotations are summed with no weights: a longer sentence would "
            "shout louder",
            step_with(lambda weights, h: h.sum(1)),
        ),
        Mistake(
            "strongest_alone",
            "the context is the annotation with the largest weight alone: every "
            "annotation enters, by its weight",
            step_with(lambda weights, h: h[torch.arange(len(h)), weights.argmax(-1)]),
        ),
        Mistake(
            "forgets_its_state",
            "the new state does not depend on the old one beyond the weights: the "
            "decoder forgets what it has written",
            step_with(averaged, lambda y, c, s: (y, c, torch.zeros_like(s))),
        ),
        Mistake(
            "linear_cell",
            "the new state is not squashed: a tanh belongs around the product with "
            "`cell`",
            step_with(squash=lambda x: x),
        ),
        Mistake(
            "state_made_first",
            "a state is made without a context first, and asks in the place of the "
            "one that the decoder has: that is Luong's order, not the one of the task",
            state_made_first,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def stepped(context_of=mixed, order=(0, 1, 2), query=None):
    def step(token, s, h, w, u, v, cell):
        weights = weighed(scored(s, h, w, u, v))
        parts = (token, context_of(weights, h), s)
        new = torch.hstack([parts[i] for i in order]).matmul(cell).tanh()
        return new, weighed(scored(new, h, w, u, v)) if query else weights

    return step


def without_state(token, s, h, w, u, v, cell):
    weights = weighed(scored(s, h, w, u, v))
    joined = torch.hstack([token, mixed(weights, h)])
    return (joined @ cell[: joined.shape[1]]).tanh(), weights


RIGHT = [stepped()]
WRONG = [
    ("attends_with_the_new_state", stepped(query="new")),
    ("context_before_token", stepped(order=(1, 0, 2))),
    ("state_before_the_rest", stepped(order=(2, 0, 1))),
    ("plain_mean", stepped(lambda a, h: h.sum(1) / h.shape[1])),
    ("last_annotation", stepped(lambda a, h: h.flip(1)[:, 0])),
    ("summed_annotations", stepped(lambda a, h: mixed(torch.ones_like(a), h))),
    (
        "strongest_alone",
        stepped(lambda a, h: mixed((a == a.amax(1, keepdim=True)).float(), h)),
    ),
    ("forgets_its_state", without_state),
]
