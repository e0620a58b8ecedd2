"""The transformer in the page: its data, and its numbers beside PyTorch's.

The browser tests take the weights from the built site, so that what is compared is what
a reader loads; COURSE_SITE points them at a site elsewhere than `_build/html`.
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
from playwright.sync_api import Browser, Page, sync_playwright

from course_utils.data.corpus import BOS, EOS, Vocabulary
from course_utils.data.grammar.sentence_pairs import corpus
from course_utils.display.quantised_export import pack, unpack
from course_utils.display.trace import trace
from course_utils.display.widgets.live_transformer import followers, live_transformer
from course_utils.evaluation.ablation import Head, ablate, attention_of, heads_of
from course_utils.evaluation.decoding import greedy
from course_utils.models.transformer import Transformer
from tools.site.browser import LAUNCH, chromium, served

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("COURSE_SITE", ROOT / "_build" / "html")).resolve()
PAGE = "book/transformer_in_the_page.html"
PAIRS = corpus(40, seed=5, min_length=4, max_length=9)
VOCABULARIES = Vocabulary(p.source for p in PAIRS), Vocabulary(p.target for p in PAIRS)
EXAMPLE, RIGHT = (" ".join(words) for words in (PAIRS[0].source, PAIRS[0].target))


def packed(n_source: int | None = None) -> dict[str, Any]:
    torch.manual_seed(0)
    n = n_source or len(VOCABULARIES[0])
    return pack(Transformer(n, len(VOCABULARIES[1]), 12, 3, 10))


def made(**changes: Any):
    given = {
        "name": "live",
        "packed": packed(),
        "vocabularies": VOCABULARIES,
        "examples": {EXAMPLE: RIGHT},
        "seen": PAIRS,
        "tested": PAIRS[:3],
    }
    return live_transformer(**given | changes)


# ----------------------------------------------------------------------------- its data


def test_the_weights_stand_in_an_element_of_their_own():
    html = made().html
    (text,) = re.findall(r'data-weights="live">([^<]*)</script>', html)
    assert json.loads(text) == packed()
    assert len(html) - len(text) < 135_000  # what a page weighs before they are loaded


def test_words_that_follow_are_those_that_did():
    follows = followers(PAIRS, VOCABULARIES[0])
    words = VOCABULARIES[0].tokens
    seen = {pair for p in PAIRS for pair in zip(("<bos>", *p.source), p.source)}
    offered = {(words[a], words[b]) for a, found in follows.items() for b in found}
    assert offered
    assert offered <= seen
    assert max(map(len, follows.values())) <= 12


def test_the_picture_before_loading_is_the_model_s():
    data = json.loads(re.search(r"const data=(.*);\n", made().html)[1])
    model = unpack(packed())
    source = torch.tensor([VOCABULARIES[0].encode(PAIRS[0].source, eos=True)])
    steps = data["still"]["steps"]
    begun = torch.tensor([[1, *(step["token"] for step in steps)][:-1]])
    with torch.no_grad():
        logits, maps = model(source, begun, need_weights=True)
    assert logits[0].argmax(dim=-1).tolist() == [step["token"] for step in steps]
    drawn = torch.tensor(data["still"]["encoder"]).transpose(1, 2)
    torch.testing.assert_close(drawn, maps.encoder[:, 0], atol=6e-3, rtol=0)
    last = torch.tensor(steps[-1]["own"])
    torch.testing.assert_close(last, maps.decoder[:, 0, :, -1], atol=6e-3, rtol=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"packed": packed(9)}, r"weights for \(9, .* vocabularies of"),
        ({"examples": {}}, "got no example"),
        ({"examples": {"the zebra .": RIGHT}}, r"unknown: \['zebra'\]"),
        ({"examples": {EXAMPLE: "le zèbre ."}}, r"unknown: \['zèbre'\]"),
        ({"examples": {EXAMPLE: RIGHT, "": RIGHT}}, "got the example ''"),
        ({"examples": {EXAMPLE: ""}}, "and their translation"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(changes, message):
    with pytest.raises(ValueError, match=message):
        made(**changes)


# ---------------------------------------------------------- in the page, beside PyTorch


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for the tests of this file."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=LAUNCH)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The site, served on this machine."""
    with served(SITE) as start:
        yield start


