"""Blocks, transformer and GPT against PyTorch's own, with the same weights."""

from __future__ import annotations

import math
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_utils.models.attention import (
    KeyValueCache,
    MultiHeadAttention,
    padding_mask,
)
from course_utils.models.blocks import (
    Decoder,
    DecoderBlock,
    Encoder,
    EncoderBlock,
    FeedForward,
    Residual,
    layer_norm,
)
from course_utils.models.transformer import GPT, Transformer, empty_caches, xavier

D, HEADS, HIDDEN = 12, 3, 10
CLOSE = {"rtol": 1e-5, "atol": 2e-6}


def shaken(module: nn.Module) -> nn.Module:
    """Return the module in eval mode, norms and biases moved off their first values."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return module.eval()


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    theirs.in_proj_weight.copy_(ours.qkv.weight)
    theirs.in_proj_bias.copy_(ours.qkv.bias)
    theirs.out_proj.load_state_dict(ours.output.state_dict())


@torch.no_grad()
def copy_block(ours: EncoderBlock | DecoderBlock, theirs: nn.Module) -> None:
    """Give PyTorch's layer our weights."""
    copy_attention(ours.attention, theirs.self_attn)
    theirs.linear1.load_state_dict(ours.feed_forward.wide.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.narrow.state_dict())
    around = [ours.around_attention, ours.around_feed_forward]
    if isinstance(ours, DecoderBlock):
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        around.insert(1, ours.around_cross_attention)
    for i, residual in enumerate(around, start=1):
        getattr(theirs, f"norm{i}").load_state_dict(residual.norm.state_dict())


def assert_same_gradients(made, wanted, inputs, pairs) -> None:
    """Compare the gradients of inputs, and of pairs of (our, their) parameters."""
    direction = torch.randn_like(made)
    mine, other = zip(*pairs)
    ours = torch.autograd.grad((made * direction).sum(), (*inputs, *mine))
    theirs = torch.autograd.grad((wanted * direction).sum(), (*inputs, *other))
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def data():
    torch.manual_seed(0)
    x = torch.randn(2, 4, D, requires_grad=True)
    memory = torch.randn(2, 5, D, requires_grad=True)
    mask = padding_mask(torch.tensor([[1] * 5, [1, 1, 1, 0, 0]]))
    return x, memory, mask


def future(n: int) -> torch.Tensor:
    """Return PyTorch's causal mask: True = may not attend."""
    return torch.ones(n, n, dtype=torch.bool).triu(1)


# --------------------------------------------------------------------------- blocks


def test_layer_norm_equals_torch_forward_and_backward():
    x = data()[0]
    gamma, beta = torch.randn(2, D, requires_grad=True)
    made, wanted = layer_norm(x, gamma, beta), F.layer_norm(x, (D,), gamma, beta)
    torch.testing.assert_close(made, wanted, **CLOSE)
    assert_same_gradients(made, wanted, [x], [(gamma, gamma), (beta, beta)])


def test_layer_norm_adds_eps_inside_the_root():
    x = torch.full((3,), 2.0) + torch.tensor([1e-4, -1e-4, 0.0])
    made = layer_norm(x, torch.ones(3), torch.zeros(3), eps=1e-2)
    expected = F.layer_norm(x, (3,), eps=1e-2)
    torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("order", ["pre", "post"])
def test_encoder_block_equals_torch_forward_and_backward(order):
    x, _, _ = data()
    mask = padding_mask(torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]))
    ours = shaken(EncoderBlock(D, HEADS, HIDDEN, order, activation="gelu"))
    theirs = nn.TransformerEncoderLayer(
        D,
        HEADS,
        HIDDEN,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=order == "pre",
    )
    copy_block(ours, theirs)
    made, _ = ours(x, mask)
    wanted = theirs(x, src_key_padding_mask=~mask[:, 0])
    torch.testing.assert_close(made, wanted, **CLOSE)
    pairs = [
        (ours.attention.qkv.weight, theirs.self_attn.in_proj_weight),
        (ours.feed_forward.wide.weight, theirs.linear1.weight),
        (ours.around_attention.norm.weight, theirs.norm1.weight),
        (ours.around_feed_forward.norm.bias, theirs.norm2.bias),
    ]
    assert_same_gradients(made, wanted, [x], pairs)


