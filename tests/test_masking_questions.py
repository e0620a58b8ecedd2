"""The questions of chapter 09, answered rightly and wrongly by someone else."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_utils.attention import attention
from course_utils.checks import PUBLIC_SEED, verdict
from course_utils.leaks import leak_test
from course_utils.questions import find_question
from course_utils.questions.finding_leaks import JUDGED, REACHES, colleague
from course_utils.transformer import GPT

SEEDS = (PUBLIC_SEED, 0, 1, "a secret of the instructor")


def by_pair(rule):
    """Fill a mask entry by entry."""

    def answer(n_queries, n_keys):
        shift = n_keys - n_queries
        return torch.tensor(
            [[rule(i, j, shift) for j in range(n_keys)] for i in range(n_queries)]
        )

    return answer


def by_key(rule):
    """Decide key by key of every sentence."""

    def answer(lengths, n_keys, left):
        rows = [
            [rule(j, int(length), n_keys, left) for j in range(n_keys)]
            for length in lengths
        ]
        return torch.tensor(rows).unsqueeze(1)

    return answer


def is_real(j, length, n_keys, left):
    return n_keys - j <= length if left else j < length


def by_triple(rule):
    """Decide pair by pair of every row."""

    def answer(documents):
        n = documents.shape[1]
        return torch.tensor(
            [
                [[rule(i, j, row[i], row[j]) for j in range(n)] for i in range(n)]
                for row in documents.tolist()
            ]
        )

    return answer


def by_row(weigh):
    """Weigh row by row, with Python's loop and the exponential."""

    def answer(scores, mask):
        flat = scores.float().reshape(-1, *mask.shape)
        rows = [
            torch.stack([weigh(s, m) for s, m in zip(table, mask)]) for table in flat
        ]
        return torch.stack(rows).reshape(scores.shape)

    return answer


def careful(s, m):
    if not m.any():
        return torch.zeros_like(s)
    powers = torch.where(m, (s - s[m].max()).exp(), torch.zeros_like(s))
    return powers / powers.sum()


