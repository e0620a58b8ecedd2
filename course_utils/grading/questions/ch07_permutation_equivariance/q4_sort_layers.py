"""`sort_layers`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

from course_utils.grading.questions.model import Mistake, Output, Part, Question

KINDS = ("equivariant", "invariant", "neither")
SORTED = {
    "centre": "equivariant",
    "first_token": "neither",
    "largest": "invariant",
    "ranked": "invariant",
    "running_sum": "neither",
    "over_queries": "equivariant",
    "scores": "neither",
    "products": "invariant",
}


def kinds_of(kind: str) -> Any:
    """Look at which layers are put in one kind: no more and no fewer may be."""
    return lambda value: [value.get(name) == kind for name in SORTED]


def sorted_as(**wrong: str) -> Any:
    return lambda: SORTED | wrong


def says(name: str, *kinds: str) -> Any:
    return lambda args, value: value[name] in kinds


QUESTION = Question(
    id="07.4",
    title="Equivariant, invariant or neither?",
    answer="sort_layers",
    arguments=(),
    outputs=(Output("kinds"),),
    reference=lambda: dict(SORTED),
    difficulty="medium",
    minutes=10,
    next_step="take each function's formula and put P X in place of X.",
    parts=tuple(
        Part(f"what is {kind}", 1, lambda rng: [()], view=kinds_of(kind))
        for kind in KINDS
    ),
    mistakes=(
        Mistake(
            "not_all_or_other_words",
            "every one of the eight names needs one of the three words: 'equivariant', "
            "'invariant', 'neither'",
            lambda: dict.fromkeys(SORTED, "set"),
            lambda args, value: any(value.get(name) not in KINDS for name in SORTED),
        ),
        Mistake(
            "scores_follow",
            "look at `scores` again: its columns are tokens too, and they move as "
            "well; compare f(PX) with P f(X) entry by entry",
            sorted_as(scores="equivariant"),
            says("scores", "equivariant", "invariant"),
        ),
        Mistake(
            "first_is_pooled",
            "`first_token` returns one row, but who stands there? Run it on two orders "
            "of the same tokens",
            sorted_as(first_token="invariant"),
            says("first_token", "equivariant", "invariant"),
        ),
        Mistake(
            "ranked_has_rows",
            "`ranked` returns as many rows as there are tokens, but do they belong to "
            "tokens? Ask where the smallest number ends up",
            sorted_as(ranked="equivariant"),
            says("ranked", "equivariant", "neither"),
        ),
        Mistake(
            "wrong_axis_breaks_it",
            "`over_queries` divides by another sum than attention does; being wrong "
            "as attention does not give it a sense of order",
            sorted_as(over_queries="neither"),
            says("over_queries", "invariant", "neither"),
        ),
        Mistake(
            "mean_breaks_it",
            "`centre` uses all tokens, by way of their mean: what does the mean do "
            "when tokens move, and what do the rows do?",
            sorted_as(centre="neither"),
            says("centre", "invariant", "neither"),
        ),
        Mistake(
            "sum_over_the_past",
            "`running_sum` adds up those before: that is another set of tokens when "
            "the order is another",
            sorted_as(running_sum="equivariant"),
            says("running_sum", "equivariant", "invariant"),
        ),
        Mistake(
            "pooled_follows",
            "`largest` has no row for each token, so nothing in it could follow one; "
            "what does happen to it?",
            sorted_as(largest="equivariant"),
            says("largest", "equivariant", "neither"),
        ),
        Mistake(
            "products_are_a_table",
            "`products` looks like `scores` and is not: its rows and columns are "
            "features, and the sum inside runs over tokens",
            sorted_as(products="neither"),
            says("products", "equivariant", "neither"),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [
    lambda: SORTED | {"centre": "Equivariant"},  # capitals make no other word
    lambda: dict(reversed(SORTED.items())),
]
WRONG = [
    ("scores_follow", lambda: SORTED | {"scores": "equivariant"}),
    ("ranked_has_rows", lambda: SORTED | {"ranked": "neither"}),
    (
        "first_is_pooled",
        lambda: SORTED | {"first_token": "invariant", "products": "neither"},
    ),
    ("not_all_or_other_words", lambda: {"centre": "equivariant"}),
    ("not_all_or_other_words", lambda: SORTED | {"centre": "equivalent"}),
]
