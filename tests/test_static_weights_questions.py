"""The questions of chapter 01, answered rightly and wrongly by someone else."""

from __future__ import annotations

import math

import pytest
import torch

from course_utils.checks import PUBLIC_SEED, verdict
from course_utils.questions import find_question
from course_utils.questions.token_weights import DECIDES
from course_utils.widgets.token_weights import token_weights

SEEDS = (PUBLIC_SEED, 0, 1, "a secret of the instructor")


def by_term(weight_of, tf=lambda c: c):
    """Weigh a table term by term, with any rule for a term's column."""

    def answer(counts):
        columns = counts.T.tolist()
        idf = torch.tensor([float(weight_of(c, counts)) for c in columns])
        return idf, torch.stack([tf(row) * idf for row in counts.float()])

    return answer


def holding(column):
    return sum(1 for n in column if n)


def if_used(rule):
    return lambda column, counts: rule(column, counts) if any(column) else 0.0


def by_row(score_of):
    """Score a document at a time."""

    def answer(query, documents):
        scores = torch.stack([score_of(query, d) for d in documents])
        return scores, scores.tolist().index(float(scores.max()))

    return answer


def length(x):
    return (x * x).sum().sqrt()


def cosine(q, d):
    return (q * d).sum() / (length(q) * length(d)) if d.any() else torch.tensor(0.0)


def looped(weights_of):
    """Average a document at a time, with any rule for its weights."""

    def answer(tokens, scores, vectors):
        weights = torch.stack([weights_of(row, scores) for row in tokens])
        return torch.einsum("bt,btd->bd", weights, vectors[tokens]), weights

    return answer


def shares(x):
    return x / x.sum()


def real(row):
    return (row > 0).float()


def full_marks(tokens, scores, vectors):
    powers = torch.exp(scores)[tokens] * (tokens != 0)
    weights = powers / powers.sum(1, keepdim=True)
    return torch.bmm(weights.unsqueeze(1), vectors[tokens]).squeeze(1), weights


