"""`look_at_map`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import first, normal, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q1_attend import Pair, finish, shares


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


def softmax_by_column(features: Tensor, query: Tensor) -> Pair:
    weights = torch.softmax(torch.einsum("bdyx,bd->byx", features, query), dim=-2)
    return torch.einsum("byx,bdyx->bd", weights, features), weights


def softmax_over_images(features: Tensor, query: Tensor) -> Pair:
    weights = torch.softmax(torch.einsum("bdyx,bd->byx", features, query), dim=0)
    return torch.einsum("byx,bdyx->bd", weights, features), weights


def softmax_of_all(features: Tensor, query: Tensor) -> Pair:
    scores = torch.einsum("bdyx,bd->byx", features, query)
    weights = torch.softmax(scores.flatten(), dim=0).reshape(scores.shape)
    return torch.einsum("byx,bdyx->bd", weights, features), weights


def scaled(features: Tensor, query: Tensor) -> Tensor:
    return look_at_map(features, query / math.sqrt(query.shape[-1]))[1]


def weighed_by(scores: Tensor, features: Tensor) -> Pair:
    """Finish from scores (batch, y, x) that went wrong."""
    weights = torch.softmax(scores.flatten(1), dim=1).reshape(scores.shape)
    return torch.einsum("byx,bdyx->bd", weights, features), weights


QUESTION = Question(
    id="04.7",
    title="An image as a set of keys",
    answer="look_at_map",
    arguments=("features", "query"),
    outputs=(Output("context", "d"), Output("map", "y x")),
    reference=look_at_map,
    difficulty="medium",
    minutes=10,
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
            "softmax_by_column",
            "every column of the map sums to one: a softmax over one axis, or over "
            "both in turn; all cells of an image share one unit",
            softmax_by_column,
            lambda args, value: np.allclose(np.sum(value[1], -2), 1, atol=1e-3),
        ),
        Mistake(
            "softmax_over_images",
            "at each cell the weights of all images sum to one: the softmax runs over "
            "the batch; the cells of one image share one unit",
            softmax_over_images,
            lambda args, value: np.allclose(np.sum(value[1], 0), 1, atol=1e-3),
        ),
        Mistake(
            "averaged_once_more",
            "the weighted cells are averaged once more: the weights already sum to "
            "one, so their sum is the average",
            lambda f, q: (
                look_at_map(f, q)[0] / math.prod(f.shape[2:]),
                look_at_map(f, q)[1],
            ),
        ),
        Mistake(
            "laid_out_flat",
            "the weights are right, in one row for each image: lay them out as the "
            "cells lie in the map",
            lambda f, q: (look_at_map(f, q)[0], look_at_map(f, q)[1].flatten(1)),
        ),
        Mistake(
            "cosines",
            "the scores are divided by the lengths of cell and query: this question "
            "asks for the plain dot score",
            lambda f, q: weighed_by(torch.cosine_similarity(f, q[..., None, None]), f),
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


# ----------------------------------------------------------------------- specimens


def by_cells(list_cells, lay_out):
    def answer(features, query):
        cells = list_cells(features)
        weights = shares(torch.einsum("bnd,bd->bn", cells, query))
        return torch.einsum("bn,bnd->bd", weights, cells), lay_out(weights, features)

    return answer


def rows(features):
    return torch.stack(features.flatten(2).unbind(-1), 1)


def columns(features):
    return features.transpose(2, 3).flatten(2).transpose(1, 2)


def in_rows(weights, features):
    return weights.view(len(features), *features.shape[2:])


def products(features, query):
    return (features * query[:, :, None, None]).sum(1)


def pooled(weights, features):
    return (weights[:, None] * features).sum((2, 3))


def map_by(weigh):
    def answer(features, query):
        weights = weigh(products(features, query))
        return pooled(weights, features), weights

    return answer


def averaged(weights, features):
    return (weights[:, None] * features).mean((2, 3)), weights


def of_directions(features, query):
    unit = features / features.norm(dim=1, keepdim=True)
    e = products(unit, query / query.norm(dim=1, keepdim=True))
    weights = e.exp() / e.exp().sum((1, 2), keepdim=True)
    return pooled(weights, features), weights


RIGHT = [
    by_cells(rows, in_rows),
    by_cells(columns, lambda a, f: a.view(len(f), f.shape[3], -1).mT),
    map_by(lambda e: e.exp() / e.exp().sum((1, 2), keepdim=True)),
]
WRONG = [
    ("reshaped", by_cells(lambda f: f.reshape(len(f), -1, f.shape[1]), in_rows)),
    ("columns_first", by_cells(columns, in_rows)),
    ("softmax_by_row", map_by(shares)),
    ("softmax_by_column", map_by(lambda e: e.softmax(2).softmax(1))),
    ("softmax_over_images", map_by(lambda e: e.exp() / e.exp().sum(0))),
    ("softmax_of_the_batch", map_by(lambda e: e.exp() / e.exp().sum())),
    (
        "mean_of_cells",
        lambda f, q: (f.flatten(2).mean(2), by_cells(rows, in_rows)(f, q)[1]),
    ),
    ("sum_of_cells", map_by(lambda e: e)),
    ("averaged_once_more", lambda f, q: averaged(by_cells(rows, in_rows)(f, q)[1], f)),
    ("laid_out_flat", by_cells(rows, lambda weights, f: weights)),
    ("cosines", of_directions),
    ("scaled", lambda f, q: by_cells(rows, in_rows)(f, q / math.sqrt(q.shape[1]))),
]
