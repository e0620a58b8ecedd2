"""The table of wrong answers is the specification: each is named for what it is."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from course_utils.answers import Record
from course_utils.checks import PUBLIC_SEED, verdict
from course_utils.judging import expectations, find_sign, judge, part_is_right
from course_utils.questions import (
    CHAPTERS,
    EXERCISES,
    chapter_questions,
    find_question,
)

SEEDS = (PUBLIC_SEED, "a secret of the instructor")
QUESTIONS = [q for chapter in CHAPTERS for q in chapter_questions(chapter)]
MISTAKES = [(q.id, mistake.id) for q in QUESTIONS for mistake in q.mistakes]


def mistake_of(identifier, name):
    return next(m for m in find_question(identifier).mistakes if m.id == name)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.id)
def test_the_reference_earns_every_point(question):
    for seed in SEEDS:
        result = judge(question, seed, expectations(question, seed)[1])
        assert (result.points, result.hint) == (question.points, "")


@pytest.mark.parametrize(("identifier", "name"), MISTAKES)
def test_a_mistake_loses_points_and_gets_its_own_hint(identifier, name):
    mistake = mistake_of(identifier, name)
    for seed in SEEDS:
        result = verdict(identifier, mistake.wrong, seed)
        assert result.points < result.max_points
        assert (result.misconception, result.hint) == (name, mistake.hint)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.id)
def test_every_question_knows_four_mistakes_and_says_each_in_one_line(question):
    hints = [mistake.hint for mistake in question.mistakes]
    assert len(hints) == len(set(hints)) >= 4
    for hint in hints:
        assert "\n" not in hint
        assert 30 < len(hint) < 200


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_at_least_four_questions_numbered_in_order(chapter):
    found = [question.id for question in chapter_questions(chapter)]
    assert found == [f"{chapter}.{i + 1}" for i in range(len(found))]
    assert len(found) >= 4


def test_every_chapter_with_questions_has_its_exercise_notebook():
    assert EXERCISES.keys() == CHAPTERS.keys()
    folder = Path(__file__).parents[1] / "exercises"
    assert sorted(EXERCISES.values()) == sorted(p.stem for p in folder.glob("*.ipynb"))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.id)
def test_the_inputs_belong_to_the_seed(question):
    def drawn(seed):
        return [case.args for case in question.cases(seed)]

    np.testing.assert_equal(drawn(3), drawn(3))
    if question.arguments:
        with pytest.raises(AssertionError):
            np.testing.assert_equal(drawn(3), drawn(4))


# The same mistakes once more, written by someone else in another way.


def by_loop(scores_of, weights_of):
    def answer(queries, keys, values):
        flat = [t.reshape(-1, *t.shape[-2:]) for t in (queries, keys, values)]
        weights = torch.stack(
            [weights_of(scores_of(q, k, v)) for q, k, v in zip(*flat)]
        )
        context = torch.einsum("bqk,bkd->bqd", weights, flat[2])
        lead = queries.shape[:-2]
        return (
            context.reshape(*lead, *context.shape[1:]),
            weights.reshape(*lead, *weights.shape[1:]),
        )

    return answer


def over_keys(scores):
    exponentials = (scores - scores.amax(1, keepdim=True)).exp()
    return exponentials / exponentials.sum(1, keepdim=True)


def dots(queries, keys):
    return (queries[:, None, :] * keys[None, :, :]).sum(-1)


def scaled(q, k, v):
    return dots(q, k) * q.shape[1] ** -0.5


def thirds(x, weight, d_k):
    n = -(-len(weight) // 3)
    return tuple(torch.nn.functional.linear(x, w) for w in weight.split(n))


def cut_rows(*order):
    def answer(x, weight, d_k):
        d_v = weight.shape[0] - 2 * d_k
        widths = [d_v if role == "v" else d_k for role in order]
        rows = dict(zip(order, torch.split(weight, widths, dim=0)))
        return [torch.einsum("...i,oi->...o", x, rows[role]) for role in "qkv"]

    return answer


def attend(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT * keys.size(-1) ** -0.5, -1)
    return torch.bmm(weights, values), weights


def jacobian(entry):
    def answer(scores):
        exponentials = torch.exp(scores - scores.max())
        a = exponentials / exponentials.sum()
        n = len(a)
        return torch.stack(
            [torch.stack([entry(i, j, a) for j in range(n)]) for i in range(n)]
        )

    return answer


def turn(n):
    """A matrix that is no multiple of the identity, and not symmetric."""
    return torch.eye(n) + torch.triu(torch.ones(n, n), 1)


ZERO = torch.tensor(0.0)
OTHERS = [
    ("06.1", "no_scale", by_loop(lambda q, k, v: dots(q, k), over_keys)),
    (
        "06.1",
        "scale_d_v",
        by_loop(lambda q, k, v: dots(q, k) / v.shape[1] ** 0.5, over_keys),
    ),
    (
        "06.1",
        "scale_keys",
        by_loop(lambda q, k, v: dots(q, k) / len(k) ** 0.5, over_keys),
    ),
    (
        "06.1",
        "scale_no_root",
        by_loop(lambda q, k, v: dots(q, k).div(q.shape[1]), over_keys),
    ),
    (
        "06.1",
        "scale_multiplied",
        by_loop(lambda q, k, v: dots(q * q.shape[1] ** 0.5, k), over_keys),
    ),
    ("06.1", "softmax_over_queries", by_loop(scaled, lambda s: over_keys(s.T).T)),
    (
        "06.1",
        "softmax_over_queries",
        by_loop(lambda q, k, v: dots(q, k), lambda s: s.softmax(0)),
    ),
    ("06.1", "no_softmax", by_loop(scaled, lambda s: s)),
    ("06.1", "one_softmax_for_all", by_loop(scaled, lambda s: s.exp() / s.exp().sum())),
    (
        "06.1",
        "scale_after_softmax",
        lambda q, k, v: tuple(
            x / math.sqrt(q.shape[-1])
            for x in by_loop(lambda q, k, v: dots(q, k), over_keys)(q, k, v)
        ),
    ),
    ("06.1", "order", lambda q, k, v: by_loop(scaled, over_keys)(q, k, v)[::-1]),
    ("06.2", "equal_thirds", thirds),
    ("06.2", "keys_before_queries", cut_rows("k", "q", "v")),
    ("06.2", "values_first", cut_rows("v", "q", "k")),
    (
        "06.2",
        "interleaved",
        lambda x, w, d_k: [torch.nn.functional.linear(x, w[i::3]) for i in range(3)],
    ),
    ("06.3", "roles_swapped", lambda x, m, q, k, v: attend(m @ q, x @ k, x @ v)),
    ("06.3", "self_attention", lambda x, m, q, k, v: attend(x @ q, x @ k, x @ v)),
    ("06.3", "values_from_x", lambda x, m, q, k, v: attend(x @ q, m @ k, x @ v)),
    ("06.3", "values_not_projected", lambda x, m, q, k, v: attend(x @ q, m @ k, m)),
    (
        "06.3",
        "scale_d_model",
        lambda x, m, q, k, v: attend(
            x @ q * math.sqrt(k.size(1) / x.size(2)), m @ k, m @ v
        ),
    ),
    (
        "06.4",
        "only_the_diagonal",
        jacobian(lambda i, j, a: a[i] - a[i] ** 2 if i == j else ZERO),
    ),
    (
        "06.4",
        "plus_sign",
        jacobian(lambda i, j, a: a[i] + a[i] * a[i] if i == j else a[i] * a[j]),
    ),
    ("06.4", "no_diagonal_term", jacobian(lambda i, j, a: -a[i] * a[j])),
    ("06.4", "outer_of_one_minus_p", jacobian(lambda i, j, a: a[i] * (1 - a[j]))),
    ("06.4", "negative", jacobian(lambda i, j, a: a[i] * (a[j] - float(i == j)))),
    ("06.4", "one_number_per_weight", lambda s: s.softmax(0).mul(1 - s.softmax(0))),
    ("06.5", "variance", lambda: (64, 32, 4)),
    ("06.5", "one_factor_doubled", lambda: [8, torch.tensor(16.0), 4]),
    ("06.5", "scale_cures_all", lambda: (8.0, 32.0, 1)),
    ("06.5", "two_d_k", lambda: (128, 0, 0)),
    ("06.6", "same_pair", lambda w_q, w_k: (w_q @ torch.eye(w_q.shape[1]), w_k)),
    ("06.6", "only_one_changed", lambda w_q, w_k: (w_q, w_k @ turn(w_k.shape[1]))),
    ("06.6", "exchanged", lambda w_q, w_k: (w_k * 1, w_q * 1)),
    ("06.6", "both_scaled", lambda w_q, w_k: (w_q * 3.5, w_k * 3.5)),
    (
        "06.6",
        "same_matrix_twice",
        lambda w_q, w_k: (w_q @ turn(w_q.shape[1]), w_k @ turn(w_q.shape[1])),
    ),
    (
        "06.6",
        "inverse_not_transposed",
        lambda w_q, w_k: (
            torch.linalg.solve(turn(w_q.shape[1]).T, w_q.T).T,
            w_k @ turn(w_q.shape[1]),
        ),
    ),
    ("06.6", "not_from_the_right", lambda w_q, w_k: (w_q + 1, w_k - 1)),
    ("06.7", "do_not_fit", lambda: (torch.ones(1, 2), torch.ones(3, 2), torch.eye(2))),
    ("06.7", "one_key", lambda: (torch.ones(1, 2), torch.ones(1, 2), torch.eye(1))),
    ("06.7", "as_many_keys_as_d_k", lambda: (torch.eye(2), torch.eye(2), torch.eye(2))),
    (
        "06.7",
        "scores_all_equal",
        lambda: (torch.ones(1, 2), torch.ones(3, 2), torch.eye(3)),
    ),
    (
        "06.7",
        "values_all_equal",
        lambda: (torch.eye(3, 4), torch.eye(3, 4) * 2, torch.full((3, 1), 7.0)),
    ),
    (
        "06.7",
        "saturated",
        lambda: (torch.eye(3, 4) * 500, torch.eye(3, 4) * 500, torch.eye(3)),
    ),
]


@pytest.mark.parametrize(("identifier", "name", "answer"), OTHERS)
def test_the_same_mistake_in_other_code_gets_the_same_hint(identifier, name, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed)
        assert result.misconception == name, result.hint
        assert result.hint == mistake_of(identifier, name).hint
        assert result.points < result.max_points


def rotation(n):
    return torch.linalg.qr(torch.randn(n, n)).Q


RIGHT = [
    (
        "06.1",
        lambda q, k, v: (lambda a: (torch.einsum("...qk,...kd->...qd", a, v), a))(
            torch.softmax(
                torch.einsum("...qd,...kd->...qk", q, k) * q.shape[-1] ** -0.5, -1
            )
        ),
    ),
    (
        "06.1",
        lambda q, k, v: [
            t.float() for t in RIGHT[0][1](q.double(), k.double(), v.double())
        ],
    ),
    ("06.2", cut_rows("q", "k", "v")),
    ("06.3", lambda x, m, q, k, v: attend(x @ q, m @ k, m @ v)),
    ("06.4", jacobian(lambda i, j, a: a[i] * (float(i == j) - a[j]))),
    ("06.4", lambda s: torch.autograd.functional.jacobian(lambda t: t.softmax(0), s)),
    ("06.5", lambda: (np.float64(8), 32, torch.tensor(4))),
    ("06.6", lambda q, k: (lambda r: (q @ r, k @ r))(rotation(q.shape[1]))),
    ("06.6", lambda q, k: (q.flip(1), k.flip(1))),
    ("06.6", lambda q, k: (-q, -k)),
    ("06.7", lambda: (torch.randn(4, 9), torch.randn(3, 9), torch.randn(3, 2))),
]


@pytest.mark.parametrize(("identifier", "answer"), RIGHT)
def test_another_right_way_earns_every_point(identifier, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed)
        assert result.points == result.max_points, result.hint


def test_partial_credit_for_values_right_and_queries_and_keys_exchanged():
    result = verdict("06.2", cut_rows("k", "q", "v"))
    assert (result.points, result.max_points) == (1, 4)


def test_the_hints_of_a_prediction_never_name_the_right_number():
    question = find_question("06.5")
    for mistake in question.mistakes:
        words = mistake.hint.replace(",", " ").split()
        assert not {"8", "32", "4", "eight", "thirty-two"} & set(words)


def test_an_unknown_question_is_refused_by_name():
    with pytest.raises(ValueError, match=r"no question '06.9', expected one of 06.1"):
        find_question("06.9")
    with pytest.raises(ValueError, match="no questions for chapter '99'"):
        find_question("99.1")


def changed(value, change):
    if isinstance(value, list | dict):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        made = {name: changed(x, change) for name, x in pairs}
        return made if isinstance(value, dict) else list(made.values())
    return change(value)


def filled(number, dtype=np.float32):
    return lambda value: np.full(np.shape(value), number, dtype)


STRANGE = {
    "booleans": filled(True, bool),
    "small whole numbers": filled(255, np.uint8),
    "the smallest whole numbers": filled(-(2**63), np.int64),
    "numbers near the largest": filled(1e308, np.float64),
    "zeros": filled(0),
    "no rows": lambda value: np.zeros((0, *np.shape(value)[1:]), np.float32),
    "one entry": lambda value: np.ones((1,) * np.ndim(value), np.float32),
    "infinity": lambda value: math.inf,
    "a large number": lambda value: 2**63 - 1,
    "text": lambda value: "`<b>",
    "nothing": lambda value: None,
    "lists": lambda value: [[["a", None, {}]], 3],
}


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.id)
def test_no_value_stops_the_judge(question):
    cases, right = expectations(question, PUBLIC_SEED)
    for change in STRANGE.values():
        records = [Record(changed(record.value, change)) for record in right]
        for part in question.parts:
            part_is_right(question, part, cases, right, records)
        find_sign(question, cases, records)
    for value in (None, "x", [], {}, [[]] * 3):
        records = [Record(value)] * len(right)
        assert judge(question, PUBLIC_SEED, records).points < question.points


def test_the_judge_wants_one_record_per_case():
    question = find_question("06.1")
    _, right = expectations(question, 0)
    with pytest.raises(ValueError, match="cases, got 1 records"):
        judge(question, 0, right[:1])
