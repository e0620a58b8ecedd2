"""The questions of chapter 15, answered rightly and wrongly by someone else."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from course_utils.attention import attention
from course_utils.checks import PUBLIC_SEED, verdict
from course_utils.costs import count_flops, layer_cost
from course_utils.questions import find_question
from course_utils.recurrences import CausalConvolution, linear_scan
from course_utils.transformer import GPT

SEEDS = (PUBLIC_SEED, 0, 1, "a secret of the instructor")


def dilated_by_sum(k):
    reach, layers = 0, 0
    while reach < k:
        reach += 2 * 2**layers
        layers += 1
    return layers


def gru(n, d):
    return 12 * n * d * d


def held(d, layers, pieces):
    """The numbers in a GPT's matrices."""
    return d * (pieces + 12 * layers * d)


def work(n, d, layers, pieces):
    """Its operations forward, and in training."""
    block = layer_cost("attention, naive", n, d).flops + 16 * n * d * d
    forward = layers * block + 2 * n * pieces * d
    return forward, forward + 2 * forward


def merged(m1, l1, c1, m2, l2, c2):
    """With the first half as the unit of measure, where that does not overflow."""
    swap = (m2 > m1)[:, None]
    m = torch.where(swap[:, 0], m2, m1)
    smaller = torch.exp(-(m1 - m2).abs())
    total = torch.where(swap[:, 0], l2 + smaller * l1, l1 + smaller * l2)
    near, far = torch.where(swap, c2, c1), torch.where(swap, c1, c2)
    return m, total, near + smaller[:, None] * far


def averaged_contexts(m1, l1, c1, m2, l2, c2):
    """As if each half had divided by its own total already."""
    m, total, _ = merged(m1, l1, c1, m2, l2, c2)
    share = l1 * torch.exp(m1 - m) / total
    return m, total, torch.lerp(c2, c1, share[:, None])


def recurred(decay, added, first, step=lambda a, b, h: a * h + b):
    out = torch.empty_like(added)
    for t in range(len(added)):
        out[t] = step(decay[t], added[t], out[t - 1] if t else first)
    return out


def weighted(gradients, rows):
    repeated = gradients.repeat_interleave(rows.long(), dim=0)
    return repeated.mean(dim=0)


