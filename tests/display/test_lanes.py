"""The four lanes draw what the layers connect, as their gradients show it."""

from __future__ import annotations

import torch

from course_utils.display.lanes import N, at_once, chain, doubling, four_lanes, reached
from course_utils.models.attention import MultiHeadAttention
from course_utils.models.recurrences import CausalConvolution
from tests.display.test_diagrams import drawings, elements, texts


def attend(x):
    torch.manual_seed(0)
    return MultiHeadAttention(8, 2)(x, causal=True)[0]


def attend_to_all(x):
    torch.manual_seed(0)
    return MultiHeadAttention(8, 2)(x)[0]


def test_attention_connects_every_earlier_token_and_a_window_the_last_three():
    assert at_once(attend) == {(0, j, i) for i in range(N) for j in range(i + 1)}
    window = at_once(CausalConvolution(8, kernel=3, n_layers=1))
    assert window == {(0, j, i) for i in range(N) for j in range(max(0, i - 2), i + 1)}


def test_what_is_measured_is_the_layer_that_was_given():
    assert reached(attend_to_all).all()
    assert not reached(attend).all()


def test_the_scan_joins_steps_one_two_and_four_tokens_apart():
    edges = doubling()
    assert edges == {(r, i - 2**r, i) for r in range(3) for i in range(2**r, N)}
    felt = {N - 1}  # from the last token down: after three rounds it has all
    for level in (2, 1, 0):
        felt |= {j for number, j, i in edges if number == level and i in felt}
    assert felt == set(range(N))


def test_a_chain_hands_on_one_state():
    assert chain() == {(t - 1, t - 1, t) for t in range(1, N)}


def test_a_wider_window_keeps_more():
    narrow, wide = (
        texts(four_lanes(attend, CausalConvolution(8, kernel=k, n_layers=1)).wide)
        for k in (3, 5)
    )
    assert "keeps 2 tokens: 2d" in narrow
    assert "keeps 4 tokens: 4d" in wide


def test_the_steps_are_counted_and_a_phone_can_show_them():
    diagram = four_lanes(attend, CausalConvolution(8, n_layers=1))
    for drawing in drawings(diagram):
        said = texts(drawing)
        assert said.count("1 step") == 2
        assert "8 steps, one after another" in said
        assert "3 steps, one after another" in said
        for e in elements(drawing):
            if e.tag == "circle":
                assert 0 < float(e.attrib["cx"]) < drawing.width
                assert 0 < float(e.attrib["cy"]) < drawing.height
    assert diagram.narrow.width <= 360
