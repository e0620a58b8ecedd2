"""`can_follow`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def cycles(wants: list[int]) -> list[int]:
    """The lengths of the circles that following the wishes leads into."""
    found = []
    for start in range(len(wants)):
        token, length = wants[start], 1
        while token != start and length <= len(wants):
            token, length = wants[token], length + 1
        if token == start:
            found.append(length)
    return found


def can_follow(wants: Tensor) -> bool:
    return max(cycles(wants.tolist())) <= 2


def draw_circle(
    rng: np.random.Generator, length: int, tails: int, first_in_tail: bool = False
) -> Args:
    """A circle of some length, and tokens whose wishes lead into it."""
    names = 1 + rng.permutation(length + tails - 1)
    names = np.append(names, 0) if first_in_tail else np.append(0, names)
    wants = np.zeros(length + tails, dtype=np.int64)
    for i, token in enumerate(names):
        wants[token] = names[(i + 1) % length] if i < length else names[rng.integers(i)]
    return (wants,)


def draw_apart(rng: np.random.Generator, *lengths: int) -> Args:
    """Circles of these lengths side by side, with no wish between them."""
    names = np.append(0, 1 + rng.permutation(sum(lengths) - 1))
    wants = np.zeros(len(names), dtype=np.int64)
    for circle in np.split(names, np.cumsum(lengths)[:-1]):
        wants[circle] = np.roll(circle, -1)
    return (wants,)


def drawn(*kinds: tuple[Any, ...]) -> Callable[[np.random.Generator], list[Args]]:
    return lambda rng: [draw_circle(rng, *kind) for kind in kinds]


def walk(wants: list[int]) -> list[int]:
    """The tokens met on the way from the first one."""
    met = [wants[0]]
    for _ in wants:
        met.append(wants[met[-1]])
    return met


QUESTION = Question(
    id="05.5",
    title="Which wishes symmetric scores can fulfil",
    answer="can_follow",
    arguments=("wants",),
    outputs=(Output("possible"),),
    reference=can_follow,
    difficulty="hard",
    minutes=20,
    next_step="follow the wishes from a token, and see whether and when it comes back.",
    parts=(
        Part("three and one", 1, drawn((3, 0), (1, 2), (1, 0), (3, 0))),
        Part(
            "longer circles",
            1,
            drawn((4, 0), (5, 0), (1, 4), (6, 0)),
            only_failure_hint="right for circles of three, wrong for longer ones",
        ),
        Part(
            "pairs",
            1,
            drawn((2, 0), (2, 3), (3, 0), (4, 0)),
            only_failure_hint="two tokens that want each other share one entry of a "
            "symmetric table: look at what their wishes ask of it",
        ),
        Part(
            "circles with tails",
            1,
            drawn((3, 2), (4, 3, True), (2, 4, True), (1, 5, True), (3, 1, True)),
            only_failure_hint="wrong when some tokens only lead into a circle without "
            "being in it",
        ),
        Part(
            "several circles",
            1,
            lambda rng: [draw_apart(rng, *n) for n in ((1, 3), (2, 4), (1, 2), (2, 2))],
            only_failure_hint="right for one circle, wrong when there are several "
            "side by side: start from every token in turn",
        ),
    ),
    mistakes=(
        Mistake(
            "pairs_refused",
            "two tokens that want each other are refused: dot products can't do it, "
            "but here any symmetric table will do, and both wishes are about one entry",
            lambda wants: max(cycles(wants.tolist())) <= 1,
        ),
        Mistake(
            "only_threes",
            "only circles of exactly three are refused: around a longer one each score "
            "must be larger than the one before, too",
            lambda wants: 3 not in cycles(wants.tolist()),
        ),
        Mistake(
            "only_whole_circles",
            "a circle is seen only when every token is in it: others may lead into it, "
            "and the tokens of the circle still contradict each other",
            lambda wants: (
                len(set(wants.tolist())) < len(wants)
                or max(cycles(wants.tolist())) <= 2
            ),
        ),
        Mistake(
            "only_from_the_first",
            "only the wishes of the first token are followed: the circle may be "
            "elsewhere",
            lambda wants: (
                0 not in walk(wants.tolist()) or walk(wants.tolist()).index(0) + 1 <= 2
            ),
        ),
        Mistake(
            "someone_wants_itself",
            "one token that wants itself is taken to be enough: look for circles of "
            "three or more, wherever they are",
            lambda wants: any(w == i for i, w in enumerate(wants.tolist())),
        ),
        Mistake(
            "not_everyone_wanted",
            "it is only asked whether two tokens want the same one: that says nothing "
            "about circles",
            lambda wants: len(set(wants.tolist())) < len(wants),
        ),
        Mistake(
            "everything",
            "everything is called possible: rock, paper, scissors is a circle of "
            "three, and ends in a number larger than itself",
            lambda wants: True,
        ),
        Mistake(
            "mutual_only",
            "only wishes that are returned are allowed: a chain that ends somewhere is "
            "no contradiction, its scores can grow towards the end",
            lambda wants: all(
                wants.tolist()[w] == i for i, w in enumerate(wants.tolist())
            ),
        ),
        Mistake(
            "turned_round",
            "true and false are exchanged: the answer is whether the wishes *can* be "
            "fulfilled",
            lambda wants: not can_follow(wants),
        ),
        Mistake(
            "every_circle",
            "every circle is refused, also that of one token that wants itself and "
            "that of two that want each other: which entries would have to differ?",
            lambda wants: not cycles(wants.tolist()),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def in_steps(wants):
    """Take away whoever nobody wants, again and again; what is left are circles."""
    left = dict(enumerate(wants.tolist()))
    while loose := set(left) - set(left.values()):
        left = {i: w for i, w in left.items() if i not in loose}
    return all(left[w] == i for i, w in left.items())


def met_from_the_first(wants):
    """Follow the first token alone, and count whom it meets."""
    token, met = 0, set()
    while token not in met:
        met.add(token)
        token = int(wants[token])
    return len(met) <= 2


RIGHT = [in_steps]
WRONG = [
    (
        "pairs_refused",
        lambda wants: (
            all(w == i or wants[w] != i for i, w in enumerate(wants.tolist()))
            and can_follow(wants)
        ),
    ),
    ("everything", lambda wants: len(wants) > 0),
    (
        "only_threes",
        lambda wants: (
            not any(wants[wants[wants[i]]] == i != wants[i] for i in range(len(wants)))
        ),
    ),
]
PARTIAL = [(3, met_from_the_first)]
