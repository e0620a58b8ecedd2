"""Diagrams: what they draw is what was measured, and everybody can read it."""

from __future__ import annotations

import html
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from torch import nn

from course_utils.display import architecture, diagrams, plots
from course_utils.display.drawing import SMALLEST, Diagram, Drawing
from course_utils.display.figures import COLOURS_DARK, ROLE_COLOURS
from course_utils.display.trace import spell, trace
from course_utils.models import attention as attention_module
from course_utils.models.attention import MultiHeadAttention, SelfAttention
from course_utils.models.blocks import EncoderBlock
from course_utils.models.transformer import Transformer
from tests.display.test_plots import contrast, mixed

ROOT = Path(__file__).parents[2]
ALT = "Self-attention from the tokens to the context, step by step."
X8, X12 = torch.randn(2, 5, 8), torch.randn(2, 5, 12)  # (batch, n, d_model)
SOURCE = torch.tensor([[1, 2, 3, 4, 5], [1, 2, 3, 4, 0]])  # (batch 2, n 5)
TARGET = torch.ones(2, 7, dtype=torch.long)  # (batch 2, m 7)


def transformer(**options) -> Transformer:
    return Transformer(11, 13, d_model=12, n_heads=3, d_hidden=48, **options)


PICTURES = {
    "queries_keys_values": lambda: diagrams.queries_keys_values(
        SelfAttention(8, d_k=4, d_v=6), X8
    ),
    "heads": lambda: diagrams.heads(MultiHeadAttention(12, 3), X12),
    "block": lambda: diagrams.block(EncoderBlock(12, 3, 48), X12),
    "post-norm block": lambda: diagrams.block(EncoderBlock(12, 3, 48, "post"), X12),
    "transformer": lambda: diagrams.transformer(transformer(), SOURCE, TARGET),
    "map": lambda: Diagram(architecture.map_of("06")[0]),
}


@pytest.fixture(params=PICTURES)
def picture(request) -> Diagram:
    return PICTURES[request.param]()


def drawings(diagram: Diagram) -> list[Drawing]:
    return [d for d in (diagram.wide, diagram.narrow) if d is not None]


def elements(drawing: Drawing) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(f"<svg>{''.join(drawing.parts)}</svg>").iter())


def texts(drawing: Drawing) -> list[str]:
    found = (e for e in elements(drawing) if e.tag == "text")
    return ["".join(element.itertext()) for element in found]


def shapes(drawing: Drawing) -> Counter[str]:
    """How often each shape is written, wherever: `logits, m × n_words`."""
    axis = r"[a-z]+(?:model|hidden|head|words)?"
    found = (re.findall(rf"{axis} × {axis}$", text) for text in texts(drawing))
    return Counter(shape for line in found for shape in line)


@pytest.fixture
def shown(monkeypatch) -> list[dict[str, str]]:
    """Collect what is displayed."""
    seen: list[dict[str, str]] = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: seen.append(data))
    return seen


# --------------------------------------------------------------------------- measuring


def test_a_trace_holds_modules_and_torch_calls_with_their_tensors():
    layer = SelfAttention(8, d_k=4, d_v=6)
    record = trace(layer, X8)
    expected = ["qkv.linear", "qkv", "split", "transpose", "matmul", "div", "softmax"]
    assert [*record.steps] == [*expected, "matmul:2"]
    assert [tuple(t.shape) for t in record["split"].outputs] == [
        (2, 5, 4),
        (2, 5, 4),
        (2, 5, 6),
    ]
    context, weights = layer(X8)
    assert torch.equal(record["softmax"].output, weights)
    assert torch.equal(record["matmul:2"].output, context)
    assert torch.equal(record["qkv"].inputs[0], X8)


def test_a_trace_names_a_call_after_the_module_it_ran_in_and_takes_functions_too():
    record = trace(nn.Sequential(nn.Linear(8, 3), nn.Sequential(nn.ReLU())), X8)
    assert [*record.steps] == ["0.linear", "0", "1.0.relu", "1.0", "1"]
    assert [*trace(torch.tanh, X8).steps] == ["tanh"]


