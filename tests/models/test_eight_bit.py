"""Few bits: no number moves by more than half a step, and bytes are counted."""

from __future__ import annotations

import pytest
import torch

from course_utils.display.quantised_export import quantise
from course_utils.evaluation.decoding import select_rows
from course_utils.models.eight_bit import eight_bit_caches, round_weights, to_whole
from course_utils.models.transformer import GPT


def small() -> GPT:
    torch.manual_seed(0)
    return GPT(11, 9, d_model=12, n_heads=3).eval()


TOKENS = torch.randint(11, (2, 7), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_no_number_moves_by_more_than_half_a_scale(bits):
    x = torch.randn(5, 4, 7, generator=torch.Generator().manual_seed(1))
    whole, scales = to_whole(x, bits)
    assert whole.abs().max() == 2 ** (bits - 1) - 1
    assert ((whole * scales - x).abs() <= scales / 2 + 1e-6).all()


def test_zeros_stay_zeros_and_odd_bits_are_refused():
    whole, scales = to_whole(torch.zeros(2, 3))
    assert not (whole * scales).any()
    for bits in (1, 9):
        with pytest.raises(ValueError, match="expected 2 to 8"):
            to_whole(torch.ones(2, 3), bits)


def test_weights_are_rounded_as_the_page_that_runs_a_transformer_rounds_them():
    matrix = torch.randn(5, 7, generator=torch.Generator().manual_seed(2))
    whole, scales = to_whole(matrix)
    other, other_scales = quantise(matrix)
    assert torch.equal(whole, other)
    assert torch.equal(scales[:, 0], other_scales)


def test_the_bytes_of_a_rounded_model_are_those_of_its_numbers():
    model = small()
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = sum(p.numel() for p in model.parameters() if p.dim() == 1)
    numbers = sum(p.numel() for p in matrices)
    rows = sum(len(p) for p in matrices)
    before = {name: p.clone() for name, p in model.state_dict().items()}
    by_row, by_matrix = (round_weights(model, 8, rows) for rows in (True, False))
    assert by_row.n_bytes == numbers + 4 * rows + 4 * vectors
    assert by_matrix.n_bytes == numbers + 4 * len(matrices) + 4 * vectors
    assert round_weights(model, 4).n_bytes == numbers // 2 + 4 * rows + 4 * vectors
    for name, p in model.state_dict().items():
        assert torch.equal(p, before[name])  # the model itself stays
    assert by_row.model.head.weight is by_row.model.embedding.weight


def test_a_rounded_cache_gives_nearly_the_same_logits_in_fewer_bytes():
    model = small()
    with torch.no_grad():
        expected = model(TOKENS)[0]
        caches = eight_bit_caches(model, 2)
        first = model.head(model.read(TOKENS[:, :4], caches)[0])
        caches = select_rows(caches, torch.tensor([0, 1]))
        found = [first] + [
            model.step(token, caches)[0][:, None] for token in TOKENS[:, 4:].T
        ]
    gap = (torch.cat(found, 1) - expected).abs().max()
    assert 0 < gap < 0.05
    plain = model.start(TOKENS[:, :0])[0]
    assert caches[0].n_bytes == plain.keys.nbytes * 2 // 4 + 2 * 4 * 2 * 3 * 9
