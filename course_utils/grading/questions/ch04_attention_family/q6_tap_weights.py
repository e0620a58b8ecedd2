"""`tap_weights`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def tap_weights(n_tokens: int, window: int) -> Tensor:
    place, taps = torch.arange(n_tokens), torch.arange(window) - window // 2
    return (place == place[:, None] + taps[:, None, None]).float()


def draw_window(rng: np.random.Generator) -> list[Args]:
    drawn = rng.permutation(np.arange(6, 12))[:3]
    return [(int(n), window) for n, window in zip(drawn, (3, 5, 3))]


def wrapped(n_tokens: int, window: int) -> Tensor:
    place, taps = torch.arange(n_tokens), torch.arange(window) - window // 2
    return (place == (place[:, None] + taps[:, None, None]) % n_tokens).float()


def clamped(n_tokens: int, window: int) -> Tensor:
    place, taps = torch.arange(n_tokens), torch.arange(window) - window // 2
    looked = (place[:, None] + taps[:, None, None]).clamp(0, n_tokens - 1)
    return (place == looked).float()


def causal(n_tokens: int, window: int) -> Tensor:
    place, taps = torch.arange(n_tokens), torch.arange(window) - window + 1
    return (place == place[:, None] + taps[:, None, None]).float()


def from_the_first(n_tokens: int, window: int) -> Tensor:
    place, taps = torch.arange(n_tokens), torch.arange(window)
    return (place == place[:, None] + taps[:, None, None]).float()


def whole_window(n_tokens: int, window: int) -> Tensor:
    inside = tap_weights(n_tokens, window).sum(dim=0)
    return (inside / inside.sum(dim=-1, keepdim=True)).expand(window, -1, -1)


QUESTION = Question(
    id="04.6",
    title="The weights of a convolution",
    answer="tap_weights",
    arguments=("n_tokens", "window"),
    outputs=(Output("weights", "tap query key"),),
    reference=tap_weights,
    difficulty="medium",
    minutes=8,
    next_step="write down the table of one tap for five tokens by hand first.",
    parts=(
        Part(
            "inside",
            2,
            draw_window,
            view=lambda value: value[:, len(value) : -len(value)],
        ),
        Part("at the edges", 1, draw_window),
    ),
    mistakes=(
        Mistake(
            "flipped",
            "the taps come in the opposite order: the first one looks to the left, at "
            "earlier tokens",
            lambda n, window: tap_weights(n, window).flip(0),
        ),
        Mistake(
            "wrapped",
            "at the edges the taps look round the corner, at the other end: there is "
            "nothing to be seen there, and so no weight",
            wrapped,
        ),
        Mistake(
            "clamped",
            "at the edges the taps look at the last token again; a convolution with "
            "zero padding sees nothing there, so that row has no weight at all",
            clamped,
        ),
        Mistake(
            "ends_at_the_query",
            "the window ends at the query: it should reach equally far to both sides",
            causal,
        ),
        Mistake(
            "begins_at_the_query",
            "the window begins at the query: it should reach equally far to both sides",
            from_the_first,
        ),
        Mistake(
            "ones_over_the_window",
            "every tap has a 1 for each place in the window: a tap looks at one place "
            "only, so no row of its table sums to more than one",
            lambda n, window: (
                tap_weights(n, window).sum(dim=0).expand(window, -1, -1).clone()
            ),
        ),
        Mistake(
            "average_over_the_window",
            "every tap spreads its weight over the whole window: that is pooling; a "
            "tap looks at one place only, so that each can have its own value matrix",
            whole_window,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def taps(looks_at, order=1):
    """The tables entry by entry: which place a tap looks at, None for nowhere."""

    def answer(n_tokens, window):
        tables = torch.zeros(window, n_tokens, n_tokens)
        for tap in range(window):
            for i in range(n_tokens):
                j = looks_at(i, tap, window, n_tokens)
                if j is not None and 0 <= j < n_tokens:
                    tables[tap, i, j] = 1
        return tables.flip(0) if order < 0 else tables

    return answer


def centred(i, tap, window, n):
    return i + tap - window // 2


def conv_impulses(n_tokens, window):
    """Ask PyTorch's convolution itself, one tap at a time."""
    kernels = torch.eye(window)[:, None]  # (tap, 1, window)
    seen = F.conv1d(torch.eye(n_tokens)[:, None], kernels, padding=window // 2)
    return seen.permute(1, 2, 0)  # (key, tap, query) to (tap, query, key)


RIGHT = [taps(centred), conv_impulses]
WRONG = [
    ("flipped", taps(centred, order=-1)),
    ("wrapped", taps(lambda i, t, w, n: (i + t - w // 2) % n)),
    ("clamped", taps(lambda i, t, w, n: min(max(i + t - w // 2, 0), n - 1))),
    ("ends_at_the_query", taps(lambda i, t, w, n: i + t - w + 1)),
    ("begins_at_the_query", taps(lambda i, t, w, n: i + t)),
    (
        "ones_over_the_window",
        lambda n, w: torch.ones(n, n).tril(w // 2).triu(-(w // 2)).repeat(w, 1, 1),
    ),
]
