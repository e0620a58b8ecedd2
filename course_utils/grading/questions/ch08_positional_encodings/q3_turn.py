"""`turn`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question
from course_utils.models.positions import sinusoidal

from .q1_waves import interleaved, pair_numbers, speeds, waves


def turn_by(x: Tensor, angles: Tensor) -> Tensor:
    a, b = x[..., 0::2], x[..., 1::2]
    return interleaved(
        a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()
    )


def turn(x: Tensor, positions: Tensor) -> Tensor:
    return turn_by(x, positions[:, None] * speeds(x.shape[-1]))


def turn_halves(x: Tensor, positions: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    cos, sin = (
        f(positions[:, None] * speeds(x.shape[-1])) for f in (torch.cos, torch.sin)
    )
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1).float()


def turned_into_halves(x: Tensor, positions: Tensor) -> Tensor:
    turned = turn(x, positions)
    return torch.cat([turned[..., 0::2], turned[..., 1::2]], dim=-1)


def turn_with_new_a(x: Tensor, positions: Tensor) -> Tensor:
    angles = positions[:, None] * speeds(x.shape[-1])
    a, b = x[..., 0::2], x[..., 1::2]
    a = a * angles.cos() - b * angles.sin()
    return interleaved(a, a * angles.sin() + b * angles.cos())


def swapped(x: Tensor) -> Tensor:
    """The numbers of the features, those of each pair exchanged."""
    return torch.arange(x.shape[-1]) ^ 1


def no_minus(x: Tensor, positions: Tensor) -> Tensor:
    angles = positions[:, None] * speeds(x.shape[-1])
    a, b = x[..., 0::2], x[..., 1::2]
    return interleaved(
        a * angles.cos() + b * angles.sin(), a * angles.sin() + b * angles.cos()
    )


def draw_turns(rng: np.random.Generator) -> list[Args]:
    return [
        (normal(rng, n, d), rng.permutation(np.arange(2, 60))[:n])
        for n, d in ((3, 8), (5, 6))
    ]


def draw_heads(rng: np.random.Generator) -> list[Args]:
    return [
        (normal(rng, 2, 3, 5, 8), np.arange(5)),
        (normal(rng, 4, 3, 6), np.arange(3)),
    ]


QUESTION = Question(
    id="08.3",
    title="RoPE with sines and cosines",
    answer="turn",
    arguments=("x", "positions"),
    outputs=(Output("turned", "token d_head"),),
    reference=turn,
    tolerance=1e-3,
    primitives=True,
    difficulty="medium",
    minutes=10,
    next_step="take the features in pairs and turn each pair by its own angle.",
    parts=(
        Part("one head", 2, draw_turns),
        Part(
            "batch and heads in front",
            1,
            draw_heads,
            only_failure_hint="right for (token, d_head), wrong with axes in front: "
            "count axes from the end",
        ),
    ),
    mistakes=(
        Mistake(
            "halves",
            "feature i is turned together with feature i + d/2: here the pairs are "
            "neighbours",
            turn_halves,
        ),
        Mistake(
            "put_back_as_halves",
            "the turned numbers are right, their order is not: all first numbers of "
            "the pairs stand before all second ones; put each pair back side by side",
            turned_into_halves,
        ),
        Mistake(
            "clockwise",
            "the pairs turn the other way: (1, 0) turned by a small angle has a small "
            "positive second number",
            lambda x, positions: turn(x, -positions),
        ),
        Mistake(
            "one_speed",
            "all pairs turn equally fast: each has its own speed, as the waves have",
            lambda x, positions: turn_by(
                x, positions[:, None] * torch.ones(x.shape[-1] // 2)
            ),
        ),
        Mistake(
            "exponent_off_by_two",
            "the pairs get slower by half the step they should in the exponent: pair i "
            "begins at feature 2i",
            lambda x, positions: turn_by(
                x,
                positions[:, None]
                * 10000.0 ** (-pair_numbers(x.shape[-1]) / x.shape[-1]),
            ),
        ),
        Mistake(
            "new_a_used_for_b",
            "the second number of a pair is made from the first one after it was "
            "turned: both need the old pair",
            turn_with_new_a,
        ),
        Mistake(
            "no_minus",
            "both sines come with a plus: that changes lengths, so it is no turn",
            no_minus,
        ),
        Mistake(
            "added",
            "waves are added to the features; here the features themselves are what "
            "is turned",
            lambda x, positions: x + waves(positions, x.shape[-1]),
        ),
        Mistake(
            "row_numbers",
            "the tokens are numbered 0, 1, 2, … whatever `positions` says",
            lambda x, positions: turn(x, torch.arange(x.shape[-2])),
        ),
        Mistake(
            "each_by_itself",
            "every number is multiplied by one cosine or one sine: a turn makes both "
            "numbers of a pair of *both* old ones",
            lambda x, positions: x * waves(positions, x.shape[-1])[:, swapped(x)],
        ),
    ),
    packaged=("rotate", "rotary"),
)


# ----------------------------------------------------------------------- specimens


def turned(x, angles):
    """Multiply every pair by a matrix of two rows."""
    c, s = angles.cos(), angles.sin()
    matrices = torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)
    pairs = x.double().unflatten(-1, (-1, 1, 2))
    return (pairs @ matrices).flatten(-3).float()


def as_complex(x, positions):
    pairs = torch.complex(x[..., ::2].double(), x[..., 1::2].double())
    done = pairs * torch.exp(1j * angles_of(x, positions))
    return torch.stack([done.real, done.imag], -1).flatten(-2).float()


def angles_of(x, positions, base=10000.0):
    d = x.shape[-1]
    return positions.double()[:, None] * base ** (-torch.arange(0, d, 2).double() / d)


def llama(x, positions):
    """Pair feature i with i + d/2, as much published code does."""
    half = x.shape[-1] // 2
    angles = angles_of(x, positions).float()
    cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
    swapped = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * cos + swapped * sin


RIGHT = [lambda x, positions: turned(x, angles_of(x, positions))]
WRONG = [
    (
        "each_by_itself",
        lambda x, positions: torch.stack(
            [
                x[..., ::2] * angles_of(x, positions).cos(),
                x[..., 1::2] * angles_of(x, positions).sin(),
            ],
            dim=-1,
        ).flatten(-2),
    ),
    ("halves", llama),
    (
        "put_back_as_halves",
        lambda x, positions: (
            turned(x, angles_of(x, positions))
            .unflatten(-1, (-1, 2))
            .transpose(-1, -2)
            .flatten(-2)
        ),
    ),
    ("clockwise", lambda x, positions: turned(x, -angles_of(x, positions))),
    (
        "one_speed",
        lambda x, positions: turned(x, angles_of(x, positions, base=1.0)),
    ),
    (
        "exponent_off_by_two",
        lambda x, positions: turned(x, angles_of(x, positions, base=100.0)),
    ),
    ("added", lambda x, positions: x + sinusoidal(60, x.shape[-1])[positions]),
    (
        "row_numbers",
        lambda x, positions: turned(x, angles_of(x, torch.arange(x.shape[-2]))),
    ),
    ("library", as_complex),
]
