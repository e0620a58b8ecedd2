"""The questions of chapter 08, answered rightly and wrongly by someone else."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from course_utils.attention import MultiHeadAttention
from course_utils.checks import PUBLIC_SEED, verdict
from course_utils.positions import RelativeBias, alibi, rotary, sinusoidal
from course_utils.questions import find_question
from course_utils.questions.distance_and_order import HIDDEN
from course_utils.symmetry import invariance_gap
from course_utils.widgets.position_explorer import position_explorer

SEEDS = (PUBLIC_SEED, 0, 1, "a secret of the instructor")


def by_entry(entry):
    """Fill the table of waves number by number: entry(t, column, d_model)."""

    def answer(positions, d_model):
        rows = [
            [entry(int(t), column, d_model) for column in range(d_model)]
            for t in positions
        ]
        return torch.tensor(rows)

    return answer


def wave(t, column, d, exponent=lambda column, d: (column - column % 2) / d):
    angle = t / 10000 ** exponent(column, d)
    return math.cos(angle) if column % 2 else math.sin(angle)


def halves(t, column, d):
    pair = column % (d // 2)
    angle = t / 10000 ** (2 * pair / d)
    return math.sin(angle) if column < d // 2 else math.cos(angle)


def solved(k, d_model):
    """Find the matrix of a step by least squares, from the waves themselves."""
    start = 60
    places = torch.arange(start, start + 4 * d_model)
    table = sinusoidal(start + 4 * d_model + 60, d_model).double()
    # Slow waves hardly move over few places: solve each pair by itself.
    matrix = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(0, d_model, 2):
        now, then = table[places, i : i + 2], table[places + k, i : i + 2]
        sin, cos = now[:, 0], now[:, 1]
        turned_cos = (then * now).sum(-1).mean()
        turned_sin = (then[:, 0] * cos - then[:, 1] * sin).mean()
        block = [[turned_cos, -turned_sin], [turned_sin, turned_cos]]
        matrix[i : i + 2, i : i + 2] = torch.tensor(block)
    return matrix.float()


def complex_turn(x, angles):
    pairs = torch.complex(x[..., ::2].double(), x[..., 1::2].double())
    turned = pairs * torch.exp(1j * angles)
    return torch.stack([turned.real, turned.imag], -1).flatten(-2).float()


def angles_of(x, positions, base=10000.0):
    d = x.shape[-1]
    return positions.double()[:, None] * base ** (-torch.arange(0, d, 2).double() / d)


def llama(x, positions):
    """Pair feature i with i + d/2, as much published code does."""
    half = x.shape[-1] // 2
    angles = angles_of(x, positions).float()
    cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
    swapped = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * cos + swapped * sin


def bias_by_loop(entry):
    def answer(table, n_queries, n_keys):
        m = table.shape[1] // 2
        bias = torch.zeros(len(table), n_queries, n_keys)
        for i in range(n_queries):
            for j in range(n_keys):
                bias[:, i, j] = table[:, entry(i, j, m, n_keys - n_queries)]
        return bias

    return answer


def cut(distance, m):
    return max(-m, min(m, distance)) + m


def in_32_bits(speed):
    """As most would write it; large angles are then off by a little."""

    def answer(positions, d_model):
        angles = positions[:, None] * speed(torch.arange(0, d_model, 2) / d_model)
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)

    return answer


WRONG = [
    ("08.1", "faster_and_faster", in_32_bits(lambda x: 10000.0**x)),
    ("08.1", "whole_turns", in_32_bits(lambda x: 2 * torch.pi * 10000.0 ** (-x))),
    ("08.1", "blocks", by_entry(halves)),
    (
        "08.1",
        "exponent_off_by_two",
        by_entry(lambda t, c, d: wave(t, c, d, lambda c, d: c // 2 / d)),
    ),
    (
        "08.1",
        "own_speed_per_column",
        by_entry(lambda t, c, d: wave(t, c, d, lambda c, d: c / d)),
    ),
    (
        "08.1",
        "exponent_doubled",
        by_entry(lambda t, c, d: wave(t, c, d, lambda c, d: 2 * (c - c % 2) / d)),
    ),
    (
        "08.1",
        "whole_turns",
        by_entry(lambda t, c, d: wave(2 * math.pi * t, c, d)),
    ),
    ("08.1", "cosine_first", by_entry(lambda t, c, d: wave(t, c ^ 1, d))),
    ("08.1", "counted_from_one", by_entry(lambda t, c, d: wave(t + 1, c, d))),
    ("08.1", "row_numbers", lambda positions, d: sinusoidal(len(positions), d)),
    ("08.2", "turned_back", lambda k, d: solved(k, d).T),
    ("08.2", "one_step", lambda k, d: solved(1, d)),
    ("08.2", "never_back", lambda k, d: solved(abs(k), d)),
    ("08.2", "matrix_times_k", lambda k, d: solved(1, d) * k),
    ("08.2", "no_minus", lambda k, d: solved(k, d).where(_below(d), -solved(k, d))),
    ("08.3", "halves", llama),
    (
        "08.3",
        "put_back_as_halves",
        lambda x, positions: (
            rotary(x, positions).unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)
        ),
    ),
    (
        "08.3",
        "clockwise",
        lambda x, positions: complex_turn(x, -angles_of(x, positions)),
    ),
    (
        "08.3",
        "one_speed",
        lambda x, positions: complex_turn(x, angles_of(x, positions, base=1.0)),
    ),
    (
        "08.3",
        "exponent_off_by_two",
        lambda x, positions: complex_turn(x, angles_of(x, positions, base=100.0)),
    ),
    (
        "08.3",
        "added",
        lambda x, positions: x + sinusoidal(60, x.shape[-1])[positions],
    ),
    ("08.3", "row_numbers", lambda x, positions: rotary(x, torch.arange(x.shape[-2]))),
    ("08.4", "first_ignored", lambda table, n, first: first_rows(table, n)),
    (
        "08.4",
        "wraps_around",
        lambda table, n, first: (
            torch.stack([table[(first + i) % len(table)] for i in range(n)]),
            0,
        ),
    ),
    (
        "08.4",
        "last_row_repeated",
        lambda table, n, first: (
            torch.stack([table[min(first + i, len(table) - 1)] for i in range(n)]),
            torch.tensor(0),
        ),
    ),
    (
        "08.4",
        "more_missing_than_asked",
        lambda table, n, first: (
            table[first:][:n],
            first + n - len(table) if first + n > len(table) else 0,
        ),
    ),
    ("08.5", "sign", bias_by_loop(lambda i, j, m, more: cut(j - i - more, m))),
    (
        "08.5",
        "first_query_at_first_key",
        bias_by_loop(lambda i, j, m, more: cut(i - j, m)),
    ),
    ("08.5", "absolute", bias_by_loop(lambda i, j, m, more: cut(abs(i + more - j), m))),
    (
        "08.5",
        "ahead_is_zero",
        bias_by_loop(lambda i, j, m, more: cut(max(i + more - j, 0), m)),
    ),
    (
        "08.5",
        "zero_at_the_left",
        bias_by_loop(lambda i, j, m, more: cut(i + more - j, m) - m),
    ),
    ("08.6", "symmetric_alibi", lambda: HIDDEN | {"symmetric_alibi": "nothing"}),
    ("08.6", "bias_at_the_start", lambda: HIDDEN | {"bias_at_the_start": "nothing"}),
    (
        "08.6",
        "from_the_middle",
        lambda: HIDDEN | {"from_the_middle": "nothing", "causal": "every reordering"},
    ),
    ("08.6", "not_all_or_other_words", lambda: {"none": "every reordering"}),
    ("08.6", "not_all_or_other_words", lambda: HIDDEN | {"rope": "Nothing"}),
    ("08.7", "every_feature_one", lambda: (11.31, 328, 7.389)),
    ("08.7", "zero_forgotten", lambda: [8, torch.tensor(320), 7.39]),
    ("08.7", "score_not_weight", lambda: (8.0, 328, 2)),
    ("08.7", "by_distance", lambda: (8.0, 328, 5.0)),
    ("08.7", "turned_round", lambda: (8.0, 328, 0.1353)),
    ("08.7", "one_side", lambda: (8.0, 8 * 21, math.e**2)),
]


def _below(d):
    """Everything but the entries just above the diagonal of each block."""
    keep = torch.ones(d, d, dtype=torch.bool)
    keep[range(0, d, 2), range(1, d, 2)] = False
    return keep


def first_rows(table, n):
    return table[:n], max(0, n - table.shape[0])


@pytest.mark.parametrize(("identifier", "name", "answer"), WRONG)
def test_a_mistake_in_other_code_gets_its_hint(identifier, name, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.misconception == name, result.hint
        assert result.points < result.max_points


RIGHT = [
    ("08.1", by_entry(wave)),
    ("08.1", lambda positions, d: sinusoidal(301, d)[positions]),
    ("08.2", solved),
    ("08.3", rotary),
    ("08.3", lambda x, positions: complex_turn(x, angles_of(x, positions))),
    (
        "08.4",
        lambda table, n, first: (
            table[[p for p in range(first, first + n) if p < len(table)]],
            sum(p >= len(table) for p in range(first, first + n)),
        ),
    ),
    ("08.5", bias_by_loop(lambda i, j, m, more: cut(i + more - j, m))),
    ("08.7", lambda: (np.float64(8), 328.0, torch.tensor(7.389))),
]


@pytest.mark.parametrize(("identifier", "answer"), RIGHT)
def test_another_right_way_earns_every_point(identifier, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.points == result.max_points, result.hint


def test_the_reference_of_the_bias_is_the_chapters_class():
    module = RelativeBias(3, max_distance=2)
    torch.nn.init.normal_(module.table)
    ours = find_question("08.5").reference(module.table.detach(), 4, 6)
    torch.testing.assert_close(ours, module(4, 6).detach())


# ------------------------------------------------- what is hidden is what layers hide


def told(name, n, d, heads):
    """What an encoding adds to n tokens, and what it tells the attention."""
    generator = torch.Generator().manual_seed(5)
    from_middle = (torch.arange(n) - (n - 1) / 2).abs()
    angles = from_middle[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)
    middle = torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)
    return {
        "none": (0.0, {}),
        "same_vector": (torch.randn(d, generator=generator), {}),
        "sinusoidal": (sinusoidal(n, d), {}),
        "from_the_middle": (middle, {}),
        "bias_at_the_start": (0.0, {"bias": RelativeBias(heads, 4)(n)}),
        "alibi": (0.0, {"bias": alibi(heads, n)}),
        "symmetric_alibi": (0.0, {"bias": alibi(heads, n, symmetric=True)}),
        "rope": (0.0, {"rotate": lambda x: rotary(x, torch.arange(n))}),
        "causal": (0.0, {"causal": True}),
    }[name]


@pytest.mark.parametrize("name", HIDDEN)
def test_the_encodings_hide_what_the_answer_says(name):
    torch.manual_seed(1)
    n, d, heads = 6, 16, 2
    attend, x = MultiHeadAttention(d, heads), torch.randn(3, n, d)
    added, tell = told(name, n, d, heads)

    def pooled(x):
        return attend(x + added, **tell)[0].mean(dim=1)

    with torch.no_grad():
        mirror = invariance_gap(pooled, x, list(range(n))[::-1]) < 1e-5
        shuffles = [[2, 0, 4, 1, 5, 3], [1, 2, 3, 4, 5, 0], [1, 0, 2, 3, 4, 5]]
        gaps = [invariance_gap(pooled, x, order) for order in shuffles]
    if HIDDEN[name] == "every reordering":
        assert mirror
        assert max(gaps) < 1e-5
    else:
        assert mirror == (HIDDEN[name] == "the mirror image")
        assert min(gaps) > 1e-4


def test_the_hints_of_the_numbers_never_name_a_right_one():
    for mistake in find_question("08.7").mistakes:
        words = set(mistake.hint.replace(",", " ").split())
        assert not {"8", "328", "41", "e²", "7.39", "eight"} & words


# ----------------------------------------------------------------------- the explorer


def test_the_explorer_refuses_a_matrix_too_small_to_look_at():
    assert "dot product" in position_explorer().html
    for sizes in ({"n_tokens": 4}, {"d_model": 2}):
        with pytest.raises(ValueError, match="at least 8 tokens and 4 dimensions"):
            position_explorer(**sizes)
    with pytest.raises(ValueError, match="expected an even number"):
        position_explorer(d_model=7)
