"""`can_follow`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
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


def circles(wants: Tensor) -> list[int]:
    """The length of every circle, each once."""
    found = cycles(wants.tolist())
    return [n for n in sorted(set(found)) for _ in range(found.count(n) // n)]


def can_follow(wants: Tensor) -> int:
    return len(wants) - sum(n > 2 for n in circles(wants))


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


def met_from(wants: list[int], start: int = 0) -> int:
    """The length of the circle that a token's wishes lead into."""
    for _ in wants:
        start = wants[start]
    token, length = wants[start], 1
    while token != start:
        token, length = wants[token], length + 1
    return length


QUESTION = Question(
    id="05.5",
    title="How many wishes symmetric scores can fulfil",
    answer="can_follow",
    arguments=("wants",),
    outputs=(Output("fulfilled"),),
    reference=can_follow,
    difficulty="hard",
    minutes=20,
    next_step="which wishes contradict each other, and how many of them have to go?",
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
            lambda rng: [
                draw_apart(rng, *n) for n in ((3, 3), (1, 3), (2, 4), (5, 3, 2), (2, 2))
            ],
            only_failure_hint="right for one circle, wrong when there are several "
            "side by side: each has its own contradiction",
        ),
    ),
    mistakes=(
        Mistake(
            "yes_or_no",
            "this says whether all wishes can be fulfilled, as in the chapter: asked "
            "for is how many of them can be, at most",
            lambda wants: max(circles(wants)) <= 2,
        ),
        Mistake(
            "all_or_nothing",
            "where not all wishes can be fulfilled, none is counted: give up as few as "
            "you can",
            lambda wants: len(wants) * (max(circles(wants)) <= 2),
        ),
        Mistake(
            "circle_given_up",
            "all wishes of a long circle are given up: when one of them goes, the "
            "others are a chain, and a chain can be fulfilled",
            lambda wants: len(wants) - sum(n for n in circles(wants) if n > 2),
        ),
        Mistake(
            "pairs_broken",
            "two tokens that want each other lose a wish: dot products can't do it, "
            "but here any symmetric table will do, and both wishes are about one entry",
            lambda wants: len(wants) - sum(n > 1 for n in circles(wants)),
        ),
        Mistake(
            "every_circle_broken",
            "every circle loses a wish, also that of one token that wants itself and "
            "that of two that want each other: which entries would have to differ?",
            lambda wants: len(wants) - len(circles(wants)),
        ),
        Mistake(
            "one_in_all",
            "one wish is given up in all, although there are several circles: each has "
            "its own contradiction",
            lambda wants: len(wants) - (max(circles(wants)) > 2),
        ),
        Mistake(
            "only_threes",
            "only circles of exactly three lose a wish: around a longer one each score "
            "must be larger than the one before, too",
            lambda wants: len(wants) - circles(wants).count(3),
        ),
        Mistake(
            "tails_given_up",
            "tokens that only lead into a circle are not counted: their wishes "
            "contradict nobody's",
            lambda wants: sum(n - (n > 2) for n in circles(wants)),
        ),
        Mistake(
            "only_from_the_first",
            "only the wishes of the first token are followed: there may be circles "
            "elsewhere",
            lambda wants: len(wants) - (met_from(wants.tolist()) > 2),
        ),
        Mistake(
            "counted_from_each",
            "a circle is counted once for each token from which you come to it: it is "
            "one contradiction, and costs one wish",
            lambda wants: sum(
                met_from(wants.tolist(), i) <= 2 for i in range(len(wants))
            ),
        ),
        Mistake(
            "everything",
            "every wish is counted as fulfilled: rock, paper, scissors is a circle of "
            "three, and ends in a number larger than itself",
            lambda wants: len(wants),
        ),
        Mistake(
            "mutual_only",
            "only wishes that are returned are counted: a chain that ends somewhere is "
            "no contradiction, its scores can grow towards the end",
            lambda wants: sum(n for n in circles(wants) if n <= 2),
        ),
        Mistake(
            "tokens_wanted",
            "the tokens that somebody wants are counted: two wishes for the same token "
            "can both be fulfilled",
            lambda wants: len(set(wants.tolist())),
        ),
        Mistake(
            "given_up",
            "this is the number of wishes that have to be given up: asked for is how "
            "many can be fulfilled",
            lambda wants: sum(n > 2 for n in circles(wants)),
        ),
        Mistake(
            "circles_counted",
            "this is the number of circles: asked for is how many wishes can be "
            "fulfilled",
            lambda wants: len(circles(wants)),
        ),
        Mistake(
            "half_a_circle_lost",
            "every other wish of a long circle is given up: when one of them goes, the "
            "others are a chain, and a chain can be fulfilled",
            lambda wants: (
                len(wants) - sum((n + 1) // 2 for n in circles(wants) if n > 2)
            ),
        ),
        Mistake(
            "even_circles_kept",
            "circles with an even number of tokens lose nothing here: write the chain "
            "of inequalities once round one of four",
            lambda wants: len(wants) - sum(n > 1 and n % 2 for n in circles(wants)),
        ),
        Mistake(
            "own_wish_lost",
            "a token that wants itself is taken for a contradiction: its wish is about "
            "an entry of the diagonal, which no other wish needs",
            lambda wants: len(wants) - sum(n != 2 for n in circles(wants)),
        ),
        Mistake(
            "pairs_alone_lose",
            "two tokens that want each other lose a wish here, longer circles lose "
            "none: it is the other way round",
            lambda wants: len(wants) - circles(wants).count(2),
        ),
        Mistake(
            "threes_kept",
            "circles of three lose nothing here: rock, paper, scissors is one, and "
            "ends in a number larger than itself",
            lambda wants: len(wants) - sum(n > 3 for n in circles(wants)),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def in_steps(wants):
    """Take away whoever nobody wants, again and again; what is left are circles."""
    left = dict(enumerate(wants.tolist()))
    while loose := set(left) - set(left.values()):
        left = {i: w for i, w in left.items() if i not in loose}
    fulfilled = len(wants)
    while left:
        token, length = next(iter(left)), 0
        while token in left:
            token, length = left.pop(token), length + 1
        fulfilled -= length > 2
    return fulfilled


def by_colours(wants):
    """Walk from each token until something known; a new circle ends the walk."""
    seen, lost = {}, 0
    for start in range(len(wants)):
        token, step = start, 0
        while token not in seen:
            seen[token] = (start, step)
            token, step = int(wants[token]), step + 1
        walk_of, entered = seen[token]
        lost += walk_of == start and step - entered > 2
    return torch.tensor(len(wants) - lost)


def rings(wants):
    w, found = wants.tolist(), set()
    for token in range(len(w)):
        for _ in w:
            token = w[token]
        ring = [token]
        while w[ring[-1]] != token:
            ring.append(w[ring[-1]])
        found.add(frozenset(ring))
    return found


def by_sets(wants):
    return float(len(wants) - sum(len(ring) >= 3 for ring in rings(wants)))


def by_powers(wants):
    """The map applied often leaves the circles; each has one smallest token."""
    far = np.arange(len(wants))
    for _ in range(len(wants)):
        far = wants.numpy()[far]
    lost = 0
    for token in set(far.tolist()):
        ring = [token]
        while (after := int(wants[ring[-1]])) != token:
            ring.append(after)
        lost += len(ring) > 2 and token == min(ring)
    return np.int64(len(wants) - lost).item()


def met_from_the_first(wants):
    """Follow the first token alone, until it meets somebody again."""
    token, met = 0, []
    while token not in met:
        met.append(token)
        token = int(wants[token])
    return len(wants) - (len(met) - met.index(token) > 2)


RIGHT = [in_steps, by_colours, by_sets, by_powers]
WRONG = [
    ("yes_or_no", lambda wants: in_steps(wants) == len(wants)),
    ("everything", lambda wants: wants.shape[0]),
    ("circles_counted", lambda wants: len(rings(wants))),
    (
        "half_a_circle_lost",
        lambda w: len(w) - sum(-(-len(r) // 2) for r in rings(w) if len(r) >= 3),
    ),
    (
        "even_circles_kept",
        lambda w: len(w) - sum(len(r) % 2 for r in rings(w) if len(r) >= 3),
    ),
    ("tokens_wanted", lambda wants: len(wants.unique())),
    ("given_up", lambda wants: len(wants) - in_steps(wants)),
    ("only_from_the_first", met_from_the_first),
    (
        "mutual_only",
        lambda wants: sum(wants[w].item() == i for i, w in enumerate(wants.tolist())),
    ),
    (
        "all_or_nothing",
        lambda wants: len(wants) if by_sets(wants) == len(wants) else 0,
    ),
]
PARTIAL = [(4, met_from_the_first)]