@pytest.fixture(scope="module")
def page(browser, address) -> Page:
    """The built page with its model loaded; nothing moves unless it is asked to."""
    opened = browser.new_page(
        viewport={"width": 1280, "height": 1000}, reduced_motion="reduce"
    )
    opened.goto(address + PAGE)
    opened.wait_for_function("window.courseTransformer")
    opened.locator("#live .cw-fold summary").click()
    return opened


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    """What the page's interactive is given."""
    return json.loads(
        re.search(r"const data=(.*);\n", (SITE / PAGE).read_text("utf-8"))[1]
    )


@pytest.fixture(scope="module")
def weights() -> Transformer:
    """The model of the very file that the page loads."""
    (file,) = (SITE / "_static" / "weights").glob("live-*.js")
    assert file.stat().st_size < 500_000
    return unpack(json.loads(file.read_text("utf-8").partition(" = ")[2].rstrip(";\n")))


@pytest.fixture(scope="module")
def sources() -> list[list[int]]:
    """The fifty sentences that the page's own test translates."""
    text = (SITE / PAGE).read_text("utf-8")
    data = json.loads(re.search(r"const data=(.*);\n", text)[1])
    found = [source for source, _ in data["tested"]]
    assert len(found) == 50
    return found


def compare(page: Page, model: Transformer, source: list[int], changes: dict) -> float:
    """Translate in the page, and return how far any number is from PyTorch's."""
    run = "([source, changes]) => courseTransformer.greedy("
    run += "courseTransformer.model, source, changes)"
    done = page.evaluate(run, [source, changes])
    tokens = [step["token"] for step in done["steps"]]
    begun = torch.tensor([[1, *tokens[:-1]]])
    with torch.no_grad():
        logits, maps = model(torch.tensor([source]), begun, need_weights=True)
    assert logits[0].argmax(dim=-1).tolist() == tokens
    found = torch.tensor([list(step["logits"]) for step in done["steps"]])
    encoder = torch.tensor(done["encoder"]).transpose(1, 2)
    cross = torch.tensor([step["cross"] for step in done["steps"]])
    pairs = [(found, logits[0]), (encoder, maps.encoder[:, 0])]
    pairs += [(cross.permute(1, 2, 0, 3), maps.cross[:, 0])]
    for t, step in enumerate(done["steps"]):
        pairs += [(torch.tensor(step["own"]), maps.decoder[:, 0, :, t, : t + 1])]
    return max((a - b).abs().max().item() for a, b in pairs)


@pytest.mark.browser
def test_fifty_sentences_have_the_logits_and_weights_of_pytorch(page, weights, sources):
    furthest = max(compare(page, weights, source, {}) for source in sources)
    assert furthest < 1e-4


WITHOUT = {
    "a head of each attention": (
        {"off": ["encoder-0-0", "decoder-0-3", "cross-1-2"]},
        {
            "heads_off": [
                Head("encoder", 0, 0),
                Head("decoder", 0, 3),
                Head("cross", 1, 2),
            ]
        },
    ),
    "positions of the source": ({"source": True}, {"no_positions": ["source"]}),
    "positions of the target": ({"target": True}, {"no_positions": ["target"]}),
    "the scale": ({"scale": 4}, {"no_scale": True}),  # times the root of d_k = 16
    "all of it": (
        {"off": ["cross-0-1"], "source": True, "target": True, "scale": 4},
        {
            "heads_off": [Head("cross", 0, 1)],
            "no_positions": ["source", "target"],
            "no_scale": True,
        },
    ),
}


@pytest.mark.browser
@pytest.mark.parametrize("left_out", WITHOUT)
def test_each_switch_does_what_it_does_in_pytorch(page, weights, sources, left_out):
    changes, surgery = WITHOUT[left_out]
    model = ablate(weights, **surgery)
    assert max(compare(page, model, s, changes) for s in sources[:8]) < 2e-4


@pytest.mark.browser
def test_mean_ablation_is_that_of_pytorch(page, weights, sources, data):
    means = {name: torch.tensor(mean) for name, mean in data["means"].items()}
    names = ["encoder-0-1", "decoder-0-0", "decoder-1-3", "cross-0-2", "cross-1-1"]
    heads = [h for h in heads_of(weights) if f"{h.kind}-{h.layer}-{h.head}" in names]
    assert len(heads) == len(names)
    model = ablate(weights, heads, means=means)
    changes = {"off": names, "means": data["means"]}
    for source in sources[:5]:
        assert compare(page, model, source, changes) < 2e-4
    assert compare(page, weights, sources[0], {}) < 1e-4  # and the whole is whole again


