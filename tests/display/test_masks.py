"""Galleries of masks and of leaks draw what the mask says and what the test found."""

from __future__ import annotations

import pytest
import torch

from course_utils.display.masks import CELL, leak_gallery, mask_gallery
from course_utils.display.svg import colour
from course_utils.evaluation.leaks import leak_test
from course_utils.models.attention import attention, causal_mask
from tests.display.test_diagrams import elements, texts

LEGEND = 1  # every kind of cell stands once in the legend


def squares(drawing, name: str) -> int:
    """How many cells have this colour."""
    fill, side = colour(name), f"{CELL:g}"
    cells = (e for e in elements(drawing) if e.get("width") == side)
    return sum(e.get("fill") == fill for e in cells)


def rings(drawing) -> int:
    return sum(e.tag == "circle" for e in elements(drawing))


def test_a_gallery_shows_as_many_open_and_blocked_pairs_as_the_masks_have():
    masks = {"causal": causal_mask(4), "cache": causal_mask(2, 5)}
    drawing = mask_gallery(masks).wide
    seen = sum(int(mask.sum()) for mask in masks.values())
    cells = sum(mask.numel() for mask in masks.values())
    assert squares(drawing, "weights") == seen + LEGEND
    assert squares(drawing, "mask") == cells - seen + LEGEND
    assert {"causal", "cache", "may attend", "blocked"} <= {*texts(drawing)}


def test_leaks_are_red_and_unseen_pairs_have_a_ring():
    def inverted(x):
        return attention(x, x, x, ~causal_mask(6))

    report = leak_test(inverted, torch.randn(2, 6, 8))
    assert report.leaks
    assert report.unseen
    drawing = leak_gallery({"inverted": report}).wide
    assert squares(drawing, "red") == len(report.leaks) + LEGEND
    assert rings(drawing) == len(report.unseen) + LEGEND


def test_nothing_leaves_a_phone():
    masks = {f"mask {i}": causal_mask(6) for i in range(6)}
    drawing = mask_gallery(masks).wide
    assert drawing.width <= 360
    for e in elements(drawing):
        if e.tag == "rect":
            right, bottom = (float(e.attrib[at]) + CELL for at in ("x", "y"))
            assert right <= drawing.width
            assert bottom <= drawing.height


def test_what_is_no_single_table_is_refused():
    with pytest.raises(ValueError, match="pick one of the batch"):
        mask_gallery({"both": torch.ones(2, 5, 5, dtype=torch.bool)})
    with pytest.raises(ValueError, match="expected a boolean table"):
        mask_gallery({"float": causal_mask(3).float()})
    allowed = causal_mask(4).expand(2, 4, 4)
    report = leak_test(lambda x: attention(x, x, x), torch.randn(2, 4, 8), allowed)
    with pytest.raises(ValueError, match="a table for each of a batch"):
        leak_gallery({"batch": report})
