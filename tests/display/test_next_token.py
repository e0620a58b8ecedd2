"""Chapter 13's GPT in the page: its numbers beside PyTorch's, and what it does."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from one_widget import opened, stops

from course_utils.data.bpe import BytePairEncoder
from course_utils.display.quantised_export import as_text, pack, unpack
from course_utils.display.widgets.next_token import next_token, visible
from course_utils.evaluation.decoding import generate, keep_top_k, keep_top_p
from course_utils.models.transformer import GPT, Transformer

TEXT = "the value of the expression is the value of the last expression. " * 3
ENCODER = BytePairEncoder.train(TEXT, 290)
SEEN = torch.tensor(ENCODER.encode(TEXT))
PROMPTS = ("the value", "expression is")


def packed(**options: Any) -> dict[str, Any]:
    """A GPT that was not trained; its weights are large, so that tokens differ."""
    torch.manual_seed(0)
    model = GPT(
        len(ENCODER), **{"max_length": 64, "d_model": 24, "n_heads": 3} | options
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.15 * torch.randn(parameter.shape)
    return pack(model)


def made(**changes: Any):
    given = {"packed": packed(), "encoder": ENCODER, "prompts": PROMPTS}
    return next_token("pieces", **{**given, "seen": SEEN, **changes})


def data_of(widget: Any) -> dict[str, Any]:
    return json.loads(re.search(r"const data=(.*);\n", widget.html)[1])


# ----------------------------------------------------------------------------- its data


def test_before_the_weights_are_loaded_the_first_prompt_has_its_bars():
    widget = made()
    still = data_of(widget)["still"]
    assert still["tokens"] == ENCODER.encode("the value")
    logits = unpack(packed())(torch.tensor([still["tokens"]]))[0][0]
    expected = (logits - logits.amax(-1, keepdim=True)).detach()
    torch.testing.assert_close(
        torch.tensor(still["logits"]), expected, atol=6e-3, rtol=1e-3
    )


def test_the_weights_stand_in_an_element_of_their_own():
    html = made().html
    (text,) = re.findall(r'data-weights="pieces">([^<]*)</script>', html)
    assert text == as_text(packed())
    assert len(html) - len(text) < 80_000  # what a page weighs before they are loaded


def test_the_pieces_that_the_training_never_had_are_told():
    unseen = data_of(made())["unseen"]
    assert set(unseen) | set(SEEN.tolist()) == set(range(len(ENCODER)))
    assert not set(unseen) & set(SEEN.tolist())


def test_there_is_room_for_what_is_written():
    for longest, more, room in ((64, 40, 24), (32, 24, 8), (256, 40, 24)):
        data = data_of(made(packed=packed(max_length=longest)))
        assert (data["more"], data["room"]) == (more, room)


def test_nothing_is_invisible():
    assert visible("") == visible("\x07") == "·"
    assert visible(" a\tb\n") == "␣a⇥b↵"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": BytePairEncoder()}, "a GPT of .* for 256 pieces, expected a GPT"),
        ({"packed": pack(Transformer(9, 9, 12, 3, 10))}, "got a Transformer of"),
        ({"encoder": BytePairEncoder(ENCODER.merges, chunks="gpt2")}, "chunks='gpt2'"),
        ({"prompts": ()}, r"prompts \[\], expected at least one"),
        ({"prompts": ("a", "")}, "none of them empty"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(changes, message):
    with pytest.raises(ValueError, match=message):
        made(**changes)


# ---------------------------------------------------------- in the page, beside PyTorch

RUN = """(tokens) => {
  const { model, emptyCaches, readToken } = courseGPT, caches = emptyCaches(model);
  return tokens.map((token) => [...readToken(model, token, caches)]);
}"""
GREEDY = """([tokens, more]) => {
  const { model, emptyCaches, readToken, cutOdds, drawToken } = courseGPT;
  const caches = emptyCaches(model), all = [...tokens];
  for (let i = 0; i < tokens.length + more - 1; i++) {
    const logits = readToken(model, all[i], caches);
    if (i === all.length - 1) all.push(
      drawToken(cutOdds(logits, 1e-6, logits.length, 1), 0.99));
  }
  return all;
}"""


def loaded(page: Any) -> Any:
    page.emulate_media(reduced_motion="reduce")  # what is written is there at once
    page.wait_for_function("window.courseGPT")
    return page


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Any]:
    with opened(made().html, tmp_path) as page:
        yield loaded(page)


@pytest.mark.browser
@pytest.mark.parametrize(
    "options",
    [{}, {"positions": "rotary"}, {"positions": "none"}, {"tied": False}],
    ids=str,
)
def test_the_logits_are_those_of_pytorch(tmp_path: Path, options: dict[str, Any]):
    weights = packed(**options)
    model = unpack(weights)
    with opened(made(packed=weights).html, tmp_path) as page:
        loaded(page)
        for seed in range(3):
            torch.manual_seed(seed)
            tokens = torch.randint(len(ENCODER), (1, 64))
            with torch.no_grad():
                expected = model(tokens)[0][0]
            found = torch.tensor(page.evaluate(RUN, tokens[0].tolist()))
            torch.testing.assert_close(found, expected, atol=2e-4, rtol=0)


def odd_texts() -> Iterator[str]:
    """Texts without end: words, signs, all kinds of white space, many alphabets."""
    yield from (
        "",
        " ",
        "  the",
        "a\n\n b",
        "don't",
        "x_1 = 23;",
        "é ü ½ Ⅷ ²",
        "日本語 かな",
    )
    yield from (
        "👩\u200d👩 ok",
        "e\u0301",
        "\ufeffthe",
        "a\x1cb\x1fc",
        "\x85x",
        "\u3000 y",
        "٣٤",
    )
    chosen = random.Random(0)
    parts = [
        *TEXT.split(),
        *" \n\t\r.,;()_0123½é—…“”日語\xa0\u2028\x1d\u200b🙂",
        "  ",
        "\n\n",
    ]
    while True:
        yield "".join(chosen.choices(parts, k=chosen.randint(1, 30)))


@pytest.mark.browser
def test_two_hundred_texts_become_the_ids_of_the_package(page: Any):
    texts = [text for text, _ in zip(odd_texts(), range(200))]
    run = "([texts, merges]) => texts.map((text) => courseGPT.bytePairs(text, merges))"
    found = page.evaluate(run, [texts, ENCODER.merges])
    for text, ids in zip(texts, found):
        assert ids == ENCODER.encode(text), repr(text)


@pytest.mark.browser
def test_a_temperature_towards_0_writes_what_greedy_generation_writes(page: Any):
    model = unpack(packed())
    for seed in range(5):
        torch.manual_seed(seed)
        prompt = torch.randint(len(ENCODER), (1, 6))
        expected = generate(model, prompt, 40, temperature=0)[0].tolist()
        assert page.evaluate(GREEDY, [prompt[0].tolist(), 40]) == expected


@pytest.mark.browser
@pytest.mark.parametrize(
    ("heat", "k", "p"), [(1, 290, 1), (0.5, 10, 1), (2, 290, 0.8), (1.5, 20, 0.5)]
)
def test_tokens_are_drawn_with_the_probabilities_of_sample(
    page: Any, heat: float, k: int, p: float
):
    torch.manual_seed(1)
    logits = 2 * torch.randn(290)
    cut = keep_top_p(keep_top_k((logits - logits.max()) / heat, k), p)
    run = """([logits, ...settings]) => {
      const found = courseGPT.cutOdds(logits, ...settings), n = 20000;
      return [found, Array.from({ length: n }, (_, i) =>
        courseGPT.drawToken(found, (i + 0.5) / n))];
    }"""
    found, drawn = page.evaluate(run, [logits.tolist(), heat, k, p])
    odds = torch.tensor(found["odds"])
    torch.testing.assert_close(odds, cut.softmax(-1), atol=1e-5, rtol=1e-5)
    assert found["count"] == int((odds > 0).sum())
    shares = torch.bincount(torch.tensor(drawn), minlength=290) / len(drawn)
    assert (shares - odds).abs().max() < 2e-4
    assert (shares[odds == 0] == 0).all()


# ----------------------------------------------------------------------- as it is used


def says(page: Any) -> str:
    return page.locator(".cw-says").inner_text()


def sample(page: Any) -> str:
    found = re.match(r"Sample (\d+: “.*?”)\. \d+ of", says(page))
    assert found, says(page)
    return found[1]


def press(page: Any, control: str) -> None:
    page.locator(f"[data-control={control}]").click()


def slide(page: Any, control: str, at: int) -> None:
    page.locator(f"[data-control={control}]").fill(str(at))


def n_tokens(page: Any) -> int:
    """How many stand in the strip, the prompt counted and the next one not."""
    return int(page.locator("svg [data-key^=token-]").count())


@pytest.mark.browser
def test_the_same_settings_write_the_same_text(page: Any):
    press(page, "write")
    first = sample(page)
    assert n_tokens(page) == len(ENCODER.encode("the value")) + 40
    slide(page, "heat", 1)
    cold = sample(page)
    slide(page, "heat", 5)
    assert sample(page) == first != cold
    press(page, "again")
    assert sample(page).startswith("2: ")
    assert sample(page)[3:] != first[3:]
    press(page, "write")
    assert sample(page).startswith("2: ")
    slide(page, "k", 0)  # top-k 1: the likeliest, whatever the sample
    greedy = sample(page)[3:]
    press(page, "again")
    assert sample(page)[3:] == greedy


@pytest.mark.browser
def test_a_written_token_shows_what_might_have_stood_there(page: Any):
    press(page, "write")
    before = page.locator("svg").inner_html()
    tokens = page.locator("svg [data-key^=token-]")
    tokens.nth(7).click()
    assert page.locator("svg").inner_html() != before
    assert tokens.nth(7).get_attribute("aria-pressed") == "true"
    assert page.locator("svg text", has_text="Might stand in place").count() == 1
    tokens.nth(7).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert tokens.nth(8).get_attribute("aria-pressed") == "true"
    tokens.last.click()  # the next one, not yet written
    assert page.locator("svg text", has_text="May come next").count() == 1


@pytest.mark.browser
def test_what_is_typed_is_read_or_answered_in_a_sentence(page: Any):
    box = page.locator("[data-control=prompt]")
    box.fill("the last")
    assert n_tokens(page) == len(ENCODER.encode("the last"))
    box.fill("Zürich")
    assert "Not in the training text: 7 of these tokens (red)." in says(page)
    box.fill("of the " * 20)
    n = len(ENCODER.encode("of the " * 20))
    assert f"Of your {n} tokens the model reads the last 24" in says(page)
    press(page, "write")
    assert n_tokens(page) == 24 + 40
    box.fill("")
    assert says(page) == "The model continues a text: type a prompt."
    press(page, "write")
    assert n_tokens(page) == 0
    page.locator(".cw-suggest button").first.click()
    assert box.input_value() == "the value"


@pytest.mark.browser
def test_tokens_come_one_by_one_and_the_button_stops_them(page: Any):
    page.emulate_media(reduced_motion="no-preference")
    press(page, "write")
    button = page.locator("[data-control=write]")
    assert button.inner_text() == "Stop"
    first = n_tokens(page)
    page.wait_for_function(
        f"document.querySelectorAll('svg [data-key^=token-]').length > {first}"
    )
    button.focus()
    page.keyboard.press("Enter")
    assert button.inner_text() == "Write 40 tokens"
    stopped = n_tokens(page)
    page.wait_for_timeout(600)
    assert n_tokens(page) == stopped < 40


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_a_page_and_takes_few_stops(tmp_path: Path, width: int):
    with opened(made().html, tmp_path, width) as page:
        loaded(page)
        press(page, "write")
        assert stops(page) == 8  # a box and a prompt, 3 sliders, 2 buttons, tokens
        wide = "document.documentElement.scrollWidth"
        assert page.evaluate(wide) <= width
        kept = "e => e.dataset.lmSuppressShortcuts === 'true'"
        for control in page.locator("[data-control], svg [data-key]").all():
            assert control.evaluate(kept)
        stage = page.locator("svg").bounding_box()
        for text in page.locator("svg text").all():
            box = text.bounding_box()
            assert box["y"] + box["height"] < stage["y"] + stage["height"] + 1
            assert box["x"] + box["width"] < stage["x"] + stage["width"] + 3


@pytest.mark.browser
def test_the_weights_of_the_site_are_loaded_when_they_are_asked_for(tmp_path: Path):
    """From a file beside the page, as the build leaves them; at first it is missing."""
    element = re.compile(r'(data-weights="pieces")>([^<]*)<')
    widget = made().html
    (weights,) = (found[2] for found in element.finditer(widget))
    beside = element.sub(r'\1 data-src="weights.js"><', widget)
    far_down = '<div style="height:5000px"></div>'
    with opened(f"{far_down}{beside}", tmp_path) as page:
        page.emulate_media(reduced_motion="reduce")
        page.wait_for_timeout(300)
        assert page.locator("script[src]").count() == 0  # nothing is asked for
        assert n_tokens(page) == len(ENCODER.encode("the value"))
        page.locator("[data-control=write]").scroll_into_view_if_needed()
        page.get_by_text("The model's file did not arrive").wait_for()
        code = f'(window.courseWeights ||= {{}})["pieces"] = {weights};'
        (tmp_path / "weights.js").write_text(code, "utf-8")
        press(page, "write")
        page.wait_for_function("window.courseGPT")
        assert n_tokens(page) == len(ENCODER.encode("the value")) + 40
