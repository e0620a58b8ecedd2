"""`matrix_states`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def matrix_states(maps: Tensor, added: Tensor, first: Tensor) -> Tensor:
    return scanned(maps, added, first)


def scanned(
    maps: Tensor,
    added: Tensor,
    first: Tensor,
    *,
    past_first: bool = True,
    carry: str = "own",
    doubled: bool = True,
    entrywise: bool = False,
    rounds: int = 64,
    short: bool = False,
) -> Tensor:
    """Join each step with one further back; the keywords are what may go wrong."""
    n, reach = len(added), 1
    added = torch.cat([added[:1] + first @ maps[0], added[1:]])
    while reach < (n / 2 if short else n) and rounds:
        past_added = F.pad(added, (0, 0, reach, 0))[:n]
        filled = 1.0 if entrywise else 0.0
        past_maps = F.pad(maps, (0, 0, 0, 0, reach, 0), value=filled)[:n]
        joined = past_maps @ maps if past_first else maps @ past_maps
        joined = past_maps * maps if entrywise else joined
        through = {"own": maps, "past": past_maps, "joined": joined}[carry]
        added = added + (past_added[:, None] @ through)[:, 0]
        maps = joined
        reach = 2 * reach if doubled else reach + 1
        rounds -= 1
    return added


def scanned_with(**change: Any) -> Any:
    return lambda maps, added, first: scanned(maps, added, first, **change)


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
        Mistake(
            "order_of_maps",
            "two maps are joined in the wrong order: the token before acts first, and "
            "with rows the map that acts first stands on the left",
            scanned_with(past_first=False),
        ),
        Mistake(
            "joined_maps_for_added",
            "what the past added goes through the *joined* map: it has its own map in "
            "it already, and meets only the later one; join `added` first",
            scanned_with(carry="joined"),
        ),
        Mistake(
            "past_maps_for_added",
            "what the past added goes through the past's own map: it has been through "
            "that already, and meets the *later* one",
            scanned_with(carry="past"),
        ),
        Mistake(
            "one_round_short",
            "the last round is missing: the rounds end before the reach covers the "
            "whole text, so that late tokens miss the earliest",
            scanned_with(short=True),
        ),
        Mistake(
            "entrywise",
            "two maps are joined entry by entry, as decays were: one map after the "
            "other is a product of matrices",
            scanned_with(entrywise=True),
        ),
        Mistake(
            "cumulated",
            "`cumprod` multiplies entry by entry, and a `cumsum` lets nothing pass "
            "through the later maps: join two steps on paper first",
            lambda maps, added, first: first @ maps.cumprod(0) + added.cumsum(0),
        ),
        Mistake(
            "not_doubled",
            "each round reaches one token further back, but what is joined covers "
            "twice as many already: steps are counted more than once",
            scanned_with(doubled=False),
        ),
        Mistake(
            "one_round",
            "one round is done: each token then has what it and the token before it "
            "brought, and nothing older",
            scanned_with(rounds=1),
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


RIGHT = [halves, one_matrix]
WRONG = [
    ("loop", looped),
    ("starts_at_zero", lambda a, b, h: one_matrix(a, b, 0 * h)),
    ("columns", lambda a, b, h: one_matrix(a.transpose(1, 2), b, h)),
    ("first_added_to_all", lambda a, b, h: looped(a, b, torch.zeros_like(h)) + h),
    ("diagonals_alone", lambda a, b, h: one_matrix(a * torch.eye(a.shape[-1]), b, h)),
]
PARTIAL = [(3, looped)]
