"""The leak test: finds what leaks, is quiet where nothing does, and says so clearly."""

from __future__ import annotations

import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_utils.display.widgets.mask_painter import mask_painter
from course_utils.evaluation.leaks import LeakReport, changed_at, influence, leak_test
from course_utils.models.attention import attention, causal_mask, padding_mask
from course_utils.models.blocks import EncoderBlock
from course_utils.models.rnn import GRULanguageModel
from course_utils.models.transformer import GPT

N = 6


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def tokens(*shape: int, n_tokens: int = 11, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(n_tokens, shape, generator=generator)


def attend(mask):
    return lambda x: attention(x, x, x, mask)


def pairs(found) -> set[tuple[int, int]]:
    return {(leak.output, leak.input) for leak in found}


# ------------------------------------------------------------------- quiet where right


@pytest.mark.parametrize(
    "module",
    [
        attend(causal_mask(N)),
        lambda x: F.scaled_dot_product_attention(x, x, x, causal_mask(N)),
        lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
        lambda x: x.cumsum(dim=-2),
        nn.Linear(8, 3),
    ],
    ids=["ours", "sdpa mask", "sdpa is_causal", "running sum", "per token"],
)
def test_nothing_is_reported_where_nothing_leaks(module):
    report = leak_test(module, numbers(2, N, 8))
    assert report.leaks == []
    assert str(report).startswith("no leak: none of 15 forbidden pairs moved.")


def test_whole_models_on_tokens_pass():
    for model in (GPT(11, 9, 12, 3), GRULanguageModel(11, 5, 6)):
        assert leak_test(model, tokens(2, 7), n_tokens=11).leaks == []


def test_opposite_convention_of_pytorchs_module():
    module = nn.MultiheadAttention(8, 2, batch_first=True, dropout=0.5)
    right = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.5, batch_first=True)
    x, mask = numbers(3, N, 8), causal_mask(N)
    module.eval()
    report = leak_test(lambda x: module(x, x, x, attn_mask=~mask), x)
    assert report.leaks == []
    right.eval()
    assert leak_test(lambda x: right(x, src_mask=~mask), x).leaks == []
    padded = ~mask[:-1]  # without its last row nobody is left with nothing to see
    report = leak_test(
        lambda x: module(x[:, :-1], x, x, attn_mask=~padded, need_weights=False),
        x,
        mask[:-1],
    )
    assert pairs(report.leaks) == {
        (i, j) for i in range(N - 1) for j in range(i + 1, N)
    }


# ------------------------------------------------------------------- loud where wrong


def test_off_by_one_names_the_neighbour_on_the_right():
    wrong = torch.ones(N, N, dtype=torch.bool).tril(1)
    report = leak_test(attend(wrong), numbers(2, N, 8))
    assert pairs(report.leaks) == {(i, i + 1) for i in range(N - 1)}
    changes = [leak.change for leak in report.leaks]
    assert changes == sorted(changes, reverse=True)
    assert "LEAK: 5 of 15 forbidden pairs moved." in str(report)
    assert "output 0  + ! . . . ." in str(report)


def test_too_strict_is_no_leak_but_a_question():
    strict = torch.ones(N, N, dtype=torch.bool).tril(-2)
    report = leak_test(attend(strict), numbers(2, N, 8))
    assert report.leaks == []
    assert (3, 2) in pairs(report.unseen)
    assert (3, 1) not in pairs(report.unseen)
    assert "allowed pairs never moved" in str(report)
    assert "o allowed but unseen" in str(report)


def test_a_zero_after_the_softmax_leaks_everything():
    def late(x):
        return torch.softmax(x @ x.mT, dim=-1) * causal_mask(N) @ x

    report = leak_test(late, numbers(N, 8) / 3)
    assert len(report.leaks) == 15


def test_a_leak_outside_attention_is_found():
    assert len(
        leak_test(lambda x: x - x.mean(dim=-2, keepdim=True), numbers(N, 3)).leaks
    )
    report = leak_test(lambda x: x.roll(-1, dims=-2), numbers(2, N, 3))
    assert pairs(report.leaks) == {(i, i + 1) for i in range(N - 1)}


