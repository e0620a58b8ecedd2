"""The last questions of chapter 10: what one head can't do, what a test can't see."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from einops import rearrange
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question

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


def attend(x: Tensor, n_heads: int, mask: Tensor) -> Tensor:
    """The layer without matrices; `mask` meets scores (batch, head, query, key)."""
    heads = rearrange(x, "b t (h d) -> b h t d", h=n_heads)
    scores = heads @ heads.transpose(-2, -1) / heads.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)
    return rearrange(weights @ heads, "b h t d -> b t (h d)")


def is_boolean(value: Any) -> bool:
    return bool(value[2].dtype == np.bool_)


def fits(value: Any) -> bool:
    x, heads, mask = value[0], float(value[1]), value[2]
    whole = heads >= 1 and heads == int(heads) and x.shape[2] % int(heads) == 0
    return whole and mask.shape == (*x.shape[:2], x.shape[1])


def runs(value: Any) -> bool:
    """Whether the colleague's version lines up sentences and heads without an error."""
    return len(value[0]) in (1, int(value[1])) or int(value[1]) == 1


def sees_nothing(value: Any) -> bool:
    return not value[2].any(axis=-1).all()


def differ(args: Args, value: Any) -> bool:
    if not (is_boolean(value) and fits(value) and runs(value)) or sees_nothing(value):
        return False
    x, mask = torch.tensor(np.asarray(value[0], np.float64)), torch.tensor(value[2])
    right = attend(x, int(value[1]), mask[:, None])
    wrong = attend(x, int(value[1]), mask)
    return right.shape != wrong.shape or bool((right - wrong).abs().max() > 0.01)


def failing_input() -> tuple[Tensor, int, Tensor]:
    mask = torch.tensor([[[1, 0], [0, 1]], [[1, 1], [1, 1]]]).bool()
    return torch.arange(8.0).reshape(2, 2, 2), 2, mask


def failing(name: str, hint: str, wrong: tuple[Any, ...], sign: Any) -> Mistake:
    return Mistake(name, hint, lambda: wrong, lambda args, value: sign(value))


SENTENCES = torch.arange(12.0).reshape(2, 3, 2)
CAUSAL = torch.ones(3, 3).tril().bool()
MASKS = torch.stack([CAUSAL, CAUSAL.mT])

FAILING = Question(
    id="10.7",
    title="Find the input that fails",
    answer="failing_input",
    arguments=(),
    outputs=(
        Output("x", "batch token d_model", free=True),
        Output("n_heads"),
        Output("mask", "batch query key", free=True),
    ),
    reference=failing_input,
    next_step="write down the shapes of scores and mask, and see which axes meet.",
    parts=(Part("the outputs differ", 2, lambda rng: [()], accepts=differ),),
    mistakes=(
        failing(
            "not_boolean",
            "the mask does not hold True and False: finish it with `.bool()`",
            (SENTENCES, 2, MASKS.float()),
            lambda value: not is_boolean(value),
        ),
        failing(
            "does_not_fit",
            "the sizes don't belong together: the heads must divide d_model, and the "
            "mask has one table (token, token) for each sentence of `x`",
            (SENTENCES, 2, MASKS[:1]),
            lambda value: not fits(value),
        ),
        failing(
            "stops",
            "here the colleague's layer stops with an error, which nobody overlooks; "
            "which two axes does it line up, and when do they fit by accident?",
            (SENTENCES.reshape(2, 2, 3), 3, MASKS[:, :2, :2]),
            lambda value: not runs(value),
        ),
        failing(
            "one_sentence",
            "with a single sentence there is one table, and it is right for every head",
            (SENTENCES[:1], 2, MASKS[:1]),
            lambda value: len(value[0]) == 1,
        ),
        failing(
            "sees_nothing",
            "some query may see no key at all, and a softmax over nothing is no "
            "number, in either version; leave every query at least one key",
            (SENTENCES, 2, torch.stack([CAUSAL, CAUSAL & False])),
            sees_nothing,
        ),
        failing(
            "nothing_blocked",
            "the mask blocks nothing: it does not matter where it ends up",
            (SENTENCES, 2, torch.ones(2, 3, 3).bool()),
            lambda value: value[2].all(),
        ),
        failing(
            "same_masks",
            "all sentences have the same table, so it does not matter which of them "
            "gets which",
            (SENTENCES, 2, CAUSAL.expand(2, 3, 3)),
            lambda value: (value[2] == value[2][:1]).all(),
        ),
        failing(
            "tokens_alike",
            "within a sentence all tokens are alike: whichever of them a query may "
            "see, it receives the same average",
            (torch.ones(2, 3, 2), 2, MASKS),
            lambda value: np.ptp(value[0], axis=1).max() < 1e-6,
        ),
        failing(
            "hardly_differs",
            "the outputs differ by less than 0.01; let the tokens of a sentence differ "
            "more",
            (SENTENCES / 10000, 2, MASKS),
            lambda value: not differ((), value),
        ),
    ),
)

QUESTIONS = (PREDICT, FAILING)
