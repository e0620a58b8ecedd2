"""The questions of chapter 05, answered rightly and wrongly by someone else."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch

from course_utils.checks import PUBLIC_SEED, verdict
from course_utils.questions import find_question
from course_utils.questions.symmetric_wishes import can_follow
from course_utils.widgets.vector_plane import vector_plane

SEEDS = (PUBLIC_SEED, 0, 1, "a secret of the instructor")


def by_einsum(x):
    scores = torch.einsum("...id,...jd->...ij", x, x)
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    weights = powers / powers.sum(-1, keepdim=True)
    return torch.einsum("...ij,...jd->...id", weights, x), weights


def by_cosine(x):
    lengths = (x**2).sum(-1, keepdim=True).sqrt()
    scores = (x @ x.mT) / (lengths * lengths.mT)
    return by_weights(torch.softmax(scores, -1), x)


def by_weights(weights, x):
    return torch.matmul(weights, x), weights


def in_steps(wants):
    """Take away whoever nobody wants, again and again; what is left are circles."""
    left = dict(enumerate(wants.tolist()))
    while loose := set(left) - set(left.values()):
        left = {i: w for i, w in left.items() if i not in loose}
    return all(left[w] == i for i, w in left.items())


RIGHT = [
    ("05.1", by_einsum),
    ("05.2", by_cosine),
    (
        "05.3",
        lambda length, n: torch.softmax(torch.tensor([length**2, *[0.0] * n]), 0)[
            0
        ].item(),
    ),
    ("05.4", lambda: torch.tensor([[1.0, 1.0], [1.0, 1.1], [9.0, 0.0]])),
    ("05.5", in_steps),
]
WRONG = [
    ("05.1", "softmax_over_the_askers", lambda x: by_weights(by_einsum(x)[1].mT, x)),
    ("05.1", "sum_of_scores", lambda x: ((x @ x.mT) @ x, x @ x.mT)),
    (
        "05.1",
        "scaled",
        lambda x: by_weights(torch.softmax(x @ x.mT * x.shape[-1] ** -0.5, -1), x),
    ),
    ("05.1", "weights_turned", lambda x: (by_einsum(x)[1].mT @ x, by_einsum(x)[1])),
    (
        "05.1",
        "no_exponential",
        lambda x: by_weights(x @ x.mT / (x @ x.mT).sum(-1, keepdim=True), x),
    ),
    ("05.2", "dot_product", by_einsum),
    (
        "05.2",
        "one_length_for_all",
        lambda x: by_weights(torch.softmax(x @ x.mT / (x**2).sum(), -1), x),
    ),
    (
        "05.2",
        "values_too",
        lambda x: by_weights(by_cosine(x)[1], torch.nn.functional.normalize(x, dim=-1)),
    ),
    (
        "05.3",
        "length_not_squared",
        lambda length, n: math.exp(length) / (math.exp(length) + n),
    ),
    ("05.3", "weight_of_the_others", lambda length, n: n / (n + math.exp(length**2))),
    (
        "05.4",
        "both_say_third",
        lambda: (
            torch.eye(3)
            + torch.ones(3, 3)[:, :1] * 0
            + (torch.tensor([[0.0, 0, 0], [0, 0, 0], [5, 0, 0]]))
        ),
    ),
    (
        "05.4",
        "the_other_way_round",
        lambda: torch.tensor([[0.0, 1.0], [-5.0, 5.0], [0.0, 1.0]]),
    ),
    ("05.4", "not_three", lambda: torch.eye(2)),
    (
        "05.4",
        "turned_too_far",
        lambda: torch.tensor([[0.0, 1.0], [0.1, 1.0], [50.0, -1.0]]),
    ),
    (
        "05.5",
        "pairs_refused",
        lambda wants: (
            all(w == i or wants[w] != i for i, w in enumerate(wants.tolist()))
            and can_follow(wants)
        ),
    ),
    ("05.5", "everything", lambda wants: len(wants) > 0),
]


@pytest.mark.parametrize(("identifier", "answer"), RIGHT, ids=lambda a: str(a)[:4])
def test_another_right_answer_earns_every_point(identifier, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert (result.points, result.hint) == (result.max_points, "")


@pytest.mark.parametrize(("identifier", "name", "answer"), WRONG)
def test_the_same_mistake_in_other_words_gets_the_same_hint(identifier, name, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.points < result.max_points
        assert result.misconception == name


def test_the_weight_on_itself_is_that_of_the_layer():
    """Tokens at right angles, of equal length: the formula against the layer."""
    reference = find_question("05.3").reference
    for length, n_others in product((0.0, 0.7, 2.0), (1, 4)):
        _, weights = by_einsum(length * torch.eye(n_others + 1))
        assert weights[0, 0].item() == pytest.approx(reference(length, n_others), 1e-5)


def test_what_can_be_followed_is_what_some_symmetric_table_does():
    """Three tokens, every wish; the tables are tried, not argued about."""
    draws = torch.randn(5000, 3, 3, generator=torch.Generator().manual_seed(0))
    tables = draws + draws.mT
    for wants in product(range(3), repeat=3):
        found = (tables.argmax(-1) == torch.tensor(wants)).all(-1).any()
        assert bool(found) == can_follow(torch.tensor(wants))


def met_from_the_first(wants):
    """Follow the first token alone, and count whom it meets."""
    token, met = 0, set()
    while token not in met:
        met.add(token)
        token = int(wants[token])
    return len(met) <= 2


def test_following_the_first_token_alone_is_not_enough():
    for seed in SEEDS:
        result = verdict("05.5", met_from_the_first, seed)
        assert result.points < result.max_points


@pytest.mark.parametrize("vectors", [[(1.0, 0.0)], [(1.0, 0.0), (1.0, 2.0, 3.0)]])
def test_the_plane_takes_two_or_more_vectors_of_two_numbers(vectors):
    with pytest.raises(ValueError, match="expected two or more vectors of two numbers"):
        vector_plane(vectors=vectors)
