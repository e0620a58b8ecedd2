"""More questions of chapter 07: an input that betrays a claim, a count, a symmetry.

Their answers are one input of many, three numbers, and a matrix.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import normal

# ------------------------------------------------------- 07.5 betray the ring of tokens


def ring(x: np.ndarray) -> np.ndarray:
    """Add to every token its two neighbours; the last and the first are such too."""
    return np.roll(x, 1, axis=0) + x + np.roll(x, -1, axis=0)


def tokens_of(value: Any) -> np.ndarray:
    return np.asarray(value[0], np.float64)


def order_in(value: Any) -> list[int]:
    return [int(place) for place in np.asarray(value[1]).tolist()]


def is_order(args: Args, value: Any) -> bool:
    """The second result names each of the tokens once."""
    named = np.asarray(value[1])
    return bool(
        (named == named.round()).all()
        and sorted(order_in(value)) == list(range(len(tokens_of(value))))
    )


def betrays(args: Args, value: Any) -> bool:
    if not is_order(args, value):
        return False
    x, order = tokens_of(value), order_in(value)
    return bool(np.abs(ring(x[order]) - ring(x)[order]).max() > 0.01)


def turns_the_ring(args: Args, value: Any) -> bool:
    """Neighbours stay neighbours: the order is a rotation or a reflection."""
    order = order_in(value)
    steps = {(b - a) % len(order) for a, b in zip(order, order[1:] + order[:1])}
    return is_order(args, value) and steps in ({1}, {len(order) - 1})


def witness() -> tuple[Tensor, Tensor]:
    return torch.tensor([[1.0], [0], [0], [0], [0]]), torch.tensor([0, 2, 1, 3, 4])


RING = Question(
    id="07.5",
    title="Betray the ring",
    answer="witness",
    arguments=(),
    outputs=(
        Output("x", "token d_model", free=True),
        Output("order", "token", free=True),
    ),
    reference=witness,
    next_step="choose a few tokens and an order after which somebody has another "
    "neighbour.",
    parts=(Part("outputs that do not follow", 2, lambda rng: [()], accepts=betrays),),
    mistakes=(
        Mistake(
            "no_order",
            "the second result is no order of these tokens: each of 0 to n − 1 stands "
            "in it once, one for each row of x",
            lambda: (torch.eye(4), torch.tensor([1, 2, 3, 4])),
            lambda args, value: not is_order(args, value),
        ),
        Mistake(
            "few_tokens",
            "with three tokens or fewer everybody is everybody's neighbour, in any "
            "order: the ring can't be told from a plain sum",
            lambda: (torch.eye(3), torch.tensor([2, 0, 1])),
            lambda args, value: is_order(args, value) and len(tokens_of(value)) < 4,
        ),
        Mistake(
            "identity",
            "this order leaves every token where it is",
            lambda: (torch.eye(4), torch.arange(4)),
            lambda args, value: (
                is_order(args, value) and order_in(value) == sorted(order_in(value))
            ),
        ),
        Mistake(
            "rotation",
            "this order turns the ring, or its mirror image, as the colleague's test "
            "does: all keep their neighbours",
            lambda: (torch.randn(5, 2), torch.tensor([3, 4, 0, 1, 2])),
            turns_the_ring,
        ),
        Mistake(
            "twins",
            "the tokens are so much alike that their exchange can't be seen: choose "
            "others, or exchange others",
            lambda: (torch.ones(5, 2), torch.tensor([1, 0, 2, 3, 4])),
            lambda args, value: is_order(args, value) and not betrays(args, value),
        ),
    ),
)


# ---------------------------------------------------------- 07.6 how much does it know?

COUNTS = (1, 16, 120)


def count_is(index: int, *wrong: int) -> Any:
    return lambda args, value: any(float(value[index]) == each for each in wrong)


def counted(index: int) -> Any:
    return lambda value: value[index]


PREDICT = Question(
    id="07.6",
    title="How many outputs can the dog have?",
    answer="predict_counts",
    arguments=(),
    outputs=(Output("alone"), Output("causal"), Output("positions")),
    reference=lambda: COUNTS,
    tolerance=1e-6,
    next_step="say first what of the order the dog's output can depend on.",
    parts=(
        Part("attention alone", 1, lambda rng: [()], view=counted(0)),
        Part("with a causal mask", 1, lambda rng: [()], view=counted(1)),
        Part("with positions", 1, lambda rng: [()], view=counted(2)),
    ),
    mistakes=(
        Mistake(
            "place_of_the_output",
            "the first number counts places: the row moves, but the numbers in the "
            "dog's row are what is counted",
            lambda: (5, 16, 120),
            count_is(0, 5),
        ),
        Mistake(
            "alone_sees_orders",
            "the first number would need a layer that sees order; this one is "
            "equivariant",
            lambda: (120, 16, 120),
            count_is(0, 120, 24, 16),
        ),
        Mistake(
            "mask_sees_orders",
            "the second number counts orders of the words before the dog: does one "
            "layer see the order of its keys?",
            lambda: (1, 120, 120),
            count_is(1, 120, 65, 24),
        ),
        Mistake(
            "mask_counts_words",
            "the second number asks only how many stand before the dog; it also "
            "matters which ones",
            lambda: (1, 5, 120),
            count_is(1, 5, 4),
        ),
        Mistake(
            "dog_before_itself",
            "the second number lets the dog itself be before or not: it always sees "
            "itself",
            lambda: (1, 32, 120),
            count_is(1, 32),
        ),
        Mistake(
            "nobody_before",
            "the second number leaves one case out: the dog may also stand first, with "
            "nobody before it",
            lambda: (1, 15, 120),
            count_is(1, 15),
        ),
        Mistake(
            "four_words",
            "the second number is that of the chapter, where three others were with "
            "the dog; here there are more",
            lambda: (1, 8, 24),
            count_is(1, 8),
        ),
        Mistake(
            "mask_is_blind",
            "the second number takes causal attention for equivariant: think of the "
            "dog standing first, and last",
            lambda: (1, 1, 120),
            count_is(1, 1),
        ),
        Mistake(
            "only_its_own_place",
            "the last number counts the places of the dog alone: where each of the "
            "others stands changes its output as well",
            lambda: (1, 16, 5),
            count_is(2, 5),
        ),
        Mistake(
            "others_only",
            "the last number counts the orders of the others, with the dog in one "
            "place: it can stand in each",
            lambda: (1, 16, 24),
            count_is(2, 24),
        ),
    ),
)


# -------------------------------------------------------- 07.7 a mixture made symmetric


def symmetric_mix(mix: Tensor) -> Tensor:
    n = len(mix)
    diagonal = mix.diagonal().mean()
    beside = (mix.sum() - mix.diagonal().sum()) / (n * (n - 1))
    return (diagonal - beside) * torch.eye(n) + beside


def beside_filled(mix: Tensor, beside: Tensor | float) -> Tensor:
    """The mean on the diagonal, something beside it."""
    n = len(mix)
    return mix.diagonal().mean() * torch.eye(n) + beside * (1 - torch.eye(n))


def draw_mix(rng: np.random.Generator) -> list[Args]:
    return [(normal(rng, n, n),) for n in (3, 4, 6)]


def draw_large_mix(rng: np.random.Generator) -> list[Args]:
    return [(normal(rng, 13, 13),)]


SYMMETRIC = Question(
    id="07.7",
    title="A mixture made symmetric",
    answer="symmetric_mix",
    arguments=("mix",),
    outputs=(Output("mix", "token token"),),
    reference=symmetric_mix,
    next_step="two numbers are enough: one for the diagonal, one for the rest.",
    parts=(
        Part("few tokens", 2, draw_mix),
        Part(
            "13 tokens",
            1,
            draw_large_mix,
            alone="right for few tokens, but 13! is more than six billion orders: find "
            "what the average comes to without making it",
        ),
    ),
    mistakes=(
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
    ),
)

QUESTIONS = (RING, PREDICT, SYMMETRIC)