@pytest.mark.parametrize("order", ["pre", "post"])
def test_decoder_block_equals_torch_forward_and_backward(order):
    x, memory, mask = data()
    ours = shaken(DecoderBlock(D, HEADS, HIDDEN, order))
    theirs = nn.TransformerDecoderLayer(
        D, HEADS, HIDDEN, dropout=0.0, batch_first=True, norm_first=order == "pre"
    )
    copy_block(ours, theirs)
    made, _, _ = ours(x, memory, mask)
    blocked = {"tgt_mask": future(4), "memory_key_padding_mask": ~mask[:, 0]}
    wanted = theirs(x, memory, **blocked)
    torch.testing.assert_close(made, wanted, **CLOSE)
    pairs = [
        (ours.attention.qkv.weight, theirs.self_attn.in_proj_weight),
        (ours.cross_attention.qkv.weight, theirs.multihead_attn.in_proj_weight),
        (ours.cross_attention.qkv.bias, theirs.multihead_attn.in_proj_bias),
        (ours.feed_forward.narrow.weight, theirs.linear2.weight),
        (ours.around_cross_attention.norm.weight, theirs.norm2.weight),
    ]
    assert_same_gradients(made, wanted, [x, memory], pairs)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("order", ["pre", "post"])
def test_both_stacks_equal_nn_transformer(order):
    x, source, mask = data()
    encoder = shaken(Encoder(2, D, HEADS, HIDDEN, order))
    decoder = shaken(Decoder(3, D, HEADS, HIDDEN, order))
    theirs = nn.Transformer(
        D,
        HEADS,
        num_encoder_layers=2,
        num_decoder_layers=3,
        dim_feedforward=HIDDEN,
        dropout=0.0,
        batch_first=True,
        norm_first=order == "pre",
    )
    for ours, stack in ((encoder, theirs.encoder), (decoder, theirs.decoder)):
        for block, layer in zip(ours.blocks, stack.layers):
            copy_block(block, layer)
        if order == "pre":
            stack.norm.load_state_dict(ours.norm.state_dict())
        else:  # PyTorch norms once more; the paper does not
            stack.norm = None
    memory, _ = encoder(source, mask)
    made, _, _ = decoder(x, memory, mask)
    padding = ~mask[:, 0]
    wanted = theirs(
        source,
        x,
        tgt_mask=future(4),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )
    torch.testing.assert_close(made, wanted, **CLOSE)
    first, last = encoder.blocks[0], decoder.blocks[-1]
    pairs = [
        (first.attention.qkv.weight, theirs.encoder.layers[0].self_attn.in_proj_weight),
        (last.feed_forward.wide.weight, theirs.decoder.layers[-1].linear1.weight),
    ]
    assert_same_gradients(made, wanted, [x, source], pairs)


def test_pre_norm_leaves_the_stream_itself_alone():
    x = torch.randn(2, 3, 4)
    pre, post = Residual(4, "pre"), Residual(4, "post")
    assert torch.equal(pre.after(x, torch.zeros_like(x)), x)
    assert torch.equal(post.after(x, torch.zeros_like(x)), post.norm(x))
    assert torch.equal(pre.before(x), pre.norm(x))
    assert torch.equal(post.before(x), x)


def test_dropout_acts_on_what_a_layer_found_and_only_in_training():
    torch.manual_seed(0)
    residual, x = Residual(4, "pre", dropout=0.5), torch.zeros(50, 4)
    found = residual.after(x, torch.ones(50, 4))
    assert set(found.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(residual.eval().after(x, torch.ones(50, 4)), torch.ones(50, 4))


def test_feed_forward_treats_tokens_alike():
    torch.manual_seed(0)
    layer, x = FeedForward(4, 6, "relu2"), torch.randn(2, 5, 4)
    order = torch.tensor([3, 1, 4, 0, 2])
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order])
    expected = layer.narrow(torch.relu(layer.wide(x)) ** 2)
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: EncoderBlock(D, HEADS, HIDDEN, "before"), "'before', expected 'pre'"),
        (lambda: FeedForward(4, 6, "tanh"), "'tanh', expected one of"),
        (lambda: GPT(11, 8, 12, 3, positions="sine"), "'sine', expected 'learned'"),
        (lambda: Transformer(11, 13, d_model=9, n_heads=3), "9, expected an even"),
    ],
)
def test_unknown_choices_are_refused(build, words):
    with pytest.raises(ValueError, match=words):
        build()


