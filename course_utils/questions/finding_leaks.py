"""More questions of chapter 09: code to judge, a leak to find, depth to predict."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question

# ------------------------------------------------------------------ 09.5 judge the code

VERDICTS = {  # the three words, and how feedback speaks of the code they fit
    "right": "the right ones",
    "leaks": "the leaking ones",
    "too strict": "those that are too strict",
}
JUDGED = {
    "one_more": "leaks",
    "huge": "right",
    "late": "leaks",
    "shared_out": "right",
    "strict": "too strict",
    "module": "leaks",
    "ones_and_zeros": "leaks",
    "continued": "too strict",
}


def verdicts_of(verdict: str) -> Any:
    """Look only at the pieces of code that deserve one verdict."""
    names = [name for name, own in JUDGED.items() if own == verdict]
    return lambda value: [value.get(name) for name in names]


def judged_as(**wrong: str) -> Any:
    return lambda: JUDGED | wrong


def says(name: str, *verdicts: str) -> Any:
    return lambda args, value: value[name] in verdicts


JUDGE = Question(
    id="09.5",
    title="Right, leaking or too strict?",
    answer="judge_masks",
    arguments=(),
    outputs=(Output("verdicts"),),
    reference=lambda: dict(JUDGED),
    next_step="for each function: which outputs would move if the last token changed?",
    parts=tuple(
        Part(name, 1, lambda rng: [()], view=verdicts_of(verdict))
        for verdict, name in VERDICTS.items()
    ),
    mistakes=(
        Mistake(
            "not_all_or_other_words",
            "every one of the eight names needs one of the three words: 'right', "
            "'leaks', 'too strict'",
            lambda: dict.fromkeys(JUDGED, "wrong"),
            lambda args, value: any(value.get(name) not in VERDICTS for name in JUDGED),
        ),
        Mistake(
            "diagonal_one",
            "`one_more`: write down the first row of its mask; which keys does the "
            "first query see?",
            judged_as(one_more="right"),
            says("one_more", "right", "too strict"),
        ),
        Mistake(
            "zeros_trusted",
            "`late` has zeros above the diagonal, but what were the other weights "
            "divided by?",
            judged_as(late="right"),
            says("late", "right", "too strict"),
        ),
        Mistake(
            "sum_distrusted",
            "`shared_out` divides by its own sum: write the two fractions down, what "
            "becomes of the first denominator?",
            judged_as(shared_out="leaks"),
            says("shared_out", "leaks", "too strict"),
        ),
        Mistake(
            "huge_distrusted",
            "`huge`: −1e9 is dangerous for a row in which everything is blocked, and "
            "in half precision; is there either here?",
            judged_as(huge="leaks"),
            says("huge", "leaks", "too strict"),
        ),
        Mistake(
            "conventions_mixed",
            "`module`: what does True mean to `nn.MultiheadAttention`?",
            judged_as(module="right"),
            says("module", "right", "too strict"),
        ),
        Mistake(
            "float_taken_for_a_mask",
            "`ones_and_zeros`: what does SDPA do with a mask that is not boolean?",
            judged_as(ones_and_zeros="right"),
            says("ones_and_zeros", "right", "too strict"),
        ),
        Mistake(
            "wrong_corner",
            "`continued`: with two queries and more keys, in which corner does "
            "`is_causal` put the triangle? Then: too much seen, or too little?",
            judged_as(continued="right"),
            says("continued", "right", "leaks"),
        ),
        Mistake(
            "own_token",
            "`strict`: what may the first query see, and which token does every other "
            "one miss?",
            judged_as(strict="right"),
            says("strict", "right", "leaks"),
        ),
    ),
)


# ------------------------------------------------------------------- 09.6 find the leak


def colleague(x: np.ndarray) -> np.ndarray:
    """Attention with a right mask, of tokens that were scaled column by column."""
    with np.errstate(all="ignore"):
        x = x / np.linalg.norm(x, axis=0, keepdims=True)
        scores = x @ x.T / math.sqrt(x.shape[1])
        scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True) @ x


def parts_of(value: Any) -> tuple[np.ndarray, np.ndarray, float]:
    first, second, place = value
    return np.asarray(first, float), np.asarray(second, float), float(place)


def fit(args: Args, value: Any) -> bool:
    """Two tensors of one shape, and a place that has another after it."""
    first, second, place = parts_of(value)
    return (
        first.shape == second.shape
        and place == int(place)
        and 0 <= place < len(first) - 1
    )


def same_past(args: Args, value: Any) -> bool:
    first, second, place = parts_of(value)
    end = int(place) + 1
    return fit(args, value) and bool((first[:end] == second[:end]).all())


def movement(value: Any) -> float:
    """How far the outputs up to the place differ; NaN where they have no value."""
    first, second, place = parts_of(value)
    gap = np.abs(colleague(first) - colleague(second))[: int(place) + 1]
    return float(gap.max())


def betrays(args: Args, value: Any) -> bool:
    return same_past(args, value) and movement(value) > 0.01


def same_lengths(value: Any) -> bool:
    first, second, _ = parts_of(value)
    before, after = (np.linalg.norm(x, axis=0) for x in (first, second))
    return bool(np.allclose(before, after, rtol=1e-6, atol=1e-9))


def past_is_zero(value: Any) -> bool:
    first, _, place = parts_of(value)
    return not first[: int(place) + 1].any()


def witness() -> tuple[Tensor, Tensor, int]:
    return torch.ones(3, 2), torch.tensor([[1.0, 1], [1, 1], [9, 9]]), 0


def kept_length() -> tuple[Tensor, Tensor, int]:
    x = torch.tensor([[1.0, 2], [3, 1], [2, 5]])
    return x, x[[0, 2, 1]], 0


FIND = Question(
    id="09.6",
    title="Find the leak",
    answer="witness",
    arguments=(),
    outputs=(
        Output("x", "token d_model", free=True),
        Output("changed", "token d_model", free=True),
        Output("t"),
    ),
    reference=witness,
    next_step="find the line in which a token meets those after it, then two inputs "
    "that show it.",
    parts=(
        Part("the same past", 1, lambda rng: [()], accepts=same_past),
        Part("an output that moves", 2, lambda rng: [()], accepts=betrays),
    ),
    mistakes=(
        Mistake(
            "no_future",
            "`t` must be a whole number, counted from 0, with at least one token after "
            "it, and the two inputs must have one shape",
            lambda: (torch.ones(3, 2), torch.zeros(3, 2), 2),
            lambda args, value: not fit(args, value),
        ),
        Mistake(
            "past_changed",
            "the two inputs differ at or before place t already: then an output up to "
            "t may move, and nothing is proved",
            lambda: (torch.ones(3, 2), 9 * torch.eye(3, 2), 1),
            lambda args, value: fit(args, value) and not same_past(args, value),
        ),
        Mistake(
            "nothing_changed",
            "the two inputs are the same: change something after place t",
            lambda: (torch.ones(3, 2), torch.ones(3, 2), 0),
            lambda args, value: (
                fit(args, value)
                and not (parts_of(value)[0] != parts_of(value)[1]).any()
            ),
        ),
        Mistake(
            "not_a_number",
            "with these inputs the function gives no numbers: something is divided by "
            "zero; use no column of zeros",
            lambda: (
                torch.tensor([[1.0, 0], [2, 0]]),
                torch.tensor([[1.0, 0], [3, 0]]),
                0,
            ),
            lambda args, value: same_past(args, value) and math.isnan(movement(value)),
        ),
        Mistake(
            "length_kept",
            "what was changed does not show in the quantity that leaks (an exchange of "
            "tokens, or of signs, keeps it): which number of a column is computed?",
            kept_length,
            lambda args, value: same_past(args, value) and same_lengths(value),
        ),
        Mistake(
            "past_is_zero",
            "all tokens up to place t are zero, and zero divided by anything is zero: "
            "give them something to be scaled",
            lambda: (
                torch.tensor([[0.0, 0], [1, 2]]),
                torch.tensor([[0.0, 0], [9, 5]]),
                0,
            ),
            lambda args, value: same_past(args, value) and past_is_zero(value),
        ),
        Mistake(
            "too_faint",
            "the outputs up to t move by less than 0.01: change what comes after more "
            "strongly",
            lambda: (torch.ones(2, 2), torch.tensor([[1.0, 1], [1.005, 1.005]]), 0),
            lambda args, value: same_past(args, value) and movement(value) <= 0.01,
        ),
    ),
)


# ------------------------------------------------------------------- 09.7 predict depth

REACHES = (7, 15, 465)


def number_is(index: int, *wrong: float) -> Any:
    return lambda args, value: any(float(value[index]) == each for each in wrong)


def number_at(index: int) -> Any:
    return lambda value: value[index]


PREDICT = Question(
    id="09.7",
    title="How far does it see?",
    answer="predict_reach",
    arguments=(),
    outputs=(Output("last_input"), Output("places_back"), Output("tokens_read")),
    reference=lambda: REACHES,
    tolerance=1e-6,
    next_step="draw the mask of one layer, then follow a token from layer to layer.",
    parts=(
        Part("off by one, four layers", 1, lambda rng: [()], view=number_at(0)),
        Part("a window, five layers", 1, lambda rng: [()], view=number_at(1)),
        Part("all beginnings", 1, lambda rng: [()], view=number_at(2)),
    ),
    mistakes=(
        Mistake(
            "one_layer_leak",
            "the first number is that of a single layer: what its neighbour saw in the "
            "layer before comes along",
            lambda: (4, 15, 465),
            number_is(0, 4),
        ),
        Mistake(
            "counted_from_one",
            "the first number is one too large: inputs count from 0, and output 3 "
            "begins at input 3",
            lambda: (8, 15, 465),
            number_is(0, 8),
        ),
        Mistake(
            "leak_one_layer_short",
            "the first number is one layer short: every one of the four layers carries "
            "something one step ahead",
            lambda: (6, 15, 465),
            number_is(0, 6),
        ),
        Mistake(
            "no_leak",
            "the first number would be right for a causal mask; this one allows one "
            "key more in every layer",
            lambda: (3, 15, 465),
            number_is(0, 3),
        ),
        Mistake(
            "all_tokens",
            "the first number takes the leak for boundless: how many steps ahead can "
            "four layers carry something?",
            lambda: (9, 15, 465),
            number_is(0, 9, 10, 11),
        ),
        Mistake(
            "one_layer_window",
            "the second number is the window of one layer: the tokens in it have "
            "looked back themselves",
            lambda: (7, 3, 465),
            number_is(1, 3, 4),
        ),
        Mistake(
            "window_with_itself",
            "the second number counts the token itself in every layer: how many steps "
            "back does one layer carry something?",
            lambda: (7, 20, 465),
            number_is(1, 20, 16),
        ),
        Mistake(
            "window_one_layer_short",
            "the second number is one layer short: every one of the five layers looks "
            "three places back",
            lambda: (7, 12, 465),
            number_is(1, 12),
        ),
        Mistake(
            "window_and_layers_added",
            "the second number adds the layers to the window: each layer looks three "
            "places back from where the one before it arrived",
            lambda: (7, 8, 465),
            number_is(1, 8),
        ),
        Mistake(
            "powers",
            "the second number multiplies windows with each other: steps of different "
            "layers add up",
            lambda: (7, 243, 465),
            number_is(1, 243, 1024, 1023, 81, 256),
        ),
        Mistake(
            "squared",
            "the third number reads the whole text in every pass: the first pass reads "
            "a single token",
            lambda: (7, 15, 900),
            number_is(2, 900),
        ),
        Mistake(
            "last_pass_missing",
            "the third number leaves one pass out: count the beginnings, the whole "
            "text is one of them",
            lambda: (7, 15, 435),
            number_is(2, 435),
        ),
        Mistake(
            "half_the_square",
            "the third number is half of the square: that is nearly the sum, which "
            "has one more half of each token",
            lambda: (7, 15, 450),
            number_is(2, 450),
        ),
        Mistake(
            "parallel",
            "the third number is that of the parallel pass, which needs the mask",
            lambda: (7, 15, 30),
            number_is(2, 30),
        ),
    ),
)

QUESTIONS = (JUDGE, FIND, PREDICT)
