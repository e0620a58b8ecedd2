"""The switches of the heads: the card they start on is one where they matter."""

from __future__ import annotations

import re

import numpy as np
import pytest

from course_utils.display.widgets.head_selector import head_selector, telling_card

N_CARDS = 6
CARDS = [("blue", "A")] * N_CARDS
RIGHT = np.full((N_CARDS, 2), 3)
RIGHT[0, 0] = -1


def a_layer(strength):
    """Two heads, a question each; `strength` (card, question) of the right answer."""
    scores = np.zeros((2, N_CARDS, 2, 8))
    for question in range(2):
        scores[question, :, question, 3] = np.asarray(strength)[:, question]
    constant = np.zeros((2, 8))
    constant[:, 0] = 1.0  # what is named when the head is off
    weights = np.full((2, N_CARDS, N_CARDS), 1 / N_CARDS)
    return {"weights": weights, "scores": scores, "constant": constant}


def start_of(made):
    """The number of the card the slider starts on."""
    control = re.search(r'data-control="card".*?<output>(\d+)</output>', made.html)
    return int(control[1])


@pytest.mark.parametrize("needy", range(1, N_CARDS))
def test_it_starts_where_most_heads_are_needed(needy):
    strength = np.full((N_CARDS, 2), [5.0, 0.0])  # one head matters on every card
    strength[needy] = 2.0  # both, though each by less
    made = head_selector("h", {"2": a_layer(strength)}, CARDS, RIGHT)
    assert start_of(made) == needy + 1


def test_between_equal_cards_the_larger_loss_decides():
    strength = np.full((N_CARDS, 2), 2.0)
    strength[4] = 6.0
    assert telling_card(a_layer(strength), RIGHT) == 4


def test_an_answer_that_is_wrong_anyway_or_asked_of_nobody_does_not_count():
    strength = np.zeros((N_CARDS, 2))
    strength[0, 0] = 9.0  # the first card has no right answer to question 1
    strength[1] = 0.9  # named wrongly even with all heads on
    strength[3, 1] = 1.5
    assert telling_card(a_layer(strength), RIGHT) == 3


def test_the_first_layer_decides_because_it_is_shown_first():
    first, second = np.zeros((2, N_CARDS, 2))
    first[2], second[5] = 3.0, 9.0
    layers = {"one": a_layer(first), "other": a_layer(second)}
    assert start_of(head_selector("h", layers, CARDS, RIGHT)) == 3


def test_where_no_head_matters_it_still_starts_on_a_card():
    made = head_selector("h", {"2": a_layer(np.zeros((N_CARDS, 2)))}, CARDS, RIGHT)
    assert 1 <= start_of(made) <= N_CARDS
