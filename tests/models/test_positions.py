"""Positions: formulas, the properties they are chosen for, and clear errors."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.models.positions import (
    LearnedPositions,
    RelativeBias,
    alibi,
    alibi_slopes,
    distances,
    rotary,
    rotate,
    rotations,
    sinusoidal,
)


def test_sines_and_cosines_take_turns():
    table = sinusoidal(7, 6)
    assert table.shape == (7, 6)
    for t in range(7):
        for i in range(3):
            angle = t / 10000 ** (2 * i / 6)
            assert table[t, 2 * i] == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[t, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-6)


def test_a_shift_is_the_same_turn_at_every_position():
    """P(t + k) is one linear map of P(t), whatever t."""
    table, shift, shift_map = sinusoidal(30, 8), 5, torch.zeros(8, 8)
    for i in range(4):
        angle = shift / 10000 ** (2 * i / 8)
        sin, cos = math.sin(angle), math.cos(angle)
        pair = slice(2 * i, 2 * i + 2)
        shift_map[pair, pair] = torch.tensor([[cos, sin], [-sin, cos]])
    moved = table[:-shift] @ shift_map.T
    torch.testing.assert_close(moved, table[shift:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("d_model", [5, 1, 0])
def test_an_odd_width_is_refused(d_model):
    with pytest.raises(ValueError, match=f"{d_model}, expected an even number"):
        sinusoidal(4, d_model)


def test_learned_positions_are_rows_of_a_table():
    table = LearnedPositions(6, 4)
    assert torch.equal(table(3), table.table[:3])
    assert torch.equal(table(2, first=4), table.table[4:])
    table(3).sum().backward()
    assert table.table.grad.sum(1).tolist() == [4.0, 4.0, 4.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(("n_tokens", "first"), [(7, 0), (1, 6)])
def test_a_sequence_longer_than_the_table_is_refused(n_tokens, first):
    with pytest.raises(ValueError, match=r"7 tokens.*built for 6.*larger max_length"):
        LearnedPositions(6, 4)(n_tokens, first)


def test_sizes_that_make_no_table_are_refused():
    for make, name in (
        (lambda: sinusoidal(0, 4), "n_tokens is 0"),
        (lambda: LearnedPositions(0, 4), "max_length is 0"),
        (lambda: LearnedPositions(4, -1), "d_model is -1"),
        (lambda: RelativeBias(0, 4), "n_heads is 0"),
        (lambda: RelativeBias(2, 0), "max_distance is 0"),
        (lambda: alibi(0, 3), "n_heads is 0"),
        (lambda: LearnedPositions(6, 4)(2, first=-1), r"counted from 0 \(first = -1\)"),
        (lambda: LearnedPositions(6, 4)(-2), "-2 tokens, but the table"),
        (lambda: RelativeBias(2, 3)(3, 2), "3 queries and 2 keys"),
        (lambda: alibi(2, 3, 2), "3 queries and 2 keys"),
    ):
        with pytest.raises(ValueError, match=name):
            make()


def test_the_last_query_stands_at_the_last_key():
    assert distances(2, 4).tolist() == [[2, 1, 0, -1], [3, 2, 1, 0]]
    with pytest.raises(ValueError, match="3 queries and 2 keys"):
        distances(3, 2)


def test_relative_bias_depends_on_clipped_distance_alone():
    torch.manual_seed(0)
    module = RelativeBias(3, max_distance=2, scale=10.0)
    torch.nn.init.normal_(module.table)
    bias = module(5)
    assert bias.shape == (3, 5, 5)
    for i in range(5):
        for j in range(5):
            entry = max(-2, min(2, i - j)) + 2
            expected = 10.0 * module.table[:, entry]
            torch.testing.assert_close(bias[:, i, j], expected)
    torch.testing.assert_close(module(1, 5), bias[:, -1:])


def test_alibi_fades_the_past_at_each_heads_rate():
    bias = alibi(4, 3, 5)
    assert bias.shape == (4, 3, 5)
    for h, slope in enumerate([1 / 4, 1 / 16, 1 / 64, 1 / 256]):
        for i in range(3):
            for j in range(5):
                expected = -slope * max(i + 2 - j, 0)
                assert bias[h, i, j] == pytest.approx(expected)


def published_slopes(n_heads: int) -> list[float]:
    """The slopes as the authors of ALiBi publish them, in Python's own numbers."""
    if math.log2(n_heads).is_integer():
        start = 2 ** (-(2 ** -(math.log2(n_heads) - 3)))
        return [start * start**i for i in range(n_heads)]
    power = 2 ** math.floor(math.log2(n_heads))
    between = published_slopes(2 * power)[0::2][: n_heads - power]
    return published_slopes(power) + between


