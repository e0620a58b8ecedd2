"""`sentence_vector`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def sentence_vector(states: Tensor, source: Tensor) -> Tensor:
    return states[torch.arange(len(states)), last_place(source)]


def last_place(source: Tensor) -> Tensor:
    return ((source != 0) * torch.arange(source.shape[1])).argmax(dim=1)


def counted(source: Tensor) -> Tensor:
    return (source != 0).sum(dim=1)


def at(states: Tensor, place: Tensor) -> Tensor:
    return states[torch.arange(len(states)), place]


def draw_states(rng: np.random.Generator, behind: bool, before: bool) -> list[Args]:
    """Draw sentences padded at the end, at the start, at both ends, or not at all."""
    cases = []
    for _ in range(2):
        batch, token, d = sizes(rng, 3, least=5)
        source = rng.integers(1, 30, (batch, token))
        for row in range(batch - 1) if behind or before else ():  # the last is full
            start = int(rng.integers(1, 3)) if before and row != 1 else 0
            end = int(rng.integers(1, 3)) if behind and row != 2 else 0
            source[row, :start] = 0
            source[row, token - end :] = 0
        cases.append((normal(rng, batch, token, d), source))
    return cases


def real(source: Tensor) -> Tensor:
    return (source != 0)[:, :, None]


QUESTION = Question(
    id="02.2",
    title="The last state that is real",
    answer="sentence_vector",
    arguments=("states", "source"),
    outputs=(Output("vector", "d_hidden"),),
    reference=sentence_vector,
    difficulty="easy",
    minutes=8,
    next_step="at which place does each sentence end? Then pick one state of each.",
    parts=(
        Part("no padding", 1, lambda rng: draw_states(rng, False, False)),
        Part("padding at the end", 1, lambda rng: draw_states(rng, True, False)),
        Part(
            "padding at either end",
            1,
            lambda rng: draw_states(rng, True, True),
            only_failure_hint="right while the padding stands at the end, wrong when "
            "some stands in front: then the last word comes later",
        ),
    ),
    mistakes=(
        Mistake(
            "counted",
            "this is the chapter's way, to count the words and take that place: with "
            "padding in front of it a sentence ends later",
            lambda states, source: at(states, counted(source) - 1),
        ),
        Mistake(
            "at_the_padding",
            "the state is taken at the last place of the batch: a short sentence's "
            "encoder has gone on over the padding by then",
            lambda states, source: states[:, -1],
        ),
        Mistake(
            "one_too_far",
            "the place is one too far: what follows the last word is padding",
            lambda states, source: at(
                states, (last_place(source) + 1).clamp(max=source.shape[1] - 1)
            ),
        ),
        Mistake(
            "one_too_early",
            "the place is one too early: the encoder has not read the last word yet",
            lambda states, source: at(states, last_place(source) - 1),
        ),
        Mistake(
            "number_of_words",
            "the place is the number of words: places are counted from 0, and padding "
            "in front moves them",
            lambda states, source: at(
                states, counted(source).clamp(max=source.shape[1] - 1)
            ),
        ),
        Mistake(
            "out_of_range",
            "the place is the number of words, which is no place any more when a "
            "sentence fills its row: places are counted from 0",
            lambda states, source: at(states, counted(source)),
        ),
        Mistake(
            "first_word",
            "this is the state after the *first* word of a sentence: asked for is the "
            "one after the last (`argmax` finds the first of several maxima)",
            lambda states, source: at(states, (source != 0).long().argmax(dim=1)),
        ),
        Mistake(
            "before_the_first_padding",
            "the state is taken before the first padding: if that stands in front, "
            "the sentence has not begun yet",
            lambda states, source: at(states, (source == 0).long().argmax(dim=1) - 1),
        ),
        Mistake(
            "largest_id",
            "the state is taken where the id is largest: the order of the ids says "
            "nothing about places",
            lambda states, source: at(states, source.argmax(dim=1)),
        ),
        Mistake(
            "one_length_for_all",
            "the end of the first sentence is used for all: every sentence ends at a "
            "place of its own",
            lambda states, source: states[:, last_place(source)[0]],
        ),
        Mistake(
            "first_state",
            "this is the state at the first place: the encoder had not yet seen "
            "anything else",
            lambda states, source: states[:, 0],
        ),
        Mistake(
            "all_states_averaged",
            "this averages the states over all places; asked for is one of them, the "
            "one where the encoder has just read the last word",
            lambda states, source: states.mean(dim=1),
        ),
        Mistake(
            "real_states_averaged",
            "this averages the states of the real words; asked for is one of them, the "
            "one where the encoder has just read the last word",
            lambda states, source: (states * real(source)).sum(1) / real(source).sum(1),
        ),
        Mistake(
            "every_pair",
            "the places are used for every sentence, so that each gets the states of "
            "all; choose row and place together, one of each",
            lambda states, source: states[:, last_place(source)],
        ),
        Mistake(
            "place_from_the_end",
            "the place is counted from the end, how much padding stands behind the "
            "sentence, and used as if it were counted from the start",
            lambda states, source: at(
                states, (source != 0).flip(1).long().argmax(dim=1)
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def picked(place):
    """The state at a place that depends on the places of the words."""

    def answer(states, source):
        words = [ids.nonzero()[:, 0].tolist() for ids in source]
        return torch.stack([row[place(w)] for row, w in zip(states, words)])

    return answer


def gathered(states, source):
    places = torch.arange(source.shape[1]).expand_as(source)
    last = places.masked_fill(source == 0, -1).amax(1)[:, None, None]
    return states.gather(1, last.expand(-1, 1, states.shape[2])).squeeze(1)


def from_behind(states, source):
    back = (source.flip(1) != 0).long().argmax(1)
    return states.flip(1)[range(len(states)), back].double()


def in_numpy(states, source):
    ends = [np.flatnonzero(ids)[-1] for ids in source.numpy()]
    return np.stack([row[end] for row, end in zip(states.numpy(), ends)])


RIGHT = [gathered, from_behind, in_numpy, picked(lambda words: words[-1])]
WRONG = [
    ("counted", picked(lambda words: len(words) - 1)),
    ("counted", lambda s, x: s[range(len(s)), x.ne(0).long().sum(1) - 1]),
    ("at_the_padding", lambda states, source: states.unbind(1)[-1]),
    ("at_the_padding", picked(lambda words: -1)),
    ("one_too_early", picked(lambda words: words[-1] - 1)),
    ("first_state", picked(lambda words: 0)),
    ("first_word", picked(lambda words: words[0])),
    ("largest_id", lambda s, x: s[range(len(s)), x.max(1).indices]),
    ("one_length_for_all", lambda s, x: s[:, int(x[0].nonzero().max())]),
    ("all_states_averaged", lambda s, x: s.sum(1) / s.shape[1]),
]
PARTIAL = [(2, picked(lambda words: len(words) - 1))]
NOT_IN_HINTS = {"sum(dim"}
