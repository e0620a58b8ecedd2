"""The path of a prediction: what is drawn and what can be chosen is what was run."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch

from course_utils.display import diagrams
from course_utils.display.circuit_diagrams import CELL, circuit_path
from course_utils.display.widgets.circuit_explorer import circuit_explorer
from course_utils.models.attention_only import AttentionOnly
from course_utils.tasks.repeats import repeated
from tests.display.test_diagrams import elements, texts

WORDS = [*"ABCDEF"] * 2
ALT = "Six letters twice, and the way from the second C to its prediction."


def a_model(n_heads: int = 1, n_layers: int = 2) -> AttentionOnly:
    torch.manual_seed(0)
    return AttentionOnly(64, 16, n_heads, n_layers).eval()


def tokens() -> torch.Tensor:
    return repeated(1, torch.Generator().manual_seed(3), 6, 64)


def path(query: int = 8):
    return circuit_path(a_model(), tokens(), WORDS, query)


# -------------------------------------------------------------------------- the diagram


@pytest.mark.parametrize("query", [3, 8, 11])
def test_the_cells_are_the_weights_of_the_model(query):
    with torch.no_grad():
        weights = a_model()(tokens(), need_weights=True)[1][:, 0, 0]
    found = weights[1, query].argmax()
    expected = torch.cat([weights[0, found], weights[1, query]])
    drawn = [
        float(e.get("fill-opacity"))
        for e in elements(path(query).wide)
        if e.tag == "rect" and e.get("width") == f"{CELL:g}" and "blue" in e.get("fill")
    ]
    shown = expected[expected > 0.005]
    assert len(drawn) >= len(shown) > 0
    for weight in shown.tolist():
        assert min(abs(weight - other) for other in drawn) < 0.01


def test_each_token_stands_there_once_and_the_note_names_the_one_before():
    said = texts(path().wide)
    assert [word for word in said if word in WORDS] == WORDS
    assert sum(word.startswith("“before me: ") for word in said) == 1


def test_no_line_crosses_the_note():
    for query in range(1, 12):
        parts = elements(path(query).wide)
        said = [e for e in parts if e.tag == "text"]
        (note,) = (e for e in said if "before me" in "".join(e.itertext()))
        assert note.get("text-anchor") == "end"
        right = float(note.get("x"))
        assert right > 6 * len("“before me: C”")  # it begins inside the picture
        lines = [e.get("d") for e in parts if e.tag == "path"]
        upright = [float(x) for d in lines for x in re.findall(r"M([\d.]+) 237L", d)]
        assert upright
        assert min(upright) > right


def test_it_is_shown_with_its_alternative_text():
    page = diagrams.diagram_html(path(), ALT, "the-circuit", "One prediction.")
    assert f'aria-label="{ALT}"' in page
    assert "One prediction." in page


def test_other_models_and_rows_are_refused():
    with pytest.raises(ValueError, match=r"\[2, 2\] heads, expected 2 layers of one"):
        circuit_path(a_model(2), tokens(), WORDS, 8)
    with pytest.raises(ValueError, match="a position below 12 and a word for each"):
        circuit_path(a_model(), tokens(), WORDS, 12)


# --------------------------------------------------------------------------- the widget


def runs(n_heads: int = 4, n: int = 12) -> dict[str, dict[str, np.ndarray]]:
    generator = np.random.default_rng(0)
    weights = np.tril(generator.random((2, n_heads, n, n)))
    weights /= weights.sum(axis=-1, keepdims=True)
    chances = generator.random((n, n // 2))
    return {
        label: {"weights": weights * scale, "chances": chances}
        for label, scale in (("nothing", 1.0), ("layer 1", 0.5))
    }


def data_of(made) -> dict:
    return json.loads(re.search(r"const data=(.*);\n", made.html)[1])


def test_it_has_a_choice_for_each_run_and_starts_in_the_second_copy():
    made = circuit_explorer("c", runs(), WORDS)
    data = data_of(made)
    assert list(data["runs"]) == ["nothing", "layer 1"]
    assert data["kinds"] == WORDS[:6]
    weights = np.asarray(data["runs"]["nothing"]["weights"])
    assert np.allclose(weights, runs()["nothing"]["weights"], atol=0.006)
    start = re.search(r'data-control="token".*?<output>(\d+)</output>', made.html)
    assert int(start[1]) > len(WORDS) // 2


@pytest.mark.parametrize("n_heads", [1, 4, 6])
def test_there_is_room_for_every_head(n_heads):
    made = circuit_explorer("c", runs(n_heads), WORDS)
    height = int(re.search(r'height="(\d+)" style', made.html)[1])
    strips, headings, bars = 2 * n_heads * 22, 44 + 20 + 26, 74 + 17
    assert height >= strips + headings + bars


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match="words that are two copies"):
        circuit_explorer("c", runs(), [*"ABCDEFABCDEX"])
    with pytest.raises(ValueError, match=r"expected \(layer, head, 12, 12\)"):
        circuit_explorer("c", runs(n=10), WORDS)
    wrong = runs()
    wrong["layer 1"]["chances"] = np.zeros((12, 5))
    with pytest.raises(ValueError, match=r"chances of 'layer 1' are \(12, 5\)"):
        circuit_explorer("c", wrong, WORDS)