@pytest.mark.parametrize("n_heads", [*range(1, 18), 24, 32, 48])
def test_alibi_has_the_published_slopes_for_any_number_of_heads(n_heads):
    expected = torch.tensor(published_slopes(n_heads))
    torch.testing.assert_close(alibi_slopes(n_heads), expected)
    torch.testing.assert_close(-alibi(n_heads, 2)[:, 1, 0], expected)


def test_only_symmetric_alibi_is_blind_to_reversal():
    both, one = alibi(2, 5, symmetric=True), alibi(2, 5)
    assert torch.equal(both, both.flip(1, 2))
    assert torch.equal(both.tril(), one.tril())
    assert not torch.equal(one, one.flip(1, 2))


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 2**31))
def test_rotary_preserves_norms(n_tokens, pairs, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(2, 3, n_tokens, 2 * pairs, generator=generator)
    positions = torch.randint(0, 500, (n_tokens,), generator=generator)
    turned = rotary(x, positions)
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 200))
def test_rotary_scores_depend_on_distance_only(s, t, shift):
    generator = torch.Generator().manual_seed(s + t)
    q, k = torch.randn(2, 1, 8, generator=generator)

    def score(i: int, j: int) -> torch.Tensor:
        turned = rotary(q, torch.tensor([i])), rotary(k, torch.tensor([j]))
        return (turned[0] * turned[1]).sum()

    moved = score(s + shift, t + shift)
    torch.testing.assert_close(score(s, t), moved, rtol=1e-4, atol=1e-4)


def test_rotary_turns_each_pair_by_its_own_angle():
    x = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))
    turned = rotary(x, torch.tensor([0, 1, 9]))
    assert torch.equal(turned[0], x[0])
    for row, t in ((1, 1), (2, 9)):
        for i in range(3):
            angle = t * 10000 ** (-2 * i / 6)
            a, b = x[row, 2 * i].item(), x[row, 2 * i + 1].item()
            expected = a * math.cos(angle) - b * math.sin(angle)
            assert turned[row, 2 * i].item() == pytest.approx(expected, abs=1e-5)
            expected = a * math.sin(angle) + b * math.cos(angle)
            assert turned[row, 2 * i + 1].item() == pytest.approx(expected, abs=1e-5)


def test_rotary_keeps_the_type_and_takes_strided_input():
    x = torch.randn(2, 4, 3, 6).transpose(1, 2)
    positions = torch.arange(4)
    turned = rotate(x, rotations(positions, 6))
    torch.testing.assert_close(turned, rotary(x.contiguous(), positions))
    assert rotary(x.bfloat16(), positions).dtype == torch.bfloat16


def test_rotary_computes_float64_in_float64():
    positions = torch.arange(5)
    x = torch.randn(2, 5, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: rotary(x, positions), [x])
    previous = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        turned = rotary(x, positions)
    finally:
        torch.set_default_dtype(previous)
    angles = positions[:, None] * 10000.0 ** (-torch.arange(0, 6, 2).double() / 6)
    pairs = torch.complex(x[..., 0::2], x[..., 1::2]) * torch.exp(1j * angles)
    expected = torch.stack([pairs.real, pairs.imag], dim=-1).flatten(-2)
    torch.testing.assert_close(turned, expected, rtol=1e-14, atol=1e-14)


def test_rotary_refuses_positions_that_do_not_fit():
    with pytest.raises(ValueError, match=r"positions has shape \(3,\).*the 4 tokens"):
        rotary(torch.randn(2, 4, 6), torch.arange(3))
    with pytest.raises(ValueError, match="5, expected an even number"):
        rotary(torch.randn(4, 5), torch.arange(4))
