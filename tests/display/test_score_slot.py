"""The operator with its slot is drawn from a forward pass with the score in it."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from course_utils.display.drawing import SMALLEST
from course_utils.display.score_slot import five_plugs, score_slot
from course_utils.models import scores
from tests.display.test_diagrams import drawings, elements, shapes, texts

QUERIES, KEYS, VALUES, _ = five_plugs()


def five() -> dict[str, object]:
    return dict(five_plugs()[-1])


def test_the_shapes_are_those_of_the_forward_pass():
    context, weights = scores.attend(QUERIES, KEYS, VALUES, scores.dot_scores)
    names = {3: "m", 5: "n", 4: "dk", 6: "dv"}
    measured = [QUERIES, KEYS, VALUES, weights, weights, context]  # scores, weights
    expected = Counter(" × ".join(names[s] for s in t.shape[1:]) for t in measured)
    for drawing in drawings(score_slot(QUERIES, KEYS, VALUES, five())):
        assert shapes(drawing) == expected


@pytest.mark.parametrize("plugged", ["dot", "additive"])
def test_the_weights_are_those_of_the_score_that_is_plugged(plugged):
    plugs = five()
    _, weights = scores.attend(QUERIES, KEYS, VALUES, plugs[plugged])
    drawing = score_slot(QUERIES, KEYS, VALUES, plugs, plugged).wide
    cells = [e for e in elements(drawing) if e.get("width") == e.get("height") == "10"]
    drawn = torch.tensor([float(e.attrib["fill-opacity"]) for e in cells])
    expected = weights[0].flatten().detach()
    torch.testing.assert_close(drawn, expected, atol=0.006, rtol=0)
    assert f"score: {plugged}" in texts(drawing)


def test_what_learns_is_counted_and_has_a_solid_frame():
    drawing = score_slot(QUERIES, KEYS, VALUES, five()).wide
    plugs = [e for e in elements(drawing) if e.get("width") == "170"]
    plugs = [e for e in plugs if e.get("height") == "40"]
    assert ["stroke-dasharray" in e.attrib for e in plugs] == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert [t for t in texts(drawing) if t.isdigit()] == ["25", "0", "0", "16", "70"]


def test_it_fits_a_page_and_a_phone_and_can_be_read():
    wide, narrow = drawings(score_slot(QUERIES, KEYS, VALUES, five()))
    assert wide.width <= 736
    assert narrow.width <= 340
    for drawing in (wide, narrow):
        for e in elements(drawing):
            if e.tag == "rect":
                assert float(e.attrib["x"]) >= 0
                right = float(e.attrib["x"]) + float(e.attrib["width"])
                assert right <= drawing.width
                bottom = float(e.attrib["y"]) + float(e.attrib["height"])
                assert bottom <= drawing.height
            if e.tag == "text":
                assert float(e.attrib["font-size"]) >= SMALLEST


def test_what_it_can_not_draw_is_refused():
    with pytest.raises(ValueError, match="no formula for cosine"):
        score_slot(QUERIES, KEYS, VALUES, {"cosine": scores.dot_scores}, "cosine")
    with pytest.raises(ValueError, match=r"n is 9.*room for 6"):
        score_slot(QUERIES, torch.randn(2, 9, 4), torch.randn(2, 9, 6), five())
