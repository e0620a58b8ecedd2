"""The questions of chapter 10, answered rightly and wrongly by someone else."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn

from course_utils.attention import MultiHeadAttention, merge_heads, split_heads
from course_utils.checks import PUBLIC_SEED, verdict
from course_utils.questions import find_question
from course_utils.questions.limits_of_one_head import PREDICTED

SEEDS = (PUBLIC_SEED, 0, 1, "a secret of the instructor")


def by_slices(x, n_heads):
    width = x.shape[-1] // n_heads
    return torch.stack([x[..., h * width :][..., :width] for h in range(n_heads)], 1)


def viewed(x, n_heads):
    return x.contiguous().view(x.size(0), n_heads, x.size(1), x.size(2) // n_heads)


def concatenated(context):
    return torch.cat(list(context.unbind(1)), dim=-1)


def layer(split=by_slices, merge=concatenated, root=None, axis=3, order=(0, 1, 2)):
    """The layer head by head in einsum, with one step done otherwise."""

    def answer(x, w_qkv, w_o, n_heads):
        d = w_o.shape[0]
        made = [torch.einsum("btd,de->bte", x, w_qkv[:, i * d :][:, :d]) for i in order]
        q, k, v = (split(part, n_heads) for part in made)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
        scores = scores / (root(x) if root else math.sqrt(q.shape[-1]))
        scores = scores - scores.amax(axis, keepdim=True)
        weights = scores.exp() / scores.exp().sum(axis, keepdim=True)
        context = torch.einsum("bhqk,bhkd->bhqd", weights, v)
        return torch.einsum("btd,de->bte", merge(context), w_o), weights

    return answer


def by_module(x, w_qkv, w_o, n_heads):
    module = MultiHeadAttention(x.shape[-1], n_heads, bias=False)
    module.qkv.weight = nn.Parameter(w_qkv.T.contiguous())
    module.output.weight = nn.Parameter(w_o.T.contiguous())
    with torch.no_grad():
        return module(x, need_weights=True)


def terms(band):
    def answer(context, w_o):
        n, d = context.shape[1], context.shape[3]
        return torch.stack(
            [context[:, h] @ band(w_o, h, n, d) for h in range(n)], dim=1
        )

    return answer


def cost(parameters, operations):
    return lambda d, h, n: (parameters(d, h), operations(d, h, n))


def true_parameters(d, h):
    return sum([d * 3 * d, 3 * d, d * d, d])


def true_operations(d, h, n):
    pairs = sum(2 * n * n * (d // h) for _ in range(h))
    return 2 * n * d * 3 * d + 2 * pairs + 2 * n * d * d


def masks(batch, token):
    """A table for each sentence: sentence i hides the key i from every query."""
    hidden = torch.arange(batch)[:, None] % token == torch.arange(token)
    return ~hidden[:, None].repeat(1, token, 1)


WRONG = [
    ("10.1", "view_without_transpose", viewed),
    (
        "10.1",
        "transposed_too_early",
        lambda x, n: viewed(x.mT.reshape(x.shape), n),
    ),
    (
        "10.1",
        "dealt_out",
        lambda x, n: torch.stack([x[..., h::n] for h in range(n)], dim=1),
    ),
    ("10.1", "heads_after_tokens", lambda x, n: by_slices(x, n).transpose(1, 2)),
    ("10.1", "heads_before_batch", lambda x, n: torch.stack(x.chunk(n, dim=-1))),
    ("10.1", "features_before_tokens", lambda x, n: by_slices(x, n).mT),
    ("10.1", "number_for_width", lambda x, n: torch.stack(x.split(n, -1), 1)),
    (
        "10.2",
        "view_without_transpose",
        lambda c: c.reshape(-1).view(c.size(0), c.size(2), -1),
    ),
    ("10.2", "interleaved", lambda c: torch.stack(c.unbind(1), dim=-1).flatten(2)),
    ("10.2", "averaged", lambda c: sum(c.unbind(1)) / c.shape[1]),
    ("10.2", "added", lambda c: sum(c.unbind(1))),
    ("10.2", "one_after_the_other", lambda c: c.flatten(1, 2)),
    ("10.2", "not_joined", lambda c: torch.stack(c.unbind(1), dim=2)),
    ("10.3", "scale_d_model", layer(root=lambda x: x.shape[-1] ** 0.5)),
    ("10.3", "no_scale", layer(root=lambda x: 1)),
    (
        "10.3",
        "view_without_transpose",
        layer(split=viewed, merge=lambda c: c.reshape(c.size(0), c.size(2), -1)),
    ),
    ("10.3", "split_without_transpose", layer(split=viewed)),
    (
        "10.3",
        "merge_without_transpose",
        layer(merge=lambda c: c.reshape(c.size(0), c.size(2), -1)),
    ),
    (
        "10.3",
        "not_mixed",
        lambda x, w, o, n: layer()(x, w, torch.eye(o.shape[0]), n),
    ),
    ("10.3", "w_o_transposed", lambda x, w, o, n: layer()(x, w, o.t(), n)),
    ("10.3", "keys_before_queries", layer(order=(1, 0, 2))),
    (
        "10.3",
        "heads_before_roles",
        lambda x, w, o, n: layer()(
            x,
            w.reshape(len(w), n, 3, -1).transpose(1, 2).reshape(w.shape),
            o,
            n,
        ),
    ),
    (
        "10.3",
        "weights_averaged",
        lambda x, w, o, n: (lambda y, a: (y, a.sum(1) / n))(*layer()(x, w, o, n)),
    ),
    ("10.3", "softmax_over_heads", layer(axis=1)),
    ("10.3", "softmax_over_queries", layer(axis=2)),
    ("10.3", "one_wide_head", lambda x, w, o, n: layer()(x, w, o, 1)),
    (
        "10.4",
        "no_output_matrix",
        cost(lambda d, h: 3 * d * (d + 1), true_operations),
    ),
    ("10.4", "no_biases", cost(lambda d, h: (2 * d) ** 2, lambda d, h, n: 1)),
    (
        "10.4",
        "heads_of_full_width",
        cost(lambda d, h: (3 * h + 1) * d * d + 4 * d, true_operations),
    ),
    (
        "10.4",
        "four_matrices_a_head",
        cost(lambda d, h: h * true_parameters(d, h), lambda d, h, n: 7),
    ),
    (
        "10.4",
        "one_head_only",
        cost(lambda d, h: true_parameters(d, h) // h, true_operations),
    ),
    (
        "10.4",
        "multiplications_only",
        cost(true_parameters, lambda d, h, n: true_operations(d, h, n) / 2),
    ),
    ("10.4", "no_pairs", cost(true_parameters, lambda d, h, n: 2 * n * 4 * d * d)),
    (
        "10.4",
        "scores_only",
        cost(true_parameters, lambda d, h, n: true_operations(d, h, n) - 2 * n * n * d),
    ),
    (
        "10.4",
        "pairs_at_full_width",
        cost(true_parameters, lambda d, h, n: 8 * n * d * d + h * 4 * d * n * n),
    ),
    (
        "10.4",
        "pairs_of_one_head",
        cost(true_parameters, lambda d, h, n: 8 * n * d * d + 4 * n * n * (d // h)),
    ),
    (
        "10.4",
        "no_output_product",
        cost(true_parameters, lambda d, h, n: true_operations(d, h, n) - 2 * n * d * d),
    ),
    (
        "10.5",
        "equal_parts",
        lambda c, o: torch.stack([concatenated(c) @ o / c.shape[1]] * c.shape[1], 1),
    ),
    ("10.5", "columns_for_rows", terms(lambda o, h, n, d: o[:, h * d :][:, :d].T)),
    ("10.5", "same_rows", terms(lambda o, h, n, d: o[:d])),
    ("10.5", "dealt_rows", terms(lambda o, h, n, d: o[h::n])),
    (
        "10.5",
        "already_added",
        lambda c, o: terms(lambda o, h, n, d: o[h * d :][:d])(c, o).sum(1),
    ),
    (
        "10.5",
        "heads_before_batch",
        lambda c, o: torch.stack(
            [c[:, h] @ part for h, part in enumerate(o.split(c.shape[3]))]
        ),
    ),
    ("10.6", "neighbours_forgotten", lambda: (0.2, 0.2, 0.57)),
    ("10.6", "only_neighbours", lambda: (0.1429, 0.2, torch.tensor(0.5))),
    ("10.6", "counted_twice", lambda: (12 / 35, 0, 0)),
    ("10.6", "itself_counted", lambda: [0.3, 0.2, 0.5714]),
    ("10.6", "numbers_of_the_chapter", lambda: (0.2045, 0.125, 0.545)),
    ("10.6", "guess_as_repetition", lambda: (11 / 35, 11 / 35, 4 / 7)),
    ("10.6", "both_guessed", lambda: (11 / 35, 0.04, 4 / 7)),
    ("10.6", "weight_by_half", lambda: (11 / 35, 0.2, 0.5)),
    ("10.6", "weight_added", lambda: (11 / 35, 0.2, 8 / 7)),
    ("10.7", "not_boolean", lambda: (torch.randn(2, 4, 6), 2, masks(2, 4).int())),
    ("10.7", "does_not_fit", lambda: (torch.randn(2, 4, 7), 2, masks(2, 4))),
    ("10.7", "does_not_fit", lambda: (torch.randn(2, 4, 6), 0, masks(2, 4))),
    ("10.7", "does_not_fit", lambda: (torch.randn(2, 4, 6), 2, masks(3, 4))),
    ("10.7", "does_not_fit", lambda: (torch.randn(2, 4, 6), 2, masks(2, 3))),
    ("10.7", "stops", lambda: (torch.randn(2, 4, 6), 3, masks(2, 4))),
    ("10.7", "stops", lambda: (torch.randn(3, 4, 6), 2, masks(3, 4))),
    ("10.7", "one_sentence", lambda: (torch.randn(1, 4, 6), 3, masks(1, 4))),
    ("10.7", "nothing_blocked", lambda: (torch.randn(3, 4, 6), 3, masks(3, 4) | True)),
    ("10.7", "same_masks", lambda: (torch.randn(3, 4, 6), 3, masks(3, 4)[[0, 0, 0]])),
    ("10.7", "sees_nothing", lambda: (torch.randn(2, 4, 6), 2, masks(2, 4) & False)),
    ("10.7", "tokens_alike", lambda: (torch.full((3, 4, 6), 2.5), 3, masks(3, 4))),
    (
        "10.7",
        "hardly_differs",
        lambda: (torch.eye(4).expand(4, 4, 4) / 999, 4, masks(4, 4)),
    ),
]


@pytest.mark.parametrize(("identifier", "name", "answer"), WRONG)
def test_a_mistake_in_other_code_gets_its_hint(identifier, name, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.misconception == name, result.hint
        assert result.points < result.max_points


RIGHT = [
    ("10.1", by_slices),
    ("10.1", lambda x, n: split_heads(x, n)[0]),
    ("10.2", concatenated),
    ("10.2", merge_heads),
    ("10.3", layer()),
    ("10.4", cost(true_parameters, true_operations)),
    ("10.4", lambda d, h, n: (4 * d * (d + 1), np.float64(4 * n * d * (2 * d + n)))),
    ("10.5", terms(lambda o, h, n, d: o[h * d : (h + 1) * d])),
    ("10.6", lambda: (11 / 35, torch.tensor(0.2), 4 / 7)),
    ("10.7", lambda: (torch.linspace(-1, 1, 60).reshape(3, 4, 5), 1, masks(3, 4))),
    ("10.7", lambda: (3 * torch.eye(6)[:4].expand(3, 4, 6), np.int64(3), masks(3, 4))),
]


@pytest.mark.parametrize(("identifier", "answer"), RIGHT)
def test_another_right_way_earns_every_point(identifier, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.points == result.max_points, result.hint


def test_a_module_that_hides_the_work_is_no_answer_to_the_layer():
    assert verdict("10.3", by_module).misconception == "package"


def test_the_reference_of_the_layer_equals_torch():
    torch.manual_seed(0)
    oracle = nn.MultiheadAttention(12, 3, bias=False, batch_first=True)
    x = torch.randn(2, 5, 12)
    with torch.no_grad():
        expected, maps = oracle(x, x, x, average_attn_weights=False)
        made, weights = find_question("10.3").reference(
            x, oracle.in_proj_weight.T, oracle.out_proj.weight.T, 3
        )
    torch.testing.assert_close(made, expected, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(weights, maps, rtol=1e-6, atol=1e-6)


def test_the_predictions_are_counted_over_every_deal():
    """Eight cards, four colours: all places of a partner, all pairs of letters."""
    repeated, both = [], []
    for asker, partner in itertools.permutations(range(8), 2):
        if asker == 0:
            continue
        near = partner == asker - 1
        repeated += [1.0] if near else [1 / 5]
        both.append((1 + near) / 2)
    assert np.mean(repeated) == pytest.approx(PREDICTED[0])
    assert np.mean(both) == pytest.approx(PREDICTED[2])


def test_the_hints_of_the_predictions_never_name_a_right_number():
    for mistake in find_question("10.6").mistakes:
        words = set(mistake.hint.replace(",", " ").replace(":", " ").split())
        assert not {"7", "seven", "1/7", "five", "1/5", "0.31", "0.57"} & words