LOG4 = math.log(4)
WRONG = [
    ("01.1", "before_the_logarithm", lambda: (1, 4, 12, 4)),
    ("01.1", "upside_down", lambda: (0, math.log(2 / 8), 3 * math.log(2 / 8), 0)),
    ("01.1", "counts_tokens", lambda: (0, math.log(8 / 4), 1, 1)),
    ("01.1", "another_base", lambda: [0, math.log2(4), 6, 2]),
    ("01.1", "another_base", lambda: [0, math.log10(4), 6, 2]),
    ("01.1", "smoothed", lambda: (0, math.log(9 / 3) + 1, 3, 4)),
    ("01.1", "smoothed", lambda: (0, math.log(8 / 3), 3, 4)),
    ("01.1", "tf_is_a_share", lambda: (0, LOG4, 3 * LOG4 / 4, LOG4)),
    ("01.1", "everywhere_still_counts", lambda: (1, LOG4, 3 * LOG4, LOG4)),
    ("01.1", "tf_forgotten", lambda: (0.0, LOG4, LOG4, LOG4)),
    ("01.1", "tf_of_all_documents", lambda: (0, LOG4, 4 * LOG4, LOG4)),
    ("01.1", "only_documents_doubled", lambda: (0, LOG4, 3 * LOG4, math.log(8))),
    ("01.1", "only_word_doubled", lambda: (0, LOG4, 3 * LOG4, math.log(8 / 4))),
    (
        "01.2",
        "upside_down",
        by_term(if_used(lambda c, t: math.log(holding(c) / len(c)))),
    ),
    ("01.2", "counts_tokens", by_term(if_used(lambda c, t: math.log(len(c) / sum(c))))),
    (
        "01.2",
        "base_two",
        by_term(if_used(lambda c, t: math.log2(len(c) / holding(c)))),
    ),
    (
        "01.2",
        "base_ten",
        by_term(if_used(lambda c, t: math.log10(len(c) / holding(c)))),
    ),
    ("01.2", "no_logarithm", by_term(if_used(lambda c, t: len(c) / holding(c)))),
    (
        "01.2",
        "terms_for_documents",
        by_term(if_used(lambda c, t: math.log(t.shape[1] / holding(c)))),
    ),
    (
        "01.2",
        "one_added_to_n",
        by_term(lambda c, t: math.log(len(c) / (holding(c) + 1))),
    ),
    (
        "01.2",
        "one_added_to_both",
        by_term(lambda c, t: math.log((len(c) + 1) / (holding(c) + 1))),
    ),
    (
        "01.2",
        "divides_by_zero",
        by_term(lambda c, t: math.log(len(c) / holding(c)) if holding(c) else math.inf),
    ),
    (
        "01.2",
        "unseen_counts_as_rare",
        by_term(lambda c, t: math.log(len(c) / max(holding(c), 1))),
    ),
    (
        "01.2",
        "presence_for_tf",
        by_term(
            if_used(lambda c, t: math.log(len(c) / holding(c))),
            tf=lambda row: row.clamp(max=1),
        ),
    ),
    (
        "01.2",
        "share_for_tf",
        by_term(if_used(lambda c, t: math.log(len(c) / holding(c))), tf=shares),
    ),
    ("01.3", "not_normalised", by_row(torch.dot)),
    (
        "01.3",
        "query_not_normalised",
        by_row(lambda q, d: cosine(q, d) * length(q)),
    ),
    ("01.3", "only_query_normalised", by_row(lambda q, d: torch.dot(q / length(q), d))),
    (
        "01.3",
        "divided_by_sums",
        by_row(
            lambda q, d: torch.dot(shares(q), shares(d)) if d.any() else d.sum() * 0
        ),
    ),
    (
        "01.3",
        "length_of_the_table",
        lambda q, d: (lambda s: (s, s.argmax()))(
            (d * q).sum(1) / length(q) / length(d)
        ),
    ),
    (
        "01.3",
        "one_added_to_the_lengths",
        by_row(lambda q, d: torch.dot(q, d) / (length(q) * length(d) + 1)),
    ),
    (
        "01.3",
        "counted_from_one",
        lambda q, d: (by_row(cosine)(q, d)[0], by_row(cosine)(q, d)[1] + 1),
    ),
    (
        "01.3",
        "worst",
        lambda q, d: (by_row(cosine)(q, d)[0], by_row(cosine)(q, d)[0].argmin()),
    ),
    (
        "01.3",
        "score_for_place",
        lambda q, d: (by_row(cosine)(q, d)[0], by_row(cosine)(q, d)[0].max()),
    ),
    (
        "01.3",
        "zero_length",
        lambda q, d: (
            (d / d.norm(dim=1, keepdim=True)) @ (q / q.norm()),
            ((d / d.norm(dim=1, keepdim=True)) @ (q / q.norm())).argmax(),
        ),
    ),
    ("01.4", "padding_counted", looped(lambda row, s: shares(s[row].exp()))),
    (
        "01.4",
        "padding_removed_afterwards",
        looped(lambda row, s: shares(s[row].exp()) * real(row)),
    ),
    (
        "01.4",
        "padding_scores_zero",
        looped(lambda row, s: torch.where(row > 0, s[row], 0.0).softmax(0)),
    ),
    (
        "01.4",
        "padding_scores_low",
        looped(lambda row, s: torch.where(row > 0, s[row], -1.0).softmax(0)),
    ),
    ("01.4", "scores_for_weights", looped(lambda row, s: s[row] * real(row))),
    ("01.4", "not_divided", looped(lambda row, s: s[row].exp() * real(row))),
    (
        "01.4",
        "softmax_over_vocabulary",
        looped(lambda row, s: shares(s.exp())[row] * real(row)),
    ),
    ("01.4", "uniform", looped(lambda row, s: shares(real(row)))),
    ("01.4", "order", lambda t, s, v: full_marks(t, s, v)[::-1]),
    (
        "01.4",
        "divided_twice",
        lambda t, s, v: (full_marks(t, s, v)[0] / t.shape[1], full_marks(t, s, v)[1]),
    ),
    ("01.4", "loop", looped(lambda row, s: shares(s[row].exp() * real(row)))),
    ("01.5", "scores_as_factors", lambda s, v: torch.diag(s) @ v),
    ("01.5", "softmax_over_vocabulary", lambda s, v: torch.diag(shares(s.exp())) @ v),
    ("01.5", "added", lambda s, v: torch.stack([row + x for x, row in zip(s, v)])),
    ("01.5", "divided", lambda s, v: torch.diag(torch.exp(-s)) @ v),
    (
        "01.5",
        "divided_by_the_number_of_words",
        lambda s, v: torch.diag(torch.exp(s)) @ v / v.shape[0],
    ),
    ("01.5", "root", lambda s, v: s.exp().sqrt().unsqueeze(1) * v),
    ("01.5", "unchanged", lambda s, v: v * 1),
    ("01.6", "weight_is_static", lambda: DECIDES | {"weight": "word"}),
    ("01.6", "ratio_moves", lambda: DECIDES | {"ratio": "question"}),
    ("01.6", "vector_answers", lambda: DECIDES | {"document_vector": "question"}),
    ("01.6", "not_all_or_other_words", lambda: {"idf": "word"}),
    ("01.6", "not_all_or_other_words", lambda: DECIDES | {"tf": "Document"}),
]


