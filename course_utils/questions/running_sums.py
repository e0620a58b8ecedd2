"""The questions of chapter 15 that sum as they go: softmax, recurrence, gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import normal, sizes

# ------------------------------------------------------------------------- 15.4 merging

Partial = tuple[Tensor, Tensor, Tensor]


def summary(scores: np.ndarray, values: np.ndarray) -> Args:
    """What is carried after some keys: largest score, sum, sum of values."""
    largest = scores.max(-1)
    powers = np.exp(scores - largest[:, None])
    return largest, powers.sum(-1), powers @ values


def draw_parts(rng: np.random.Generator, spread: float = 2.0) -> Args:
    query, first, second, d_v = sizes(rng, 4)
    parts: list[np.ndarray] = []
    for n in (first, second):
        shift = spread * normal(rng, query, 1)
        parts += summary(normal(rng, query, n) + shift, normal(rng, n, d_v))
    return tuple(part.astype(np.float32) for part in parts)


def merge(
    m1: Tensor, l1: Tensor, c1: Tensor, m2: Tensor, l2: Tensor, c2: Tensor
) -> Partial:
    m = torch.maximum(m1, m2)
    f1, f2 = torch.exp(m1 - m), torch.exp(m2 - m)
    return m, l1 * f1 + l2 * f2, c1 * f1[:, None] + c2 * f2[:, None]


def merged_by(
    factors: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
) -> Callable[..., Partial]:
    """Merge with other factors for the two parts."""

    def wrong(m1, l1, c1, m2, l2, c2) -> Partial:  # type: ignore[no-untyped-def]
        f1, f2 = factors(m1, m2)
        total = l1 * f1 + l2 * f2
        return torch.maximum(m1, m2), total, c1 * f1[:, None] + c2 * f2[:, None]

    return wrong


def values_not_rescaled(m1, l1, c1, m2, l2, c2) -> Partial:  # type: ignore[no-untyped-def]
    m, total, _ = merge(m1, l1, c1, m2, l2, c2)
    return m, total, c1 + c2


def already_divided(m1, l1, c1, m2, l2, c2) -> Partial:  # type: ignore[no-untyped-def]
    m, total, summed = merge(m1, l1, c1, m2, l2, c2)
    return m, total, summed / total[:, None]


def averages_merged(m1, l1, c1, m2, l2, c2) -> Partial:  # type: ignore[no-untyped-def]
    """The sums of values are taken for averages, each weighted by its total."""
    m, total, summed = merge(m1, l1, l1[:, None] * c1, m2, l2, l2[:, None] * c2)
    return m, total, summed / total[:, None]


MERGE = Question(
    id="15.4",
    title="Merge two halves of a softmax",
    answer="merge",
    arguments=("m1", "l1", "c1", "m2", "l2", "c2"),
    outputs=(Output("m", "query"), Output("l", "query"), Output("c", "query d_v")),
    reference=merge,
    next_step="take the larger m, and bring both sums to it before you add them.",
    parts=(
        Part(
            "largest and total",
            1,
            lambda rng: [draw_parts(rng), draw_parts(rng)],
            lambda v: v[:2],
        ),
        Part(
            "the sum of values",
            1,
            lambda rng: [draw_parts(rng), draw_parts(rng)],
            lambda v: v[2],
        ),
        Part(
            "large scores",
            1,
            lambda rng: [draw_parts(rng, 150.0) for _ in range(3)],
            alone="right for small scores; with large ones something overflows: no "
            "exponent may be above 0",
        ),
    ),
    mistakes=(
        Mistake(
            "not_rescaled",
            "the two sums are added as they are: each was built with its own largest "
            "score, so they are in different units",
            merged_by(lambda m1, m2: (torch.ones_like(m1), torch.ones_like(m2))),
        ),
        Mistake(
            "only_first_rescaled",
            "only the first half is rescaled: which half has the larger m is not known "
            "beforehand, so both need their factor",
            merged_by(
                lambda m1, m2: (
                    torch.exp(m1 - torch.maximum(m1, m2)),
                    torch.ones_like(m2),
                )
            ),
        ),
        Mistake(
            "wrong_direction",
            "the factors go the wrong way: the half with the *smaller* m must shrink",
            merged_by(
                lambda m1, m2: (
                    torch.exp(torch.maximum(m1, m2) - m1),
                    torch.exp(torch.maximum(m1, m2) - m2),
                )
            ),
        ),
        Mistake(
            "from_zero",
            "both halves are brought to a largest score of 0 instead of the common "
            "largest: m and the sums no longer fit, and large scores overflow",
            merged_by(lambda m1, m2: (torch.exp(m1), torch.exp(m2))),
        ),
        Mistake(
            "values_not_rescaled",
            "the totals are rescaled and the sums of values are not: both were built "
            "with the same m",
            values_not_rescaled,
        ),
        Mistake(
            "already_divided",
            "the sum of values has been divided by the total: that comes once, at the "
            "very end, or the next merge goes wrong",
            already_divided,
        ),
        Mistake(
            "averages_merged",
            "`c1` and `c2` are taken for averages: they are sums, not yet divided by "
            "`l1` and `l2`, and the merged one is a sum too",
            averages_merged,
        ),
        Mistake(
            "second_as_unit",
            "both sums are brought to `m2`, even where `m1` is the larger; `m` is the "
            "common largest, and the sums have to be built with that",
            merged_by(lambda m1, m2: (torch.exp(m1 - m2), torch.ones_like(m2))),
        ),
        Mistake(
            "first_as_unit",
            "both sums are brought to `m1`, even where `m2` is the larger; `m` is the "
            "common largest, and the sums have to be built with that",
            merged_by(lambda m1, m2: (torch.ones_like(m1), torch.exp(m2 - m1))),
        ),
        Mistake(
            "the_smaller",
            "the merged m is the smaller of the two: then some exponents are above 0",
            lambda m1, l1, c1, m2, l2, c2: (
                torch.minimum(m1, m2),
                l1 * torch.exp(m1 - torch.minimum(m1, m2))
                + l2 * torch.exp(m2 - torch.minimum(m1, m2)),
                c1 * torch.exp(m1 - torch.minimum(m1, m2))[:, None]
                + c2 * torch.exp(m2 - torch.minimum(m1, m2))[:, None],
            ),
        ),
        Mistake(
            "factors_exchanged",
            "the two factors have changed places: the half with the larger maximum "
            "keeps its sums, the other's shrink",
            lambda m1, l1, c1, m2, l2, c2: merge(m2, l1, c1, m1, l2, c2),
        ),
    ),
)


# ---------------------------------------------------------------------- 15.5 recurrence


def draw_recurrence(rng: np.random.Generator) -> Args:
    n, d = sizes(rng, 2, 4)
    decay = rng.random((n, d), dtype=np.float32) * np.float32(0.9) + np.float32(0.05)
    return decay, normal(rng, n, d), normal(rng, d)


def states_of(decay: Tensor, added: Tensor, first: Tensor) -> Tensor:
    state, states = first, []
    for a, b in zip(decay, added):
        state = a * state + b
        states.append(state)
    return torch.stack(states)


def stepwise(step: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The recurrence with another step."""

    def wrong(decay: Tensor, added: Tensor, first: Tensor) -> Tensor:
        state, states = first, []
        for a, b in zip(decay, added):
            state = step(a, b, state)
            states.append(state)
        return torch.stack(states)

    return wrong