WRONG = [
    ("09.1", "inverted", by_pair(lambda i, j, s: j > i + s)),
    ("09.1", "off_by_one", by_pair(lambda i, j, s: j <= i + s + 1)),
    ("09.1", "too_strict", by_pair(lambda i, j, s: j < i + s)),
    ("09.1", "top_left", by_pair(lambda i, j, s: j <= i)),
    ("09.1", "upper_triangle", by_pair(lambda i, j, s: j >= i + s)),
    ("09.1", "upper_top_left", by_pair(lambda i, j, s: j >= i)),
    ("09.1", "inverted_top_left", by_pair(lambda i, j, s: j > i)),
    ("09.1", "not_boolean", by_pair(lambda i, j, s: int(j <= i + s))),
    ("09.1", "additive", by_pair(lambda i, j, s: 0.0 if j <= i + s else -math.inf)),
    ("09.1", "nothing_blocked", lambda q, k: torch.ones(q, k) > 0),
    ("09.2", "inverted", by_key(lambda *a: not is_real(*a))),
    (
        "09.2",
        "one_too_many",
        by_key(lambda j, n, k, left: k - j <= n + 1 if left else j <= n),
    ),
    (
        "09.2",
        "one_too_few",
        by_key(lambda j, n, k, left: k - j < n if left else j < n - 1),
    ),
    (
        "09.2",
        "ends_shifted",
        by_key(lambda j, n, k, left: j > k - n if left else j <= n),
    ),
    (
        "09.2",
        "left_one_short",
        by_key(lambda j, n, k, left: j > k - n if left else j < n),
    ),
    (
        "09.2",
        "left_counts_tokens",
        by_key(lambda j, n, k, left: j >= n if left else j < n),
    ),
    ("09.2", "side_ignored", by_key(lambda j, n, k, left: j < n)),
    (
        "09.2",
        "sides_exchanged",
        by_key(lambda j, n, k, left: is_real(j, n, k, not left)),
    ),
    ("09.2", "queries_masked", lambda *a: by_key(is_real)(*a).transpose(1, 2)),
    ("09.2", "no_query_axis", lambda *a: by_key(is_real)(*a)[:, 0]),
    (
        "09.2",
        "queries_and_keys",
        lambda *a: by_key(is_real)(*a) * by_key(is_real)(*a).mT,
    ),
    (
        "09.2",
        "longest_for_all",
        lambda n, k, left: by_key(is_real)(torch.full_like(n, int(n.max())), k, left),
    ),
    ("09.2", "not_boolean", lambda *a: by_key(is_real)(*a).long()),
    (
        "09.3",
        "or_for_and",
        by_triple(lambda i, j, a, b: b != 0 and (j <= i or a == b)),
    ),
    ("09.3", "any_of_three", by_triple(lambda i, j, a, b: b != 0 or j <= i or a == b)),
    ("09.3", "future_open", by_triple(lambda i, j, a, b: b != 0 and a == b)),
    ("09.3", "texts_mixed", by_triple(lambda i, j, a, b: b != 0 and j <= i)),
    ("09.3", "earlier_texts", by_triple(lambda i, j, a, b: a >= b > 0 and j <= i)),
    ("09.3", "too_strict", by_triple(lambda i, j, a, b: a == b != 0 and j < i)),
    (
        "09.3",
        "padding_sees_itself",
        by_triple(lambda i, j, a, b: i == j or (a == b != 0 and j < i)),
    ),
    ("09.3", "padding_open", by_triple(lambda i, j, a, b: j <= i and a == b)),
    (
        "09.3",
        "inverted",
        by_triple(lambda i, j, a, b: j > i or a != b or b == 0),
    ),
    (
        "09.3",
        "off_by_one",
        by_triple(lambda i, j, a, b: j <= i + 1 and a == b and a * b != 0),
    ),
    (
        "09.3",
        "transposed",
        by_triple(lambda i, j, a, b: i <= j and a == b and a != 0),
    ),
    ("09.4", "nan", by_row(lambda s, m: s.where(m, -torch.inf).softmax(0))),
    (
        "09.4",
        "lowest_number",
        by_row(lambda s, m: careful(s, m) if m.any() else torch.ones_like(s) / len(s)),
    ),
    (
        "09.4",
        "minus_1e9",
        lambda s, m: s.masked_fill(m.logical_not(), -1e9).softmax(-1),
    ),
    ("09.4", "zero_score", by_row(lambda s, m: (s * m).softmax(0))),
    ("09.4", "not_renormalised", by_row(lambda s, m: s.softmax(0).where(m, 0.0))),
    (
        "09.4",
        "renormalised",
        by_row(lambda s, m: F.normalize(s.softmax(0) * m, p=1, dim=0, eps=1e-30)),
    ),
    (
        "09.4",
        "renormalised_nan",
        by_row(lambda s, m: s.softmax(0) * m / (s.softmax(0) * m).sum()),
    ),
    ("09.4", "inverted", by_row(lambda s, m: careful(s, ~m))),
    ("09.4", "mask_ignored", by_row(lambda s, m: s.softmax(0))),
    ("09.5", "zeros_trusted", lambda: JUDGED | {"late": "right"}),
    ("09.5", "wrong_corner", lambda: JUDGED | {"continued": "leaks"}),
    ("09.5", "sum_distrusted", lambda: JUDGED | {"shared_out": "leaks"}),
    ("09.5", "conventions_mixed", lambda: JUDGED | {"module": "too strict"}),
    ("09.5", "not_all_or_other_words", lambda: {"late": "leaks"}),
    ("09.5", "not_all_or_other_words", lambda: JUDGED | {"late": "leak"}),
    ("09.6", "no_future", lambda: (torch.ones(3, 2), torch.ones(2, 2), 0)),
    ("09.6", "no_future", lambda: (torch.ones(3, 2), torch.ones(3, 2), -1)),
    ("09.6", "no_future", lambda: (torch.ones(3, 2), torch.ones(3, 2), 0.5)),
    ("09.6", "past_changed", lambda: (torch.eye(4), torch.eye(4).flip(0), 2)),
    ("09.6", "nothing_changed", lambda: (torch.eye(4, 3), torch.eye(4, 3), 1)),
    (
        "09.6",
        "length_kept",
        lambda: (
            torch.tensor([[1.0], [2], [3]]),
            torch.tensor([[1.0], [-2], [3]]),
            0,
        ),
    ),
    (
        "09.6",
        "past_is_zero",
        lambda: (
            torch.tensor([[0.0], [0], [3]]),
            torch.tensor([[0.0], [0], [7]]),
            1,
        ),
    ),
    (
        "09.6",
        "too_faint",
        lambda: (torch.tensor([[5.0], [1]]), torch.tensor([[5.0], [1.01]]), 0),
    ),
    (
        "09.6",
        "not_a_number",
        lambda: (torch.zeros(3, 2), torch.tensor([[0.0, 0], [0, 0], [1, 1]]), 1),
    ),
    ("09.7", "one_layer_leak", lambda: (4, 15, 465)),
    ("09.7", "leak_one_layer_short", lambda: (6, 15, 465)),
    ("09.7", "window_one_layer_short", lambda: (7, 12, 465)),
    ("09.7", "window_and_layers_added", lambda: (7, 8, 465)),
    ("09.7", "counted_from_one", lambda: (8, 20, 900)),
    ("09.7", "window_with_itself", lambda: [7, torch.tensor(20.0), 465]),
    ("09.7", "one_layer_window", lambda: (7, 3, 30)),
    ("09.7", "last_pass_missing", lambda: (7, 15, 435)),
    ("09.7", "parallel", lambda: (7, 15, 30)),
]