@pytest.mark.parametrize(("identifier", "name", "answer"), WRONG)
def test_a_mistake_in_other_code_gets_its_hint(identifier, name, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.misconception == name, result.hint
        assert result.points < result.max_points


RIGHT = [
    ("01.1", lambda: (0.0, 2 * math.log(2), torch.tensor(3 * LOG4), 1.386)),
    ("01.2", by_term(if_used(lambda c, t: math.log(len(c) / holding(c))))),
    (
        "01.2",
        lambda counts: (lambda idf: (idf, counts.float() @ torch.diag(idf)))(
            torch.nan_to_num(
                (len(counts) / (counts != 0).float().sum(0)).log(), posinf=0.0
            )
        ),
    ),
    ("01.3", by_row(cosine)),
    (
        "01.3",
        lambda q, d: (lambda s: (s, s.argmax()))(
            torch.nn.functional.cosine_similarity(d, q[None])
        ),
    ),
    ("01.4", full_marks),
    (
        "01.4",
        lambda t, s, v: (lambda a: ((a[:, None] @ v[t])[:, 0], a))(
            torch.where(t == 0, torch.tensor(-1e9), s[t]).softmax(1)
        ),
    ),
    ("01.5", lambda s, v: torch.diag(torch.exp(s)) @ v),
    ("01.6", lambda: dict(reversed(DECIDES.items()))),
]


@pytest.mark.parametrize(("identifier", "answer"), RIGHT)
def test_another_right_way_earns_every_point(identifier, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.points == result.max_points, result.hint


def test_careless_padding_still_earns_the_points_of_full_documents():
    result = verdict("01.4", lambda t, s, v: (full_marks(t + 0, s, v)[0], s[t]))
    assert result.points == 1
    careless = looped(lambda row, s: s[row].softmax(0))
    assert verdict("01.4", careless).points == 2


def test_the_hints_of_the_numbers_never_name_a_right_one():
    for mistake in find_question("01.1").mistakes:
        said = set(mistake.hint.replace(",", " ").replace(":", " ").split())
        assert not {"0", "zero", "1.386", "4.159", "log(4)"} & said


# --------------------------------------------------------------------- the interactive


def explorer(documents=None, weights=None):
    documents = {"a": ["one", "two"]} if documents is None else documents
    weights = {"uniform": {"a": [0.5, 0.5]}} if weights is None else weights
    return token_weights("weights", documents, weights)


def test_the_explorer_holds_its_words_and_weights():
    made = explorer(weights={"learned": {"a": torch.tensor([0.25, 0.75])}})
    assert '"learned":{"a":[0.25,0.75]}' in made.html
    assert made.html == explorer(weights={"learned": {"a": [0.25, 0.75]}}).html


@pytest.mark.parametrize(
    ("documents", "weights", "message"),
    [
        ({}, None, "0 documents and 1 rules"),
        (None, {}, "1 documents and 0 rules"),
        (None, {"idf": {}}, "rule 'idf' has no weights for document 'a'"),
        (None, {"idf": {"a": [1.0]}}, "1 weights for the 2 words of 'a'"),
        ({"a": []}, {"idf": {"a": []}}, "at least one word"),
        (None, {"idf": {"a": [0.9, 0.9]}}, "sum to 1.8, expected shares"),
        (None, {"idf": {"a": [1.5, -0.5]}}, "run from -0.5"),
    ],
)
def test_the_explorer_refuses_what_it_cannot_show(documents, weights, message):
    with pytest.raises(ValueError, match=message):
        explorer(documents, weights)
