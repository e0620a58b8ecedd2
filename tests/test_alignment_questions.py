"""The questions of chapter 03, answered rightly and wrongly by someone else."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from course_utils.checks import PUBLIC_SEED, verdict
from course_utils.metrics import alignment_accuracy, alignment_error_rate
from course_utils.questions import find_question
from course_utils.questions.alignment import SAID

SEEDS = (PUBLIC_SEED, 0, 1, "a secret of the instructor")


def by_loop(inside):
    """Score every example and annotation by itself."""

    def scores(s, h, w, u, v):
        rows = [
            [inside(s[b] @ w, h[b, j] @ u, v) for j in range(h.shape[1])]
            for b in range(len(s))
        ]
        return torch.tensor(rows)

    return scores


def scored(s, h, w, u, v):
    hidden = torch.einsum("bi,io->bo", s, w).unsqueeze(1) + torch.einsum(
        "bji,io->bjo", h, u
    )
    return (hidden.tanh() * v).sum(-1)


def weighed(scores, allowed=None):
    powers = scores.exp() if allowed is None else scores.exp() * allowed
    return powers / powers.sum(1, keepdim=True)


def mixed(weights, h):
    return torch.einsum("bj,bjd->bd", weights, h)


def stepped(context_of=mixed, order=(0, 1, 2), query=None):
    def step(token, s, h, w, u, v, cell):
        weights = weighed(scored(s, h, w, u, v))
        parts = (token, context_of(weights, h), s)
        new = torch.hstack([parts[i] for i in order]).matmul(cell).tanh()
        return new, weighed(scored(new, h, w, u, v)) if query else weights

    return step


def without_state(token, s, h, w, u, v, cell):
    weights = weighed(scored(s, h, w, u, v))
    joined = torch.hstack([token, mixed(weights, h)])
    return (joined @ cell[: joined.shape[1]]).tanh(), weights


def pairs_where(crossed):
    def read(weights):
        links = [max(range(len(row)), key=row.__getitem__) for row in weights.tolist()]
        pairs = itertools.combinations(links, 2)
        return torch.tensor(links), sum(crossed(a, b) for a, b in pairs)

    return read


def turned(weights):
    links = weights.argmax(1).tolist()
    return sum(a > b for a, b in itertools.pairwise(links))


WRONG = [
    ("03.1", "tanh_after_v", by_loop(lambda q, k, v: math.tanh(v @ (q + k)))),
    ("03.1", "no_tanh", by_loop(lambda q, k, v: v @ (q + k))),
    ("03.1", "two_tanhs", by_loop(lambda q, k, v: v @ q.tanh() + v @ k.tanh())),
    ("03.1", "multiplied", by_loop(lambda q, k, v: v @ (q * k).tanh())),
    ("03.1", "mean_for_v", by_loop(lambda q, k, v: (v * (q + k).tanh()).mean())),
    ("03.1", "no_v", by_loop(lambda q, k, v: (q + k).tanh().sum())),
    ("03.1", "state_left_out", by_loop(lambda q, k, v: v @ k.tanh())),
    ("03.1", "weights_already", lambda *args: weighed(scored(*args))),
    ("03.1", "weights_already", lambda s, h, w, u, v: weighed(h.sum(-1))),
    (
        "03.1",
        "first_example_for_all",
        lambda s, *rest: scored(s[0].expand_as(s), *rest),
    ),
    ("03.2", "padding_attended", lambda e, h, m: (mixed(weighed(e), h), weighed(e))),
    (
        "03.2",
        "mask_turned_round",
        lambda e, h, m: (lambda a: (mixed(a, h), a))(weighed(e, m.logical_not())),
    ),
    (
        "03.2",
        "cut_after_softmax",
        lambda e, h, m: (lambda a: (mixed(a, h), a))(weighed(e).where(m, 0.0)),
    ),
    (
        "03.2",
        "zero_scores",
        lambda e, h, m: (lambda a: (mixed(a, h), a))(weighed(e.where(m, 0.0))),
    ),
    (
        "03.2",
        "over_the_batch",
        lambda e, h, m: (lambda a: (mixed(a, h), a))(weighed(e.T, m.T).T),
    ),
    (
        "03.2",
        "one_softmax_for_all",
        lambda e, h, m: (lambda a: (mixed(a, h), a))(
            (e.exp() * m) / (e.exp() * m).sum()
        ),
    ),
    (
        "03.2",
        "no_softmax",
        lambda e, h, m: (mixed(e.where(m, 0.0), h), e.where(m, 0.0)),
    ),
    (
        "03.2",
        "context_divided",
        lambda e, h, m: (lambda a: ((a[..., None] * h).mean(1), a))(weighed(e, m)),
    ),
    (
        "03.2",
        "order",
        lambda e, h, m: (weighed(e, m), mixed(weighed(e, m), h)),
    ),
    ("03.3", "attends_with_the_new_state", stepped(query="new")),
    ("03.3", "context_before_token", stepped(order=(1, 0, 2))),
    ("03.3", "state_before_the_rest", stepped(order=(2, 0, 1))),
    ("03.3", "plain_mean", stepped(lambda a, h: h.sum(1) / h.shape[1])),
    ("03.3", "last_annotation", stepped(lambda a, h: h.flip(1)[:, 0])),
    ("03.3", "summed_annotations", stepped(lambda a, h: mixed(torch.ones_like(a), h))),
    (
        "03.3",
        "strongest_alone",
        stepped(lambda a, h: mixed((a == a.amax(1, keepdim=True)).float(), h)),
    ),
    ("03.3", "forgets_its_state", without_state),
    ("03.4", "neighbours_only", lambda w: (w.max(1).indices, turned(w))),
    ("03.4", "ties_count", pairs_where(lambda a, b: a >= b)),
    ("03.4", "every_pair_twice", pairs_where(lambda a, b: 2 * (a > b))),
    ("03.4", "in_order", pairs_where(lambda a, b: a < b)),
    (
        "03.4",
        "best_target_of_each_source",
        lambda w: pairs_where(lambda a, b: a > b)(w.T.contiguous()),
    ),
    ("03.5", "reason_misjudged", lambda: SAID | {"reason": "follows"}),
    (
        "03.5",
        "annotation_misjudged",
        lambda: dict.fromkeys(SAID, "follows") | {"reason": "does not follow"},
    ),
    ("03.5", "context_misjudged", lambda: dict.fromkeys(SAID, "does not follow")),
    ("03.5", "not_all_or_other_words", lambda: {"context": "follows"}),
    ("03.6", "sure_only", lambda: (0.6, 0.3)),
    ("03.6", "one_minus_accuracy", lambda: (torch.tensor(0.8), 0.2)),
    ("03.6", "not_subtracted", lambda: (0.8, 0.778)),
    ("03.6", "possible_without_sure", lambda: (0.2, 0.0)),
    ("03.6", "possible_in_the_denominator", lambda: [0.8, 0.364]),
]


@pytest.mark.parametrize(("identifier", "name", "answer"), WRONG)
def test_a_mistake_in_other_code_gets_its_hint(identifier, name, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.misconception == name, result.hint
        assert result.points < result.max_points


RIGHT = [
    ("03.1", scored),
    ("03.1", lambda s, h, w, u, v: (h @ u + (s @ w).unsqueeze(1)).tanh() @ v),
    ("03.2", lambda e, h, m: (mixed(weighed(e, m), h), weighed(e, m))),
    (
        "03.2",
        lambda e, h, m: (lambda a: ((a.unsqueeze(-1) * h).sum(-2), a))(
            e.masked_fill(m.logical_not(), -1e9).softmax(1)
        ),
    ),
    ("03.3", stepped()),
    ("03.4", pairs_where(lambda a, b: a > b)),
    ("03.6", lambda: (0.8, 0.2222)),
    ("03.6", lambda: (np.float64(0.8), torch.tensor(2 / 9))),
]


@pytest.mark.parametrize(("identifier", "answer"), RIGHT)
def test_another_right_way_earns_every_point(identifier, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.points == result.max_points, result.hint


def test_a_loop_over_the_source_loses_the_point_for_it():
    def answer(s, h, w, u, v):
        columns = []
        for j in range(h.shape[1]):
            columns.append(torch.tanh(s @ w + h[:, j] @ u) @ v)
        return torch.stack(columns, 1)

    result = verdict("03.1", answer)
    assert (result.points, result.misconception) == (2, "loop")


def test_right_without_padding_earns_half():
    result = verdict("03.2", lambda e, h, m: (mixed(weighed(e), h), weighed(e)))
    assert (result.points, result.max_points) == (2, 4)


def test_the_rates_are_those_of_the_metrics():
    sure = {(0, 0), (3, 2), (2, 3), (4, 4)}
    possible = sure | {(2, 1), (1, 2)}
    predicted = {(0, 0), (2, 1), (3, 2), (1, 3), (4, 4)}
    accuracy, rate = find_question("03.6").reference()
    assert accuracy == alignment_accuracy([possible], [predicted])
    assert rate == pytest.approx(alignment_error_rate([sure], [possible], [predicted]))


def test_the_hints_of_the_rates_never_name_a_right_number():
    for mistake in find_question("03.6").mistakes:
        words = set(mistake.hint.replace(",", " ").split())
        assert not {"0.8", "0.22", "4/5", "2/9", "four", "80"} & words


def test_a_conclusion_that_does_not_follow_fails_for_some_model_with_the_same_row():
    """Two sets of annotations, one row of weights: the same word by any other row."""
    weights = torch.tensor([0.02, 0.70, 0.25, 0.02, 0.01])
    spread = torch.ones(5, 3)  # every state knows the same
    other = torch.tensor([0.9, 0.05, 0.03, 0.01, 0.01])
    assert SAID["unique"] == "does not follow"
    torch.testing.assert_close(weights @ spread, other @ spread)
