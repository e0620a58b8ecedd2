"""`look`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import first, normal, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q1_additive_scores import weighed


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


QUESTION = Question(
    id="03.2",
    title="Weights and context, with padding",
    answer="look",
    arguments=("scores", "encoder_states", "mask"),
    outputs=(Output("context", "d"), Output("weights", "source")),
    reference=look,
    primitives=True,
    difficulty="medium",
    minutes=8,
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
            "gates_shared_out",
            "gates (sigmoids) are divided by their sum: the weights sum to one, but a "
            "softmax is made of exponentials, so that a gap of scores is a ratio",
            lambda e, h, m: blend(
                torch.sigmoid(e) * m / (torch.sigmoid(e) * m).sum(1, keepdim=True), h
            ),
        ),
        Mistake(
            "divided_by_the_words",
            "the exponentials are divided by the number of words: they share one unit "
            "if they are divided by their own sum",
            lambda e, h, m: blend(e.exp() * m / m.sum(1, keepdim=True), h),
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


# ----------------------------------------------------------------------- specimens


def mixed(weights, h):
    return torch.einsum("bj,bjd->bd", weights, h)


RIGHT = [
    lambda e, h, m: (mixed(weighed(e, m), h), weighed(e, m)),
    lambda e, h, m: (lambda a: ((a.unsqueeze(-1) * h).sum(-2), a))(
        e.masked_fill(m.logical_not(), -1e9).softmax(1)
    ),
]
WRONG = [
    ("padding_attended", lambda e, h, m: (mixed(weighed(e), h), weighed(e))),
    (
        "mask_turned_round",
        lambda e, h, m: (lambda a: (mixed(a, h), a))(weighed(e, m.logical_not())),
    ),
    (
        "cut_after_softmax",
        lambda e, h, m: (lambda a: (mixed(a, h), a))(weighed(e).where(m, 0.0)),
    ),
    (
        "zero_scores",
        lambda e, h, m: (lambda a: (mixed(a, h), a))(weighed(e.where(m, 0.0))),
    ),
    (
        "over_the_batch",
        lambda e, h, m: (lambda a: (mixed(a, h), a))(weighed(e.T, m.T).T),
    ),
    (
        "one_softmax_for_all",
        lambda e, h, m: (lambda a: (mixed(a, h), a))(
            (e.exp() * m) / (e.exp() * m).sum()
        ),
    ),
    ("no_softmax", lambda e, h, m: (mixed(e.where(m, 0.0), h), e.where(m, 0.0))),
    (
        "context_divided",
        lambda e, h, m: (lambda a: ((a[..., None] * h).mean(1), a))(weighed(e, m)),
    ),
    (
        "gates_shared_out",
        lambda e, h, m: (lambda g: (mixed(g, h), g))(
            (1 / (1 + (-e).exp())).where(m, 0.0)
            / (1 / (1 + (-e).exp())).where(m, 0.0).sum(-1)[:, None]
        ),
    ),
    (
        "divided_by_the_words",
        lambda e, h, m: (lambda a: (mixed(a, h), a))(
            e.exp().where(m, 0.0) / m.float().sum(-1)[:, None]
        ),
    ),
    ("order", lambda e, h, m: (weighed(e, m), mixed(weighed(e, m), h))),
]
PARTIAL = [(2, lambda e, h, m: (mixed(weighed(e), h), weighed(e)))]
