"""`basic_self_attention`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.draw import first, normal, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

Pair = tuple[Tensor, Tensor]


def draw_tokens(rng: np.random.Generator, *batch: int) -> Args:
    n_tokens, d_model = sizes(rng, 2)
    return (normal(rng, *batch, n_tokens, d_model),)


def products(x: Tensor) -> Tensor:
    return x @ x.transpose(-2, -1)


def mixed_by(weights: Tensor, x: Tensor) -> Pair:
    return weights @ x, weights


def itself(x: Tensor) -> Tensor:
    """Where a token meets itself: (token, token)."""
    return torch.eye(x.shape[-2], dtype=torch.bool)


def hidden(x: Tensor, scale: float = 1.0, score: float = -math.inf) -> Tensor:
    """The scores, with another one on the diagonal."""
    return (scale * products(x)).masked_fill(itself(x), score)


def basic_self_attention(x: Tensor) -> Pair:
    scores = (x @ x.transpose(-2, -1)).masked_fill(itself(x), -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ x, weights


def with_itself(x: Tensor) -> Pair:
    return mixed_by(torch.softmax(products(x), dim=-1), x)


def removed_afterwards(x: Tensor) -> Pair:
    return mixed_by(torch.softmax(products(x), dim=-1) * ~itself(x), x)


def removed_from_the_scores(x: Tensor) -> Pair:
    scores = products(x) * ~itself(x)
    return mixed_by(scores, x)


def not_divided(x: Tensor) -> Pair:
    return mixed_by(hidden(x).exp(), x)


def one_for_all(x: Tensor) -> Pair:
    scores = hidden(x)
    weights = torch.softmax(scores.flatten(-2), dim=-1).reshape(scores.shape)
    return mixed_by(weights, x)


def earlier_alone(x: Tensor, score: float) -> Tensor:
    """The weights when a token sees the tokens before it and nothing else."""
    later = torch.ones_like(products(x)).triu().bool()
    return torch.softmax(products(x).masked_fill(later, score), dim=-1)


QUESTION = Question(
    id="05.1",
    title="Self-attention that looks away from itself",
    answer="basic_self_attention",
    arguments=("x",),
    outputs=(Output("mixed", "token d_model"), Output("weights", "token token")),
    reference=basic_self_attention,
    primitives=True,
    difficulty="easy",
    minutes=6,
    next_step="scores first; hide what a token thinks of itself; softmax, average.",
    parts=(
        Part("weights", 1, lambda rng: [draw_tokens(rng)] * 2, view=second),
        Part("mixed tokens", 1, lambda rng: [draw_tokens(rng)] * 2, view=first),
        Part(
            "a batch",
            1,
            lambda rng: [draw_tokens(rng, 2), draw_tokens(rng, 3)],
            only_failure_hint="right for one sentence, wrong when a batch axis stands "
            "in front: count axes from the end (-1, -2)",
        ),
        Part(
            "no loop",
            1,
            lambda rng: [
                *((normal(rng, n, 4),) for n in (2, 40, 9)),
                *((normal(rng, b, 3, 4),) for b in (2, 40)),
            ],
            constant_steps=True,
        ),
    ),
    mistakes=(
        Mistake(
            "with_itself",
            "this is the chapter's self-attention, in which a token sees itself too: "
            "here its own weight is 0, and the others share all of it",
            with_itself,
        ),
        Mistake(
            "removed_afterwards",
            "a token's own weight is set to 0 after the softmax: its share is lost, "
            "and the rows no longer sum to one",
            removed_afterwards,
        ),
        Mistake(
            "score_of_zero",
            "a token's score with itself is set to 0, but e⁰ is 1, a share like any "
            "other: which score has an exponential of zero?",
            lambda x: mixed_by(torch.softmax(hidden(x, score=0.0), dim=-1), x),
        ),
        Mistake(
            "others_hidden",
            "the mask is the wrong way round: all but the token itself are hidden, so "
            "every token sees itself alone",
            lambda x: mixed_by(
                torch.softmax(products(x).masked_fill(~itself(x), -math.inf), -1), x
            ),
        ),
        Mistake(
            "softmax_over_the_askers",
            "the columns sum to one, the rows do not: each query has one unit of "
            "attention to spend, so the softmax runs along its row",
            lambda x: mixed_by(torch.softmax(hidden(x), dim=-2), x),
        ),
        Mistake(
            "sum_of_scores",
            "the scores themselves are used as weights: they can be negative, and "
            "their sum is anything; an average needs positive weights that sum to one",
            removed_from_the_scores,
        ),
        Mistake(
            "not_divided",
            "the weights are positive and do not sum to one: after the exponential "
            "each row is divided by its own sum",
            not_divided,
        ),
        Mistake(
            "weights_turned",
            "the weights are right, but the average runs down their columns: row i of "
            "the weights belongs to the result of token i",
            lambda x: (basic_self_attention(x)[1].mT @ x, basic_self_attention(x)[1]),
        ),
        Mistake(
            "scaled",
            "the scores are scaled by the root of the width: a good idea, but one of "
            "the next chapter; here they are plain dot products",
            lambda x: mixed_by(
                torch.softmax(hidden(x, scale=x.shape[-1] ** -0.5), dim=-1), x
            ),
        ),
        Mistake(
            "one_softmax_for_all",
            "all weights together sum to one: every row is a distribution of its own",
            one_for_all,
        ),
        Mistake(
            "future_hidden",
            "a triangle is hidden, the later tokens or the earlier ones: only a "
            "token's own score goes, the diagonal",
            lambda x: mixed_by(
                torch.softmax(
                    products(x).masked_fill(
                        torch.ones_like(products(x)).triu(1).bool(), -math.inf
                    ),
                    -1,
                ),
                x,
            ),
        ),
        Mistake(
            "others_later_hidden",
            "a token's own score and all later ones are hidden: only the diagonal "
            "goes, and a token sees the others on either side of it",
            lambda x: mixed_by(earlier_alone(x, -1e9), x),
        ),
        Mistake(
            "nothing_for_the_first",
            "a whole triangle is hidden beside the diagonal, and the token at its end "
            "is left with zeros: only the diagonal goes",
            lambda x: mixed_by(earlier_alone(x, -math.inf).nan_to_num(), x),
            lambda args, value: (
                not np.triu(value[1]).any() or not np.tril(value[1]).any()
            ),
        ),
        Mistake(
            "nothing_left",
            "a token's own score and all later ones are hidden, so the first token is "
            "left with nothing and its row is NaN: only the diagonal goes",
            lambda x: mixed_by(earlier_alone(x, -math.inf), x),
        ),
        Mistake(
            "cosine_scores",
            "the tokens are compared by their cosine, without their lengths: here the "
            "scores are the chapter's plain dot products",
            lambda x: mixed_by(
                torch.softmax(hidden(x / x.norm(dim=-1, keepdim=True)), -1), x
            ),
        ),
        Mistake(
            "features_compared",
            "the table compares features with features (XᵀX): a score compares two "
            "tokens, which are the rows of X",
            lambda x: mixed_by(torch.softmax(hidden(x.transpose(-2, -1)), dim=-1), x),
        ),
        Mistake(
            "axis_from_the_left",
            "the axis of the softmax is counted from the left: with a batch in front "
            "it is no longer the one meant; count from the end",
            lambda x: mixed_by(torch.softmax(hidden(x), dim=1), x),
        ),
        Mistake(
            "first_axis",
            "the softmax runs down the columns, over the queries: each of them has one "
            "unit to spend, along its row; and `.T` turns a batch inside out, "
            "`.transpose(-2, -1)` does not",
            lambda x: mixed_by(
                torch.softmax((x @ x.T).masked_fill(itself(x), -math.inf), dim=0), x
            ),
        ),
    ),
    packaged=("basic_self_attention",),
)


# ----------------------------------------------------------------------- specimens


def by_einsum(x):
    """The plain self-attention of the chapter, in other words."""
    scores = torch.einsum("...id,...jd->...ij", x, x)
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    weights = powers / powers.sum(-1, keepdim=True)
    return torch.einsum("...ij,...jd->...id", weights, x), weights


def by_weights(weights, x):
    return torch.matmul(weights, x), weights


def others(x):
    """1 for every pair of two different tokens."""
    return 1 - torch.eye(x.shape[-2])


def by_powers(x):
    powers = torch.exp(x @ x.mT) * others(x)
    weights = powers / powers.sum(-1, keepdim=True)
    return torch.einsum("...ij,...jd->...id", weights, x), weights


def shared_again(x):
    """The chapter's weights, the diagonal taken out and shared again; in double."""
    weights = by_einsum(x.double())[1] * others(x)
    return by_weights(weights / weights.sum(-1, keepdim=True), x.double())