def one_late(decay: Tensor, added: Tensor, first: Tensor) -> Tensor:
    return torch.cat([first[None], states_of(decay, added, first)[:-1]])


def not_carried(decay: Tensor, added: Tensor, first: Tensor) -> Tensor:
    """The first state is added everywhere as it is, as if it did not decay."""
    return states_of(decay, added, torch.zeros_like(first)) + first


def undecayed_at_first(decay: Tensor, added: Tensor, first: Tensor) -> Tensor:
    """The first state is put into the first token's `added`, and misses its decay."""
    return states_of(
        decay, torch.cat([added[:1] + first, added[1:]]), torch.zeros_like(first)
    )


def decays_one_late(decay: Tensor, added: Tensor, first: Tensor) -> Tensor:
    """Every step uses the decay of the token before it; the first decays nothing."""
    late = torch.cat([torch.ones_like(decay[:1]), decay[:-1]])
    return states_of(late, added, first)


def last_decay_only(decay: Tensor, added: Tensor, first: Tensor) -> Tensor:
    """The first state decays by one token's factor, not by the product of all."""
    return states_of(decay, added, torch.zeros_like(first)) + decay * first


RECURRENCE = Question(
    id="15.5",
    title="A linear recurrence that goes on",
    answer="states_of",
    arguments=("decay", "added", "first"),
    outputs=(Output("states", "token d"),),
    reference=states_of,
    next_step="write h_t = a_t h_{t-1} + b_t for every token, starting from `first`.",
    parts=(
        Part(
            "from zero",
            1,
            lambda rng: [with_zero(draw_recurrence(rng)) for _ in range(2)],
        ),
        Part("from a state", 2, lambda rng: [draw_recurrence(rng) for _ in range(2)]),
    ),
    mistakes=(
        Mistake(
            "starts_at_zero",
            "the recurrence starts from zero: what the text before left behind, "
            "`first`, is forgotten",
            lambda a, b, first: states_of(a, b, torch.zeros_like(first)),
        ),
        Mistake(
            "added_before_decay",
            "the new part is added before the decay, so that it decays in the moment "
            "it arrives; only the old state does",
            stepwise(lambda a, b, state: a * (state + b)),
        ),
        Mistake(
            "keep_and_renew_swapped",
            "1 - a is kept instead of a: a near 1 means to keep the state",
            stepwise(lambda a, b, state: (1 - a) * state + b),
        ),
        Mistake(
            "averaged",
            "the new part is multiplied by 1 - a: that belongs to the layer, which "
            "has put it into `added` already",
            stepwise(lambda a, b, state: a * state + (1 - a) * b),
        ),
        Mistake(
            "no_decay",
            "nothing decays: this is a running sum",
            stepwise(lambda a, b, state: state + b),
        ),
        Mistake(
            "one_late",
            "the states come one token late: state t has read token t",
            one_late,
        ),
        Mistake(
            "each_from_first",
            "every token starts again from `first`: token t goes on from the state "
            "that token t - 1 left",
            lambda a, b, first: a * first + b,
        ),
        Mistake(
            "first_does_not_decay",
            "`first` reaches every token undiminished; it decays at each token on its "
            "way, like everything else in the state",
            not_carried,
        ),
        Mistake(
            "first_decays_once",
            "`first` is multiplied by one decay only; on its way to token t it meets "
            "the decays of all tokens up to t",
            last_decay_only,
        ),
        Mistake(
            "first_misses_a_decay",
            "`first` is added at the first token as it is: it decays there already, by "
            "the first token's own factor",
            undecayed_at_first,
        ),
        Mistake(
            "decays_one_late",
            "the state decays by the factor of the token before: token t brings its "
            "own `decay`, which acts on what was there when it came",
            decays_one_late,
        ),
    ),
    packaged=("linear_scan", "scan_by_doubling"),
)


