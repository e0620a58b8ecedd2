"""Metrics: how good a translation, an alignment or a language model is.

Sentences are lists of tokens, or strings with spaces between the tokens. BLEU runs
from 0 to 100, as everywhere; the other scores are shares from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from course_utils.doors import check_arguments
from course_utils.shapes import Float, shape_of

Sentence = str | Sequence[str]
Links = Collection[tuple[int, int]]


def words(sentence: Sentence) -> list[str]:
    """Return a sentence's tokens, whether it came as a list or as a string."""
    return sentence.split() if isinstance(sentence, str) else list(sentence)


def require_pairs(first: Sequence[Any], second: Sequence[Any], names: str) -> None:
    """Refuse lists of unequal length, and empty ones, which have no score."""
    if len(first) != len(second) or len(first) == 0:
        raise ValueError(
            f"{names} number {len(first)} and {len(second)}, expected equally many and "
            "at least one; check that none was dropped on the way."
        )


def bleu(hypotheses: Sequence[Sentence], references: Sequence[Sentence]) -> float:
    """Return corpus BLEU, 0 to 100: n-grams shared with the references, $n = 1, …, 4$.

    $min(1, e^(1 - r/h)) (p_1 p_2 p_3 p_4)^(1/4)$, by sacrebleu on tokens as they are.
    Taught in chapters 02 and 12.
    """
    require_pairs(hypotheses, references, "hypotheses and references")
    import sacrebleu

    said = [" ".join(words(h)) for h in hypotheses]
    wanted = [" ".join(words(r)) for r in references]
    return sacrebleu.corpus_bleu(said, [wanted], tokenize="none", force=True).score


def exact_match(
    hypotheses: Sequence[Sentence], references: Sequence[Sentence]
) -> float:
    """Return the share of sentences that are right to the last token.

    Taught in chapter 02.
    """
    require_pairs(hypotheses, references, "hypotheses and references")
    right = [words(h) == words(r) for h, r in zip(hypotheses, references)]
    return sum(right) / len(right)


def token_accuracy(
    hypotheses: Sequence[Sentence], references: Sequence[Sentence]
) -> float:
    """Return the share of reference tokens found at their very place.

    Taught in chapter 02.
    """
    require_pairs(hypotheses, references, "hypotheses and references")
    right = total = 0
    for hypothesis, reference in zip(hypotheses, references):
        right += sum(a == b for a, b in zip(words(hypothesis), words(reference)))
        total += len(words(reference))
    if total == 0:
        raise ValueError("the references hold no token at all; nothing to compare.")
    return right / total


class Bucket(NamedTuple):
    """The sentences of one range of lengths, both ends included, and their score."""

    low: int
    high: int
    n_sentences: int
    score: float


def by_length(
    metric: Callable[[Sequence[Sentence], Sequence[Sentence]], float],
    hypotheses: Sequence[Sentence],
    references: Sequence[Sentence],
    lengths: Sequence[int],
    buckets: Sequence[tuple[int, int]],
) -> list[Bucket]:
    """Score each range of lengths by itself: does quality fall as sentences grow?

    `lengths` are usually the sources'. Buckets without a sentence are left out.
    Taught in chapter 02.
    """
    require_pairs(hypotheses, references, "hypotheses and references")
    require_pairs(hypotheses, lengths, "hypotheses and lengths")
    report = []
    for low, high in buckets:
        rows = [i for i, length in enumerate(lengths) if low <= length <= high]
        if rows:
            said, wanted = [hypotheses[i] for i in rows], [references[i] for i in rows]
            report.append(Bucket(low, high, len(rows), metric(said, wanted)))
    if not report:
        raise ValueError(
            f"no sentence falls into the buckets {list(buckets)}; the lengths run from "
            f"{min(lengths)} to {max(lengths)}."
        )
    return report


def strongest_links(
    weights: Float[Tensor, "target source"],
) -> set[tuple[int, int]]:
    """Link each target token to the source token it looks at most: (source, target).

    Cut padding and the end token off first. Taught in chapter 03.
    """
    if weights.ndim != 2 or 0 in weights.shape:
        raise ValueError(
            f"weights has shape {shape_of(weights)}, expected (target, source) of one "
            "sentence, without padding."
        )
    return {(int(j), t) for t, j in enumerate(weights.argmax(-1).tolist())}


def alignment_error_rate(
    sure: Sequence[Links], possible: Sequence[Links], predicted: Sequence[Links]
) -> float:
    """Compare predicted links with a gold standard of sure and possible ones.

    $AER = 1 - (|A & S| + |A & P|) / (|A| + |S|)$, over all sentences; sure links count
    as possible. 0 is best. Taught in chapter 03.
    """
    require_pairs(sure, predicted, "sure and predicted alignments")
    require_pairs(possible, predicted, "possible and predicted alignments")
    hits = total = 0
    for s, p, a in zip(map(set, sure), map(set, possible), map(set, predicted)):
        hits += len(a & s) + len(a & (p | s))
        total += len(a) + len(s)
    if total == 0:
        raise ValueError("no link was predicted and none is sure; nothing to compare.")
    return 1 - hits / total


def alignment_accuracy(gold: Sequence[Links], predicted: Sequence[Links]) -> float:
    """Return the share of predicted links that the gold standard allows.

    |A & P| / |A| over all sentences, with P its sure and possible links. Taught in
    chapter 03.
    """
    require_pairs(gold, predicted, "gold and predicted alignments")
    hits = sum(len(set(g) & set(a)) for g, a in zip(gold, predicted))
    total = sum(len(set(a)) for a in predicted)
    if total == 0:
        raise ValueError("no link was predicted; nothing to compare.")
    return hits / total


def bits_per_character(
    nats_per_token: float, n_tokens: int, n_characters: int
) -> float:
    """Turn a language model's loss into bits per character, whatever its tokens.

    (nats / ln 2) * tokens / characters: models with different tokens can be compared.
    Taught in chapter 13.
    """
    if n_tokens < 1 or n_characters < 1:
        raise ValueError(
            f"{n_tokens} tokens and {n_characters} characters, expected at least one "
            "of each."
        )
    return nats_per_token / math.log(2) * n_tokens / n_characters


check_arguments(__name__)