def added(x):
    far = torch.zeros(x.shape[-2], x.shape[-2]).fill_diagonal_(-math.inf)
    return by_weights((x @ x.transpose(-1, -2) + far).softmax(-1), x)


def where(x):
    own = torch.arange(x.shape[-2])
    scores = torch.where(own[:, None] == own, torch.tensor(-1e9), x @ x.mT)
    return list(by_weights(scores.softmax(-1), x))


def before(x, score):
    """A causal mask that hides the diagonal too."""
    mask = torch.ones(x.shape[-2], x.shape[-2]).tril(-1)
    return by_weights(torch.where(mask > 0, x @ x.mT, score).softmax(-1), x)


def one_batch_axis(x):
    """By `bmm`, which takes three axes: a sentence alone becomes a batch of one."""
    rows = x if x.dim() == 3 else x[None]
    own = torch.eye(x.shape[-2]).bool()
    scores = torch.bmm(rows, rows.transpose(1, 2)).masked_fill(own, -math.inf)
    weights = scores.softmax(-1)
    found = torch.bmm(weights, rows), weights
    return found if x.dim() == 3 else (found[0][0], found[1][0])


RIGHT = [by_powers, shared_again, added, where, one_batch_axis]
WRONG = [
    ("with_itself", by_einsum),
    ("with_itself", lambda x: by_weights((x @ x.mT).softmax(dim=-1), x)),
    ("removed_afterwards", lambda x: by_weights(by_einsum(x)[1] * others(x), x)),
    ("score_of_zero", lambda x: by_weights((x @ x.mT * others(x)).softmax(-1), x)),
    ("softmax_over_the_askers", lambda x: by_weights(by_powers(x)[1].mT, x)),
    ("sum_of_scores", lambda x: by_weights((x @ x.mT) * others(x), x)),
    ("not_divided", lambda x: by_weights((x @ x.mT).exp() * others(x), x)),
    ("scaled", lambda x: by_weights(by_powers(x * x.shape[-1] ** -0.25)[1], x)),
    ("weights_turned", lambda x: (by_powers(x)[1].mT @ x, by_powers(x)[1])),
    ("cosine_scores", lambda x: by_weights(by_powers(F.normalize(x, dim=-1))[1], x)),
    ("others_later_hidden", lambda x: before(x, -1e9)),
    ("nothing_left", lambda x: before(x, -math.inf)),
    ("order", lambda x: by_powers(x)[::-1]),
]
