"""`sort_encodings`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

from course_utils.grading.questions.model import Mistake, Output, Part, Question

KINDS = ("every reordering", "the mirror image", "nothing")
HIDDEN = {
    "none": KINDS[0],
    "same_vector": KINDS[0],
    "bias_at_the_start": KINDS[0],
    "symmetric_alibi": KINDS[1],
    "even_bias": KINDS[1],
    "sinusoidal": KINDS[2],
    "alibi": KINDS[2],
    "rope": KINDS[2],
    "causal": KINDS[2],
}


def of_kind(kind: str) -> Any:
    """Look at what gets one answer: no more and no fewer may."""
    return lambda value: [value.get(name) == kind for name in HIDDEN]


ASKED_AGAIN = {
    "same_vector": ((1, 2), "does it make any two places different?"),
    "bias_at_the_start": ((1, 2), "which numbers does its table hold before training?"),
    "symmetric_alibi": ((2, 0), "near and far differ; what keeps every distance?"),
    "even_bias": ((2, 0), "what becomes of a distance δ in the mirror image?"),
    "sinusoidal": ((1, 0), "no two places get the same vector"),
    "alibi": ((1, 0), "only keys behind are penalised; where are they in a mirror?"),
    "rope": ((1, 0), "are the scores at distance k and at −k the same?"),
    "causal": ((0, 1), "who sees whom depends on the order, though nothing is added"),
    "none": ((1, 2), "chapter 07 has the theorem"),
}


def missorted(name: str, wrong: tuple[int, int], hint: str) -> Mistake:
    """The mistake of giving `name` one of the wrong kinds."""
    kinds = [KINDS[index] for index in wrong]
    return Mistake(
        name,
        f"look at `{name}` again: {hint}",
        lambda: HIDDEN | {name: kinds[0]},
        lambda args, value: value[name] in kinds,
    )


QUESTION = Question(
    id="08.6",
    title="What stays hidden?",
    answer="sort_encodings",
    arguments=(),
    outputs=(Output("hidden"),),
    reference=lambda: dict(HIDDEN),
    difficulty="hard",
    minutes=12,
    next_step="ask for each: what does it add to token t, or to the score of i and j?",
    parts=tuple(
        Part(f"hidden: {kind}", 1, lambda rng: [()], view=of_kind(kind))
        for kind in KINDS
    ),
    mistakes=(
        Mistake(
            "not_all_or_other_words",
            "each of the nine names needs one of the three texts, word by word",
            lambda: dict.fromkeys(HIDDEN, "order"),
            lambda args, value: any(value.get(name) not in KINDS for name in HIDDEN),
        ),
        *(missorted(name, *again) for name, again in ASKED_AGAIN.items()),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [
    lambda: HIDDEN | {"rope": "Nothing"},  # capitals make no other word
    lambda: dict(reversed(HIDDEN.items())),
]
WRONG = [
    ("symmetric_alibi", lambda: HIDDEN | {"symmetric_alibi": "nothing"}),
    ("bias_at_the_start", lambda: HIDDEN | {"bias_at_the_start": "nothing"}),
    (
        "even_bias",
        lambda: HIDDEN | {"even_bias": "nothing", "causal": "every reordering"},
    ),
    ("not_all_or_other_words", lambda: {"none": "every reordering"}),
    ("not_all_or_other_words", lambda: HIDDEN | {"rope": "none"}),
]
