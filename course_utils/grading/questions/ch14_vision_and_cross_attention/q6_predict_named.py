"""`predict_named`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import torch

from course_utils.grading.questions.model import Mistake, Output, Part, Question

from .q5_predict_cost import number_is

NAMED = (7.0, 7.0, 5.0, 8.0)


def with_named(index: int, number: float) -> Any:
    return lambda: (*NAMED[:index], number, *NAMED[index + 1 :])


QUESTION = Question(
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
    difficulty="medium",
    minutes=10,
    next_step="write down for each test: which image made the gates, what did it ask?",
    parts=(
        Part("the other strip", 2, lambda rng: [()], view=lambda value: value[:2]),
        Part("the donor", 2, lambda rng: [()], view=lambda value: value[2:]),
    ),
    mistakes=(
        Mistake(
            "channels_for_digits",
            "these are the numbers of channels: asked for are the digits that the "
            "network names, which stand *in* the channels",
            lambda: (2, 2, 1, 1),
            lambda args, value: list(map(float, value)) in ([2, 2, 1, 1], [1, 2, 1, 1]),
        ),
        Mistake(
            "counted_from_one",
            "the channels are counted from 1 here: channel 0 holds the first digit",
            lambda: (5, 5, 2, 4),
        ),
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


# ----------------------------------------------------------------------- specimens

RIGHT = [lambda: [torch.tensor(7), 7.0, 5, 8]]
WRONG = [
    ("channels_for_digits", lambda: [2, 2, 1, 1]),
    ("counted_from_one", lambda: (5, 5.0, 2, 4)),
    ("donor_of_the_first_test", lambda: (7, 7, 5, 7)),
    ("donor_of_the_first_test", lambda: (7, 7, 7, 8)),
    ("answer_of_the_old_strip", lambda: (7, 5, 5, 8)),
    ("selection_brings_the_digit", lambda: (7, 7, 8, 8)),
    ("answer_stays_at_home", lambda: (7, 7, 5, 5)),
    ("strip_is_not_seen", lambda: (5, 5, 5, 8)),
    ("another_channel", lambda: (7, 7, 2, 8)),
]
NOT_IN_HINTS = {"7", "8"}