def inside(model: Transformer, source: list[int], begun: list[int], head: Head):
    """Query, key and value rows of a head, its scores and context, in PyTorch."""
    stack = "encoder" if head.kind == "encoder" else "decoder"
    layer = "cross_attention" if head.kind == "cross" else "attention"
    path = f"{stack}.blocks.{head.layer}.{layer}"
    given = torch.tensor([source]), torch.tensor([begun])
    record = trace(model, *given, need_weights=True)
    attention = attention_of(model, head.kind, head.layer)
    x = record[path].inputs[0]
    memory = record["encoder"].output if head.kind == "cross" else None
    parts = [part[0, head.head] for part in attention.project(x, memory)]
    weights = record[f"{path}.softmax"].output[0, head.head]
    return (*parts, weights)


@pytest.mark.browser
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_chain_of_a_head_is_that_of_pytorch(page, weights, sources, kind):
    """q, k, v, q·k, the scores, the weights and the context, on five sentences."""
    run = """([source, written, name, row]) => {
      const { chain, model } = courseTransformer;
      const found = chain(model, source, written, name, row, {});
      return Object.fromEntries(Object.entries(found).map(([key, value]) =>
        [key, Array.from(value, (x) => x.length === undefined ? x : Array.from(x))]));
    }"""
    for n, source in enumerate(sources[:5]):
        head = Head(kind, n % 2, n % 4)
        begun = [1, 5 + n, 9, 7]
        with torch.no_grad():
            queries, keys, values, table = inside(weights, source, begun, head)
        row = 2
        name = f"{kind}-{head.layer}-{head.head}"
        found = page.evaluate(run, [source, begun[1:], name, row])
        products = keys @ queries[row]
        expected = {
            "query": queries[row],
            "keys": keys,
            "values": values,
            "products": products,
            "scores": products / queries.shape[-1] ** 0.5,
            "weights": table[row],
            "context": table[row] @ values,
        }
        for key, tensor in expected.items():
            torch.testing.assert_close(
                torch.tensor(found[key], dtype=torch.float32), tensor, atol=2e-4, rtol=0
            )
        blocked = [kind == "decoder" and j > row for j in range(len(keys))]
        assert found["masked"] == blocked


def vectors(model: Transformer, source: list[int], begun: list[int], box: str):
    """What a box of the diagram shows for every row, from hooks on PyTorch's layers."""
    seen: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}

    def remember(name: str) -> Any:
        return lambda layer, given, made: seen.update({name: (given[0][0], made[0])})

    handles = [
        layer.register_forward_hook(remember(name))
        for name, layer in model.named_modules()
        if isinstance(layer, torch.nn.Linear | torch.nn.LayerNorm)
    ]
    with torch.no_grad():
        logits, _ = model(torch.tensor([source]), torch.tensor([begun]))
    for handle in handles:
        handle.remove()
    if box == "logits":
        return [seen["decoder.norm"][1], logits[0]]
    stack = "encoder" if box.startswith("encoder") else "decoder"
    if box.endswith("embedding"):
        side, tokens = ("source", source) if stack == "encoder" else ("target", begun)
        table = getattr(model, f"{side}_embedding").weight.detach()
        word, place = table.shape[1] ** 0.5 * table[tokens], model.positions
        return [word, place[: len(tokens)], word + place[: len(tokens)]]
    if box.endswith("norm"):
        return [*seen[f"{stack}.norm"]]
    kind, layer, *rest = box.split("-")
    part = "cross_attention" if kind == "cross" else "attention"
    part = "feed_forward" if rest else part
    path = f"{stack}.blocks.{layer}"
    x, normed = seen[f"{path}.around_{part}.norm"]
    middle, update = seen[f"{path}.{part}.{'narrow' if rest else 'output'}"]
    return [x, normed, middle, update, x + update]


