"""Experiments: run what is given with the setting of your name, and say what came out.

Nobody can know the number without the run, and the grader never runs it: a question
holds a table with the number of every variant. A learner's name draws the variant, so
that neighbours have other numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

PLACEHOLDERS = {"", "your name", "..."}
Setting = dict[str, Any]
Rows = Sequence[tuple[Setting, float]]


def index_of(name: str, count: int) -> int:
    """The variant that a name draws; capitals and spaces make no difference."""
    digest = hashlib.sha256(" ".join(name.casefold().split()).encode()).digest()
    return int.from_bytes(digest, "big") % count


def is_near(got: Any, due: float, tolerance: float) -> bool:
    """Whether a number is what came out, but for rounding."""
    return abs(float(got) - due) <= tolerance


def experiment(
    *,
    id: str,
    title: str,
    minutes: int,
    rows: Rows,
    tolerance: float,
    reason: str,
    other_reasons: Mapping[str, str],
    next_step: str,
) -> Question:
    """A question about a run: the learner's name, the number, the letter of a reason.

    `rows` holds each setting with its number, `other_reasons` what to think of again
    after a wrong letter. The number may differ by `tolerance`: machines round
    differently.
    """

    def due(value: Any) -> float:
        return rows[index_of(value[0], len(rows))][1]

    def number_is_right(args: Args, value: Any) -> bool:
        named = value[0].strip().casefold() not in PLACEHOLDERS
        return named and is_near(value[1], due(value), tolerance)

    def letter_is(letter: str) -> Callable[[Args, Any], bool]:
        return lambda args, value: value[2].strip().casefold() == letter

    def of_another(args: Args, value: Any) -> bool:
        near = any(is_near(value[1], number, tolerance) for _, number in rows)
        return near and not is_near(value[1], due(value), tolerance)

    def rounded(args: Args, value: Any) -> bool:
        kept = [round(due(value), digits) for digits in range(4)]
        return float(value[1]) in kept and not number_is_right(args, value)

    def answer(number: float, letter: str = reason) -> Callable[[], Any]:
        return lambda: ("Ada", number, letter)

    own = rows[index_of("Ada", len(rows))][1]
    other = next(x for _, x in rows if not is_near(x, own, 2 * tolerance))
    too_short = [
        Mistake(
            "rounded",
            "this is your run's number with some digits cut off: return it as the "
            "function gave it",
            answer(round(own, digits)),
            rounded,
        )
        for digits in range(4)
        if not any(is_near(round(own, digits), x, tolerance) for _, x in rows)
    ]
    return Question(
        id=id,
        title=title,
        answer="measured",
        arguments=(),
        outputs=(Output("name"), Output("number"), Output("reason")),
        reference=answer(own),
        next_step=next_step,
        difficulty="medium",
        minutes=minutes,
        variants=tuple(setting for setting, _ in rows),
        parts=(
            Part("the number", 2, lambda rng: [()], accepts=number_is_right),
            Part("the reason", 1, lambda rng: [()], accepts=letter_is(reason)),
        ),
        mistakes=(
            Mistake(
                "no_name",
                "the first result is to be your name, the one you gave to `variant`: "
                "it says which number is yours",
                lambda: ("", own, reason),
                lambda args, value: value[0].strip().casefold() in PLACEHOLDERS,
            ),
            Mistake(
                "another_variant",
                "another variant gives this number, yours does not: run it with the "
                "setting that `variant` gives for the name you return",
                answer(other),
                of_another,
            ),
            Mistake(
                "percent",
                "the number seems to be in percent: return it as the function gave it",
                answer(100 * own),
                lambda args, value: (
                    is_near(value[1], 100 * due(value), 100 * tolerance)
                    and abs(due(value)) < 1
                    and not number_is_right(args, value)
                ),
            ),
            *too_short[:1],
            Mistake(
                "not_this_run",
                "the run gives another number: call the function as it is given, with "
                "`**variant(…)` of your name, and return what it returns",
                answer(own + 10 * tolerance + 1),
                lambda args, value: not number_is_right(args, value),
            ),
            *(
                Mistake(f"reason_{x}", hint, answer(own, x), letter_is(x))
                for x, hint in other_reasons.items()
            ),
            Mistake(
                "no_reason",
                "the third result is the letter of a reason, in quotes: it is one of "
                "those listed above the code",
                answer(own, "?"),
                lambda args, value: not letter_is(reason)(args, value),
            ),
        ),
    )
