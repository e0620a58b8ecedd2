"""The pictures of chapter 08 are drawn from a forward pass and from real rotations."""

from __future__ import annotations

import math
import re

import pytest
import torch

from course_utils.display.drawing import SMALLEST
from course_utils.display.position_diagrams import (
    COLUMNS,
    RADIUS,
    clock_hands,
    where_positions_enter,
)
from course_utils.models.attention import MultiHeadAttention
from course_utils.models.positions import alibi, rotary, rotate, rotations, sinusoidal
from tests.display.test_diagrams import elements, shapes, texts

X = torch.randn(2, 5, 8)
QUERY, KEY = torch.tensor([1.0, 0.2, 0.6, 0.6]), torch.tensor([0.5, 0.8, 0.9, -0.2])
PAIRS, BASE = [(2, 0), (5, 3), (5, 0)], 25.0


def where():
    layer = MultiHeadAttention(8, n_heads=2)
    return layer, where_positions_enter(layer, X, sinusoidal(5, 8), alibi(2, 5))


def hands(drawing):
    """The tips of all arrows that begin at the middle of a clock, by colour."""
    found: dict[str, list[tuple[float, ...]]] = {"orange": [], "blue": []}
    heads = [e for e in elements(drawing) if e.tag == "path" and "Z" in e.attrib["d"]]
    for e in heads:
        tip = tuple(float(part) for part in re.findall(r"-?[\d.]+", e.attrib["d"])[:2])
        found["orange" if "orange" in e.attrib["fill"] else "blue"].append(tip)
    return found


def test_the_weights_are_those_of_a_forward_pass_told_everything():
    layer, diagram = where()
    turns = rotations(torch.arange(5), 4)
    options = {"causal": True, "need_weights": True, "bias": alibi(2, 5)}
    tokens = X + sinusoidal(5, 8)
    _, weights = layer(tokens, rotate=lambda part: rotate(part, turns), **options)
    drawn = [
        float(e.attrib["fill-opacity"])
        for e in elements(diagram.wide)
        if e.tag == "rect" and e.get("width") == e.get("height") == "8"
    ]
    torch.testing.assert_close(
        torch.tensor(drawn), weights[0, 0].flatten(), atol=0.006, rtol=0
    )


def test_shapes_are_measured_and_every_way_in_is_named():
    _, diagram = where()
    assert shapes(diagram.wide) == {"n × dmodel": 1, "n × dhead": 4, "n × n": 2}
    said = texts(diagram.wide)
    for words in ("sinusoidal, learned", "RoPE", "relative bias, ALiBi", "causal mask"):
        assert words in said
    assert [text for text in said if text in "1234"] == ["1", "2", "3", "4"]


def test_hands_point_where_the_rotation_leaves_them():
    drawing = clock_hands(QUERY, KEY, PAIRS, BASE).wide
    longest = max(v.view(2, 2).norm(dim=-1).max().item() for v in (QUERY, KEY))
    for role, vector, which in (("orange", QUERY, 0), ("blue", KEY, 1)):
        drawn = iter(hands(drawing)[role])
        for x, pair in zip(COLUMNS, PAIRS):
            at = torch.tensor([pair[which]])
            turned = rotate(vector[None], rotations(at, 4, BASE))[0].view(2, 2)
            for i, (across, up) in enumerate((turned * RADIUS / longest).tolist()):
                expected = (x + across, 98 + 122 * i - up)
                assert next(drawn) == pytest.approx(expected, abs=0.02)


def test_scores_are_measured_and_depend_on_the_distance_alone():
    said = texts(clock_hands(QUERY, KEY, PAIRS, BASE).wide)
    scores = [text for text in said if "q · k" in text]
    assert scores[0] == scores[1] != scores[2]
    turned = rotate(QUERY[None], rotations(torch.tensor([2]), 4, BASE))[0]
    assert scores[0] == f"q · k = {(turned @ KEY).item():.2f}"
    assert [text for text in said if "distance" in text] == [
        "distance 2",
        "distance 2",
        "distance 5",
    ]


def test_a_base_is_the_factor_between_the_waves():
    """At the default base the picture's rotation is the package's `rotary`."""
    x, at = torch.randn(3, 4), torch.tensor([0, 4, 9])
    assert torch.equal(rotate(x, rotations(at, 4, 10000.0)), rotary(x, at))
    angle = rotations(torch.tensor([1]), 4, BASE).angle()[0]
    assert angle.tolist() == pytest.approx([1.0, 1 / math.sqrt(BASE)])


def test_both_fit_a_phone_and_can_be_read_there():
    for drawing in (where()[1].wide, clock_hands(QUERY, KEY, PAIRS, BASE).wide):
        assert drawing.width <= 360
        for e in elements(drawing):
            if e.tag == "text":
                assert float(e.attrib["font-size"]) >= SMALLEST
            if e.tag == "rect":
                left = float(e.attrib["x"])
                assert left >= 0
                assert left + float(e.attrib["width"]) <= drawing.width


def test_what_would_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"d_model is 12.*room for 8"):
        where_positions_enter(
            MultiHeadAttention(12, 3),
            torch.randn(2, 5, 12),
            sinusoidal(5, 12),
            alibi(3, 5),
        )
    with pytest.raises(ValueError, match="four features and three pairs"):
        clock_hands(QUERY[:2], KEY[:2], PAIRS, BASE)
