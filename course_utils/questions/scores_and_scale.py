"""More questions of chapter 06: the softmax's gradient, the scale, the scores' freedom.

Their answers are a matrix, three numbers, one pair of many, and an input that fails.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import normal, sizes

# -------------------------------------------------------------- 06.4 softmax's gradient


def softmax_jacobian(scores: Tensor) -> Tensor:
    p = torch.softmax(scores, dim=-1)
    return torch.diag(p) - torch.outer(p, p)


def jacobian_of(p: Tensor) -> Tensor:
    return torch.diag(p) - torch.outer(p, p)


def overflowing_softmax(scores: Tensor) -> Tensor:
    exponentials = torch.exp(scores)
    return exponentials / exponentials.sum()


def draw_scores(rng: np.random.Generator) -> list[Args]:
    return [(normal(rng, n),) for n in sizes(rng, 2)]


def draw_large_scores(rng: np.random.Generator) -> list[Args]:
    return [(normal(rng, 5) + np.float32(200),)]


def diagonal(value: np.ndarray) -> np.ndarray:
    return np.diagonal(value)


def beside_the_diagonal(value: np.ndarray) -> np.ndarray:
    return value - np.diag(np.diagonal(value))


JACOBIAN = Question(
    id="06.4",
    title="The gradient of the softmax",
    answer="softmax_jacobian",
    arguments=("scores",),
    outputs=(Output("jacobian", "weight score"),),
    reference=softmax_jacobian,
    next_step="write ∂a_i/∂s_j for i = j and for i ≠ j, then as one matrix.",
    parts=(
        Part("its diagonal", 1, draw_scores, view=diagonal),
        Part("beside the diagonal", 1, draw_scores, view=beside_the_diagonal),
        Part(
            "large scores",
            1,
            draw_large_scores,
            alone="right for small scores, wrong for large ones",
        ),
    ),
    mistakes=(
        Mistake(
            "only_the_diagonal",
            "only the diagonal is there: raising one score also lowers the weight of "
            "every other key, since they share one sum",
            lambda s: torch.diag(torch.softmax(s, -1) * (1 - torch.softmax(s, -1))),
        ),
        Mistake(
            "one_number_per_weight",
            "this is a − a², one number per weight: every weight depends on every "
            "score, so the gradient is a matrix",
            lambda s: torch.softmax(s, -1) - torch.softmax(s, -1) ** 2,
        ),
        Mistake(
            "plus_sign",
            "the sign beside the diagonal is wrong: when one score rises the other "
            "weights fall, as each column must sum to zero",
            lambda s: (
                torch.diag(torch.softmax(s, -1))
                + torch.outer(torch.softmax(s, -1), torch.softmax(s, -1))
            ),
        ),
        Mistake(
            "no_diagonal_term",
            "the term of the numerator is missing: a_i's own exponential also depends "
            "on s_i, which adds something on the diagonal",
            lambda s: -torch.outer(torch.softmax(s, -1), torch.softmax(s, -1)),
        ),
        Mistake(
            "outer_of_one_minus_p",
            "a_i (1 − a_j) everywhere is right on the diagonal only: beside it the 1 "
            "does not appear, as s_j is not in a_i's numerator",
            lambda s: torch.outer(torch.softmax(s, -1), 1 - torch.softmax(s, -1)),
        ),
        Mistake(
            "scores_for_weights",
            "the formula is filled with the scores: a stands for the weights, after "
            "the softmax",
            jacobian_of,
        ),
        Mistake(
            "gradient_of_the_logarithm",
            "this is the gradient of log a, δ_ij − a_j: one factor a_i short of that "
            "of a",
            lambda s: torch.eye(len(s)) - torch.softmax(s, -1),
        ),
        Mistake(
            "negative",
            "every sign is turned round: a higher score raises its own weight",
            lambda s: -softmax_jacobian(s),
        ),
        Mistake(
            "overflow",
            "exp of a large score overflows to infinity; subtract the largest score "
            "first, or let torch.softmax do it",
            lambda s: jacobian_of(overflowing_softmax(s)),
        ),
    ),
)


# -------------------------------------------------------------- 06.5 predict the spread

SPREAD = (8.0, 32.0, 4.0)


def spread_is(index: int, *wrong: float) -> Any:
    """Recognise typical wrong numbers at one place, whatever stands at the others."""
    return lambda args, value: any(
        abs(float(value[index]) - number) < 0.01 * number for number in wrong
    )


PREDICT = Question(
    id="06.5",
    title="Predict the spread of the scores",
    answer="predict_spread",
    arguments=(),
    outputs=(Output("unscaled"), Output("doubled"), Output("doubled_and_scaled")),
    reference=lambda: SPREAD,
    tolerance=0.01,
    next_step="no computer needed: add up the variances of the 64 terms of q·k.",
    parts=(
        Part("entries of spread 1", 1, lambda rng: [()], view=lambda value: value[0]),
        Part("entries of spread 2", 1, lambda rng: [()], view=lambda value: value[1]),
        Part("after the scale", 1, lambda rng: [()], view=lambda value: value[2]),
    ),
    mistakes=(
        Mistake(
            "variance",
            "the first number is the variance: the standard deviation is its root",
            lambda: (64.0, 1024.0, 16.0),
            spread_is(0, 64),
        ),
        Mistake(
            "already_scaled",
            "the first number is the spread after the scale; the question is what the "
            "scale has to undo",
            lambda: (1.0, 4.0, 4.0),
            spread_is(0, 1),
        ),
        Mistake(
            "two_d_k",
            "the first number counts the 64 queries and the 64 keys: one product q_i "
            "k_i is one term, so 64 terms are added",
            lambda: (math.sqrt(128), math.sqrt(512), math.sqrt(8)),
            spread_is(0, math.sqrt(128), 128),
        ),
        Mistake(
            "one_factor_doubled",
            "the second number doubles only once: in q·k both factors have spread 2, "
            "so each term spreads four times as much",
            lambda: (8.0, 16.0, 2.0),
            spread_is(1, 16),
        ),
        Mistake(
            "spread_unchanged",
            "the second number is that of spread 1: the scores grow with the entries "
            "too, not only with d_k",
            lambda: (8.0, 8.0, 1.0),
            spread_is(1, 8),
        ),
        Mistake(
            "variance_doubled",
            "the second number is a variance again: take the root, or think in "
            "standard deviations from the start",
            lambda: (8.0, 1024.0, 128.0),
            spread_is(1, 1024, 128),
        ),
        Mistake(
            "scale_cures_all",
            "the last number takes the scale as a cure for everything: √d_k undoes "
            "what d_k did, not what wide entries did",
            lambda: (8.0, 32.0, 1.0),
            spread_is(2, 1),
        ),
        Mistake(
            "divided_by_d_k",
            "the last number divides by d_k; the scale is its root",
            lambda: (8.0, 32.0, 0.5),
            spread_is(2, 0.5),
        ),
    ),
)


# ----------------------------------------------------------------- 06.6 another pair


def another_pair(w_q: Tensor, w_k: Tensor) -> tuple[Tensor, Tensor]:
    mix = torch.eye(w_q.shape[-1]) + 0.5 * torch.ones(w_q.shape[-1], w_q.shape[-1])
    return w_q @ mix, w_k @ torch.linalg.inv(mix).T


def draw_pair(rng: np.random.Generator) -> Args:
    d_model, d_k = sorted(sizes(rng, 2), reverse=True)
    return normal(rng, d_model, d_k), normal(rng, d_model, d_k)


def same_scores(args: Args, value: Any) -> bool:
    """The new pair has the old product, up to what rounding leaves."""
    w_q, w_k, new_q, new_k = (np.asarray(x, np.float64) for x in (*args, *value))
    product = w_q @ w_k.T
    return bool(np.abs(new_q @ new_k.T - product).max() < 1e-3 * np.abs(product).max())


def both_differ(args: Args, value: Any) -> bool:
    return all(np.abs(new - old).max() > 1e-2 for old, new in zip(args, value))


def is_another_pair(args: Args, value: Any) -> bool:
    return same_scores(args, value) and both_differ(args, value)


def mixes(args: Args, value: Any) -> tuple[np.ndarray, np.ndarray]:
    """Find the matrices that made the new pair from the old: W' = W M."""
    found = tuple(
        np.linalg.lstsq(np.asarray(old, np.float64), np.asarray(new, np.float64), None)
        for old, new in zip(args, value)
    )
    return found[0][0], found[1][0]


