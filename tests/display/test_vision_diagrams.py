"""The vision transformer is drawn from its forward pass: shapes, pixels and weights."""

from __future__ import annotations

import pytest
import torch

from course_utils.display import plots
from course_utils.display.trace import trace
from course_utils.display.vision_diagrams import (
    draw_cells,
    frame_cells,
    vision_transformer,
)
from course_utils.models.vision import VisionTransformer, patchify
from tests.display.test_diagrams import drawings, elements, texts

IMAGE = torch.rand(1, 8, 8)


def toy(**sizes) -> VisionTransformer:
    return VisionTransformer(4, 16, 10, **{"d_model": 6, "n_heads": 2, **sizes})


def test_the_shapes_are_those_of_a_forward_pass():
    model = toy()
    record = trace(model, patchify(IMAGE[None], 4))
    measured = [
        tuple(record[name].output.shape) for name in ("embed", "cat", "encoder")
    ]
    assert measured == [(1, 4, 6), (1, 5, 6), (1, 5, 6)]
    for drawing in drawings(vision_transformer(model, IMAGE, 4)):
        said = texts(drawing)
        assert said.count("n × dpatch") == said.count("n × dmodel") == 1
        assert said.count("(n + 1) × dmodel") == 2
        assert said.count("1 × nclasses") == 1


def test_a_longer_stack_says_so():
    said = texts(vision_transformer(toy(n_layers=3), IMAGE, 4).wide)
    assert "3 blocks" in said
    assert "2 blocks" not in said


def test_image_patches_and_rows_show_the_same_pixels():
    drawing = vision_transformer(toy(), IMAGE, 4).wide
    pixels = [
        float(e.attrib["fill-opacity"])
        for e in elements(drawing)
        if e.get("width") == e.get("height") == "11"
    ]
    image = IMAGE[0].flatten()
    torch.testing.assert_close(
        torch.tensor(pixels), torch.cat([image, image]), atol=0.006, rtol=0
    )
    rows = [
        float(e.attrib["fill-opacity"])
        for e in elements(drawing)
        if e.get("width") == e.get("height") == "8" and e.get("stroke-width") == "0.6"
    ]
    torch.testing.assert_close(
        torch.tensor(rows), patchify(IMAGE[None], 4).flatten(), atol=0.006, rtol=0
    )


def test_the_weights_are_those_of_the_last_block():
    model = toy()
    maps = model(patchify(IMAGE[None], 4), need_weights=True)[1]
    drawing = vision_transformer(model, IMAGE, 4).wide
    cells = [
        float(e.attrib["fill-opacity"])
        for e in elements(drawing)
        if e.get("width") == e.get("height") == "9"
    ]
    expected = maps[-1][0].mean(dim=0).detach().flatten()
    torch.testing.assert_close(torch.tensor(cells), expected, atol=0.006, rtol=0)


def test_nothing_leaves_the_drawing_and_a_phone_can_show_it():
    diagram = vision_transformer(toy(), IMAGE, 4)
    assert diagram.narrow is not None
    assert diagram.narrow.width <= 360
    for drawing in drawings(diagram):
        for e in elements(drawing):
            if e.tag == "rect":
                assert float(e.attrib["x"]) >= 0
                assert float(e.attrib["x"]) + float(e.attrib["width"]) <= drawing.width
                assert (
                    float(e.attrib["y"]) + float(e.attrib["height"]) <= drawing.height
                )


def test_a_model_too_large_to_draw_is_refused():
    with pytest.raises(ValueError, match=r"n_patches is 16.*room for 4"):
        vision_transformer(VisionTransformer(16, 4, 10), IMAGE, 2)


def test_cells_stand_apart_and_the_bar_is_where_it_was_said():
    axes = plots.figure()[1]
    draw_cells(axes, torch.rand(1, 24, 24), "answer: 3", bar=4)
    lefts = sorted({image.get_extent()[0] for image in axes.images})
    assert lefts == [0, 9, 18]
    (bar,) = axes.patches
    assert (bar.get_x(), bar.get_y(), bar.get_height()) == (9, 9, 8)


def test_frames_are_as_thick_as_the_weights_and_small_ones_are_not_written():
    axes, weights = plots.figure()[1], torch.tensor([0.9, 0.09, *[0.01 / 7] * 7])
    frame_cells(axes, weights)
    assert [round(frame.get_linewidth(), 2) for frame in axes.patches][:2] == [
        3.6,
        0.36,
    ]
    assert [text.get_text() for text in axes.texts] == ["0.90", "0.09"]
