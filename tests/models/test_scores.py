"""One operator, five scores: each does what its formula says, and refuses clearly."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from course_utils.display.widgets.soft_to_hard import soft_to_hard
from course_utils.models.attention import attention
from course_utils.models.rnn import additive_scores
from course_utils.models.scores import (
    AdditiveScore,
    GeneralScore,
    LocationScore,
    attend,
    dot_scores,
    scaled_dot_scores,
)

BATCH, QUERY, KEY, D_K, D_V = 2, 3, 5, 4, 6
Score = Callable[[Tensor, Tensor], Tensor]


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


QUERIES, KEYS = draw(BATCH, QUERY, D_K), draw(BATCH, KEY, D_K, seed=1)
VALUES = draw(BATCH, KEY, D_V, seed=2)


def by_loop(score: Callable[[Tensor, Tensor, int], float]) -> Tensor:
    """The context by the formula, one query and one key at a time."""
    context = torch.zeros(BATCH, QUERY, D_V)
    for b in range(BATCH):
        for i in range(QUERY):
            powers = [math.exp(score(QUERIES[b, i], KEYS[b, j], j)) for j in range(KEY)]
            for j in range(KEY):
                context[b, i] += powers[j] / sum(powers) * VALUES[b, j]
    return context


def test_attend_with_the_scaled_dot_score_is_attention() -> None:
    for ours, theirs in zip(
        attend(QUERIES, KEYS, VALUES, scaled_dot_scores),
        attention(QUERIES, KEYS, VALUES),
    ):
        torch.testing.assert_close(ours, theirs)


def test_every_score_is_its_formula() -> None:
    general, location = GeneralScore(D_K, D_K), LocationScore(D_K, KEY)
    additive = AdditiveScore(D_K, D_K, 7)
    for score in (general, location, additive):
        score.requires_grad_(False)
    w, places, bias = general.w.weight, location.places.weight, location.places.bias

    def by_network(q: Tensor, k: Tensor, j: int) -> float:
        hidden = torch.tanh(additive.query(q) + additive.key(k))
        return float(additive.v @ hidden)

    formulas: list[tuple[Score, Callable[[Tensor, Tensor, int], float]]] = [
        (dot_scores, lambda q, k, j: float(q @ k)),
        (scaled_dot_scores, lambda q, k, j: float(q @ k) / 2),
        (general, lambda q, k, j: float(q @ w.T @ k)),
        (location, lambda q, k, j: float(places[j] @ q + bias[j])),
        (additive, by_network),
    ]
    for each, formula in formulas:
        context, weights = attend(QUERIES, KEYS, VALUES, each)
        torch.testing.assert_close(context, by_loop(formula))
        torch.testing.assert_close(weights.sum(-1), torch.ones(BATCH, QUERY))


def test_query_and_key_may_differ_in_width_where_something_is_learned() -> None:
    wide = draw(BATCH, KEY, 9)
    for score in (GeneralScore(D_K, 9), AdditiveScore(D_K, 9, 7)):
        assert score(QUERIES, wide).shape == (BATCH, QUERY, KEY)


def test_the_additive_score_is_the_one_of_the_translation_model() -> None:
    score = AdditiveScore(D_K, D_K, 7)
    projected = additive_scores(score.query(QUERIES), score.key(KEYS), score.v)
    torch.testing.assert_close(score(QUERIES, KEYS), projected)


def test_the_location_score_never_reads_a_key_and_leaves_out_empty_places() -> None:
    score = LocationScore(D_K, 8)
    torch.testing.assert_close(score(QUERIES, KEYS), score(QUERIES, 3 - KEYS))
    assert score(QUERIES, KEYS).shape == (BATCH, QUERY, KEY)
    torch.testing.assert_close(score(QUERIES, KEYS), score.places(QUERIES)[..., :KEY])


def test_a_mask_blocks_under_any_score_and_a_blocked_query_gets_zeros() -> None:
    mask = torch.ones(QUERY, KEY, dtype=torch.bool)
    mask[0], mask[1, 2:] = False, False
    context, weights = attend(QUERIES, KEYS, VALUES, GeneralScore(D_K, D_K), mask)
    assert weights[:, 1, 2:].abs().max() == 0
    assert context[:, 0].abs().max() == 0


def test_every_learned_score_learns() -> None:
    for score in (LocationScore(4, 5), GeneralScore(4, 4), AdditiveScore(4, 4, 7)):
        attend(QUERIES, KEYS, VALUES, score)[0].square().sum().backward()
        assert all(p.grad is not None and p.grad.any() for p in score.parameters())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dot_scores(QUERIES, KEYS[..., :2]), "differ in their last axis"),
        (lambda: scaled_dot_scores(QUERIES[0, 0], KEYS), "expected at least two axes"),
        (
            lambda: attend(QUERIES, KEYS, VALUES[:, :4], dot_scores),
            r"key axis \(5 against 4\)",
        ),
        (
            lambda: attend(QUERIES, KEYS, VALUES, lambda q, k: (q @ k.mT).mT),
            r"score returned shape \(2, 5, 3\).*expected \(…, query, key\) = \(…, 3, 5",
        ),
        (
            lambda: attend(QUERIES, KEYS, VALUES, lambda q, k: 1.0),
            "score returned a float",
        ),
        (lambda: attend(QUERIES, KEYS, VALUES[0, 0], dot_scores), "values has shape"),
        (
            lambda: attend(QUERIES, KEYS, draw(3, KEY, D_V), dot_scores),
            "every sequence of a batch has its own values",
        ),
        (
            lambda: attend(QUERIES, KEYS, VALUES, dot_scores, torch.ones(3, 5)),
            "expected torch.bool",
        ),
        (
            lambda: LocationScore(4, 3)(QUERIES, KEYS),
            "knows 3 places and no other; build it with a larger n_places",
        ),
        (
            lambda: LocationScore(7, 5)(QUERIES, KEYS),
            r"queries has shape \(2, 3, 4\), expected \(batch, token, 7\)",
        ),
        (lambda: LocationScore(4, 0), "n_places is 0"),
        (lambda: GeneralScore(0, 4), "d_query is 0"),
        (lambda: GeneralScore(7, 4)(QUERIES, KEYS), "queries has shape"),
        (lambda: GeneralScore(4, 7)(QUERIES, KEYS), "keys has shape"),
        (lambda: AdditiveScore(4, 4, 0), "d_score is 0"),
        (lambda: AdditiveScore(7, 4, 5)(QUERIES, KEYS), "queries has shape"),
        (lambda: AdditiveScore(4, 7, 5)(QUERIES, KEYS), "keys has shape"),
        (lambda: soft_to_hard(scores=[1.0]), "1 scores and 5 values"),
        (lambda: soft_to_hard(per_draw=0), "per_draw is 0"),
        (lambda: soft_to_hard(per_draw=2.5), "per_draw is 2.5"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_refused_with_what_to_do(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_the_scores_are_modules_that_can_be_saved() -> None:
    first, second = AdditiveScore(4, 4, 7), AdditiveScore(4, 4, 7)
    second.load_state_dict(first.state_dict())
    torch.testing.assert_close(second(QUERIES, KEYS), first(QUERIES, KEYS))
    assert isinstance(first, nn.Module)
