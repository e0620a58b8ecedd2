"""`judge_masks`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

from course_utils.grading.questions.model import Mistake, Output, Part, Question

VERDICTS = {  # the three words, and how feedback speaks of the code they fit
    "right": "the right ones",
    "leaks": "the leaking ones",
    "too strict": "those that are too strict",
}
JUDGED = {
    "one_more": "leaks",
    "huge": "right",
    "late": "leaks",
    "shared_out": "right",
    "strict": "too strict",
    "module": "leaks",
    "ones_and_zeros": "leaks",
    "continued": "too strict",
}


def verdicts_of(verdict: str) -> Any:
    """Look at which pieces of code got one verdict: no more and no fewer may."""
    return lambda value: [value.get(name) == verdict for name in JUDGED]


def judged_as(**wrong: str) -> Any:
    return lambda: JUDGED | wrong


def says(name: str, *verdicts: str) -> Any:
    return lambda args, value: value[name] in verdicts


QUESTION = Question(
    id="09.5",
    title="Right, leaking or too strict?",
    answer="judge_masks",
    arguments=(),
    outputs=(Output("verdicts"),),
    reference=lambda: dict(JUDGED),
    difficulty="hard",
    minutes=12,
    next_step="for each function: which outputs would move if the last token changed?",
    parts=tuple(
        Part(name, 1, lambda rng: [()], view=verdicts_of(verdict))
        for verdict, name in VERDICTS.items()
    ),
    mistakes=(
        Mistake(
            "not_all_or_other_words",
            "every one of the eight names needs one of the three words: 'right', "
            "'leaks', 'too strict'",
            lambda: dict.fromkeys(JUDGED, "wrong"),
            lambda args, value: any(value.get(name) not in VERDICTS for name in JUDGED),
        ),
        Mistake(
            "diagonal_one",
            "`one_more`: write down the first row of its mask; which keys does the "
            "first query see?",
            judged_as(one_more="right"),
            says("one_more", "right", "too strict"),
        ),
        Mistake(
            "zeros_trusted",
            "`late` has zeros above the diagonal, but what were the other weights "
            "divided by?",
            judged_as(late="right"),
            says("late", "right", "too strict"),
        ),
        Mistake(
            "sum_distrusted",
            "`shared_out` divides by its own sum: write the two fractions down, what "
            "becomes of the first denominator?",
            judged_as(shared_out="leaks"),
            says("shared_out", "leaks", "too strict"),
        ),
        Mistake(
            "huge_distrusted",
            "`huge`: −1e9 is dangerous for a row in which everything is blocked, and "
            "in half precision; is there either here?",
            judged_as(huge="leaks"),
            says("huge", "leaks", "too strict"),
        ),
        Mistake(
            "conventions_mixed",
            "`module`: what does True mean to `nn.MultiheadAttention`?",
            judged_as(module="right"),
            says("module", "right", "too strict"),
        ),
        Mistake(
            "float_taken_for_a_mask",
            "`ones_and_zeros`: what does SDPA do with a mask that is not boolean?",
            judged_as(ones_and_zeros="right"),
            says("ones_and_zeros", "right", "too strict"),
        ),
        Mistake(
            "wrong_corner",
            "`continued`: with two queries and more keys, in which corner does "
            "`is_causal` put the triangle? Then: too much seen, or too little?",
            judged_as(continued="right"),
            says("continued", "right", "leaks"),
        ),
        Mistake(
            "own_token",
            "`strict`: what may the first query see, and which token does every other "
            "one miss?",
            judged_as(strict="right"),
            says("strict", "right", "leaks"),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [lambda: dict(sorted(JUDGED.items()))]
WRONG = [
    ("zeros_trusted", lambda: JUDGED | {"late": "right"}),
    ("wrong_corner", lambda: JUDGED | {"continued": "leaks"}),
    ("sum_distrusted", lambda: JUDGED | {"shared_out": "leaks"}),
    ("conventions_mixed", lambda: JUDGED | {"module": "too strict"}),
    ("not_all_or_other_words", lambda: {"late": "leaks"}),
    ("not_all_or_other_words", lambda: JUDGED | {"late": "leak"}),
]
