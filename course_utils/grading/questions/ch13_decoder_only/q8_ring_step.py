"""`ring_step`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

Step = tuple[Tensor, Tensor, Tensor]


def ring_step(
    x: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    bias: Tensor,
    keys: Tensor,
    values: Tensor,
    t: int,
) -> Step:
    return made(x, w_q, w_k, w_v, bias, keys, values, t)


def made(
    x: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    bias: Tensor,
    keys: Tensor,
    values: Tensor,
    t: int,
    *,
    place: Any = lambda t, window: t % window,
    age: Any = lambda slot, t, window: (t - slot) % window,
    seen: Any = lambda age, t, window: age <= t,
    scale: Any = lambda d_k, d_model, window: math.sqrt(d_k),
    old_keys: bool = False,
) -> Step:
    """The step; the keywords are what a learner may get wrong."""
    window = keys.shape[1]
    slots = torch.arange(window)
    written = (slots == place(t, window))[:, None]
    new_keys = torch.where(written, (x @ w_k)[:, None], keys)
    new_values = torch.where(written, (x @ w_v)[:, None], values)
    asked = keys if old_keys else new_keys
    divisor = scale(w_k.shape[1], x.shape[1], window)
    scores = torch.einsum("bd,bwd->bw", x @ w_q, asked) / divisor
    ages = age(slots, t, window)
    scores = scores + bias[ages]
    hidden = ~torch.as_tensor(seen((t - slots) % window, t, window))
    weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)
    context = torch.einsum("bw,bwd->bd", weights, values if old_keys else new_values)
    return context, new_keys, new_values


def with_change(**change: Any) -> Any:
    return lambda *args: made(*args, **change)


def moved_up(
    x: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    bias: Tensor,
    keys: Tensor,
    values: Tensor,
    t: int,
) -> Step:
    context, _, _ = made(x, w_q, w_k, w_v, bias, keys, values, t)
    keys = torch.cat([keys, (x @ w_k)[:, None]], 1)[:, 1:]
    values = torch.cat([values, (x @ w_v)[:, None]], 1)[:, 1:]
    return context, keys, values


def draw_steps(*steps: Any) -> Any:
    """A cache and one more token; `steps` say which, of so many places."""

    def cases(rng: np.random.Generator) -> list[Args]:
        drawn: list[Args] = []
        for step in steps:
            batch, window, d_model, d_k, d_v = sizes(rng, 5, least=4)
            drawn.append(
                (
                    normal(rng, batch, d_model),
                    normal(rng, d_model, d_k),
                    normal(rng, d_model, d_k),
                    normal(rng, d_model, d_v),
                    normal(rng, window),
                    normal(rng, batch, window, d_k),
                    normal(rng, batch, window, d_v),
                    int(step(window, rng)),
                )
            )
        return drawn

    return cases


def round_later(window: int, rng: np.random.Generator) -> int:
    return 2 * window + int(rng.integers(1, window - 1))


def first_round(window: int, rng: np.random.Generator) -> int:
    return int(rng.integers(1, window - 2))


QUESTION = Question(
    id="13.8",
    title="A cache that never grows",
    answer="ring_step",
    arguments=("x", "w_q", "w_k", "w_v", "bias", "keys", "values", "t"),
    outputs=(
        Output("context", "batch d_v"),
        Output("keys", "batch place d_k"),
        Output("values", "batch place d_v"),
    ),
    reference=ring_step,
    difficulty="hard",
    minutes=20,
    next_step="for each place of the cache, say how many tokens ago it was written; "
    "the rest follows from that.",
    parts=(
        Part(
            "the cache",
            1,
            draw_steps(round_later, first_round),
            view=lambda value: value[1:],
        ),
        Part(
            "a full cache",
            2,
            draw_steps(round_later, round_later),
            view=lambda value: value[0],
        ),
        Part(
            "a cache that is not full",
            1,
            draw_steps(first_round, lambda window, rng: 0),
            view=lambda value: value[0],
            only_failure_hint="right once the cache is full; before that, some places "
            "hold what nobody has written",
        ),
        Part(
            "the last free place",
            1,
            draw_steps(
                lambda window, rng: window - 1,
                lambda window, rng: window,
                lambda window, rng: window - 2,
            ),
            view=lambda value: value[0],
            only_failure_hint="right in the middle, wrong where the cache has just "
            "become full, or is about to: how many places are written then?",
        ),
    ),
    mistakes=(
        Mistake(
            "one_hidden_but_at_first",
            "one written place too many is hidden, the oldest: token t itself makes t"
            " + 1",
            with_change(seen=lambda age, t, window: age < max(t, 1)),
        ),
        Mistake(
            "moved_up",
            "every key moves up by one place: then the whole cache is copied at each "
            "step; token t belongs to place t % window, the others stay where they are",
            moved_up,
        ),
        Mistake(
            "one_place_late",
            "the new token is written one place too far: token 0 belongs to place 0",
            with_change(place=lambda t, window: (t + 1) % window),
        ),
        Mistake(
            "always_the_last",
            "once the cache is full, the new token always goes to the last place, over "
            "the token before it: the oldest is the one to go",
            with_change(place=lambda t, window: min(t, window - 1)),
        ),
        Mistake(
            "rest_of_the_ring_hidden",
            "the places after the newest are hidden also when the cache is full: there "
            "they hold the older part of the window",
            with_change(seen=lambda age, t, window: age <= t % window),
        ),
        Mistake(
            "key_and_query_exchanged",
            "w_q and w_k have changed places: what is kept is the key, what asks is "
            "the query",
            lambda x, w_q, w_k, *rest: made(x, w_k, w_q, *rest),
        ),
        Mistake(
            "unwritten_seen",
            "the query sees places that nobody has written yet: with t + 1 tokens "
            "read, how many of them count?",
            with_change(seen=lambda age, t, window: age < window),
        ),
        Mistake(
            "one_hidden",
            "one written place too many is hidden: token t itself makes t + 1",
            with_change(seen=lambda age, t, window: (age < t) | (t == 0)),
        ),
        Mistake(
            "itself_unseen",
            "the query looks at the cache as it was before: the new token is not in "
            "it, and the token that fell out of the window still is",
            with_change(old_keys=True),
        ),
        Mistake(
            "bias_by_place",
            "the bias is added place by place, as it stands: bias[0] belongs to the "
            "newest token, wherever in the ring that lies",
            with_change(age=lambda slot, t, window: slot),
        ),
        Mistake(
            "bias_turned",
            "the ring is walked the wrong way: the place before the newest holds the "
            "token before it, not the oldest",
            with_change(age=lambda slot, t, window: (slot - t) % window),
        ),
        Mistake(
            "bias_from_the_oldest",
            "the bias is given from the oldest token on: bias[0] belongs to the newest",
            with_change(age=lambda slot, t, window: (slot - t - 1) % window),
        ),
        Mistake(
            "ages_off_by_one",
            "all ages are one too large: the new token itself is no token back",
            with_change(age=lambda slot, t, window: (t - slot + 1) % window),
        ),
        Mistake(
            "no_bias",
            "the bias is not used: it says how much a token counts by its age",
            lambda x, w_q, w_k, w_v, bias, *rest: made(
                x, w_q, w_k, w_v, 0 * bias, *rest
            ),
        ),
        Mistake(
            "bias_scaled",
            "the bias is divided by √d_k as well: it is added to the score after that",
            lambda x, w_q, w_k, w_v, bias, *rest: made(
                x, w_q, w_k, w_v, bias / math.sqrt(w_k.shape[1]), *rest
            ),
        ),
        Mistake(
            "not_scaled",
            "the scores are not divided by √d_k",
            with_change(scale=lambda d_k, d_model, window: 1.0),
        ),
        Mistake(
            "scaled_by_d_model",
            "the scores are divided by the root of d_model: a dot product has as many "
            "terms as a key has numbers",
            with_change(scale=lambda d_k, d_model, window: math.sqrt(d_model)),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def unrolled(x, w_q, w_k, w_v, bias, keys, values, t):
    """Take the ring apart, oldest first, attend, and leave the ring as it was."""
    window = keys.shape[1]
    keys, values = keys.clone(), values.clone()
    keys[:, t % window], values[:, t % window] = x @ w_k, x @ w_v
    order = [i % window for i in range(max(0, t - window + 1), t + 1)]
    recent = bias[: len(order)].flip(0)
    scores = keys[:, order] @ (x @ w_q)[:, :, None] / w_k.shape[1] ** 0.5
    weights = (scores[..., 0] + recent).softmax(-1)
    return (weights[:, None] @ values[:, order])[:, 0], keys, values


def row_by_row(x, w_q, w_k, w_v, bias, keys, values, t):
    window, contexts = keys.size(1), []
    keys, values = keys.double(), values.double()
    new_keys, new_values = keys.numpy().copy(), values.numpy().copy()
    for row in range(len(x)):
        new_keys[row, t % window] = (x[row] @ w_k).numpy()
        new_values[row, t % window] = (x[row] @ w_v).numpy()
        query, top, bottom = (x[row] @ w_q).double(), 0.0, 0.0
        for back in range(min(t + 1, window)):
            slot = (t - back) % window
            score = float(query @ torch.tensor(new_keys[row, slot])) / math.sqrt(
                len(query)
            )
            power = math.exp(score + float(bias[back]))
            top, bottom = top + power * new_values[row, slot], bottom + power
        contexts.append(torch.tensor(top / bottom))
    return torch.stack(contexts), torch.tensor(new_keys), torch.tensor(new_values)


def rolled(x, w_q, w_k, w_v, bias, keys, values, t, shift=1, hide=True, flip=True):
    """Roll the ring until the newest comes last, and turn the bias round."""
    window, slot = keys.shape[1], t % keys.shape[1]
    keys = keys.index_copy(1, torch.tensor([slot]), (x @ w_k)[:, None])
    values = values.index_copy(1, torch.tensor([slot]), (x @ w_v)[:, None])
    k, v = (a.roll(-slot - shift, 1) for a in (keys, values))
    scores = (k * (x @ w_q)[:, None]).sum(-1) / math.sqrt(k.shape[-1])
    scores = scores + (bias.flip(0) if flip else bias)
    if hide and t + 1 < window:
        scores[:, : window - t - 1] = -torch.inf
    return torch.einsum("bw,bwd->bd", scores.softmax(-1), v), keys, values


RIGHT = [unrolled, row_by_row, rolled]
WRONG = [
    ("unwritten_seen", partial(rolled, hide=False)),
    ("bias_from_the_oldest", partial(rolled, flip=False)),
    (
        "moved_up",
        lambda x, w_q, w_k, w_v, bias, keys, values, t: (
            unrolled(x, w_q, w_k, w_v, bias, keys, values, t)[0],
            torch.cat([keys[:, 1:], (x @ w_k).unsqueeze(1)], dim=1),
            torch.cat([values[:, 1:], (x @ w_v).unsqueeze(1)], dim=1),
        ),
    ),
    ("no_bias", lambda x, q, k, v, bias, *rest: unrolled(x, q, k, v, bias * 0, *rest)),
    (
        "scaled_by_d_model",
        lambda x, q, k, v, bias, keys, values, t: unrolled(
            x, q * (k.shape[1] / k.shape[0]) ** 0.5, k, v, bias, keys, values, t
        ),
    ),
]
