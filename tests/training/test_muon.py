"""Muon: the singular values of its steps, and what it refuses."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from course_utils.models.blocks import EncoderBlock
from course_utils.training.muon import Muon, block_matrices, orthogonalise


@pytest.mark.parametrize("shape", [(7, 12), (12, 7), (3, 8, 8), (2, 3, 5, 9)])
def test_orthogonalise_brings_singular_values_near_one(shape):
    generator = torch.Generator().manual_seed(0)
    matrices = torch.randn(shape, generator=generator, dtype=torch.float64)
    before = torch.linalg.svdvals(matrices)
    values = torch.linalg.svdvals(orthogonalise(matrices, steps=8))
    assert before.max() / before.min() > 2
    assert values.min() > 0.6
    assert values.max() < 1.3


def test_five_steps_do_to_a_singular_value_what_the_docstring_says():
    """Diagonal matrices show p(s) alone; a random square matrix has small values."""
    shares = torch.logspace(-5, -0.01, 400, dtype=torch.float64)
    rest = (1 - shares.square()).sqrt()
    pairs = torch.stack([shares, rest], dim=-1).diag_embed()  # each of norm 1
    ends = orthogonalise(pairs)[:, 0, 0]
    large = shares >= 0.002
    assert ends[large].min() > 0.68
    assert ends[large].max() < 1.21
    assert (ends <= 485 * shares).all()
    assert ends[shares < 1e-4].max() < 0.05
    square = torch.randn(5, 128, 128, generator=torch.Generator().manual_seed(0))
    assert torch.linalg.svdvals(orthogonalise(square)).min() < 0.5


def test_orthogonalise_keeps_the_directions():
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(6, 9, generator=generator, dtype=torch.float64)
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    inside = left.T @ orthogonalise(matrix) @ right.T
    assert torch.allclose(inside, inside.diag().diag(), atol=1e-9)
    assert (inside.diag() > 0).all()


def test_a_batch_is_its_matrices_one_by_one():
    matrices = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(0))
    alone = torch.stack([orthogonalise(matrix) for matrix in matrices])
    torch.testing.assert_close(orthogonalise(matrices), alone)


def test_parts_move_as_matrices_of_their_own():
    start = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
    grad = torch.randn(12, 4, generator=torch.Generator().manual_seed(1))
    whole = nn.Parameter(start.clone())
    pieces = [nn.Parameter(piece.clone()) for piece in start.chunk(3)]
    together, apart = Muon([whole], parts=3), Muon(pieces)
    for _ in range(3):
        whole.grad = grad.clone()
        for piece, part in zip(pieces, grad.chunk(3)):
            piece.grad = part.clone()
        together.step()
        apart.step()
    torch.testing.assert_close(whole.detach(), torch.cat(pieces).detach())
    assert not torch.allclose(whole.detach(), start)


def test_it_moves_as_pytorchs_own_but_for_the_precision():
    """PyTorch's iterates in bfloat16, which keeps three digits."""
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("this PyTorch has no Muon")
    start = torch.randn(8, 6, generator=torch.Generator().manual_seed(0))
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    mine = Muon([ours], lr=0.1, momentum=0.9)
    other = torch.optim.Muon([theirs], lr=0.1, momentum=0.9, weight_decay=0.0)
    generator = torch.Generator().manual_seed(1)
    for _ in range(3):
        grad = torch.randn(8, 6, generator=generator)
        ours.grad, theirs.grad = grad.clone(), grad.clone()
        mine.step()
        other.step()
    moved, expected = ours.detach() - start, theirs.detach() - start
    assert expected.norm() > 0.1
    assert (moved - expected).norm() < 0.05 * expected.norm()


def test_weight_decay_shrinks_what_has_no_gradient_to_speak_of():
    matrix = nn.Parameter(torch.ones(3, 3))
    matrix.grad = torch.zeros(3, 3)
    Muon([matrix], lr=0.5, weight_decay=0.2).step()
    torch.testing.assert_close(matrix.detach(), torch.full((3, 3), 0.9))


def test_it_lowers_a_loss():
    torch.manual_seed(0)
    x = torch.randn(64, 6)
    y = x @ torch.randn(6, 6)
    layer = nn.Linear(6, 6, bias=False)
    optimiser, losses = Muon(layer.parameters(), lr=0.1), []
    for _ in range(60):
        optimiser.zero_grad()
        loss = (layer(x) - y).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 20


def test_the_matrices_of_blocks_are_found():
    fused, single = block_matrices(nn.ModuleList([EncoderBlock(8, 2, 12)]))
    assert [tuple(p.shape) for p in fused] == [(24, 8)]
    assert sorted(tuple(p.shape) for p in single) == [(8, 8), (8, 12), (12, 8)]


@pytest.mark.parametrize("name", ["lr", "momentum", "weight_decay"])
@pytest.mark.parametrize("odd", [-0.1, float("nan"), float("inf"), "0.1", None])
def test_odd_numbers_are_refused_by_name(name, odd):
    with pytest.raises(ValueError, match=f"{name} is .*expected a number from 0 on"):
        Muon([nn.Parameter(torch.zeros(2, 3))], **{name: odd})


def test_a_momentum_of_one_forgets_nothing_and_is_refused():
    with pytest.raises(ValueError, match="and below 1"):
        Muon([nn.Parameter(torch.zeros(2, 3))], momentum=1.0)


@pytest.mark.parametrize(("shape", "parts"), [((4,), 1), ((4, 4), 3), ((2, 2, 2), 1)])
def test_what_is_no_matrix_is_refused(shape, parts):
    with pytest.raises(ValueError, match="leave embeddings"):
        Muon([nn.Parameter(torch.zeros(shape))], parts=parts)
    with pytest.raises(ValueError, match="expected"):
        orthogonalise(torch.zeros(4))
