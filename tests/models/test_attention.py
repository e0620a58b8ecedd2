"""The attention operator, its masks, and the modules that wrap it."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_utils.models.attention import (
    CrossAttention,
    KeyValueCache,
    MultiHeadAttention,
    SelfAttention,
    attention,
    basic_self_attention,
    causal_mask,
    fused_attention,
    masked_softmax,
    padding_mask,
)
from course_utils.models.positions import alibi

BATCH, QUERY, KEY, D_K, D_V = 2, 3, 5, 4, 6


def qkv(seed: int = 0, grad: bool = False):
    generator = torch.Generator().manual_seed(seed)
    shapes = (BATCH, QUERY, D_K), (BATCH, KEY, D_K), (BATCH, KEY, D_V)
    return [torch.randn(s, generator=generator).requires_grad_(grad) for s in shapes]


@st.composite
def problems(draw):
    """Random shapes, numbers and a mask that may block whole rows."""
    batch, query, key, d_k, d_v = (draw(st.integers(1, 6)) for _ in range(5))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    queries = torch.randn(batch, query, d_k, generator=generator)
    keys = torch.randn(batch, key, d_k, generator=generator)
    values = torch.randn(batch, key, d_v, generator=generator)
    share = draw(st.sampled_from([0.2, 0.5, 0.9]))
    mask = torch.rand(batch, query, key, generator=generator) < share
    return queries, keys, values, draw(st.sampled_from([mask, mask[0], None]))


# ------------------------------------------------------------------------- operator


@settings(max_examples=60, deadline=None)
@given(problems())
def test_attention_equals_the_fused_kernel(problem):
    queries, keys, values, mask = problem
    context, _ = attention(queries, keys, values, mask)
    expected = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
    torch.testing.assert_close(context, expected, rtol=1e-5, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_rows_sum_to_one_or_are_zero_where_everything_is_blocked(problem):
    queries, keys, values, mask = problem
    _, weights = attention(queries, keys, values, mask)
    open_rows = torch.ones(weights.shape[:-1], dtype=torch.bool)
    if mask is not None:
        open_rows = mask.expand_as(weights).any(-1)
        assert (weights[~mask.expand_as(weights)] == 0).all()
    torch.testing.assert_close(weights.sum(-1), open_rows.float())
    assert (weights >= 0).all()


def test_attention_by_hand():
    """Two keys, the second scored ln 3 higher: weights 1/4 and 3/4."""
    queries = torch.tensor([[[2.0, 0.0, 0.0, 0.0]]])  # sqrt(d_k) = 2
    keys = torch.tensor([[[0.0, 7.0, 0.0, 0.0], [math.log(3), 0.0, 5.0, 0.0]]])
    values = torch.tensor([[[0.0, 1.0], [8.0, 1.0]]])
    context, weights = attention(queries, keys, values)
    torch.testing.assert_close(weights, torch.tensor([[[0.25, 0.75]]]))
    torch.testing.assert_close(context, torch.tensor([[[6.0, 1.0]]]))


def test_attention_gradients_are_right():
    inputs = [x.double().detach().requires_grad_() for x in qkv()]
    mask = torch.rand(QUERY, KEY, generator=torch.Generator().manual_seed(1)) < 0.6
    assert torch.autograd.gradcheck(lambda q, k, v: attention(q, k, v, mask), inputs)


def test_a_fully_blocked_row_gives_zeros_and_finite_gradients():
    queries, keys, values = qkv(grad=True)
    mask = torch.ones(QUERY, KEY, dtype=torch.bool)
    mask[1] = False
    context, weights = attention(queries, keys, values, mask)
    assert (context[:, 1] == 0).all()
    assert (weights[:, 1] == 0).all()
    context.square().sum().backward()
    for x in (queries, keys, values):
        assert x.grad.isfinite().all()
    assert (queries.grad[:, 1] == 0).all()
    assert (queries.grad[:, 0] != 0).any()


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_a_fully_blocked_row_makes_no_nan_even_on_the_way():
    scores = torch.randn(2, 3, requires_grad=True)
    mask = torch.tensor([[True, True, False], [False, False, False]])
    with torch.autograd.detect_anomaly():
        masked_softmax(scores, mask).square().sum().backward()
    assert scores.grad.isfinite().all()


def test_a_blocked_key_has_no_influence():
    queries, keys, values = qkv()
    mask = torch.tensor([True, True, False, True, True])
    context, _ = attention(queries, keys, values, mask)
    keys2, values2 = keys.clone(), values.clone()
    keys2[:, 2], values2[:, 2] = 1e4, -1e4
    torch.testing.assert_close(attention(queries, keys2, values2, mask)[0], context)


def test_attention_changes_no_argument():
    inputs = [*qkv(), torch.rand(QUERY, KEY) < 0.5]
    before = [x.clone() for x in inputs]
    attention(*inputs)
    assert all(torch.equal(x, y) for x, y in zip(inputs, before))


def test_masked_softmax_works_in_half_precision():
    scores = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float16)
    weights = masked_softmax(scores, torch.tensor([[True, True, False]]))
    assert weights.dtype == torch.float16
    expected = torch.softmax(torch.tensor([1.0, 2.0]), -1).half()
    torch.testing.assert_close(weights[0, :2], expected)


def test_basic_self_attention_mixes_by_similarity():
    x = qkv()[1]
    context, weights = basic_self_attention(x)
    for i in range(KEY):
        similarity = torch.tensor([float(x[0, i] @ x[0, j]) for j in range(KEY)])
        expected = torch.softmax(similarity, 0)
        torch.testing.assert_close(weights[0, i], expected)
        torch.testing.assert_close(context[0, i], expected @ x[0])


# ---------------------------------------------------------------------------- masks


@pytest.mark.parametrize("n_keys", [4, 6])
def test_causal_mask_blocks_the_future(n_keys):
    mask = causal_mask(4, n_keys)
    past = n_keys - 4
    for i in range(4):
        for j in range(n_keys):
            assert mask[i, j] == (j <= i + past)


@pytest.mark.parametrize("need_weights", [False, True])
def test_a_later_token_cannot_move_an_earlier_output(need_weights):
    torch.manual_seed(0)
    module = MultiHeadAttention(8, 2)
    x = torch.randn(2, 5, 8)
    changed = x.clone()
    changed[:, 3] += 10.0
    before, _ = module(x, causal=True, need_weights=need_weights)
    after, _ = module(changed, causal=True, need_weights=need_weights)
    torch.testing.assert_close(after[:, :3], before[:, :3])
    assert not torch.allclose(after[:, 3:], before[:, 3:])


def test_padding_mask_shows_real_tokens_to_every_query():
    tokens = torch.tensor([[5, 6, 7], [8, 0, 0]])
    mask = padding_mask(tokens)
    assert mask.shape == (2, 1, 3)
    assert mask.tolist() == [[[True, True, True]], [[True, False, False]]]
    assert padding_mask(tokens, pad=8).tolist()[1] == [[False, True, True]]


# --------------------------------------------------------------------- clear errors


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda q, k, v: (q[..., :3], k, v), r"d_k \(3 against 4\).*project"),
        (lambda q, k, v: (q, k[:, :4], v), r"key axis \(4 against 5\).*same tokens"),
        (lambda q, k, v: (q[0, 0], k, v), r"queries has shape \(4,\).*x\[None, :\]"),
        (lambda q, k, v: (q, k[:1].repeat(3, 1, 1), v), "leading axes.*same batch"),
        (lambda q, k, v: (q, k, v, torch.ones(3, 5)), r"float32.*mask\.bool\(\)"),
        (lambda q, k, v: (q, k, v, torch.ones(3, 5).long()), "int64.*torch.bool"),
        (
            lambda q, k, v: (q, k, v, torch.ones(2, 5, dtype=torch.bool)),
            r"mask has shape \(2, 5\).*\(2, 3, 5\).*mask\[:, None, :\]",
        ),
        (
            lambda q, k, v: (q, k, v, torch.ones(4, 2, 3, 5, dtype=torch.bool)),
            r"mask has shape \(4, 2, 3, 5\)",
        ),
    ],
)
def test_attention_refuses_what_does_not_fit(change, words):
    with pytest.raises(ValueError, match=words):
        attention(*change(*qkv()))


def test_modules_refuse_what_does_not_fit():
    x = torch.randn(2, 3, 8)
    with pytest.raises(ValueError, match=r"\(3, 8\), expected \(batch, token, 8\)"):
        SelfAttention(8, 4, 6)(x[0])
    with pytest.raises(ValueError, match=r"memory has shape \(2, 3, 8\).*, 7\)"):
        CrossAttention(8, 7, 4, 6)(x, x)
    with pytest.raises(ValueError, match="8 does not divide into 3 heads"):
        MultiHeadAttention(8, 3)
    with pytest.raises(ValueError, match=r"memory has shape \(2, 3, 6\)"):
        MultiHeadAttention(8, 2)(x, x[..., :6])
    with pytest.raises(ValueError, match="does not broadcast"):
        MultiHeadAttention(8, 2)(x, mask=torch.ones(2, 2, 3, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match="at least one query and no fewer keys"):
        causal_mask(4, 3)
    with pytest.raises(ValueError, match=r"shape \(3,\), expected \(batch, key\)"):
        padding_mask(torch.tensor([1, 2, 0]))


# -------------------------------------------------------------------------- modules


def test_self_attention_is_attention_of_three_projections():
    torch.manual_seed(0)
    module, x = SelfAttention(7, D_K, D_V), torch.randn(2, 3, 7)
    w_q, w_k, w_v = module.qkv.weight.T.split([D_K, D_K, D_V], dim=1)
    expected = attention(x @ w_q, x @ w_k, x @ w_v)
    for made, wanted in zip(module(x), expected):
        torch.testing.assert_close(made, wanted)


def test_cross_attention_takes_different_lengths_and_widths():
    torch.manual_seed(0)
    module = CrossAttention(7, 8, D_K, D_V)
    x, memory = torch.randn(2, QUERY, 7), torch.randn(2, KEY, 8)
    context, weights = module(x, memory)
    w_k, w_v = module.key_value.weight.T.split([D_K, D_V], dim=1)
    expected = attention(x @ module.query.weight.T, memory @ w_k, memory @ w_v)
    torch.testing.assert_close(context, expected[0])
    torch.testing.assert_close(weights, expected[1])
    assert weights.shape == (2, QUERY, KEY)


def like_torch(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """Return PyTorch's module with our weights."""
    d_model = ours.output.in_features
    theirs = nn.MultiheadAttention(d_model, ours.n_heads, batch_first=True)
    theirs.load_state_dict(
        {
            "in_proj_weight": ours.qkv.weight,
            "in_proj_bias": ours.qkv.bias,
            "out_proj.weight": ours.output.weight,
            "out_proj.bias": ours.output.bias,
        }
    )
    return theirs


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
def test_multi_head_attention_equals_torch_forward_and_backward(cross, need_weights):
    torch.manual_seed(0)
    ours = MultiHeadAttention(12, 3)
    nn.init.normal_(ours.qkv.bias)
    theirs = like_torch(ours)
    x = torch.randn(2, 3, 12, requires_grad=True)
    y = torch.randn(2, 5, 12, requires_grad=True)
    memory = y if cross else x
    mask = padding_mask(torch.tensor([[1] * 5, [1, 1, 0, 0, 0]])[:, : memory.shape[1]])
    made, weights = ours(x, y if cross else None, mask, need_weights=need_weights)
    wanted, maps = theirs(
        x, memory, memory, key_padding_mask=~mask[:, 0], average_attn_weights=False
    )
    torch.testing.assert_close(made, wanted, rtol=1e-5, atol=1e-6)
    if need_weights:
        torch.testing.assert_close(weights, maps, rtol=1e-5, atol=1e-6)
    inputs = (x, y) if cross else (x,)
    ours_grads = torch.autograd.grad(
        made.square().sum(), (*inputs, ours.qkv.weight, ours.output.weight)
    )
    their_grads = torch.autograd.grad(
        wanted.square().sum(), (*inputs, theirs.in_proj_weight, theirs.out_proj.weight)
    )
    for a, b in zip(ours_grads, their_grads):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([(4, 4), (3, 5), (1, 5)]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_fused_path_equals_the_path_with_weights(sizes, causal, masked, biased, seed):
    n_queries, n_keys = sizes
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(2, 3, n_queries, 4, generator=generator)
    k = torch.randn(2, 3, n_keys, 4, generator=generator)
    v = torch.randn(2, 3, n_keys, 6, generator=generator)
    mask = torch.rand(2, 1, n_queries, n_keys, generator=generator) < 0.6
    bias = torch.randn(3, n_queries, n_keys, generator=generator)
    options = {
        "mask": mask if masked else None,
        "causal": causal,
        "bias": bias if biased else None,
    }
    context, none = fused_attention(q, k, v, **options)
    expected, weights = fused_attention(q, k, v, **options, need_weights=True)
    assert none is None
    torch.testing.assert_close(context, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(weights @ v, expected)
    if causal:
        assert (weights.masked_select(~causal_mask(n_queries, n_keys)) == 0).all()


def test_a_bias_is_added_to_the_scores():
    torch.manual_seed(0)
    q, k, v = (x[:, None] for x in qkv())
    bias = torch.randn(1, QUERY, KEY)
    _, weights = fused_attention(q, k, v, bias=bias, need_weights=True)
    expected = torch.softmax(q @ k.transpose(-2, -1) / D_K**0.5 + bias, -1)
    torch.testing.assert_close(weights, expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("causal", [False, True])
def test_a_bias_of_another_type_is_taken_with_weights_as_without(dtype, causal):
    torch.manual_seed(0)
    module = MultiHeadAttention(12, 3).to(dtype)
    x, bias = torch.randn(2, 5, 12).to(dtype), alibi(3, 5)
    with_weights, weights = module(x, bias=bias, causal=causal, need_weights=True)
    without, _ = module(x, bias=bias, causal=causal)
    assert weights.dtype == dtype
    torch.testing.assert_close(with_weights, without, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("masked", [False, True])
def test_a_row_of_minus_infinity_in_the_bias_blocks_as_pytorchs_kernel_does(masked):
    torch.manual_seed(0)
    sizes = (BATCH, 2, QUERY, D_K), (BATCH, 2, KEY, D_K), (BATCH, 2, KEY, D_V)
    tensors = [torch.randn(s, requires_grad=True) for s in sizes]
    bias = torch.zeros(QUERY, KEY)
    bias[1], bias[2, :3] = -torch.inf, -torch.inf
    mask = torch.tensor([True, True, True, True, False]) if masked else None
    added = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    expected = F.scaled_dot_product_attention(*tensors, attn_mask=added)
    for need_weights in (False, True):
        context, weights = fused_attention(
            *tensors, mask, bias=bias, need_weights=need_weights
        )
        torch.testing.assert_close(context, expected, rtol=1e-5, atol=1e-6)
    assert (weights[:, :, 1] == 0).all()
    gradients = torch.autograd.grad(context.sum(), tensors)
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_a_remembered_memory_gives_the_same_answer():
    torch.manual_seed(0)
    module = MultiHeadAttention(8, 2)
    x, memory = torch.randn(2, 3, 8), torch.randn(2, 5, 8)
    torch.testing.assert_close(
        module(x, module.project_memory(memory)), module(x, memory)
    )


def test_heads_are_told_apart():
    """Changing the second head's value weights leaves the first head's part alone."""
    torch.manual_seed(0)
    module, x = MultiHeadAttention(8, 2, bias=False), torch.randn(2, 3, 8)
    values = module.project(x)[2]
    with torch.no_grad():
        module.qkv.weight[2 * 8 + 4 :] += 1.0
    changed = module.project(x)[2]
    torch.testing.assert_close(changed[:, 0], values[:, 0])
    assert not torch.allclose(changed[:, 1], values[:, 1])


# ---------------------------------------------------------------------------- cache


def cache(room: int) -> KeyValueCache:
    return KeyValueCache(torch.zeros(2, 3, room, 4), torch.zeros(2, 3, room, 4))


def test_a_cache_returns_everything_stored_so_far():
    box, parts = cache(6), torch.randn(2, 2, 3, 5, 4)
    first = box.extend(parts[0][:, :, :2], parts[1][:, :, :2])
    both = box.extend(parts[0][:, :, 2:], parts[1][:, :, 2:])
    assert first[0].shape == (2, 3, 2, 4)
    assert torch.equal(torch.stack(both), parts)
    assert box.length == 5


def test_selected_rows_of_a_cache_are_a_copy():
    box = cache(4)
    box.extend(torch.ones(2, 3, 1, 4), torch.ones(2, 3, 1, 4))
    copy = box.select(torch.tensor([1, 1, 0]))
    copy.extend(torch.full((3, 3, 1, 4), 7.0), torch.full((3, 3, 1, 4), 7.0))
    assert copy.keys.shape[0] == 3
    assert (box.length, copy.length) == (1, 2)
    assert (box.keys[:, :, 1:] == 0).all()


def test_a_full_cache_says_so():
    box = cache(3)
    with pytest.raises(ValueError, match="4 tokens do not fit into a cache of 3"):
        box.extend(torch.zeros(2, 3, 4, 4), torch.zeros(2, 3, 4, 4))
