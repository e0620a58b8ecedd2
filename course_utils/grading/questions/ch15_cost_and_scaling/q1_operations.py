"""`operations`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np

from course_utils.evaluation.costs import layer_cost
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def draw_sizes(rng: np.random.Generator) -> Args:
    n, d = rng.permutation(np.array([96, 160, 224, 352, 416, 608]))[:2]
    return int(n), int(d)


def operations(n: int, d: int) -> tuple[int, int]:
    return 8 * n * d * d + 4 * n * n * d, 12 * n * d * d


def half(n: int, d: int) -> tuple[int, int]:
    attention, gru = operations(n, d)
    return attention // 2, gru // 2


QUESTION = Question(
    id="15.1",
    title="Operations of a layer",
    answer="operations",
    arguments=("n", "d"),
    outputs=(Output("attention"), Output("gru")),
    reference=operations,
    difficulty="easy",
    minutes=6,
    next_step="count the matrix products of each layer, 2·n·m·p operations each.",
    parts=(
        Part(
            "attention",
            2,
            lambda rng: [draw_sizes(rng), draw_sizes(rng)],
            lambda v: v[0],
        ),
        Part("GRU", 1, lambda rng: [draw_sizes(rng), draw_sizes(rng)], lambda v: v[1]),
    ),
    mistakes=(
        Mistake(
            "only_multiplications",
            "both counts are half of what they should be: every multiplication comes "
            "with an addition, and both are operations",
            half,
        ),
        Mistake(
            "no_output_matrix",
            "one d × d matrix of attention is missing: queries, keys and values are "
            "not the only things that are projected",
            lambda n, d: (6 * n * d * d + 4 * n * n * d, 12 * n * d * d),
        ),
        Mistake(
            "no_projections",
            "only the part that grows with n² is counted for attention: the "
            "projections of the tokens cost something too",
            lambda n, d: (4 * n * n * d, 12 * n * d * d),
        ),
        Mistake(
            "scores_only",
            "half of the n² part is missing: the table costs two products, one to make "
            "it and one to use it (and a mask saves nothing here)",
            lambda n, d: (8 * n * d * d + 2 * n * n * d, 12 * n * d * d),
        ),
        Mistake(
            "causal_half",
            "only the keys up to each query are counted, as a causal mask would have "
            "it: here every query meets every key",
            lambda n, d: (8 * n * d * d + 2 * n * (n + 1) * d, 12 * n * d * d),
        ),
        Mistake(
            "no_table",
            "attention is counted as if each token were projected and nothing more: "
            "where is every query compared with every key?",
            lambda n, d: (8 * n * d * d, 12 * n * d * d),
        ),
        Mistake(
            "gru_input_only",
            "each gate of the GRU has two matrices: one for the token, and one for "
            "something else that it reads",
            lambda n, d: (8 * n * d * d + 4 * n * n * d, 6 * n * d * d),
        ),
        Mistake(
            "one_gate",
            "the GRU is counted with a single gate; two gates and the proposal make "
            "three pairs of matrices",
            lambda n, d: (8 * n * d * d + 4 * n * n * d, 4 * n * d * d),
        ),
        Mistake(
            "no_proposal",
            "the GRU is counted with its two gates alone: the proposal for the new "
            "state has a pair of matrices as well",
            lambda n, d: (8 * n * d * d + 4 * n * n * d, 8 * n * d * d),
        ),
        Mistake(
            "four_gates",
            "the GRU is counted with four pairs of matrices: that is an LSTM; a GRU "
            "has two gates and a proposal",
            lambda n, d: (8 * n * d * d + 4 * n * n * d, 16 * n * d * d),
        ),
        Mistake(
            "gru_one_token",
            "this is what the GRU costs for one token; the text has n of them",
            lambda n, d: (8 * n * d * d + 4 * n * n * d, 12 * d * d),
        ),
        Mistake(
            "gru_quadratic",
            "the GRU's count grows with n²: it takes n steps, and each costs the same "
            "however many came before",
            lambda n, d: (8 * n * d * d + 4 * n * n * d, 12 * n * n * d),
        ),
        Mistake(
            "order",
            "the two counts have changed places: attention first, then the GRU",
            lambda n, d: operations(n, d)[::-1],
        ),
    ),
    tolerance=1e-6,
    packaged=("layer_cost",),
)


# ----------------------------------------------------------------------- specimens


def gru(n, d):
    return 12 * n * d * d


RIGHT = [
    lambda n, d: [4 * n * d * (n + 2 * d), 12 * d**2 * n],
    lambda n, d: tuple(layer_cost(k, n, d).flops for k in ("attention, fused", "GRU")),
]
WRONG = [
    ("only_multiplications", lambda n, d: (4 * n * d**2 + 2 * d * n**2, 6 * n * d**2)),
    ("no_output_matrix", lambda n, d: (2 * n * d * (3 * d + 2 * n), 12 * n * d**2)),
    ("no_projections", lambda n, d: (4.0 * d * n**2, 12 * n * d**2)),
    ("scores_only", lambda n, d: (2 * n * d * (4 * d + n), 12 * n * d**2)),
    ("no_table", lambda n, d: (8 * n * d**2, 12 * n * d**2)),
    ("gru_input_only", lambda n, d: (4 * n * d * (2 * d + n), 3 * 2 * n * d**2)),
    ("one_gate", lambda n, d: (4 * n * d * (2 * d + n), 2 * 2 * n * d**2)),
    ("no_proposal", lambda n, d: (4 * n * d * (2 * d + n), 2 * 4 * n * d**2)),
    ("four_gates", lambda n, d: (4 * n * d * (2 * d + n), 4 * 4 * n * d**2)),
    ("gru_one_token", lambda n, d: (4 * n * d * (2 * d + n), 12 * d**2)),
    ("gru_quadratic", lambda n, d: (4 * n * d * (2 * d + n), 12 * d * n**2)),
    ("order", lambda n, d: (12 * n * d**2, 4 * n * d * (2 * d + n))),
    ("causal_half", lambda n, d: (8 * n * d**2 + sum(range(n + 1)) * 4 * d, gru(n, d))),
]