def test_a_trace_leaves_no_hook_behind():
    layer = SelfAttention(8, d_k=4, d_v=6)
    with pytest.raises(ValueError, match="expected"):
        trace(layer, X12)
    for module in layer.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks


def test_a_step_that_did_not_happen_is_answered_with_those_that_did():
    record = trace(SelfAttention(8, d_k=4, d_v=6), X8)
    with pytest.raises(KeyError, match=r"no step 'matmul:3'.*matmul, matmul:2"):
        record["matmul:3"]


def test_shapes_are_written_in_names_and_the_batch_is_left_out():
    sizes = {"batch": 2, "n": 5, "d_k": 4}
    assert spell((2, 5, 4), sizes) == "n × d_k"
    assert spell((5, 7), sizes) == "n × 7"
    with pytest.raises(ValueError, match="n and d_k are both 5"):
        spell((5, 5), {"n": 5, "d_k": 5})


# ------------------------------------------------------------ what is drawn is measured


def test_the_shapes_of_queries_keys_and_values_are_those_of_the_forward_pass():
    layer = SelfAttention(8, d_k=4, d_v=6)
    picture = diagrams.queries_keys_values(layer, X8)
    queries, keys, values = layer.qkv(X8).split(layer.sizes, dim=-1)
    products = torch.einsum("bqd,bkd->bqk", queries, keys)
    context, weights = layer(X8)
    measured = [X8, queries, keys, values, products, products, weights, context]
    names = {5: "n", 8: "dmodel", 4: "dk", 6: "dv"}
    expected = Counter(" × ".join(names[s] for s in t.shape[1:]) for t in measured)
    matrices = layer.qkv.weight.split(layer.sizes)
    expected += Counter(f"{names[8]} × {names[len(w)]}" for w in matrices)
    for drawing in drawings(picture):
        assert shapes(drawing) == expected


def test_matrices_are_drawn_as_large_as_they_are():
    def widths(d_k: int) -> Counter[float]:
        drawing = diagrams.queries_keys_values(SelfAttention(8, d_k, 6), X8).wide
        found = [
            e for e in elements(drawing) if e.tag == "rect" and "rx" not in e.attrib
        ]
        framed = (e for e in found if e.get("stroke-width") in ("2.4", "1.2"))
        return Counter(float(e.attrib["width"]) / 9 for e in framed)

    assert widths(4) == {8: 1, 4: 4, 6: 3, 5: 2}  # X; W_Q, W_K, Q, K; W_V, V, C; S, A
    assert widths(3) == {8: 1, 3: 4, 6: 3, 5: 2}


def test_the_weights_are_drawn_in_the_ramp_of_every_figure():
    layer = SelfAttention(8, d_k=4, d_v=6)
    _, weights = layer(X8)
    drawing = diagrams.queries_keys_values(layer, X8).wide
    cells = [e for e in elements(drawing) if e.get("width") == e.get("height") == "9"]
    drawn = torch.tensor([float(e.attrib["fill-opacity"]) for e in cells])
    torch.testing.assert_close(drawn, weights[0].flatten(), atol=0.006, rtol=0)
    blue = plots.COLOURS["blue"]
    assert {e.get("fill") for e in cells} == {f"var(--course-blue, {blue})"}


def test_an_attention_that_changed_can_not_be_drawn_as_it_was(monkeypatch):
    def unscaled(queries, keys, values, mask=None):
        weights = torch.softmax(queries @ keys.transpose(-2, -1), dim=-1)
        return weights @ values, weights

    monkeypatch.setattr(attention_module, "attention", unscaled)
    with pytest.raises(KeyError, match="no step 'div'"):
        diagrams.queries_keys_values(SelfAttention(8, d_k=4, d_v=6), X8)


