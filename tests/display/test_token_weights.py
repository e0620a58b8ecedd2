"""The explorer of static weights holds what it is given, and refuses the rest."""

from __future__ import annotations

import pytest
import torch

from course_utils.display.widgets.token_weights import token_weights


def explorer(documents=None, weights=None):
    documents = {"a": ["one", "two"]} if documents is None else documents
    weights = {"uniform": {"a": [0.5, 0.5]}} if weights is None else weights
    return token_weights("weights", documents, weights)


def test_the_explorer_holds_its_words_and_weights():
    made = explorer(weights={"learned": {"a": torch.tensor([0.25, 0.75])}})
    assert '"learned":{"a":[0.25,0.75]}' in made.html
    assert made.html == explorer(weights={"learned": {"a": [0.25, 0.75]}}).html


@pytest.mark.parametrize(
    ("documents", "weights", "message"),
    [
        ({}, None, "0 documents and 1 rules"),
        (None, {}, "1 documents and 0 rules"),
        (None, {"idf": {}}, "rule 'idf' has no weights for document 'a'"),
        (None, {"idf": {"a": [1.0]}}, "1 weights for the 2 words of 'a'"),
        ({"a": []}, {"idf": {"a": []}}, "at least one word"),
        (None, {"idf": {"a": [0.9, 0.9]}}, "sum to 1.8, expected shares"),
        (None, {"idf": {"a": [1.5, -0.5]}}, "run from -0.5"),
    ],
)
def test_the_explorer_refuses_what_it_cannot_show(documents, weights, message):
    with pytest.raises(ValueError, match=message):
        explorer(documents, weights)
