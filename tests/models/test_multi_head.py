"""Several heads: how they are cut, what they equal, and what is refused."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from course_utils.display.widgets.head_selector import head_selector
from course_utils.models.attention import (
    HeadProjections,
    MultiHeadAttention,
    SelfAttention,
    merge_heads,
    split_heads,
)
from course_utils.shapes import require_heads

# --------------------------------------------------------------------- cut and joined


def test_every_number_lands_where_the_docstring_says():
    batch, token, heads, d, parts = 2, 5, 3, 4, 2
    x = torch.randn(batch, token, parts * heads * d)
    cut = split_heads(x, heads, parts)
    assert len(cut) == parts
    for p in range(parts):
        assert cut[p].shape == (batch, heads, token, d)
        for h in range(heads):
            for i in range(d):
                feature = (p * heads + h) * d + i
                assert torch.equal(cut[p][:, h, :, i], x[:, :, feature])


def test_a_reshape_has_the_same_shape_and_other_numbers():
    x = torch.randn(2, 5, 12)
    (cut,) = split_heads(x, 3)
    wrong = x.reshape(2, 3, 5, 4)
    assert wrong.shape == cut.shape
    assert not torch.equal(wrong, cut)
    assert torch.equal(wrong.reshape(2, 5, 12), x)  # and survives the round trip


def test_merging_undoes_splitting():
    x = torch.randn(2, 5, 12)
    assert torch.equal(merge_heads(split_heads(x, 3)[0]), x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: split_heads(torch.zeros(5, 12), 3), r"\(5, 12\), expected \(batch"),
        (lambda: split_heads(torch.zeros(2, 5, 12), 5), "12 does not divide into 5"),
        (lambda: split_heads(torch.zeros(2, 5, 12), 2, 4), "4 parts of 2 heads"),
        (
            lambda: split_heads(torch.zeros(2, 5, 12), 0),
            "n_heads is 0, expected a whol",
        ),
        (lambda: split_heads(torch.zeros(2, 5, 12), 2.0), "n_heads is 2.0"),
        (lambda: split_heads(torch.zeros(2, 5, 12), True), "n_heads is True"),
        (lambda: split_heads(torch.zeros(2, 5, 12), 2, -1), "parts is -1"),
        (
            lambda: merge_heads(torch.zeros(2, 5, 12)),
            r"\(2, 5, 12\), expected \(batch, ",
        ),
        (lambda: require_heads(0, 1), "a width of 0 does not divide"),
        (lambda: HeadProjections(12, 5), "does not divide into 5 heads"),
        (lambda: MultiHeadAttention(12, "3"), "n_heads is '3', expected a whole"),
        (
            lambda: HeadProjections(12, 3).project(torch.zeros(2, 5, 8)),
            r"x has shape \(2, 5, 8\), expected \(batch, token, 12\)",
        ),
        (
            lambda: HeadProjections(12, 3).project_memory(torch.zeros(5, 12)),
            r"memory has shape \(5, 12\)",
        ),
    ],
)
def test_what_can_not_be_cut_is_refused_in_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ------------------------------------------------------------------------ equivalence


def test_the_layer_is_a_loop_over_one_head_layers():
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(12, 3, bias=False), torch.randn(2, 5, 12)
    contexts = []
    for h in range(3):
        head = SelfAttention(12, 4, 4)
        rows = [layer.qkv.weight[12 * p + 4 * h :][:4] for p in range(3)]
        head.qkv.weight = nn.Parameter(torch.cat(rows))
        contexts.append(head(x)[0])
    by_loop = torch.cat(contexts, dim=-1) @ layer.output.weight.T
    torch.testing.assert_close(layer(x)[0], by_loop)
    bands = layer.output.weight.T.split(4)
    by_sum = sum(context @ band for context, band in zip(contexts, bands))
    torch.testing.assert_close(layer(x)[0], by_sum)


@st.composite
def problems(draw):
    heads, d_head = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    n_queries, n_keys = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    kind = draw(st.sampled_from(["self", "cross", "causal", "masked"]))
    return heads, d_head, n_queries, n_keys, kind, draw(st.integers(0, 2**31))


@settings(max_examples=60, deadline=None)
@given(problems())
def test_the_layer_equals_torch_to_six_digits_forward_and_backward(problem):
    heads, d_head, n_queries, n_keys, kind, seed = problem
    torch.manual_seed(seed)
    d_model = heads * d_head
    ours = MultiHeadAttention(d_model, heads).double()
    nn.init.normal_(ours.qkv.bias)
    theirs = nn.MultiheadAttention(d_model, heads, batch_first=True).double()
    names = ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")
    theirs.load_state_dict(dict(zip(names, ours.state_dict().values())))
    x = torch.randn(2, n_queries, d_model, dtype=torch.float64, requires_grad=True)
    y = torch.randn(2, n_keys, d_model, dtype=torch.float64, requires_grad=True)
    memory = x if kind in ("self", "causal") else y
    mask = torch.rand(n_queries, memory.shape[1]) < 0.6
    mask[:, 0] = True
    if kind == "causal":
        mask = torch.ones(n_queries, n_queries).tril().bool()
    blocked = ~mask if kind in ("causal", "masked") else None
    made, weights = ours(
        x,
        None if memory is x else memory,
        mask if kind == "masked" else None,
        causal=kind == "causal",
        need_weights=True,
    )
    wanted, maps = theirs(
        x, memory, memory, attn_mask=blocked, average_attn_weights=False
    )
    exact = {"rtol": 1e-6, "atol": 1e-6}
    torch.testing.assert_close(made, wanted, **exact)
    torch.testing.assert_close(weights, maps, **exact)
    direction = torch.randn_like(made)
    gradients = [
        torch.autograd.grad(
            (output * direction).sum(),
            [*{id(t): t for t in (x, memory)}.values(), *module.parameters()],
        )
        for output, module in ((made, ours), (wanted, theirs))
    ]
    for one, other in zip(*gradients):
        torch.testing.assert_close(one, other, **exact)


def test_torch_averages_the_heads_unless_told():
    torch.manual_seed(0)
    ours, x = MultiHeadAttention(12, 3), torch.randn(2, 5, 12)
    theirs = nn.MultiheadAttention(12, 3, batch_first=True)
    names = ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")
    theirs.load_state_dict(dict(zip(names, ours.state_dict().values())))
    weights = ours(x, need_weights=True)[1]
    torch.testing.assert_close(theirs(x, x, x)[1], weights.mean(dim=1))


@pytest.mark.parametrize("n_heads", [1, 2, 3, 8, 24])
def test_parameters_and_operations_do_not_depend_on_the_number_of_heads(n_heads):
    n, d = 7, 24
    layer = MultiHeadAttention(d, n_heads)
    assert sum(p.numel() for p in layer.parameters()) == 4 * d * d + 4 * d
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        layer(torch.zeros(1, n, d), need_weights=True)
    assert counter.get_total_flops() == 8 * n * d * d + 4 * n * n * d


# ---------------------------------------------------------------------- the interactive

CARDS = [("red", "A"), ("blue", "B"), ("red", "B")]
RIGHT = [[-1, 1], [0, 2], [1, 0]]


def a_layer(heads=2, cards=3, options=8):
    return {
        "weights": np.full((heads, cards, cards), 1 / cards),
        "scores": torch.zeros(heads, cards, 2, options),
        "constant": np.zeros((2, options)),
    }


def test_the_head_selector_holds_every_layer():
    made = head_selector("h", {"2": a_layer(), "4": a_layer(4)}, CARDS, RIGHT)
    data = json.loads(re.search(r"const data=(.*);\n", made.html)[1])
    assert [len(layer["weights"]) for layer in data["layers"].values()] == [2, 4]
    assert data["right"] == RIGHT


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({}, CARDS, RIGHT), "no layers"),
        (({"a": a_layer()}, [("pink", "A"), *CARDS[1:]], RIGHT), "colour 'pink'"),
        (({"a": a_layer(cards=4)}, CARDS, RIGHT), r"\(2, 4, 4\), expected \(2, 3, 3\)"),
        (
            ({"a": a_layer(options=5)}, CARDS, RIGHT),
            r"scores of layer 'a' is \(2, 3, 2",
        ),
        (({"a": {"weights": np.zeros((1, 3, 3))}}, CARDS, RIGHT), "is nothing, exp"),
        (({"a": {}}, CARDS, RIGHT), "weights of layer 'a' is nothing"),
        (({"a": a_layer()}, CARDS, RIGHT[:2]), r"right has shape \(2, 2\), expected"),
    ],
)
def test_a_head_selector_of_wrong_shapes_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        head_selector("h", *arguments)
