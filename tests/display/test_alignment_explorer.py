"""The interactive of chapter 03: its data, and clear words for what does not fit."""

from __future__ import annotations

import json
import re

import pytest
import torch

from course_utils.data.grammar.sentence_pairs import corpus
from course_utils.display.widgets.alignment_explorer import alignment_explorer, opening

PAIRS = corpus(3, seed=1, min_length=6, max_length=9)


def uniform(pair, extra=1):
    n_source = len(pair.source) + extra
    return torch.full((len(pair.target), n_source), 1 / n_source)


def data_of(made):
    return json.loads(re.search(r"const data=(.*);\n", made.html)[1])


def test_every_sentence_comes_with_its_weights_of_every_stage_in_order():
    late, early = ([uniform(p, extra) for p in PAIRS] for extra in (1, 0))
    data = data_of(alignment_explorer("align", PAIRS, {800: late, 100: early}))
    assert data["stages"] == [100, 800]
    for pair, sentence in zip(PAIRS, data["sentences"]):
        assert sentence["source"] == list(pair.source)
        assert sentence["sure"] == sorted(map(list, pair.sure))
        both = {tuple(link) for link in sentence["sure"] + sentence["possible"]}
        assert both == set(pair.possible)
        first, last = sentence["weights"]
        assert len(first) == len(last) == len(pair.target)
        assert {len(row) for row in first} == {len(pair.source)}
        assert {len(row) for row in last} == {len(pair.source) + 1}


def test_it_begins_with_the_sentence_whose_words_look_at_their_links():
    looks = [uniform(pair) for pair in PAIRS]
    for t in range(len(PAIRS[2].target)):
        for j, at in PAIRS[2].possible:
            looks[2][t, j] += at == t
    made = alignment_explorer("align", PAIRS, {800: looks})
    chosen = re.search(r'<option value="([^"]*)" selected', made.html)[1]
    assert chosen == data_of(made)["sentences"][2]["label"]


def test_labels_are_short_and_differ_even_for_like_sentences():
    same = [PAIRS[0], PAIRS[0]]
    data = data_of(alignment_explorer("align", same, {1: [uniform(PAIRS[0])] * 2}))
    labels = [sentence["label"] for sentence in data["sentences"]]
    assert len(set(labels)) == 2
    assert max(map(len, labels)) <= 30
    assert opening(["a"]) == "a"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: alignment_explorer("a", [], {1: []}),
            "got 0 sentences and 1 training",
        ),
        (lambda: alignment_explorer("a", PAIRS, {}), "and 0 training steps"),
        (
            lambda: alignment_explorer("a", PAIRS, {5: [uniform(PAIRS[0])]}),
            "1 arrays of weights at step 5, expected one for each of the 3",
        ),
        (
            lambda: alignment_explorer("a", PAIRS[:1], {5: [uniform(PAIRS[0])[1:]]}),
            r"expected \(target, source\) = .*cut the padding",
        ),
    ],
)
def test_bad_input_is_answered_in_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
