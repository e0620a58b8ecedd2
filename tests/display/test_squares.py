"""The square of equivariance is drawn from two forward passes; it says if it closes."""

from __future__ import annotations

import pytest
import torch

from course_utils.display.squares import commuting_square
from course_utils.models.attention import SelfAttention, causal_mask
from tests.display.test_diagrams import elements, texts

WORDS = ("dog", "bites", "man")
X = torch.randn(1, 3, 5)


class Causal(SelfAttention):
    """A layer whose outputs don't follow their tokens."""

    def forward(self, x, mask=None):
        return super().forward(x, causal_mask(x.shape[-2]))


def cells(drawing, side: str) -> list[float]:
    """The strengths of all cells of this side, in the order in which they are drawn."""
    squares = (
        e for e in elements(drawing) if e.get("width") == e.get("height") == side
    )
    return [float(e.attrib["fill-opacity"]) for e in squares]


def test_the_weights_and_outputs_are_those_of_the_two_forward_passes():
    layer, order = SelfAttention(5, d_k=4, d_v=2), [2, 0, 1]
    drawing = commuting_square(layer, X, order, WORDS).wide
    passes = [layer(X), layer(X[:, order])]
    weights = torch.cat([weights[0].flatten() for _, weights in passes])
    drawn = torch.tensor(cells(drawing, "19"))
    torch.testing.assert_close(drawn, weights, atol=0.006, rtol=0)
    shown = [X[0], passes[0][0][0], X[0, order], passes[1][0][0]]
    strengths = torch.cat([(t.abs() / t.abs().max()).flatten() for t in shown])
    drawn = torch.tensor(cells(drawing, "15"))
    torch.testing.assert_close(drawn, strengths, atol=0.006, rtol=0)


def test_a_square_that_does_not_close_says_so():
    closed = texts(commuting_square(SelfAttention(5, 4, 2), X, [2, 0, 1], WORDS).wide)
    assert "both ways round: the same numbers" in closed
    torn = texts(commuting_square(Causal(5, 4, 2), X, [2, 0, 1], WORDS).wide)
    assert any("apart" in text for text in torn)
    assert any("≠" in text for text in torn)


def test_words_stand_in_both_orders_and_nothing_leaves_a_phone():
    drawing = commuting_square(SelfAttention(5, 4, 2), X, [2, 0, 1], WORDS).wide
    words = [text for text in texts(drawing) if text in WORDS]
    assert words == [*WORDS, *WORDS, *("man", "dog", "bites") * 2]
    assert drawing.width <= 360
    for e in elements(drawing):
        if e.tag == "rect":
            assert float(e.attrib["x"]) >= 0
            assert float(e.attrib["x"]) + float(e.attrib["width"]) <= drawing.width


def test_what_would_not_fit_is_refused():
    with pytest.raises(ValueError, match="words holds 2 words for 3 tokens"):
        commuting_square(SelfAttention(5, 4, 2), X, [2, 0, 1], ("dog", "man"))
    with pytest.raises(ValueError, match=r"d_model is 9.*room for 5"):
        commuting_square(SelfAttention(9, 4, 2), torch.randn(1, 3, 9), [0, 1, 2], WORDS)