WRONG = [
    (
        "15.1",
        "only_multiplications",
        lambda n, d: (4 * n * d**2 + 2 * d * n**2, 6 * n * d**2),
    ),
    (
        "15.1",
        "no_output_matrix",
        lambda n, d: (2 * n * d * (3 * d + 2 * n), 12 * n * d**2),
    ),
    ("15.1", "no_projections", lambda n, d: (4.0 * d * n**2, 12 * n * d**2)),
    ("15.1", "scores_only", lambda n, d: (2 * n * d * (4 * d + n), 12 * n * d**2)),
    ("15.1", "no_table", lambda n, d: (8 * n * d**2, 12 * n * d**2)),
    (
        "15.1",
        "gru_input_only",
        lambda n, d: (4 * n * d * (2 * d + n), 3 * 2 * n * d**2),
    ),
    ("15.1", "one_gate", lambda n, d: (4 * n * d * (2 * d + n), 2 * 2 * n * d**2)),
    ("15.1", "no_proposal", lambda n, d: (4 * n * d * (2 * d + n), 2 * 4 * n * d**2)),
    ("15.1", "four_gates", lambda n, d: (4 * n * d * (2 * d + n), 4 * 4 * n * d**2)),
    ("15.1", "gru_one_token", lambda n, d: (4 * n * d * (2 * d + n), 12 * d**2)),
    ("15.1", "gru_quadratic", lambda n, d: (4 * n * d * (2 * d + n), 12 * d * n**2)),
    ("15.1", "order", lambda n, d: (12 * n * d**2, 4 * n * d * (2 * d + n))),
    ("15.2", "kernel_reaches_three", lambda k: (1, k, -(-k // 3), dilated_by_sum(k))),
    ("15.2", "rounded_down", lambda k: (1, k, int(k / 2), dilated_by_sum(k))),
    ("15.2", "one_token_a_layer", lambda k: (1, k, k, dilated_by_sum(k))),
    (
        "15.2",
        "own_token_counted",
        lambda k: (1, k, (k + 1) // 2, dilated_by_sum(k - 1)),
    ),
    (
        "15.2",
        "one_layer_too_many",
        lambda k: (1, k, math.floor(k / 2 + 1), dilated_by_sum(k)),
    ),
    (
        "15.2",
        "dilated_rounded_down",
        lambda k: (1, k, (k + 1) // 2, math.floor(math.log2(k / 2 + 1))),
    ),
    (
        "15.2",
        "gru_tokens_between",
        lambda k: (1, len(range(1, k)), (k + 1) // 2, dilated_by_sum(k)),
    ),
    (
        "15.2",
        "gru_both_ends",
        lambda k: (1, len(range(k + 1)), (k + 1) // 2, dilated_by_sum(k)),
    ),
    ("15.2", "not_whole", lambda k: (1, k, 0.5 * k, math.log2(k + 2) - 1)),
    (
        "15.2",
        "attention_for_nothing",
        lambda k: (0, k, (k + 1) // 2, dilated_by_sum(k)),
    ),
    ("15.2", "gap_only", lambda k: (1, k, (k + 1) // 2, k.bit_length())),
    (
        "15.2",
        "dilated_does_not_add",
        lambda k: (1, k, (k + 1) // 2, (k - 1).bit_length()),
    ),
    ("15.2", "attention_walks", lambda k: (k, k, (k + 1) // 2, dilated_by_sum(k))),
    ("15.2", "gru_jumps", lambda k: (1, 1, (k + 1) // 2, dilated_by_sum(k))),
    ("15.3", "keys_only", lambda n, d, L, b, s: (b * L * n * d * s, b * L * d * s)),
    (
        "15.3",
        "queries_too",
        lambda n, d, L, b, s: (b * L * n * d * s * 3, b * L * d * s),
    ),
    ("15.3", "one_layer", lambda n, d, L, b, s: (b * 2 * n * d * s, b * d * s)),
    ("15.3", "one_text", lambda n, d, L, b, s: (L * 2 * n * d * s, L * d * s)),
    ("15.3", "numbers_not_bytes", lambda n, d, L, b, s: (b * L * 2 * n * d, b * L * d)),
    (
        "15.3",
        "state_grows",
        lambda n, d, L, b, s: (2 * b * L * n * d * s, b * L * n * d * s),
    ),
    (
        "15.3",
        "state_of_one_layer",
        lambda n, d, L, b, s: (2 * b * L * n * d * s, b * d * s),
    ),
    (
        "15.3",
        "state_twice",
        lambda n, d, L, b, s: (2 * b * L * n * d * s, b * L * (d + d) * s),
    ),
    ("15.3", "order", lambda n, d, L, b, s: (b * L * d * s, 2 * b * L * d * s * n)),
    ("15.3", "weights_kept", lambda n, d, L, b, s: (b * L * n**2 * s, b * L * d * s)),
    (
        "15.4",
        "not_rescaled",
        lambda m1, l1, c1, m2, l2, c2: (m1.maximum(m2), l1 + l2, c1 + c2),
    ),
    (
        "15.4",
        "values_not_rescaled",
        lambda *a: (*merged(*a)[:2], a[2] + a[5]),
    ),
    (
        "15.4",
        "already_divided",
        lambda *a: (*merged(*a)[:2], merged(*a)[2] / merged(*a)[1].unsqueeze(1)),
    ),
    (
        "15.4",
        "only_first_rescaled",
        lambda m1, l1, c1, m2, l2, c2: (
            m1.maximum(m2),
            l1 * (m1 - m1.maximum(m2)).exp() + l2,
            c1 * (m1 - m1.maximum(m2)).exp().unsqueeze(1) + c2,
        ),
    ),
    ("15.4", "averages_merged", averaged_contexts),
    (
        "15.4",
        "second_as_unit",
        lambda m1, l1, c1, m2, l2, c2: (
            torch.where(m1 > m2, m1, m2),
            l2 + l1 * (m1 - m2).exp(),
            c2 + (m1 - m2).exp().unsqueeze(1) * c1,
        ),
    ),
    (
        "15.4",
        "first_as_unit",
        lambda m1, l1, c1, m2, l2, c2: (
            torch.where(m1 > m2, m1, m2),
            l1 + l2 * (m2 - m1).exp(),
            c1 + (m2 - m1).exp().unsqueeze(1) * c2,
        ),
    ),
    ("15.5", "starts_at_zero", lambda a, b, h: recurred(a, b, 0 * h)),
    ("15.5", "starts_at_zero", lambda a, b, h: linear_scan(a[None], b[None])[0]),
    ("15.5", "added_before_decay", lambda a, b, h: recurred(a, a * b, h)),
    ("15.5", "keep_and_renew_swapped", lambda a, b, h: recurred(1 - a, b, h)),
    ("15.5", "averaged", lambda a, b, h: recurred(a, b - a * b, h)),
    ("15.5", "no_decay", lambda a, b, h: h + b.cumsum(0)),
    ("15.5", "first_does_not_decay", lambda a, b, h: recurred(a, b, 0 * h) + h),
    (
        "15.5",
        "each_from_first",
        lambda a, b, h: torch.stack([torch.addcmul(y, x, h) for x, y in zip(a, b)]),
    ),
    (
        "15.5",
        "first_misses_a_decay",
        lambda a, b, h: recurred(a, b, 0 * h) + h * a.cumprod(0) / a[0],
    ),
    (
        "15.5",
        "decays_one_late",
        lambda a, b, h: recurred(a.roll(1, 0).index_fill(0, torch.tensor(0), 1), b, h),
    ),
    ("15.6", "mean_of_means", lambda g, r: sum(g) / len(g)),
    ("15.6", "sum", lambda g, r: sum(g)),
    ("15.6", "not_divided", lambda g, r: r @ g),
    ("15.6", "divided_by_processes", lambda g, r: r @ g / len(r)),
    ("15.6", "taken_for_sums", lambda g, r: g.T.sum(-1) / sum(r)),
    ("15.6", "inverse", lambda g, r: (1 / r / (1 / r).sum()) @ g),
    ("15.6", "softmax", lambda g, r: (g.T * r.softmax(0)).sum(-1)),
    ("15.6", "divided_by_own_rows", lambda g, r: (1 / r) @ g),
    (
        "15.1",
        "causal_half",
        lambda n, d: (8 * n * d**2 + sum(range(n + 1)) * 4 * d, gru(n, d)),
    ),
    (
        "15.7",
        "untied",
        lambda n, d, L, v: (2 * v * d + 12 * L * d**2, *work(n, d, L, v)),
    ),
    ("15.7", "no_embedding", lambda n, d, L, v: (12 * L * d**2, *work(n, d, L, v))),
    ("15.7", "no_output_layer", lambda n, d, L, v: (held(d, L, v), *work(n, d, L, 0))),
    (
        "15.7",
        "embedding_multiplied",
        lambda n, d, L, v: (held(d, L, v), *work(n, d, L, 2 * v)),
    ),
    (
        "15.7",
        "no_scores",
        lambda n, d, L, v: tuple(k * held(d, L, v) for k in (1, 2 * n, 6 * n)),
    ),
    ("15.7", "one_block", lambda n, d, L, v: (held(d, 1, v), *work(n, d, 1, v))),
    (
        "15.7",
        "only_multiplications",
        lambda n, d, L, v: (held(d, L, v), *(w // 2 for w in work(n, d, L, v))),
    ),
    (
        "15.7",
        "forward_and_as_much_back",
        lambda n, d, L, v: (held(d, L, v), *(work(n, d, L, v)[0] * k for k in (1, 2))),
    ),
    (
        "15.7",
        "training_is_forward",
        lambda n, d, L, v: (held(d, L, v), *[work(n, d, L, v)[0]] * 2),
    ),
    (
        "15.7",
        "one_matrix_of_two",
        lambda n, d, L, v: (
            held(d, L, v) - 4 * L * d**2,
            *(w - k * 8 * n * L * d**2 for w, k in zip(work(n, d, L, v), (1, 3))),
        ),
    ),
]


@pytest.mark.parametrize(("identifier", "name", "answer"), WRONG)
def test_a_mistake_in_other_code_gets_its_hint(identifier, name, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.misconception == name, result.hint
        assert result.points < result.max_points


RIGHT = [
    ("15.1", lambda n, d: [4 * n * d * (n + 2 * d), 12 * d**2 * n]),
    (
        "15.1",
        lambda n, d: tuple(
            layer_cost(k, n, d).flops for k in ("attention, fused", "GRU")
        ),
    ),
    ("15.2", lambda k: (1, k, (k + 1) // 2, dilated_by_sum(k))),
    ("15.2", lambda k: (1.0, np.int64(k), -(-k // 2), math.ceil(math.log2(k / 2 + 1)))),
    ("15.3", lambda n, d, L, b, s: (s * b * L * n * (d + d), s * b * L * d)),
    ("15.4", merged),
    ("15.5", recurred),
    (
        "15.5",
        lambda a, b, h: linear_scan(a[None], b[None])[0] + a.cumprod(0) * h,
    ),
    ("15.6", weighted),
    ("15.6", lambda g, r: torch.einsum("rp,r->p", g, r) / sum(r)),
    ("15.7", lambda n, d, L, v: [held(d, L, v), *work(n, d, L, v)]),
]


@pytest.mark.parametrize(("identifier", "answer"), RIGHT)
def test_another_right_way_earns_every_point(identifier, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.points == result.max_points, result.hint


def test_the_operations_are_those_that_pytorch_counts():
    n, d = 10, 6
    x, square = torch.ones(1, n, d), [torch.ones(d, d) for _ in range(4)]

    def layer():
        q, k, v = (x @ w for w in square[:3])
        return attention(q, k, v)[0] @ square[3]

    gru = torch.nn.GRU(d, d, batch_first=True)
    counted = count_flops(layer), count_flops(lambda: gru(x))
    assert counted == find_question("15.1").reference(n, d)


def test_the_layers_reach_as_far_as_the_answer_says():
    for k in (1, 2, 3, 6, 7, 14, 15, 30, 31):
        _, _, plain, dilated = find_question("15.2").reference(k)
        assert CausalConvolution(2, n_layers=dilated).reach > k
        assert dilated == 1 or CausalConvolution(2, n_layers=dilated - 1).reach <= k
        assert 2 * plain >= k > 2 * (plain - 1)


def test_a_whole_gpt_costs_what_pytorch_counts():
    n, d, layers, pieces = 10, 6, 4, 17
    model = GPT(pieces, n, d, 2, layers)
    tokens = torch.zeros(1, n, dtype=torch.long)
    parameters, forward, training = find_question("15.7").reference(
        n, d, layers, pieces
    )
    matrices = [p for p in model.blocks.parameters() if p.dim() == 2]
    assert parameters == sum(m.numel() for m in [model.head.weight, *matrices])
    assert forward == count_flops(lambda: model(tokens, need_weights=True))
    assert training == count_flops(
        lambda: model(tokens, need_weights=True)[0].sum().backward()
    )
