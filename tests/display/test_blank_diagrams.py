"""A blank and an adapter: what is drawn is what was computed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from torch import nn

from course_utils.data.corpus import BOS
from course_utils.display.blank_diagrams import (
    CELL,
    adapter,
    four_ways,
    two_readings,
    ways_to_use,
)
from course_utils.display.widgets.blank_filler import (
    BEST,
    blank_filler,
    readings,
    telling_blank,
)
from course_utils.models.bert import BERT
from course_utils.models.lora import LoRALinear, trainable
from course_utils.models.transformer import GPT
from course_utils.tasks import labels
from tests.display.one_widget import opened, stops
from tests.display.test_diagrams import elements, texts

WORDS = labels.vocabulary()
SENTENCE = ("the", "girls", "were", "singing", ".")


def models() -> tuple[BERT, GPT]:
    torch.manual_seed(0)
    sizes = {"n_tokens": len(WORDS), "max_length": 18, "d_model": 12, "n_heads": 3}
    return BERT(**sizes).eval(), GPT(**sizes).eval()


def test_the_words_are_those_that_the_models_find_likeliest():
    bert, gpt = models()
    said = texts(two_readings(bert, gpt, SENTENCE, 2, WORDS).wide)
    tokens = torch.tensor([[BOS, *WORDS.encode(SENTENCE)]])
    tokens[0, 3] = WORDS.ids[labels.MASK]
    with torch.no_grad():
        both, left = bert(tokens)[0][0, 3], gpt(tokens)[0][0, 2]
    for logits in (both, left):
        top = logits.softmax(dim=-1).topk(3)
        for chance, i in zip(top.values.tolist(), top.indices.tolist()):
            assert WORDS.tokens[i] in said
            assert f"{chance:.2f}" in said


def test_the_cells_are_weights_and_what_is_masked_is_hatched():
    bert, gpt = models()
    drawn = elements(two_readings(bert, gpt, SENTENCE, 2, WORDS).wide)
    cells = [
        float(e.get("fill-opacity"))
        for e in drawn
        if e.tag == "rect" and e.get("width") == f"{CELL:g}" and e.get("fill-opacity")
    ]
    tokens = torch.tensor([[BOS, *WORDS.encode(SENTENCE)]])
    tokens[0, 3] = WORDS.ids[labels.MASK]
    with torch.no_grad():
        maps = [m(tokens, need_weights=True)[1][-1, 0].mean(dim=0) for m in (bert, gpt)]
    expected = torch.cat([m.flatten() for m in maps])
    torch.testing.assert_close(torch.tensor(cells), expected, atol=0.006, rtol=0)


def test_an_adapters_shapes_are_measured():
    layer = LoRALinear(nn.Linear(11, 7), rank=2)
    said = "".join(texts(adapter(layer, torch.ones(3, 11)).wide))
    assert said.count("r") >= 3
    with pytest.raises(ValueError, match="room for 12"):
        adapter(LoRALinear(nn.Linear(40, 7)), torch.ones(3, 40))


def test_what_stays_as_it_was_has_a_dashed_frame():
    bert, _ = models()
    ways = ways_to_use(bert)
    drawing = four_ways(ways).wide
    boxes = [
        e for e in elements(drawing) if e.tag == "rect" and e.get("fill-opacity") != "1"
    ]
    frames = [bool(e.get("stroke-dasharray")) for e in boxes if e.get("stroke")]
    ask, probe, tuned = [True] * 4, [True] * 3 + [False], [False] * 4
    lora = [True, True, False, True, False, False]  # an adapter beside each block
    assert frames == ask + probe + tuned + lora
    said = texts(drawing)
    for model in ways.values():
        assert f"{trainable(model):,}" in said
    assert trainable(ways["probe"]) == 2 * 12 + 2
    assert all(p.requires_grad for p in bert.parameters())


def test_a_deep_model_has_no_room_in_the_picture():
    deep = BERT(len(WORDS), 18, d_model=12, n_heads=3, n_layers=5)
    with pytest.raises(ValueError, match="has room for 4"):
        ways_to_use(deep)


def test_a_blank_at_the_beginning_is_refused():
    with pytest.raises(ValueError, match="a word after the first"):
        two_readings(*models(), SENTENCE, 0, WORDS)


def test_the_widget_holds_the_answers_of_both_models():
    bert, gpt = models()
    found = readings(bert, gpt, [SENTENCE], WORDS)
    html = blank_filler("fill", found).html
    data = json.loads(re.search(r"const data=(.*);\n", html)[1])
    (one,) = data["sentences"]
    assert [len(one[side]) for side in ("words", "both", "left")] == [5, 5, 5]
    tokens = torch.tensor([[BOS, *WORDS.encode(SENTENCE)]])
    with torch.no_grad():
        left = gpt(tokens[:, :3])[0][0, -1].softmax(dim=-1).topk(BEST)
        tokens[0, 3] = WORDS.ids[labels.MASK]
        both = bert(tokens)[0][0, 3].softmax(dim=-1).topk(BEST)
    for side, top in (("left", left), ("both", both)):
        assert [word for word, _ in one[side][2]] == [
            WORDS.tokens[i] for i in top.indices.tolist()
        ]


def test_it_begins_where_the_right_side_is_needed():
    sure, unsure, wrong = (["b", 0.9], ["b", 0.6], ["c", 0.9])
    words = ["a", "b"]
    both_know = {"words": words, "both": [[sure], [sure]], "left": [[sure], [sure]]}
    needed = {"words": words, "both": [[sure], [unsure]], "left": [[sure], [wrong]]}
    surest = {"words": words, "both": [[sure], [sure]], "left": [[sure], [wrong]]}
    assert telling_blank([both_know, needed, surest]) == (3, 2)
    assert telling_blank([both_know]) == (1, 2)


def test_sentences_of_different_lengths_are_refused():
    found = readings(*models(), [SENTENCE, SENTENCE[1:]], WORDS)
    with pytest.raises(ValueError, match="all of the same length"):
        blank_filler("fill", found)


@pytest.mark.browser
def test_a_click_on_a_word_blanks_it_and_no_kernel_is_asked(tmp_path: Path):
    found = readings(*models(), [SENTENCE, (*SENTENCE[:3], "eating", ".")], WORDS)
    with opened(blank_filler("fill", found).html, tmp_path) as page:
        page.locator("[data-control=sentence]").fill("0")
        for at, word in enumerate(SENTENCE):
            page.locator("[data-control=blank]").fill(str(at))
            both, left = (
                found[" ".join(SENTENCE)][side][at][0] for side in ("both", "left")
            )
            said = page.inner_text(".cw-says")
            assert f"The blank was “{word}”" in said
            assert f"BERT expects {both[0]} ({both[1]:.2f})" in said
            assert f"GPT expects {left[0]} ({left[1]:.2f})" in said
        page.locator("svg rect[style*=pointer]").nth(3).click()
        page.locator("[data-control=sentence]").fill("1")
        assert "The blank was “eating”" in page.inner_text(".cw-says")
        assert stops(page) == 2  # the sentence and the blank
