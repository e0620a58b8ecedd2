"""Blank any word of a sentence; see what both sides expect there, and what one does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from course_utils.data.corpus import BOS, Vocabulary
from course_utils.display.interactive import Widget, script_of, slider, widget
from course_utils.models.bert import BERT
from course_utils.models.transformer import GPT
from course_utils.tasks.labels import MASK

BEST = 5  # words that are shown for a blank
ROW = 22


def readings(
    bert: BERT, gpt: GPT, sentences: Sequence[Sequence[str]], words: Vocabulary
) -> dict[str, dict[str, Any]]:
    """Ask both models for every word of every sentence, one at a time.

    BERT reads the sentence with `<mask>` at the blank, GPT what comes before it. Each
    answer is a list of the likeliest words with their probabilities. Used in chapter
    18.
    """
    found = {}
    for sentence in sentences:
        ids = torch.tensor([BOS, *words.encode(sentence)])
        n = len(sentence)
        blanked = ids.repeat(n, 1)
        blanked[torch.arange(n), torch.arange(1, n + 1)] = words.ids[MASK]
        with torch.no_grad():
            both = bert(blanked)[0][torch.arange(n), torch.arange(1, n + 1)]
            left = gpt(ids[None, :-1])[0][0]
        answers = {}
        for side, logits in (("both", both), ("left", left)):
            top = logits.softmax(dim=-1).topk(BEST)
            answers[side] = [
                [[words.tokens[i], round(p, 3)] for i, p in zip(row, chances)]
                for row, chances in zip(top.indices.tolist(), top.values.tolist())
            ]
        found[" ".join(sentence)] = {"words": list(sentence), **answers}
    return found


def blank_filler(name: str, sentences: Mapping[str, Mapping[str, Any]]) -> Widget:
    """Step through sentences and words to blank; bars show what two models put there.

    `sentences` is what `readings` returns; all have the same length. Used in chapter
    18.
    """
    lengths = {len(one["words"]) for one in sentences.values()}
    if len(lengths) != 1:
        raise ValueError(
            f"widget {name!r} got sentences of {sorted(lengths)} words, expected one "
            "sentence or more, all of the same length."
        )
    (n,) = lengths
    first, blank = telling_blank(list(sentences.values()))
    return widget(
        name,
        "Which word is missing?",
        [
            slider("sentence", "Sentence", list(range(1, len(sentences) + 1)), first),
            slider("blank", "Blank", list(range(1, n + 1)), blank),
        ],
        data={"sentences": list(sentences.values()), "row": ROW},
        script=script_of(__name__),
        alt="A sentence with one word blanked. Below it two lists of bars: the words "
        "that BERT, which reads both sides, finds likeliest for the blank, and those "
        "that GPT finds likeliest after the left side alone. The word that stood there "
        "is green.",
        height=66 + 2 * (28 + BEST * ROW),
    )


def telling_blank(sentences: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Where to begin: both sides give the word, the left one alone does not.

    The sentence and the word, counted from 1, at which BERT's first guess is right and
    GPT's is wrong, the surest of them; the third word of the first if there is none.
    """
    found = [(0.0, 1, min(3, len(sentences[0]["words"])))]
    for i, one in enumerate(sentences):
        for j, truth in enumerate(one["words"]):
            (guess, chance), (other, _) = one["both"][j][0], one["left"][j][0]
            if guess == truth != other:
                found.append((chance, i + 1, j + 1))
    _, sentence, blank = max(found, key=lambda entry: entry[0])
    return sentence, blank
