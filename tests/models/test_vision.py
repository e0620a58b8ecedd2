"""Patches lose nothing, weights are weights, gates are gates; bad input is named."""

from __future__ import annotations

import pytest
import torch

from course_utils.models.vision import (
    CrossReader,
    PatchEncoder,
    QuestionBlock,
    SpatialAttention,
    SqueezeExcite,
    VisionTransformer,
    patchify,
    unpatchify,
)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_patches_are_the_squares_of_the_image_in_reading_order(size):
    images = normal(2, 3, 8, 12)
    patches = patchify(images, size)
    across = 12 // size
    for k in range(patches.shape[1]):
        y, x = size * (k // across), size * (k % across)
        square = images[:, :, y : y + size, x : x + size]
        assert torch.equal(patches[:, k], square.reshape(2, -1))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_unpatchify_undoes_patchify(size):
    images = normal(2, 3, 8, 12)
    assert torch.equal(unpatchify(patchify(images, size), size, 8 // size), images)


def test_the_class_token_sees_every_patch():
    model, patches = VisionTransformer(6, 4, 3, 8, 2, 1).eval(), normal(2, 6, 4)
    logits, weights = model(patches, need_weights=True)
    assert logits.shape == (2, 3)
    assert weights.shape == (1, 2, 2, 7, 7)
    assert model(patches)[1] is None
    for k in range(6):
        moved = patches.clone()
        moved[:, k] += 1
        assert not torch.allclose(model(moved)[0], logits)


def test_places_tell_patches_apart():
    model, patches = VisionTransformer(6, 4, 3, 8, 2, 1).eval(), normal(2, 6, 4)
    shuffled = patches[:, [3, 0, 5, 1, 2, 4]]
    assert not torch.allclose(model(shuffled)[0], model(patches)[0])


def test_spatial_weights_sum_to_one_and_make_the_average():
    features = normal(2, 5, 3, 4)
    context, weights = SpatialAttention(5)(features)
    assert weights.shape == (2, 3, 4)
    torch.testing.assert_close(weights.sum(dim=(1, 2)), torch.ones(2))
    by_hand = torch.einsum("byx,bcyx->bc", weights, features)
    torch.testing.assert_close(context, by_hand)


def test_gates_scale_their_channel_alone():
    features = normal(3, 5, 2, 4)
    scaled, gates = SqueezeExcite(5, 2)(features)
    assert gates.shape == (3, 5)
    assert ((gates > 0) & (gates < 1)).all()
    for c in range(5):
        torch.testing.assert_close(
            scaled[:, c], features[:, c] * gates[:, c, None, None]
        )


def test_words_do_not_see_masked_patches():
    block = QuestionBlock(6).eval()
    words, patches = normal(2, 3, 6), normal(2, 5, 6)
    seen = torch.tensor([True, False, True, True, False])[None, None]
    before, weights = block(words, patches, seen)
    assert (weights[..., ~seen[0, 0]] == 0).all()
    changed = patches.masked_fill(~seen[0, 0, :, None], 9.0)
    torch.testing.assert_close(block(words, changed, seen)[0], before)
    assert not torch.allclose(block(words, changed)[0], before)


def test_a_reader_returns_one_map_for_each_word():
    model = CrossReader(n_words=7, n_answers=4, n_patches=5, d_patch=6, d=8).eval()
    question = torch.tensor([[1, 2], [3, 4]])
    logits, maps = model(normal(2, 5, 6), question)
    assert logits.shape == (2, 4)
    assert maps.shape == (2, 2, 5)
    torch.testing.assert_close(maps.sum(-1), torch.ones(2, 2))


def ask(question):
    reader = CrossReader(n_words=7, n_answers=4, n_patches=5, d_patch=6, d=8)
    return reader(normal(2, 5, 6), torch.tensor(question))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: patchify(normal(2, 3, 8, 9), 2), "8 x 9 pixels can't be cut"),
        (lambda: patchify(normal(3, 8, 8), 2), r"shape \(3, 8, 8\), expected \(batch"),
        (lambda: patchify(normal(2, 3, 8, 8), 0), "size is 0"),
        (lambda: unpatchify(normal(2, 6, 4), 2, 4), "a multiple of 4 patches"),
        (lambda: unpatchify(normal(2, 6, 5), 2, 2), "a multiple of 4 numbers"),
        (lambda: unpatchify(normal(2, 6, 4), 2, 0), "n_rows is 0"),
        (lambda: SpatialAttention(5)(normal(2, 3, 4, 4)), r"expected \(batch, 5"),
        (lambda: SqueezeExcite(5, 2)(normal(2, 4, 4, 5)), r"expected \(batch, 5"),
        (lambda: PatchEncoder(5, 6, 8)(normal(2, 5, 7)), r"patches has shape"),
        (lambda: PatchEncoder(5, 6, 8)(normal(2, 1, 6)), "expected 5 patches"),
        (lambda: VisionTransformer(6, 4, 3)(normal(6, 4)), r"patches has shape"),
        (lambda: VisionTransformer(6, 4, 3)(normal(2, 1, 4)), "n_patches=1"),
        (lambda: VisionTransformer(6, 4, 3)(normal(2, 5, 4)), "expected 6 patches"),
        (lambda: ask([[1], [2]]), r"question has shape \(2, 1\)"),
        (lambda: ask([1, 2]), r"question has shape \(2,\), expected \(batch, 2\)"),
    ],
)
def test_bad_images_are_refused_in_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
