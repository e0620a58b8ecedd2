"""Recurrent models: the step, padding, additive attention, one interface."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from course_utils.models.rnn import (
    GRUEncoder,
    GRULanguageModel,
    Seq2Seq,
    Seq2SeqAttention,
    additive_scores,
    flip_real,
    gru_step,
)

SOURCE = torch.tensor([[4, 5, 6, 7, 2], [8, 9, 2, 0, 0]])
TARGET = torch.tensor([[1, 3, 4, 5], [1, 6, 7, 0]])


def models() -> list[nn.Module]:
    torch.manual_seed(0)
    fixed = Seq2Seq(11, 13, 5, 6)
    starts = ("zeros", "last", "projection")
    return [fixed, *(Seq2SeqAttention(11, 13, 5, 6, first_state=s) for s in starts)]


def test_gru_step_equals_torch_forward_and_backward():
    torch.manual_seed(0)
    cell = nn.GRUCell(4, 6)
    x = torch.randn(2, 4, requires_grad=True)
    state = torch.randn(2, 6, requires_grad=True)
    parameters = (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    made, wanted = gru_step(x, state, *parameters), cell(x, state)
    torch.testing.assert_close(made, wanted, rtol=1e-5, atol=1e-6)
    inputs = (x, state, *parameters)
    ours = torch.autograd.grad(made.square().sum(), inputs)
    theirs = torch.autograd.grad(wanted.square().sum(), inputs)
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_additive_scores_by_loop():
    generator = torch.Generator().manual_seed(0)
    queries = torch.randn(2, 3, 4, generator=generator)
    keys, v = torch.randn(2, 5, 4, generator=generator), torch.randn(4)
    scores = additive_scores(queries, keys, v)
    assert scores.shape == (2, 3, 5)
    for b in range(2):
        for t in range(3):
            for j in range(5):
                expected = v @ torch.tanh(queries[b, t] + keys[b, j])
                torch.testing.assert_close(scores[b, t, j], expected)


def test_additive_scores_refuse_widths_that_differ():
    with pytest.raises(ValueError, match=r"\(2, 3, 4\).*\(2, 5, 6\).*width of v"):
        additive_scores(torch.zeros(2, 3, 4), torch.zeros(2, 5, 6), torch.zeros(6))
    with pytest.raises(ValueError, match=r"v \(4,\)"):
        additive_scores(torch.zeros(2, 3, 6), torch.zeros(2, 5, 6), torch.zeros(4))


def test_additive_scores_refuse_a_missing_axis_and_another_batch():
    with pytest.raises(ValueError, match=r"queries has shape \(2, 4\).*`s\[:, None\]`"):
        additive_scores(torch.zeros(2, 4), torch.zeros(2, 5, 4), torch.zeros(4))
    with pytest.raises(ValueError, match=r"\(3, 1, 4\).*\(2, 5, 4\).*its own source"):
        additive_scores(torch.zeros(3, 1, 4), torch.zeros(2, 5, 4), torch.zeros(4))


@pytest.mark.parametrize("build", [Seq2Seq, Seq2SeqAttention])
def test_padding_before_a_token_is_refused(build):
    """Read from the left it would count: the translation changed without a word."""
    model, target = build(11, 13, 5, 6), torch.tensor([[1, 3], [1, 4]])
    for row in ([0, 0, 4, 5], [4, 0, 0, 5]):
        with pytest.raises(ValueError, match=r"padding \(id 0\) before a token"):
            model(torch.tensor([[4, 5, 6, 2], row]), target)
    model(torch.tensor([[4, 5, 6, 2], [4, 2, 0, 0]]), target)
    model(torch.tensor([[4, 5, 6, 2], [0, 0, 0, 0]]), target)


@pytest.mark.parametrize("lengths", [[6, 3], [-1, 3], [5], [[5, 3]], [5, 3, 2]])
def test_flip_real_refuses_lengths_that_do_not_fit(lengths):
    with pytest.raises(ValueError, match="lengths"):
        flip_real(torch.zeros(2, 5, 3), torch.tensor(lengths))


def test_flip_real_reverses_the_real_tokens_alone():
    x = torch.arange(10.0).view(2, 5, 1)
    flipped = flip_real(x, torch.tensor([5, 3]))[..., 0]
    assert flipped[0].tolist() == [4, 3, 2, 1, 0]
    assert flipped[1, :3].tolist() == [7, 6, 5]
    assert torch.equal(flip_real(flipped[..., None], torch.tensor([5, 3])), x)


def test_encoder_equals_torchs_packed_bidirectional_gru():
    torch.manual_seed(0)
    encoder, lengths = GRUEncoder(11, 4, 6), torch.tensor([5, 3])
    gru = nn.GRU(4, 6, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for name, value in encoder.forwards.named_parameters():
            getattr(gru, name).copy_(value)
        for name, value in encoder.backwards.named_parameters():
            getattr(gru, name + "_reverse").copy_(value)
    states, summary, mask = encoder(SOURCE)
    packed = nn.utils.rnn.pack_padded_sequence(
        encoder.embedding(SOURCE), lengths, batch_first=True
    )
    expected, last = gru(packed)
    expected, _ = nn.utils.rnn.pad_packed_sequence(expected, batch_first=True)
    assert mask.tolist() == (SOURCE != 0).tolist()
    torch.testing.assert_close(states[mask], expected[mask], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(summary, torch.cat([*last], -1), rtol=1e-5, atol=1e-6)


def test_encoder_refuses_one_sentence_without_a_batch():
    with pytest.raises(ValueError, match=r"source has shape \(5,\), expected \(batch"):
        GRUEncoder(11, 4, 6)(SOURCE[0])
    with pytest.raises(ValueError, match="at least one token"):
        GRUEncoder(11, 4, 6)(SOURCE[:, :0])


@pytest.mark.parametrize(
    "model", models(), ids=["fixed", "zeros", "last", "projection"]
)
def test_padding_of_the_source_changes_nothing(model):
    logits, weights = model(SOURCE, TARGET)
    alone, own = model(SOURCE[1:, :3], TARGET[1:])
    torch.testing.assert_close(logits[1:], alone, rtol=1e-5, atol=1e-6)
    if weights is not None:
        assert (weights[1, :, 3:] == 0).all()
        torch.testing.assert_close(weights[1:, :, :3], own, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "model", models(), ids=["fixed", "zeros", "last", "projection"]
)
def test_stepping_equals_the_teacher_forced_pass(model):
    logits, weights = model(SOURCE, TARGET)
    state = model.start(SOURCE)
    for t in range(TARGET.shape[1]):
        step_logits, state, step_weights = model.step(TARGET[:, t], state)
        torch.testing.assert_close(step_logits, logits[:, t], rtol=1e-5, atol=1e-6)
        if weights is None:
            assert step_weights is None
        else:
            torch.testing.assert_close(step_weights, weights[:, t])


@pytest.mark.parametrize(
    "model", models(), ids=["fixed", "zeros", "last", "projection"]
)
def test_a_later_target_token_cannot_move_an_earlier_output(model):
    changed = TARGET.clone()
    changed[:, 2] = 12
    before, after = model(SOURCE, TARGET)[0], model(SOURCE, changed)[0]
    torch.testing.assert_close(after[:, :2], before[:, :2])
    assert not torch.allclose(after[:, 2:], before[:, 2:])


def test_attention_weights_sum_to_one_over_the_source():
    _, weights = models()[3](SOURCE, TARGET)
    assert weights.shape == (2, 4, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4))


def test_the_query_is_the_previous_state():
    """Bahdanau: the first weights depend on s_0 alone, not on the first token."""
    model, other = models()[3], TARGET.clone()
    other[:, 0] = 12
    first, again = model(SOURCE, TARGET)[1], model(SOURCE, other)[1]
    assert torch.equal(first[:, 0], again[:, 0])
    assert not torch.allclose(first[:, 1], again[:, 1])


def test_decoder_states_begin_as_the_name_says():
    _, zeros, last, projection = models()
    assert (zeros.start(SOURCE).decoder_state == 0).all()
    _, summary, _ = last.encoder(SOURCE)
    assert torch.equal(last.start(SOURCE).decoder_state, summary[:, :6])
    _, summary, _ = projection.encoder(SOURCE)
    expected = torch.tanh(projection.first_state.projection(summary))
    assert torch.equal(projection.start(SOURCE).decoder_state, expected)
    with pytest.raises(ValueError, match="'first', expected 'zeros', 'last'"):
        Seq2SeqAttention(11, 13, first_state="first")


def test_every_parameter_of_the_models_learns():
    for model in models():
        model(SOURCE, TARGET)[0].square().sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.abs().sum() > 0, name


def test_fixed_and_attention_models_have_like_sizes_in_chapter_03():
    def count(model: nn.Module) -> int:
        return sum(p.numel() for p in model.parameters())

    assert count(Seq2Seq(168, 270, 64, 72)) == 194_534
    assert count(Seq2SeqAttention(168, 270, 64, 64)) == 182_158


@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("n_read", [0, 1, 3])
def test_language_model_stepping_equals_the_whole_pass(n_layers, n_read):
    torch.manual_seed(0)
    model = GRULanguageModel(11, 4, 6, n_layers)
    tokens = torch.randint(0, 11, (2, 5))
    logits, weights = model(tokens)
    assert weights is None
    state = model.start(tokens[:, :n_read])
    for t in range(n_read, 5):
        step_logits, state, _ = model.step(tokens[:, t], state)
        torch.testing.assert_close(step_logits, logits[:, t], rtol=1e-5, atol=1e-6)
