"""Layers that see a set, layers that see an order, and the tools that tell."""

from __future__ import annotations

import pytest
import torch
from hypothesis import find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample
from torch import Tensor, nn

from course_utils.evaluation.symmetry import (
    equivariance_gap,
    invariance_gap,
    permutation_matrix,
)
from course_utils.models.attention import (
    CrossAttention,
    MultiHeadAttention,
    SelfAttention,
    basic_self_attention,
    causal_mask,
)
from course_utils.models.blocks import EncoderBlock, FeedForward
from course_utils.models.positions import sinusoidal

D_MODEL = 6
SEARCH = settings(database=None, derandomize=True, deadline=None)
orders = st.integers(1, 7).flatmap(lambda n: st.permutations(range(n)))


def tokens(n: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, n, D_MODEL, generator=generator, dtype=torch.float64)


def with_positions(x: Tensor) -> Tensor:
    return basic_self_attention(x + sinusoidal(x.shape[-2], D_MODEL))[0]


def with_causal_mask(x: Tensor) -> Tensor:
    torch.manual_seed(0)
    layer = SelfAttention(D_MODEL, 4, 3).double()
    return layer(x, causal_mask(x.shape[-2]))[0]


# ------------------------------------------------------------------------- matrices


@settings(deadline=None)
@given(orders)
def test_the_matrix_moves_rows_as_the_order_says(order):
    x = tokens(len(order))[0]
    p = permutation_matrix(order).double()
    assert torch.equal(p @ x, x[order])
    assert torch.equal(x.T @ p.T, x.T[:, order])


@settings(deadline=None)
@given(orders)
def test_the_transpose_undoes_a_permutation(order):
    p = permutation_matrix(order)
    assert torch.equal(p.T @ p, torch.eye(len(order)))


def test_a_matrix_is_made_of_a_list_a_tuple_and_a_tensor():
    expected = torch.tensor([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
    for order in ([2, 0, 1], (2, 0, 1), torch.tensor([2, 0, 1])):
        assert torch.equal(permutation_matrix(order), expected)


# -------------------------------------------------------------------- equivariance

EQUIVARIANT = {
    "basic self-attention": basic_self_attention,
    "self-attention": SelfAttention(D_MODEL, 4, 3),
    "multi-head attention": MultiHeadAttention(D_MODEL, 3),
    "feed-forward": FeedForward(D_MODEL, 11),
    "layer norm": nn.LayerNorm(D_MODEL),
    "encoder block": EncoderBlock(D_MODEL, 2, 11),
    "PyTorch's encoder layer": nn.TransformerEncoderLayer(
        D_MODEL, 2, 11, batch_first=True
    ).eval(),
}


@pytest.mark.parametrize("name", EQUIVARIANT)
@settings(max_examples=20, deadline=None)
@given(order=orders, seed=st.integers(0, 1000))
def test_no_order_is_found_that_outputs_do_not_follow(name, order, seed):
    layer = EQUIVARIANT[name]
    layer = layer.double() if isinstance(layer, nn.Module) else layer
    assert equivariance_gap(layer, tokens(len(order), seed), order) < 1e-12


@settings(max_examples=30, deadline=None)
@given(order=orders, seed=st.integers(0, 1000))
def test_a_pooled_output_ignores_every_order(order, seed):
    layer = SelfAttention(D_MODEL, 4, 3).double()
    x = tokens(len(order), seed)
    assert invariance_gap(lambda x: layer(x)[0].mean(dim=-2), x, order) < 1e-12


@settings(max_examples=30, deadline=None)
@given(order=orders)
def test_cross_attention_ignores_the_order_of_its_memory(order):
    layer = CrossAttention(D_MODEL, D_MODEL, 4, 3).double()
    x, memory = tokens(3, seed=1), tokens(len(order))
    assert invariance_gap(lambda memory: layer(x, memory), memory, order) < 1e-12
    assert equivariance_gap(lambda x: layer(x, memory), x, [2, 0, 1]) < 1e-12


@pytest.mark.parametrize("layer", [with_causal_mask, with_positions])
def test_the_smallest_counterexample_is_a_swap_of_two_tokens(layer):
    def fails(order: list[int]) -> bool:
        return equivariance_gap(layer, tokens(len(order)), order) > 1e-6

    found = find(orders, fails, settings=SEARCH)
    assert found == [1, 0]


def test_a_search_in_equivariant_layers_comes_back_with_nothing():
    def fails(order: list[int]) -> bool:
        return equivariance_gap(basic_self_attention, tokens(len(order)), order) > 1e-6

    with pytest.raises(NoSuchExample):
        find(orders, fails, settings=SEARCH)


def test_rolling_the_tokens_is_neither():
    x, order = tokens(4), [1, 0, 2, 3]
    for gap in (equivariance_gap, invariance_gap):
        assert gap(lambda x: x.roll(1, dims=-2), x, order) > 0.1


# ------------------------------------------------------------------------ bad input


@pytest.mark.parametrize("order", [[0, 0, 1], [1, 2, 3], [0, 1], [0, 1, 2, 3]])
def test_an_order_names_every_token_once(order):
    with pytest.raises(ValueError, match="numbers 0 to 2 once"):
        equivariance_gap(basic_self_attention, tokens(3), order)
    with pytest.raises(ValueError, match="numbers 0 to 2 once"):
        invariance_gap(basic_self_attention, tokens(3), order)


def test_a_matrix_of_no_order_is_refused():
    with pytest.raises(ValueError, match=r"order is \[1, 2, 3\], expected each of the"):
        permutation_matrix([1, 2, 3])


def test_a_pooled_output_is_sent_to_the_other_gap():
    with pytest.raises(ValueError, match=r"\(2, 6\) of \(2, 3, 6\).*invariance_gap"):
        equivariance_gap(lambda x: x.mean(dim=1), tokens(3), [1, 0, 2])
