"""`waves`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question
from course_utils.models.positions import sinusoidal


def pair_numbers(d_model: int) -> Tensor:
    return torch.arange(d_model // 2, dtype=torch.float64)


def speeds(d_model: int) -> Tensor:
    """How far each pair turns per place, in double precision."""
    return 10000.0 ** (-2 * pair_numbers(d_model) / d_model)


def interleaved(even: Tensor, odd: Tensor) -> Tensor:
    return torch.stack([even, odd], dim=-1).flatten(-2).float()


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


QUESTION = Question(
    id="08.1",
    title="Waves at any places",
    answer="waves",
    arguments=("positions", "d_model"),
    outputs=(Output("waves", "token d_model"),),
    reference=waves,
    tolerance=1e-3,
    difficulty="easy",
    minutes=8,
    next_step="make the angle of every place and wave, then its sine and cosine.",
    parts=(
        Part("sines", 1, draw_first_places, view=lambda value: value[:, 0::2]),
        Part("cosines", 1, draw_first_places, view=lambda value: value[:, 1::2]),
        Part(
            "places in any order",
            1,
            draw_places,
            only_failure_hint="right for 0, 1, 2, …, wrong for other places: the "
            "angle belongs to the number in `positions`, not to its row",
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
            "one_speed",
            "all waves turn equally fast: the exponent is 0 for each of them (a "
            "whole-number division `//` makes it so)",
            waves_at(lambda d: torch.ones(d // 2, dtype=torch.float64)),
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


# ----------------------------------------------------------------------- specimens


def by_entry(entry):
    """Fill the table of waves number by number: entry(t, column, d_model)."""

    def answer(positions, d_model):
        rows = [
            [entry(int(t), column, d_model) for column in range(d_model)]
            for t in positions
        ]
        return torch.tensor(rows)

    return answer


def wave(t, column, d, exponent=lambda column, d: (column - column % 2) / d):
    angle = t / 10000 ** exponent(column, d)
    return math.cos(angle) if column % 2 else math.sin(angle)


def halves(t, column, d):
    pair = column % (d // 2)
    angle = t / 10000 ** (2 * pair / d)
    return math.sin(angle) if column < d // 2 else math.cos(angle)


def in_32_bits(speed):
    """As most would write it; large angles are then off by a little."""

    def answer(positions, d_model):
        angles = positions[:, None] * speed(torch.arange(0, d_model, 2) / d_model)
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)

    return answer


RIGHT = [by_entry(wave), lambda positions, d: sinusoidal(301, d)[positions]]
WRONG = [
    ("one_speed", in_32_bits(lambda x: 10000.0 ** -(x // 1))),
    ("faster_and_faster", in_32_bits(lambda x: 10000.0**x)),
    ("whole_turns", in_32_bits(lambda x: 2 * torch.pi * 10000.0 ** (-x))),
    ("blocks", by_entry(halves)),
    (
        "exponent_off_by_two",
        by_entry(lambda t, c, d: wave(t, c, d, lambda c, d: c // 2 / d)),
    ),
    (
        "own_speed_per_column",
        by_entry(lambda t, c, d: wave(t, c, d, lambda c, d: c / d)),
    ),
    (
        "exponent_doubled",
        by_entry(lambda t, c, d: wave(t, c, d, lambda c, d: 2 * (c - c % 2) / d)),
    ),
    ("whole_turns", by_entry(lambda t, c, d: wave(2 * math.pi * t, c, d))),
    ("cosine_first", by_entry(lambda t, c, d: wave(t, c ^ 1, d))),
    ("counted_from_one", by_entry(lambda t, c, d: wave(t + 1, c, d))),
    ("row_numbers", lambda positions, d: sinusoidal(len(positions), d)),
]