def made_from(args: Args, value: Any) -> list[bool]:
    """Tell of each new matrix whether it is the old one times something, W' = W M."""
    return [
        np.allclose(old @ mix, new, atol=1e-3)
        for old, mix, new in zip(args, mixes(args, value), value)
    ]


def mixed_by(relation: Any) -> Any:
    """Recognise a pair whose two mixing matrices stand in some wrong relation."""
    return lambda args, value: (
        all(made_from(args, value))
        and both_differ(args, value)
        and bool(relation(*mixes(args, value)))
    )


def close(left: np.ndarray, right: np.ndarray) -> bool:
    return np.allclose(left, right, atol=1e-3)


PAIR = Question(
    id="06.6",
    title="Another pair with the same scores",
    answer="another_pair",
    arguments=("w_q", "w_k"),
    outputs=(Output("new_w_q", "d_model d_k"), Output("new_w_k", "d_model d_k")),
    reference=another_pair,
    next_step="look for what can be put between W_Q and W_Kᵀ without changing the "
    "product.",
    parts=(
        Part("one pair", 1, lambda rng: [draw_pair(rng)], accepts=is_another_pair),
        Part(
            "any sizes",
            1,
            lambda rng: [draw_pair(rng) for _ in range(3)],
            accepts=is_another_pair,
            alone="right for one size of the weights, wrong for others",
        ),
    ),
    mistakes=(
        Mistake(
            "same_pair",
            "this is the same pair again: a different one was asked for",
            lambda w_q, w_k: (w_q.clone(), w_k.clone()),
            lambda args, value: all(close(a, b) for a, b in zip(args, value)),
        ),
        Mistake(
            "only_one_changed",
            "only one of the two matrices changes, so the product changes with it: "
            "what is done to one must be undone by the other",
            lambda w_q, w_k: (2 * w_q, w_k.clone()),
            lambda args, value: sum(close(a, b) for a, b in zip(args, value)) == 1,
        ),
        Mistake(
            "exchanged",
            "queries and keys have changed places: that transposes the scores, and "
            "“i looks at j” is not “j looks at i”",
            lambda w_q, w_k: (w_k.clone(), w_q.clone()),
            lambda args, value: close(args[0], value[1]) and close(args[1], value[0]),
        ),
        Mistake(
            "inverse_not_transposed",
            "the inverse stands in the keys as it is: in W_Q M (W_K N)ᵀ the second "
            "matrix appears transposed",
            lambda w_q, w_k: (
                w_q @ (torch.eye(w_q.shape[1]).cumsum(0)),
                w_k @ torch.linalg.inv(torch.eye(w_q.shape[1]).cumsum(0)),
            ),
            mixed_by(lambda q, k: close(q @ k, np.eye(len(q))) and not close(k.T, k)),
        ),
        Mistake(
            "both_scaled",
            "both are scaled by the same factor, so the scores are scaled by its "
            "square: the second must undo the first",
            lambda w_q, w_k: (2 * w_q, 2 * w_k),
            mixed_by(lambda q, k: close(q, k) and close(q, q[0, 0] * np.eye(len(q)))),
        ),
        Mistake(
            "same_matrix_twice",
            "both are multiplied by the same matrix, so that it stands in the product "
            "twice: the second must undo the first",
            lambda w_q, w_k: (
                w_q @ torch.eye(w_q.shape[1]).cumsum(0),
                w_k @ torch.eye(w_q.shape[1]).cumsum(0),
            ),
            mixed_by(close),
        ),
        Mistake(
            "not_from_the_right",
            "the new matrices are not the old ones times something (W M): only what "
            "stands between W_Q and W_Kᵀ can cancel, and that is on the right of both",
            lambda w_q, w_k: (w_q.flip(0), w_k.flip(0)),
            lambda args, value: (
                both_differ(args, value) and not any(made_from(args, value))
            ),
        ),
    ),
)


