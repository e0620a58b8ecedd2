"""What the front page is made of, without a built site."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from small_site import shown
from sphinx.errors import ExtensionError

from course_utils.display.quantised_export import pack
from course_utils.display.widgets.live_transformer import weights_element
from course_utils.models.transformer import Transformer
from tools.notebooks.io import ROOT
from tools.site.front import PICTURES, Live, course_map, live, part_picture


def notebook(folder: Path, html: str) -> Path:
    """An executed notebook that shows this."""
    path = folder / "page.ipynb"
    cells = [new_code_cell("1", outputs=[shown(html)])]
    nbformat.write(new_notebook(cells=cells), path)
    return path


def test_the_model_is_read_from_the_page_that_shows_it(tmp_path):
    data = {"source": ["_", "a", "b"], "target": ["_", "c"]}
    data |= {"gold": {"a b": "c"}, "tested": [[[1, 2], [1, 2]]]}
    script = f"<script>\nconst data={json.dumps(data)};\n</script>"
    html = weights_element("live", {"x": 1}) + script
    found = live(notebook(tmp_path, html))
    assert (found.weights, found.packed) == ("live", {"x": 1})
    assert found.lists == ([([1, 2, 2], [1, 2])], [([1, 2], [1, 2])])


def test_a_page_without_a_model_is_named(tmp_path):
    with pytest.raises(ExtensionError, match=r"page\.ipynb shows no model"):
        live(notebook(tmp_path, "<p>nothing</p>"))


def test_a_model_that_gets_nothing_right_has_no_map():
    packed = pack(Transformer(5, 5, 12, 3, 10))
    pairs = [([4, 2], [3, 3, 3])]
    with pytest.raises(ValueError, match="no sentence of up to 7 tokens rightly"):
        course_map(Live("live", packed, (["x"] * 5, ["x"] * 5), (pairs,)))


def test_every_part_of_the_front_page_has_a_picture():
    page = (ROOT / "book" / "intro.md").read_text("utf-8")
    named = {name for name in PICTURES if f"{{part}}`{name}`" in page}
    assert page.count("{part}`") == len(named) == len(PICTURES) == 6
    assert all('aria-hidden="true"' in part_picture(name) for name in PICTURES)
    with pytest.raises(ExtensionError, match="expected one of 01, 02"):
        part_picture("03")