# ---------------------------------------------------------------------- transformer

SOURCE = torch.tensor([[4, 5, 6, 7, 2], [8, 9, 2, 0, 0]])
TARGET = torch.tensor([[1, 3, 4, 5], [1, 6, 7, 0]])


def transformer(**options) -> Transformer:
    torch.manual_seed(0)
    sizes = {"d_model": D, "n_heads": HEADS, "d_hidden": HIDDEN, "max_length": 9}
    return Transformer(11, 13, **(sizes | options)).eval()


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_asking_for_the_maps_changes_no_logit(norm):
    model = transformer(norm=norm)
    logits, none = model(SOURCE, TARGET)
    expected, maps = model(SOURCE, TARGET, need_weights=True)
    assert none is None
    torch.testing.assert_close(logits, expected, **CLOSE)
    assert maps.encoder.shape == (2, 2, HEADS, 5, 5)
    assert maps.decoder.shape == (2, 2, HEADS, 4, 4)
    assert maps.cross.shape == (2, 2, HEADS, 4, 5)
    for weights in maps:
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    assert (maps.decoder.triu(1) == 0).all()
    assert (maps.cross[:, 1, :, :, 3:] == 0).all()
    assert (maps.encoder[:, 1, :, :, 3:] == 0).all()


def test_padding_of_the_source_changes_nothing():
    model = transformer()
    logits, alone = model(SOURCE, TARGET)[0], model(SOURCE[1:, :3], TARGET[1:])[0]
    torch.testing.assert_close(logits[1:], alone, **CLOSE)


def test_a_later_target_token_cannot_move_an_earlier_output():
    model, changed = transformer(), TARGET.clone()
    changed[:, 2] = 12
    before, after = model(SOURCE, TARGET)[0], model(SOURCE, changed)[0]
    torch.testing.assert_close(after[:, :2], before[:, :2], **CLOSE)
    assert not torch.allclose(after[:, 2:], before[:, 2:])


def test_the_order_of_the_source_matters():
    model, swapped = transformer(), SOURCE[:, [1, 0, 2, 3, 4]]
    assert not torch.allclose(model(SOURCE, TARGET)[0], model(swapped, TARGET)[0])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_cached_stepping_equals_the_teacher_forced_pass(norm):
    model = transformer(norm=norm)
    logits, _ = model(SOURCE, TARGET)
    state = model.start(SOURCE)
    for t in range(TARGET.shape[1]):
        step_logits, state, _ = model.step(TARGET[:, t], state)
        torch.testing.assert_close(step_logits, logits[:, t], **CLOSE)


def test_the_output_layer_is_the_target_embedding():
    model = transformer()
    names = [name for name, p in model.named_parameters() if 13 in p.shape]
    assert names == ["target_embedding.weight"]


def test_transformer_has_the_size_of_the_comparison():
    """195,968 of the first measurement, less two norms that nothing used."""
    model = Transformer(168, 270)
    assert sum(p.numel() for p in model.parameters()) == 195_968 - 2 * 128


def test_xavier_treats_queries_keys_and_values_apart():
    torch.manual_seed(0)
    model = EncoderBlock(64, 4, 128)
    xavier(model)
    bound = (6 / 128) ** 0.5
    for matrix in model.attention.qkv.weight.chunk(3):
        assert 0.98 * bound < matrix.abs().max() <= bound
    assert (model.feed_forward.wide.bias == 0).all()


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        (SOURCE[0], TARGET, r"source has shape \(5,\)"),
        (SOURCE.float(), TARGET, "torch.float32, expected whole numbers"),
        (SOURCE, TARGET[0], r"target_in has shape \(4,\)"),
        (SOURCE.repeat(1, 2), TARGET, "10 tokens.*built for 9.*larger max_length"),
    ],
)
def test_transformer_refuses_what_does_not_fit(source, target, words):
    with pytest.raises(ValueError, match=words):
        transformer()(source, target)


def test_transformer_stops_at_the_end_of_its_positions():
    model = transformer(max_length=5)
    state = model.start(SOURCE)
    for _ in range(5):
        _, state, _ = model.step(TARGET[:, 0], state)
    with pytest.raises(ValueError, match=r"6 tokens.*built for 5"):
        model.step(TARGET[:, 0], state)


# ------------------------------------------------------------------------------ GPT


