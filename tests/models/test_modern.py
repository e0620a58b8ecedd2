"""Today's block: equal to the old one at its defaults, and to Hugging Face's models."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import pytest
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file
from torch import nn

from course_utils.evaluation.decoding import generate
from course_utils.models import modern, positions
from course_utils.models.attention import (
    MultiHeadAttention,
    attention,
    causal_mask,
    merge_heads,
)
from course_utils.models.blocks import ACTIVATIONS, EncoderBlock
from course_utils.models.choices import LLAMA, NANOCHAT, Choices
from course_utils.models.modern import GroupedQueryAttention, ModernBlock
from course_utils.models.modern_gpt import ModernGPT, cache_bytes, padding_left
from course_utils.models.pretrained import (
    from_hugging_face,
    load_gpt2,
    read_safetensors,
    turned_back,
)
from course_utils.models.transformer import GPT

TOKENS = torch.tensor([[1, 3, 4, 5, 9, 2, 7], [8, 6, 7, 0, 3, 3, 1]])
SMALL = {"n_tokens": 11, "max_length": 16, "d_model": 24, "n_heads": 6}
VARIANTS = {
    "2017": Choices(),
    "Llama": replace(LLAMA, n_kv_heads=2),
    "nanochat": replace(NANOCHAT, n_kv_heads=1),
    "window": replace(LLAMA, windows=(3, None)),
    "cap": Choices(soft_cap=2.0, qk_norm=True, windows=(4,)),
    "ALiBi": Choices(positions="alibi", n_kv_heads=2, windows=(3, None)),
}


def variant(name: str, **more: int) -> ModernGPT:
    torch.manual_seed(0)
    model = ModernGPT(**SMALL, n_layers=3, choices=VARIANTS[name]).eval()
    for p in model.parameters():  # what starts at zero or one has to count, too
        nn.init.normal_(p, std=0.3)
    return model


# ------------------------------------------------------------ equal to what there was


def test_at_its_defaults_the_block_is_chapter_elevens():
    torch.manual_seed(0)
    old, new = EncoderBlock(12, 3, 48, activation="gelu"), ModernBlock(12, 3)
    new.load_state_dict(old.state_dict())
    x = torch.randn(2, 5, 12)
    expected = old(x, causal=True, need_weights=True)
    torch.testing.assert_close(new(x, causal=True, need_weights=True), expected)


@pytest.mark.parametrize("kind", ["learned", "rotary", "none"])
def test_at_its_defaults_the_model_is_chapter_thirteens(kind):
    models = []
    for make in (
        GPT,
        lambda *a, positions: ModernGPT(*a, choices=Choices(positions=positions)),
    ):
        torch.manual_seed(3)
        models.append(make(11, 16, 24, 6, positions=kind))
    old, new = models
    assert [n for n, _ in old.named_parameters()] == [
        n for n, _ in new.named_parameters()
    ]
    torch.testing.assert_close(new(TOKENS)[0], old(TOKENS)[0], rtol=0, atol=1e-6)
    prompt = TOKENS[:, :2]
    assert torch.equal(generate(new, prompt, 9, 0), generate(old, prompt, 9, 0))


def test_as_many_key_value_heads_as_heads_is_multi_head_attention():
    old, new = MultiHeadAttention(12, 3), GroupedQueryAttention(12, 3, 3)
    new.load_state_dict(old.state_dict())
    x = torch.randn(2, 5, 12)
    torch.testing.assert_close(new(x, causal=True)[0], old(x, causal=True)[0])


def test_shared_heads_are_one_head_computed_several_times():
    """Multi-head attention whose matrices repeat gives what sharing gives."""
    shared, full = GroupedQueryAttention(24, 6, 2), MultiHeadAttention(24, 6)
    query, key, value = shared.qkv.weight.split(shared.sizes)
    bias = shared.qkv.bias.split(shared.sizes)
    with torch.no_grad():
        for side, (one, several) in enumerate(zip((key, value), bias[1:]), start=1):
            rows = one.view(2, 4, 24).repeat_interleave(3, dim=0).flatten(0, 1)
            full.qkv.weight[24 * side : 24 * side + 24] = rows
            offsets = several.view(2, 4).repeat_interleave(3, dim=0).flatten()
            full.qkv.bias[24 * side : 24 * side + 24] = offsets
        full.qkv.weight[:24], full.qkv.bias[:24] = query, bias[0]
        full.output.load_state_dict(shared.output.state_dict())
    x = torch.randn(2, 5, 24)
    torch.testing.assert_close(shared(x, causal=True)[0], full(x, causal=True)[0])


def test_rms_norm_is_pytorchs():
    x, gamma = torch.randn(3, 5, 8), torch.randn(8)
    expected = F.rms_norm(x, (8,), gamma, 1e-5)
    torch.testing.assert_close(modern.rms_norm(x, gamma), expected)


def test_a_window_is_attention_with_a_mask():
    torch.manual_seed(0)
    layer = GroupedQueryAttention(12, 3)
    x = torch.randn(2, 7, 12)
    mask = modern.window_mask(7, 7, 3)
    apart = torch.arange(7)[:, None] - torch.arange(7)
    assert torch.equal(mask, (apart >= 0) & (apart < 3))
    queries, keys, values = (
        p.unflatten(-1, (3, 4)).transpose(1, 2) for p in layer.qkv(x).chunk(3, -1)
    )
    context, _ = attention(queries, keys, values, mask)
    torch.testing.assert_close(layer(x, mask)[0], layer.output(merge_heads(context)))


def test_a_model_with_windows_sees_through_them_and_no_further():
    model = variant("cap")  # three layers of windows of four
    changed = TOKENS.clone()
    changed[:, 0] += 1
    short = ModernGPT(11, 16, 24, 6, 1, choices=Choices(windows=(4,))).eval()
    moved = (short(TOKENS)[0] - short(changed)[0]).abs().amax(dim=(0, 2)) > 1e-6
    assert moved.tolist() == [True] * 4 + [False] * 3
    moved = (model(TOKENS)[0] - model(changed)[0]).abs().amax(dim=(0, 2)) > 1e-6
    assert moved.all()


def test_a_cap_bounds_the_scores_and_hardly_moves_small_ones():
    scores = torch.tensor([-1e4, -0.1, 0.0, 0.1, 1e4])
    capped = modern.soft_cap(scores, 50.0)
    assert capped.abs().max() <= 50
    torch.testing.assert_close(capped[1:4], scores[1:4], rtol=1e-5, atol=0)
    x = [torch.randn(2, 6, 5, 4) for _ in range(3)]
    loose, _ = modern.grouped_attention(*x, causal=True, cap=1e4)
    torch.testing.assert_close(loose, attention(*x, causal_mask(5))[0])


@pytest.mark.parametrize("soft_cap", [None, 3.0])
def test_alibi_reaches_the_scores_of_every_layer(soft_cap):
    """A model with ALiBi is one without positions whose scores get the bias."""
    torch.manual_seed(0)
    choices = Choices(positions="alibi", soft_cap=soft_cap)
    biased = ModernGPT(**SMALL, n_layers=1, choices=choices).eval()
    (block,) = biased.blocks
    x = biased.embedding(TOKENS)
    normed = block.around_attention.before(x)
    queries, keys, values = (
        part.unflatten(-1, (6, 4)).transpose(1, 2)
        for part in block.attention.qkv(normed).chunk(3, -1)
    )
    scores = queries @ keys.mT / 2
    scores = scores if soft_cap is None else modern.soft_cap(scores, soft_cap)
    scores = scores + positions.alibi(6, TOKENS.shape[1])
    past = causal_mask(TOKENS.shape[1])
    weights = scores.masked_fill(~past, -torch.inf).softmax(-1)
    x = x + block.attention.output(merge_heads(weights @ values))
    x = x + block.feed_forward(block.around_feed_forward.before(x))
    expected = biased.head(biased.norm(x))
    torch.testing.assert_close(biased(TOKENS)[0], expected)


def test_dropped_weights_are_those_of_training_alone():
    torch.manual_seed(0)
    model = ModernGPT(11, 16, 24, 6, choices=Choices(attention_dropout=0.5))
    model.train()
    assert not torch.equal(model(TOKENS)[0], model(TOKENS)[0])
    model.eval()
    assert torch.equal(model(TOKENS)[0], model(TOKENS)[0])


# -------------------------------------------------------------------------- positions


def test_the_two_layouts_of_rope_are_one_permutation_apart():
    x = torch.randn(2, 3, 5, 8)
    turns = positions.rotations(torch.arange(5), 8)
    halves = positions.to_halves(x)
    assert torch.equal(positions.to_neighbours(halves), x)
    expected = positions.to_halves(positions.rotate(x, turns))
    torch.testing.assert_close(positions.rotate_halves(halves, turns), expected)
    y = torch.randn(2, 3, 5, 8)
    scores = positions.rotate(x, turns) @ positions.rotate(y, turns).mT
    other = positions.rotate_halves(halves, turns) @ (
        positions.rotate_halves(positions.to_halves(y), turns).mT
    )
    torch.testing.assert_close(other, scores)


def test_the_base_sets_how_slowly_the_last_pair_turns():
    slow, fast = (positions.frequencies(8, base=b)[-1] for b in (5e5, 1e4))
    assert slow < fast / 10
    models = []
    for base in (1e4, 5e5):
        torch.manual_seed(0)
        choices = Choices(positions="rotary", base=base)
        models.append(ModernGPT(**SMALL, choices=choices)(TOKENS)[0])
    assert (models[0] - models[1]).abs().max() > 1e-3


# ------------------------------------------------------------- caches and left padding


@pytest.mark.parametrize("name", VARIANTS)
def test_cached_is_uncached(name):
    model = variant(name)
    expected = model(TOKENS)[0]
    for split in (0, 2, 5):
        state, found = model.start(TOKENS[:, :split]), []
        for token in TOKENS[:, split:].T:
            logits, state, _ = model.step(token, state)
            found.append(logits)
        torch.testing.assert_close(
            torch.stack(found, 1), expected[:, split:], rtol=0, atol=2e-5
        )


@pytest.mark.parametrize(("name", "split"), list(product(VARIANTS, (1, 7))))
def test_a_left_padded_batch_is_its_rows_one_by_one(name, split):
    model, lengths = variant(name), [7, 4, 5]
    rows = [torch.randint(1, 11, (n,)) for n in lengths]
    batch = torch.stack([F.pad(row, (7 - len(row), 0)) for row in rows])
    padding = padding_left(torch.tensor(lengths), 7)
    together = model(batch, padding=padding)[0]
    state = model.start(batch[:, :-split], padding)
    for token in batch[:, -split:].T:
        stepped, state, _ = model.step(token, state)
    for i, row in enumerate(rows):
        alone = model(row[None])[0][0]
        near = {"rtol": 0, "atol": 2e-5}
        torch.testing.assert_close(together[i, -len(row) :], alone, **near)
        torch.testing.assert_close(stepped[i], alone[-1], **near)


def test_fewer_key_value_heads_and_windows_hold_fewer_bytes():
    held = {}
    for name, choices in {
        "full": Choices(positions="rotary"),
        "two": Choices(positions="rotary", n_kv_heads=2),
        "one": Choices(positions="rotary", n_kv_heads=1),
        "window": Choices(positions="rotary", windows=(5,)),
    }.items():
        model = ModernGPT(**SMALL, n_layers=3, choices=choices).eval()
        state = model.start(torch.ones(2, 16).long())
        held[name] = cache_bytes(state)
    assert held["full"] == 2 * 3 * 2 * 16 * 24 * 4  # K and V, layers, rows, room, width
    assert held["two"] == held["full"] // 3
    assert held["one"] == held["full"] // 6
    assert held["window"] == held["full"] // 16 * 4  # window - 1 tokens of 16


# --------------------------------------------------------------- Hugging Face's models


def redrawn(model: nn.Module) -> nn.Module:
    """Draw every parameter anew: norms and biases do not start at what hides them."""
    torch.manual_seed(0)
    for p in model.parameters():
        nn.init.normal_(p, std=0.3)
    return model.eval()


def test_gpt2_gives_hugging_faces_logits():
    config = transformers.GPT2Config(
        vocab_size=29, n_positions=16, n_embd=24, n_layer=3, n_head=6
    )
    theirs = redrawn(transformers.GPT2LMHeadModel(config))
    ours = from_hugging_face(config.to_dict(), theirs.state_dict())
    expected = theirs(TOKENS).logits
    assert expected.std() > 0.1
    torch.testing.assert_close(ours(TOKENS)[0], expected, rtol=0, atol=1e-4)
    assert ours.head.weight is ours.embedding.weight


def test_tensors_are_read_as_the_library_writes_them(tmp_path):
    tensors = {
        "matrix": torch.randn(3, 5),
        "half": torch.randn(2, 3, 4).bfloat16(),
        "ids": torch.arange(7),
        "scalar": torch.tensor(2.5, dtype=torch.float64),
        "mask": torch.tensor([True, False]),
    }
    path = tmp_path / "some.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})
    found = read_safetensors(path)
    assert found.keys() == tensors.keys()
    for name, expected in tensors.items():
        assert torch.equal(found[name], expected)
        assert found[name].dtype == expected.dtype
    content = path.read_bytes()
    found["matrix"].zero_()  # a copy in memory: the file stays as it is
    assert path.read_bytes() == content
    for cut in (len(content) - 1, 40):
        path.write_bytes(content[:cut])
        with pytest.raises(ValueError, match="is cut"):
            read_safetensors(path)


def test_a_folder_of_gpt2_gives_hugging_faces_logits(tmp_path):
    """The files as they are published: no prefix, and buffers besides the weights."""
    config = transformers.GPT2Config(
        vocab_size=29, n_positions=16, n_embd=24, n_layer=3, n_head=6
    )
    theirs = redrawn(transformers.GPT2LMHeadModel(config))
    state = {n: w.contiguous() for n, w in theirs.transformer.state_dict().items()}
    state["h.0.attn.bias"] = torch.ones(1, 1, 16, 16)
    save_file(state, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()), "utf-8")
    ours = load_gpt2(tmp_path)
    expected = theirs(TOKENS).logits
    torch.testing.assert_close(ours(TOKENS)[0], expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("n_kv_heads", "tied"), [(6, False), (2, True), (1, False)])
def test_llama_gives_hugging_faces_logits(n_kv_heads, tied):
    config = transformers.LlamaConfig(
        vocab_size=29,
        hidden_size=24,
        intermediate_size=40,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=n_kv_heads,
        max_position_embeddings=16,
        tie_word_embeddings=tied,
        rope_theta=500.0,
    )
    theirs = redrawn(transformers.LlamaForCausalLM(config))
    ours = from_hugging_face(config.to_dict(), theirs.state_dict())
    expected = theirs(TOKENS).logits
    assert expected.std() > 0.1
    torch.testing.assert_close(ours(TOKENS)[0], expected, rtol=0, atol=1e-4)
    state = ours.start(TOKENS[:, :4])
    for token in TOKENS[:, 4:].T:
        logits, state, _ = ours.step(token, state)
    torch.testing.assert_close(logits, expected[:, -1], rtol=0, atol=1e-4)


@pytest.mark.parametrize("n_kv_heads", [6, 2])
def test_nanochat_gives_hugging_faces_logits(n_kv_heads):
    """Its queries and keys turn the other way round: that is undone by signs."""
    config = transformers.NanoChatConfig(
        vocab_size=29,
        hidden_size=24,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=n_kv_heads,
        max_position_embeddings=16,
    )
    theirs = redrawn(transformers.NanoChatForCausalLM(config))
    ours = from_hugging_face(config.to_dict(), theirs.state_dict())
    assert ours.choices == replace(NANOCHAT, n_kv_heads=n_kv_heads, eps=1e-6)
    expected = theirs(TOKENS).logits
    assert expected.std() > 0.1
    torch.testing.assert_close(ours(TOKENS)[0], expected, rtol=0, atol=1e-4)
    for block in ours.blocks:  # as they are stored
        weight = block.attention.qkv.weight
        weight.data = turned_back(weight.data, 6 + n_kv_heads, 4)
    assert (ours(TOKENS)[0] - expected).abs().max() > 0.1


def test_a_model_that_is_not_ours_is_refused():
    config = transformers.LlamaConfig(hidden_size=24, num_attention_heads=6).to_dict()
    with pytest.raises(ValueError, match="mlp_bias is True"):
        from_hugging_face(config | {"mlp_bias": True}, {})
    with pytest.raises(ValueError, match="model_type is 'bert'"):
        from_hugging_face({"model_type": "bert"}, {})
    with pytest.raises(ValueError, match=r"the weights have no 'embed_tokens\.weight'"):
        from_hugging_face(config, {"x": torch.ones(1)})


def test_tanh_gelu_is_gpt2s():
    x = torch.linspace(-5, 5, 101)
    theirs = transformers.activations.ACT2FN["gelu_new"]
    torch.testing.assert_close(ACTIVATIONS["gelu_tanh"](x), theirs(x))
    assert (ACTIVATIONS["gelu_tanh"](x) - F.gelu(x)).abs().max() > 1e-4


def test_unknown_choices_are_refused():
    with pytest.raises(ValueError, match="norm is 'batch'"):
        Choices(norm="batch")
    with pytest.raises(ValueError, match="activation is 'swish'"):
        Choices(feed_forward="swish")
    with pytest.raises(ValueError, match="no multiple of n_kv_heads = 4"):
        GroupedQueryAttention(24, 6, 4)
