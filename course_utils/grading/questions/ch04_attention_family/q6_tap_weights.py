"""`tap_weights`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def tap_weights(n_tokens: int, window: int, dilation: int) -> Tensor:
    place, taps = torch.arange(n_tokens), torch.arange(window) - window // 2
    return (place == place[:, None] + dilation * taps[:, None, None]).float()


def at(looked: Tensor, n_tokens: int) -> Tensor:
    """A 1 where each tap looks: looked (tap, query)."""
    return (torch.arange(n_tokens) == looked[..., None]).float()


def places(n_tokens: int, window: int, dilation: int, start: int) -> Tensor:
    """Where each tap looks, if the first looks `start` away from the query."""
    taps = start + dilation * torch.arange(window)
    return torch.arange(n_tokens) + taps[:, None]


def centred_places(n_tokens: int, window: int, dilation: int) -> Tensor:
    return places(n_tokens, window, dilation, -dilation * (window // 2))


def whole_window(n_tokens: int, window: int, dilation: int) -> Tensor:
    inside = tap_weights(n_tokens, window, dilation).sum(dim=0)
    return (inside / inside.sum(dim=-1, keepdim=True)).expand(window, -1, -1)


def draw_window(rng: np.random.Generator) -> list[Args]:
    drawn = rng.permutation(np.arange(11, 17))[:3]
    return [(int(n), *rest) for n, rest in zip(drawn, ((3, 2), (5, 2), (3, 3)))]


def draw_edges(rng: np.random.Generator) -> list[Args]:
    """The same, and a text so short that the outer taps look beyond all of it."""
    return [*draw_window(rng), (3, 5, int(rng.integers(2, 4)))]


def draw_plain(rng: np.random.Generator) -> list[Args]:
    return [(int(n), w, 1) for n, w in zip(rng.permutation(np.arange(6, 12)), (3, 5))]


QUESTION = Question(
    id="04.6",
    title="The weights of a dilated convolution",
    answer="tap_weights",
    arguments=("n_tokens", "window", "dilation"),
    outputs=(Output("weights", "tap query key"),),
    reference=tap_weights,
    difficulty="medium",
    minutes=10,
    next_step="write down the table of one tap for seven tokens by hand first.",
    parts=(
        Part("inside", 1, draw_window, view=lambda value: value[:, 4:-4]),
        Part(
            "at the edges",
            1,
            draw_edges,
            only_failure_hint="right inside a long text, wrong at the edges or in a "
            "text shorter than a tap reaches: where nothing is there, a row is zeros",
        ),
        Part("without dilation", 1, draw_plain),
    ),
    mistakes=(
        Mistake(
            "flipped_and_wrapped",
            "two slips: the taps come in the opposite order, and at the edges they "
            "look round the corner, at the other end",
            lambda n, window, dilation: at(
                centred_places(n, window, dilation) % n, n
            ).flip(0),
        ),
        Mistake(
            "no_dilation",
            "this is the chapter's convolution, whose taps look at neighbouring "
            "places: here neighbouring taps look `dilation` places apart",
            lambda n, window, dilation: tap_weights(n, window, 1),
        ),
        Mistake(
            "off_centre",
            "the taps are `dilation` apart, but the first begins too near: the middle "
            "tap has to look at the query's own place",
            lambda n, window, dilation: at(
                places(n, window, dilation, -(window // 2)), n
            ),
        ),
        Mistake(
            "gaps_counted",
            "the taps are one place too far apart: a dilation of 1 is the plain "
            "convolution, with no gap between them",
            lambda n, window, dilation: tap_weights(n, window, dilation + 1),
        ),
        Mistake(
            "moved_as_a_whole",
            "the whole window is moved by the dilation, its taps still look at "
            "neighbouring places",
            lambda n, window, dilation: at(
                places(n, window, 1, dilation - 1 - window // 2), n
            ),
        ),
        Mistake(
            "flipped",
            "the taps come in the opposite order: the first one looks to the left, at "
            "earlier tokens",
            lambda n, window, dilation: tap_weights(n, window, dilation).flip(0),
        ),
        Mistake(
            "wrapped",
            "at the edges the taps look round the corner, at the other end: there is "
            "nothing to be seen there, and so no weight",
            lambda n, window, dilation: at(centred_places(n, window, dilation) % n, n),
        ),
        Mistake(
            "clamped",
            "at the edges the taps look at the last token again; a convolution with "
            "zero padding sees nothing there, so that row has no weight at all",
            lambda n, window, dilation: at(
                centred_places(n, window, dilation).clamp(0, n - 1), n
            ),
        ),
        Mistake(
            "ends_at_the_query",
            "the window ends at the query: it should reach equally far to both sides",
            lambda n, window, dilation: at(
                places(n, window, dilation, -dilation * (window - 1)), n
            ),
        ),
        Mistake(
            "begins_at_the_query",
            "the window begins at the query: it should reach equally far to both sides",
            lambda n, window, dilation: at(places(n, window, dilation, 0), n),
        ),
        Mistake(
            "first_token_unseen",
            "no tap ever looks at the first token: its place is 0, and that is inside "
            "the text",
            lambda n, window, dilation: (
                tap_weights(n, window, dilation) * (torch.arange(n) > 0)
            ),
        ),
        Mistake(
            "strided",
            "only every so many queries look anywhere: that is a stride; a dilation "
            "spreads the taps, and every query has its row",
            lambda n, window, dilation: (
                tap_weights(n, window, 1) * (torch.arange(n)[:, None] % dilation == 0)
            ),
        ),
        Mistake(
            "ones_over_the_window",
            "every tap has a 1 for each place in the window: a tap looks at one place "
            "only, so no row of its table sums to more than one",
            lambda n, window, dilation: (
                tap_weights(n, window, dilation).sum(0).expand(window, -1, -1).clone()
            ),
        ),
        Mistake(
            "average_over_the_window",
            "every tap spreads its weight over the whole window: that is pooling; a "
            "tap looks at one place only, so that each can have its own value matrix",
            whole_window,
        ),
        Mistake(
            "one_tap_to_the_right",
            "every tap looks where its right neighbour should: the middle one has to "
            "look at the query's own place",
            lambda n, window, dilation: at(
                places(n, window, dilation, dilation * (1 - window // 2)), n
            ),
        ),
        Mistake(
            "one_tap_to_the_left",
            "every tap looks where its left neighbour should: the middle one has to "
            "look at the query's own place",
            lambda n, window, dilation: at(
                places(n, window, dilation, -dilation * (1 + window // 2)), n
            ),
        ),
        Mistake(
            "divided_by_the_window",
            "the weight of every tap is divided by the size of the window: a tap looks "
            "at its place with weight 1, and the matrix of its values does the rest",
            lambda n, window, dilation: tap_weights(n, window, dilation) / window,
        ),
        Mistake(
            "taps_last",
            "the taps stand on the last axis: there is one table (query, key) for each "
            "tap, and the taps come first",
            lambda n, window, dilation: tap_weights(n, window, dilation).permute(
                1, 2, 0
            ),
        ),
        Mistake(
            "one_table",
            "the tables of the taps are added up to one: return them one by one",
            lambda n, window, dilation: tap_weights(n, window, dilation).sum(dim=0),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def taps(looks_at, order=1):
    """The tables entry by entry: which place a tap looks at."""

    def answer(n_tokens, window, dilation):
        tables = torch.zeros(window, n_tokens, n_tokens)
        for tap in range(window):
            for i in range(n_tokens):
                j = looks_at(i, tap - window // 2, dilation, n_tokens)
                if 0 <= j < n_tokens:
                    tables[tap, i, j] = 1
        return tables.flip(0) if order < 0 else tables

    return answer


def centred(i, tap, dilation, n):
    return i + tap * dilation


def conv_impulses(n_tokens, window, dilation):
    """Ask PyTorch's convolution itself, one tap at a time."""
    kernels = torch.eye(window)[:, None]  # (tap, 1, window)
    sentences = torch.eye(n_tokens)[:, None]
    reach = dilation * (window // 2)
    seen = F.conv1d(sentences, kernels, padding=reach, dilation=dilation)
    return seen.permute(1, 2, 0)  # (key, tap, query) to (tap, query, key)


def diagonals(n_tokens, window, dilation):
    half = window // 2
    return np.stack(
        [np.eye(n_tokens, k=dilation * tap) for tap in range(-half, half + 1)]
    )


def shifted(n_tokens, window, dilation):
    """Cut the tables out of one long identity."""
    reach = dilation * (window // 2)
    far = torch.eye(n_tokens + 2 * reach, dtype=torch.float64)[:, reach:-reach]
    return torch.stack(
        [far[tap * dilation : tap * dilation + n_tokens] for tap in range(window)]
    )


def by_diag(n_tokens, window, dilation):
    """It fails where a tap looks beyond the whole text."""
    reach = [dilation * (tap - window // 2) for tap in range(window)]
    return torch.stack([torch.diag(torch.ones(n_tokens - abs(k)), k) for k in reach])


RIGHT = [taps(centred), conv_impulses, diagonals, shifted]
WRONG = [
    (
        "flipped_and_wrapped",
        lambda n, w, d: torch.stack(
            [torch.eye(n).roll((tap - w // 2) * d, 0) for tap in range(w)]
        ),
    ),
    ("no_dilation", taps(lambda i, tap, d, n: i + tap)),
    ("no_dilation", lambda n, w, d: conv_impulses(n, w, 1)),
    ("gaps_counted", taps(lambda i, tap, d, n: i + tap * (d + 1))),
    ("flipped", taps(centred, order=-1)),
    ("flipped", taps(lambda i, tap, d, n: i - tap * d)),
    ("wrapped", taps(lambda i, tap, d, n: (i + tap * d) % n)),
    ("clamped", taps(lambda i, tap, d, n: min(max(i + tap * d, 0), n - 1))),
    ("first_token_unseen", taps(lambda i, tap, d, n: i + tap * d or n)),
    ("strided", taps(lambda i, tap, d, n: n if i % d else i + tap)),
    ("one_table", lambda n, w, d: diagonals(n, w, d).sum(0)),
]
PARTIAL = [(1, lambda n, w, d: conv_impulses(n, w, 1)), (2, by_diag)]