def test_heads_are_as_many_as_the_layer_has_and_show_their_own_weights():
    layer = MultiHeadAttention(12, 3)
    drawing = diagrams.heads(layer, X12).wide
    assert shapes(drawing) == {"n × dmodel": 3, "n × dhead": 1, "n × n": 3}
    said = texts(drawing)
    assert {"head 1", "head 2", "head 3", "C3"} <= {*said}
    assert any("split into 3 heads" in text for text in said)
    _, weights = layer(X12, need_weights=True)
    cells = [e for e in elements(drawing) if e.get("width") == e.get("height") == "11"]
    drawn = torch.tensor([float(e.attrib["fill-opacity"]) for e in cells])
    torch.testing.assert_close(drawn, weights[0].flatten(), atol=0.006, rtol=0)
    two = texts(diagrams.heads(MultiHeadAttention(12, 2), X12).wide)
    assert "head 2" in two
    assert "head 3" not in two


def test_a_block_shows_its_own_widths_activation_and_order():
    drawing = diagrams.block(EncoderBlock(12, 3, 48), X12).wide
    assert shapes(drawing) == {"n × dmodel": 4, "n × dhidden": 1}
    assert "relu" in texts(drawing)
    post = EncoderBlock(12, 3, 48, "post", activation="gelu")
    other = diagrams.block(post, X12).wide
    assert "gelu" in texts(other)
    assert shapes(other) == {"n × dmodel": 2, "n × dhidden": 1}

    def norms(drawn: Drawing) -> set[float]:
        found = (e for e in elements(drawn) if e.text == "LayerNorm")
        return {float(e.attrib["x"]) for e in found}

    assert norms(drawing) == {182}  # in the branch
    assert norms(other) == {44}  # on the stream


def test_the_transformer_shows_its_own_sizes_layers_and_masks():
    model = transformer(n_layers=3)
    drawing = diagrams.transformer(model, SOURCE, TARGET).wide
    assert shapes(drawing) == {"n × dmodel": 2, "m × dmodel": 1, "m × nwords": 1}
    assert texts(drawing).count("× 3") == 2
    assert {"source tokens, n", "target tokens, m", "1", "2", "3"} <= {*texts(drawing)}
    hatched = sum(
        e.get("stroke-width") == "1" and e.tag == "path" for e in elements(drawing)
    )
    assert hatched == 7 * 6 / 2 + 1  # above the diagonal, and in the legend
    padded = SOURCE.flip(0)  # whose first sentence ends in padding
    more = diagrams.transformer(model, padded, TARGET).wide
    now = sum(e.get("stroke-width") == "1" and e.tag == "path" for e in elements(more))
    assert now == hatched + 5 + 7  # a column of encoder and cross-attention


def test_a_picture_is_refused_where_it_would_not_be_true_or_not_fit():
    with pytest.raises(ValueError, match="norms after the sums"):
        diagrams.transformer(transformer(norm="post"), SOURCE, TARGET)
    with pytest.raises(ValueError, match=r"d_model is 64.*room for 12"):
        diagrams.heads(MultiHeadAttention(64, 4), torch.randn(2, 5, 64))
    with pytest.raises(ValueError, match="batch and n are both 5"):
        diagrams.heads(MultiHeadAttention(12, 3), torch.randn(5, 5, 12))


# ------------------------------------------------------------------ one visual language


def test_queries_are_orange_keys_blue_and_values_green_in_every_picture():
    assert [ROLE_COLOURS[r] for r in ("queries", "keys", "values")] == [
        "orange",
        "blue",
        "green",
    ]
    for name in ("queries_keys_values", "heads", "block", "transformer"):
        page = "".join(PICTURES[name]().wide.parts)
        for role in ("queries", "keys", "values"):
            assert f"var(--course-{ROLE_COLOURS[role]}," in page, (name, role)


def test_what_is_learned_has_a_solid_frame_and_what_is_fixed_a_dashed_one():
    drawing = diagrams.block(EncoderBlock(12, 3, 48), X12).wide
    boxes = [e for e in elements(drawing) if e.get("rx")]
    dashed = [box for box in boxes if box.get("stroke-dasharray")]
    assert len(boxes) == 4  # two norms, attention, activation
    assert len(dashed) == 1  # the activation
    model = transformer()
    fixed = sum(
        bool(e.get("stroke-dasharray"))
        for e in elements(diagrams.transformer(model, SOURCE, TARGET).wide)
    )
    assert fixed == 3  # positions twice, and the legend
    positions = model.positions
    del model.positions
    model.positions = nn.Parameter(positions)
    learned = elements(diagrams.transformer(model, SOURCE, TARGET).wide)
    assert sum(bool(e.get("stroke-dasharray")) for e in learned) == 1


