"""Today's block: what is drawn and what the switches count is what was run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial

import pytest
import torch

from course_utils.display.modern_diagrams import two_blocks
from course_utils.display.widgets.block_switches import block_switches, counts, size
from course_utils.models.choices import LLAMA, Choices
from course_utils.models.modern import ModernBlock
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