def gpt(**options) -> GPT:
    torch.manual_seed(0)
    return GPT(11, 8, D, HEADS, 2, **options).eval()


TOKENS = torch.tensor([[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]])
POSITIONS = pytest.mark.parametrize("positions", ["learned", "rotary", "none"])


@POSITIONS
def test_gpt_cannot_see_the_future(positions):
    model, changed = gpt(positions=positions), TOKENS.clone()
    changed[:, 3] = 10
    before, after = model(TOKENS)[0], model(changed)[0]
    torch.testing.assert_close(after[:, :3], before[:, :3], **CLOSE)
    assert not torch.allclose(after[:, 3:], before[:, 3:])


def test_one_pass_of_gpt_equals_a_pass_over_every_beginning():
    """The theorem of chapter 09, on the course's own model."""
    torch.manual_seed(0)
    model = GPT(11, 9, 12, 3, n_layers=3).double()
    tokens = torch.randint(11, (2, 9))
    whole = model(tokens)[0]
    for t in range(9):
        torch.testing.assert_close(model(tokens[:, : t + 1])[0][:, -1], whole[:, t])


@POSITIONS
def test_gpt_weights_change_no_logit(positions):
    model = gpt(positions=positions)
    logits, none = model(TOKENS)
    expected, weights = model(TOKENS, need_weights=True)
    assert none is None
    torch.testing.assert_close(logits, expected, **CLOSE)
    assert weights.shape == (2, 2, HEADS, 6, 6)
    assert (weights.triu(1) == 0).all()


@POSITIONS
@pytest.mark.parametrize("n_read", [0, 1, 4])
def test_gpt_cached_stepping_equals_the_whole_pass(positions, n_read):
    model = gpt(positions=positions)
    logits, _ = model(TOKENS)
    caches = model.start(TOKENS[:, :n_read])
    for t in range(n_read, 6):
        step_logits, caches, _ = model.step(TOKENS[:, t], caches)
        torch.testing.assert_close(step_logits, logits[:, t], **CLOSE)


@POSITIONS
def test_gpt_can_read_several_tokens_onto_a_cache(positions):
    model = gpt(positions=positions)
    expected, _ = model.read(TOKENS)
    caches = model.start(TOKENS[:, :2])
    states, _ = model.read(TOKENS[:, 2:], caches)
    torch.testing.assert_close(states, expected[:, 2:], **CLOSE)


