"""The interactives of chapter 14: their data, and clear words for what does not fit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from one_widget import opened, stops

from course_utils.display.widgets.ask_the_scene import all_questions, ask_the_scene
from course_utils.display.widgets.patch_slider import patch_slider
from course_utils.tasks import scenes
from course_utils.tasks.scenes import QUESTION_WORDS, question_scenes


def data_of(made):
    return json.loads(re.search(r"const data=(.*);\n", made.html)[1])


def scene(n_objects=6):
    """A scene, the cell that is asked about, its question and its answer."""
    generator = torch.Generator().manual_seed(n_objects)
    images, questions, answers, gold = question_scenes(40, generator, "test", n_objects)
    return images[0], questions[0], answers[0], int(gold[0])


def example(n_objects=6):
    image = scene(n_objects)[0]
    places, questions = all_questions(image, range(n_objects))
    maps = torch.full((2 * n_objects, 2, 9), 1 / 9)
    return image, places, questions, questions[:, 1].flip(0), maps


@pytest.mark.parametrize("n_objects", [1, 4, 6])
def test_the_questions_name_the_colours_of_the_objects_in_order(n_objects):
    generator = torch.Generator().manual_seed(0)
    for image, question, _, cell in zip(
        *question_scenes(40, generator, "test", n_objects)
    ):
        places, questions = all_questions(image)
        assert len(places) == len(questions) == n_objects
        assert places == sorted(places)
        assert (questions[:, 0] == 16).all()
        assert questions[:, 1].unique().numel() == n_objects
        if question[0] == 16:
            assert questions[places.index(int(cell))].tolist() == question.tolist()


def test_with_digits_every_object_gets_a_second_question():
    places, questions = all_questions(scene()[0], [3, 1, 4, 5, 9, 2])
    assert questions.shape == (12, 2)
    assert questions[6:].tolist() == [[17, d] for d in (3, 1, 4, 5, 9, 2)]
    assert len(places) == 6


def test_a_scene_holds_its_objects_questions_and_maps():
    data = data_of(ask_the_scene("ask", [example(), example(4)]))
    first, second = data["scenes"].values()
    assert [len(s["places"]) for s in (first, second)] == [6, 4]
    assert np.shape(first["maps"]) == (12, 2, 9)
    assert np.shape(first["pixels"]) == (6, 64)
    assert np.max(first["pixels"]) == 9
    assert len(set(first["paint"])) == 6
    assert first["questions"][0][0] == "which-digit-is"
    assert set(first["answers"]) <= set(QUESTION_WORDS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ask_the_scene("ask", []), "got no scene"),
        (
            lambda: ask_the_scene("ask", [(*example()[:4], torch.ones(6, 2, 9))]),
            r"maps of shape \(6, 2, 9\) .* expected \(12, 2, 9\)",
        ),
        (lambda: all_questions(torch.zeros(2, 3, 24, 24)), "expected one scene"),
        (lambda: all_questions(scene()[0], [1, 2]), "2 digits for 6 objects"),
        (lambda: patch_slider("p", torch.zeros(3, 8, 8)), r"shape \(3, 8, 8\)"),
        (lambda: patch_slider("p", torch.zeros(8, 6)), r"shape \(8, 6\), expected"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_patch_slider_offers_every_size_that_divides_the_side():
    made = patch_slider("p", scenes.digits("train")[0][0])
    assert "[1, 2, 4, 8]" in made.html
    assert np.shape(data_of(made)["pixels"]) == (8, 8)


def test_the_patch_slider_begins_where_the_ink_is():
    image = torch.zeros(6, 6)
    image[3, 4] = 1.0  # row 4, column 5 of the pixels
    made = patch_slider("p", image)
    assert data_of(made)["darkest"] == {"1": 22, "2": 5, "3": 3, "6": 0}


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 720])
def test_the_words_lead_to_cells_that_light_up(tmp_path: Path, width: int):
    image, places, questions, answers, maps = example()
    maps = torch.zeros_like(maps)
    empty = next(cell for cell in range(9) if cell not in places)
    maps[:, 0, empty] = 1.0  # the first word: all on an empty cell
    maps[:, 1, places[0]] = 0.98  # the second: nearly all on the first object
    maps[:, 1, places[1]] = 0.02  # too little for a line, but not for its number
    made = ask_the_scene("ask", [(image, places, questions, answers, maps)])
    black = """e => [...e.querySelectorAll("rect")].map((r) => getComputedStyle(r))
        .filter((s) => s.fill === "rgb(0, 0, 0)").map((s) => +s.fillOpacity)"""
    names = [f"row {cell // 3 + 1}, column {cell % 3 + 1}" for cell in range(9)]
    with opened(made.html, tmp_path, width) as page:
        assert stops(page) == 3  # two choices and the objects
        stage, says = page.locator(".course-widget svg"), page.locator(".cw-says")
        _ground, *dark = stage.evaluate(black)
        assert stage.locator("circle").count() == 2  # each line ends in one
        found = stage.locator("text").all_text_contents()
        assert {"1.00", "0.98", "0.02"} <= set(found)
        said = says.inner_text()
        assert f"attends most to {names[empty]} (1.00), an empty cell" in said
        first = f"attends most to {names[places[0]]} (0.98)"
        assert f"{first}, the object that is asked about" in said
        stage.locator("[data-key]").nth(1).click()
        assert f"{first}, another object" in says.inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert len(dark) == 9
    assert dark[empty] == 0
    assert dark[places[0]] < 0.02
    assert min(d for c, d in enumerate(dark) if c not in (empty, places[0])) > 0.45
