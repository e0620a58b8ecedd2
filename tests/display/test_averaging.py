"""Tokens in the plane are drawn from a forward pass of self-attention."""

from __future__ import annotations

import pytest
import torch

from course_utils.display.averaging import LEFT, SIDE, TOP, averaging, hull
from course_utils.display.drawing import SMALLEST
from course_utils.models.attention import basic_self_attention
from tests.display.test_diagrams import elements, texts

X = torch.tensor([[1.6, 0.3], [1.2, 1.1], [0.2, 1.5]])


@pytest.mark.parametrize("row", [0, 2])
def test_the_ring_is_the_average_of_the_forward_pass(row):
    context, weights = basic_self_attention(X)
    drawing = averaging(X, row).wide
    (ring,) = (e for e in elements(drawing) if e.tag == "circle")
    scale = SIDE / X.max()
    expected = LEFT + context[row, 0] * scale, TOP + SIDE - context[row, 1] * scale
    drawn = [float(ring.attrib[name]) for name in ("cx", "cy")]
    assert drawn == pytest.approx([float(value) for value in expected], abs=0.01)
    for j, weight in enumerate(weights[row].tolist()):
        assert f"x{j + 1} {weight:.2f}" in " ".join(" ".join(texts(drawing)).split())


def test_every_average_lies_in_the_shaded_area():
    assert sorted(hull(X)) == [0, 1, 2]
    inside = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.5, 0.5]])
    assert sorted(hull(inside)) == [0, 1, 2]


def test_it_fits_a_phone_and_can_be_read():
    drawing = averaging(X).wide
    assert drawing.width <= 340
    for e in elements(drawing):
        if e.tag == "text":
            assert float(e.attrib["font-size"]) >= SMALLEST
            assert 0 <= float(e.attrib["x"]) <= drawing.width - 60


def test_what_is_no_plane_is_refused():
    with pytest.raises(ValueError, match="3 numbers, expected 2"):
        averaging(torch.randn(4, 3))
    with pytest.raises(ValueError, match=r"n is 6.*room for 5"):
        averaging(torch.randn(6, 2))
