"""Recurrent networks are drawn from a forward pass, in shapes that were measured."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from course_utils.display.drawing import SMALLEST
from course_utils.display.recurrent import CELL, encoder_decoder, unrolled
from course_utils.models.rnn import Seq2Seq
from tests.display.test_diagrams import elements, texts

WORDS = ["he", "sees", "her"]


def rnn_picture(d_hidden=6, words=WORDS, d_in=4):
    return unrolled(nn.RNN(d_in, d_hidden), torch.randn(3, d_in), words)


def translator_picture(d_hidden=5, words=("he", "sees", "her", "<eos>"), **said):
    source = torch.tensor([[4, 5, 6, 2], [4, 5, 2, 0]])
    target_in = torch.tensor([[1, 4, 5], [1, 4, 2]])
    said = said.get("said", ("<bos>", "il", "la", "voit"))
    return encoder_decoder(Seq2Seq(11, 13, 3, d_hidden), source, target_in, words, said)


PICTURES = {"unrolled": rnn_picture, "encoder_decoder": translator_picture}


def columns(drawing, wide, high):
    """How many tensors of this many cells are drawn."""
    size = f"{CELL * wide:g}", f"{CELL * high:g}"
    filled = (e for e in elements(drawing) if e.get("fill-opacity") == "0.24")
    return sum((e.get("width"), e.get("height")) == size for e in filled)


@pytest.mark.parametrize("d_hidden", [5, 6])
def test_the_loop_and_its_steps_show_states_of_the_measured_width(d_hidden):
    picture = rnn_picture(d_hidden)
    for drawing in (picture.wide, picture.narrow):
        assert columns(drawing, 1, d_hidden) == 1 + len(WORDS)
        assert columns(drawing, 1, 4) == 1 + len(WORDS)
        assert "x: dinput, h: dhidden" in texts(drawing)
        assert [t for t in texts(drawing) if t in WORDS] == WORDS
        assert texts(drawing).count("U") == 1 + len(WORDS)


@pytest.mark.parametrize("d_hidden", [5, 6])
def test_one_vector_of_twice_the_width_of_a_reader_stands_between(d_hidden):
    picture = translator_picture(d_hidden)
    assert columns(picture.wide, 1, 2 * d_hidden) == 1
    assert columns(picture.narrow, 2 * d_hidden, 1) == 1
    for drawing in (picture.wide, picture.narrow):
        assert "2 dhidden" in texts(drawing)
        assert texts(drawing).count("GRU") == 2 * 4 + 3
    assert "states nsource × 2 dhidden" in texts(picture.wide)
    assert "states ntarget × dhidden" in texts(picture.wide)


@pytest.mark.parametrize("name", PICTURES)
def test_nothing_leaves_the_picture_and_a_phone_can_show_it(name):
    picture = PICTURES[name]()
    assert picture.narrow.width <= 360
    for drawing in (picture.wide, picture.narrow):
        for e in elements(drawing):
            place = {k: float(e.get(k, 0)) for k in ("x", "y", "width", "height")}
            if e.tag == "rect":
                assert place["x"] >= 0
                assert place["x"] + place["width"] <= drawing.width
                assert place["y"] >= 0
                assert place["y"] + place["height"] <= drawing.height
            elif e.tag == "text":
                assert float(e.attrib["font-size"]) >= SMALLEST
                assert 0 < place["y"] < drawing.height
                half = 0.275 * float(e.attrib["font-size"]) * len("".join(e.itertext()))
                assert 0 <= place["x"] - half < place["x"] + half <= drawing.width


def test_what_would_not_fit_is_refused():
    with pytest.raises(ValueError, match="words holds 2 words for 3"):
        rnn_picture(words=["he", "sees"])
    with pytest.raises(ValueError, match=r"d_hidden is 9.*room for 6"):
        rnn_picture(d_hidden=9)
    with pytest.raises(ValueError, match="said holds 1 words for 4"):
        translator_picture(said=("il",))