def test_a_float_mask_that_is_added_leaks():
    mask = causal_mask(N).float()
    found = leak_test(
        lambda x: F.scaled_dot_product_attention(x, x, x, mask), numbers(2, N, 8)
    )
    assert len(found.leaks) == 15


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 2**31), st.booleans())
def test_influence_is_exactly_the_mask_of_a_masked_sum(n_outputs, n_inputs, seed, ids):
    """For sums over allowed inputs what moves is what is allowed, no more, no less."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(n_outputs, n_inputs, generator=generator) < 0.5
    x = tokens(2, n_inputs, seed=seed) if ids else numbers(2, n_inputs, 3, seed=seed)

    def function(x):
        return mask.double() @ (x[..., None] if ids else x).double()

    report = leak_test(
        function, x, torch.zeros_like(mask), n_tokens=11 if ids else None
    )
    assert torch.equal(report.moved, mask)
    assert pairs(report.leaks) == {tuple(pair) for pair in mask.nonzero().tolist()}
    assert leak_test(function, x, mask, n_tokens=11 if ids else None).leaks == []


# ----------------------------------------------------------- what could hide a leak


def everyone(x):
    return attention(x, x, x)[0]


def huge_logits(x):
    banned = torch.full_like(x[..., :1], -1e9)  # as logits of forbidden words
    return torch.cat([everyone(x), banned], dim=-1)


def huge_row(x):
    return torch.cat([1e9 * x[:, :1], everyone(x)[:, 1:]], dim=1)


class SharedBuffer(nn.Module):
    """Write every output into the same memory, as a captured graph does."""

    def __init__(self):
        super().__init__()
        self.register_buffer("output", torch.zeros(2, N, 8))

    def forward(self, x):
        return self.output.copy_(everyone(x))


def writes_into_its_input(x):
    return everyone(x.add_(1.0))


@pytest.mark.parametrize(
    ("module", "n_leaks"),
    [
        (huge_logits, 15),
        (huge_row, 10),
        (SharedBuffer(), 15),
        (writes_into_its_input, 15),
    ],
    ids=["huge logits", "huge row", "shared buffer", "written in place"],
)
def test_neither_huge_entries_nor_shared_memory_hide_a_leak(module, n_leaks):
    x = numbers(2, N, 8)
    before = x.clone()
    assert len(leak_test(module, x).leaks) == n_leaks
    assert torch.equal(x, before)


def test_whole_numbers_are_compared_exactly():
    report = leak_test(lambda x: x.flip(-1) + 100_000_000, tokens(2, N))
    assert pairs(report.leaks) == {(0, 5), (1, 4), (2, 3)}
    small = tokens(40, 5, n_tokens=127).to(torch.int8)
    made = changed_at(small, 2, torch.Generator().manual_seed(0), 127)
    assert (made[:, 2] != small[:, 2]).all()
    assert made.min() >= 0


def test_rounding_is_no_leak():
    def shared_out(x):
        weights = torch.softmax(x @ x.mT / 8**0.5, dim=-1) * causal_mask(N)
        return weights / weights.sum(dim=-1, keepdim=True) @ x

    for seed in range(20):
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            x = numbers(2, N, 8, seed=seed).to(dtype)
            assert leak_test(shared_out, x).leaks == []


# -------------------------------------------------------------- rows of one batch


def test_a_row_that_sees_only_the_past_of_another_row_leaks():
    def mixed(x):
        return x.cumsum(dim=-2) + x.roll(1, dims=0).cumsum(dim=-2)

    report = leak_test(mixed, numbers(3, N, 2))
    found = {(leak.batch, leak.source) for leak in report.leaks}
    assert found == {((1,), (0,)), ((2,), (1,)), ((0,), (2,))}
    assert {(leak.output, leak.input) for leak in report.leaks} == {
        (i, j) for i in range(N) for j in range(i + 1)
    }
    text = str(report)
    assert text.startswith("LEAK across the batch: 63 times an output moved")
    assert "within rows, 0 of 15 forbidden pairs moved." in text
    sentence = r"  output \d of row (\d) moved by .+ when input \d of row (\d) changed"
    named = re.findall(sentence, text)
    assert len(named) == 6
    assert all((int(source) + 1) % 3 == int(row) for row, source in named)
    assert leak_test(mixed, numbers(1, N, 2)).leaks == []  # no other row to see


def test_axes_in_the_wrong_order_are_found_across_the_batch():
    report = leak_test(nn.GRU(8, 6), numbers(3, N, 8))  # expects the time axis first
    assert {(leak.batch, leak.source) for leak in report.crossed} == {
        ((1,), (0,)),
        ((2,), (0,)),
        ((2,), (1,)),
    }
    assert leak_test(nn.GRU(8, 6, batch_first=True), numbers(3, N, 8)).leaks == []


def test_statistics_of_a_batch_leak_between_its_rows():
    norm = nn.BatchNorm1d(8)
    in_training = leak_test(lambda x: norm(x.mT).mT, numbers(3, N, 8))
    assert in_training.crossed
    norm.eval()
    assert leak_test(lambda x: norm(x.mT).mT, numbers(3, N, 8)).leaks == []


# ----------------------------------------------------------- what a module may be like


def test_a_module_with_dropout_is_asked_in_eval_mode_and_left_as_it_was():
    model = GPT(11, 9, 12, 3, dropout=0.5).train()
    model.blocks[0].eval()
    before = torch.get_rng_state()
    assert leak_test(model, tokens(2, 7)).leaks == []
    assert model.training
    assert not model.blocks[0].training
    assert model.blocks[1].training
    assert torch.equal(before, torch.get_rng_state())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_modes_are_given_back_even_after_an_error():
    model = nn.Sequential(nn.Linear(3, 2), nn.Dropout()).train()
    with pytest.raises(ValueError, match="shapes cannot be multiplied"):
        leak_test(model, numbers(4, 5))
    assert model.training
    assert model[1].training


def test_random_outputs_are_refused():
    dropout = nn.Dropout(0.5)
    with pytest.raises(ValueError, match=r"two different outputs.*\.eval\(\)"):
        leak_test(lambda x: dropout(x), numbers(N, 8))


def test_tuples_batches_and_numbers_per_token_are_understood():
    block = EncoderBlock(8, 2, 12)
    report = leak_test(lambda x: block(x, causal=True), numbers(2, N, 8))
    assert report.leaks == []
    heads = leak_test(lambda x: (x.cumsum(-2), "weights"), numbers(2, 3, N, 4))
    assert heads.influence.shape == (N, N)
    assert leak_test(lambda x: x.cumsum(-1), tokens(2, N)).leaks == []
    assert leak_test(lambda x: x.flip(-1), tokens(N)).leaks


def test_a_mask_of_its_own_for_every_row_of_the_batch():
    padded = torch.tensor([[5, 6, 7, 0], [5, 3, 2, 1]])
    mask, x = padding_mask(padded) & causal_mask(4), numbers(2, 4, 8)
    own = mask | torch.eye(4, dtype=torch.bool)  # a query always depends on itself
    assert leak_test(attend(mask), x, own).leaks == []
    found = leak_test(attend(padding_mask(padded)), x, own).leaks
    assert {leak.batch for leak in found} == {(0,), (1,)}
    text = str(leak_test(attend(causal_mask(4)), x, padding_mask(padded)))
    assert "row 1 of the batch" in text
    forgotten = leak_test(attend(causal_mask(4)), x, mask).leaks
    assert [(leak.batch, leak.output, leak.input) for leak in forgotten] == [
        ((0,), 3, 3)
    ]
    assert str(forgotten[0]).startswith("output 3 of row 0 moved by")


def test_fewer_queries_than_keys_against_a_given_mask():
    x, allowed = numbers(2, 5, 8), causal_mask(2, 5)
    ours = leak_test(lambda x: attention(x[:, -2:], x, x, allowed), x, allowed)
    assert ours.leaks == ours.unseen == []
    top_left = leak_test(
        lambda x: F.scaled_dot_product_attention(x[:, -2:], x, x, is_causal=True),
        x,
        allowed,
    )
    assert top_left.leaks == []
    assert pairs(top_left.unseen) == {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)}


def test_half_precision_has_a_threshold_of_its_own():
    x = numbers(2, N, 8).half()
    assert leak_test(attend(causal_mask(N)), x).leaks == []
    assert leak_test(attend(None), x).leaks


def test_a_change_counts_above_the_tolerance():
    faint = leak_test(lambda x: x + 1e-3 * x.flip(-2), numbers(N, 3), tolerance=0.1)
    assert faint.leaks == []
    assert leak_test(lambda x: x + 1e-3 * x.flip(-2), numbers(N, 3)).leaks


def test_an_output_that_becomes_nan_has_moved():
    x = numbers(N, 3).abs()
    report = leak_test(lambda x: x.sqrt().sum(-2, keepdim=True).expand(N, 3), x)
    assert len(report.leaks) == 15


def test_the_same_seed_gives_the_same_report():
    first, again = (leak_test(attend(None), numbers(2, N, 8)) for _ in range(2))
    assert torch.equal(first.influence, again.influence)
    other = leak_test(attend(None), numbers(2, N, 8), seed=1)
    assert not torch.equal(first.influence, other.influence)


def test_a_large_report_leaves_the_table_out():
    text = str(leak_test(lambda x: x.flip(-2), numbers(40, 2)))
    assert "and 14 more" in text
    assert "output 39  " not in text


# ------------------------------------------------------------------- one changed input


@pytest.mark.parametrize("j", [0, 2, 4])
def test_only_the_chosen_input_changes_and_the_argument_does_not(j):
    generator = torch.Generator().manual_seed(0)
    for x in (tokens(3, 5, n_tokens=2), numbers(3, 5, 4), torch.zeros(3, 5, 4)):
        before = x.clone()
        made = changed_at(x, j, generator)
        assert torch.equal(x, before)
        assert made.dtype == x.dtype
        differs = (made != x).reshape(3, 5, -1).any(-1)
        assert differs[:, j].all()
        assert differs.sum() == 3


def test_tokens_stay_in_the_vocabulary():
    generator = torch.Generator().manual_seed(0)
    seen = torch.cat([changed_at(tokens(50, 3), 1, generator, 13) for _ in range(20)])
    assert seen.min() >= 0
    assert seen.max() == 12


def test_influence_measures_the_largest_change():
    x = torch.zeros(2, 3, dtype=torch.long)
    generator = torch.Generator().manual_seed(0)
    found = influence(lambda x: 2.0 * x, x, generator, n_tokens=2)
    assert torch.equal(found, 2.0 * torch.eye(3).expand(2, 3, 3).double())


# ------------------------------------------------------------------------ clear errors


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: leak_test(attend(None), [1, 2]), "x is a list.*lambda x"),
        (lambda x: leak_test(attend(None), x[0, 0]), r"shape \(8,\).*token ids"),
        (lambda x: leak_test(attend(None), x > 0), "torch.bool, expected token ids"),
        (lambda x: leak_test(attend(None), x[:0]), r"shape \(0, 6, 8\).*at least one"),
        (lambda x: leak_test(attend(None), x / 0), "x holds NaN or infinity"),
        (lambda x: leak_test(attend(None), x, tries=0), "tries is 0.*1 or more"),
        (lambda x: leak_test(attend(None), x, tries=1.5), "tries is 1.5.*whole number"),
        (lambda x: leak_test(attend(None), x, tolerance=-1), "tolerance is -1"),
        (lambda x: leak_test(attend(None), x, n_tokens=4), "x holds vectors"),
        (lambda x: leak_test(attend(None), x + 0j), "complex64, expected token ids"),
        (lambda x: leak_test(lambda x: x + 0j, x), "complex numbers.*view_as_real"),
        (lambda x: leak_test(attend(None), x, [[True]]), "allowed is a list"),
        (
            lambda x: leak_test(nn.MultiheadAttention(8, 2), x),
            r"with x alone.*missing 2 required.*lambda x: module\(x, other\)",
        ),
        (
            lambda x: leak_test(lambda x: x, torch.zeros(4).long()),
            "ids 0 to 0 and n_tokens is None.*size of the vocabulary",
        ),
        (
            lambda x: leak_test(lambda x: x, tokens(4) + 1, n_tokens=2),
            "but n_tokens is 2; expected more than the largest",
        ),
        (lambda x: leak_test(lambda x: {"y": x}, x), r"returned a dict.*\.logits"),
        (
            lambda x: leak_test(lambda x: x.mean(), x),
            r"made \(\) of \(2, 6, 8\).*pooled",
        ),
        (
            lambda x: leak_test(lambda x: x.transpose(0, 1), x),
            r"made \(6, 2, 8\).*batch axes \(2,\).*batch_first",
        ),
        (
            lambda x: leak_test(lambda x: x[:, :4], x),
            "4 outputs for 6 inputs: which may see which",
        ),
        (
            lambda x: leak_test(attend(None), x, causal_mask(5)),
            r"mask has shape \(5, 5\).*\(2, 6, 6\)",
        ),
        (
            lambda x: leak_test(attend(None), x, torch.ones(6, 6)),
            "float32, expected torch.bool",
        ),
        (
            lambda x: leak_test(
                lambda x: (
                    (x @ x.mT).masked_fill(causal_mask(N), -torch.inf).softmax(-1)
                ),
                x,
            ),
            r"NaN or infinity in the outputs \[5\].*may see nothing",
        ),
        (lambda x: mask_painter(words=["alone"]), "1 words, expected two to seven"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call(numbers(2, N, 8))


def test_a_report_is_what_it_prints():
    report = leak_test(attend(None), numbers(3, 8))
    assert isinstance(report, LeakReport)
    assert repr(report) == str(report)