@pytest.mark.parametrize("palette", [plots.COLOURS, COLOURS_DARK])
def test_words_can_be_read_on_every_box(palette):
    for share in (0.0, 0.03, 0.08, 0.12):
        surface = mixed(palette["muted"], palette["surface"], share)
        for name in ("ink", "blue"):
            assert contrast(palette[name], surface) >= 4.5, (name, share)
    lit = mixed(palette["blue"], palette["surface"], 0.14)
    for name in ("ink", "blue"):
        assert contrast(palette[name], lit) >= 4.5, name
    assert contrast(palette["surface"], palette["blue"]) >= 4.5
    assert contrast(palette["muted"], palette["surface"]) >= 4.5


def test_no_colour_is_drawn_that_a_dark_page_can_not_change(picture):
    for drawing in drawings(picture):
        for element in elements(drawing):
            for paint in (element.get("fill"), element.get("stroke")):
                assert paint in (None, "none") or paint.startswith("var(--course-")


# --------------------------------------------------------------------------- on a phone


def test_a_phone_gets_a_picture_of_at_most_360_units_with_text_it_can_show(picture):
    for_phone = picture.narrow or picture.wide
    assert for_phone.width <= 360
    for drawing in drawings(picture):
        sizes = [e.get("font-size") for e in elements(drawing) if e.tag == "text"]
        assert sizes
        assert min(map(float, sizes)) >= SMALLEST
    with pytest.raises(ValueError, match="can't be read on a phone"):
        Drawing(10, 10).text(5, 5, "small", size=9)


def test_nothing_leaves_the_picture(picture):
    for drawing in drawings(picture):
        for e in elements(drawing):
            box = {k: float(e.get(k, 0)) for k in ("x", "y", "width", "height")}
            if e.tag == "rect":
                assert box["x"] >= 0, e.attrib
                assert box["x"] + box["width"] <= drawing.width, e.attrib
                assert box["y"] >= 0, e.attrib
                assert box["y"] + box["height"] <= drawing.height, e.attrib
            elif e.tag == "text" and not e.get("transform"):
                size, letters = float(e.attrib["font-size"]), "".join(e.itertext())
                wide = 0.55 * size * len(letters)
                left = {"middle": wide / 2, "end": wide}.get(
                    e.get("text-anchor", ""), 0
                )
                assert box["x"] - left >= 0, letters
                assert box["x"] - left + wide <= drawing.width, letters
                assert 0.7 * size <= box["y"] <= drawing.height, letters


def test_a_wide_page_shows_the_wide_drawing_and_a_phone_the_narrow_one(shown):
    diagrams.show(
        PICTURES["queries_keys_values"](), alt=ALT, caption="From $X$ to $C$."
    )
    page = shown[0]["text/html"]
    assert 'class="course-figure course-diagram"' in page
    wide, narrow = re.findall(r'<svg [^>]*class="course-(\w+)"[^>]*display:(\w+)', page)
    assert (wide, narrow) == (("wide", "block"), ("narrow", "none"))
    css = (ROOT / "book" / "_static" / "course.css").read_text("utf-8")
    for name, display in (("wide", "none"), ("narrow", "block")):
        rule = rf"\.course-figure \.course-{name} \{{ display: {display} !important"
        assert re.search(rule, css)


# ---------------------------------------------------------------------- words and links


def test_a_diagram_carries_its_alt_text_and_its_caption(shown):
    diagrams.show(PICTURES["heads"](), alt=ALT + " <x>", caption="Three heads.")
    page, plain = shown[0]["text/html"], shown[0]["text/plain"]
    assert f'role="img" aria-label="{ALT} &lt;x&gt;"' in page
    assert "Three heads.</figcaption>" in page
    assert plain == f"{ALT} <x>\nThree heads."


