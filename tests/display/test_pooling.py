"""The weighted average is drawn from its forward pass: shapes, weights and class."""

from __future__ import annotations

import pytest
import torch

from course_utils.display.drawing import SMALLEST
from course_utils.display.pooling import CELL, weighted_average
from tests.display.test_diagrams import elements, texts

WORDS, CLASSES = ["a", "coroutine", "waits"], ["email", "asyncio"]
TOKENS = torch.tensor([4, 0, 2])


def model_of(n_words=6, d=5, n_classes=2, scores=None):
    """A model with random tables, as the chapter writes it."""
    scores = torch.randn(n_words) if scores is None else scores
    vectors, readout = torch.randn(n_words, d), torch.randn(d, n_classes)

    def model(tokens):
        weights = torch.softmax(scores[tokens], dim=-1)
        return weights @ vectors[tokens] @ readout

    return model, scores


def both(picture):
    return [picture.wide, picture.narrow]


def test_the_weights_are_those_of_the_forward_pass():
    model, scores = model_of()
    weights = torch.softmax(scores[TOKENS], dim=-1)
    for drawing in both(weighted_average(model, TOKENS, WORDS, CLASSES)):
        cells = [
            float(e.attrib["fill-opacity"])
            for e in elements(drawing)
            if e.get("width") == e.get("height") == f"{CELL:g}"
        ]
        torch.testing.assert_close(torch.tensor(cells), weights, atol=0.006, rtol=0)


@pytest.mark.parametrize("d", [4, 5])
def test_the_shapes_are_measured(d):
    model, _ = model_of(d=d)
    for drawing in both(weighted_average(model, TOKENS, WORDS, CLASSES)):
        found = texts(drawing)
        assert found.count("n × 1") == 2
        assert "n × d" in found
        assert "1 × d" in found
        grey = [e for e in elements(drawing) if e.get("width") == f"{CELL * d:g}"]
        assert {e.get("height") for e in grey} == {f"{CELL * 3:g}", f"{CELL:g}"}


def test_the_class_of_the_largest_logit_is_bold():
    model, _ = model_of()
    chosen = CLASSES[int(model(TOKENS).argmax())]
    for drawing in both(weighted_average(model, TOKENS, WORDS, CLASSES)):
        bold = [e for e in elements(drawing) if e.get("font-weight") == "600"]
        assert ["".join(e.itertext()) for e in bold] == [chosen]


def test_nothing_leaves_the_picture_and_a_phone_can_show_it():
    model, _ = model_of()
    picture = weighted_average(model, TOKENS, WORDS, CLASSES)
    assert picture.narrow.width <= 360
    for drawing in both(picture):
        for e in elements(drawing):
            if e.tag == "rect":
                x, y, wide, high = (
                    float(e.attrib[k]) for k in ("x", "y", "width", "height")
                )
                assert x >= 0
                assert x + wide <= drawing.width
                assert y >= 0
                assert y + high <= drawing.height
            elif e.tag == "text":
                assert float(e.attrib["font-size"]) >= SMALLEST
                assert 0 < float(e.attrib["y"]) < drawing.height


def test_what_would_not_fit_is_refused():
    model, _ = model_of()
    with pytest.raises(ValueError, match="words holds 1 names for 3"):
        weighted_average(model, TOKENS, ["a"], CLASSES)
    with pytest.raises(ValueError, match="classes holds 1 names for 2"):
        weighted_average(model, TOKENS, WORDS, ["email"])
    wide, _ = model_of(d=9)
    with pytest.raises(ValueError, match=r"d is 9.*room for 6"):
        weighted_average(wide, TOKENS, WORDS, CLASSES)