@pytest.mark.parametrize(("identifier", "name", "answer"), WRONG)
def test_a_wrong_answer_gets_the_hint_of_its_misconception(identifier, name, answer):
    known = {mistake.id: mistake.hint for mistake in find_question(identifier).mistakes}
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.misconception == name, result.hint
        assert result.hint == known[name]
        assert result.points < result.max_points


def softmax_with_added(scores, mask):
    weights = (
        scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
    ).softmax(-1)
    return weights.nan_to_num(0.0)


RIGHT = [
    ("09.1", by_pair(lambda i, j, s: j <= i + s)),
    ("09.1", lambda q, k: ~torch.ones(q, k, dtype=torch.bool).triu(k - q + 1)),
    ("09.1", lambda q, k: torch.ones(k, k, dtype=torch.bool).tril()[k - q :]),
    ("09.2", by_key(is_real)),
    (
        "09.2",
        lambda n, k, left: torch.stack(
            [
                torch.arange(k) >= k - length if left else torch.arange(k) < length
                for length in n
            ]
        )[:, None],
    ),
    ("09.3", by_triple(lambda i, j, a, b: j <= i and a == b != 0)),
    (
        "09.3",
        lambda d: (
            (d[:, :, None] == d[:, None]) & (d != 0)[:, :, None] & (d != 0)[:, None]
        ).tril(),
    ),
    ("09.4", by_row(careful)),
    ("09.4", softmax_with_added),
    (
        "09.4",
        lambda s, m: F.scaled_dot_product_attention(
            s.float(), torch.eye(s.shape[-1]), torch.eye(s.shape[-1]), m, scale=1.0
        ),
    ),
    ("09.5", lambda: dict(sorted(JUDGED.items()))),
    (
        "09.6",
        lambda: (
            torch.ones(4, 3),
            torch.cat([torch.ones(3, 3), torch.full((1, 3), -8.0)]),
            torch.tensor(2),
        ),
    ),
    ("09.7", lambda: (7, torch.tensor(15), 465.0)),
]


