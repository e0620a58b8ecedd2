"""`predict_cards`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import torch

from course_utils.grading.questions.model import Mistake, Output, Part, Question

PREDICTED = (1 / 7 + 6 / 7 / 5, 1 / 5, 1 / 2 + 1 / 14)


def guessed(index: int, *numbers: float) -> Any:
    return lambda args, value: any(
        abs(float(value[index]) - number) < 0.004 for number in numbers
    )


def prediction(name: str, hint: str, index: int, *numbers: float) -> Mistake:
    def wrong() -> tuple[float, ...]:
        return tuple(numbers[0] if i == index else PREDICTED[i] for i in range(3))

    return Mistake(name, hint, wrong, guessed(index, *numbers))


QUESTION = Question(
    id="10.6",
    title="Predict what one head gets",
    answer="predict_cards",
    arguments=(),
    outputs=(Output("repeated"), Output("guessed"), Output("mean_weight")),
    reference=lambda: PREDICTED,
    tolerance=0.01,
    difficulty="medium",
    minutes=10,
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
            "letters_all_different",
            "the first number takes one letter from the others: cards of different "
            "colours may hold the same letter, each is drawn from all of them",
            0,
            1 / 7 + 6 / 7 / 4,
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
            1,
        ),
        prediction(
            "other_head_alone",
            "the last number is the share of the second head alone: the first one "
            "looks at the card before every time",
            2,
            1 / 7,
            1 / 14,
        ),
        prediction(
            "weight_of_itself",
            "the last number lets a card be its own partner: the partner is among the "
            "others, one fewer than there are cards",
            2,
            9 / 16,
        ),
        prediction(
            "weight_multiplied",
            "the last number multiplies the heads' weights: a mean adds them and "
            "divides by their number",
            2,
            1 / 4,
        ),
        prediction(
            "two_of_all_cards",
            "the first number takes the colour's two cards out of all cards, or one of "
            "the four colours: of the *other* cards one is the partner",
            0,
            1 / 4 + 3 / 4 / 5,
            1 / 4,
            1 / 4 + 3 / 4 / 4,
        ),
        prediction(
            "guessed_among_colours",
            "the second number draws among the colours: a letter is drawn, and there "
            "are more of them",
            1,
            1 / 4,
        ),
        prediction(
            "guessed_among_cards",
            "the second number draws among the cards, or among the letters of the "
            "chapter: here there are fewer letters",
            1,
            1 / 8,
        ),
        prediction(
            "weight_of_a_colour",
            "the last number takes the colour's two cards out of all cards, or one of "
            "the four colours: of the *other* cards one is the partner",
            2,
            5 / 8,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [lambda: (11 / 35, torch.tensor(0.2), 4 / 7)]
WRONG = [
    ("two_of_all_cards", lambda: (0.4, 0.2, 4 / 7)),
    ("guessed_among_colours", lambda: (11 / 35, 0.25, 4 / 7)),
    ("guessed_among_cards", lambda: (11 / 35, 0.125, 4 / 7)),
    ("weight_of_a_colour", lambda: (11 / 35, 0.2, 0.625)),
    ("neighbours_forgotten", lambda: (0.2, 0.2, 0.57)),
    ("only_neighbours", lambda: (0.1429, 0.2, torch.tensor(0.5))),
    ("counted_twice", lambda: (12 / 35, 0, 0)),
    ("itself_counted", lambda: [0.3, 0.2, 0.5714]),
    ("numbers_of_the_chapter", lambda: (0.2045, 0.125, 0.545)),
    ("guess_as_repetition", lambda: (11 / 35, 11 / 35, 4 / 7)),
    ("both_guessed", lambda: (11 / 35, 0.04, 4 / 7)),
    ("weight_by_half", lambda: (11 / 35, 0.2, 0.5)),
    ("weight_added", lambda: (11 / 35, 0.2, 1.0)),
    ("letters_all_different", lambda: (0.357, 0.2, 0.571)),
    ("weight_of_itself", lambda: (11 / 35, 0.2, (1 + 1 / 8) / 2)),
    ("other_head_alone", lambda: (11 / 35, 0.2, 1 / 7)),
    ("weight_multiplied", lambda: (11 / 35, 0.2, 0.25)),
    ("weight_added", lambda: (11 / 35, 0.2, 8 / 7)),
]
NOT_IN_HINTS = {"7", "seven", "1/7", "five", "1/5", "0.31", "0.57"}
