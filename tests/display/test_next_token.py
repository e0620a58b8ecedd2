"""The interactive of chapter 13: its data, and clear words for what does not fit."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from course_utils.display.widgets.next_token import next_token, visible

PIECES = [" the", "\n", "\x00", "é", *"abcdefgh"]


def test_every_piece_has_its_score_and_can_be_seen():
    scores = np.linspace(3, -3, len(PIECES))
    html = next_token("pieces", PIECES, {"If the ": scores}).html
    data = json.loads(re.search(r"const data=(.*);\n", html)[1])
    assert data["pieces"][:4] == ["␣the", "↵", "·", "é"]
    assert list(data["scores"]) == ["If␣the␣"]
    np.testing.assert_allclose(data["scores"]["If␣the␣"], scores - 3, atol=0.01)


def test_nothing_is_invisible():
    assert visible("") == visible("\x07") == "·"
    assert visible(" a\tb\n") == "␣a⇥b↵"


@pytest.mark.parametrize(
    ("pieces", "logits", "message"),
    [
        (PIECES, {}, "no beginning, expected at least one"),
        (PIECES, {"a": np.zeros(5)}, r"shape \(5,\) for 'a' and 12 pieces"),
        (PIECES, {"a": np.zeros((1, 12))}, r"shape \(1, 12\)"),
        (PIECES[:4], {"a": np.zeros(4)}, "more than 10 pieces"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(pieces, logits, message):
    with pytest.raises(ValueError, match=message):
        next_token("pieces", pieces, logits)
