"""Today's block: what is drawn and what the switches count is what was run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from one_widget import opened, stops

from course_utils.display.modern_diagrams import two_blocks
from course_utils.display.widgets.block_switches import (
    block_switches,
    counts,
    operations_of_a_token,
    size,
)
from course_utils.evaluation.costs import count_flops, layer_cost
from course_utils.models.attention import KeyValueCache
from course_utils.models.choices import LLAMA, Choices
from course_utils.models.modern import ModernBlock
from course_utils.models.modern_gpt import WindowCache
from course_utils.models.positions import rotate_halves, rotations
from tests.display.test_diagrams import elements, texts

ROLES = {"queries": "orange", "keys": "blue", "values": "green"}


def drawn(n_heads: int = 4, n_kv_heads: int = 2, d_model: int = 24):
    torch.manual_seed(0)
    blocks = {
        "old": ModernBlock(d_model, n_heads),
        "new": ModernBlock(
            d_model, n_heads, choices=replace(LLAMA, n_kv_heads=n_kv_heads)
        ),
    }
    turn = partial(rotate_halves, rotation=rotations(torch.arange(5), 6))
    return blocks, two_blocks(blocks, torch.ones(2, 5, d_model), new={"rotate": turn})


# -------------------------------------------------------------------------- the diagram


@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
def test_there_are_as_many_squares_as_heads(n_kv_heads):
    squares = [
        e.get("fill")
        for e in elements(drawn(n_kv_heads=n_kv_heads)[1].wide)
        if e.tag == "rect" and (e.get("width"), e.get("height")) == ("8", "10")
    ]
    found = [sum(colour in fill for fill in squares) for colour in ROLES.values()]
    assert found == [4 + 4, 4 + n_kv_heads, 4 + n_kv_heads]


def test_norm_activation_and_rope_are_those_of_each_block():
    said = texts(drawn()[1].wide)
    for word, times in {"LayerNorm": 2, "RMSNorm": 2, "gelu": 1, "silu": 1}.items():
        assert said.count(word) == times
    assert said.count("RoPE") == 1  # the first block turns nothing


def test_a_drawing_has_two_blocks():
    with pytest.raises(ValueError, match="got 1 blocks, expected two"):
        two_blocks({"one": ModernBlock(24, 4)}, torch.ones(2, 5, 24))


# --------------------------------------------------------------------------- the widget


def data_of(made) -> dict:
    return json.loads(re.search(r"const data=(.*);\n", made.html)[1])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kv", [8, 2, 1])
def test_the_parts_sum_to_the_parameters_of_the_whole_block(bias, kv):
    found = data_of(block_switches())["counts"]
    tail = "biases" if bias else "no biases"
    choices = Choices(norm="rms", feed_forward="swiglu", bias=bias, n_kv_heads=kv)
    parts = (f"norms/RMSNorm/{tail}", f"feed-forward/SwiGLU, three/{tail}")
    parts += (f"attention/{kv}/{tail}",)
    whole = ModernBlock(512, 8, choices=choices)
    assert sum(found[part] for part in parts) == size(whole)


def test_each_setting_of_the_switches_has_its_count():
    made = block_switches(d_model=64, n_heads=4)
    assert data_of(made)["counts"] == counts(64, 4, [4, 2, 1, 1])
    assert data_of(made)["d_head"] == 16


def test_sizes_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match="a multiple of n_heads"):
        block_switches(d_model=100, n_heads=8)


# ----------------------------------------------------------------------- its operations


def for_the_next_token(choices: Choices, n_tokens: int) -> int:
    """What a whole block computes for one token after so many."""
    block = ModernBlock(64, 4, choices=choices)
    kept = torch.zeros(1, choices.n_kv_heads or 4, n_tokens + 1, 16)
    cache = KeyValueCache(kept, kept, n_tokens)
    if (window := choices.windows[0]) is not None:
        kept = kept[:, :, : min(n_tokens, window - 1)]
        cache = WindowCache(kept, kept, window, n_tokens)
    token = torch.zeros(1, 1, 64)
    return count_flops(partial(block, token, need_weights=True, cache=cache))


@pytest.mark.parametrize("kv", [4, 2, 1])
@pytest.mark.parametrize("layer", ["gelu", "swiglu"])
def test_the_operations_sum_to_those_of_the_whole_block(kv, layer):
    work = operations_of_a_token(64, 4, [4, 2, 1])
    named = {"gelu": "GELU, two matrices", "swiglu": "SwiGLU, three"}[layer]
    expected = work[f"attention/{kv}"] + work[f"feed-forward/{named}"]
    choices = Choices(feed_forward=layer, n_kv_heads=kv)
    for n_tokens in (0, 1, 30):
        found = for_the_next_token(choices, n_tokens)
        assert found == expected + (n_tokens + 1) * work["key"]


def test_the_operations_are_those_of_chapter_15():
    """A token more costs what the polynomial grows by, of two keys counted once."""
    work = operations_of_a_token(64, 4, [4])
    more = layer_cost("attention, naive", 1, 64).flops
    assert work["attention/4"] + work["key"] == more


@pytest.mark.browser
def test_the_page_says_what_a_real_block_counts(tmp_path: Path):
    with opened(block_switches(d_model=64, n_heads=4).html, tmp_path) as page:
        assert stops(page) == 6  # one for each switch
        says, controls = page.locator(".cw-says"), page.locator(".cw-controls")
        picture = page.locator("svg").inner_html()
        controls.locator("[data-control=layer]").select_option("SwiGLU, three")
        for kv, tokens, window in ((0, 0, "none"), (1, 2, "256"), (2, 0, "1024")):
            controls.locator("[data-control=kv]").fill(str(kv))
            controls.locator("[data-control=n]").fill(str(tokens))
            controls.locator("[data-control=window]").select_option(window)
            choices = Choices(
                feed_forward="swiglu",
                n_kv_heads=2**kv,
                windows=(None if window == "none" else int(window),),
            )
            expected = for_the_next_token(choices, 2 ** (8 + tokens))
            assert f"it computes {expected:,} operations" in says.inner_text()
        assert page.locator("svg").inner_html() != picture
        assert page.locator("svg text", has_text="3 matrices").count() == 1
