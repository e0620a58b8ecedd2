"""`merge`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def changes(ups: Tensor, downs: Tensor, scales: Tensor) -> Tensor:
    return scales[:, None, None] * (ups @ downs)  # (adapter, d_out, d_in)


def merge(weight: Tensor, ups: Tensor, downs: Tensor, scales: Tensor) -> Tensor:
    return weight + changes(ups, downs, scales).sum(dim=0)


def each(args: Args) -> np.ndarray:
    """What each adapter changes."""
    _, ups, downs, scales = args
    return scales[:, None, None] * (ups @ downs)


def draw(rng: np.random.Generator) -> Args:
    n, d = sizes(rng, 2, least=3)
    rank = 2
    shapes = (d, d), (n, d, rank), (n, rank, d)  # square: a transpose has to be seen
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    return *arrays, rng.uniform(0.5, 3, n).astype(np.float32)


QUESTION = Question(
    id="18.3",
    title="Merge several adapters",
    answer="merge",
    arguments=("weight", "ups", "downs", "scales"),
    outputs=(Output("merged", "d_out d_in"),),
    reference=merge,
    difficulty="medium",
    minutes=8,
    next_step="which matrix, applied to x, does the same as U (D x)?",
    parts=(Part("the merged matrix", 3, lambda rng: [draw(rng) for _ in range(3)]),),
    mistakes=(
        Mistake(
            "scales_made_shares",
            "the numbers in `scales` are turned into shares that sum to one: each "
            "adapter is added times its own number, as it stands",
            lambda w, u, d, s: w + changes(u, d, s / s.sum()).sum(dim=0),
        ),
        Mistake(
            "softmax_of_scales",
            "the numbers in `scales` go through a softmax: each adapter is added times "
            "its own number, as it stands",
            lambda w, u, d, s: w + changes(u, d, s.softmax(dim=0)).sum(dim=0),
        ),
        Mistake(
            "transposed",
            "the change is transposed: it is U D, rows are outputs as in the weight",
            lambda w, u, d, s: w + changes(u, d, s).sum(dim=0).T,
        ),
        Mistake(
            "mean_of_the_adapters",
            "the changes are averaged: their sum was added to the output",
            lambda w, u, d, s: w + changes(u, d, s).mean(dim=0),
        ),
        Mistake(
            "no_scales",
            "the factors are missing: each adapter has its own alpha / r",
            lambda w, u, d, s: w + (u @ d).sum(dim=0),
        ),
        Mistake(
            "one_adapter",
            "only one of the adapters is merged: add up all of them",
            lambda w, u, d, s: w + changes(u, d, s)[0],
            lambda args, value: any(
                np.allclose(value - args[0], x, 1e-3, 1e-3) for x in each(args)
            ),
        ),
        Mistake(
            "divided_by_rank",
            "the factors are divided by the rank: each number in `scales` is alpha / r "
            "already",
            lambda w, u, d, s: w + changes(u, d, s).sum(dim=0) / u.shape[-1],
        ),
        Mistake(
            "scales_twice",
            "the factors are there twice, at U and at D: each adapter has its own once",
            lambda w, u, d, s: w + changes(u, d, s * s).sum(dim=0),
        ),
        Mistake(
            "scales_summed",
            "the factors are added up before they multiply: each adapter has its own",
            lambda w, u, d, s: w + s.sum() * (u @ d).sum(dim=0),
        ),
        Mistake(
            "weight_for_each",
            "the old weight is added once for each adapter: there is one layer, and it "
            "counts once",
            lambda w, u, d, s: (w + changes(u, d, s)).sum(dim=0),
        ),
        Mistake(
            "summed_before",
            "the parts are summed before the product: sum the products U D, one for "
            "each adapter, else every U meets every D",
            lambda w, u, d, s: w + (s[:, None, None] * u).sum(0) @ d.sum(0),
        ),
        Mistake(
            "the_change_alone",
            "the old weight is missing: the change is added to it",
            lambda w, u, d, s: changes(u, d, s).sum(dim=0),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_columns(weight, ups, downs, scales):
    """Push every unit vector through the layer with its adapters."""
    columns = []
    for x in torch.eye(weight.shape[1]):
        y = weight @ x
        for up, down, scale in zip(ups, downs, scales):
            y = y + scale * (up @ (down @ x))
        columns.append(y)
    return torch.stack(columns, dim=1)


def einsum(weight, ups, downs, scales):
    return weight + torch.einsum("n,nor,nri->oi", scales, ups, downs)


RIGHT = [by_columns, einsum]
WRONG = [
    ("scales_made_shares", lambda w, u, d, s: einsum(w, u, d, s / s.sum())),
    ("softmax_of_scales", lambda w, u, d, s: einsum(w, u, d, s.softmax(0))),
    ("one_adapter", lambda w, u, d, s: einsum(w, u[-1:], d[-1:], s[-1:])),
    ("scales_twice", lambda w, u, d, s: einsum(w, u, d, s**2)),
    ("scales_summed", lambda w, u, d, s: einsum(w, u, d, s.sum().expand_as(s))),
    ("transposed", lambda w, u, d, s: w + torch.einsum("n,nor,nri->io", s, u, d)),
    ("mean_of_the_adapters", lambda w, u, d, s: w + (einsum(w, u, d, s) - w) / len(s)),
    ("no_scales", lambda w, u, d, s: einsum(w, u, d, s / s)),
    ("summed_before", lambda w, u, d, s: w + torch.einsum("n,nor,mri->oi", s, u, d)),
    ("the_change_alone", lambda w, u, d, s: einsum(w, u, d, s) - w),
]
