"""The last questions of chapter 10: what one head can't do, what a test can't see."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from einops import rearrange
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.several_heads import counted_anew, counted_back, merge_heads

# ------------------------------------------------------------ 10.6 one head's score

PREDICTED = (1 / 7 + 6 / 7 / 5, 1 / 5, 1 / 2 + 1 / 14)


def guessed(index: int, *numbers: float) -> Any:
    return lambda args, value: any(
        abs(float(value[index]) - number) < 0.004 for number in numbers
    )


def prediction(name: str, hint: str, index: int, *numbers: float) -> Mistake:
    def wrong() -> tuple[float, ...]:
        return tuple(numbers[0] if i == index else PREDICTED[i] for i in range(3))

    return Mistake(name, hint, wrong, guessed(index, *numbers))


PREDICT = Question(
    id="10.6",
    title="Predict what one head gets",
    answer="predict_cards",
    arguments=(),
    outputs=(Output("repeated"), Output("guessed"), Output("mean_weight")),
    reference=lambda: PREDICTED,
    tolerance=0.01,
    next_step="no computer needed: when is the card before also the partner?",
    parts=(
        Part("repeated", 1, lambda rng: [()], view=lambda value: value[0]),
        Part("guessed", 1, lambda rng: [()], view=lambda value: value[1]),
        Part("mean weight", 1, lambda rng: [()], view=lambda value: value[2]),
    ),
    mistakes=(
        prediction(
            "neighbours_forgotten",
            "the first number counts only letters that agree by chance: now and then "
            "the card before is the partner, and then the letter is right for sure",
            0,
            1 / 5,
        ),
        prediction(
            "only_neighbours",
            "the first number counts only the cards whose partner stands just before: "
            "two different cards may also hold the same letter",
            0,
            1 / 7,
        ),
        prediction(
            "counted_twice",
            "the first number adds both chances in full: the letters can only agree by "
            "chance where the card before is not the partner",
            0,
            1 / 7 + 1 / 5,
        ),
        prediction(
            "itself_counted",
            "the first number lets a card be its own partner: the partner is among the "
            "others, one fewer than there are cards",
            0,
            1 / 8 + 7 / 8 / 5,
        ),
        prediction(
            "numbers_of_the_chapter",
            "the first number is that of the chapter's row: here there are fewer cards "
            "and fewer letters",
            0,
            1 / 11 + 10 / 11 / 8,
        ),
        prediction(
            "guess_as_repetition",
            "the second number takes the guess for the repetition: a letter drawn "
            "blindly does not know where the partner stands",
            1,
            PREDICTED[0],
            1 / 7,
        ),
        prediction(
            "both_guessed",
            "the second number guesses both letters: one of the two questions is "
            "answered perfectly",
            1,
            1 / 25,
        ),
        prediction(
            "weight_by_half",
            "the last number is the share of one head alone: now and then the other "
            "head looks at the same card, since its partner stands just before",
            2,
            0.5,
        ),
        prediction(
            "weight_added",
            "the last number adds the heads' weights: a mean divides by their number",
            2,
            1 + 1 / 7,
        ),
    ),
)


# ------------------------------------------------------------ 10.7 the failing input


def attend(heads: Tensor) -> Tensor:
    scores = heads @ heads.transpose(-2, -1) / heads.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ heads


def outputs(value: Any) -> tuple[np.ndarray, np.ndarray]:
    """What the layer and the colleague's version of it make of the input."""
    x, n_heads = torch.tensor(np.asarray(value[0], np.float64))[None], int(value[1])
    right = rearrange(x, "b t (h d) -> b h t d", h=n_heads)
    return (
        merge_heads(attend(right))[0].numpy(),
        counted_back(attend(counted_anew(x, n_heads)))[0].numpy(),
    )


def fits(value: Any) -> bool:
    heads = float(value[1])
    return heads >= 1 and heads == int(heads) and value[0].shape[1] % int(heads) == 0


def differ(args: Args, value: Any) -> bool:
    if not fits(value):
        return False
    right, wrong = outputs(value)
    return bool(np.abs(right - wrong).max() > 0.01)


def failing_input() -> tuple[Tensor, int]:
    return torch.tensor([[1.0, 0.0], [0.0, 2.0]]), 2


def saturated(args: Args, value: Any) -> bool:
    """Every token attends to itself alone, in both versions."""
    x = np.asarray(value[0], np.float64)
    return fits(value) and all(np.allclose(out, x, atol=0.01) for out in outputs(value))


def same_pieces(args: Args, value: Any) -> bool:
    """Both cuts give every head the same pieces, in some order."""
    x, n_heads = torch.tensor(np.asarray(value[0]))[None], int(value[1])
    cuts = rearrange(x, "b t (h d) -> b h t d", h=n_heads), counted_anew(x, n_heads)
    pieces = [[sorted(head) for head in cut[0].tolist()] for cut in cuts]
    return pieces[0] == pieces[1]


FAILING = Question(
    id="10.7",
    title="Find the input that fails",
    answer="failing_input",
    arguments=(),
    outputs=(Output("x", "token d_model", free=True), Output("n_heads")),
    reference=failing_input,
    next_step="choose a few tokens and a number of heads for which the outputs differ.",
    parts=(Part("the outputs differ", 2, lambda rng: [()], accepts=differ),),
    mistakes=(
        Mistake(
            "does_not_divide",
            "the width does not divide into that many heads: the function raises an "
            "error here, it does not give a wrong result",
            lambda: (torch.arange(20.0).reshape(4, 5) / 10, 3),
            lambda args, value: not fits(value),
        ),
        Mistake(
            "one_head",
            "with one head there is nothing to cut: the reshape changes nothing",
            lambda: (torch.eye(3), 1),
            lambda args, value: int(value[1]) == 1,
        ),
        Mistake(
            "one_token",
            "with a single token no numbers can end up with another one: the reshape "
            "happens to be right",
            lambda: (torch.arange(6.0)[None], 2),
            lambda args, value: len(value[0]) == 1,
        ),
        Mistake(
            "all_alike",
            "all numbers are alike: wherever they are moved, nothing changes",
            lambda: (torch.ones(3, 4), 2),
            lambda args, value: np.ptp(np.asarray(value[0])) < 1e-6,
        ),
        Mistake(
            "same_pieces",
            "both cuts give each head the same pieces here, only in another order, and "
            "attention does not mind the order; choose less regular tokens",
            lambda: (torch.eye(4), 2),
            same_pieces,
        ),
        Mistake(
            "saturated",
            "the numbers are so large that every token looks at itself alone, however "
            "the heads are cut; choose smaller ones",
            lambda: (torch.tensor([[40.0, 0, 0, -40], [0, 40, -40, 0]]), 2),
            saturated,
        ),
    ),
)

QUESTIONS = (PREDICT, FAILING)
