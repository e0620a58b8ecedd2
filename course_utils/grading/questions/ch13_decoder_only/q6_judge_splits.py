"""`judge_splits`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

from course_utils.grading.questions.model import Mistake, Output, Part, Question

JUDGED = {
    "by_topic": "leaks",
    "once_then_blocks": "clean",
    "once_in_each_part": "leaks",
    "pieces_from_all": "leaks",
    "sliding_windows": "leaks",
    "chosen_on_test": "leaks",
    "chosen_on_validation": "clean",
    "short_memory": "clean",
}


def judged_as(**wrong: str) -> Any:
    return lambda: JUDGED | wrong


def word(value: Any, name: str) -> str:
    """A verdict; capitals and spaces make no difference."""
    return str(value.get(name)).strip().casefold()


def says(name: str, verdict: str) -> Any:
    return lambda args, value: word(value, name) == verdict


def verdicts_of(*names: str) -> Any:
    """Look at three ways of either verdict, so that one word for all earns nothing."""
    return lambda value: [word(value, name) for name in names]


QUESTION = Question(
    id="13.6",
    title="Clean, or does it leak?",
    answer="judge_splits",
    arguments=(),
    outputs=(Output("verdicts"),),
    reference=lambda: dict(JUDGED),
    difficulty="medium",
    minutes=12,
    next_step="for each: did anything that came from the test have a say in the model?",
    parts=(
        Part(
            "paragraphs",
            1,
            lambda rng: [()],
            view=verdicts_of("by_topic", "once_then_blocks", "once_in_each_part"),
        ),
        Part(
            "pieces and windows",
            1,
            lambda rng: [()],
            view=verdicts_of("pieces_from_all", "sliding_windows", "short_memory"),
        ),
        Part(
            "choices",
            1,
            lambda rng: [()],
            view=verdicts_of("chosen_on_test", "chosen_on_validation"),
        ),
    ),
    mistakes=(
        Mistake(
            "not_all_or_other_words",
            "every one of the eight names needs one of the two words: 'clean' or "
            "'leaks'",
            lambda: dict.fromkeys(JUDGED, "maybe"),
            lambda args, value: any(
                word(value, name) not in ("clean", "leaks") for name in JUDGED
            ),
        ),
        Mistake(
            "topics_trusted",
            "`by_topic`: the topics have different names; do they have different "
            "paragraphs?",
            judged_as(by_topic="clean"),
            says("by_topic", "clean"),
        ),
        Mistake(
            "each_part_trusted",
            "`once_in_each_part`: a paragraph comes once in training and once in the "
            "test; how often is that in all?",
            judged_as(once_in_each_part="clean"),
            says("once_in_each_part", "clean"),
        ),
        Mistake(
            "pieces_overlooked",
            "`pieces_from_all`: which text decided which pieces there are?",
            judged_as(pieces_from_all="clean"),
            says("pieces_from_all", "clean"),
        ),
        Mistake(
            "windows_trusted",
            "`sliding_windows`: how many tokens does a window share with the one that "
            "starts one token later?",
            judged_as(sliding_windows="clean"),
            says("sliding_windows", "clean"),
        ),
        Mistake(
            "best_of_many",
            "`chosen_on_test`: what was the number used for before it was reported?",
            judged_as(chosen_on_test="clean"),
            says("chosen_on_test", "clean"),
        ),
        Mistake(
            "validation_distrusted",
            "`chosen_on_validation`: that text was looked at many times; but is it the "
            "one on which the result is reported?",
            judged_as(chosen_on_validation="leaks"),
            says("chosen_on_validation", "leaks"),
        ),
        Mistake(
            "memory_distrusted",
            "`short_memory`: the model knows less than it could; who tells it anything "
            "about the test?",
            judged_as(short_memory="leaks"),
            says("short_memory", "leaks"),
        ),
        Mistake(
            "cure_distrusted",
            "`once_then_blocks`: find a paragraph that stands in two of the parts",
            judged_as(once_then_blocks="leaks"),
            says("once_then_blocks", "leaks"),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def but(**other):
    return lambda: {**JUDGED, **other}


RIGHT = [but(), lambda: {x: f"{y} ".capitalize() for x, y in JUDGED.items()}]
WRONG = [
    ("topics_trusted", but(by_topic="clean")),
    ("each_part_trusted", but(once_in_each_part="clean")),
    ("pieces_overlooked", but(pieces_from_all="clean")),
    ("windows_trusted", but(sliding_windows="clean")),
    ("best_of_many", but(chosen_on_test="clean")),
    ("validation_distrusted", but(chosen_on_validation="leaks")),
    ("memory_distrusted", but(short_memory="leaks")),
    ("not_all_or_other_words", lambda: {"by_topic": "leaks"}),
]
