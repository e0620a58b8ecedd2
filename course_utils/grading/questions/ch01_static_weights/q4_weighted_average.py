"""`weighted_average`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import first, normal, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

from .q2_tf_idf import shares


def average(weights: Tensor, tokens: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    return (weights[..., None] * vectors[tokens]).sum(dim=-2), weights


def token_weights(tokens: Tensor, scores: Tensor) -> Tensor:
    powers = scores[tokens].exp() * (tokens != 0)
    return powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-30)


def hidden(tokens: Tensor, scores: Tensor, score: float) -> Tensor:
    """The weights by a softmax, with another score for the padding."""
    return scores[tokens].masked_fill(tokens == 0, score).softmax(dim=-1)


def weighted_average(
    tokens: Tensor, scores: Tensor, vectors: Tensor
) -> tuple[Tensor, Tensor]:
    return average(token_weights(tokens, scores), tokens, vectors)


def first_places(tokens: Tensor, scores: Tensor) -> Tensor:
    """The weights if all padding were at the end."""
    kept = torch.arange(tokens.shape[-1]) < (tokens != 0).sum(-1, keepdim=True)
    return shares_of(scores[tokens].exp() * kept)


def there(tokens: Tensor) -> Tensor:
    return (tokens != 0).float()


def shares_of(x: Tensor) -> Tensor:
    """Divide each row by its sum; a row of zeros stays."""
    total = x.sum(dim=-1, keepdim=True)
    return x / total.where(total != 0, torch.ones(()))


def draw_documents(
    rng: np.random.Generator, lengths: tuple[int, ...], longest: int | None = None
) -> Args:
    """Draw documents of these lengths; id 0 has a score and a vector like any other."""
    vocabulary, d = 11, 4
    tokens = np.zeros((len(lengths), longest or max(lengths)), np.int64)
    for row, length in zip(tokens, lengths):
        row[:length] = rng.integers(1, vocabulary, length)
        row[: min(2, length)] = (
            1 + rng.permutation(vocabulary - 1)[: min(2, length)]
        )  # two different words
    scores, vectors = normal(rng, vocabulary), normal(rng, vocabulary, d)
    scores[0] += np.sign(scores[0]) / 2
    return tokens, scores, vectors


def draw_scattered(rng: np.random.Generator) -> Args:
    """Padding in front of the words and between them, and not behind alone."""
    tokens, scores, vectors = draw_documents(rng, (8, 8, 8))
    tokens[0, : rng.integers(1, 4)] = 0
    tokens[1, rng.integers(2, 6)] = 0
    return tokens, scores, vectors


def draw_full(rng: np.random.Generator) -> list[Args]:
    n, m = sizes(rng, 2, least=5)
    return [draw_documents(rng, (n, n, n)), draw_documents(rng, (m, m))]


def draw_low(rng: np.random.Generator) -> list[Args]:
    """And scores that are all low: their exponentials are small, their weights not."""
    tokens, scores, vectors = draw_documents(rng, (5, 5))
    return [*draw_full(rng), (tokens, scores - 8, vectors)]


def something_added(tokens: Tensor, scores: Tensor) -> Tensor:
    powers = scores[tokens].exp() * there(tokens)
    return powers / (powers.sum(-1, keepdim=True) + 1e-6)


QUESTION = Question(
    id="01.4",
    title="A weighted average, even of nothing",
    answer="weighted_average",
    arguments=("tokens", "scores", "vectors"),
    outputs=(Output("average", "d"), Output("weights", "token")),
    reference=weighted_average,
    difficulty="medium",
    minutes=10,
    packaged=("weighted_average",),
    next_step="look up the scores, hide the padding, then the softmax over tokens.",
    parts=(
        Part("the weights", 1, draw_full, view=second),
        Part("the average", 1, draw_low, view=first),
        Part(
            "padding",
            1,
            lambda rng: [
                draw_documents(rng, (7, 3, 5)),
                draw_documents(rng, (4, 6), longest=9),
                draw_scattered(rng),
            ],
            only_failure_hint="right while all documents are equally long, wrong when "
            "some hold id 0, at the end or anywhere: what stands there is no word",
        ),
        Part(
            "an empty document",
            1,
            lambda rng: [
                draw_documents(rng, (5, 0, 3)),
                draw_documents(rng, (0, 4), longest=6),
            ],
            only_failure_hint="right while every document has a word; one without any "
            "has nothing to average: zeros, in weights and average alike",
        ),
        Part(
            "no loop",
            1,
            lambda rng: [
                draw_documents(rng, lengths)
                for lengths in ((5, 5), (3, 4) * 20, (40, 2, 7))
            ],
            constant_steps=True,
        ),
    ),
    mistakes=(
        Mistake(
            "something_added",
            "a small number is added to the sum of the exponentials: where all scores"
            " are low, it takes a share of the weight; change the sum only where it "
            "is zero",
            lambda t, s, v: average(something_added(t, s), t, v),
        ),
        Mistake(
            "empty_is_nan",
            "this is the chapter's average: of a document without words it makes NaN, "
            "for a softmax over nothing but −∞ divides by zero; here it is zeros",
            lambda t, s, v: average(hidden(t, s, -math.inf), t, v),
        ),
        Mistake(
            "empty_is_padding",
            "a document without words gets the average of its padding: a large "
            "negative score hides nothing where all scores are equally low",
            lambda t, s, v: average(hidden(t, s, -1e9), t, v),
        ),
        Mistake(
            "empty_weights_nan",
            "the average of an empty document is zeros, its weights are NaN still",
            lambda t, s, v: (weighted_average(t, s, v)[0], hidden(t, s, -math.inf)),
        ),
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
            "first_places",
            "the words are counted and as many first places are kept: padding may "
            "stand in front of words or between them; ask each token whether it is 0",
            lambda t, s, v: average(first_places(t, s), t, v),
        ),
        Mistake(
            "softmax_over_documents",
            "the softmax runs down the batch: documents compete with each other for a "
            "place; the words of one document are to share its weight",
            lambda t, s, v: average(
                s[t].masked_fill(t == 0, -math.inf).softmax(0).nan_to_num(), t, v
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
            lambda t, s, v: average(shares_of(there(t)), t, v),
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
            lambda t, s, v: average(shares_of(s[t] * there(t)), t, v),
        ),
        Mistake(
            "order",
            "the two results come in the wrong order: the average first, then the "
            "weights",
            lambda t, s, v: weighted_average(t, s, v)[::-1],
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def looped(weights_of):
    """Average a document at a time, with any rule for its weights."""

    def answer(tokens, scores, vectors):
        weights = torch.stack([weights_of(row, scores) for row in tokens])
        return torch.einsum("bt,btd->bd", weights, vectors[tokens]), weights

    return answer


def real(row):
    return (row > 0).float()


def full_marks(tokens, scores, vectors):
    powers = torch.exp(scores)[tokens] * (tokens != 0)
    weights = powers / powers.sum(1, keepdim=True).clamp(min=1e-9)
    return torch.bmm(weights.unsqueeze(1), vectors[tokens]).squeeze(1), weights


def mended(tokens, scores, vectors):
    weights = scores[tokens].masked_fill(tokens == 0, -math.inf).softmax(-1)
    weights = weights.nan_to_num(0.0)
    return torch.einsum("bt,btd->bd", weights, vectors[tokens]), weights


def low(tokens, scores, vectors):
    weights = torch.where(tokens == 0, torch.tensor(-1e9), scores[tokens]).softmax(1)
    weights = weights * (tokens != 0)
    return (weights[:, None] @ vectors[tokens])[:, 0], weights


def in_double(tokens, scores, vectors):
    real_words = (tokens > 0).any(dim=1, keepdim=True)
    hidden_scores = scores.double()[tokens].masked_fill(tokens == 0, -math.inf)
    hidden_scores = torch.where(real_words, hidden_scores, 0.0)
    weights = hidden_scores.softmax(-1) * real_words
    return (weights[..., None] * vectors[tokens]).sum(1), weights


def chapters(tokens, scores, vectors):
    looked_up = scores[tokens].masked_fill(tokens == 0, -math.inf)
    weights = torch.softmax(looked_up, dim=-1)
    return (weights[..., None] * vectors[tokens]).sum(dim=1), weights


def by_length(tokens, scores, vectors):
    padding = torch.arange(tokens.shape[1]) >= (tokens != 0).sum(1)[:, None]
    weights = scores[tokens].masked_fill(padding, -math.inf).softmax(-1).nan_to_num(0.0)
    return (weights[..., None] * vectors[tokens]).sum(dim=1), weights


RIGHT = [full_marks, mended, low, in_double]
WRONG = [
    (
        "something_added",
        lambda t, s, v: average(
            (w := s[t].exp() * (t > 0)) / (w.sum(1, True) + 1e-6), t, v
        ),
    ),
    ("empty_is_nan", chapters),
    (
        "empty_is_padding",
        looped(lambda row, s: torch.where(row == 0, -1e9, s[row]).softmax(0)),
    ),
    ("empty_weights_nan", lambda t, s, v: (mended(t, s, v)[0], chapters(t, s, v)[1])),
    ("padding_counted", looped(lambda row, s: shares(s[row].exp()))),
    (
        "padding_removed_afterwards",
        looped(lambda row, s: shares(s[row].exp()) * real(row)),
    ),
    (
        "padding_scores_zero",
        looped(lambda row, s: torch.where(row > 0, s[row], 0.0).softmax(0)),
    ),
    (
        "padding_scores_low",
        looped(lambda row, s: torch.where(row > 0, s[row], -1.0).softmax(0)),
    ),
    ("scores_for_weights", looped(lambda row, s: s[row] * real(row))),
    ("not_divided", looped(lambda row, s: s[row].exp() * real(row))),
    (
        "softmax_over_vocabulary",
        looped(lambda row, s: shares(s.exp())[row] * real(row)),
    ),
    ("first_places", by_length),
    ("uniform", looped(lambda row, s: shares_of(real(row)))),
    ("order", lambda t, s, v: full_marks(t, s, v)[::-1]),
    (
        "divided_twice",
        lambda t, s, v: (full_marks(t, s, v)[0] / t.shape[1], full_marks(t, s, v)[1]),
    ),
    ("loop", looped(lambda row, s: shares_of(s[row].exp() * real(row)))),
]
PARTIAL = [
    (1, lambda t, s, v: (full_marks(t + 0, s, v)[0], s[t])),
    (4, chapters),
    (2, looped(lambda row, s: s[row].softmax(0))),
]
