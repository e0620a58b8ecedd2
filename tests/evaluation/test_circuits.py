"""What is read from the inside of a model adds up, and what is changed is undone."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from course_utils.evaluation import circuits
from course_utils.models.attention_only import AttentionOnly
from course_utils.models.transformer import GPT
from course_utils.tasks.repeats import repeated, second_copy, unseen_chance

N_TOKENS, HEADS, LAYERS = 11, 3, 2


@pytest.fixture
def model():
    torch.manual_seed(0)
    return AttentionOnly(N_TOKENS, 12, HEADS, LAYERS).eval()


@pytest.fixture
def tokens():
    return repeated(4, torch.Generator().manual_seed(1), 5, N_TOKENS)


@torch.no_grad()
def test_the_terms_of_the_logits_add_up_to_them(model, tokens):
    terms = circuits.logit_terms(model, tokens)
    assert len(terms) == 1 + LAYERS * HEADS
    torch.testing.assert_close(terms.sum(dim=0), model(tokens)[0], atol=1e-5, rtol=0)


@torch.no_grad()
def test_the_terms_come_in_the_order_of_layers_and_heads(model, tokens):
    terms = circuits.stream_terms(model, tokens)
    torch.testing.assert_close(terms[0], model.embedding(tokens))
    first, _ = model.blocks[0](terms[0])
    torch.testing.assert_close(terms[: 1 + HEADS].sum(dim=0), first)
    with circuits.edit_heads(model, {(1, 2): 0.0}):
        without = circuits.stream_terms(model, tokens)
    assert without[-1].abs().max() == 0
    torch.testing.assert_close(without[:-1], terms[:-1])


@torch.no_grad()
def test_the_lens_ends_in_the_logits_and_starts_at_the_embedding(model, tokens):
    lens = circuits.logit_lens(model, tokens)
    torch.testing.assert_close(lens[-1], model(tokens)[0])
    start = model.head(model.norm(model.embedding(tokens)))
    torch.testing.assert_close(lens[0], start)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["attention only", "GPT"])
def test_a_head_replaced_by_itself_changes_nothing_and_by_zero_something(kind, tokens):
    torch.manual_seed(0)
    made = AttentionOnly(N_TOKENS, 12, HEADS) if kind != "GPT" else None
    model = made or GPT(N_TOKENS, 10, 12, HEADS).eval()
    whole = model(tokens)[0]
    contexts = circuits.head_contexts(model, tokens)
    assert contexts.shape == (LAYERS, 4, HEADS, 10, 4)
    with circuits.edit_heads(model, {(0, 1): contexts[0, :, 1]}):
        torch.testing.assert_close(model(tokens)[0], whole)
    with circuits.edit_heads(model, {(0, 1): 0.0}):
        assert (model(tokens)[0] - whole).abs().max() > 1e-3
    assert torch.equal(model(tokens)[0], whole)  # the model is whole again


def test_the_model_is_whole_again_after_an_error(model, tokens):
    whole = model(tokens)[0]
    with (
        pytest.raises(RuntimeError, match="stop"),
        circuits.edit_heads(model, {(1, 0): 0.0}),
    ):
        raise RuntimeError("stop")
    assert torch.equal(model(tokens)[0], whole)


@torch.no_grad()
@pytest.mark.parametrize("part", circuits.PARTS)
def test_hiding_nothing_changes_nothing_and_hiding_something_one_part(
    model, tokens, part
):
    whole = model(tokens)[0]
    write = circuits.stream_terms(model, tokens)[1]
    with circuits.hide_from(model, 1, part, torch.zeros(())):
        torch.testing.assert_close(model(tokens)[0], whole)
    weights = model(tokens, need_weights=True)[1]
    with circuits.hide_from(model, 1, part, write):
        changed, after = model(tokens, need_weights=True)
    assert (changed - whole).abs().max() > 1e-3
    assert torch.equal(after[0], weights[0])
    assert torch.equal(after[1], weights[1]) == (part == "values")
    assert torch.equal(model(tokens)[0], whole)


def test_heads_and_parts_that_do_not_exist_are_refused(model, tokens):
    with (
        pytest.raises(ValueError, match="there is no head"),
        circuits.edit_heads(model, {(2, 0): 0.0}),
    ):
        pass
    with (
        pytest.raises(ValueError, match="part is 'query'"),
        circuits.hide_from(model, 1, "query", torch.zeros(())),
    ):
        pass
    with pytest.raises(ValueError, match="expected a model whose `blocks`"):
        circuits.head_contexts(torch.nn.Linear(2, 2), tokens)


def test_an_induction_circuit_by_hand_scores_one():
    tokens = repeated(3, torch.Generator().manual_seed(2), 6, N_TOKENS)
    one_hot, n = F.one_hot(tokens, N_TOKENS).float(), tokens.shape[1]
    causal = torch.ones(n, n).tril().log()
    before = torch.eye(n).roll(1, dims=0).tril(-1)  # row i looks at i - 1
    carried = before @ one_hot  # layer 1 writes the token before
    scores = 50 * one_hot @ carried.mT + causal
    scores[:, torch.arange(n), torch.arange(n)] += 25  # no copy yet: look at yourself
    weights = torch.stack([before.expand(3, n, n), scores.softmax(dim=-1)])[:, :, None]
    assert circuits.previous_token(weights)[0, 0] == 1
    assert circuits.prefix_matching(weights, tokens)[1, 0] > 0.999
    assert circuits.prefix_matching(weights, tokens)[0, 0] == 0
    predicted = weights[1, :, 0] @ one_hot
    logits, right = second_copy(predicted, tokens)
    assert (logits.argmax(dim=-1) == right).all()


def test_only_positions_after_an_earlier_copy_are_marked():
    marked = circuits.after_same(torch.tensor([[5, 7, 5, 5]]))[0]
    expected = torch.zeros(4, 4, dtype=torch.bool)
    expected[2, 1] = True  # after the first 5
    expected[3, 1] = expected[3, 3] = True  # after the first 5 and the second
    assert torch.equal(marked, expected)
    no_copy = torch.tensor([[1, 2, 3]])
    with pytest.raises(ValueError, match="no token comes twice"):
        circuits.prefix_matching(torch.rand(1, 1, 1, 3, 3), no_copy)


def test_the_second_copy_is_what_can_be_predicted():
    tokens = repeated(3, torch.Generator().manual_seed(3), 4, N_TOKENS)
    assert torch.equal(tokens[:, :4], tokens[:, 4:])
    assert all(len(set(row[:4].tolist())) == 4 for row in tokens)
    _, right = second_copy(torch.zeros(3, 8, N_TOKENS), tokens)
    assert torch.equal(right.view(3, 3), tokens[:, 1:4])
    assert unseen_chance(4) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    with pytest.raises(ValueError, match="only 3 different"):
        repeated(2, torch.Generator(), 4, 3)