@pytest.mark.browser
def test_every_box_shows_the_vectors_of_pytorch(page, weights, sources):
    """All boxes of the diagram, on five sentences, at another word each time."""
    run = """([source, written, box, row]) => {
      const { stages, model } = courseTransformer;
      return stages(model, source, written, box, row, {}).map(([, x]) => Array.from(x));
    }"""
    page.locator("#live [data-key^=box-]").first.wait_for(state="attached")
    keys = page.locator("#live [data-key^=box-]").evaluate_all(
        "found => found.map((box) => box.dataset.key.slice(4))"
    )
    assert len(keys) == 2 + 2 + 1 + 2 * 2 + 2 * 3
    for n, source in enumerate(sources[:5]):
        begun = [1, 5 + n, 9, 7]
        for box in keys:
            row = n % 4
            expected = [x[row] for x in vectors(weights, source, begun, box)]
            found = page.evaluate(run, [source, begun[1:], box, row])
            assert len(found) == len(expected)
            for a, b in zip(found, expected):
                a = torch.tensor(a, dtype=torch.float32)
                torch.testing.assert_close(a, b, atol=2e-4, rtol=1e-5)


@pytest.mark.browser
def test_a_box_shows_its_equation_its_code_and_its_numbers(page):
    type_in(page, "the dog sees the cat .")
    page.locator('#live [data-key="box-encoder-1-ff"]').click()
    assert "Encoder, layer 2: feed-forward, for “the”: x has length" in says(page)
    page.locator('#live [data-key="source-1"]').click()
    assert "for “dog”" in says(page)
    details = page.locator("#live .cw-chain")
    details.locator("summary").click()
    details.locator("pre", has_text="hidden = torch.relu").wait_for()
    assert len(details.locator("tbody tr").all()) == 5
    page.locator('#live [data-key="box-logits"]').click()
    first = details.locator("tbody tr").first.inner_text().split("\t")
    best = re.search(r"with probability (\d\.\d+)", says(page))[1]
    assert float(first[2]) == pytest.approx(float(best), abs=2e-3)
    page.locator('#live [data-key="box-logits"]').click()  # and back to the head
    assert "Head cross" in says(page)
    details.locator("summary").click()


@pytest.mark.browser
def test_scores_can_be_flattened_and_sharpened(page):
    type_in(page, "the dog sees the cat .")
    slider = page.locator("#live [data-control=scale]")
    slider.fill("0")
    assert "Scores times 0." in says(page)
    row = page.locator("#live").evaluate("root => JSON.parse(root.dataset.state).scale")
    assert row == 0
    assert "(0.14)" in says(page)  # one of seven words: flat
    slider.fill("3")
    assert "Scores times" not in says(page)


@pytest.mark.browser
def test_the_numbers_of_a_head_can_be_read(page):
    type_in(page, "the dog sees the cat .")
    page.locator('#live [data-key="decoder-0-0"]').click()
    page.locator("#live .cw-chain summary").click()
    page.locator('#live [data-key="word-2"]').click()
    rows = page.locator("#live .cw-chain tbody tr").all_inner_texts()
    assert sum("−∞" in row for row in rows) == len(rows) - 2
    weights = [float(row.split("\t")[4]) for row in rows]
    assert sum(weights) == pytest.approx(1, abs=0.01)


@pytest.mark.browser
def test_every_single_head_can_be_switched_off(page, weights, sources):
    for head in heads_of(weights):
        name = f"{head.kind}-{head.layer}-{head.head}"
        model = ablate(weights, [head])
        assert compare(page, model, sources[0], {"off": [name]}) < 1e-4


# ----------------------------------------------------------------- operated by hand


def says(page: Page) -> str:
    return page.locator("#live .cw-says").inner_text()


def type_in(page: Page, sentence: str, enter: bool = True) -> None:
    box = page.locator("#live [data-control=sentence]")
    box.fill("")
    box.fill(sentence)
    if enter:
        box.press("Enter")


def french(model: Transformer, data: dict[str, Any], sentence: str) -> list[str]:
    """What the model writes in PyTorch, right or wrong."""
    ids = [data["source"].index(word) for word in sentence.split()]
    tokens = greedy(model, torch.tensor([[*ids, EOS]]), 48, BOS, EOS).tokens[0].tolist()
    return [data["target"][token] for token in tokens if token != EOS]


