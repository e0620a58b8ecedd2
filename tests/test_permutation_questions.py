"""The questions of chapter 07, answered rightly and wrongly by someone else."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from course_utils.checks import PUBLIC_SEED, verdict
from course_utils.questions import find_question
from course_utils.questions.permutation_equivariance import SORTED
from course_utils.symmetry import equivariance_gap, invariance_gap, permutation_matrix

SEEDS = (PUBLIC_SEED, 0, 1, "a secret of the instructor")


def sent(to):
    """Carry every token to its place, one by one."""
    matrix, order = torch.zeros(len(to), len(to)), [0] * len(to)
    for token, place in enumerate(to.tolist()):
        matrix[place, token] = 1
        order[place] = token
    return matrix, torch.tensor(order)


def moved(weights, rows, columns):
    """Reorder a table entry by entry."""
    return torch.stack(
        [torch.stack([weights[..., i, j] for j in columns], -1) for i in rows], -2
    )


def back(order):
    return [order.tolist().index(i) for i in range(len(order))]


def apply(mix, x):
    return torch.einsum("ij,jd->id", mix, x).tanh()


def largest(a, b):
    return float((a - b).abs().max())


def averaged(mix):
    every = [permutation_matrix(p) for p in itertools.permutations(range(len(mix)))]
    return sum(P.T @ mix @ P for P in every) / len(every)


def by_mask(mix, diagonal, beside):
    return torch.where(torch.eye(len(mix)).bool(), diagonal, beside)


WRONG = [
    ("07.1", "fetches", lambda to: (permutation_matrix(to), to.long())),
    ("07.1", "fetches", lambda to: (sent(to)[0].T, torch.argsort(sent(to)[1]))),
    ("07.1", "matrix_fetches", lambda to: (sent(to)[0].T, sent(to)[1])),
    ("07.1", "order_is_to", lambda to: (sent(to)[0], to)),
    ("07.1", "both_sides", lambda to: (torch.eye(len(to)), sent(to)[1])),
    (
        "07.2",
        "rows_only",
        lambda w, o: permutation_matrix(o) @ w,
    ),
    ("07.2", "columns_only", lambda w, o: w @ permutation_matrix(o).T),
    (
        "07.2",
        "inverse",
        lambda w, o: permutation_matrix(o).T @ w @ permutation_matrix(o),
    ),
    (
        "07.2",
        "p_on_both_sides",
        lambda w, o: permutation_matrix(o) @ w @ permutation_matrix(o),
    ),
    ("07.2", "unchanged", lambda w, o: w * 1),
    ("07.3", "invariance", lambda m, x, o: largest(apply(m, x[o]), apply(m, x))),
    (
        "07.3",
        "output_sent_the_other_way",
        lambda m, x, o: largest(apply(m, x[o]), apply(m, x)[back(o)]),
    ),
    (
        "07.3",
        "layer_moved_too",
        lambda m, x, o: largest(apply(moved(m, o, o), x[o]), apply(m, x)[o]),
    ),
    ("07.3", "layer_moved_too", lambda m, x, o: 0.0),
    (
        "07.3",
        "no_absolute_value",
        lambda m, x, o: (apply(m, x[o]) - apply(m, x)[o]).max(),
    ),
    ("07.3", "mean", lambda m, x, o: (apply(m, x[o]) - apply(m, x)[o]).abs().mean()),
    ("07.4", "scores_follow", lambda: SORTED | {"scores": "equivariant"}),
    ("07.4", "ranked_has_rows", lambda: SORTED | {"ranked": "neither"}),
    (
        "07.4",
        "first_is_pooled",
        lambda: SORTED | {"first_token": "invariant", "products": "neither"},
    ),
    ("07.4", "not_all_or_other_words", lambda: {"centre": "equivariant"}),
    ("07.4", "not_all_or_other_words", lambda: SORTED | {"centre": "Equivariant"}),
    ("07.5", "no_order", lambda: (torch.randn(5, 2), torch.tensor([0, 1, 2, 3, 3]))),
    ("07.5", "no_order", lambda: (torch.randn(5, 2), torch.tensor([1, 0]))),
    ("07.5", "few_tokens", lambda: (torch.randn(3, 2), torch.tensor([1, 0, 2]))),
    ("07.5", "identity", lambda: (torch.randn(6, 2), torch.arange(6))),
    ("07.5", "rotation", lambda: (torch.randn(6, 2), torch.arange(6).flip(0))),
    ("07.5", "rotation", lambda: (torch.randn(4, 1), torch.tensor([2, 1, 0, 3]))),
    ("07.5", "twins", lambda: (torch.full((7, 2), 3.0), torch.randperm(7))),
    ("07.6", "mask_sees_orders", lambda: (1, 120, 120)),
    ("07.6", "mask_counts_words", lambda: [1.0, torch.tensor(5), 120]),
    ("07.6", "four_words", lambda: (1, 8, 24)),
    ("07.6", "only_its_own_place", lambda: (1, 16, 5)),
    ("07.6", "place_of_the_output", lambda: (5, 5, 5)),
    ("07.7", "one_number", lambda mix: torch.full_like(mix, float(mix.mean()))),
    ("07.7", "transposed_average", lambda mix: 0.5 * mix + 0.5 * mix.T),
    (
        "07.7",
        "mean_of_all_beside",
        lambda mix: by_mask(mix, mix.trace() / len(mix), mix.mean()),
    ),
    (
        "07.7",
        "only_the_diagonal",
        lambda mix: torch.diag(mix.diagonal().mean().expand(len(mix))),
    ),
]


@pytest.mark.parametrize(("identifier", "name", "answer"), WRONG)
def test_a_mistake_in_other_code_gets_its_hint(identifier, name, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.misconception == name, result.hint
        assert result.points < result.max_points


RIGHT = [
    ("07.1", sent),
    ("07.1", lambda to: (permutation_matrix(to).T, torch.argsort(to))),
    ("07.2", lambda w, o: moved(w, o.tolist(), o.tolist())),
    ("07.2", lambda w, o: permutation_matrix(o) @ w @ permutation_matrix(o).T),
    ("07.3", lambda m, x, o: largest(apply(m, x[o]), apply(m, x)[o])),
    (
        "07.3",
        lambda m, x, o: equivariance_gap(lambda x: apply(m, x), x, o),
    ),
    ("07.5", lambda: (torch.eye(4), torch.tensor([1, 0, 2, 3]))),
    ("07.5", lambda: (torch.randn(9, 3), torch.tensor([4, 0, 8, 2, 6, 1, 3, 7, 5]))),
    ("07.6", lambda: (np.float64(1), 16.0, torch.tensor(120))),
    (
        "07.7",
        lambda mix: by_mask(
            mix,
            mix.trace() / len(mix),
            mix[~torch.eye(len(mix)).bool()].mean(),
        ),
    ),
]


@pytest.mark.parametrize(("identifier", "answer"), RIGHT)
def test_another_right_way_earns_every_point(identifier, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.points == result.max_points, result.hint


def test_the_symmetric_mixture_is_the_average_over_all_orders():
    reference = find_question("07.7").reference
    for n in (2, 3, 5):
        mix = torch.randn(n, n, generator=torch.Generator().manual_seed(n))
        torch.testing.assert_close(reference(mix), averaged(mix))


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


@pytest.mark.parametrize("name", SORTED)
def test_the_layers_are_what_the_answer_says(name):
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    orders = list(itertools.permutations(range(4)))
    invariant = max(invariance_gap(LAYERS[name], x, o) for o in orders) < 1e-5
    rows = LAYERS[name](x).shape[:1] == x.shape[:1] and LAYERS[name](x).dim() == 2
    equivariant = rows and all(
        equivariance_gap(LAYERS[name], x, order) < 1e-5 for order in orders
    )
    kind = "equivariant" if equivariant else "invariant" if invariant else "neither"
    assert SORTED[name] == kind


def test_the_hints_of_the_counts_never_name_a_right_number():
    for mistake in find_question("07.6").mistakes:
        words = set(mistake.hint.replace(",", " ").split())
        assert not {"16", "120", "sixteen", "2⁴"} & words
