"""A text box that asks a live kernel, and its cells in the notebooks."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from course_utils.data.corpus import Vocabulary
from course_utils.display.kernel_widgets import ask
from course_utils.tasks.translation import typed
from tools.notebooks.io import ROOT, read, tags


@pytest.fixture
def heard(capsys):
    """What was printed since, without what clears a line of a terminal."""
    return lambda: re.sub(r"\x1b\[2K\r", "", capsys.readouterr().out)


def test_what_is_typed_is_answered_and_what_is_refused_is_a_sentence(heard):
    def shout(text):
        if not text:
            raise ValueError("nothing was typed.")
        print(text.upper())

    box, said = ask(shout, "Say", "one").children
    assert heard() == "ONE\n"
    box.value = "two"
    assert heard() == "TWO\n"
    box.value = ""
    assert heard() == "nothing was typed.\n"
    assert not box.continuous_update
    assert said.outputs == ()


def test_a_choice_is_handed_over_by_its_name(heard):
    def repeat(text, times):
        print(text * times)

    _, menu, _ = ask(repeat, "Say", "a", times=[2, 3]).children
    menu.value = 3
    assert heard() == "aa\naaa\n"
    with pytest.raises(ValueError, match="times offers nothing"):
        ask(repeat, "Say", "a", times=[])


def test_the_first_example_has_to_be_answered():
    with pytest.raises(ZeroDivisionError):
        ask(lambda text: print(1 / 0), "Say", "a")
    with pytest.raises(ValueError, match="nothing was typed"):
        ask(lambda text: print(typed(text, Vocabulary([["a"]]))), "Say", "")


def test_typed_words_are_split_and_strange_ones_named():
    vocabulary = Vocabulary([["the", "cat", "sleeps", ".", "I"]])
    assert typed("The cat  sleeps.", vocabulary) == ["the", "cat", "sleeps", "."]
    assert typed("I", vocabulary) == ["I"]
    with pytest.raises(ValueError, match=r"never read zebra, runs; it knows 5 words"):
        typed("the zebra runs .", vocabulary)
    with pytest.raises(ValueError, match=r"nothing was typed; write words such as I"):
        typed("  ", vocabulary)


def test_the_site_leaves_out_what_needs_a_kernel_and_the_words_on_it():
    found = 0
    for path in sorted((ROOT / "book").glob("*.ipynb")):
        cells = read(path).cells
        for words, cell in pairwise(cells):
            if (
                cell.cell_type == "code"
                and "course_utils.display.kernel_widgets" in cell.source
            ):
                found += 1
                assert "remove-cell" in tags(cell), path.name
                assert words.cell_type == "markdown"
                assert "remove-cell" in tags(words), path.name
    assert found >= 3