def with_zero(args: Args) -> Args:
    decay, added, first = args
    return decay, added, np.zeros_like(first)


# ------------------------------------------------------------------------- 15.6 shares


def draw_shares(rng: np.random.Generator, equal: bool = False) -> Args:
    processes, parameters = sizes(rng, 2, 3)
    rows = rng.integers(1, 20, processes)
    rows[0] = rows[1] + 7
    if equal:
        rows[:] = rows[0]
    return normal(rng, processes, parameters), rows.astype(np.float32)


def whole_gradient(gradients: Tensor, rows: Tensor) -> Tensor:
    return (gradients * (rows / rows.sum())[:, None]).sum(dim=0)


SHARES = Question(
    id="15.6",
    title="The mean over unequal shares",
    answer="whole_gradient",
    arguments=("gradients", "rows"),
    outputs=(Output("gradient", "parameter"),),
    reference=whole_gradient,
    next_step="undo each process's mean, add up, and take the mean over all rows.",
    parts=(
        Part("equal shares", 1, lambda rng: [draw_shares(rng, True) for _ in range(2)]),
        Part(
            "unequal shares",
            2,
            lambda rng: [draw_shares(rng) for _ in range(3)],
            alone="right for equal shares only: how much say should a process with "
            "twice the rows have?",
        ),
    ),
    mistakes=(
        Mistake(
            "mean_of_means",
            "this is the mean of the means: a row in a small share then counts for "
            "more than a row in a large one",
            lambda gradients, rows: gradients.mean(dim=0),
        ),
        Mistake(
            "sum",
            "the gradients are added and not averaged: the step grows with the number "
            "of processes",
            lambda gradients, rows: gradients.sum(dim=0),
        ),
        Mistake(
            "not_divided",
            "each process counts by its rows, but nothing is divided by the number of "
            "all rows: this is the gradient of a sum, not of a mean",
            lambda gradients, rows: (gradients * rows[:, None]).sum(dim=0),
        ),
        Mistake(
            "divided_by_processes",
            "each process counts by its rows, but the sum is divided by the number of "
            "processes instead of the number of rows",
            lambda gradients, rows: (gradients * rows[:, None]).mean(dim=0),
        ),
        Mistake(
            "taken_for_sums",
            "the gradients are added and divided by all rows, as if each were a sum "
            "over its rows; each is a *mean* already",
            lambda gradients, rows: gradients.sum(dim=0) / rows.sum(),
        ),
        Mistake(
            "inverse",
            "a process counts the less, the more rows it has: its gradient has been "
            "divided by its rows already",
            lambda gradients, rows: (
                (gradients / rows[:, None]).sum(dim=0) / (1 / rows).sum()
            ),
        ),
        Mistake(
            "divided_by_own_rows",
            "each gradient is divided by its own rows: it is a mean over them already, "
            "and that division makes large shares count for less",
            lambda gradients, rows: (gradients / rows[:, None]).sum(dim=0),
        ),
        Mistake(
            "largest_share",
            "only the process with the most rows is listened to",
            lambda gradients, rows: gradients[rows.argmax()],
        ),
        Mistake(
            "softmax",
            "the shares go through a softmax: shares are counts already, and must be "
            "proportional to the rows, not exponential",
            lambda gradients, rows: torch.softmax(rows, 0) @ gradients,
        ),
    ),
)

QUESTIONS = (MERGE, RECURRENCE, SHARES)