@pytest.mark.parametrize("alt", ["", "too short", None])
def test_a_diagram_without_alt_text_is_refused(alt):
    with pytest.raises(ValueError, match="20 characters"):
        diagrams.show(PICTURES["heads"](), alt=alt)


def test_words_are_words_and_a_formula_ends_on_its_line():
    drawing = Drawing(100, 40)
    drawing.text(50, 20, "a $d_k$ < $d_model$ b")
    (text,) = (e for e in elements(drawing) if e.tag == "text")
    assert "".join(text.itertext()) == "a dk < dmodel b"
    shifts = [float(e.get("dy", 0)) for e in text.iter("tspan")]
    assert sum(shifts) == pytest.approx(0)
    assert max(shifts) > 0
    slanted = {e.text for e in text.iter("tspan") if e.get("font-style") == "italic"}
    assert slanted == {"d", "k"}
    with pytest.raises(ValueError, match=r"one `\$` too many"):
        drawing.text(50, 20, "$d_k")


def links(drawing: Drawing) -> list[ElementTree.Element]:
    return [e for e in elements(drawing) if e.tag == "a"]


def test_the_boxes_of_the_transformer_lead_to_the_chapters_that_teach_them(shown):
    picture = PICTURES["transformer"]()
    found = {(e.attrib["href"], e.findtext("title")) for e in links(picture.wide)}
    assert ("09_masking.html", "Chapter 09: masks") in found
    assert ("10_multi_head.html", "Chapter 10: several heads") in found
    assert len(found) == 7
    reached = [e for e in links(picture.wide) if e.get("tabindex") is None]
    assert len(reached) == 7  # by the keyboard each chapter once
    diagrams.show(picture, alt=ALT)
    assert 'role="group"' in shown[0]["text/html"]  # an image would hide its links
    assert 'role="img"' not in shown[0]["text/html"]


def test_the_map_knows_the_chapters_of_the_book():
    files = {p.stem[:2]: p.stem for p in (ROOT / "book").glob("[0-9][0-9]_*.ipynb")}
    assert {n: page for n, (page, _) in architecture.CHAPTERS.items()} == files


@pytest.mark.parametrize("chapter", architecture.CHAPTERS)
def test_the_map_lights_what_a_chapter_is_about_and_links_them_all(chapter, shown):
    drawing, said = architecture.map_of(chapter)
    pages = {f"{page}.html" for page, _ in architecture.CHAPTERS.values()}
    assert {e.attrib["href"] for e in links(drawing)} == pages
    by_keys = [e.attrib["href"] for e in links(drawing) if e.get("tabindex") is None]
    assert sorted(by_keys) == sorted(pages)  # each once
    here = {e.attrib["href"] for e in links(drawing) if e.get("aria-current")}
    assert here == {f"{architecture.CHAPTERS[chapter][0]}.html"}
    lit = [e for e in elements(drawing) if e.get("fill-opacity") == "0.14"]
    assert lit
    assert len(lit) < 10
    diagrams.course_map(chapter)
    page, plain = shown[0]["text/html"], shown[0]["text/plain"]
    assert plain == said
    assert '<nav class="course-diagram" aria-label="Map of the course"' in page
    assert f'role="group" aria-label="{html.escape(said)}"' in page
    assert 'class="course-figure' not in page  # it has no number


def test_the_map_of_no_chapter_is_refused():
    with pytest.raises(ValueError, match="no chapter '99'; expected one of 01"):
        diagrams.course_map("99")


def test_every_chapter_that_shows_a_map_shows_its_own():
    maps = {}
    for number, (page, _) in architecture.CHAPTERS.items():
        text = (ROOT / "book" / f"{page}.ipynb").read_text("utf-8")
        maps[number] = re.findall(r'diagrams\.course_map\(\\"(\d\d)\\"\)', text)
    assert all(found in ([number], []) for number, found in maps.items()), maps
    assert sum(map(bool, maps.values())) >= len(maps) - 1