@pytest.mark.browser
def test_what_is_typed_is_translated_and_what_is_unknown_is_named(page, weights, data):
    type_in(page, "She does not see him")  # a capital, and no stop
    said = french(weights, data, "she does not see him .")
    assert f"“{' '.join(said)}”" in says(page)
    said = french(weights, data, "the girl 's cat sleeps .")
    for text in ("the girl's cat sleeps", "the girl 's cat sleeps ."):
        type_in(page, text)
        assert f"“{' '.join(said)}”" in says(page)
    type_in(page, "the elephant sees the zebra .")
    assert "“elephant”, “zebra” are not among them" in says(page)
    assert page.locator("#live svg >> text=I do not know").count() == 1
    assert "The last translation stays." in says(page)
    kept = page.locator('#live svg [data-key^="word-"]').count()
    assert kept > 3  # of the sentence before
    type_in(page, "the dgo sleeps .")
    near = page.locator("#live .cw-suggest button").all_inner_texts()
    assert "dog" in near
    page.locator("#live .cw-suggest button").filter(
        has_text=re.compile("^dog$")
    ).click()
    box = page.locator("#live [data-control=sentence]")
    assert box.input_value() == "the dog sleeps ."


@pytest.mark.browser
def test_half_a_sentence_waits_for_its_end(page):
    type_in(page, "the dog sleeps .")
    before = page.locator("#live svg").inner_html()
    type_in(page, "the cat", enter=False)
    assert "after its full stop, Enter, or a pause" in says(page)
    assert page.locator("#live svg").inner_html() == before
    page.locator("#live [data-control=sentence]").press("Enter")
    assert page.locator("#live svg").inner_html() != before
    type_in(page, "the cat sleeps", enter=False)
    asleep = page.locator("#live svg").inner_html()
    page.wait_for_function(
        "before => document.querySelector('#live svg').innerHTML !== before", arg=asleep
    )


@pytest.mark.browser
def test_a_link_opens_what_was_seen(page, browser, address):
    type_in(page, "the dog sees the cat .")
    page.locator('#live [data-key="switch-decoder-0-1"]').click()
    page.locator("#live [data-control=ablation]").select_option(index=1)
    page.locator("#live [data-control=scale]").fill("4")
    page.locator('#live [data-key="cross-0-2"]').click()
    page.locator('#live [data-key="box-decoder-1-ff"]').click()
    page.locator('#live [data-key="word-2"]').click()
    page.locator("#live [data-control=copy]").click()
    link = page.evaluate("location.href")
    assert "#live?" in link
    other = browser.new_page(viewport={"width": 1280, "height": 1000})
    other.goto(link)
    other.wait_for_function("window.courseTransformer")
    expected = says(page).partition("“")[2]
    other.wait_for_function(
        "said => document.querySelector('#live .cw-says').textContent.endsWith(said)",
        arg=expected,
    )
    drawn = "svg => svg.innerHTML.replaceAll(/tabindex=.-?[01]./g, '')"
    seen = [p.locator("#live svg").evaluate(drawn) for p in (page, other)]
    assert seen[0] == seen[1]
    assert other.locator("#live [data-control=heads]").is_visible()  # to be put back
    other.close()
    page.locator('#live [data-key="box-decoder-1-ff"]').click()
    page.locator("#live [data-control=scale]").fill("3")
    page.locator("#live [data-control=ablation]").select_option(index=0)
    page.locator("#live [data-control=heads]").select_option("all on")


@pytest.mark.browser
def test_a_link_of_nonsense_opens_the_page(browser, address):
    other, faults = browser.new_page(), []
    other.on("pageerror", lambda error: faults.append(str(error)))
    other.goto(
        address
        + PAGE
        + "#live?s=zzz+qqq&off=cross-9-9&head=x&at=-4&mean=%F0&box=y&times=z"
    )
    other.wait_for_function("window.courseTransformer")
    assert "not among them" in says(other)
    assert not faults
    other.close()


@pytest.mark.browser
def test_the_drawing_has_few_stops_and_arrows_lead_on(page):
    type_in(page, "the dog sees the cat .")
    assert page.locator("#live svg [data-key]").count() > 50
    assert page.locator("#live svg [tabindex='0']").count() == 5
    page.locator('#live [data-key="cross-0-0"]').focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.key") == "decoder-0-1"


