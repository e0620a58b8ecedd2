"""The interactive of chapter 12: its data, and clear words for what does not fit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from one_widget import opened, stops

from course_utils.display.widgets.three_attentions import KINDS, three_attentions

SOURCE, TARGET = ["she", "sings", "."], ["elle", "chante"]


def tables(n_source=4, n_target=3, layers=2, heads=3):
    """Uniform weights; the widths count the end of the source and the begin."""
    shapes = ((n_source, n_source), (n_target, n_target), (n_target, n_source))
    return [np.full((layers, heads, *s), 1 / s[1]) for s in shapes]


def test_every_table_is_there_with_the_words_that_ask_and_are_asked():
    html = three_attentions("heads", [(SOURCE, TARGET, tables())]).html
    data = json.loads(re.search(r"const data=(.*);\n", html)[1])
    assert data["kinds"] == list(KINDS)
    (sentence,) = data["sentences"].values()
    assert sentence["read"] == [*SOURCE, "end"]
    assert sentence["written"] == ["begin", *TARGET]
    shapes = [np.shape(table) for table in sentence["tables"]]
    assert shapes == [(2, 3, 4, 4), (2, 3, 3, 3), (2, 3, 3, 4)]
    assert np.allclose(sentence["tables"][0], 25)  # hundredths


def test_like_sentences_have_labels_that_differ():
    html = three_attentions("heads", 2 * [(SOURCE, TARGET, tables())]).html
    data = json.loads(re.search(r"const data=(.*);\n", html)[1])
    assert len(data["sentences"]) == 2


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ([], "got no sentence, expected at least one"),
        ([(SOURCE, TARGET, tables()[:2])], "got 2 tables .* expected three"),
        (
            [(SOURCE, TARGET, tables(n_source=3))],
            r"shape \(2, 3, 3, 3\) .* expected \(layer, head, 4, 4\)",
        ),
        (
            [(SOURCE, TARGET, [t[0] for t in tables()])],
            r"shape \(3, 4, 4\) .* expected \(layer, head, 4, 4\)",
        ),
        (
            [(SOURCE, TARGET, tables()), (SOURCE, TARGET, tables(heads=1))],
            r"\(layers, heads\) .* expected the same for all",
        ),
    ],
)
def test_bad_input_is_answered_in_a_sentence(sentences, message):
    with pytest.raises(ValueError, match=message):
        three_attentions("heads", sentences)


@pytest.mark.browser
@pytest.mark.parametrize("width", [720, 366])
def test_all_heads_are_seen_at_once_and_a_press_enlarges_one(tmp_path: Path, width):
    maps = tables()
    maps[2][0, 2] = [0, 0, 1, 0]  # of layer 1, head 3 attends to the third word
    html = three_attentions("heads", [(SOURCE, TARGET, maps)]).html
    with opened(html, tmp_path, width) as page:
        assert page.locator("[data-group=heads]").count() == 2 * 3
        assert stops(page) == 4  # two choices, the heads, the rows
        page.locator("[data-key=head-0-2]").click()
        said = page.locator(".cw-says").inner_text()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Enter")
        beside = page.locator(".cw-says").inner_text()
        edge = page.locator(".course-widget svg").bounding_box()
        last = page.locator("[data-key=head-1-2]").bounding_box()
    assert said.startswith("cross, layer 1, head 3")
    assert "“.” (1.00)" in said
    assert beside.startswith("cross, layer 1, head 2")
    assert last["x"] + last["width"] <= edge["x"] + edge["width"]
