"""`blank_out`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

MASK = 4


def blanked(
    tokens: Tensor,
    draw: Tensor,
    fate: Tensor,
    other: Tensor,
    least: int = 4,
    everywhere: bool = False,
    from_inputs: bool = False,
    other_from: float = 0.9,
) -> tuple[Tensor, Tensor]:
    chosen = (draw < 0.15) & (tokens >= least)
    inputs = torch.where(chosen & (fate < 0.8), MASK, tokens)
    inputs = torch.where(chosen & (fate >= other_from), other, inputs)
    asked = torch.ones_like(chosen) if everywhere else chosen
    return inputs, torch.where(asked, inputs if from_inputs else tokens, -100)


def blank_out(
    tokens: Tensor, draw: Tensor, fate: Tensor, other: Tensor
) -> tuple[Tensor, Tensor]:
    return blanked(tokens, draw, fate, other)


def drawn(rng: np.random.Generator) -> Args:
    batch, n = int(rng.integers(6, 9)), int(rng.integers(30, 40))
    tokens = rng.integers(5, 60, (batch, n))
    tokens[:, 0], tokens[:, -5], tokens[:, -4:] = 1, 2, 0
    numbers = rng.random((2, batch, n)).astype(np.float32)
    tokens[1, 1] = 3  # the last of the special ids
    numbers[0, :, -3] = numbers[0, 1, 1] = 0.01  # these would be chosen
    numbers[0, 0, 1:7] = 0.02
    numbers[1, 0, 1:7] = (0.1, 0.5, 0.82, 0.88, 0.92, 0.97)
    other = rng.integers(5, 60, (batch, n))
    return tokens.astype(np.int64), *numbers, other.astype(np.int64)


QUESTION = Question(
    id="18.1",
    title="Blanks without a leak",
    answer="blank_out",
    arguments=("tokens", "draw", "fate", "other"),
    outputs=(Output("inputs", "batch token"), Output("targets", "batch token")),
    reference=blank_out,
    difficulty="medium",
    minutes=12,
    next_step="begin with the boolean table of the chosen positions.",
    parts=(Part("inputs and targets", 3, lambda rng: [drawn(rng) for _ in range(3)]),),
    mistakes=(
        Mistake(
            "padding_is_asked",
            "padding, begin and end are blanked, too: only ids from 4 on are words",
            lambda t, d, f, o: blanked(t, d, f, o, least=0),
        ),
        Mistake(
            "three_is_a_word",
            "id 3 is chosen, too: ids 0 to 3 are special, all four",
            lambda t, d, f, o: blanked(t, d, f, o, least=3),
        ),
        Mistake(
            "every_token_is_asked",
            "the targets hold every token: most of them stand in the input, and the "
            "model would learn to copy; elsewhere the target is -100",
            lambda t, d, f, o: blanked(t, d, f, o, everywhere=True),
        ),
        Mistake(
            "targets_from_inputs",
            "the targets are taken from the blanked inputs: the model is then asked "
            "for the blank itself; take them from the tokens",
            lambda t, d, f, o: blanked(t, d, f, o, from_inputs=True),
        ),
        Mistake(
            "none_stays",
            "no chosen token stays: between 0.8 and 0.9 the input is the token itself, "
            "so that a word that is shown may also be right",
            lambda t, d, f, o: blanked(t, d, f, o, other_from=0.8),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_loop(tokens, draw, fate, other, least=4):
    inputs, targets = tokens.clone(), torch.full_like(tokens, -100)
    for i in range(tokens.shape[0]):
        for j in range(tokens.shape[1]):
            if draw[i, j] < 0.15 and tokens[i, j] >= least:
                targets[i, j] = tokens[i, j]
                if fate[i, j] < 0.8:
                    inputs[i, j] = MASK
                elif fate[i, j] >= 0.9:
                    inputs[i, j] = other[i, j]
    return inputs, targets


def copied(tokens, draw, fate, other):
    inputs, _ = by_loop(tokens, draw, fate, other)
    return inputs, tokens.clone()


def never_kept(tokens, draw, fate, other):
    return by_loop(tokens, draw, torch.where(fate < 0.8, fate, 0.95), other)


def asked_for_blanks(tokens, draw, fate, other):
    inputs, targets = by_loop(tokens, draw, fate, other)
    return inputs, inputs.where(targets >= 0, -100)


RIGHT = [by_loop]
WRONG = [
    ("padding_is_asked", lambda t, d, f, o: by_loop(t, d, f, o, least=0)),
    ("three_is_a_word", lambda t, d, f, o: by_loop(t, d, f, o, least=3)),
    ("every_token_is_asked", copied),
    ("targets_from_inputs", asked_for_blanks),
    ("none_stays", never_kept),
]
