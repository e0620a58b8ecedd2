"""`rates`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from course_utils.grading.questions.draw import first, second
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

RATES = (4 / 5, 2 / 9)


def rate_is(index: int, *wrong: float) -> Callable[[Args, Any], bool]:
    """Recognise typical wrong numbers at one place, whatever stands at the other."""
    return lambda args, value: any(
        abs(float(value[index]) - number) < 0.006 for number in wrong
    )


QUESTION = Question(
    id="03.6",
    title="Alignment error rate by hand",
    answer="rates",
    arguments=(),
    outputs=(Output("accuracy"), Output("error_rate")),
    reference=lambda: RATES,
    tolerance=0.005,
    difficulty="easy",
    minutes=6,
    next_step="count |A|, |S|, |A ∩ S| and |A ∩ P| on paper, then put them in.",
    parts=(
        Part("accuracy", 1, lambda rng: [()], view=first),
        Part("error rate", 1, lambda rng: [()], view=second),
    ),
    mistakes=(
        Mistake(
            "sure_only",
            "the first number allows the sure links alone: a possible link is not a "
            "mistake",
            lambda: (3 / 5, RATES[1]),
            rate_is(0, 3 / 5),
        ),
        Mistake(
            "percent",
            "these are percentages: both numbers run from 0 to 1",
            lambda: (100 * RATES[0], 100 * RATES[1]),
            lambda args, value: any(float(number) > 1.5 for number in value),
        ),
        Mistake(
            "recall",
            "the first number divides by the sure links: it asks how many of the "
            "predicted ones are allowed",
            lambda: (3 / 4, RATES[1]),
            rate_is(0, 3 / 4),
        ),
        Mistake(
            "all_allowed",
            "the first number is 1, as if every predicted link were allowed: look each "
            "of them up, and divide by how many are predicted",
            lambda: (1.0, 1 - 8 / 9),
            rate_is(0, 1.0),
        ),
        Mistake(
            "possible_without_sure",
            "the first number counts those that are only possible: every sure link is "
            "possible too",
            lambda: (1 / 5, 1 - 4 / 9),
            rate_is(0, 1 / 5),
        ),
        Mistake(
            "one_minus_accuracy",
            "the second number is one minus the first: the error rate also asks how "
            "many of the sure links were found",
            lambda: (RATES[0], 1 / 5),
            rate_is(1, 1 / 5),
        ),
        Mistake(
            "not_subtracted",
            "the second number is the share that is right: an error rate is what "
            "remains of one",
            lambda: (RATES[0], 7 / 9),
            rate_is(1, 7 / 9),
        ),
        Mistake(
            "sure_counted_apart",
            "the second number counts each predicted link once: one that is sure is "
            "possible too, and stands in both intersections",
            lambda: (RATES[0], 1 - 4 / 9),
            rate_is(1, 1 - 4 / 9),
        ),
        Mistake(
            "possible_in_the_denominator",
            "the second number divides by |A| + |P|: nobody has to find every "
            "possible link, only the sure ones count below",
            lambda: (RATES[0], 1 - 7 / 12),
            rate_is(1, 1 - 7 / 12, 1 - 7 / 11, 1 - 7 / 10),
        ),
        Mistake(
            "sure_links_only",
            "the second number asks about the sure links alone: those that are "
            "possible have their place above the line, too",
            lambda: (RATES[0], 1 - 3 / 4),
            rate_is(1, 1 - 3 / 4, 1 - 3 / 5, 1 - 6 / 9),
        ),
        Mistake(
            "possible_twice",
            "the second number counts the allowed links twice: once they are counted "
            "among the possible, once among the sure",
            lambda: (RATES[0], 1 - 8 / 9),
            rate_is(1, 1 - 8 / 9),
        ),
        Mistake(
            "of_the_possible",
            "the first number divides by the links that are possible: it asks how many "
            "of the predicted ones are allowed",
            lambda: (4 / 7, RATES[1]),
            rate_is(0, 4 / 7),
        ),
        Mistake(
            "negative",
            "the second number is negative: more stands above the line than below it; "
            "a link in both sets is counted twice below, too",
            lambda: (RATES[0], 1 - 7 / 6),
            lambda args, value: float(value[1]) < 0,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [lambda: (0.8, 0.2222), lambda: (np.float64(0.8), torch.tensor(2 / 9))]
WRONG = [
    ("sure_only", lambda: (0.6, 0.3)),
    ("one_minus_accuracy", lambda: (torch.tensor(0.8), 0.2)),
    ("not_subtracted", lambda: (0.8, 0.778)),
    ("possible_without_sure", lambda: (0.2, 0.0)),
    ("possible_in_the_denominator", lambda: [0.8, 0.364]),
    ("possible_in_the_denominator", lambda: [0.8, 0.417]),
    ("of_the_possible", lambda: (0.571, 2 / 9)),
    ("negative", lambda: (0.8, -1 / 6)),
    ("recall", lambda: (0.75, 2 / 9)),
    ("all_allowed", lambda: (1, 0.111)),
]
NOT_IN_HINTS = {"0.8", "0.22", "4/5", "2/9", "four", "80"}
