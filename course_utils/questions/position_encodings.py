"""The questions of chapter 08 on waves: at any places, shifted, and as turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import normal


def pair_numbers(d_model: int) -> Tensor:
    return torch.arange(d_model // 2, dtype=torch.float64)


def speeds(d_model: int) -> Tensor:
    """How far each pair turns per place, in double precision."""
    return 10000.0 ** (-2 * pair_numbers(d_model) / d_model)


def interleaved(even: Tensor, odd: Tensor) -> Tensor:
    return torch.stack([even, odd], dim=-1).flatten(-2).float()


# ------------------------------------------------------------------------- 08.1 waves


def waves(positions: Tensor, d_model: int) -> Tensor:
    angles = positions[:, None] * speeds(d_model)
    return interleaved(angles.sin(), angles.cos())


def waves_at(speed: Callable[[int], Tensor]) -> Callable[..., Tensor]:
    """Waves whose speeds went wrong."""

    def wrong(positions: Tensor, d_model: int) -> Tensor:
        angles = positions[:, None] * speed(d_model)
        return interleaved(angles.sin(), angles.cos())

    return wrong


def turns_like(speed: Callable[[int], Tensor]) -> Callable[[Args, Any], bool]:
    """The sign of wrong speeds: in 32 bits, large angles can't be compared."""

    def sign(args: Args, value: Any) -> bool:
        angles = args[0][:, None] * speed(args[1]).numpy()
        small = np.abs(angles) < 500
        pairs = ((value[:, 0::2], np.sin(angles)), (value[:, 1::2], np.cos(angles)))
        return all(np.allclose(a[small], b[small], atol=1e-3) for a, b in pairs)

    return sign


def quicker(d_model: int) -> Tensor:
    return 1 / speeds(d_model)


def whole_turns(d_model: int) -> Tensor:
    return 2 * torch.pi * speeds(d_model)


def own_speed_per_column(positions: Tensor, d_model: int) -> Tensor:
    column = torch.arange(d_model, dtype=torch.float64)
    angles = positions[:, None] * 10000.0 ** (-column / d_model)
    return torch.where(column % 2 == 0, angles.sin(), angles.cos()).float()


def in_blocks(positions: Tensor, d_model: int) -> Tensor:
    angles = positions[:, None] * speeds(d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=-1).float()


def cosine_first(positions: Tensor, d_model: int) -> Tensor:
    angles = positions[:, None] * speeds(d_model)
    return interleaved(angles.cos(), angles.sin())


def sines_only(positions: Tensor, d_model: int) -> Tensor:
    angles = positions[:, None] * speeds(d_model)
    return interleaved(angles.sin(), angles.sin())


def draw_first_places(rng: np.random.Generator) -> list[Args]:
    return [(np.arange(n), d) for n, d in ((5, 8), (int(rng.integers(6, 12)), 14))]


def draw_places(rng: np.random.Generator) -> list[Args]:
    return [(rng.integers(0, 300, n), d) for n, d in ((3, 6), (7, 10), (4, 16))]


WAVES = Question(
    id="08.1",
    title="Waves at any places",
    answer="waves",
    arguments=("positions", "d_model"),
    outputs=(Output("waves", "token d_model"),),
    reference=waves,
    tolerance=1e-3,
    next_step="make the angle of every place and wave, then its sine and cosine.",
    parts=(
        Part("sines", 1, draw_first_places, view=lambda value: value[:, 0::2]),
        Part("cosines", 1, draw_first_places, view=lambda value: value[:, 1::2]),
        Part(
            "places in any order",
            1,
            draw_places,
            alone="right for 0, 1, 2, …, wrong for other places: the angle belongs to "
            "the number in `positions`, not to its row",
        ),
    ),
    mistakes=(
        Mistake(
            "blocks",
            "all sines stand first, then all cosines: sine and cosine of one wave "
            "stand next to each other",
            in_blocks,
        ),
        Mistake(
            "exponent_off_by_two",
            "the waves get slower by half the step they should in the exponent: wave "
            "i fills two columns, so its first column is not number i",
            waves_at(lambda d: 10000.0 ** (-pair_numbers(d) / d)),
        ),
        Mistake(
            "exponent_doubled",
            "the exponent runs twice as fast as it should: the factor two is in it "
            "twice, by the column's number and once more by hand",
            waves_at(lambda d: 10000.0 ** (-4 * pair_numbers(d) / d)),
        ),
        Mistake(
            "own_speed_per_column",
            "sine and cosine of a pair have different speeds: the exponent uses the "
            "column's own number, so that no two columns are one hand of a clock",
            own_speed_per_column,
        ),
        Mistake(
            "faster_and_faster",
            "the waves get faster from left to right: the sign of the exponent is "
            "turned round",
            waves_at(quicker),
            turns_like(quicker),
        ),
        Mistake(
            "last_wave_at_the_end",
            "the last wave is stretched until it reaches the base exactly; by the "
            "chapter's formula it stays short of it",
            waves_at(lambda d: 10000.0 ** (-pair_numbers(d) / (d / 2 - 1))),
        ),
        Mistake(
            "whole_turns",
            "every angle is 2 pi times too large: the quickest wave turns by 1 radian "
            "per place, not by a whole turn",
            waves_at(whole_turns),
            turns_like(whole_turns),
        ),
        Mistake(
            "cosine_first",
            "sine and cosine have changed places: look at place 0, where all sines "
            "are zero",
            cosine_first,
        ),
        Mistake(
            "sines_only",
            "both columns of a pair hold the sine: a hand of a clock needs two "
            "different coordinates",
            sines_only,
        ),
        Mistake(
            "row_numbers",
            "the rows are numbered 0, 1, 2, … whatever `positions` says; take the "
            "places as they come",
            lambda positions, d_model: waves(torch.arange(len(positions)), d_model),
        ),
        Mistake(
            "counted_from_one",
            "every place is one too large: the first place is number zero",
            lambda positions, d_model: waves(positions + 1, d_model),
        ),
    ),
    packaged=("sinusoidal",),
)


