"""The slider of sentence lengths: which words count as kept, and clear errors."""

from __future__ import annotations

import itertools
import json
import re

import pytest

from course_utils.display.widgets.length_slider import kept_words, length_slider

SENTENCES = [
    ["he", "sings", "."],
    ["he", "sees", "me", "."],
    ["she", "sees", "me", "."],
]
FRENCH = [["il", "chante", "."], ["il", "me", "voit", "."], ["elle", "me", "voit", "."]]


def data_of(made):
    return json.loads(re.search(r"const data=(.*);\n", made.html)[1])


def longest_by_trying(one, two):
    """Try every choice of words, the longest first."""
    for size in range(min(len(one), len(two)), -1, -1):
        choices = set(itertools.combinations(two, size))
        if any(c in choices for c in itertools.combinations(one, size)):
            return size
    return 0


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("abcd", "abcd"),
        ("abcd", "xbxd"),
        ("abcab", "baabc"),
        ("aab", "abaa"),
        ("abc", ""),
        ("abc", "cba"),
    ],
)
def test_kept_words_are_as_many_as_both_share_in_order(reference, said):
    kept, right = kept_words(list(reference), list(said))
    assert len(kept) == len(right) == longest_by_trying(reference, said)
    assert [reference[i] for i in sorted(kept)] == [said[j] for j in sorted(right)]


def test_a_length_shows_some_sentences_and_averages_all():
    said = [FRENCH[0], FRENCH[1], ["il", "me", "voit", "."]]
    data = data_of(length_slider(SENTENCES, FRENCH, said, trained_to=3, per_length=1))
    assert data["lengths"] == [3, 4]
    assert [len(examples) for examples in data["examples"]] == [1, 1]
    assert data["share"] == [1, (1 + 3 / 4) / 2]
    assert data["examples"][1][0]["kept"] == [0, 1, 2, 3]


@pytest.mark.parametrize(("start", "shown"), [(1, 3), (4, 4), (13, 4)])
def test_the_slider_begins_at_the_length_nearest_to_start(start, shown):
    made = length_slider(SENTENCES, FRENCH, FRENCH, trained_to=3, start=start)
    assert f"<output>{shown}</output>" in made.html


def test_a_model_that_says_nothing_is_shown_too():
    data = data_of(length_slider(SENTENCES, FRENCH, [[], [], []], trained_to=3))
    assert data["share"] == [0, 0]


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        ((SENTENCES, FRENCH, FRENCH[:2]), {}, "3 sources, 3 references and 2 transl"),
        (([], [], []), {}, "got 0 sentences"),
        ((SENTENCES[:1], [[]], [[]]), {}, "no empty reference"),
        ((SENTENCES, FRENCH, FRENCH), {"per_length": 0}, "per_length = 0"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(arguments, more, message):
    with pytest.raises(ValueError, match=message):
        length_slider(*arguments, trained_to=3, **more)
