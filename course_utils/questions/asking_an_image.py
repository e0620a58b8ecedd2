"""More questions of chapter 14: words that ask, costs, and what a swap tells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.attention import masked_softmax
from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import first, normal, second, sizes

Pair = tuple[Tensor, Tensor]

# -------------------------------------------------------- 14.4 words ask under a mask


def scores_of(words: Tensor, patches: Tensor, w_q: Tensor, w_k: Tensor) -> Tensor:
    return (words @ w_q) @ (patches @ w_k).mT / math.sqrt(w_k.shape[1])


def ask_image(
    words: Tensor, patches: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, seen: Tensor
) -> Pair:
    weights = masked_softmax(scores_of(words, patches, w_q, w_k), seen[:, None])
    return weights @ (patches @ w_v), weights


def ask_with(change: Any) -> Any:
    """Answer with weights that `change(scores, seen)` makes."""

    def wrong(
        x: Tensor, y: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, seen: Tensor
    ) -> Pair:
        weights = change(scores_of(x, y, w_q, w_k), seen[:, None])
        return weights @ (y @ w_v), weights

    return wrong


def patches_ask(
    x: Tensor, y: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, seen: Tensor
) -> Pair:
    weights = torch.softmax(scores_of(y, x, w_q, w_k), dim=-1)
    return weights @ (x @ w_v), weights


def scaled_by(divisor: Any) -> Any:
    """Answer with scores divided by `divisor(d, d_k)` in place of the root of d_k."""

    def wrong(
        x: Tensor, y: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, seen: Tensor
    ) -> Pair:
        d, d_k = w_k.shape
        return ask_image(x, y, w_q * (math.sqrt(d_k) / divisor(d, d_k)), w_k, w_v, seen)

    return wrong


def filled(scores: Tensor, mask: Tensor, value: float) -> Tensor:
    return torch.softmax(scores.masked_fill(~mask, value), dim=-1)


def draw_asking(blind: bool) -> Any:
    def draw(rng: np.random.Generator) -> list[Args]:
        cases: list[Args] = []
        for _ in range(2):
            word, patch, d_k, d_v = sizes(rng, 4)
            d = 2 * d_k + 1  # words and patches are equally wide: either could ask
            seen = rng.random((3, patch)) < 0.6
            seen[:, 0], seen[:, 1] = True, False
            seen[1] = False if blind else seen[1]
            x, y = normal(rng, 3, word, d), normal(rng, 3, patch, d)
            scale = np.float32(0.25)
            matrices = [scale * normal(rng, d, width) for width in (d_k, d_k, d_v)]
            cases.append((x, y, *matrices, seen))
        return cases

    return draw


ASK = Question(
    id="14.4",
    title="Words ask an image",
    answer="ask_image",
    arguments=("words", "patches", "w_q", "w_k", "w_v", "seen"),
    outputs=(Output("context", "word d_v"), Output("weights", "word patch")),
    reference=ask_image,
    primitives=True,
    next_step="queries from the words, keys and values from the patches, the mask.",
    parts=(
        Part("the weights", 2, draw_asking(False), view=second),
        Part("the context", 1, draw_asking(False), view=first),
        Part(
            "an image of which nothing may be seen",
            1,
            draw_asking(True),
            alone="right as long as something may be seen: where an image is all "
            "hidden, both results must be zeros, without NaN",
        ),
    ),
    mistakes=(
        Mistake(
            "no_mask",
            "`seen` is not used: hidden patches get weight",
            ask_with(lambda s, m: torch.softmax(s, dim=-1)),
        ),
        Mistake(
            "inverted",
            "the mask is turned round: the words look only at what they may not see; "
            "True = may be seen",
            ask_with(lambda s, m: masked_softmax(s, ~m.expand_as(s))),
        ),
        Mistake(
            "after_the_softmax",
            "the weights are cut after the softmax, so that the rest no longer sums to "
            "one: what is hidden must not take part in the softmax",
            ask_with(lambda s, m: torch.softmax(s, dim=-1) * m),
        ),
        Mistake(
            "scores_times_mask",
            "hidden patches get the score 0, and exp(0) is 1, not 0: they still take "
            "part",
            ask_with(lambda s, m: torch.softmax(s * m, dim=-1)),
        ),
        Mistake(
            "mask_added",
            "the mask is added to the scores as 0 and 1: hidden patches get a little "
            "less weight, not none",
            ask_with(lambda s, m: torch.softmax(s + m, dim=-1)),
        ),
        Mistake(
            "blocked_row_nan",
            "right as long as something may be seen; where all is hidden, zero is "
            "divided by zero and gives NaN: such a row is to be zeros",
            ask_with(lambda s, m: filled(s, m, -torch.inf)),
        ),
        Mistake(
            "blocked_row_uniform",
            "right as long as something may be seen; where all scores are the same "
            "large negative number the softmax gives equal weights to hidden patches",
            ask_with(lambda s, m: filled(s, m, -1e9)),
        ),
        Mistake(
            "no_scale",
            "the scores are not divided by √d_k, the root of the width that queries "
            "and keys share",
            scaled_by(lambda d, d_k: 1),
        ),
        Mistake(
            "root_of_d",
            "the scores are divided by √d, the width of the words: take the width of "
            "what is multiplied, queries and keys",
            scaled_by(lambda d, d_k: math.sqrt(d)),
        ),
        Mistake(
            "no_root",
            "the scores are divided by d_k itself: it is the root of it",
            scaled_by(lambda d, d_k: d_k),
        ),
        Mistake(
            "over_the_words",
            "the softmax runs over the words: every word shares out one unit among the "
            "patches",
            ask_with(
                lambda s, m: torch.softmax(
                    s.masked_fill(~m, -torch.inf), dim=-2
                ).nan_to_num()
            ),
        ),
        Mistake(
            "patches_ask",
            "the patches ask and the words are asked: the words are to learn something "
            "from the image, so the queries come from the words",
            patches_ask,
            lambda args, value: (
                value[1].shape[1:] == (args[1].shape[1], args[0].shape[1])
            ),
        ),
    ),
)


# ------------------------------------------------------------ 14.5 what a patch costs

COSTS = (24.0, 192.0, 625.0, 16.0)


def number_is(index: int, *wrong: float) -> Any:
    """Recognise typical wrong numbers at one place, whatever stands at the others."""
    return lambda args, value: any(
        abs(float(value[index]) - number) < 0.5 for number in wrong
    )


def with_cost(index: int, number: float) -> Any:
    return lambda: (*COSTS[:index], number, *COSTS[index + 1 :])


COST = Question(
    id="14.5",
    title="What a patch size costs",
    answer="predict_cost",
    arguments=(),
    outputs=(Output("tokens"), Output("width"), Output("scores"), Output("factor")),
    reference=lambda: COSTS,
    tolerance=1e-3,
    next_step="no computer needed: count the patches along each side first.",
    parts=(
        Part("tokens", 1, lambda rng: [()], view=lambda value: value[0]),
        Part("width", 1, lambda rng: [()], view=lambda value: value[1]),
        Part("scores", 1, lambda rng: [()], view=lambda value: value[2]),
        Part("factor", 1, lambda rng: [()], view=lambda value: value[3]),
    ),
    mistakes=(
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
            "scores_not_pairs",
            "`scores` counts tokens: every token is compared with every token",
            with_cost(2, 25),
            number_is(2, 24, 25, 300, 325),
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

# ------------------------------------------------------------ 14.6 what a swap tells

NAMED = (7.0, 7.0, 5.0, 8.0)


def with_named(index: int, number: float) -> Any:
    return lambda: (*NAMED[:index], number, *NAMED[index + 1 :])


SWAP = Question(
    id="14.6",
    title="What a swap of gates tells",
    answer="predict_named",
    arguments=(),
    outputs=(
        Output("strip_if_select"),
        Output("strip_if_answer"),
        Output("donor_if_select"),
        Output("donor_if_answer"),
    ),
    reference=lambda: NAMED,
    tolerance=1e-3,
    next_step="write down for each test: which image made the gates, what did it ask?",
    parts=(
        Part("the other strip", 2, lambda rng: [()], view=lambda value: value[:2]),
        Part("the donor", 2, lambda rng: [()], view=lambda value: value[2:]),
    ),
    mistakes=(
        Mistake(
            "strip_is_not_seen",
            "`strip_if_select` is still the channel of the old strip: these gates were "
            "made from the changed image, and say which channel *it* asks for",
            with_named(0, 5),
            number_is(0, 5),
        ),
        Mistake(
            "answer_of_the_old_strip",
            "`strip_if_answer` is the old answer: these gates were made from the "
            "changed image, and carry the answer to *its* question",
            with_named(1, 5),
            number_is(1, 5),
        ),
        Mistake(
            "selection_brings_the_digit",
            "`donor_if_select` is a digit of the donor: a selection says which channel "
            "to read, and what is read there are the features of the image itself",
            with_named(2, 8),
            number_is(2, 8, 4, 1),
        ),
        Mistake(
            "answer_stays_at_home",
            "`donor_if_answer` is the image's own answer: if the gates carry an "
            "answer, it comes along with them, from the image that made them",
            with_named(3, 5),
            number_is(3, 5),
        ),
        Mistake(
            "donor_of_the_first_test",
            "the first test is answered again: the donor is another image, with other "
            "digits, and asks for the same channel as the image itself",
            with_named(3, 7),
            lambda args, value: (
                number_is(2, 7)(args, value) or number_is(3, 7)(args, value)
            ),
        ),
        Mistake(
            "another_channel",
            "a digit of a channel that nobody asked for: look again which channel each "
            "strip asks for (they are counted from 0)",
            with_named(0, 2),
            lambda args, value: any(
                float(number) in (2.0, 4.0, 1.0) for number in value
            ),
        ),
    ),
)

QUESTIONS = (ASK, COST, SWAP)
