"""Choose a document and see how much each of its words counts, by several rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from course_utils.display.interactive import Widget, plain, script_of, select, widget


def token_weights(
    name: str,
    documents: Mapping[str, Sequence[str]],
    weights: Mapping[str, Mapping[str, Any]],
) -> Widget:
    """Choose a document and see its words shaded by their weights, rule by rule.

    `documents` holds the words of each document by its title; `weights[rule][title]`
    has one weight for each word, and they sum to one: a_t = e^(s_t) / sum_u e^(s_u).
    Press a word to see its weight by every rule. Used in chapter 01.
    """
    if not documents or not weights:
        raise ValueError(
            f"token_weights got {len(documents)} documents and {len(weights)} rules, "
            "expected at least one of each."
        )
    for rule, by_title in weights.items():
        for title, words in documents.items():
            if title not in by_title:
                raise ValueError(
                    f"rule {rule!r} has no weights for document {title!r}; give one "
                    "list for each document."
                )
            own = plain(by_title[title])
            if not words or len(own) != len(words):
                raise ValueError(
                    f"rule {rule!r} has {len(own)} weights for the {len(words)} words "
                    f"of {title!r}, expected one for each word, and at least one word."
                )
            if min(own) < 0 or abs(sum(own) - 1) > 0.01:
                raise ValueError(
                    f"the weights of rule {rule!r} for {title!r} run from "
                    f"{min(own):.3g} and sum to {sum(own):.3g}, expected shares from 0 "
                    "that sum to 1; divide them by their sum."
                )
    longest = max(sum(8 * len(w) + 22 for w in words) for words in documents.values())
    lines = 1 + longest // 300  # on a phone; fewer where there is more room
    return widget(
        name,
        "How much does each word count? (press a word to compare the rules)",
        [
            select("document", "Document", list(documents)),
            select("rule", "Weights", list(weights)),
        ],
        data={
            "documents": {title: list(words) for title, words in documents.items()},
            "weights": {rule: dict(by_title) for rule, by_title in weights.items()},
        },
        script=script_of(__name__),
        alt="The words of a document, each shaded by its weight. Uniform weights shade "
        "all words alike; TF-IDF shades the words that few documents hold; learned "
        "weights shade those that tell the classes apart and leave other rare words "
        "nearly white.",
        height=34 * lines + 28 * len(weights) + 36,
    )
