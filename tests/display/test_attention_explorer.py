"""The explorer of two models: its data, and clear words for what does not fit."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from course_utils.data.grammar.sentence_pairs import corpus
from course_utils.display.widgets.attention_explorer import attention_explorer

PAIRS = corpus(2, seed=3, min_length=5, max_length=7)


def table(pair, end=0):
    return np.full((len(pair.target), len(pair.source) + end), 0.25)


TABLES = {
    "GRU": [table(p, end=1) for p in PAIRS],
    "head 1.1": [table(p) for p in PAIRS],
}


def test_every_table_is_there_with_the_links_of_its_sentence():
    html = attention_explorer("two", PAIRS, TABLES, right="head 1.1").html
    data = json.loads(re.search(r"const data=(.*);\n", html)[1])
    assert len(data["sentences"]) == 2
    for pair, shown in zip(PAIRS, data["sentences"].values()):
        assert shown["target"] == list(pair.target)
        assert {tuple(link) for link in shown["possible"]} == set(pair.possible)
        assert np.shape(shown["tables"]["GRU"])[1] == len(pair.source) + 1
        assert np.allclose(shown["tables"]["head 1.1"], 25)
    assert '"head 1.1" selected' in html


def test_a_long_sentence_is_cut_at_a_word_and_shows_it():
    (pair,) = corpus(1, seed=4, min_length=12, max_length=12)
    tables = {"GRU": [table(pair)], "head 1.1": [table(pair)]}
    html = attention_explorer("two", [pair], tables).html
    (name,) = json.loads(re.search(r"const data=(.*);\n", html)[1])["sentences"]
    assert name.endswith(" …")
    shown = name.removeprefix("1. ").removesuffix(" …").split()
    assert shown == list(pair.source[: len(shown)])


def test_the_words_for_those_who_do_not_see_it_name_every_table():
    alt = attention_explorer("two", PAIRS, TABLES).alt
    assert all(label in alt for label in TABLES)


@pytest.mark.parametrize(
    ("pairs", "tables", "message"),
    [
        ([], TABLES, "got 0 sentences"),
        (PAIRS, {"GRU": TABLES["GRU"]}, "1 tables, expected a sentence and two"),
        (PAIRS, TABLES | {"x": [1]}, "got 1 arrays for 'x', expected one for each"),
        (
            PAIRS,
            TABLES | {"x": TABLES["GRU"][::-1]},
            r"of 'x' for .* expected \(target",
        ),
    ],
)
def test_bad_input_is_answered_in_a_sentence(pairs, tables, message):
    with pytest.raises(ValueError, match=message):
        attention_explorer("two", pairs, tables)
