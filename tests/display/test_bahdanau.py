"""The steps of Bahdanau's decoder are drawn from a forward pass of the model."""

from __future__ import annotations

import pytest
import torch

from course_utils.display import bahdanau
from course_utils.display.drawing import SMALLEST
from course_utils.models.rnn import Seq2SeqAttention
from tests.display.test_diagrams import drawings, elements, texts

SOURCE = torch.tensor([[4, 5, 6, 2]])
TARGET = torch.tensor([[1, 6, 5, 4, 2]])
WORDS = [*"bad", "end"]


@pytest.fixture
def model() -> Seq2SeqAttention:
    torch.manual_seed(0)
    return Seq2SeqAttention(14, 14, d_embedding=5, d_hidden=3)


def drawn(model, **options):
    words = {"source_words": WORDS, "target_words": [*"dab", "end"]}
    return bahdanau.attention_steps(model, SOURCE, target=TARGET, **(words | options))


def test_the_bars_are_the_weights_of_the_forward_pass(model):
    _, weights = model(SOURCE, TARGET[:, :-1])
    for drawing in drawings(drawn(model)):
        bars = [e for e in elements(drawing) if e.get("width") == "18"]
        heights = torch.tensor([float(bar.attrib["height"]) for bar in bars])
        expected = bahdanau.BAR * weights[0, :3].flatten().detach()
        torch.testing.assert_close(heights, expected.clamp(min=1.5), atol=0.01, rtol=0)


def test_the_shapes_are_those_of_the_forward_pass(model):
    for drawing in drawings(drawn(model)):
        written = texts(drawing)
        state = model.start(SOURCE)
        assert state.encoder_states.shape == (1, 4, 6)
        assert written.count("states n × 2dhidden") == 3
        assert written.count("2dhidden") == written.count("dhidden") == 3
        assert {f"hdec{t}" for t in range(4)} <= set(written)


def test_a_word_that_the_model_would_not_write_is_named_as_such(model):
    logits, _ = model(SOURCE, TARGET[:, :-1])
    wanted = [("d", 6), ("a", 5), ("b", 4)]
    most_likely = logits[0].argmax(dim=-1).tolist()
    expected = [
        word if token == found else f"not {word}"
        for (word, token), found in zip(wanted, most_likely)
    ]
    bold = [
        "".join(e.itertext())
        for e in elements(drawn(model).wide)
        if e.get("font-weight")
    ]
    assert bold == expected


def test_it_fits_a_page_and_a_phone_and_can_be_read(model):
    wide, narrow = drawings(drawn(model))
    assert wide.width <= 736
    assert narrow.width <= 340
    for drawing in (wide, narrow):
        for e in elements(drawing):
            if e.tag == "rect":
                right = float(e.attrib["x"]) + float(e.attrib["width"])
                assert float(e.attrib["x"]) >= 0
                assert right <= drawing.width
            if e.tag == "text":
                assert float(e.attrib["font-size"]) >= SMALLEST


def test_what_would_not_fit_is_refused(model):
    with pytest.raises(ValueError, match="3 source words for 4 tokens"):
        drawn(model, source_words=WORDS[:3])
    with pytest.raises(ValueError, match="2 target words for step 3"):
        drawn(model, target_words=["d", "a"])
    with pytest.raises(ValueError, match=r"n is 9.*room for 6"):
        bahdanau.attention_steps(
            model, torch.full((1, 9), 4), ["a"] * 9, TARGET, [*"dab"]
        )
