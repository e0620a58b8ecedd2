"""The interactive of chapter 11: every line has a name, and the gain decides."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from one_widget import opened, stops

from course_utils.display.widgets.depth_explorer import depth_explorer
from course_utils.models.residual_variants import KINDS

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [720, 366])
def test_every_line_is_named_and_no_name_lies_on_another(tmp_path: Path, width):
    with opened(depth_explorer().html, tmp_path, width) as page:
        assert stops(page) == 3
        words = page.locator(".course-widget svg text")
        boxes = [
            words.nth(i).bounding_box()
            for i in range(words.count())
            if words.nth(i).text_content() in KINDS
        ]
        edge = page.locator(".course-widget svg").bounding_box()
    assert len(boxes) == len(KINDS)
    middles = sorted(box["y"] + box["height"] / 2 for box in boxes)
    assert min(b - a for a, b in pairwise(middles)) > 12
    right = edge["x"] + edge["width"]
    assert max(box["x"] + box["width"] for box in boxes) <= right


def test_a_smaller_gain_tames_the_residual_stack_without_norm(tmp_path: Path):
    made = depth_explorer(depths=(24,), gains=(0.5, 1.0))
    with opened(made.html, tmp_path) as page:
        at_one = page.locator(".cw-says").inner_text()
        page.locator("[data-control=gain]").fill("0")
        at_half = page.locator(".cw-says").inner_text()
    assert "residual" in at_one.partition("it is not with")[2]
    assert "residual" in at_half.partition("it is not with")[0]
