"""`weight_on_itself`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math

import numpy as np
import torch

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def weight_on_itself(length: float, n_others: int) -> float:
    return 1 / (1 + n_others * math.exp(-(length**2)))


def draw_lengths(rng: np.random.Generator) -> Args:
    return round(float(rng.uniform(0.6, 1.7)), 2), int(rng.integers(2, 9))


QUESTION = Question(
    id="05.3",
    title="How much a token keeps of itself",
    answer="weight_on_itself",
    arguments=("length", "n_others"),
    outputs=(Output("weight"),),
    reference=weight_on_itself,
    difficulty="easy",
    minutes=6,
    next_step="write the score with itself and with the others, then the softmax.",
    parts=(
        Part("one other", 1, lambda rng: [(draw_lengths(rng)[0], 1) for _ in range(3)]),
        Part(
            "several others",
            1,
            lambda rng: [draw_lengths(rng) for _ in range(3)],
            only_failure_hint="right for one other token, wrong for several: each of "
            "them has its own term in the sum",
        ),
        Part("any length", 1, lambda rng: [(0.0, 4), (0.3, 2), (2.2, 5)]),
    ),
    mistakes=(
        Mistake(
            "length_not_squared",
            "the score with itself is taken to be the length: the dot product of a "
            "vector with itself is something else",
            lambda length, n: 1 / (1 + n * math.exp(-length)),
        ),
        Mistake(
            "others_count_nothing",
            "the others are left out of the sum because their scores are 0: a score of "
            "0 is not a weight of 0, since e⁰ is not 0",
            lambda length, n: 1.0,
        ),
        Mistake(
            "no_exponential",
            "the scores are divided by their sum as they are: the softmax takes "
            "exponentials first",
            lambda length, n: length**2 / (length**2 + n),
            lambda args, value: bool(
                np.isclose(value, args[0] ** 2 / (args[0] ** 2 + args[1]), atol=1e-4)
            ),
        ),
        Mistake(
            "opposite",
            "the others get the score −length²: that would be vectors pointing the "
            "opposite way; these stand at right angles",
            lambda length, n: 1 / (1 + n * math.exp(-2 * length**2)),
        ),
        Mistake(
            "cosine",
            "the length makes no difference here: that is the cosine; the question is "
            "about the dot product",
            lambda length, n: 1 / (1 + n * math.exp(-1)),
        ),
        Mistake(
            "one_other_only",
            "only one other token is in the sum: each of the `n_others` has a term",
            lambda length, n: weight_on_itself(length, 1),
        ),
        Mistake(
            "one_too_many",
            "the sum has one term too many: the token itself and `n_others` others, "
            "that is all",
            lambda length, n: weight_on_itself(length, n + 1),
        ),
        Mistake(
            "itself_among_the_others",
            "the sum has one term too few: `n_others` does not count the token itself",
            lambda length, n: weight_on_itself(length, n - 1),
        ),
        Mistake(
            "not_divided",
            "this is the exponential of the score: a weight is its share in the sum of "
            "all exponentials",
            lambda length, n: math.exp(length**2),
        ),
        Mistake(
            "weight_of_the_others",
            "this is what goes to the other tokens: the token itself keeps the rest",
            lambda length, n: 1 - weight_on_itself(length, n),
        ),
        Mistake(
            "others_score_one",
            "the others get the exponential of 1: the score of two vectors at right "
            "angles is another number",
            lambda length, n: 1 / (1 + n * math.exp(1 - length**2)),
        ),
        Mistake(
            "all_alike",
            "the length makes no difference here: every token gets the same share, "
            "whatever it scores",
            lambda length, n: 1 / (1 + n),
        ),
        Mistake(
            "itself_not_in_the_sum",
            "the sum holds the others alone, so that this may be more than one: the "
            "token itself takes its share from the same sum",
            lambda length, n: math.exp(length**2) / n,
        ),
        Mistake(
            "weight_of_one_other",
            "this is the weight of one of the others: what stands above the line is "
            "the exponential of the token's score with itself",
            lambda length, n: (1 - weight_on_itself(length, n)) / n,
        ),
        Mistake(
            "length_doubled",
            "the score with itself is taken to be twice the length: the dot product of "
            "a vector with itself is something else",
            lambda length, n: 1 / (1 + n * math.exp(-2 * length)),
        ),
        Mistake(
            "others_score_the_length",
            "the others get the score of a vector of this length with a unit vector: "
            "at right angles, the lengths make no difference to a dot product",
            lambda length, n: 1 / (1 + n * math.exp(length - length**2)),
        ),
        Mistake(
            "sign_of_the_exponent",
            "the longer the token, the less it keeps here: look at the sign in the "
            "exponent once the fraction is divided by its numerator",
            lambda length, n: 1 / (1 + n * math.exp(length**2)),
        ),
        Mistake(
            "square_halved",
            "the score with itself is halved, as in a distance: it is the plain dot "
            "product",
            lambda length, n: 1 / (1 + n * math.exp(-(length**2) / 2)),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [
    lambda length, n: torch.softmax(torch.tensor([length**2, *[0.0] * n]), 0)[0].item()
]
WRONG = [
    ("length_not_squared", lambda length, n: math.exp(length) / (math.exp(length) + n)),
    ("weight_of_the_others", lambda length, n: n / (n + math.exp(length**2))),
    (
        "one_other_only",
        lambda length, n: torch.tensor(length).square().sigmoid().item(),
    ),
    ("weight_of_one_other", lambda length, n: 1 / (math.exp(length**2) + n)),
    ("itself_not_in_the_sum", lambda length, n: math.exp(length * length) / n),
    ("length_doubled", lambda length, n: 1 / (1 + n / math.exp(length) ** 2)),
    (
        "others_score_the_length",
        lambda length, n: torch.softmax(torch.tensor([length**2, *[length] * n]), 0)[0],
    ),
    (
        "sign_of_the_exponent",
        lambda length, n: math.exp(-(length**2)) / (math.exp(-(length**2)) + n),
    ),
]
