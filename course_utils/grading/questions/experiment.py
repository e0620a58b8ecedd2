"""Experiments: run what is given with the setting of your name, and say what came out.

Nobody can know the number without the run, and the grader never runs it: a question
holds a table with the number of every variant. A learner's name draws the variant, so
that neighbours have other numbers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from course_utils.grading.comparison import RELATIONS
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

PLACEHOLDERS = {"", "your name", "..."}
Setting = dict[str, Any]
Rows = Sequence[tuple[Setting, float]]
Change = Callable[[float], float]
SHORTER: list[Change] = [  # digits rounded away, or cut off
    *(lambda number, n=n: float(round(number, n)) for n in range(4)),  # type: ignore[misc]
    *(lambda number, n=n: math.trunc(number * 10**n) / 10**n for n in range(4)),  # type: ignore[misc]
]


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
    guesses: Mapping[str, tuple[str, Callable[..., float]]] | None = None,
) -> Question:
    """A question about a run: the learner's name, the number, the letter of a reason.

    `rows` holds each setting with its number, `other_reasons` what to think of again
    after a wrong letter, `guesses` numbers that come to mind without a run, by formula
    of the setting. The number may differ by `tolerance`: machines round differently.
    """

    def due(value: Any) -> float:
        return rows[index_of(value[0], len(rows))][1]

    def number_is_right(args: Args, value: Any) -> bool:
        named = value[0].strip().casefold() not in PLACEHOLDERS
        return named and is_near(value[1], due(value), tolerance)

    def letter_is(letter: str) -> Callable[[Args, Any], bool]:
        return lambda args, value: value[2].strip(" ().:*`").casefold() == letter

    def is_told_by(value: Any, number: float) -> bool:
        """Whether a number agrees with another in three digits."""
        return math.isclose(float(value[1]), number, rel_tol=2e-3)

    def of_another(args: Args, value: Any) -> bool:
        number = float(value[1])
        if number == round(number, 1) and tolerance > 1e-3:
            return False  # a guess, rather
        near = any(is_near(number, other, tolerance) for _, other in rows)
        exact = any(is_told_by(value, other) for _, other in rows)
        changes = [change for _, made in RELATIONS.values() for change in made]
        own = due(value) and any(is_told_by(value, f(due(value))) for f in changes)
        found = near and (exact or not own)
        return found and not is_near(number, due(value), tolerance)

    def is_shortened(args: Args, value: Any) -> bool:
        number = float(value[1])
        if number.is_integer() and abs(number - due(value)) > 0.03 * abs(due(value)):
            return False  # a guess, rather
        return any(number == shorten(due(value)) for shorten in SHORTER)

    def is_count(args: Args, value: Any) -> bool:
        number = float(value[1])
        return number > 1 and abs(number - round(number)) < 1e-3 and 0 < due(value) < 1

    def is_made_by(name: str, changes: Sequence[Change]) -> Callable[[Args, Any], bool]:
        """Whether a number is what one of the changes makes of the right one."""

        def sign(args: Args, value: Any) -> bool:
            percents = name == "percent" and abs(due(value)) < 1  # often rounded
            slack = tolerance if percents else 0.002 * abs(due(value))
            near = [due(value) - slack, due(value) + slack]
            ends = [sorted(map(change, near)) for change in changes if due(value)]
            return any(a <= float(value[1]) <= b for a, b in ends)

        return sign

    names = {index_of(f"{i}", len(rows)): f"{i}" for i in range(300)}
    names |= {index_of("Ada", len(rows)): "Ada"}
    own = rows[index_of("Ada", len(rows))][1]

    def answer(number: float, letter: str = reason) -> Callable[[], Any]:
        return lambda: ("Ada", number, letter)

    known = [
        Mistake(
            "no_name",
            "the first result is to be your name, the one you gave to `variant`: "
            "it says which number is yours",
            lambda: ("", own, reason),
            lambda args, value: value[0].strip().casefold() in PLACEHOLDERS,
        )
    ]

    def add(
        name: str,
        hint: str,
        sign: Callable[[Args, Any], bool],
        changes: Sequence[Change],
    ) -> None:
        """Add a mistake in the number, if some name has a number to show it by."""

        def fits(args: Args, value: Any) -> bool:
            return not number_is_right(args, value) and sign(args, value)

        for change, index in product(changes, sorted(names)):
            value = (names[index], change(rows[index][1]), reason)
            if fits((), value) and not any(x.sign and x.sign((), value) for x in known):
                known.append(Mistake(name, hint, lambda v=value: v, fits))
                return

    def is_guess(guess: Callable[..., float]) -> Callable[[Args, Any], bool]:
        def sign(args: Args, value: Any) -> bool:
            number = guess(**rows[index_of(value[0], len(rows))][0])
            guessed = is_near(value[1], number, 0.05 * abs(number))
            return guessed and not number_is_right(args, value)

        return sign

    for name, (hint, guess) in (guesses or {}).items():
        tries = [(x, guess(**rows[i][0]), reason) for i, x in sorted(names.items())]
        shown = next(x for x in tries if is_guess(guess)((), x))
        known.append(Mistake(name, hint, lambda x=shown: x, is_guess(guess)))
    add(
        "another_variant",
        "another variant gives this number, yours does not: run it with the setting "
        "that `variant` gives for the name you return",
        of_another,
        [lambda _, x=x: x for _, x in rows],  # type: ignore[misc]
    )
    add(
        "rounded",
        "this is your run's number with some digits cut off: return it as the function "
        "gave it",
        is_shortened,
        SHORTER,
    )
    are_whole = all(float(number).is_integer() for _, number in rows)
    for name, (words, changes) in RELATIONS.items():
        if name == "whole_factor" and are_whole:  # then many a number fits by chance
            continue
        add(
            name,
            f"compared with the number of your run, {words.partition(':')[0]}: return "
            "it as the function gave it",
            is_made_by(name, changes),
            changes,
        )
    add(
        "count",
        "this is a whole number, and that of your run lies between 0 and 1: return it "
        "as the function gave it, no count and no per cent",
        is_count,
        [lambda number: float(round(200 * number))],
    )
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
            *known,
            Mistake(
                "not_this_run",
                "the run gives another number: call the function as it is given, with "
                "`**variant(…)` of your name, and return what it returns",
                answer(own + 7777.77),
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
