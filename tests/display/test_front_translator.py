"""The translator of the front page: its sentence, and what it does in a browser.

The browser tests look at the built site; COURSE_SITE points them at another one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Browser, Page, expect, sync_playwright

from course_utils.data.corpus import EOS
from course_utils.display.quantised_export import pack, unpack
from course_utils.display.widgets.front_translator import (
    choose,
    front_translator,
    missed_heads,
    written,
)
from course_utils.evaluation.ablation import Head, ablate
from course_utils.models.transformer import Transformer
from tools.site.browser import LAUNCH, chromium, served

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("COURSE_SITE", ROOT / "_build" / "html")).resolve()
PAGE = "book/intro.html"
WORDS = ["<pad>", "<bos>", "<eos>", "<unk>", *"abcdef"]
SOURCES = [[4, 4, EOS], [4, 5, EOS], [5, 4, EOS]]  # of which it finds the end
MOST = 9


def toy() -> Transformer:
    """An untrained model; whatever it writes can be called right."""
    torch.manual_seed(0)
    model = Transformer(len(WORDS), len(WORDS), 12, 3, 10)
    with torch.no_grad():  # large weights: what it writes depends on the source
        for weight in model.parameters():
            weight *= 2 if weight.dim() > 1 else 1
    return unpack(pack(model))


def pairs(model: Transformer) -> list[tuple[list[int], list[int]]]:
    return [(source, written(model, source, MOST)) for source in SOURCES]


# ------------------------------------------------------------------------- its sentence


def test_a_sentence_that_is_wrong_or_too_long_is_not_chosen():
    model = toy()
    right = pairs(model)
    wrong = [(source, [*target, EOS]) for source, target in right]
    chosen = choose(model, [wrong, right], MOST)
    assert (chosen.source, chosen.target) in right
    assert written(model, chosen.source, MOST) == chosen.target
    with pytest.raises(ValueError, match="of 3 sentences none has up to 9 tokens"):
        choose(model, [wrong], MOST)
    with pytest.raises(ValueError, match="none has up to 2 tokens"):
        choose(model, [right], 2)


def test_the_missed_heads_are_those_that_change_the_sentence():
    model = toy()
    source, target = pairs(model)[0]
    missed = missed_heads(model, source, target)
    heads = [Head(kind, i, h) for kind in ("encoder", "decoder", "cross")
             for i in range(2) for h in range(3)]  # fmt: skip
    changes = {h for h in heads if written(ablate(model, [h]), source, MOST) != target}
    assert set(missed) == changes
    assert 0 < len(missed) < len(heads)


def test_without_scripts_there_is_a_picture_of_all_the_words():
    packed = pack(toy())
    lists = [pairs(toy())]
    made = front_translator("translator", "live", packed, (WORDS, WORDS), lists)
    drawing = re.search(r"<svg[^>]*aria-label=[^>]*>(.*?)</svg>", made.html, re.S)
    assert drawing
    data = json.loads(re.search(r"const data=(.*);\n", made.html)[1])
    said = re.findall(r"<text[^>]*>([^<]+)</text>", drawing[1])
    assert said[: len(data["source"])] == data["source"]
    assert " ".join(data["source"]) in made.alt


# -------------------------------------------------------------------- on the front page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=LAUNCH)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(SITE) as start:
        yield start


def open_page(browser: Browser, address: str, **options: Any) -> Page:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
    page = context.new_page()
    page.goto(address + PAGE)
    return page


def state(page: Page) -> dict[str, Any]:
    return json.loads(page.locator("#translator").get_attribute("data-state") or "{}")


@pytest.mark.browser
def test_it_is_on_the_first_screen_and_plays_when_it_is_seen(browser, address):
    page = open_page(browser, address)
    page.wait_for_function("window.courseTransformer")
    assert page.locator("#translator svg").bounding_box()["y"] < 450
    expect(page.locator("#translator [data-control=play]")).to_have_text("Pause")
    first = state(page)["at"]
    page.wait_for_timeout(1600)
    assert state(page)["at"] > first
    page.locator("#translator [data-control=play]").click()
    paused = state(page)["at"]
    page.wait_for_timeout(1000)
    assert state(page)["at"] == paused
    page.context.close()


@pytest.mark.browser
def test_where_motion_is_not_wanted_nothing_moves(browser, address):
    page = open_page(browser, address, reduced_motion="reduce")
    page.wait_for_function("window.courseTransformer")
    page.wait_for_timeout(300)
    before = page.locator("#translator svg").inner_html()
    page.wait_for_timeout(1600)
    assert page.locator("#translator svg").inner_html() == before
    assert not state(page)["playing"]
    page.context.close()


@pytest.mark.browser
def test_the_button_switches_off_a_head_that_is_missed(browser, address):
    """What the page says is written without it is what PyTorch writes."""
    (file,) = (SITE / "_static" / "weights").glob("live-*.js")
    weights = file.read_text("utf-8").partition(" = ")[2].rstrip(";\n")
    model = unpack(json.loads(weights))
    page = open_page(browser, address, reduced_motion="reduce")
    page.wait_for_function("window.courseTransformer")
    text = (SITE / PAGE).read_text("utf-8")
    data = json.loads(re.search(r"const data=(.*);\n", text)[1])
    says = page.locator("#translator .cw-says")
    for name in data["missed"][:3]:
        page.locator("#translator [data-control=one]").click()
        kind, layer, head = name.split("-")
        off = ablate(model, [Head(kind, int(layer), int(head))])  # type: ignore[arg-type]
        ids = written(off, data["tokens"], data["rows"])
        words = " ".join(data["target"][i] for i in ids if i != EOS)
        expect(says).to_contain_text(f"the model writes “{words}”")
    page.locator("#translator [data-control=all]").click()
    expect(says).to_contain_text(
        f"One at a time, {len(data['missed'])} of the 24 heads"
    )
    page.context.close()


@pytest.mark.browser
def test_the_heads_are_one_stop_and_the_arrows_go_on(browser, address):
    page = open_page(browser, address, reduced_motion="reduce")
    page.wait_for_function("window.courseTransformer")
    heads = page.locator("#translator svg [data-key]")
    assert heads.count() == 24
    assert page.locator("#translator svg [tabindex='0']").count() == 1
    page.locator("#translator [data-control=all]").focus()
    page.keyboard.press("Tab")
    focused = "document.activeElement.dataset.key"
    assert page.evaluate(focused) == "encoder-0-0"
    for key, name in (
        ("ArrowRight", "encoder-0-1"),
        ("ArrowDown", "encoder-1-1"),
        ("ArrowLeft", "encoder-1-0"),
    ):
        page.keyboard.press(key)
        assert page.evaluate(focused) == name
    page.keyboard.press("Enter")
    expect(page.locator("[data-key=encoder-1-0]")).to_have_attribute(
        "aria-pressed", "false"
    )
    assert page.evaluate(focused) == "encoder-1-0"
    page.context.close()


@pytest.mark.browser
def test_without_scripts_the_front_page_shows_the_sentence(browser, address):
    page = open_page(browser, address, java_script_enabled=False)
    drawing = page.locator("#translator svg")
    assert "A transformer translates" in (drawing.get_attribute("aria-label") or "")
    expect(drawing.locator("text").first).to_be_visible()
    expect(page.locator("#translator button").first).to_be_hidden()
    page.context.close()


@pytest.mark.browser
def test_every_box_of_the_map_leads_to_a_chapter(browser, address):
    page = open_page(browser, address)
    links = page.locator("#map svg a").evaluate_all(
        "found => found.map((a) => a.getAttribute('href'))"
    )
    assert len(set(links)) >= 6
    assert all((SITE / "book" / link).is_file() for link in links)
    page.context.close()


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 390, 1280])
def test_nothing_jumps_while_it_plays(browser, address, width):
    page = open_page(browser, address)
    page.set_viewport_size({"width": width, "height": 844})
    page.wait_for_function("window.courseTransformer")
    tops = []
    for words in ("Pause", "Go on", "Play"):
        page.locator("#translator [data-control=play]").evaluate(
            "(button, words) => { button.textContent = words; }", words
        )
        tops.append(page.locator("#translator svg").bounding_box()["y"])
    assert len(set(tops)) == 1
    page.context.close()
