"""Scenes are drawn with their grid; weights shade the cells they belong to."""

from __future__ import annotations

import pytest
import torch

from course_utils.display.scene_pictures import draw_scenes

IMAGES = torch.rand(4, 1, 24, 24)


def test_every_image_has_its_name_and_the_shade_of_its_weights():
    weights = torch.softmax(torch.randn(4, 9), dim=-1)
    figure = draw_scenes(IMAGES, [*"abcd"], "Four scenes", weights)
    assert [ax.get_title() for ax in figure.axes] == [*"abcd"]
    for ax, row in zip(figure.axes, weights):
        shade = torch.tensor(ax.images[1].get_array())[..., 3].flatten()
        torch.testing.assert_close(shade.float(), 0.6 * row, atol=0.01, rtol=0)


def test_without_weights_nothing_is_shaded():
    figure = draw_scenes(IMAGES, [*"abcd"], "Four scenes")
    assert all(len(ax.images) == 1 for ax in figure.axes)


def test_a_name_for_each_image():
    with pytest.raises(ValueError, match="4 images for 2 names"):
        draw_scenes(IMAGES, ["a", "b"], "Four scenes")
