"""`matrix_states`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def matrix_states(maps: Tensor, added: Tensor, first: Tensor) -> Tensor:
    n, d = added.shape
    for reach in [2**k for k in range((n - 1).bit_length())]:
        past_maps = torch.cat([torch.eye(d).expand(reach, d, d), maps[:-reach]])
        past_added = F.pad(added, (0, 0, reach, 0))[:n]
        added = (past_added[:, None] @ maps)[:, 0] + added
        maps = past_maps @ maps
    return first @ maps + added


def scanned(
    maps: Tensor,
    added: Tensor,
    first: Tensor,
    *,
    join: Callable[[Tensor, Tensor], Tensor] = torch.matmul,
    carry: str = "own",
    doubled: bool = True,
    rounds: int = 64,
    short: bool = False,
    filled: float | None = None,
    rolled: bool = False,
    stale: bool = False,
    folded: bool = False,
) -> Tensor:
    """Join each step with one further back; the keywords are what may go wrong.

    `folded` brings `first` in with the first step, not at the end.
    """
    n, d = added.shape
    if folded:
        added = torch.cat([added[:1] + first @ maps[0], added[1:]])
    reach, given = 1, (maps, added)
    while reach < (n / 2 if short else n) and rounds:
        old_maps, old_added = given if stale else (maps, added)
        before = torch.eye(d) if filled is None else torch.full((d, d), filled)
        past_maps = torch.cat([before.expand(reach, d, d), old_maps[:-reach]])
        past_added = F.pad(old_added, (0, 0, reach, 0))[:n]
        if rolled:
            past_maps, past_added = (x.roll(reach, 0) for x in (maps, added))
        joined = join(past_maps, maps)
        through = {"past": past_maps, "joined": joined, "left": maps.mT}
        brought = (past_added[:, None] @ through.get(carry, maps))[:, 0]
        added = added + (past_added if carry == "as it is" else brought)
        maps = joined
        reach = 2 * reach if doubled else reach + 1
        rounds -= 1
    return added if folded else first @ maps + added


def scanned_with(**change: Any) -> Any:
    return lambda maps, added, first: scanned(maps, added, first, **change)


def known(name: str, hint: str, **change: Any) -> Mistake:
    """A mistake in the scan, whether `first` comes in before it or after it."""

    def sign(args: Args, value: Any) -> bool:
        inputs = [torch.as_tensor(x) for x in args]
        made = (scanned(*inputs, **change, folded=x) for x in (False, True))
        return any(np.allclose(x.numpy(), value, 1e-3, 1e-3) for x in made)

    return Mistake(name, hint, scanned_with(**change), sign)


def scanned_maps(maps: Tensor) -> Tensor:
    """The product of all maps up to each token."""
    whole = [maps[0]]
    for one in maps[1:]:
        whole.append(whole[-1] @ one)
    return torch.stack(whole)


def looped(maps: Tensor, added: Tensor, first: Tensor) -> Tensor:
    states, state = [], first
    for step, new in zip(maps, added):
        state = state @ step + new
        states.append(state)
    return torch.stack(states)


def draw_texts(*lengths: int) -> Any:
    def cases(rng: np.random.Generator) -> list[Args]:
        drawn: list[Args] = []
        for n in lengths:
            (d,) = sizes(rng, 1, least=3)
            maps = normal(rng, n, d, d) / np.float32(d**0.5)
            drawn.append((maps, normal(rng, n, d), normal(rng, d)))
        return drawn

    return cases


QUESTION = Question(
    id="15.9",
    title="A scan of matrices",
    answer="matrix_states",
    arguments=("maps", "added", "first"),
    outputs=(Output("states", "token d"),),
    reference=matrix_states,
    difficulty="hard",
    minutes=25,
    next_step="put two steps together on paper: h₂ = (h₀ A₁ + b₁) A₂ + b₂ is one step "
    "of the same form; then do that for all tokens at once, and double.",
    parts=(
        Part("states", 2, draw_texts(6, 7, 5)),
        Part("one token, and two", 1, draw_texts(1, 2)),
        Part(
            "no loop over tokens",
            1,
            draw_texts(5, 8, 6),
            constant_steps=True,
            only_failure_hint="the states are right, but more tokens take more steps: "
            "join every token's step with one further back, for all tokens at once, "
            "and double how far; 5 to 8 tokens take three rounds",
        ),
    ),
    mistakes=(
        Mistake(
            "one_late",
            "the states come one place late, with `first` in front: state t has read "
            "token t",
            lambda maps, added, first: torch.cat(
                [first[None], looped(maps, added, first)[:-1]]
            ),
        ),
        known(
            "order_of_maps",
            "two maps are joined in the wrong order: the token before acts first, and "
            "with rows the map that acts first stands on the left",
            join=lambda past, own: own @ past,
        ),
        known(
            "joined_maps_for_added",
            "what the past added goes through the *joined* map: it has its own map in "
            "it already, and meets only the later one; join `added` first",
            carry="joined",
        ),
        known(
            "past_maps_for_added",
            "what the past added goes through the past's own map: it has been through "
            "that already, and meets the *later* one",
            carry="past",
        ),
        known(
            "one_round_short",
            "the last round is missing: the rounds end before the reach covers the "
            "whole text, so that late tokens miss the earliest",
            short=True,
        ),
        known(
            "entrywise",
            "two maps are joined entry by entry, as decays were: one map after the "
            "other is a product of matrices",
            join=torch.mul,
            filled=1.0,
        ),
        Mistake(
            "cumulated",
            "`cumprod` multiplies entry by entry, and a `cumsum` lets nothing pass "
            "through the later maps: join two steps on paper first",
            lambda maps, added, first: first @ maps.cumprod(0) + added.cumsum(0),
        ),
        known(
            "not_doubled",
            "each round reaches one token further back, but what is joined covers "
            "twice as many already: steps are counted more than once",
            doubled=False,
        ),
        known(
            "one_round",
            "one round is done: each token then has what it and the token before it "
            "brought, and nothing older",
            rounds=1,
        ),
        known(
            "two_rounds",
            "two rounds are done, however long the text: they reach four tokens; go on "
            "until the reach covers all of it",
            rounds=2,
        ),
        known(
            "acts_from_the_left",
            "what the past added stands on the right of the map, as a column: here it "
            "is a row, b A",
            carry="left",
        ),
        known(
            "added_as_it_is",
            "what the past added is added as it is: it goes through the map of the "
            "later step",
            carry="as it is",
        ),
        Mistake(
            "filled_with_ones",
            "before the first token comes a matrix full of ones: a step that changes "
            "nothing is the unit matrix; a decay of 1 was one",
            scanned_with(filled=1.0),
        ),
        Mistake(
            "filled_with_zeros",
            "before the first token come maps of zeros, which wipe out `first`: a step "
            "that changes nothing is the unit matrix",
            scanned_with(filled=0.0),
        ),
        known(
            "rolled",
            "`roll` goes round in a circle: the first tokens are joined with the last "
            "ones; before the first token comes a step that changes nothing",
            rolled=True,
        ),
        known(
            "stale",
            "each round joins with the steps as they were given: it has to join with "
            "what the round before made of them, which covers more tokens",
            stale=True,
        ),
        Mistake(
            "first_from_the_left",
            "`first` stands on the right of the maps, as a column: states are rows, so "
            "it is first times map",
            lambda maps, added, first: (
                scanned(maps, added, 0 * first) + (scanned_maps(maps) @ first)
            ),
        ),
        Mistake(
            "starts_at_zero",
            "the states begin from zero: `first` goes through the first map and is "
            "added to the first step",
            lambda maps, added, first: scanned(maps, added, 0 * first),
        ),
        Mistake(
            "first_without_map",
            "`first` is added without its map: it goes through the first map like "
            "every state",
            lambda maps, added, first: scanned(
                maps, torch.cat([added[:1] + first, added[1:]]), 0 * first
            ),
        ),
        Mistake(
            "first_added_to_all",
            "`first` is added to every state: it goes through all maps up to there",
            lambda maps, added, first: scanned(maps, added, 0 * first) + first,
        ),
        Mistake(
            "first_through_one_map",
            "`first` goes through one map for each token: it goes through *all* maps "
            "up to that token",
            lambda maps, added, first: (
                scanned(maps, added, 0 * first) + torch.einsum("d,tde->te", first, maps)
            ),
        ),
        Mistake(
            "columns",
            "the maps act from the left, A h: here states are rows, h A",
            lambda maps, added, first: scanned(maps.mT, added, first),
        ),
        Mistake(
            "added_before_the_map",
            "what a token adds goes through its own map: it is added after the map",
            lambda maps, added, first: scanned(
                maps, (added[:, None] @ maps)[:, 0], first
            ),
        ),
        Mistake(
            "diagonals_alone",
            "only the diagonals of the maps are used, as if they were decays: every "
            "entry of a map counts",
            lambda maps, added, first: scanned(
                torch.diag_embed(maps.diagonal(dim1=-2, dim2=-1)), added, first
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def halves(maps, added, first):
    """Recursion: the second half goes on where the first one ended."""
    maps, added = maps.double(), added.double()
    missing = 8 - len(added) if len(added) > 4 else 0  # as many steps for 5 as for 8
    eye = torch.eye(maps.shape[-1]).double().expand(missing, -1, -1)
    maps, padded = torch.cat([maps, eye]), F.pad(added, (0, 0, 0, missing))

    def prefix(maps, added):
        if len(added) == 1:
            return maps, added
        middle = (len(added) + 1) // 2
        left_maps, left = prefix(maps[:middle], added[:middle])
        right_maps, right = prefix(maps[middle:], added[middle:])
        joined = torch.einsum("de,tef->tdf", left_maps[-1], right_maps)
        right = right + torch.einsum("d,tde->te", left[-1], right_maps)
        return torch.cat([left_maps, joined]), torch.cat([left, right])

    all_maps, states = prefix(maps, padded)
    states = states + torch.einsum("d,tde->te", first.double(), all_maps)
    return states[: len(added)]


def one_matrix(maps, added, first):
    """A map and what is added, as one larger matrix; `first` comes at the end."""
    n, d = added.shape
    whole = torch.zeros(n, d + 1, d + 1)
    whole[:, :d, :d], whole[:, d, :d], whole[:, d, d] = maps, added, 1.0
    for reach in (1, 2, 4):
        past = torch.eye(d + 1).repeat(n, 1, 1)
        past[reach:] = whole[: max(n - reach, 0)]
        whole = past @ whole
    start = torch.cat([first, torch.ones(1)])
    return torch.einsum("d,tde->te", start, whole)[:, :d]


def doubling(
    join=lambda past, own: past @ own,
    bring=lambda past, own, past_map: torch.einsum("td,tde->te", past, own),
    fill=torch.eye,
    reaches=(1, 2, 4),
    start=lambda first, maps: first @ maps,
):
    """As the chapter doubles; `first` comes at the end."""

    def answer(maps, added, first):
        n, d = added.shape
        for reach in [x for x in reaches if x < n]:
            none = fill(d).repeat(reach, 1, 1)
            past = torch.cat([none, maps])[:n]
            past_added = torch.cat([torch.zeros(reach, d), added])[:n]
            added = added + bring(past_added, maps, past)
            maps = join(past, maps)
        return start(first, maps) + added

    return answer


def square_of(number):
    return lambda d: torch.full((d, d), number)


RIGHT = [halves, one_matrix, doubling()]
WRONG = [
    ("loop", looped),
    ("order_of_maps", doubling(join=lambda past, own: own @ past)),
    ("entrywise", doubling(join=torch.mul, fill=square_of(1.0))),
    (
        "past_maps_for_added",
        doubling(bring=lambda b, own, past: (b[:, None] @ past)[:, 0]),
    ),
    (
        "acts_from_the_left",
        doubling(bring=lambda b, own, past: (own @ b[..., None])[..., 0]),
    ),
    ("added_as_it_is", doubling(bring=lambda b, own, past: b)),
    ("filled_with_ones", doubling(fill=square_of(1.0))),
    ("filled_with_zeros", doubling(fill=square_of(0.0))),
    ("two_rounds", doubling(reaches=(1, 2))),
    ("first_from_the_left", doubling(start=lambda first, maps: maps @ first)),
    ("starts_at_zero", lambda a, b, h: one_matrix(a, b, 0 * h)),
    ("columns", lambda a, b, h: one_matrix(a.transpose(1, 2), b, h)),
    ("first_added_to_all", lambda a, b, h: looped(a, b, torch.zeros_like(h)) + h),
    ("diagonals_alone", lambda a, b, h: one_matrix(a * torch.eye(a.shape[-1]), b, h)),
]
PARTIAL = [(3, looped)]
