"""BERT reads both sides, blanks don't leak, and adapters change what they should."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from course_utils.data.corpus import PAD
from course_utils.models.bert import (
    BERT,
    IGNORE,
    SentenceClassifier,
    mask_tokens,
    masked_loss,
)
from course_utils.models.lora import LoRALinear, add_lora, merge_lora, trainable
from course_utils.models.transformer import GPT

N_TOKENS, MASK = 23, 22
SIZES = {"n_tokens": N_TOKENS, "max_length": 9, "d_model": 12, "n_heads": 3}


def drawn(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return BERT(**SIZES).eval()


@pytest.fixture
def tokens():
    found = torch.randint(4, MASK, (5, 7), generator=drawn())
    found[:, 0], found[:, -1] = 1, 2
    return found


# ---------------------------------------------------------------------------- the model


@torch.no_grad()
def test_it_has_gpts_parameters_and_reads_the_right_side(model, tokens):
    gpt = GPT(**SIZES).eval()
    gpt.load_state_dict(model.state_dict())
    other = tokens.clone()
    other[:, 5] = (tokens[:, 5] - 4 + 1) % 10 + 4
    moved = {}
    for name, one in (("BERT", model), ("GPT", gpt)):
        change = (one.read(tokens)[0] - one.read(other)[0]).abs().amax(dim=(0, 2))
        moved[name] = (change > 1e-6).tolist()
    assert moved == {"BERT": [True] * 7, "GPT": [False] * 5 + [True] * 2}


@torch.no_grad()
def test_padding_changes_nothing(model, tokens):
    padded = nn.functional.pad(tokens, (0, 2), value=PAD)
    torch.testing.assert_close(model(padded)[0][:, :7], model(tokens)[0])
    classifier = SentenceClassifier(model, 3)
    torch.testing.assert_close(classifier(padded), classifier(tokens))


def test_it_refuses_to_write(model, tokens):
    with pytest.raises(ValueError, match="can't write token by token"):
        model.start(tokens)


# ------------------------------------------------------------------------------- blanks


def test_only_words_are_blanked_and_only_blanks_are_asked():
    tokens = torch.randint(0, MASK, (300, 40), generator=drawn(1))
    inputs, targets = mask_tokens(tokens, MASK, N_TOKENS, drawn(2))
    asked = targets != IGNORE
    assert not (asked & (tokens < 4)).any()
    assert torch.equal(targets[asked], tokens[asked])
    assert torch.equal(inputs[~asked], tokens[~asked])
    share = asked.sum() / (tokens >= 4).sum()
    blank = (inputs[asked] == MASK).float().mean()
    kept = (inputs[asked] == tokens[asked]).float().mean()
    assert abs(share - 0.15) < 0.02
    assert abs(blank - 0.8) < 0.03
    assert abs(kept - 0.1) < 0.03


def test_the_loss_does_not_ask_for_what_is_shown(model, tokens):
    targets = torch.full_like(tokens, IGNORE)
    targets[0, 3] = tokens[0, 3]
    with torch.no_grad():
        logits = model(tokens)[0][0, 3].log_softmax(dim=-1)
        loss = masked_loss(model, tokens, targets)
    assert loss.item() == pytest.approx(-logits[tokens[0, 3]].item(), abs=1e-5)


def test_a_share_that_is_none_is_refused(tokens):
    with pytest.raises(ValueError, match="between 0 and 1"):
        mask_tokens(tokens, MASK, N_TOKENS, drawn(), share=1.5)


# ----------------------------------------------------------------------------- adapters


@torch.no_grad()
def test_a_new_adapter_changes_nothing_and_a_merged_one_neither(model, tokens):
    whole = model(tokens)[0]
    adapted = copy.deepcopy(model)
    add_lora(adapted.blocks, rank=2)
    assert torch.equal(adapted(tokens)[0], whole)
    for module in adapted.modules():
        if isinstance(module, LoRALinear):
            module.up.copy_(torch.randn(module.up.shape, generator=drawn(3)))
    changed = adapted(tokens)[0]
    assert (changed - whole).abs().max() > 0.1
    merge_lora(adapted.blocks)
    assert not any(isinstance(m, LoRALinear) for m in adapted.modules())
    torch.testing.assert_close(adapted(tokens)[0], changed, atol=2e-5, rtol=1e-5)
    assert adapted.state_dict().keys() == model.state_dict().keys()


def test_only_the_adapters_learn(model):
    model.requires_grad_(False)
    add_lora(model.blocks, rank=2)
    names = [name for name, p in model.named_parameters() if p.requires_grad]
    assert names
    assert all(name.endswith((".down", ".up")) for name in names)
    layers = [m for m in model.modules() if isinstance(m, LoRALinear)]
    assert trainable(model) == sum(2 * (m.in_features + m.out_features) for m in layers)


@pytest.mark.parametrize("rank", [0, -1, 1.5, float("nan"), "4"])
def test_an_adapter_needs_a_rank(model, rank):
    with pytest.raises(ValueError, match=r"rank is .*expected"):
        add_lora(model.blocks, rank=rank)


def test_a_layer_without_bias_is_merged_without_one():
    layer = LoRALinear(nn.Linear(5, 3, bias=False), rank=2, alpha=6.0)
    with torch.no_grad():
        layer.up.fill_(0.5)
    x = torch.randn(4, 5, generator=drawn())
    expected = x @ layer.base.weight.T + 3.0 * x @ layer.down.T @ layer.up.T
    torch.testing.assert_close(layer(x), expected)
    assert layer.merge().bias is None
    torch.testing.assert_close(layer.merge()(x), expected)