# ------------------------------------------------------------------------ 08.2 a shift


def block(angle: Tensor, above: float = -1, below: float = 1) -> Tensor:
    cos, sin = angle.cos(), angle.sin()
    return torch.stack(
        [torch.stack([cos, above * sin]), torch.stack([below * sin, cos])]
    )


def turning_blocks(angles: Tensor, above: float = -1, below: float = 1) -> Tensor:
    return torch.block_diag(*(block(a, above, below) for a in angles)).float()


def shift(k: int, d_model: int) -> Tensor:
    return turning_blocks(k * speeds(d_model))


def shift_of_halves(k: int, d_model: int) -> Tensor:
    """The matrix for waves whose sines stand in one half, cosines in the other."""
    cos, sin = (f(k * speeds(d_model)).diag().float() for f in (torch.cos, torch.sin))
    return torch.cat([torch.cat([cos, -sin], 1), torch.cat([sin, cos], 1)])


def draw_shifts(rng: np.random.Generator) -> list[Args]:
    return [(int(rng.integers(2, 50)), d) for d in (4, 6, 10)]


def draw_shifts_back(rng: np.random.Generator) -> list[Args]:
    return [(-int(rng.integers(2, 50)), d) for d in (4, 8)]


SHIFT = Question(
    id="08.2",
    title="The matrix of a step",
    answer="shift",
    arguments=("k", "d_model"),
    outputs=(Output("matrix", "d_model d_model"),),
    reference=shift,
    tolerance=1e-3,
    next_step="write one 2 x 2 block for each wave, and put them on the diagonal.",
    parts=(
        Part("forward", 2, draw_shifts),
        Part("backward", 1, draw_shifts_back),
    ),
    mistakes=(
        Mistake(
            "turned_back",
            "this matrix leads k places the other way: rows are multiplied from the "
            "left of it, so check which sine carries the minus",
            lambda k, d: shift(-k, d),
        ),
        Mistake(
            "one_speed",
            "all pairs are turned by the same angle: each wave has its own speed",
            lambda k, d: turning_blocks(k * torch.ones_like(speeds(d))),
        ),
        Mistake(
            "one_step",
            "this is the matrix of a single step, whatever k is: k steps turn k times "
            "as far",
            lambda k, d: turning_blocks(speeds(d)),
        ),
        Mistake(
            "never_back",
            "a negative k leads forward: only its size is used, and the direction is "
            "lost",
            lambda k, d: shift(abs(k), d),
        ),
        Mistake(
            "no_minus",
            "both sines have the same sign: such a block is no turn, for it changes "
            "the length of a hand",
            lambda k, d: turning_blocks(k * speeds(d), above=1),
        ),
        Mistake(
            "halves",
            "this fits waves with all sines first and all cosines after them; here "
            "sine and cosine of a wave are neighbours",
            shift_of_halves,
        ),
        Mistake(
            "slow_first",
            "the blocks come in the wrong order: the first pair is the quickest",
            lambda k, d: turning_blocks(k * speeds(d).flip(0)),
        ),
        Mistake(
            "matrix_times_k",
            "this is k times the matrix of one step: to take k steps is to multiply "
            "by that matrix k times, not to add it up",
            lambda k, d: k * turning_blocks(speeds(d)),
        ),
    ),
)


# ------------------------------------------------------------------------- 08.3 a turn


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


TURN = Question(
    id="08.3",
    title="RoPE with sines and cosines",
    answer="turn",
    arguments=("x", "positions"),
    outputs=(Output("turned", "token d_head"),),
    reference=turn,
    tolerance=1e-3,
    next_step="take the features in pairs and turn each pair by its own angle.",
    parts=(
        Part("one head", 2, draw_turns),
        Part(
            "batch and heads in front",
            1,
            draw_heads,
            alone="right for (token, d_head), wrong with axes in front: count axes "
            "from the end",
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
    ),
    packaged=("rotate", "rotary"),
)


QUESTIONS = (WAVES, SHIFT, TURN)
