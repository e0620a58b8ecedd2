"""`two_sentences`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

TABLE = {
    "the": (0.0, 1.0),
    "a": (1.0, 0.0),
    "cat": (1.0, 2.0),
    "dog": (3.0, 0.0),
    "sees": (2.0, 2.0),
    "hears": (-1.0, 4.0),
}


def vector_of(sentence: Any) -> tuple[Fraction, ...]:
    """The encoder's state after the last word, without rounding."""
    state: tuple[Fraction, ...] = (Fraction(0), Fraction(0))
    for word in sentence:
        state = tuple(old / 2 + int(new) for old, new in zip(state, TABLE[word]))
    return state


def are_sentences(args: Args, value: Any) -> bool:
    """Both results are lists of words of the table, at least one each."""
    return all(s and all(word in TABLE for word in s) for s in value)


def collide(args: Args, value: Any) -> bool:
    one, two = value
    fits = are_sentences(args, value) and len(one) == len(two) and one != two
    return fits and vector_of(one) == vector_of(two)


def difference(value: Any) -> Fraction:
    """The larger of the two differences between the vectors."""
    return max(abs(a - b) for a, b in zip(*map(vector_of, value)))


def plain_sum(sentence: Any) -> list[float]:
    """What the words' numbers add up to when nothing is halved."""
    return [sum(TABLE[word][i] for word in sentence) for i in (0, 1)]


def two_sentences() -> tuple[list[str], list[str]]:
    return ["dog", "the"], ["cat", "a"]


QUESTION = Question(
    id="02.6",
    title="Two sentences, one vector",
    answer="two_sentences",
    arguments=(),
    outputs=(Output("one"), Output("other")),
    reference=two_sentences,
    difficulty="medium",
    minutes=10,
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
            "equal_when_rounded",
            "these agree only as far as float32 can tell: what was read long ago is "
            "halved until it drowns in rounding; short sentences agree exactly",
            lambda: (["the", *["a"] * 40], ["dog", *["a"] * 40]),
            lambda args, value: (
                not collide(args, value) and difference(value) < Fraction(1, 10**6)
            ),
        ),
        Mistake(
            "read_backwards",
            "read backwards these would have one vector: it is what was read *before* "
            "that is halved, so the last word counts in full",
            lambda: (["the", "dog"], ["a", "cat"]),
            lambda args, value: collide(args, [list(x)[::-1] for x in value]),
        ),
        Mistake(
            "halving_forgotten",
            "the numbers of the words add up to the same, but this encoder halves what "
            "came before: a word counts for less, the earlier it comes",
            lambda: (["hears", "dog"], ["cat", "cat"]),
            lambda args, value: plain_sum(value[0]) == plain_sum(value[1]),
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


# ----------------------------------------------------------------------- specimens

RIGHT = [
    lambda: (["dog", "the", "sees"], ["cat", "a", "sees"]),
    lambda: (("a", "sees"), ("dog", "cat")),
]
WRONG = [
    ("unknown_word", lambda: (["a", "mouse"], ["the", "dog"])),
    ("unknown_word", lambda: ([], ["the", "dog"])),
    ("same_sentence", lambda: (["the", "dog"], ["the", "dog"])),
    ("lengths_differ", lambda: (["sees", "the", "the"], ["cat", "the"])),
    ("other_order", lambda: (["dog", "sees", "cat"], ["cat", "sees", "dog"])),
    ("vectors_differ", lambda: (["the", "dog"], ["the", "cat"])),
    ("equal_when_rounded", lambda: (["a"] + ["the"] * 30, ["the"] * 31)),
    ("read_backwards", lambda: (["the", "dog", "sees"][:2], ("a", "cat"))),
    ("halving_forgotten", lambda: (["dog", "hears"], ["cat", "cat"])),
]
NOT_IN_HINTS = {'"dog", "the"'}
