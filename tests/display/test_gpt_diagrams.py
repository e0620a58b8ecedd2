"""GPT is what is not struck out, and a strip shows what the cache holds."""

from __future__ import annotations

import pytest
import torch

from course_utils.display import gpt_diagrams
from course_utils.display.svg import colour
from course_utils.models.transformer import GPT, Transformer
from tests.display.test_diagrams import elements, texts

SOURCE = torch.tensor([[1, 2, 3, 4, 5], [1, 2, 3, 4, 0]])  # (batch 2, n 5)
TARGET = torch.ones(2, 7, dtype=torch.long)  # (batch 2, m 7)
WORDS = ["The", "cat", "sat", "on"]


def decoder_only():
    model = Transformer(11, 13, d_model=12, n_heads=3, d_hidden=48)
    return gpt_diagrams.decoder_only(model, SOURCE, TARGET).wide


def strip(n: int = 4, room: int = 9):
    model = GPT(11, room, d_model=12, n_heads=3).eval()
    tokens = torch.arange(n)[None]
    return gpt_diagrams.cache_strip(model, tokens, WORDS[:n]).wide


def inside(element, area) -> bool:
    left, top, right, bottom = area
    x, y = float(element.attrib["x"]), float(element.attrib["y"])
    return left <= x <= right and top <= y <= bottom


def test_encoder_and_cross_attention_are_struck_out_and_nothing_else():
    drawing = decoder_only()
    words = [e for e in elements(drawing) if e.tag == "text" and e.get("y")]
    areas = (gpt_diagrams.ENCODER, gpt_diagrams.CROSS)
    struck = [e for e in words if any(inside(e, area) for area in areas)]
    said = ["".join(e.itertext()) for e in struck]
    kept = ["".join(e.itertext()) for e in words if e not in struck]
    assert {"self-", "cross-", "feed-forward", "1", "3"} <= {*said}
    assert "masked" not in said
    assert {"masked", "feed-forward", "2", "embedding", "positions"} <= {*kept}
    assert not {"cross-", "1", "3"} & {*kept}
    assert sum("source" in text or "memory" in text for text in said) == 2


def test_the_strip_has_a_column_for_each_token_kept_and_one_that_is_new():
    for n in (2, 4):
        rects = [e for e in elements(strip(n)) if e.get("width") == "20"]
        fills = [e.get("fill") for e in rects]
        assert fills.count(colour("grey")) == 2 * (n - 1)  # keys and values
        assert fills.count(colour("values")) == 1
        assert fills.count(colour("queries")) == 1
        dashed = [e for e in rects if e.get("stroke-dasharray")]
        assert len(dashed) == 2 * (9 - n)


def test_the_weights_of_the_step_are_those_of_the_full_pass():
    weights = [e for e in elements(strip()) if e.get("height") == "20"]
    shares = [float(e.get("fill-opacity")) for e in weights if e.get("fill-opacity")]
    assert len(shares) == len(WORDS)
    assert sum(shares) == pytest.approx(1, abs=0.05)


def test_a_strip_writes_the_shape_of_what_is_kept():
    assert texts(strip()).count("4 × 9") == 2
    assert texts(strip(room=7)).count("4 × 7") == 2


def test_nothing_leaves_a_phone():
    for drawing in (decoder_only(), strip()):
        assert drawing.width <= 360
        for e in elements(drawing):
            if e.tag == "rect":
                assert 0 <= float(e.attrib["x"]) <= drawing.width
                assert float(e.attrib["y"]) <= drawing.height


def test_what_does_not_fit_is_refused():
    model = GPT(11, 64, d_model=12, n_heads=3)
    with pytest.raises(ValueError, match="room for 9"):
        gpt_diagrams.cache_strip(model, torch.zeros(1, 3, dtype=torch.long), WORDS[:3])
    model = GPT(11, 9, d_model=12, n_heads=3)
    with pytest.raises(ValueError, match="2 words for 3"):
        gpt_diagrams.cache_strip(model, torch.zeros(1, 3, dtype=torch.long), WORDS[:2])


def test_a_row_has_a_dot_for_each_seed_and_a_line_for_each_comparison():
    rows = {"one": [1.0, 2.0], "two": [1.5]}
    axes = gpt_diagrams.dots_by_row(rows, {"counts": 1.2}, "bits", "A title")
    *dots, line = axes.lines
    assert [list(row.get_xdata()) for row in dots] == list(rows.values())
    assert [set(row.get_ydata()) for row in dots] == [{0}, {1}]
    assert set(line.get_xdata()) == {1.2}
    assert [label.get_text() for label in axes.get_yticklabels()] == list(rows)
