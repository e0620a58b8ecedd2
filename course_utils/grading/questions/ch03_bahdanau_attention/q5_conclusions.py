"""`conclusions`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

YES, NO = "follows", "does not follow"
SAID = {
    "context": YES,
    "crossing": YES,
    "shared_out": YES,
    "column": YES,
    "reason": NO,
    "annotation": NO,
    "unique": NO,
    "no_influence": NO,
}


PAIRS = (  # one of each kind, so that one answer for all earns nothing
    ("context", "annotation"),
    ("crossing", "unique"),
    ("shared_out", "reason"),
    ("column", "no_influence"),
)


def answers_of(names: tuple[str, ...]) -> Callable[[Any], Any]:
    return lambda value: [value.get(name) for name in names]


def said(name: str) -> Callable[[], dict[str, str]]:
    """Everything right but one."""
    return lambda: SAID | {name: NO if SAID[name] == YES else YES}


def judged_wrongly(name: str) -> Callable[[Args, Any], bool]:
    return lambda args, value: value[name] != SAID[name]


def misjudged(name: str, hint: str) -> Mistake:
    return Mistake(f"{name}_misjudged", hint, said(name), judged_wrongly(name))


QUESTION = Question(
    id="03.5",
    title="What the matrix says, and what it doesn't",
    answer="conclusions",
    arguments=(),
    outputs=(Output("conclusions"),),
    reference=lambda: dict(SAID),
    difficulty="medium",
    minutes=10,
    next_step="ask of each sentence: could it be false for the very same matrix?",
    parts=tuple(
        Part(" and ".join(names), 1, lambda rng: [()], view=answers_of(names))
        for names in PAIRS
    ),
    mistakes=(
        Mistake(
            "not_all_or_other_words",
            "every one of the eight names needs one of the two texts: 'follows' or "
            "'does not follow'",
            lambda: dict.fromkeys(SAID, "perhaps"),
            lambda args, value: any(value.get(n) not in (YES, NO) for n in SAID),
        ),
        misjudged(
            "context",
            "look at `context` again: it only restates c_t = Σ a_tj h_j with the "
            "numbers of one row",
        ),
        misjudged(
            "crossing",
            "look at `crossing` again: find the largest weight of both rows and "
            "compare their columns",
        ),
        misjudged(
            "shared_out",
            "look at `shared_out` again: what do the weights of one row sum to, "
            "whatever the scores are?",
        ),
        misjudged(
            "column",
            "look at `column` again: add up the five numbers below the word; nothing "
            "forces that sum to be one",
        ),
        misjudged(
            "reason",
            "`reason` says what would happen with another input: no row of weights "
            "was computed for that input",
        ),
        misjudged(
            "annotation",
            "`annotation` takes a place for a word: what has the encoder read by the "
            "time it writes down a state?",
        ),
        misjudged(
            "unique",
            "`unique` claims something of all other rows: many averages of the same "
            "states may lead to the same word",
        ),
        misjudged(
            "no_influence",
            "`no_influence` counts one path only: by which other ways does a source "
            "word reach the decoder?",
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [lambda: dict(reversed(SAID.items()))]
WRONG = [
    ("reason_misjudged", lambda: SAID | {"reason": "follows"}),
    (
        "annotation_misjudged",
        lambda: dict.fromkeys(SAID, "follows") | {"reason": "does not follow"},
    ),
    ("context_misjudged", lambda: dict.fromkeys(SAID, "does not follow")),
    ("not_all_or_other_words", lambda: {"context": "follows"}),
]
