"""`sentence_vector`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def sentence_vector(states: Tensor, source: Tensor) -> Tensor:
    last = (source != 0).sum(dim=1) - 1
    return states[torch.arange(len(states)), last]


def draw_states(rng: np.random.Generator, padded: bool) -> list[Args]:
    cases = []
    for _ in range(2):
        batch, token, d = sizes(rng, 3)
        source = rng.integers(1, 30, (batch, token))
        lengths = [2, token, *rng.integers(1, token, batch - 2)]  # the second is full
        for row, length in enumerate(lengths if padded else ()):
            source[row, length:] = 0
        cases.append((normal(rng, batch, token, d), source))
    return cases


def real(source: Tensor) -> Tensor:
    return (source != 0)[:, :, None]


def one_too_far(states: Tensor, source: Tensor) -> Tensor:
    place = (source != 0).sum(dim=1).clamp(max=source.shape[1] - 1)
    return states[torch.arange(len(states)), place]


QUESTION = Question(
    id="02.2",
    title="The last state that is real",
    answer="sentence_vector",
    arguments=("states", "source"),
    outputs=(Output("vector", "d_hidden"),),
    reference=sentence_vector,
    difficulty="easy",
    minutes=6,
    next_step="count the real tokens of every sentence, then pick one state of each.",
    parts=(
        Part("sentences of one length", 1, lambda rng: draw_states(rng, False)),
        Part("padded sentences", 2, lambda rng: draw_states(rng, True)),
    ),
    mistakes=(
        Mistake(
            "at_the_padding",
            "the state is taken at the end of the rectangle: a short sentence's reader "
            "has gone on over the padding by then",
            lambda states, source: states[:, -1],
        ),
        Mistake(
            "one_too_far",
            "the place is the number of tokens, one too far: places are counted from 0",
            one_too_far,
        ),
        Mistake(
            "out_of_range",
            "the place is the number of tokens, which runs out of the rectangle when a "
            "sentence fills it: places are counted from 0",
            lambda states, source: states[
                torch.arange(len(states)), (source != 0).sum(dim=1)
            ],
        ),
        Mistake(
            "one_length_for_all",
            "the first sentence's length is used for all: every sentence ends at a "
            "place of its own",
            lambda states, source: states[:, (source[0] != 0).sum() - 1],
        ),
        Mistake(
            "first_state",
            "this is the state after the first word: the reader had not yet seen "
            "anything else",
            lambda states, source: states[:, 0],
        ),
        Mistake(
            "all_states_averaged",
            "this averages the states over the whole rectangle; asked for is one of "
            "them, the one where the reader has just read the last word",
            lambda states, source: states.mean(dim=1),
        ),
        Mistake(
            "real_states_averaged",
            "this averages the states of the real words; asked for is one of them, the "
            "one where the reader has just read the last word",
            lambda states, source: (states * real(source)).sum(1) / real(source).sum(1),
        ),
        Mistake(
            "every_pair",
            "the places are used for every sentence, so that each gets the states of "
            "all; choose row and place together, one of each",
            lambda states, source: states[:, (source != 0).sum(dim=1) - 1],
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def picked(place):
    def answer(states, source):
        return torch.stack(
            [row[place(int((ids > 0).sum()))] for row, ids in zip(states, source)]
        )

    return answer


def gathered(states, source):
    last = source.ne(0).long().sum(1).sub(1)[:, None, None]
    return states.gather(1, last.expand(-1, 1, states.shape[2])).squeeze(1)


RIGHT = [gathered, picked(lambda length: length - 1)]
WRONG = [
    ("at_the_padding", lambda states, source: states.unbind(1)[-1]),
    ("at_the_padding", picked(lambda length: -1)),
    ("first_state", picked(lambda length: 0)),
    ("one_length_for_all", lambda s, x: s[:, int((x[0] != 0).sum()) - 1, :]),
    ("all_states_averaged", lambda s, x: s.sum(1) / s.shape[1]),
]
NOT_IN_HINTS = {"sum(dim"}