# ------------------------------------------------------------- 06.7 the failing input


def weights_with(value: Any, width: int) -> np.ndarray:
    """The weights of queries and keys when the scale is the root of `width`."""
    queries, keys = (np.asarray(x, np.float64) for x in value[:2])
    scores = queries @ keys.T / math.sqrt(width)
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def fit(value: Any) -> bool:
    queries, keys, values = value
    return queries.shape[1] == keys.shape[1] and keys.shape[0] == values.shape[0]


def gap(value: Any) -> np.ndarray:
    """How far the colleague's weights are from the right ones."""
    n_keys, d_k = value[1].shape
    return weights_with(value, d_k) - weights_with(value, n_keys)


def weights_show_it(args: Args, value: Any) -> bool:
    return fit(value) and bool(np.abs(gap(value)).max() > 0.01)


def context_shows_it(args: Args, value: Any) -> bool:
    return fit(value) and bool(np.abs(gap(value) @ value[2]).max() > 0.01)


def failing_input() -> tuple[Tensor, Tensor, Tensor]:
    queries = torch.ones(1, 2)
    keys = torch.tensor([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    return queries, keys, torch.tensor([[1.0], [0.0], [0.0]])


def all_rows_equal(table: np.ndarray) -> bool:
    return close(table, table[:1])


def scores_all_equal(args: Args, value: Any) -> bool:
    scores = value[0] @ value[1].T
    return fit(value) and close(scores, scores[:, :1])


FAILING = Question(
    id="06.7",
    title="Find the input that fails",
    answer="failing_input",
    arguments=(),
    outputs=(
        Output("queries", "query d_k", free=True),
        Output("keys", "key d_k", free=True),
        Output("values", "key d_v", free=True),
    ),
    reference=failing_input,
    next_step="choose small queries, keys and values for which the two functions "
    "differ.",
    parts=(
        Part("the weights differ", 1, lambda rng: [()], accepts=weights_show_it),
        Part(
            "the context differs",
            1,
            lambda rng: [()],
            accepts=context_shows_it,
            alone="the weights differ, the context does not: the difference is "
            "averaged away by these values",
        ),
    ),
    mistakes=(
        Mistake(
            "do_not_fit",
            "these do not fit together: queries and keys share d_k, keys and values "
            "share the number of keys",
            lambda: (torch.randn(2, 3), torch.randn(4, 5), torch.randn(4, 2)),
            lambda args, value: not fit(value),
        ),
        Mistake(
            "one_key",
            "with a single key the softmax gives it all the weight, whatever the scale",
            lambda: (torch.randn(2, 4), torch.randn(1, 4), torch.randn(1, 3)),
            lambda args, value: fit(value) and len(value[1]) == 1,
        ),
        Mistake(
            "as_many_keys_as_d_k",
            "there are as many keys as d_k: here the wrong scale happens to be the "
            "right one, which is how the bug got past its test",
            lambda: (torch.randn(2, 4), torch.randn(4, 4), torch.randn(4, 3)),
            lambda args, value: fit(value) and value[1].shape[0] == value[1].shape[1],
        ),
        Mistake(
            "scores_all_equal",
            "every key gets the same score (zeros, or keys that are all alike): the "
            "weights are then uniform, whatever the scale",
            lambda: (torch.zeros(2, 4), torch.randn(3, 4), torch.randn(3, 2)),
            scores_all_equal,
        ),
        Mistake(
            "values_all_equal",
            "all values are alike: their average is the same whatever the weights, so "
            "the context cannot show the difference",
            lambda: (torch.eye(2), torch.eye(3, 2), torch.ones(3, 4)),
            lambda args, value: fit(value) and all_rows_equal(value[2]),
        ),
        Mistake(
            "saturated",
            "the scores are so far apart that the softmax picks one key under either "
            "scale; choose smaller ones",
            lambda: (
                1000 * torch.ones(1, 2),
                torch.tensor([[9.0, 9.0], [1.0, 1.0], [2.0, 2.0]]),
                torch.tensor([[1.0], [2.0], [3.0]]),
            ),
            lambda args, value: (
                fit(value)
                and bool((weights_with(value, value[1].shape[1]).max(-1) > 0.99).all())
            ),
        ),
    ),
)

QUESTIONS = (JACOBIAN, PREDICT, PAIR, FAILING)