def test_the_cache_is_set_aside_once():
    model = gpt()
    caches = model.start(TOKENS[:, :1])
    where = [cache.keys.data_ptr() for cache in caches]
    for t in range(1, 6):
        _, caches, _ = model.step(TOKENS[:, t], caches)
    assert [cache.keys.data_ptr() for cache in caches] == where
    assert isinstance(caches[0], KeyValueCache)
    assert caches[0].keys.shape == (2, HEADS, 8, D // HEADS)


def test_only_positions_tell_gpts_last_token_the_order_before_it():
    """One layer without positions sees a set of earlier tokens; rotary ones do not."""
    swapped = TOKENS[:, [1, 0, 2, 3, 4, 5]]
    torch.manual_seed(0)
    none = GPT(11, 8, D, HEADS, 1, positions="none")
    last = none(TOKENS)[0][:, -1]
    torch.testing.assert_close(last, none(swapped)[0][:, -1], **CLOSE)
    rotary = GPT(11, 8, D, HEADS, 1, positions="rotary")
    assert not torch.allclose(rotary(TOKENS)[0][:, -1], rotary(swapped)[0][:, -1])


def test_tied_weights_are_one_tensor_and_free_ones_two():
    tied, free = gpt(), gpt(tied=False)
    assert tied.head.weight is tied.embedding.weight
    assert free.head.weight is not free.embedding.weight
    count = [sum(p.numel() for p in model.parameters()) for model in (tied, free)]
    assert count[1] - count[0] == 11 * D


def test_gpt_starts_near_a_uniform_guess():
    """The first loss is near ln(n_tokens): no token is preferred for no reason."""
    torch.manual_seed(0)
    model = GPT(512, 64)
    tokens, other = torch.randint(0, 512, (2, 8, 64))
    loss = F.cross_entropy(model(tokens)[0].flatten(0, 1), other.flatten())
    assert abs(loss - math.log(512)) < 1.0


def test_gpt_refuses_more_tokens_than_it_has_positions_or_room_for():
    with pytest.raises(ValueError, match=r"9 tokens.*built for 8"):
        gpt()(torch.ones(1, 9, dtype=torch.long))
    model = gpt(positions="rotary")
    model(torch.ones(1, 9, dtype=torch.long))
    with pytest.raises(ValueError, match="9 tokens do not fit into a cache of 8"):
        model.start(torch.ones(1, 9, dtype=torch.long))
    with pytest.raises(ValueError, match=r"tokens has shape \(6,\)"):
        gpt()(TOKENS[0])


def test_caches_have_the_type_and_place_of_the_model():
    (cache,) = empty_caches(1, 2, 3, 5, torch.zeros(2, 12, dtype=torch.float64))
    assert cache.keys.shape == (2, 3, 5, 4)
    assert cache.values.dtype == torch.float64


@pytest.mark.parametrize("model", [transformer(), gpt(), gpt(positions="rotary")])
def test_every_parameter_learns(model):
    inputs = (SOURCE, TARGET) if isinstance(model, Transformer) else (TOKENS,)
    model.zero_grad()
    model(*inputs)[0].square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


# ------------------------------------------------------------------ PyTorch's own tools


def both_models() -> list[tuple[nn.Module, tuple[torch.Tensor, ...]]]:
    """A GPT and a Transformer, and what each is called with."""
    torch.manual_seed(0)
    tokens, target = torch.randint(1, 11, (2, 7)), torch.randint(1, 13, (2, 5))
    gpts = [GPT(11, 16, D, HEADS, positions=kind) for kind in ("learned", "rotary")]
    translator = Transformer(11, 13, D, HEADS, HIDDEN, max_length=16)
    models = [(gpt, (tokens,)) for gpt in gpts] + [(translator, (tokens, target))]
    return [(shaken(model), inputs) for model, inputs in models]


@pytest.mark.parametrize("activation", ["relu", "gelu", "relu2"])
def test_a_model_can_be_saved_whole(activation, tmp_path):
    model = shaken(GPT(11, 9, D, HEADS, activation=activation))
    torch.save(model, tmp_path / "whole.pt")
    again = torch.load(tmp_path / "whole.pt", weights_only=False)
    tokens = torch.randint(11, (2, 7))
    assert torch.equal(again(tokens)[0], model(tokens)[0])
    again = pickle.loads(pickle.dumps(model))
    assert torch.equal(again(tokens)[0], model(tokens)[0])


@pytest.mark.parametrize("case", range(3))
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Converting a tensor")
def test_a_trace_equals_the_model_on_other_tokens(case):
    model, inputs = both_models()[case]
    traced = torch.jit.trace(Logits(model), inputs)
    others = tuple(tokens.flip(1) for tokens in inputs)
    for x in (inputs, others):
        torch.testing.assert_close(traced(*x), model(*x)[0], **CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("case", range(3))
def test_an_export_with_open_lengths_equals_the_model(case):
    model, inputs = both_models()[case]
    batch, names = torch.export.Dim("batch", min=1, max=8), ("source", "target")
    shapes = tuple(
        {0: batch, 1: torch.export.Dim(name, min=2, max=16)}
        for name, _ in zip(names, inputs)
    )
    exported = torch.export.export(
        Logits(model), inputs, dynamic_shapes=(shapes,), strict=False
    ).module()
    for n_source, n_target in ((7, 5), (9, 3), (4, 11), (6, 6)):
        shorter = (torch.randint(1, 11, (3, n)) for n in (n_source, n_target))
        x = tuple(tokens for tokens, _ in zip(shorter, inputs))
        torch.testing.assert_close(exported(*x), model(*x)[0], **CLOSE)


class Logits(nn.Module):
    """A model's logits alone: what is exported has one output."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, *tokens: torch.Tensor) -> torch.Tensor:
        return self.model(*tokens)[0]


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("case", range(3))
def test_a_model_made_on_meta_is_whole_once_its_weights_are_loaded(case, assign):
    model, inputs = both_models()[case]
    with torch.device("meta"):
        empty = both_models()[case][0]
    if not assign:
        empty.to_empty(device="cpu")
        for buffer in empty.buffers():
            buffer.fill_(torch.nan)  # whatever the memory held
    empty.load_state_dict(model.state_dict(), assign=assign)
    assert torch.equal(empty.eval()(*inputs)[0], model(*inputs)[0])
