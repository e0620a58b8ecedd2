"""Questions of chapter 04: a convolution's weights, an image as a set of keys."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.one_operator import Pair, finish
from course_utils.questions.queries_keys_values import first, normal, second, sizes

# -------------------------------------------------- 04.6 the weights of a convolution


def tap_weights(n_tokens: int, window: int) -> Tensor:
    place, taps = torch.arange(n_tokens), torch.arange(window) - window // 2
    return (place == place[:, None] + taps[:, None, None]).float()


def draw_window(rng: np.random.Generator) -> list[Args]:
    drawn = rng.permutation(np.arange(6, 12))[:3]
    return [(int(n), window) for n, window in zip(drawn, (3, 5, 3))]


def wrapped(n_tokens: int, window: int) -> Tensor:
    place, taps = torch.arange(n_tokens), torch.arange(window) - window // 2
    return (place == (place[:, None] + taps[:, None, None]) % n_tokens).float()


def clamped(n_tokens: int, window: int) -> Tensor:
    place, taps = torch.arange(n_tokens), torch.arange(window) - window // 2
    looked = (place[:, None] + taps[:, None, None]).clamp(0, n_tokens - 1)
    return (place == looked).float()


def causal(n_tokens: int, window: int) -> Tensor:
    place, taps = torch.arange(n_tokens), torch.arange(window) - window + 1
    return (place == place[:, None] + taps[:, None, None]).float()


def from_the_first(n_tokens: int, window: int) -> Tensor:
    place, taps = torch.arange(n_tokens), torch.arange(window)
    return (place == place[:, None] + taps[:, None, None]).float()


def whole_window(n_tokens: int, window: int) -> Tensor:
    inside = tap_weights(n_tokens, window).sum(dim=0)
    return (inside / inside.sum(dim=-1, keepdim=True)).expand(window, -1, -1)


CONVOLUTION = Question(
    id="04.6",
    title="The weights of a convolution",
    answer="tap_weights",
    arguments=("n_tokens", "window"),
    outputs=(Output("weights", "tap query key"),),
    reference=tap_weights,
    next_step="write down the table of one tap for five tokens by hand first.",
    parts=(
        Part(
            "inside",
            2,
            draw_window,
            view=lambda value: value[:, len(value) : -len(value)],
        ),
        Part("at the edges", 1, draw_window),
    ),
    mistakes=(
        Mistake(
            "flipped",
            "the taps come in the opposite order: the first one looks to the left, at "
            "earlier tokens",
            lambda n, window: tap_weights(n, window).flip(0),
        ),
        Mistake(
            "wrapped",
            "at the edges the taps look round the corner, at the other end: there is "
            "nothing to be seen there, and so no weight",
            wrapped,
        ),
        Mistake(
            "clamped",
            "at the edges the taps look at the last token again; a convolution with "
            "zero padding sees nothing there, so that row has no weight at all",
            clamped,
        ),
        Mistake(
            "ends_at_the_query",
            "the window ends at the query: it should reach equally far to both sides",
            causal,
        ),
        Mistake(
            "begins_at_the_query",
            "the window begins at the query: it should reach equally far to both sides",
            from_the_first,
        ),
        Mistake(
            "ones_over_the_window",
            "every tap has a 1 for each place in the window: a tap looks at one place "
            "only, so no row of its table sums to more than one",
            lambda n, window: (
                tap_weights(n, window).sum(dim=0).expand(window, -1, -1).clone()
            ),
        ),
        Mistake(
            "average_over_the_window",
            "every tap spreads its weight over the whole window: that is pooling; a "
            "tap looks at one place only, so that each can have its own value matrix",
            whole_window,
        ),
    ),
)


# ------------------------------------------------------ 04.7 a map is a set of keys


def look_at_map(features: Tensor, query: Tensor) -> Pair:
    batch, _, height, width = features.shape
    cells = features.flatten(2).mT
    context, weights = finish((cells @ query[:, :, None]).mT, cells)
    return context[:, 0], weights.reshape(batch, height, width)


def from_cells(cells: Tensor, features: Tensor, query: Tensor) -> Pair:
    """Finish from cells that were made of the map in a wrong way."""
    context, weights = finish((cells @ query[:, :, None]).mT, cells)
    return context[:, 0], weights.reshape(len(features), *features.shape[2:])


def draw_map(rng: np.random.Generator) -> list[Args]:
    cases = []
    for _ in range(2):
        batch, d, height, width = sizes(rng, 4, least=2)
        cases.append((normal(rng, batch, d, height, width), normal(rng, batch, d)))
    return cases


def columns_first(features: Tensor, query: Tensor) -> Pair:
    context, weights = look_at_map(features.mT, query)
    return context, weights.reshape(len(features), *features.shape[2:])


def softmax_by_row(features: Tensor, query: Tensor) -> Pair:
    weights = torch.softmax(torch.einsum("bdyx,bd->byx", features, query), dim=-1)
    return torch.einsum("byx,bdyx->bd", weights, features), weights


def softmax_of_all(features: Tensor, query: Tensor) -> Pair:
    scores = torch.einsum("bdyx,bd->byx", features, query)
    weights = torch.softmax(scores.flatten(), dim=0).reshape(scores.shape)
    return torch.einsum("byx,bdyx->bd", weights, features), weights


def scaled(features: Tensor, query: Tensor) -> Tensor:
    return look_at_map(features, query / math.sqrt(query.shape[-1]))[1]


MAP = Question(
    id="04.7",
    title="An image as a set of keys",
    answer="look_at_map",
    arguments=("features", "query"),
    outputs=(Output("context", "d"), Output("map", "y x")),
    reference=look_at_map,
    next_step="make one row of d numbers of every cell, attend, lay the weights out.",
    parts=(
        Part("the context", 2, draw_map, view=first),
        Part("the map", 2, draw_map, view=second),
    ),
    mistakes=(
        Mistake(
            "reshaped",
            "the map is reshaped as it lies in memory: channels come first there, so a "
            "row mixes numbers of different cells; move the axis, then flatten",
            lambda f, q: from_cells(f.reshape(len(f), -1, f.shape[1]), f, q),
        ),
        Mistake(
            "columns_first",
            "the cells are listed column by column and laid out row by row: the "
            "weights end up in other cells",
            columns_first,
        ),
        Mistake(
            "softmax_by_row",
            "every row of the map sums to one; all cells of an image share one unit",
            softmax_by_row,
            lambda args, value: np.allclose(np.sum(value[1], -1), 1, atol=1e-3),
        ),
        Mistake(
            "softmax_of_the_batch",
            "the weights of the whole batch sum to one: every image has a query of its "
            "own, and a unit of its own",
            softmax_of_all,
            lambda args, value: abs(np.sum(value[1]) - 1) < 1e-3 and len(args[0]) > 1,
        ),
        Mistake(
            "mean_of_cells",
            "the context is the plain mean of the cells: the weights are not used",
            lambda f, q: (f.mean(dim=(2, 3)), look_at_map(f, q)[1]),
        ),
        Mistake(
            "sum_of_cells",
            "the scores are used as weights: there is no softmax",
            lambda f, q: (
                torch.einsum("byx,bdyx->bd", torch.einsum("bdyx,bd->byx", f, q), f),
                torch.einsum("bdyx,bd->byx", f, q),
            ),
        ),
        Mistake(
            "scaled",
            "the scores are scaled: this question asks for the plain dot score",
            lambda f, q: (
                torch.einsum("byx,bdyx->bd", scaled(f, q), f),
                scaled(f, q),
            ),
        ),
    ),
)

QUESTIONS = (CONVOLUTION, MAP)
