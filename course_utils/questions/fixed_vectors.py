"""More questions of chapter 02: gradients through time, quality by length, one vector.

Their answers are the gradients of a small network, the scores of some translations,
and two sentences that an encoder can't tell apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import normal

# ---------------------------------------------------------- 02.4 gradients through time


def gradient_through_time(weight: float, states: Tensor) -> Tensor:
    gradient = torch.ones(())
    found = [gradient]
    for state in reversed(states[1:]):
        gradient = gradient * weight * (1 - state**2)
        found.append(gradient)
    return torch.stack(found[::-1])


def by_factors(factors: Tensor) -> Tensor:
    """Multiply the factors of steps 2 … T from the back; the last entry is 1."""
    ones = torch.ones(1)
    return torch.cat([factors.flip(0).cumprod(0).flip(0), ones])


def draw_chain(rng: np.random.Generator, size: float) -> list[Args]:
    cases = []
    for sign in (1, -1):
        token = int(rng.integers(4, 9))
        states = np.tanh(0.6 * normal(rng, token))
        weight = sign * (size + 0.1 * float(rng.random()))
        cases.append((weight, states.astype(np.float32)))
    return cases


THROUGH_TIME = Question(
    id="02.4",
    title="The gradient through time",
    answer="gradient_through_time",
    arguments=("weight", "states"),
    outputs=(Output("gradients", "token"),),
    reference=gradient_through_time,
    next_step="how does h_t move with h_(t−1)? Then multiply such factors, last first.",
    parts=(
        Part("a gradient that vanishes", 2, lambda rng: draw_chain(rng, 0.6)),
        Part("a gradient that may grow", 1, lambda rng: draw_chain(rng, 1.6)),
    ),
    mistakes=(
        Mistake(
            "tanh_forgotten",
            "these are powers of the weight alone: every step also passes through "
            "tanh, which has a slope of its own",
            lambda w, h: by_factors(torch.full((len(h) - 1,), w)),
        ),
        Mistake(
            "slope_not_squared",
            "the slope of tanh is taken as 1 − h; differentiate tanh once more, the "
            "result contains h another way",
            lambda w, h: by_factors(w * (1 - h[1:])),
        ),
        Mistake(
            "tanh_of_the_state",
            "the slope is computed from tanh(h): the states have been through tanh "
            "already, so that h itself is the tanh",
            lambda w, h: by_factors(w * (1 - torch.tanh(h[1:]) ** 2)),
        ),
        Mistake(
            "weight_forgotten",
            "only the slopes of tanh are multiplied: the state is also multiplied by "
            "the weight in every step",
            lambda w, h: by_factors(1 - h[1:] ** 2),
        ),
        Mistake(
            "slope_at_the_start",
            "each factor uses the state before the step; tanh has made the state after "
            "it, and its slope is read off there",
            lambda w, h: by_factors(w * (1 - h[:-1] ** 2)),
        ),
        Mistake(
            "one_factor_too_many",
            "one factor too many everywhere: the last state moves with itself one to "
            "one, without any step between",
            lambda w, h: by_factors(w * (1 - h**2))[:-1],
        ),
        Mistake(
            "forwards",
            "the products run from the first step on: these are the gradients of each "
            "state with respect to the first, not of the last with respect to each",
            lambda w, h: torch.cat(
                [torch.ones(1), (w * (1 - h[1:] ** 2)).cumprod(dim=0)]
            ),
        ),
        Mistake(
            "one_step_only",
            "each entry holds one step's factor: between an early state and the last "
            "lie all the steps, and the chain rule multiplies them",
            lambda w, h: torch.cat([w * (1 - h[1:] ** 2), torch.ones(1)]),
        ),
        Mistake(
            "last_first",
            "the gradients come in the reverse order: entry t belongs to state t, so "
            "that the one of the last state stands last",
            lambda w, h: gradient_through_time(w, h).flip(0),
        ),
    ),
)

# --------------------------------------------------------------- 02.5 quality by length


def exact_by_length(
    hypotheses: list, references: list, lengths: list, buckets: list
) -> list[float]:
    return shares([h == r for h, r in zip(hypotheses, references)], lengths, buckets)


def shares(right: list, lengths: list, buckets: list, last: int = 1) -> list[float]:
    """Average what is right in each bucket that has a sentence."""
    found = []
    for low, high in buckets:
        rows = [r for r, n in zip(right, lengths) if low <= n < high + last]
        if rows:
            found.append(sum(rows) / len(rows))
    return found


WORDS = ("le", "chat", "noir", "dort", "ne", "pas", "la", "reine", "chante", ".")


def draw_translations(rng: np.random.Generator, with_gap: bool) -> list[Args]:
    """Draw references, and hypotheses that fail in each of the ways there are.

    The middle bucket, where there is a gap, has no sentence.
    """
    buckets = [[4, 6], [7, 9], [10, 13]]
    lengths = [4, 5, 6, 6, 6, 10, 11, 12, 13, 13, 13]
    lengths += [] if with_gap else [7, 8, 8, 9, 9, 9]
    lengths = [int(n) for n in rng.permutation(lengths)]
    references, hypotheses = [], []
    for i, _ in enumerate(lengths):
        count = int(rng.integers(4, 14))
        reference = [str(rng.choice(WORDS)) for _ in range(count)]
        reference[:2] = ["le", "chat"]
        said = list(reference)
        way = i % 5
        if way == 1:
            said = said[:-1]
        elif way == 2:
            said[0], said[1] = said[1], said[0]
        elif way == 3:
            said[int(rng.integers(2, count))] = "roi"
        references.append(reference)
        hypotheses.append(said)
    return [(hypotheses, references, lengths, buckets)]


def token_shares(hypotheses: list, references: list, lengths: list, b: list) -> list:
    same = [
        sum(x == y for x, y in zip(h, r)) / len(r)
        for h, r in zip(hypotheses, references)
    ]
    return shares(same, lengths, b)


def with_empty(hypotheses: list, references: list, lengths: list, b: list) -> list:
    right = [h == r for h, r in zip(hypotheses, references)]
    return [
        sum(r for r, n in zip(right, lengths) if low <= n <= high)
        / max(1, sum(low <= n <= high for n in lengths))
        for low, high in b
    ]


def of_all(hypotheses: list, references: list, lengths: list, b: list) -> list:
    found = []
    for low, high in b:
        rows = [i for i, n in enumerate(lengths) if low <= n <= high]
        if rows:
            right = sum(hypotheses[i] == references[i] for i in rows)
            found.append(right / len(lengths))
    return found


def counts(hypotheses: list, references: list, lengths: list, b: list) -> list:
    found = of_all(hypotheses, references, lengths, b)
    return [share * len(lengths) for share in found]


BY_LENGTH = Question(
    id="02.5",
    title="Exact match by length",
    answer="exact_by_length",
    arguments=("hypotheses", "references", "lengths", "buckets"),
    outputs=(Output("shares"),),
    reference=exact_by_length,
    next_step="for each bucket: which sentences belong to it, and how many are equal?",
    parts=(
        Part("full buckets", 2, lambda rng: draw_translations(rng, False)),
        Part(
            "a bucket without a sentence",
            1,
            lambda rng: draw_translations(rng, True),
            alone="right while every bucket has a sentence; one without any has no "
            "share, and is left out",
        ),
    ),
    mistakes=(
        Mistake(
            "end_excluded",
            "the upper end of a bucket is left out: both ends belong to it",
            lambda h, r, n, b: shares([x == y for x, y in zip(h, r)], n, b, last=0),
        ),
        Mistake(
            "tokens_counted",
            "this is the share of right tokens; here a sentence is right to the last "
            "token or not at all",
            token_shares,
        ),
        Mistake(
            "beginning_only",
            "a translation that stops too early counts as right: comparing word by "
            "word with zip never looks at what is missing",
            lambda h, r, n, b: shares(
                [all(u == v for u, v in zip(x, y)) for x, y in zip(h, r)], n, b
            ),
        ),
        Mistake(
            "order_ignored",
            "the right words in the wrong order count as right: compare the sentences "
            "as they stand",
            lambda h, r, n, b: shares(
                [sorted(x) == sorted(y) for x, y in zip(h, r)], n, b
            ),
        ),
        Mistake(
            "sets_compared",
            "the words are compared as sets, so that neither order nor repetition "
            "counts: compare the sentences as they stand",
            lambda h, r, n, b: shares([set(x) == set(y) for x, y in zip(h, r)], n, b),
        ),
        Mistake(
            "counts",
            "these are numbers of right sentences: divide each by the number of "
            "sentences in its bucket",
            counts,
        ),
        Mistake(
            "length_of_the_target",
            "the sentences are sorted into buckets by the length of the reference; "
            "`lengths` holds the lengths to go by",
            lambda h, r, n, b: shares(
                [x == y for x, y in zip(h, r)], [len(y) for y in r], b
            ),
        ),
        Mistake(
            "divided_by_all",
            "each bucket's right sentences are divided by the number of all sentences; "
            "a share is of the bucket's own",
            of_all,
        ),
        Mistake(
            "percent",
            "these are percentages: a share runs from 0 to 1",
            lambda h, r, n, b: [100 * s for s in exact_by_length(h, r, n, b)],
        ),
        Mistake(
            "empty_is_zero",
            "a bucket without a sentence gets the share 0, as if all had failed: leave "
            "it out",
            with_empty,
        ),
    ),
    packaged=("by_length",),
)

# ------------------------------------------------------- 02.6 two sentences, one vector

TABLE = {
    "the": (0.0, 1.0),
    "a": (1.0, 0.0),
    "cat": (1.0, 2.0),
    "dog": (3.0, 0.0),
    "sees": (2.0, 2.0),
    "hears": (-1.0, 4.0),
}


def vector_of(sentence: Any) -> np.ndarray:
    state = np.zeros(2)
    for word in sentence:
        state = state / 2 + np.asarray(TABLE[word])
    return state


def are_sentences(args: Args, value: Any) -> bool:
    """Both results are lists of words of the table, at least one each."""
    return all(s and all(word in TABLE for word in s) for s in value)


def collide(args: Args, value: Any) -> bool:
    one, two = value
    fits = are_sentences(args, value) and len(one) == len(two) and one != two
    return fits and bool(np.allclose(vector_of(one), vector_of(two), atol=1e-6))


def two_sentences() -> tuple[list[str], list[str]]:
    return ["dog", "the"], ["cat", "a"]


COLLISION = Question(
    id="02.6",
    title="Two sentences, one vector",
    answer="two_sentences",
    arguments=(),
    outputs=(Output("one"), Output("other")),
    reference=two_sentences,
    next_step="search by program: all sentences of two words are only 36.",
    parts=(Part("two sentences", 2, lambda rng: [()], accepts=collide),),
    mistakes=(
        Mistake(
            "unknown_word",
            "a word here is not in the table, or a sentence is empty: the encoder has "
            "no vector for it",
            lambda: (["dog", "sleeps"], ["cat", "a"]),
            lambda args, value: not are_sentences(args, value),
        ),
        Mistake(
            "same_sentence",
            "both are the same sentence: of course its vector is the same; the point "
            "is that different ones share a vector",
            lambda: (["cat", "sees"], ["cat", "sees"]),
            lambda args, value: value[0] == value[1],
        ),
        Mistake(
            "lengths_differ",
            "the two sentences are not equally long; one vector for both is asked for "
            "with as many words in each",
            lambda: (["sees", "the"], ["cat"]),
            lambda args, value: len(value[0]) != len(value[1]),
        ),
        Mistake(
            "other_order",
            "the same words in another order: this encoder halves what came before, so "
            "that it does hear the order",
            lambda: (["the", "cat"], ["cat", "the"]),
            lambda args, value: sorted(value[0]) == sorted(value[1]),
        ),
        Mistake(
            "vectors_differ",
            "the encoder still tells these apart: run both through it and compare the "
            "two numbers that come out",
            lambda: (["the", "cat"], ["a", "dog"]),
            lambda args, value: not collide(args, value),
        ),
    ),
)

QUESTIONS = (THROUGH_TIME, BY_LENGTH, COLLISION)
