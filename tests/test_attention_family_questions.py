"""The questions of chapter 04, answered rightly and wrongly by someone else."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from course_utils.checks import PUBLIC_SEED, verdict
from course_utils.questions import find_question
from course_utils.questions.which_score import CHOSEN
from course_utils.scores import GeneralScore, LocationScore, dot_scores

SEEDS = (PUBLIC_SEED, 0, 1, "a secret of the instructor")


# ------------------------------------------------------------------ written otherwise


def shares(scores, axis=-1):
    powers = torch.exp(scores - scores.amax(axis, keepdim=True))
    return powers / powers.sum(axis, keepdim=True)


def pairs(queries, keys):
    return torch.einsum("...qd,...kd->...qk", queries, keys)


def operator(score_of, axis=-1, weigh=shares):
    def answer(queries, keys, values, score, w):
        weights = weigh(score_of(queries, keys, score, w), axis)
        return torch.einsum("...qk,...kv->...qv", weights, values), weights

    return answer


def named(queries, keys, score, w):
    if score.startswith("g"):
        return pairs(torch.einsum("...qi,ij->...qj", queries, w), keys)
    return pairs(queries, keys) * (keys.shape[-1] ** -0.5 if "sc" in score else 1)


def estimate(weigh):
    """REINFORCE by a loop over the draws, each worth `weigh(reward, baseline, a)`."""

    def answer(scores, chosen, rewards, baseline):
        alpha, total = shares(scores), torch.zeros(len(scores))
        for j, reward in zip(chosen.tolist(), rewards):
            step = -alpha.clone()
            step[j] += 1
            total += weigh(reward, baseline, alpha[j]) * step
        return total / len(chosen)

    return answer


def by_hand(read, look):
    """The two gradients by formula: `read(error, log a)`, `look(loss, baseline, a)`."""

    def answer(scores, predictions, target, chosen, baseline):
        alpha = shares(scores)
        error = predictions[chosen] - target
        by_scores = look(error**2, baseline, alpha[chosen]) * -alpha
        by_scores[chosen] += look(error**2, baseline, alpha[chosen])
        by_predictions = torch.zeros(len(scores))
        by_predictions[chosen] = read(error, alpha[chosen].log())
        return by_scores, by_predictions

    return answer


def taps(looks_at, order=1):
    """The tables entry by entry: which place a tap looks at, None for nowhere."""

    def answer(n_tokens, window):
        tables = torch.zeros(window, n_tokens, n_tokens)
        for tap in range(window):
            for i in range(n_tokens):
                j = looks_at(i, tap, window, n_tokens)
                if j is not None and 0 <= j < n_tokens:
                    tables[tap, i, j] = 1
        return tables.flip(0) if order < 0 else tables

    return answer


def centred(i, tap, window, n):
    return i + tap - window // 2


def by_cells(list_cells, lay_out):
    def answer(features, query):
        cells = list_cells(features)
        weights = shares(torch.einsum("bnd,bd->bn", cells, query))
        return torch.einsum("bn,bnd->bd", weights, cells), lay_out(weights, features)

    return answer


def rows(features):
    return torch.stack(features.flatten(2).unbind(-1), 1)


def columns(features):
    return features.transpose(2, 3).flatten(2).transpose(1, 2)


def in_rows(weights, features):
    return weights.view(len(features), *features.shape[2:])


def products(features, query):
    return (features * query[:, :, None, None]).sum(1)


def pooled(weights, features):
    return (weights[:, None] * features).sum((2, 3))


def map_by(weigh):
    def answer(features, query):
        weights = weigh(products(features, query))
        return pooled(weights, features), weights

    return answer


def appended(query_column, key_column):
    def answer(queries, weight, bias):
        return (
            F.pad(queries, (0, 1), value=query_column),
            torch.column_stack([weight, key_column(bias)]),
        )

    return answer


WRONG = [
    ("04.1", "softmax_over_queries", operator(named, axis=-2)),
    ("04.1", "axis_from_the_left", operator(named, axis=1)),
    (
        "04.1",
        "always_scaled",
        operator(lambda q, k, s, w: named(q, k, s, w) / k.shape[-1] ** 0.5),
    ),
    ("04.1", "scale_ignored", operator(lambda q, k, s, w: named(q, k, s[-7:], w))),
    (
        "04.1",
        "scale_no_root",
        operator(
            lambda q, k, s, w: named(q, k, s, w) / (k.shape[-1] ** 0.5) ** ("sc" in s)
        ),
    ),
    (
        "04.1",
        "general_scaled",
        operator(
            lambda q, k, s, w: (
                named(q, k, s, w) / (math.sqrt(k.shape[-1]) if s[0] == "g" else 1.0)
            )
        ),
    ),
    ("04.1", "matrix_everywhere", operator(lambda q, k, s, w: named(q, k, "g", w))),
    (
        "04.1",
        "matrix_then_scale",
        operator(
            lambda q, k, s, w: (
                named(q, k, "g", w) / (k.shape[-1] ** 0.5 if s[0] == "s" else 1.0)
            )
        ),
    ),
    ("04.1", "no_softmax", operator(named, weigh=lambda scores, axis: scores)),
    ("04.1", "order", lambda *given: operator(named)(*given)[::-1]),
    ("04.2", "no_bias", lambda q, w, b: (q * 2, w / 2)),
    ("04.2", "no_bias", appended(0.0, lambda b: b)),
    ("04.2", "bias_twice", appended(2.0, lambda b: b)),
    ("04.2", "bias_negative", appended(1.0, lambda b: -b)),
    ("04.2", "bias_in_every_entry", lambda q, w, b: (q, (w.T + b).T)),
    ("04.2", "widths_differ", lambda q, w, b: (F.pad(q, (0, 2)), w)),
    (
        "04.2",
        "roles_swapped",
        lambda q, w, b: (torch.column_stack([w, b]), F.pad(q, (0, 1), value=1.0)),
    ),
    ("04.3", "dot_across_spaces", lambda: CHOSEN | {"two_languages": "location"}),
    ("04.3", "more_than_needed", lambda: CHOSEN | {"noisy_copy": "additive"}),
    ("04.3", "place_for_content", lambda: CHOSEN | {"noisy_copy": "location"}),
    ("04.3", "content_for_place", lambda: CHOSEN | {"third_line": "additive"}),
    ("04.3", "odd_in_the_query", lambda: CHOSEN | {"shouting": "dot"}),
    ("04.3", "no_such_place", lambda: CHOSEN | {"longer_memory": "location"}),
    ("04.3", "rotation_not_learned", lambda: CHOSEN | {"longer_memory": "dot"}),
    ("04.3", "costly", lambda: CHOSEN | {"two_languages": "additive"}),
    ("04.3", "not_all_or_other_words", lambda: {"noisy_copy": "dot"}),
    ("04.3", "not_all_or_other_words", lambda: CHOSEN | {"shouting": "Additive"}),
    ("04.4", "no_log", estimate(lambda r, b, a: (r - b) * a)),
    ("04.4", "divided_again", estimate(lambda r, b, a: (r - b) / a)),
    ("04.4", "no_baseline", estimate(lambda r, b, a: r)),
    ("04.4", "baseline_added", estimate(lambda r, b, a: r + b)),
    ("04.4", "downhill", estimate(lambda r, b, a: b - r)),
    (
        "04.4",
        "summed",
        lambda s, c, r, b: estimate(lambda r, b, a: r - b)(s, c, r, b) * c.numel(),
    ),
    (
        "04.4",
        "baseline_from_the_gradient",
        lambda s, c, r, b: estimate(lambda r, b, a: r)(s, c, r, b) - b,
    ),
    (
        "04.4",
        "only_the_chosen",
        lambda s, c, r, b: torch.zeros(len(s)).index_add(0, c, r - b) / len(c),
    ),
    (
        "04.5",
        "not_detached",
        by_hand(lambda e, log: 2 * e * (1 + log), lambda x, b, a: x + b),
    ),
    ("04.5", "no_reading_term", by_hand(lambda e, log: 0.0, lambda x, b, a: x + b)),
    ("04.5", "no_looking_term", by_hand(lambda e, log: 2 * e, lambda x, b, a: 0.0)),
    ("04.5", "no_log", by_hand(lambda e, log: 2 * e, lambda x, b, a: (x + b) * a)),
    ("04.5", "uphill", by_hand(lambda e, log: 2 * e, lambda x, b, a: -x - b)),
    (
        "04.5",
        "reward_is_the_loss",
        by_hand(lambda e, log: 2 * e, lambda x, b, a: b - x),
    ),
    ("04.5", "no_baseline", by_hand(lambda e, log: 2 * e, lambda x, b, a: x)),
    (
        "04.5",
        "baseline_against_the_loss",
        by_hand(lambda e, log: 2 * e, lambda x, b, a: x - b),
    ),
    ("04.6", "flipped", taps(centred, order=-1)),
    ("04.6", "wrapped", taps(lambda i, t, w, n: (i + t - w // 2) % n)),
    ("04.6", "clamped", taps(lambda i, t, w, n: min(max(i + t - w // 2, 0), n - 1))),
    ("04.6", "ends_at_the_query", taps(lambda i, t, w, n: i + t - w + 1)),
    ("04.6", "begins_at_the_query", taps(lambda i, t, w, n: i + t)),
    (
        "04.6",
        "ones_over_the_window",
        lambda n, w: torch.ones(n, n).tril(w // 2).triu(-(w // 2)).repeat(w, 1, 1),
    ),
    (
        "04.7",
        "reshaped",
        by_cells(lambda f: f.reshape(len(f), -1, f.shape[1]), in_rows),
    ),
    ("04.7", "columns_first", by_cells(columns, in_rows)),
    ("04.7", "softmax_by_row", map_by(shares)),
    (
        "04.7",
        "softmax_of_the_batch",
        map_by(lambda e: e.exp() / e.exp().sum()),
    ),
    (
        "04.7",
        "mean_of_cells",
        lambda f, q: (f.flatten(2).mean(2), by_cells(rows, in_rows)(f, q)[1]),
    ),
    ("04.7", "sum_of_cells", map_by(lambda e: e)),
    (
        "04.7",
        "scaled",
        lambda f, q: by_cells(rows, in_rows)(f, q / math.sqrt(q.shape[1])),
    ),
]


@pytest.mark.parametrize(("identifier", "name", "answer"), WRONG)
def test_a_mistake_in_other_code_gets_its_hint(identifier, name, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.misconception == name, result.hint
        assert result.points < result.max_points


def conv_impulses(n_tokens, window):
    """Ask PyTorch's convolution itself, one tap at a time."""
    kernels = torch.eye(window)[:, None]  # (tap, 1, window)
    seen = F.conv1d(torch.eye(n_tokens)[:, None], kernels, padding=window // 2)
    return seen.permute(1, 2, 0)  # (key, tap, query) to (tap, query, key)


RIGHT = [
    ("04.1", operator(named)),
    ("04.2", appended(1.0, lambda b: b)),
    ("04.2", appended(-0.5, lambda b: -2 * b)),
    ("04.2", lambda q, w, b: (F.pad(q, (1, 0), value=1.0), torch.column_stack([b, w]))),
    ("04.2", lambda q, w, b: (torch.eye(len(q)), (q @ w.T + b).T)),
    ("04.4", estimate(lambda r, b, a: r - b)),
    ("04.5", by_hand(lambda e, log: 2 * e, lambda x, b, a: x + b)),
    ("04.6", taps(centred)),
    ("04.6", conv_impulses),
    ("04.7", by_cells(rows, in_rows)),
    ("04.7", by_cells(columns, lambda a, f: a.view(len(f), f.shape[3], -1).mT)),
    (
        "04.7",
        map_by(lambda e: e.exp() / e.exp().sum((1, 2), keepdim=True)),
    ),
]


@pytest.mark.parametrize(("identifier", "answer"), RIGHT)
def test_another_right_way_earns_every_point(identifier, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.points == result.max_points, result.hint


def test_the_chosen_scores_can_do_what_the_answer_says():
    """Two of the claims behind 04.3: a general score is odd, places have an end."""
    queries, keys = torch.randn(1, 2, 20), torch.randn(1, 500, 30)
    general = GeneralScore(20, 30)
    assert torch.allclose(general(-queries, keys), -general(queries, keys))
    assert general(queries, keys).shape == (1, 2, 500)
    with pytest.raises(ValueError, match="no other"):
        LocationScore(20, 8)(queries, keys)
    with pytest.raises(ValueError, match="d_k"):
        dot_scores(queries, keys)


def test_the_estimate_of_04_4_is_right_on_average():
    reference = find_question("04.4").reference
    scores, rewards = torch.tensor([0.3, -0.2, 0.9]), torch.tensor([4.0, 1.0, 2.0])
    alpha = torch.softmax(scores, 0)
    exact = alpha * (rewards - alpha @ rewards)
    for baseline in (0.0, 2.5):
        each = [
            reference(scores, torch.tensor([j]), rewards[[j]], baseline)
            for j in range(3)
        ]
        torch.testing.assert_close(sum(a * g for a, g in zip(alpha, each)), exact)


def test_the_hints_of_which_score_never_name_the_answer():
    for mistake in find_question("04.3").mistakes:
        if mistake.id != "not_all_or_other_words":
            words = set(mistake.hint.replace(",", " ").replace(":", " ").split())
            assert not words & set(CHOSEN.values())


def test_partial_credit_for_the_gradient_by_the_scores_alone():
    answer = by_hand(lambda e, log: 0.0, lambda x, b, a: x + b)
    result = verdict("04.5", answer)
    assert (result.points, result.max_points) == (2, 4)
