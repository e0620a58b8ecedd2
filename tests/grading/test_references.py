"""What the solutions state is true: of PyTorch, of the package, of layers that run."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_utils.evaluation.costs import count_flops
from course_utils.evaluation.leaks import leak_test
from course_utils.evaluation.metrics import alignment_accuracy, alignment_error_rate
from course_utils.evaluation.symmetry import equivariance_gap, invariance_gap
from course_utils.grading.answer_runner import to_tensors
from course_utils.grading.questions import find_file, find_question
from course_utils.models.attention import MultiHeadAttention, attention
from course_utils.models.blocks import EncoderBlock, FeedForward, layer_norm
from course_utils.models.positions import RelativeBias, alibi, rotary, sinusoidal
from course_utils.models.recurrences import CausalConvolution
from course_utils.models.scores import GeneralScore, LocationScore, dot_scores
from course_utils.models.transformer import GPT


def solution(identifier):
    return find_question(identifier).reference


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


# ----------------------------------------------- 03 to 05: alignments, scores, wishes


def test_the_rates_of_03_6_are_those_of_the_metrics():
    sure = {(0, 0), (3, 2), (2, 3), (4, 4)}
    possible = sure | {(2, 1), (1, 2)}
    predicted = {(0, 0), (2, 1), (3, 2), (1, 3), (4, 4)}
    accuracy, rate = solution("03.6")()
    assert accuracy == alignment_accuracy([possible], [predicted])
    assert rate == pytest.approx(alignment_error_rate([sure], [possible], [predicted]))


def test_other_weights_than_those_of_03_5_can_give_the_same_context():
    """When all annotations are alike, every row of weights leads to the same word."""
    weights = torch.tensor([0.02, 0.70, 0.25, 0.02, 0.01])
    other = torch.tensor([0.9, 0.05, 0.03, 0.01, 0.01])
    assert solution("03.5")()["unique"] == "does not follow"
    torch.testing.assert_close(weights @ torch.ones(5, 3), other @ torch.ones(5, 3))


def test_the_scores_of_04_3_can_do_what_the_answer_says():
    """Two of the claims: a general score is odd, places have an end."""
    queries, keys = torch.randn(1, 2, 20), torch.randn(1, 500, 30)
    general = GeneralScore(20, 30)
    assert torch.allclose(general(-queries, keys), -general(queries, keys))
    assert general(queries, keys).shape == (1, 2, 500)
    with pytest.raises(ValueError, match="no other"):
        LocationScore(20, 8)(queries, keys)
    with pytest.raises(ValueError, match="d_k"):
        dot_scores(queries, keys)


def test_the_estimate_of_04_4_is_right_on_average():
    scores, rewards = torch.tensor([0.3, -0.2, 0.9]), torch.tensor([4.0, 1.0, 2.0])
    alpha = torch.softmax(scores, 0)
    exact = alpha * (rewards - alpha @ rewards)
    old = torch.tensor([1.0, 0.2, -0.5])  # whoever drew
    for baseline in (0.0, 2.5):
        each = [
            solution("04.4")(scores, old, torch.tensor([j]), rewards[[j]], baseline)
            for j in range(3)
        ]
        mean = sum(a * g for a, g in zip(torch.softmax(old, 0), each))
        torch.testing.assert_close(mean, exact)


def test_the_weight_of_05_3_is_that_of_the_layer():
    """Tokens at right angles, of equal length: the formula against the layer."""
    for length, n_others in itertools.product((0.0, 0.7, 2.0), (1, 4)):
        x = length * torch.eye(n_others + 1)
        weight = torch.softmax(x @ x.T, -1)[0, 0].item()
        assert weight == pytest.approx(solution("05.3")(length, n_others), 1e-5)


def test_as_many_wishes_as_05_5_says_some_symmetric_table_fulfils():
    """Three tokens, every wish; the tables are tried, not argued about."""
    draws = torch.randn(5000, 3, 3, generator=generator())
    tables = draws + draws.mT
    for wants in itertools.product(range(3), repeat=3):
        most = (tables.argmax(-1) == torch.tensor(wants)).sum(-1).max()
        assert int(most) == solution("05.5")(torch.tensor(wants))


# -------------------------------------------------------- 07 and 08: order and place


def test_the_mixture_of_07_7_is_the_average_over_all_orders():
    for n in (2, 3, 5):
        mix = torch.randn(n, n, generator=generator(n))
        orders = [list(order) for order in itertools.permutations(range(n))]
        average = sum(mix[order][:, order] for order in orders) / len(orders)
        torch.testing.assert_close(solution("07.7")(mix), average)


LAYERS = {
    "centre": lambda x: x - x.mean(dim=0),
    "first_token": lambda x: x[0],
    "largest": lambda x: x.amax(dim=0),
    "ranked": lambda x: x.sort(dim=0).values,
    "running_sum": lambda x: x.cumsum(dim=0),
    "over_queries": lambda x: torch.softmax(x @ x.T, dim=0) @ x,
    "scores": lambda x: x @ x.T,
    "products": lambda x: x.T @ x,
}


def test_the_layers_of_07_4_are_what_the_answer_says():
    kinds, x = {}, torch.randn(4, 3, generator=generator())
    orders = list(itertools.permutations(range(4)))
    for name, layer in LAYERS.items():
        invariant = max(invariance_gap(layer, x, order) for order in orders) < 1e-5
        rows = layer(x).shape[:1] == x.shape[:1] and layer(x).dim() == 2
        equivariant = rows and all(
            equivariance_gap(layer, x, order) < 1e-5 for order in orders
        )
        kind = "invariant" if invariant else "neither"
        kinds[name] = "equivariant" if equivariant else kind
    assert solution("07.4")() == kinds


def test_the_bias_of_08_5_is_the_chapters_class():
    module = RelativeBias(3, max_distance=2)
    nn.init.normal_(module.table)
    ours = solution("08.5")(module.table.detach(), torch.arange(2, 6), torch.arange(6))
    torch.testing.assert_close(ours, module(4, 6).detach())


def encodings(n, d, heads):
    """What each encoding adds to n tokens, and what it tells the attention."""
    distance = (torch.arange(n)[:, None] - torch.arange(n)).abs()
    even = torch.randn(heads, n, generator=generator(6))[:, distance]
    return {
        "none": (0.0, {}),
        "same_vector": (torch.randn(d, generator=generator(5)), {}),
        "sinusoidal": (sinusoidal(n, d), {}),
        "even_bias": (0.0, {"bias": even}),
        "bias_at_the_start": (0.0, {"bias": RelativeBias(heads, 4)(n)}),
        "alibi": (0.0, {"bias": alibi(heads, n)}),
        "symmetric_alibi": (0.0, {"bias": alibi(heads, n, symmetric=True)}),
        "rope": (0.0, {"rotate": lambda x: rotary(x, torch.arange(n))}),
        "causal": (0.0, {"causal": True}),
    }


@pytest.mark.parametrize("name", encodings(4, 4, 2))
def test_the_encodings_hide_what_08_6_says(name):
    torch.manual_seed(1)
    n, d, heads = 6, 16, 2
    attend, x = MultiHeadAttention(d, heads), torch.randn(3, n, d)
    added, options = encodings(n, d, heads)[name]

    def pooled(x):
        return attend(x + added, **options)[0].mean(dim=1)

    with torch.no_grad():
        mirror = invariance_gap(pooled, x, list(range(n))[::-1]) < 1e-5
        shuffles = [[2, 0, 4, 1, 5, 3], [1, 2, 3, 4, 5, 0], [1, 0, 2, 3, 4, 5]]
        gaps = [invariance_gap(pooled, x, order) for order in shuffles]
    hidden = solution("08.6")()[name]
    if hidden == "every reordering":
        assert mirror
        assert max(gaps) < 1e-5
    else:
        assert mirror == (hidden == "the mirror image")
        assert min(gaps) > 1e-4


# ---------------------------------------------------------------------- 09: masking


def test_the_code_of_09_5_does_under_the_leak_test_what_the_answer_says():
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
    allowed, kinds = {"module": mask[:5], "continued": mask[-2:]}, {}
    for name, function in code.items():
        report = leak_test(function, torch.randn(2, n, 8), allowed.get(name))
        kind = "too strict" if report.unseen else "right"
        kinds[name] = "leaks" if report.leaks else kind
    assert solution("09.5")() == kinds


def test_the_colleagues_function_of_09_6_leaks_as_its_numpy_twin_says():
    def theirs(x):
        x = x / x.norm(dim=0, keepdim=True)
        scores = x @ x.T / math.sqrt(x.shape[1])
        allowed = torch.ones_like(scores, dtype=torch.bool).tril()
        weights = torch.softmax(scores.masked_fill(~allowed, -torch.inf), dim=1)
        return weights @ x

    x = torch.randn(5, 3, dtype=torch.float64)
    twin = find_file("09.6").colleague
    torch.testing.assert_close(torch.from_numpy(twin(x.numpy())), theirs(x))
    assert leak_test(theirs, x).leaks


def test_the_numbers_of_09_7_are_those_of_real_layers():
    table, numbers = torch.ones(40, 40, dtype=torch.bool), solution("09.7")()
    ahead = torch.linalg.matrix_power(table.tril(1)[:10, :10].double(), 4)
    assert int(ahead[3].nonzero().max()) == numbers[0]
    window = torch.linalg.matrix_power((table.tril() & table.triu(-3)).double(), 5)
    assert 30 - int(window[30].nonzero().min()) == numbers[1]
    assert sum(range(1, 31)) == numbers[2]


# ----------------------------------------------------- 10 to 12: heads, blocks, layers


def test_the_layer_of_10_3_equals_pytorchs():
    torch.manual_seed(0)
    oracle = nn.MultiheadAttention(12, 3, bias=False, batch_first=True)
    x = torch.randn(2, 5, 12)
    with torch.no_grad():
        expected, maps = oracle(x, x, x, average_attn_weights=False)
        output, weights = solution("10.3")(
            x, oracle.in_proj_weight.T, oracle.out_proj.weight.T, 3
        )
    torch.testing.assert_close(output, expected, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(weights, maps, rtol=1e-6, atol=1e-6)


def test_the_predictions_of_10_6_are_counted_over_every_deal():
    """Eight cards, four colours: all places of a partner, all pairs of letters."""
    repeated, both = [], []
    for asker, partner in itertools.permutations(range(8), 2):
        if asker == 0:
            continue
        near = partner == asker - 1
        repeated += [1.0] if near else [1 / 5]
        both.append((1 + near) / 2)
    assert np.mean(repeated) == pytest.approx(solution("10.6")()[0])
    assert np.mean(both) == pytest.approx(solution("10.6")()[2])


def test_the_layers_of_11_6_notice_what_the_answer_says():
    """Change one token in the middle, and see whose output moved."""
    torch.manual_seed(0)
    attend, think = MultiHeadAttention(8, 2), FeedForward(8, 16)
    block, ones, zeros = EncoderBlock(8, 2, 16), torch.ones(8), torch.zeros(8)

    def normed(x):
        return layer_norm(x, ones, zeros)

    layers = {
        "layer_norm": normed,
        "sentence_norm": lambda x: (
            (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)
        ),
        "feed_forward": think,
        "residual_feed_forward": lambda x: x + think(normed(x)),
        "self_attention": lambda x: attend(x)[0],
        "causal_attention": lambda x: attend(x, causal=True)[0],
        "encoder_block": lambda x: block(x)[0],
    }
    x = torch.randn(1, 5, 8)
    other = x.clone()
    other[0, 2] = torch.randn(8)
    file, noticed = find_file("11.6"), solution("11.6")()
    moved = {file.ITSELF: [2], file.LATER: [2, 3, 4], file.ALL: [0, 1, 2, 3, 4]}
    assert layers.keys() == noticed.keys()
    for name, layer in layers.items():
        change = (layer(x) - layer(other)).abs().amax(-1)[0] > 1e-6
        assert change.nonzero()[:, 0].tolist() == moved[noticed[name]], name


def test_the_sizes_of_11_7_are_those_of_independent_sub_layers():
    g = generator()
    start = torch.randn(100_000, generator=g)
    pre, bare = start, start
    for _ in range(8):
        pre = pre + torch.randn(start.shape, generator=g)
        bare = bare + bare.std() * torch.randn(start.shape, generator=g)
    sizes = [x.square().mean().sqrt().item() for x in (pre, bare)]
    assert solution("11.7")()[:2] == pytest.approx(sizes, rel=0.02)


def test_the_layer_of_12_7_equals_pytorchs():
    question, by_pytorch = find_question("12.7"), find_file("12.7").by_pytorch_itself
    for case in question.cases(0):
        args = to_tensors(case.args)
        torch.testing.assert_close(question.reference(*args), by_pytorch(*args))


# --------------------------------------------------------------------------- 15: costs


def test_the_operations_of_15_1_are_those_that_pytorch_counts():
    """As the matrix products that a window and shared keys leave."""
    n, d, window, share, state = 10, 6, 4, 3, 5
    x, square, narrow = torch.ones(n, d), torch.ones(d, d), torch.ones(d, d // share)

    def layer():
        queries = (x @ square).view(n, share, 1, d // share)
        seen = torch.arange(n)[:, None] % (n - window) + torch.arange(window)
        keys, values = ((x @ narrow)[seen][:, None] for _ in range(2))
        weights = torch.softmax(queries @ keys.mT, dim=-1)
        return (weights @ values).reshape(n, d) @ square

    gru = nn.GRU(d, state, batch_first=True)
    counted = count_flops(layer), count_flops(lambda: gru(x[None]))
    assert counted == solution("15.1")(n, d, window, share, state)


def test_convolutions_reach_as_far_as_15_2_says():
    for k in (1, 2, 3, 6, 7, 14, 15, 30, 31):
        _, _, plain, dilated = solution("15.2")(k)
        assert CausalConvolution(2, n_layers=dilated).reach > k
        assert dilated == 1 or CausalConvolution(2, n_layers=dilated - 1).reach <= k
        assert 2 * plain >= k > 2 * (plain - 1)


def test_the_gpt_of_15_7_costs_what_pytorch_counts():
    """With the chapter's GPT in place of the gate, and the blocks' second pass."""
    n, d, layers, pieces = 10, 6, 4, 17
    hidden = 8 * d / 3  # three matrices of this width are two of 4d
    model = GPT(pieces, n, d, 2, layers)
    tokens = torch.zeros(1, n, dtype=torch.long)
    parameters, forward, training = solution("15.7")(n, d, hidden, layers, pieces)
    matrices = [p for p in model.blocks.parameters() if p.dim() == 2]
    tables = [model.head.weight, model.head.weight]
    assert parameters == sum(m.numel() for m in [*tables, *matrices])
    assert forward == count_flops(lambda: model(tokens, need_weights=True))
    again = forward - 2 * n * pieces * d
    assert training == again + count_flops(
        lambda: model(tokens, need_weights=True)[0].sum().backward()
    )
