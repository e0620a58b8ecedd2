"""`predict_cost`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import torch

from course_utils.grading.questions.model import Mistake, Output, Part, Question

COSTS = (24.0, 192.0, 625.0, 16.0)


def number_is(index: int, *wrong: float) -> Any:
    """Recognise typical wrong numbers at one place, whatever stands at the others."""
    return lambda args, value: any(
        abs(float(value[index]) - number) < 0.5 for number in wrong
    )


def with_cost(index: int, number: float) -> Any:
    return lambda: (*COSTS[:index], number, *COSTS[index + 1 :])


QUESTION = Question(
    id="14.5",
    title="What a patch size costs",
    answer="predict_cost",
    arguments=(),
    outputs=(Output("tokens"), Output("width"), Output("scores"), Output("factor")),
    reference=lambda: COSTS,
    tolerance=1e-3,
    difficulty="easy",
    minutes=6,
    next_step="no computer needed: count the patches along each side first.",
    parts=(
        Part("tokens", 1, lambda rng: [()], view=lambda value: value[0]),
        Part("width", 1, lambda rng: [()], view=lambda value: value[1]),
        Part("scores", 1, lambda rng: [()], view=lambda value: value[2]),
        Part("factor", 1, lambda rng: [()], view=lambda value: value[3]),
    ),
    mistakes=(
        Mistake(
            "exchanged",
            "`tokens` and `width` have changed places: tokens are patches, and the "
            "width is what each of them holds",
            lambda: (COSTS[1], COSTS[0], *COSTS[2:]),
            lambda args, value: list(map(float, value[:2])) == [COSTS[1], COSTS[0]],
        ),
        Mistake(
            "one_side_only",
            "`tokens` counts the patches along one side, or adds the two sides: every "
            "row of patches holds as many as fit along the width",
            with_cost(0, 10),
            number_is(0, 4, 6, 10),
        ),
        Mistake(
            "square_image",
            "`tokens` is that of a square image: height and width differ here",
            with_cost(0, 36),
            number_is(0, 36, 16),
        ),
        Mistake(
            "pixels_as_tokens",
            "`tokens` does not divide by the area of a patch: a patch has size × size "
            "pixels",
            with_cost(0, 192),
            number_is(0, 192, 1536, 4608),
        ),
        Mistake(
            "class_token_is_no_patch",
            "`tokens` counts a class token: here only the patches are asked for",
            with_cost(0, 25),
            number_is(0, 25),
        ),
        Mistake(
            "patches_of_the_last_question",
            "`tokens` or `scores` is that of patches of 4 by 4: only `factor` is about "
            "those",
            with_cost(0, 96),
            lambda args, value: (
                number_is(0, 96, 97)(args, value)
                or number_is(2, 9216, 9409)(args, value)
            ),
        ),
        Mistake(
            "channels_forgotten",
            "`width` counts the pixels of a patch: each pixel has a number in every "
            "channel",
            with_cost(1, 64),
            number_is(1, 64),
        ),
        Mistake(
            "channels_added",
            "`width` adds the channels to the pixels: every pixel has a number in each "
            "channel",
            with_cost(1, 67),
            number_is(1, 67),
        ),
        Mistake(
            "side_for_area",
            "`width` takes one side of the patch: a patch is a square of pixels",
            with_cost(1, 24),
            number_is(1, 24, 8),
        ),
        Mistake(
            "width_of_the_image",
            "`width` counts the numbers of the whole image: a token holds those of one "
            "patch",
            with_cost(1, 4608),
            number_is(1, 4608),
        ),
        Mistake(
            "class_token_forgotten",
            "`scores` leaves out the class token: it asks, and is asked, like any "
            "other token",
            with_cost(2, 576),
            number_is(2, 576),
        ),
        Mistake(
            "class_token_asks_only",
            "`scores` counts the class token on one side only: it is among the queries "
            "and among the keys",
            with_cost(2, 600),
            number_is(2, 600),
        ),
        Mistake(
            "each_pair_once",
            "`scores` counts each pair of tokens once, as under a causal mask: here "
            "every token asks every token, and A asking B is another score than B "
            "asking A",
            with_cost(2, 325),
            number_is(2, 276, 300, 325),
        ),
        Mistake(
            "scores_not_pairs",
            "`scores` counts tokens: every token is compared with every token",
            with_cost(2, 25),
            number_is(2, 24, 25),
        ),
        Mistake(
            "scores_times_width",
            "`scores` multiplies by the width of the tokens: a score is one number for "
            "a pair of tokens, however wide they are",
            with_cost(2, 120_000),
            number_is(2, 120_000, 110_592),
        ),
        Mistake(
            "factor_is_a_count",
            "`factor` is the new number of scores: divide it by the old one",
            with_cost(3, 9216),
            number_is(3, 9216, 9409),
        ),
        Mistake(
            "factor_with_class_token",
            "`factor` counts a class token: it is asked for the patches alone",
            with_cost(3, (97 / 25) ** 2),
            lambda args, value: abs(float(value[3]) - (97 / 25) ** 2) < 0.1,
        ),
        Mistake(
            "factor_turned_round",
            "`factor` is below one: smaller patches are more patches, and the number "
            "of scores grows",
            with_cost(3, 1 / 16),
            lambda args, value: 0 < float(value[3]) < 1,
        ),
        Mistake(
            "factor_of_tokens",
            "`factor` says how many times more tokens there are: the scores are pairs "
            "of tokens",
            with_cost(3, 4),
            number_is(3, 4),
        ),
        Mistake(
            "factor_of_the_side",
            "`factor` is what happens along one side: an image has two sides, and a "
            "score two tokens",
            with_cost(3, 2),
            number_is(3, 2, 8),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [lambda: (4 * 6, 3 * 64, torch.tensor(25 * 25), 2.0**4)]
WRONG = [
    ("exchanged", lambda: (192, 24, 625, 16)),
    ("each_pair_once", lambda: (24, 192, 25 * 26 / 2, 16)),
    ("channels_added", lambda: (24, 8 * 8 + 3, 625, 16)),
    ("class_token_forgotten", lambda: (24, 192, 24 * 24, 16)),
    ("channels_forgotten", lambda: [24, 8 * 8, 625, 16]),
    ("factor_of_tokens", lambda: (24, 192, 625, torch.tensor(4))),
    ("square_image", lambda: (36, 192, 37**2, 16)),
    ("scores_not_pairs", lambda: (24.0, 192, 25, 16)),
    ("class_token_is_no_patch", lambda: (25, 192, 625, 16)),
    ("patches_of_the_last_question", lambda: (24, 192, 97 * 97, 16)),
    ("patches_of_the_last_question", lambda: (8 * 12, 192, 97 * 97, 16)),
    ("width_of_the_image", lambda: (24, 3 * 32 * 48, 625, 16)),
    ("scores_times_width", lambda: (24, 192, 25 * 25 * 192, 16)),
    ("factor_is_a_count", lambda: (24, 192, 625, 96 * 96)),
    ("factor_with_class_token", lambda: (24, 192, 625, 97**2 / 25**2)),
    ("factor_turned_round", lambda: (24, 192, 625, 24**2 / 96**2)),
]
NOT_IN_HINTS = {"24", "192", "625", "16"}
