"""`choose_scores`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

from course_utils.grading.questions.model import Mistake, Output, Part, Question

CHOSEN = {
    "noisy_copy": "dot",
    "two_languages": "general",
    "third_line": "location",
    "shouting": "additive",
    "longer_memory": "general",
}
NAMES = ("location", "dot", "general", "additive")


def of(name: str) -> Any:
    return lambda value: value.get(name)


def chosen_as(**wrong: str) -> Any:
    return lambda: CHOSEN | wrong


def says(name: str, *scores: str) -> Any:
    return lambda args, value: value[name] in scores


QUESTION = Question(
    id="04.3",
    title="Which score?",
    answer="choose_scores",
    arguments=(),
    outputs=(Output("scores"),),
    reference=lambda: dict(CHOSEN),
    difficulty="medium",
    minutes=10,
    next_step="ask of each case what the score must look at: query, key, place.",
    parts=tuple(Part(name, 1, lambda rng: [()], view=of(name)) for name in CHOSEN),
    mistakes=(
        Mistake(
            "not_all_or_other_words",
            "every one of the five names needs one of the four words: 'location', "
            "'dot', 'general', 'additive'",
            lambda: dict.fromkeys(CHOSEN, "scaled dot"),
            lambda args, value: any(value.get(name) not in NAMES for name in CHOSEN),
        ),
        Mistake(
            "dot_across_spaces",
            "`two_languages`: the two vectors have different widths, so the score you "
            "chose can't even be computed, or reads no key",
            chosen_as(two_languages="dot"),
            says("two_languages", "dot", "location"),
        ),
        Mistake(
            "more_than_needed",
            "`noisy_copy` could be done by a score with nothing to learn at all",
            chosen_as(noisy_copy="general"),
            says("noisy_copy", "general", "additive"),
        ),
        Mistake(
            "place_for_content",
            "`noisy_copy`: the item may stand anywhere; knowing places does not help",
            chosen_as(noisy_copy="location"),
            says("noisy_copy", "location"),
        ),
        Mistake(
            "content_for_place",
            "`third_line`: no comparison of contents can tell which line is the third, "
            "as the same line could stand anywhere",
            chosen_as(third_line="general"),
            says("third_line", "dot", "general", "additive"),
        ),
        Mistake(
            "odd_in_the_query",
            "`shouting`: that score turns its sign round with the query, or never "
            "reads the key; what is asked for here does not depend on who asks",
            chosen_as(shouting="general"),
            says("shouting", "general", "dot", "location"),
        ),
        Mistake(
            "no_such_place",
            "`longer_memory`: that score has a row of weights for each place, and none "
            "for the places it has never seen",
            chosen_as(longer_memory="location"),
            says("longer_memory", "location"),
        ),
        Mistake(
            "rotation_not_learned",
            "`longer_memory`: query and key live in different spaces, and nothing in "
            "that score is learned that could turn one into the other",
            chosen_as(longer_memory="dot"),
            says("longer_memory", "dot"),
        ),
        Mistake(
            "costly",
            "`longer_memory` or `two_languages`: an earlier one of the four can do "
            "that too",
            chosen_as(longer_memory="additive"),
            lambda args, value: (
                "additive" in (value["longer_memory"], value["two_languages"])
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [
    lambda: CHOSEN | {"shouting": "Additive"},  # capitals make no other word
    lambda: dict(reversed(CHOSEN.items())),
]
WRONG = [
    ("dot_across_spaces", lambda: CHOSEN | {"two_languages": "location"}),
    ("more_than_needed", lambda: CHOSEN | {"noisy_copy": "additive"}),
    ("place_for_content", lambda: CHOSEN | {"noisy_copy": "location"}),
    ("content_for_place", lambda: CHOSEN | {"third_line": "additive"}),
    ("odd_in_the_query", lambda: CHOSEN | {"shouting": "dot"}),
    ("no_such_place", lambda: CHOSEN | {"longer_memory": "location"}),
    ("rotation_not_learned", lambda: CHOSEN | {"longer_memory": "dot"}),
    ("costly", lambda: CHOSEN | {"two_languages": "additive"}),
    ("not_all_or_other_words", lambda: {"noisy_copy": "dot"}),
    ("not_all_or_other_words", lambda: CHOSEN | {"shouting": "add"}),
]
NOT_IN_HINTS = set(CHOSEN.values())