@pytest.mark.browser
def test_it_plays_when_seen_and_pauses(browser, address):
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    opened.goto(address + PAGE)
    top = opened.locator("#live").bounding_box()["y"]
    assert top < 450  # on the first screen
    assert not opened.locator("#live [data-control=heads]").is_visible()
    box = opened.locator('#live [data-key="box-logits"]').bounding_box()
    assert box["y"] < 800  # and so does the diagram begin there
    opened.wait_for_function("window.courseTransformer")
    button = opened.locator("#live [data-control=play]")
    assert button.inner_text() == "Pause"
    button.click()
    assert button.inner_text() == "Play"
    paused = says(opened)
    opened.wait_for_timeout(1000)
    assert says(opened) == paused
    opened.close()


@pytest.mark.browser
def test_on_a_phone_sentence_and_status_stay_in_view(browser, address):
    opened = browser.new_page(
        viewport={"width": 390, "height": 844}, reduced_motion="reduce"
    )
    opened.goto(address + PAGE)
    opened.wait_for_function("window.courseTransformer")
    opened.locator("#live svg").evaluate(
        "svg => scrollTo(0, svg.getBoundingClientRect().top + scrollY + 300)"
    )
    opened.wait_for_timeout(200)
    for part in ("input[type=text]", ".cw-says"):
        box = opened.locator(f"#live {part}").bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 845
    opened.close()


@pytest.mark.browser
def test_the_list_of_examples_follows_what_is_typed(page):
    examples = page.locator("#live [data-control=example]")
    box = page.locator("#live [data-control=sentence]")
    first = examples.locator("option").nth(1).inner_text()
    examples.select_option(first)
    assert box.input_value() == first
    type_in(page, "she sleeps .")
    assert examples.input_value() == "my own sentence"
    examples.select_option(first)  # the same one again
    assert box.input_value() == first
    examples.select_option("my own sentence")
    assert box.input_value() == ""
    assert "Type an English sentence" in says(page)


@pytest.mark.browser
def test_an_example_is_judged_when_it_is_written_to_its_end(page, weights, data):
    right = [s for s, gold in data["gold"].items()
             if " ".join(french(weights, data, s)) == gold]  # fmt: skip
    example = right[0]
    type_in(page, example)
    assert "That is right." in says(page)
    page.locator('#live [data-key="word-2"]').click()
    assert "right" not in says(page)
    page.locator("#live [data-control=heads]").select_option("cross: all off")
    for _ in range(60):
        if "…”" not in says(page):
            break
        page.locator("#live [data-control=next]").click()
    assert f"Right is “{data['gold'][example]}”" in says(page)
    page.locator("#live [data-control=heads]").select_option("all on")
    assert "That is right." in says(page)  # written to its end, as before
    type_in(page, "the cat sees the man .")  # no example
    assert "right" not in says(page)


@pytest.mark.browser
def test_a_sentence_longer_than_those_of_the_training_is_told_so(page):
    type_in(page, "the " * 16)
    assert "No sentence of the training was as long" in says(page)
    type_in(page, "the " * 15)
    assert "No sentence of the training" not in says(page)
    type_in(page, "the " * 30)
    assert "That is 31 words, the full stop counted; there is room for 26" in says(page)


@pytest.mark.browser
def test_a_sentence_can_be_written_from_the_words_offered(page, weights, data):
    type_in(page, "the do", enter=False)
    offered = page.locator("#live .cw-suggest button")
    assert set(offered.all_inner_texts()) >= {"dog", "doctor", "door"}
    offered.filter(has_text=re.compile("^dog$")).focus()
    page.keyboard.press("Enter")
    box = page.locator("#live [data-control=sentence]")
    assert box.input_value() == "the dog"
    assert (
        page.evaluate("document.activeElement.parentElement.className") == "cw-suggest"
    )
    box.press("Enter")
    assert f"“{' '.join(french(weights, data, 'the dog .'))}”" in says(page)


@pytest.mark.browser
def test_words_appear_one_after_the_other(page, weights, data):
    type_in(page, "the dog sees the cat .")
    first, second, *_ = french(weights, data, "the dog sees the cat .")
    page.locator("#live [data-control=play]").focus()
    page.keyboard.press("Enter")
    assert f"“{first} …”: word 1 is “{first}”" in says(page)
    page.locator("#live [data-control=next]").click()
    assert f"“{first} {second} …”: word 2 is “{second}”" in says(page)
    page.locator('#live [data-key="word-1"]').focus()
    page.keyboard.press("Enter")
    assert f"word 1 is “{first}”" in says(page)


