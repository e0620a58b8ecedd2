"""`states_of`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question
from course_utils.models.recurrences import linear_scan


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


def with_zero(args: Args) -> Args:
    decay, added, first = args
    return decay, added, np.zeros_like(first)


QUESTION = Question(
    id="15.5",
    title="A linear recurrence that goes on",
    answer="states_of",
    arguments=("decay", "added", "first"),
    outputs=(Output("states", "token d"),),
    reference=states_of,
    difficulty="easy",
    minutes=6,
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


# ----------------------------------------------------------------------- specimens


def recurred(decay, added, first, step=lambda a, b, h: a * h + b):
    out = torch.empty_like(added)
    for t in range(len(added)):
        out[t] = step(decay[t], added[t], out[t - 1] if t else first)
    return out


RIGHT = [recurred, lambda a, b, h: linear_scan(a[None], b[None])[0] + a.cumprod(0) * h]
WRONG = [
    ("starts_at_zero", lambda a, b, h: recurred(a, b, 0 * h)),
    ("starts_at_zero", lambda a, b, h: linear_scan(a[None], b[None])[0]),
    ("added_before_decay", lambda a, b, h: recurred(a, a * b, h)),
    ("keep_and_renew_swapped", lambda a, b, h: recurred(1 - a, b, h)),
    ("averaged", lambda a, b, h: recurred(a, b - a * b, h)),
    ("no_decay", lambda a, b, h: h + b.cumsum(0)),
    ("first_does_not_decay", lambda a, b, h: recurred(a, b, 0 * h) + h),
    (
        "each_from_first",
        lambda a, b, h: torch.stack([torch.addcmul(y, x, h) for x, y in zip(a, b)]),
    ),
    (
        "first_misses_a_decay",
        lambda a, b, h: recurred(a, b, 0 * h) + h * a.cumprod(0) / a[0],
    ),
    (
        "decays_one_late",
        lambda a, b, h: recurred(a.roll(1, 0).index_fill(0, torch.tensor(0), 1), b, h),
    ),
]
