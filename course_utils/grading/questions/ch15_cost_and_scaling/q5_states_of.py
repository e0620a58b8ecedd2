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
    """Draw three texts in a row, each of several tokens."""
    d, *lengths = sizes(rng, 4, 3)
    n = sum(lengths)
    decay = rng.random((n, d), dtype=np.float32) * np.float32(0.9) + np.float32(0.05)
    starts = np.zeros(n, dtype=bool)
    starts[np.cumsum([0, *lengths[:-1]])] = True
    return decay, normal(rng, n, d), normal(rng, d), starts


def states_of(decay: Tensor, added: Tensor, first: Tensor, starts: Tensor) -> Tensor:
    return stepwise(lambda a, b, state: a * state + b)(decay, added, first, starts)


def stepwise(step: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The recurrence with another step."""

    def answer(decay: Tensor, added: Tensor, first: Tensor, starts: Tensor) -> Tensor:
        state, states = first, []
        for a, b, new in zip(decay, added, starts):
            state = step(a, b, first if new else state)
            states.append(state)
        return torch.stack(states)

    return answer


def with_texts(first_of: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """What the state is before a text begins, by another rule."""

    def wrong(decay: Tensor, added: Tensor, first: Tensor, starts: Tensor) -> Tensor:
        state, states = first, []
        for t, (a, b) in enumerate(zip(decay, added)):
            state = a * (first_of(state, first, t) if starts[t] else state) + b
            states.append(state)
        return torch.stack(states)

    return wrong


def reset_after(decay: Tensor, added: Tensor, first: Tensor, starts: Tensor) -> Tensor:
    """The token that begins a text still reads the old state; the next starts anew."""
    late = torch.cat([starts[:1], starts[:-1]])
    return states_of(decay, added, first, late)


def late_but_once(
    decay: Tensor, added: Tensor, first: Tensor, starts: Tensor
) -> Tensor:
    """The same, but for the first text, which begins rightly."""
    late = torch.cat([starts[:1], starts[:-1]])
    late[1:2] = False
    return states_of(decay, added, first, late)


def reset_before(decay: Tensor, added: Tensor, first: Tensor, starts: Tensor) -> Tensor:
    early = torch.cat([starts[1:], starts[:1]])
    return states_of(decay, added, first, early)


def replaced(decay: Tensor, added: Tensor, first: Tensor, starts: Tensor) -> Tensor:
    """Where a text begins, the state is `first` itself: the token is not read."""
    state, states = first, []
    for a, b, new in zip(decay, added, starts):
        state = first if new else a * state + b
        states.append(state)
    return torch.stack(states)


def undecayed(decay: Tensor, added: Tensor, first: Tensor, starts: Tensor) -> Tensor:
    """Decays are zero at the start of a text, and `first` is added as it is."""
    kept = decay * ~starts[:, None]
    return states_of(kept, added + starts[:, None] * first, 0 * first, 0 * starts)


def before_the_token(
    decay: Tensor, added: Tensor, first: Tensor, starts: Tensor
) -> Tensor:
    late = one_late(decay, added, first, starts)
    return torch.where(starts[:, None], first, late)


def one_late(decay: Tensor, added: Tensor, first: Tensor, starts: Tensor) -> Tensor:
    return torch.cat([first[None], states_of(decay, added, first, starts)[:-1]])


def no_starts(decay: Tensor, added: Tensor, first: Tensor, starts: Tensor) -> Tensor:
    return states_of(decay, added, first, torch.zeros_like(starts))


def decay_before(decay: Tensor, added: Tensor, first: Tensor, starts: Tensor) -> Tensor:
    late = torch.cat([decay[:1], decay[:-1]])
    own = torch.where(starts[:, None], decay, late)
    return states_of(own, added, first, starts)


def with_zero(args: Args) -> Args:
    decay, added, first, starts = args
    return decay, added, np.zeros_like(first), starts


QUESTION = Question(
    id="15.5",
    title="A linear recurrence over packed texts",
    answer="states_of",
    arguments=("decay", "added", "first", "starts"),
    outputs=(Output("states", "token d"),),
    reference=states_of,
    difficulty="medium",
    minutes=10,
    next_step="write h_t = λ_t h_{t-1} + z_t for every token; what is h_{t-1} where a "
    "text begins?",
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
            "before_the_token",
            "the state is kept before its token is read: the first of a text is "
            "`first` itself, and the last token never counts",
            before_the_token,
        ),
        Mistake(
            "the_chapters",
            "this is the chapter's recurrence, which reads one text from zero; here a "
            "new text begins wherever `starts` is True, from the state `first`",
            lambda a, b, first, starts: no_starts(
                a, b, torch.zeros_like(first), starts
            ),
        ),
        Mistake(
            "starts_ignored",
            "`starts` is not used: a text goes on from the state that the text before "
            "it left behind",
            no_starts,
        ),
        Mistake(
            "starts_at_zero",
            "every text starts from zero: it starts from the state `first`",
            lambda a, b, first, starts: states_of(
                a, b, torch.zeros_like(first), starts
            ),
        ),
        Mistake(
            "later_texts_from_zero",
            "the first text starts from `first`, the later ones from zero: all of them "
            "start from `first`",
            with_texts(lambda state, first, t: first if t == 0 else 0 * first),
        ),
        Mistake(
            "first_added_to_the_state",
            "where a text begins, `first` is added to the state of the text before: "
            "that state is to be forgotten",
            with_texts(lambda state, first, t: first if t == 0 else state + first),
        ),
        Mistake(
            "reset_after",
            "the state is set back one token too late: the token that begins a text "
            "goes on from `first` already",
            reset_after,
        ),
        Mistake(
            "later_texts_late",
            "from the second text on the state is set back one token too late: the "
            "token that begins a text goes on from `first` already",
            late_but_once,
        ),
        Mistake(
            "reset_before",
            "the state is set back one token too early, at the last token of a text",
            reset_before,
        ),
        Mistake(
            "token_not_read",
            "where a text begins the state is `first` itself: the token there is read "
            "as well, its decay and what it adds",
            replaced,
        ),
        Mistake(
            "first_misses_a_decay",
            "`first` is added where a text begins as it is: it is the state *before* "
            "that token, and decays by the token's own factor",
            undecayed,
        ),
        Mistake(
            "added_before_decay",
            "the new part is added before the decay, so that it decays in the moment "
            "it arrives; only the old state does",
            stepwise(lambda a, b, state: a * (state + b)),
        ),
        Mistake(
            "keep_and_renew_swapped",
            "1 - λ is kept instead of λ: a decay near 1 means to keep the state",
            stepwise(lambda a, b, state: (1 - a) * state + b),
        ),
        Mistake(
            "averaged",
            "the new part is multiplied by 1 - λ: that belongs to the layer, which "
            "has put it into `added` already",
            stepwise(lambda a, b, state: a * state + (1 - a) * b),
        ),
        Mistake(
            "no_decay",
            "nothing decays: this is a running sum",
            stepwise(lambda a, b, state: state + b),
        ),
        Mistake(
            "decay_of_the_token_before",
            "inside a text the state decays by the factor of token t - 1: what token t "
            "finds decays by λ_t, its own",
            decay_before,
        ),
        Mistake(
            "decays_shifted",
            "every state decays by the factor of the token before it: what token t "
            "finds decays by λ_t, its own",
            lambda a, b, first, starts: states_of(a.roll(1, 0), b, first, starts),
        ),
        Mistake(
            "one_late",
            "the states come one token late: state t has read token t",
            one_late,
        ),
        Mistake(
            "each_from_first",
            "every token starts again from `first`: inside a text token t goes on from "
            "the state that token t - 1 left",
            lambda a, b, first, starts: a * first + b,
        ),
        Mistake(
            "inverted",
            "the state is set back everywhere but where a text begins: True in "
            "`starts` marks the first token of a text",
            lambda a, b, first, starts: states_of(a, b, first, ~starts),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def recurred(decay, added, first, starts, step=lambda a, b, h: a * h + b):
    out = torch.empty_like(added)
    for t in range(len(added)):
        out[t] = step(decay[t], added[t], first if starts[t] else out[t - 1])
    return out


def by_scan(decay, added, first, starts):
    """No decay crosses the start of a text; what `first` leaves there is added."""
    new = starts[:, None]
    kept, given = decay * ~new, added + new * decay * first
    return linear_scan(kept[None], given[None])[0]


def text_by_text(decay, added, first, starts):
    """Cut into texts; each from zero, and what is left of `first`."""
    ends = [*starts.nonzero().flatten().tolist()[1:], len(starts)]
    states, begin = [], 0
    for end in ends:
        a, b = decay[begin:end], added[begin:end]
        states.append(linear_scan(a[None], b[None])[0] + a.cumprod(0) * first)
        begin = end
    return torch.cat(states)


def by_table(decay, added, first, starts):
    """All pairs of tokens at once: how much of each is left, in double precision."""
    log, text = decay.double().log().cumsum(0), starts.cumsum(0)
    seen = (text[:, None] == text[None]).tril()[..., None]
    left = torch.where(seen, (log[:, None] - log[None]).clamp(max=0).exp(), 0.0)
    inner = torch.einsum("tsd,sd->td", left, added.double())
    own = torch.stack([log[starts][i] for i in text - 1])
    own_decay = torch.stack([decay[starts][i] for i in text - 1]).double()
    return inner + (log - own).exp() * own_decay * first


def in_numpy(decay, added, first, starts):
    a, b, h = decay.numpy(), added.numpy(), first.numpy()
    out = np.empty_like(b)
    for t, new in enumerate(starts.numpy()):
        out[t] = a[t] * (h if new else out[t - 1]) + b[t]
    return out


def set_back_behind(decay, added, first, starts):
    state, found = first, []
    for t in range(len(added)):
        state = torch.addcmul(added[t], decay[t], state)
        found.append(state)
        if t and starts[t]:
            state = first
    return torch.stack(found)


RIGHT = [recurred, by_scan, text_by_text, by_table, in_numpy]
WRONG = [
    ("later_texts_late", set_back_behind),
    ("the_chapters", lambda a, b, h, s: linear_scan(a[None], b[None])[0]),
    (
        "starts_ignored",
        lambda a, b, h, s: linear_scan(a[None], b[None])[0] + a.cumprod(0) * h,
    ),
    ("starts_at_zero", lambda a, b, h, s: text_by_text(a, b, 0 * h, s)),
    (
        "starts_at_zero",
        lambda a, b, h, s: linear_scan((a * ~s[:, None])[None], b[None])[0],
    ),
    (
        "first_misses_a_decay",
        lambda a, b, h, s: by_scan(a, b + s[:, None] * (1 - a) * h, h, s),
    ),
    ("added_before_decay", lambda a, b, h, s: recurred(a, a * b, h, s)),
    ("keep_and_renew_swapped", lambda a, b, h, s: by_scan(1 - a, b, h, s)),
    ("averaged", lambda a, b, h, s: by_scan(a, b - a * b, h, s)),
    (
        "decay_of_the_token_before",
        lambda a, b, h, s: recurred(
            a * s[:, None] + a.roll(1, 0) * ~s[:, None], b, h, s
        ),
    ),
    ("decays_shifted", lambda a, b, h, s: by_scan(a.roll(1, 0), b, h, s)),
    (
        "each_from_first",
        lambda a, b, h, s: torch.stack([torch.addcmul(y, x, h) for x, y in zip(a, b)]),
    ),
    (
        "inverted",
        lambda a, b, h, s: recurred(a, b, h, ~s | (torch.arange(len(s)) == 0)),
    ),
]
