"""`symmetric_mix`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def symmetric_mix(mix: Tensor) -> Tensor:
    n = len(mix)
    diagonal = mix.diagonal().mean()
    beside = (mix.sum() - mix.diagonal().sum()) / (n * (n - 1))
    return (diagonal - beside) * torch.eye(n) + beside


def beside_filled(mix: Tensor, beside: Tensor | float) -> Tensor:
    """The mean on the diagonal, something beside it."""
    n = len(mix)
    return mix.diagonal().mean() * torch.eye(n) + beside * (1 - torch.eye(n))


def by_line(mix: Tensor, dim: int) -> Tensor:
    """Beside the diagonal the mean of each row or column, its diagonal left out."""
    own = mix.diagonal().unsqueeze(dim)
    return beside_filled(mix, (mix.sum(dim, keepdim=True) - own) / (len(mix) - 1))


def two_triangles(mix: Tensor) -> Tensor:
    one = torch.ones_like(mix)
    above, below = (mix[x.bool()].mean() for x in (one.triu(1), one.tril(-1)))
    return beside_filled(mix, above * one.triu(1) + below * one.tril(-1))


def rotated_average(mix: Tensor) -> Tensor:
    n = len(mix)
    place = torch.arange(n)
    orders = (place + place[:, None]) % n
    return torch.stack([mix[order][:, order] for order in orders]).mean(dim=0)


def sampled(mix: Tensor, count: int = 400) -> Tensor:
    orders = [torch.randperm(len(mix)) for _ in range(count)]
    return torch.stack([mix[order][:, order] for order in orders]).mean(dim=0)


def average_of(mix: np.ndarray) -> np.ndarray:
    return symmetric_mix(torch.from_numpy(mix)).numpy()


def draw_mix(rng: np.random.Generator) -> list[Args]:
    return [(normal(rng, n, n),) for n in (3, 4, 6)]


def draw_large_mix(rng: np.random.Generator) -> list[Args]:
    return [(normal(rng, 13, 13),)]


QUESTION = Question(
    id="07.7",
    title="A mixture made symmetric",
    answer="symmetric_mix",
    arguments=("mix",),
    outputs=(Output("mix", "token token"),),
    reference=symmetric_mix,
    difficulty="hard",
    minutes=15,
    next_step="two numbers are enough: one for the diagonal, one for the rest.",
    parts=(
        Part("few tokens", 2, draw_mix),
        Part(
            "13 tokens",
            1,
            draw_large_mix,
            only_failure_hint="right for few tokens, but 13! is more than six billion "
            "orders: find what the average comes to without making it",
        ),
    ),
    mistakes=(
        Mistake(
            "rotations_only",
            "this is the average over the rotations of the tokens, n of the n! "
            "orders: entries far from the diagonal are still told from those near it",
            rotated_average,
        ),
        Mistake(
            "columns_averaged",
            "every column is averaged on its own: where tokens change places, the "
            "columns do so as well as the rows",
            lambda mix: mix.mean(dim=0, keepdim=True).expand_as(mix).clone(),
        ),
        Mistake(
            "one_number",
            "every entry is the same: a token may count differently for itself, no "
            "order ever moves a diagonal entry off the diagonal",
            lambda mix: mix.mean() * torch.ones_like(mix),
        ),
        Mistake(
            "mean_of_all_beside",
            "beside the diagonal stands the mean of the whole matrix: the diagonal "
            "must be left out of it",
            lambda mix: beside_filled(mix, mix.mean()),
        ),
        Mistake(
            "divided_by_n_squared",
            "the sum beside the diagonal is divided by n²: how many entries stand "
            "there?",
            lambda mix: beside_filled(
                mix, (mix.sum() - mix.diagonal().sum()) / mix.numel()
            ),
        ),
        Mistake(
            "diagonal_kept",
            "the entries of the diagonal are still different: some order brings each "
            "of them to the place of any other",
            lambda mix: (
                torch.diag(mix.diagonal())
                + symmetric_mix(mix) * (1 - torch.eye(len(mix)))
            ),
        ),
        Mistake(
            "transposed_average",
            "this is the average of the matrix and its transpose: symmetric in "
            "another sense; every order of the tokens counts, not one mirror",
            lambda mix: (mix + mix.T) / 2,
        ),
        Mistake(
            "rows_averaged",
            "every row is averaged on its own: tokens would still be told apart by "
            "their place",
            lambda mix: mix.mean(dim=1, keepdim=True).expand_as(mix).clone(),
        ),
        Mistake(
            "only_the_diagonal",
            "nothing is mixed any more: beside the diagonal stands zero, though the "
            "average of those entries is not zero",
            lambda mix: beside_filled(mix, 0.0),
        ),
        Mistake(
            "summed",
            "this is the sum over all orders; the average was asked for",
            lambda mix: symmetric_mix(mix) * math.factorial(len(mix)),
        ),
        Mistake(
            "rows_beside",
            "the entries beside the diagonal are averaged in each row on its own: some "
            "order brings any of them to the place of any other",
            lambda mix: by_line(mix, 1),
        ),
        Mistake(
            "columns_beside",
            "the entries beside the diagonal are averaged in each column on its own: "
            "some order brings any of them to the place of any other",
            lambda mix: by_line(mix, 0),
        ),
        Mistake(
            "triangles",
            "above and below the diagonal stand two different averages: an order that "
            "turns two tokens round exchanges the two entries of their pair",
            two_triangles,
        ),
        Mistake(
            "upper_alone",
            "only the entries above the diagonal are averaged: those below it count "
            "as well, for an order that turns two tokens round brings them up",
            lambda mix: beside_filled(
                mix, mix[torch.ones_like(mix).triu(1) > 0].mean()
            ),
        ),
        Mistake(
            "lower_alone",
            "only the entries below the diagonal are averaged: those above it count "
            "as well, for an order that turns two tokens round brings them down",
            lambda mix: beside_filled(
                mix, mix[torch.ones_like(mix).tril(-1) > 0].mean()
            ),
        ),
        Mistake(
            "pairs_counted_once",
            "the sum beside the diagonal is divided by the number of pairs: every pair "
            "has two entries, one on either side",
            lambda mix: beside_filled(
                mix, (mix.sum() - mix.trace()) / (len(mix) * (len(mix) - 1) / 2)
            ),
        ),
        Mistake(
            "diagonal_summed",
            "on the diagonal stands the sum of its entries: an average divides by "
            "their number, there too",
            lambda mix: (
                symmetric_mix(mix)
                + (mix.trace() - mix.trace() / len(mix)) * torch.eye(len(mix))
            ),
        ),
        Mistake(
            "some_orders",
            "this comes near the average, and not more: some orders, drawn by chance, "
            "never give all of them; find what the average comes to",
            sampled,
            lambda args, value: (
                value.shape == args[0].shape
                and len(np.unique(value)) > 2 * len(value)
                and 1e-3 < np.abs(value - average_of(args[0])).max() < args[0].std() / 2
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_mask(mix, diagonal, beside):
    return torch.where(torch.eye(len(mix)).bool(), diagonal, beside)


RIGHT = [
    lambda mix: by_mask(
        mix,
        mix.trace() / len(mix),
        mix[~torch.eye(len(mix)).bool()].mean(),
    )
]
WRONG = [
    (
        "rows_beside",
        lambda mix: by_mask(
            mix,
            mix.trace() / len(mix),
            ((mix.sum(1) - mix.diagonal()) / (len(mix) - 1))[:, None],
        ),
    ),
    ("columns_beside", lambda mix: by_line(mix.T, 1).T),
    (
        "triangles",
        lambda mix: by_mask(
            mix,
            mix.trace() / len(mix),
            torch.where(mix.tril() == 0, mix.triu(1).sum(), mix.tril(-1).sum())
            / math.comb(len(mix), 2),
        ),
    ),
    (
        "upper_alone",
        lambda mix: by_mask(
            mix,
            mix.trace() / len(mix),
            mix.triu(1).sum() / math.comb(len(mix), 2),
        ),
    ),
    (
        "pairs_counted_once",
        lambda mix: by_mask(
            mix,
            mix.trace() / len(mix),
            (mix.sum() - mix.trace()) / math.comb(len(mix), 2),
        ),
    ),
    (
        "diagonal_summed",
        lambda mix: by_mask(mix, mix.trace(), mix[~torch.eye(len(mix)).bool()].mean()),
    ),
    (
        "rotations_only",
        lambda mix: sum(mix.roll((s, s), (0, 1)) for s in range(len(mix))) / len(mix),
    ),
    ("one_number", lambda mix: torch.full_like(mix, float(mix.mean()))),
    ("transposed_average", lambda mix: 0.5 * mix + 0.5 * mix.T),
    (
        "mean_of_all_beside",
        lambda mix: by_mask(mix, mix.trace() / len(mix), mix.mean()),
    ),
    (
        "only_the_diagonal",
        lambda mix: torch.diag(mix.diagonal().mean().expand(len(mix))),
    ),
]