@pytest.mark.browser
def test_a_head_is_switched_by_mouse_and_by_keyboard(page):
    type_in(page, "the dog sees the cat .")
    switch = page.locator('#live [data-key="switch-decoder-0-1"]')
    switch.click()
    assert "Left out: 1 of 24 heads." in says(page)
    assert page.locator("#live [data-control=heads]").input_value() == "my own choice"
    switch.focus()
    page.keyboard.press("Enter")
    assert "Left out" not in says(page)
    assert page.locator("#live [data-control=heads]").input_value() == "all on"


@pytest.mark.browser
def test_the_page_counts_as_pytorch_does(page, weights, sources):
    """The test button with the encoder's heads off, beside the same in PyTorch."""
    text = (SITE / PAGE).read_text("utf-8")
    tested = json.loads(re.search(r"const data=(.*);\n", text)[1])["tested"]
    off = [head for head in heads_of(weights) if head.kind == "encoder"]
    model, right = ablate(weights, off), 0
    for source, target in tested:
        with torch.no_grad():
            logits, _ = model(torch.tensor([source]), torch.tensor([[1, *target[:-1]]]))
        right += logits[0].argmax(dim=-1).tolist() == target
    page.locator("#live [data-control=heads]").select_option("encoder: all off")
    page.locator("#live [data-control=test]").click()
    expected = f"As it is now: {right} of 50 right"
    page.locator(f"#live svg >> text={expected}").wait_for(
        state="attached", timeout=9000
    )
    page.locator("#live [data-control=heads]").select_option("all on")


@pytest.mark.browser
def test_the_game_tests_every_switch_and_keeps_the_best(page):
    type_in(page, "the dog sees the cat .")
    page.locator("#live [data-control=game]").click()
    score = re.compile(r"Game: (\d+) heads on, (\d+) of 50 right")
    for heads_on, press in ((24, False), (23, True)):
        if press:
            page.locator('#live [data-key="switch-encoder-0-1"]').click()
        page.get_by_text(f"Game: {heads_on} heads on").wait_for(timeout=60_000)
        found = score.search(says(page))
        if int(found[2]) >= 40:
            assert f"Your best: {found[1]} heads." in says(page)
        else:
            assert ", and 40 are needed." in says(page)
    page.locator("#live [data-control=scale]").fill("5")
    assert "Game: switch heads only" in says(page)
    page.locator("#live [data-control=scale]").fill("3")
    page.locator('#live [data-key="switch-encoder-0-1"]').click()
    page.locator("#live [data-control=game]").click()
    assert "Game" not in says(page)


@pytest.mark.browser
def test_without_its_positions_two_orders_have_one_translation(page):
    type_in(page, "she sleeps .")  # another one: what comes is new
    page.locator("#live [data-control=source]").click()
    found = []
    for sentence in ("the dog sees the cat .", "the cat sees the dog ."):
        type_in(page, sentence)
        found.append(says(page).split("”")[0])
    page.locator("#live [data-control=source]").click()
    assert found[0] == found[1]


@pytest.mark.browser
def test_the_weights_are_loaded_once_and_on_sight(browser, address):
    opened, asked = browser.new_page(viewport={"width": 1280, "height": 40}), []
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(address + PAGE)
    opened.wait_for_load_state("networkidle")
    assert not [url for url in asked if "weights" in url]
    opened.set_viewport_size({"width": 1280, "height": 900})
    opened.wait_for_function("window.courseTransformer")
    opened.locator("#live [data-control=play]").click()
    assert len([url for url in asked if "weights" in url]) == 1
    opened.close()


@pytest.mark.browser
@pytest.mark.parametrize("where", ["site", "notebook"])
def test_it_runs_from_a_file_with_no_server(browser, tmp_path, where):
    """The page of the site, and the output of a notebook with its weights inside."""
    alone = tmp_path / "output.html"
    alone.write_text(f"<!doctype html><meta charset=utf-8>{made().html}", "utf-8")
    file = SITE / PAGE if where == "site" else alone
    opened, faults = browser.new_page(), []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.goto(file.as_uri())
    opened.locator("#live [data-control=next]").click()
    opened.wait_for_function("window.courseTransformer")
    assert "Made beforehand" not in says(opened)
    assert not faults
    opened.close()
