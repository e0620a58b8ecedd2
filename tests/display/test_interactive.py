"""The interactives' HTML: deterministic, safe against their own data, clear errors."""

from __future__ import annotations

import importlib
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch

import course_utils
from course_utils.display.interactive import (
    button,
    select,
    slider,
    text,
    toggle,
    tokens,
    widget,
)
from course_utils.display.widgets.softmax_scale import softmax_scale

ALT = "One bar as high as the probability of heads."


def coin(name="coin", controls=(), **more):
    return widget(name, "A coin", list(controls), script="", alt=ALT, **more)


class Ids(HTMLParser):
    def __init__(self, page: str):
        super().__init__()
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.ids += [value for name, value in attributes if name == "id"]


def data_of(made) -> object:
    return json.loads(re.search(r"const data=(.*);\n", made.html)[1])


def test_the_same_widget_is_the_same_text():
    assert softmax_scale().html == softmax_scale().html


def test_two_widgets_on_a_page_share_no_id_and_no_radio_group():
    pages = [
        coin(name, [tokens("word", "Word", ["a", "b"])]).html for name in ("one", "two")
    ]
    assert [Ids(page).ids for page in pages] == [["one"], ["two"]]
    groups = [set(re.findall(r'type=radio name="([^"]+)"', page)) for page in pages]
    assert groups == [{"one-word"}, {"two-word"}]


def test_data_can_not_close_its_script():
    made = widget(
        "evil",
        "Title & <i>",
        [tokens("key", "Key", ["<!-- & '\""])],
        data={"queries": ["</script><b>"]},
        script="",
        alt="Tokens that try to leave the script they are put in.",
    )
    assert made.html.count("</script>") == 1
    assert {"b", "i"}.isdisjoint(Ids(made.html).tags)
    assert data_of(made)["queries"] == ["</script><b>"]


def test_tensors_and_arrays_become_short_numbers():
    made = coin(data={"a": torch.tensor([1 / 3]), "b": np.array([2, 3]), "c": (True,)})
    assert data_of(made) == {"a": [0.3333], "b": [2, 3], "c": [True]}


def test_controls_start_where_they_are_told():
    assert "value=2 step" in slider("d", "d", [1, 2, 4], value=4).html
    assert "<output>4</output>" in slider("d", "d", [1, 2, 4], value=4).html
    assert " checked" in toggle("on", "on", value=True).html
    assert '"b" selected' in select("s", "s", ["a", "b"], value="b").html
    assert tokens("t", "t", ["a", "b"], value=1).html.index("checked") > 0
    assert 'value="say &quot;a&quot;"' in text("t", "t", 'say "a"').html


def test_a_widget_says_its_alt_text_where_scripts_do_not_run():
    made = coin()
    assert f'role="status">{ALT}</p>' in made.html
    assert repr(made) == ALT
    assert made._repr_html_() == made.html


def test_widgets_are_small():
    assert len(softmax_scale().html) < 26_000


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: coin("Not an id"), "can't be an id"),
        (lambda: coin(controls=[button("a", "A"), toggle("a", "B")]), "one key"),
        (lambda: widget("x", "X", [], script="", alt="short"), "20 characters"),
        (
            lambda: widget("x", "X", [], script="'</script>'", alt=ALT),
            "holds '</script'",
        ),
        (lambda: coin(data=[float("nan")]), "NaN or infinity"),
        (lambda: slider("d", "d", []), "nothing to choose from"),
        (lambda: slider("d", "d", [1, 2], value=3), "starts at 3"),
        (lambda: toggle("a-b", "x"), "not a JavaScript name"),
        (lambda: softmax_scale(n_keys=1), "at least two keys"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.browser
def test_drawn_elements_are_pressed_dragged_and_set(tmp_path):
    """The parts of the frame that no chapter uses yet work as their comments say."""
    from playwright.sync_api import sync_playwright

    made = widget(
        "parts",
        "Parts",
        [tokens("word", "Word", ["a", "b"])],
        data={"start": [40, 40]},
        script="""
            state.at = state.at || data.start;
            state.mask = state.mask || [[1, 0], [0, 1]];
            ui.heatmap(state.mask, {x: 100, y: 0, w: 60, h: 60, press: (i, j) => {
              state.mask[i][j] = 1 - state.mask[i][j];
              ui.set("word", 1);
            }});
            const dot = ui.circle(...state.at, 12);
            ui.active(dot, {key: "dot", label: "drag", at: state.at,
              drag: (x, y) => { state.at = [x, y]; }});
            ui.say(`mask ${state.mask}, at ${state.at}, word ${state.word}`);
        """,
        alt="A mask to paint and a point to drag.",
    )
    page_file = tmp_path / "parts.html"
    page_file.write_text(f"<!doctype html><meta charset=utf-8>{made.html}")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = chromium.new_page()
        page.goto(page_file.as_uri())
        says = page.locator(".cw-says")
        page.locator('[data-key="cell-0-1"]').click()
        assert says.inner_text() == "mask 1,1,0,1, at 40,40, word 1"
        page.locator('[data-key="cell-0-1"]').focus()
        page.keyboard.press("Enter")
        assert says.inner_text().startswith("mask 1,0,0,1")
        assert page.evaluate("document.activeElement.dataset.key") == "cell-0-1"
        page.locator('[data-key="dot"]').focus()
        page.keyboard.press("ArrowRight")
        assert "at 50,40" in says.inner_text()
        box = page.locator("svg").bounding_box()
        page.mouse.move(box["x"] + 50, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + 70, box["y"] + 90)
        page.mouse.up()
        assert "at 70,90" in says.inner_text()
        assert page.locator("svg").get_attribute("role") == "group"
        chromium.close()


WIDGETS = sorted(
    (Path(course_utils.__file__).parent / "display" / "widgets").glob("*.py")
)


@pytest.mark.parametrize("path", WIDGETS, ids=lambda path: path.stem)
def test_a_widget_has_its_function_and_its_script_beside_it(path):
    if path.stem == "__init__":
        assert {p.with_suffix(".js") for p in WIDGETS} - {
            path.with_suffix(".js")
        } == set(path.parent.glob("*.js"))
        return
    module = importlib.import_module(f"course_utils.display.widgets.{path.stem}")
    assert callable(getattr(module, path.stem))
