"""The questions of chapter 01 on weights: the layer, the fold, and who decides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import first, normal, second, sizes

# ------------------------------------------------------------ 01.4 the weighted average


def average(weights: Tensor, tokens: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    return (weights[..., None] * vectors[tokens]).sum(dim=-2), weights


def token_weights(tokens: Tensor, scores: Tensor) -> Tensor:
    return scores[tokens].masked_fill(tokens == 0, -math.inf).softmax(dim=-1)


def weighted_average(
    tokens: Tensor, scores: Tensor, vectors: Tensor
) -> tuple[Tensor, Tensor]:
    return average(token_weights(tokens, scores), tokens, vectors)


def there(tokens: Tensor) -> Tensor:
    return (tokens != 0).float()


def draw_documents(
    rng: np.random.Generator, lengths: tuple[int, ...], longest: int | None = None
) -> Args:
    """Draw documents of these lengths; id 0 has a score and a vector like any other."""
    vocabulary, d = 11, 4
    tokens = np.zeros((len(lengths), longest or max(lengths)), np.int64)
    for row, length in zip(tokens, lengths):
        row[:length] = rng.integers(1, vocabulary, length)
        row[:2] = 1 + rng.permutation(vocabulary - 1)[:2]  # two different words
    scores, vectors = normal(rng, vocabulary), normal(rng, vocabulary, d)
    scores[0] += np.sign(scores[0]) / 2
    return tokens, scores, vectors


def draw_full(rng: np.random.Generator) -> list[Args]:
    n, m = sizes(rng, 2, least=5)
    return [draw_documents(rng, (n, n, n)), draw_documents(rng, (m, m))]


LAYER = Question(
    id="01.4",
    title="A weighted average that ignores padding",
    answer="weighted_average",
    arguments=("tokens", "scores", "vectors"),
    outputs=(Output("average", "d"), Output("weights", "token")),
    reference=weighted_average,
    next_step="look up the scores, hide the padding, then the softmax over tokens.",
    parts=(
        Part("the weights", 1, draw_full, view=second),
        Part("the average", 1, draw_full, view=first),
        Part(
            "padding",
            2,
            lambda rng: [
                draw_documents(rng, (7, 3, 5)),
                draw_documents(rng, (4, 6), longest=9),
            ],
            alone="right while all documents are equally long, wrong when some are "
            "filled up with id 0: what stands there is no word",
        ),
        Part(
            "no loop",
            1,
            lambda rng: [
                draw_documents(rng, lengths)
                for lengths in ((5, 5), (3, 8, 4, 6), (9, 2, 7))
            ],
            steady=True,
        ),
    ),
    mistakes=(
        Mistake(
            "padding_counted",
            "the padding gets a share of the weight, as if it were a word: the same "
            "document would change with the length of its neighbours in the batch",
            lambda t, s, v: average(s[t].softmax(-1), t, v),
        ),
        Mistake(
            "padding_removed_afterwards",
            "the padding is set to zero after the softmax: its share is lost, and the "
            "words that are there no longer sum to one",
            lambda t, s, v: average(s[t].softmax(-1) * there(t), t, v),
        ),
        Mistake(
            "padding_scores_zero",
            "the padding gets the score 0, but e⁰ is 1, a share like any other; "
            "which score has an exponential of zero?",
            lambda t, s, v: average((s[t] * there(t)).softmax(-1), t, v),
        ),
        Mistake(
            "padding_scores_low",
            "the padding gets a low score such as −1, and with it a small share; only "
            "one score has an exponential of exactly zero",
            lambda t, s, v: average(s[t].masked_fill(t == 0, -1.0).softmax(-1), t, v),
        ),
        Mistake(
            "softmax_over_documents",
            "the softmax runs down the batch: documents compete with each other for a "
            "place; the words of one document are to share its weight",
            lambda t, s, v: average(
                s[t].masked_fill(t == 0, -math.inf).softmax(0), t, v
            ),
        ),
        Mistake(
            "scores_for_weights",
            "the scores are used as weights: they may be negative and don't sum to one",
            lambda t, s, v: average(s[t] * there(t), t, v),
        ),
        Mistake(
            "not_divided",
            "the exponentials are not divided by their sum: a long document gets a "
            "long vector",
            lambda t, s, v: average(s[t].exp() * there(t), t, v),
        ),
        Mistake(
            "softmax_over_vocabulary",
            "the softmax runs over the whole vocabulary: words that are not in the "
            "document take part of its weight",
            lambda t, s, v: average(s.softmax(0)[t] * there(t), t, v),
        ),
        Mistake(
            "uniform",
            "all words weigh the same: the scores are not used",
            lambda t, s, v: average(there(t) / there(t).sum(-1, keepdim=True), t, v),
        ),
        Mistake(
            "divided_twice",
            "the average is divided by the number of words once more: weights that "
            "sum to one have done that already",
            lambda t, s, v: (
                (token_weights(t, s)[..., None] * v[t]).mean(-2),
                token_weights(t, s),
            ),
        ),
        Mistake(
            "divided_by_the_sum",
            "the scores are divided by their sum, without the exponential: that sum "
            "may be near zero, and weights may come out negative",
            lambda t, s, v: average(
                s[t] * there(t) / (s[t] * there(t)).sum(-1, keepdim=True), t, v
            ),
        ),
        Mistake(
            "order",
            "the two results come in the wrong order: the average first, then the "
            "weights",
            lambda t, s, v: weighted_average(t, s, v)[::-1],
        ),
    ),
)


# ------------------------------------------------------------------------ 01.5 the fold


def fold(scores: Tensor, vectors: Tensor) -> Tensor:
    return scores.exp()[:, None] * vectors


def draw_table(rng: np.random.Generator) -> Args:
    vocabulary, d = sizes(rng, 2, least=4)
    return normal(rng, vocabulary), normal(rng, vocabulary, d)


def draw_square(rng: np.random.Generator) -> Args:
    return normal(rng, 5), normal(rng, 5, 5)


FOLD = Question(
    id="01.5",
    title="Fold the weights into the vectors",
    answer="fold",
    arguments=("scores", "vectors"),
    outputs=(Output("new_vectors", "word d"),),
    reference=fold,
    next_step="write down what one occurrence of word t adds to the sum.",
    parts=(
        Part("new vectors", 1, lambda rng: [draw_table(rng) for _ in range(2)]),
        Part(
            "as many words as numbers",
            1,
            lambda rng: [draw_square(rng)],
            alone="right for some sizes, wrong when there are as many words as "
            "numbers in a vector: a weight belongs to a row",
        ),
    ),
    mistakes=(
        Mistake(
            "scores_as_factors",
            "the vectors are multiplied by the scores themselves; what stands in the "
            "sum is the exponential of a score",
            lambda s, v: s[:, None] * v,
        ),
        Mistake(
            "softmax_over_vocabulary",
            "the factors are a softmax over the vocabulary: they are too small, all "
            "by the same factor; the sum has no such division",
            lambda s, v: s.softmax(0)[:, None] * v,
        ),
        Mistake(
            "added",
            "the score is added to every number of the vector: that moves the vector, "
            "a weight makes it longer or shorter",
            lambda s, v: v + s[:, None],
        ),
        Mistake(
            "divided",
            "the vectors are divided by their weights: the plain sum then undoes the "
            "weights instead of doing their work",
            lambda s, v: v / s.exp()[:, None],
        ),
        Mistake(
            "unit_length",
            "the old lengths are lost: each vector is made one long before the weight "
            "acts, but the weighted sum has no such step",
            lambda s, v: s.exp()[:, None] * v / v.norm(dim=1, keepdim=True),
        ),
        Mistake(
            "root",
            "the factors are roots of the weights: a vector enters the sum once, so "
            "the whole weight goes into it",
            lambda s, v: (s / 2).exp()[:, None] * v,
        ),
        Mistake(
            "divided_by_the_number_of_words",
            "the vectors are divided by their number, as for a mean: what is asked for "
            "is a sum",
            lambda s, v: fold(s, v) / len(v),
        ),
        Mistake(
            "one_factor_for_all",
            "every vector gets the same factor, the mean of the weights: then no word "
            "counts for more than another",
            lambda s, v: s.exp().mean() * v,
        ),
        Mistake(
            "unchanged",
            "these are the old vectors: without weights their sum is another one",
            lambda s, v: v.clone(),
        ),
        Mistake(
            "columns_weighted",
            "the weights multiply the columns; a weight belongs to a word, and a word "
            "is a row",
            lambda s, v: v * s.exp(),
        ),
    ),
)


# -------------------------------------------------------------------- 01.6 who decides

WHO = ("word", "document", "question")
DECIDES = {
    "idf": "word",
    "tf": "document",
    "learned_score": "word",
    "weight": "document",
    "ratio": "word",
    "embedding_length": "word",
    "document_vector": "document",
    "cosine": "question",
}


def decided_by(kind: str) -> Any:
    """Look only at what depends on one thing."""
    names = [name for name, own in DECIDES.items() if own == kind]
    return lambda value: [value.get(name) for name in names]


def decided_as(**wrong: str) -> Any:
    return lambda: DECIDES | wrong


def says_else(name: str) -> Any:
    return lambda args, value: value[name] != DECIDES[name]


DECIDE = Question(
    id="01.6",
    title="Who decides?",
    answer="who_decides",
    arguments=(),
    outputs=(Output("who"),),
    reference=lambda: dict(DECIDES),
    next_step="for each quantity, change the question, then the document, and ask "
    "whether it moves.",
    parts=tuple(
        Part(f"what the {kind} decides", 1, lambda rng: [()], view=decided_by(kind))
        for kind in WHO
    ),
    mistakes=(
        Mistake(
            "not_all_or_other_words",
            "every one of the eight names needs one of the three words: 'word', "
            "'document', 'question'",
            lambda: dict.fromkeys(DECIDES, "static"),
            lambda args, value: any(value.get(name) not in WHO for name in DECIDES),
        ),
        Mistake(
            "weight_is_static",
            "look at `weight` again: add a louder word to the document; does the "
            "share of this one stay what it was?",
            decided_as(weight="word"),
            says_else("weight"),
        ),
        Mistake(
            "ratio_moves",
            "look at `ratio` again: write both weights as fractions and divide one by "
            "the other; what is left of the common denominator?",
            decided_as(ratio="document"),
            says_else("ratio"),
        ),
        Mistake(
            "idf_of_a_document",
            "look at `idf` again: it was counted over the collection, once; does the "
            "page you are reading change it?",
            decided_as(idf="document"),
            says_else("idf"),
        ),
        Mistake(
            "tf_of_a_word",
            "look at `tf` again: is the same word used equally often everywhere?",
            decided_as(tf="word"),
            says_else("tf"),
        ),
        Mistake(
            "score_adapts",
            "look at `learned_score` again: training is over, and it is a table with "
            "one number in each row; what do you look it up with?",
            decided_as(learned_score="document"),
            says_else("learned_score"),
        ),
        Mistake(
            "length_adapts",
            "look at `embedding_length` again: the vectors stand in a table with one "
            "row each; what do you look a row up with?",
            decided_as(embedding_length="document"),
            says_else("embedding_length"),
        ),
        Mistake(
            "vector_answers",
            "look at `document_vector` again: it is made of words and their weights "
            "and nothing else; has anybody asked anything yet?",
            decided_as(document_vector="question"),
            says_else("document_vector"),
        ),
        Mistake(
            "cosine_is_fixed",
            "look at `cosine` again: one document, two different searches; is the "
            "number the same?",
            decided_as(cosine="document"),
            says_else("cosine"),
        ),
    ),
)

QUESTIONS = (LAYER, FOLD, DECIDE)
