"""The questions of chapter 03 that are code: the score, the context, one step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import first, normal, second, sizes

# ------------------------------------------------------------------------- 03.1 score


def additive_scores(s: Tensor, h: Tensor, w: Tensor, u: Tensor, v: Tensor) -> Tensor:
    return torch.tanh((s @ w)[:, None] + h @ u) @ v


def draw_score(rng: np.random.Generator) -> Args:
    batch, source, d_state, d_annotation, d_score = sizes(rng, 5)
    return (
        normal(rng, batch, d_state),
        normal(rng, batch, source, d_annotation),
        normal(rng, d_state, d_score) * np.float32(0.4),
        normal(rng, d_annotation, d_score) * np.float32(0.4),
        normal(rng, d_score),
    )


def draw_long(rng: np.random.Generator) -> list[Args]:
    """The same call for three lengths of the source."""
    args = [
        (normal(rng, 2, 3), normal(rng, 2, n, 4), normal(rng, 3, 6), normal(rng, 4, 6))
        for n in (2, 9, 5)
    ]
    return [(*four, normal(rng, 6)) for four in args]


SCORE = Question(
    id="03.1",
    title="The additive score",
    answer="additive_scores",
    arguments=("decoder_state", "encoder_states", "w", "u", "v"),
    outputs=(Output("scores", "source"),),
    reference=additive_scores,
    next_step="project the state and every annotation to d_score, add, tanh, times v.",
    parts=(
        Part("one batch", 1, lambda rng: [draw_score(rng)]),
        Part("other sizes", 1, lambda rng: [draw_score(rng) for _ in range(2)]),
        Part("no loop", 1, draw_long, steady=True),
    ),
    mistakes=(
        Mistake(
            "tanh_after_v",
            "the tanh comes after v: then v acts on a plain sum, and state and "
            "annotation no longer meet inside anything; first tanh, then v",
            lambda s, h, w, u, v: torch.tanh(((s @ w)[:, None] + h @ u) @ v),
        ),
        Mistake(
            "no_tanh",
            "there is no tanh: a sum of two linear terms adds the same number of the "
            "state to every annotation's score, and the softmax can't see it",
            lambda s, h, w, u, v: ((s @ w)[:, None] + h @ u) @ v,
        ),
        Mistake(
            "two_tanhs",
            "state and annotation go through a tanh of their own: so the score is "
            "again a sum of two parts; they must be added before the tanh",
            lambda s, h, w, u, v: (torch.tanh(s @ w)[:, None] + torch.tanh(h @ u)) @ v,
        ),
        Mistake(
            "weights_already",
            "these are weights: they sum to one. The scores were asked for, before "
            "the softmax",
            lambda *args: torch.softmax(additive_scores(*args), dim=-1),
            lambda args, value: np.allclose(value.sum(-1), 1, atol=1e-3),
        ),
        Mistake(
            "multiplied",
            "the two projections are multiplied: that is another family of scores; "
            "the additive one adds them",
            lambda s, h, w, u, v: torch.tanh((s @ w)[:, None] * (h @ u)) @ v,
        ),
        Mistake(
            "mean_for_v",
            "the score is averaged over d_score (or divided by it): v alone decides "
            "how much each hidden number counts",
            lambda *args: additive_scores(*args) / len(args[4]),
        ),
        Mistake(
            "no_v",
            "the hidden numbers are simply added up: v is missing, which says how much "
            "each of them counts, and with which sign",
            lambda s, h, w, u, v: torch.tanh((s @ w)[:, None] + h @ u).sum(-1),
        ),
        Mistake(
            "first_example_for_all",
            "every example of the batch is scored against the state of the first one: "
            "the batch axis of the state must stay where it is",
            lambda s, h, w, u, v: torch.tanh((s[:1] @ w)[:, None] + h @ u) @ v,
        ),
        Mistake(
            "no_source_axis",
            "the state has no source axis: (batch, d_score) can't be added to (batch, "
            "source, d_score); give it one of size 1",
            lambda s, h, w, u, v: torch.tanh(s @ w + h @ u) @ v,
        ),
        Mistake(
            "state_left_out",
            "the decoder's state plays no part: scores that don't ask are the same at "
            "every step",
            lambda s, h, w, u, v: torch.tanh(h @ u) @ v,
        ),
    ),
    packaged=("additive_scores",),
)


# -------------------------------------------------------------- 03.2 weights, context


def look(scores: Tensor, encoder_states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    scores = scores.masked_fill(~mask, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return (weights[:, None] @ encoder_states)[:, 0], weights


def blend(weights: Tensor, encoder_states: Tensor) -> tuple[Tensor, Tensor]:
    """Finish from weights that went wrong earlier."""
    return (weights[:, None] @ encoder_states)[:, 0], weights


def masked(scores: Tensor, mask: Tensor, value: float = -torch.inf) -> Tensor:
    return scores.masked_fill(~mask, value)


def draw_look(rng: np.random.Generator, padded: bool) -> Args:
    batch, source, width = sizes(rng, 3)
    mask = np.ones((batch, source), dtype=bool)
    if padded:
        for row in range(1, batch):  # every sentence but the first has some padding
            mask[row, int(rng.integers(1, source)) :] = False
    return normal(rng, batch, source), normal(rng, batch, source, width), mask


def columns_sum_to_one(args: Args, value: Any) -> bool:
    weights = value[1]
    return np.allclose(weights.sum(0), 1, atol=1e-3) and not np.allclose(
        weights.sum(1), 1, atol=1e-3
    )


def some_weight_on_padding(args: Args, value: Any) -> bool:
    """Rows sum to one, and the padding has a share too small to be an oversight."""
    weights, mask = value[1], args[2]
    on_padding = weights[~mask]
    spread = on_padding.size > 0 and 1e-6 < on_padding.max() < 0.02
    return bool(spread and np.allclose(weights.sum(1), 1, atol=1e-3))


LOOK = Question(
    id="03.2",
    title="Weights and context, with padding",
    answer="look",
    arguments=("scores", "encoder_states", "mask"),
    outputs=(Output("context", "d"), Output("weights", "source")),
    reference=look,
    primitives=True,
    next_step="write -inf where the mask is False, softmax, average the states.",
    parts=(
        Part("weights", 1, lambda rng: [draw_look(rng, False)] * 2, view=second),
        Part("context", 1, lambda rng: [draw_look(rng, False)] * 2, view=first),
        Part("padding", 2, lambda rng: [draw_look(rng, True) for _ in range(3)]),
    ),
    mistakes=(
        Mistake(
            "padding_attended",
            "the mask is not used: some weight falls on the padding, and the same "
            "sentence gets another context when its batch has a longer neighbour",
            lambda e, h, m: blend(torch.softmax(e, -1), h),
        ),
        Mistake(
            "mask_turned_round",
            "the mask is read the wrong way round: True means that the token may be "
            "looked at",
            lambda e, h, m: look(e, h, ~m),
        ),
        Mistake(
            "cut_after_softmax",
            "the padding is set to zero after the softmax: what it had taken is lost, "
            "and the rest no longer sums to one",
            lambda e, h, m: blend(torch.softmax(e, -1) * m, h),
        ),
        Mistake(
            "zero_scores",
            "the padding gets score 0, not weight 0: the softmax makes exp(0) = 1 of "
            "it, which is as much as any other score near 0",
            lambda e, h, m: blend(torch.softmax(e * m, -1), h),
        ),
        Mistake(
            "over_the_batch",
            "the columns sum to one, not the rows: the softmax runs over the batch, so "
            "that unrelated sentences compete; it runs over the source",
            lambda e, h, m: blend(torch.softmax(masked(e, m), 0).nan_to_num(), h),
            columns_sum_to_one,
        ),
        Mistake(
            "one_softmax_for_all",
            "the whole table sums to one: every sentence of the batch shares out a "
            "unit of its own",
            lambda e, h, m: blend(
                torch.softmax(masked(e, m).flatten(), 0).reshape(e.shape), h
            ),
        ),
        Mistake(
            "no_softmax",
            "the scores are used as weights as they are: they may be negative and do "
            "not sum to one",
            lambda e, h, m: blend(e * m, h),
        ),
        Mistake(
            "gates",
            "every word has a gate of its own, so the weights don't sum to one; the "
            "softmax makes the words share one unit",
            lambda e, h, m: blend(torch.sigmoid(e) * m, h),
        ),
        Mistake(
            "too_small_a_number",
            "the padding still gets a little weight: a number such as -10 is small, "
            "not minus infinity; write -inf",
            lambda e, h, m: blend(torch.softmax(masked(e, m, -10.0), -1), h),
            some_weight_on_padding,
        ),
        Mistake(
            "context_divided",
            "the weighted states are averaged once more: the weights already sum to "
            "one, so their sum is the average",
            lambda e, h, m: (
                look(e, h, m)[0] / e.shape[1],
                look(e, h, m)[1],
            ),
        ),
        Mistake(
            "hard_choice",
            "the context is the state of the best word alone: attention is an average, "
            "in which every word counts by its weight",
            lambda e, h, m: (
                h[torch.arange(len(h)), masked(e, m).argmax(-1)],
                look(e, h, m)[1],
            ),
        ),
        Mistake(
            "order",
            "the two results come in the wrong order: context first, then weights",
            lambda e, h, m: look(e, h, m)[::-1],
        ),
    ),
)


# ------------------------------------------------------------------- 03.3 one step

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


STEP = Question(
    id="03.3",
    title="One step of the decoder",
    answer="decoder_step",
    arguments=("token", "decoder_state", "encoder_states", "w", "u", "v", "cell"),
    outputs=(Output("new_state", "d_state"), Output("weights", "source")),
    reference=decoder_step,
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
    ),
)

QUESTIONS = (SCORE, LOOK, STEP)