@pytest.mark.parametrize(("identifier", "answer"), RIGHT)
def test_another_right_way_earns_every_point(identifier, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.points == result.max_points, result.hint


# ------------------------------------------------------------- the answers are true


def test_the_verdicts_on_eight_pieces_of_code_are_those_of_the_leak_test():
    torch.manual_seed(0)
    n, table = 6, torch.ones(6, 6, dtype=torch.bool)
    mask, heads = table.tril(), nn.MultiheadAttention(8, 2, batch_first=True).eval()

    def weights(x):
        return x @ x.mT / math.sqrt(8)

    code = {
        "one_more": lambda x: attention(x, x, x, table.tril(1)),
        "huge": lambda x: weights(x).masked_fill(~mask, -1e9).softmax(-1) @ x,
        "late": lambda x: weights(x).softmax(-1) * mask @ x,
        "shared_out": lambda x: F.normalize(weights(x).softmax(-1) * mask, 1, -1) @ x,
        "strict": lambda x: attention(x, x, x, table.tril(-1)),
        "module": lambda x: heads(x[:, :5], x, x, attn_mask=mask[:5])[0],
        "ones_and_zeros": lambda x: F.scaled_dot_product_attention(
            x, x, x, mask.float()
        ),
        "continued": lambda x: F.scaled_dot_product_attention(
            x[:, -2:], x, x, is_causal=True
        ),
    }
    assert code.keys() == JUDGED.keys()
    allowed = {"module": mask[:5], "continued": mask[-2:]}
    for name, function in code.items():
        report = leak_test(function, torch.randn(2, n, 8), allowed.get(name))
        found = "leaks" if report.leaks else "too strict" if report.unseen else "right"
        assert found == JUDGED[name], name


def test_the_predicted_numbers_are_those_of_real_layers():
    table = torch.ones(40, 40, dtype=torch.bool)
    ahead = torch.linalg.matrix_power(table.tril(1)[:10, :10].double(), 4)
    assert int(ahead[3].nonzero().max()) == REACHES[0]
    window = torch.linalg.matrix_power((table.tril() & table.triu(-3)).double(), 5)
    assert 30 - int(window[30].nonzero().min()) == REACHES[1]
    assert sum(range(1, 31)) == REACHES[2]


def test_the_colleagues_function_leaks_as_its_numpy_twin_says():
    def theirs(x):
        x = x / x.norm(dim=0, keepdim=True)
        scores = x @ x.T / math.sqrt(x.shape[1])
        allowed = torch.ones_like(scores, dtype=torch.bool).tril()
        weights = torch.softmax(scores.masked_fill(~allowed, -torch.inf), dim=1)
        return weights @ x

    x = torch.randn(5, 3, dtype=torch.float64)
    torch.testing.assert_close(torch.from_numpy(colleague(x.numpy())), theirs(x))
    assert leak_test(theirs, x).leaks


def test_the_hints_of_the_prediction_never_name_the_right_number():
    for mistake in find_question("09.7").mistakes:
        words = mistake.hint.replace(",", " ").replace(":", " ").split()
        assert not {str(number) for number in REACHES} & set(words)


def test_partial_credit_for_a_square_mask_alone():
    result = verdict("09.1", lambda q, k: torch.ones(q, k, dtype=torch.bool).tril())
    assert (result.points, result.max_points) == (2, 3)


def test_one_pass_is_as_good_as_many():
    """The theorem of the chapter, on the course's model and in the other direction."""
    torch.manual_seed(0)
    model = GPT(11, 9, 12, 3, n_layers=3).double()
    tokens = torch.randint(11, (2, 9))
    whole = model(tokens)[0]
    for t in range(9):
        torch.testing.assert_close(model(tokens[:, : t + 1])[0][:, -1], whole[:, t])
