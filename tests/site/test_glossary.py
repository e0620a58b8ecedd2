"""Every word of the glossary is explained and leads to a chapter that uses it."""

from __future__ import annotations

import re

import pytest

from tools.notebooks.io import ROOT

PAGE = (ROOT / "book" / "glossary.md").read_text("utf-8")
ENTRIES = re.findall(
    r"^(\S.*)\n  (\S.*)$", PAGE.split("```{glossary}")[1], re.MULTILINE
)


def test_the_words_are_in_order():
    words = [word.lower() for word, _ in ENTRIES]
    assert len(words) > 50
    assert words == sorted(words)


@pytest.mark.parametrize(("word", "text"), ENTRIES, ids=lambda t: t.split(" ")[0])
def test_a_word_leads_to_chapters_that_use_it(word: str, text: str):
    chapters = re.findall(r"\{doc\}`(\d\d) <(\w+)>`", text)
    assert chapters, f"{word} leads to no chapter"
    for number, name in chapters:
        assert name.startswith(f"{number}_")
        page = (ROOT / "book" / f"{name}.ipynb").read_text("utf-8").lower()
        missing = [
            part for part in re.findall(r"\w+", word.lower()) if part not in page
        ]
        assert not missing, f"chapter {number} never says {missing}"
