"""`operations`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from course_utils.evaluation.costs import layer_cost
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def draw_sizes(rng: np.random.Generator) -> Args:
    d, state = rng.permutation(np.array([96, 144, 192, 336, 432]))[:2]
    n, window = (int(rng.integers(*ends)) for ends in ((500, 900), (20, 90)))
    return n, int(d), window, int(rng.choice([2, 3, 4, 6])), int(state)


def operations(
    n: int, d: int, window: int, share: int, state: int
) -> tuple[float, float]:
    return counted(n, d, window, share, state)


def counted(
    n: int,
    d: int,
    window: int,
    share: int,
    state: int,
    *,
    wide: float = 2,
    narrow: float = 2,
    products: float = 2,
    table_shared: bool = False,
    operations: float = 2,
    inputs: float = 3,
    states: float = 3,
) -> tuple[float, float]:
    """Count both layers; the keywords are what a learner may get wrong.

    Projections of full width, those that are shared, products with the table, whether
    the table shrinks with the keys, operations for a product of two numbers, and
    matrices of the GRU for the input and for the state.
    """
    attention = n * d * d * (wide + narrow / share)
    attention += products * n * window * d / (share if table_shared else 1)
    gru = n * state * (inputs * d + states * state)
    return operations * attention, operations * gru


def miscounted(**wrong: Any) -> Callable[..., tuple[float, float]]:
    """The two counts with one thing counted otherwise."""
    return lambda n, d, window, share, state: counted(
        n, d, window, share, state, **wrong
    )


QUESTION = Question(
    id="15.1",
    title="Operations of a layer with a window and shared keys",
    answer="operations",
    arguments=("n", "d", "window", "share", "state"),
    outputs=(Output("attention"), Output("gru")),
    reference=operations,
    difficulty="medium",
    minutes=10,
    next_step="list the matrix products of each layer with their three sizes: (n, m) "
    "times (m, p) takes 2·n·m·p operations.",
    parts=(
        Part(
            "attention",
            2,
            lambda rng: [draw_sizes(rng) for _ in range(3)],
            lambda v: v[0],
        ),
        Part("GRU", 1, lambda rng: [draw_sizes(rng) for _ in range(2)], lambda v: v[1]),
    ),
    mistakes=(
        Mistake(
            "output_shared_too",
            "three matrices are as narrow as the shared heads: queries and output have "
            "width d, only keys and values are shared",
            miscounted(wide=1, narrow=3),
            lambda args, value: abs(value[0] - counted(*args, wide=1, narrow=3)[0]) < 1,
        ),
        Mistake(
            "the_chapters",
            "these are the chapter's formulas, with four matrices of d × d, n keys for "
            "every query and a state of width d; here all three differ",
            lambda n, d, window, share, state: (
                8 * n * d * d + 4 * n * n * d,
                12 * n * d * d,
            ),
        ),
        Mistake(
            "no_window",
            "every query meets all n keys: here it meets `window` of them",
            lambda n, d, w, share, state: counted(n, d, n, share, state),
        ),
        Mistake(
            "not_shared",
            "keys and values are counted at their full width d: heads share them, so "
            "that their two matrices have d / share columns",
            lambda n, d, w, share, state: counted(n, d, w, 1, state),
        ),
        Mistake(
            "all_shared",
            "all four projections are made narrower: queries and output keep their "
            "full width, only keys and values are shared",
            miscounted(wide=0, narrow=4),
        ),
        Mistake(
            "table_shared",
            "the table is made smaller by the sharing: every head still has its own "
            "queries, compares them with the shared keys and takes its own average",
            miscounted(table_shared=True),
        ),
        Mistake(
            "one_of_two_shared",
            "only one of keys and values is made narrower: both are shared",
            miscounted(wide=3, narrow=1),
        ),
        Mistake(
            "only_multiplications",
            "both counts are half of what they should be: every multiplication comes "
            "with an addition, and both are operations",
            miscounted(operations=1),
        ),
        Mistake(
            "no_output_matrix",
            "one d × d matrix of attention is missing: queries, keys and values are "
            "not the only things that are projected",
            miscounted(wide=1),
        ),
        Mistake(
            "no_projections",
            "only the table is counted for attention: the projections of the tokens "
            "cost something too",
            miscounted(wide=0, narrow=0),
        ),
        Mistake(
            "scores_only",
            "half of the table's part is missing: the table costs two products, one to "
            "make it and one to use it",
            miscounted(products=1),
        ),
        Mistake(
            "no_table",
            "attention is counted as if each token were projected and nothing more: "
            "where is a query compared with the keys in its window?",
            miscounted(products=0),
        ),
        Mistake(
            "gru_of_width_d",
            "the GRU is counted with a state of width d: its state is `state` wide, "
            "and it reads tokens of width d",
            lambda n, d, w, share, state: (
                counted(n, d, w, share, state)[0],
                12 * n * d * d,
            ),
        ),
        Mistake(
            "gru_input_as_wide_as_its_state",
            "both matrices of a gate are counted as state × state: the one that reads "
            "the token is d × state",
            lambda n, d, w, share, state: (
                counted(n, d, w, share, state)[0],
                12 * n * state * state,
            ),
        ),
        Mistake(
            "gru_input_only",
            "each gate of the GRU has two matrices: one for the token, and one for "
            "something else that it reads",
            miscounted(states=0),
        ),
        Mistake(
            "one_gate",
            "the GRU is counted with a single gate; two gates and the proposal make "
            "three pairs of matrices",
            miscounted(inputs=1, states=1),
        ),
        Mistake(
            "both_sides_narrow",
            "the matrices of keys and values are counted as d / share by d / share: "
            "they read tokens of width d, and only what comes out is narrow",
            lambda n, d, w, share, state: (
                4 * n * (d * d + (d / share) ** 2) + 4 * n * w * d,
                counted(n, d, w, share, state)[1],
            ),
        ),
        Mistake(
            "fewer_keys_at_the_start",
            "the first tokens are given fewer than `window` keys: here every query "
            "counts `window`, also where there are not that many",
            lambda n, d, w, share, state: (
                counted(n, d, 0, share, state)[0]
                + 4 * d * sum(min(t + 1, w) for t in range(n)),
                counted(n, d, w, share, state)[1],
            ),
        ),
        Mistake(
            "no_proposal",
            "the GRU is counted with its two gates alone: the proposal for the new "
            "state has a pair of matrices as well",
            miscounted(inputs=2, states=2),
        ),
        Mistake(
            "four_gates",
            "the GRU is counted with four pairs of matrices: that is an LSTM; a GRU "
            "has two gates and a proposal",
            miscounted(inputs=4, states=4),
        ),
        Mistake(
            "gru_reads_four_times",
            "one product too many reads the token in the GRU: two gates and the "
            "proposal make three, and the new state is mixed entry by entry",
            miscounted(inputs=4),
        ),
        Mistake(
            "gru_one_token",
            "this is what the GRU costs for one token; the text has n of them",
            lambda n, d, w, share, state: (
                counted(n, d, w, share, state)[0],
                counted(1, d, w, share, state)[1],
            ),
        ),
    ),
    tolerance=1e-6,
)


# ----------------------------------------------------------------------- specimens


def product(rows, inner, columns):
    return 2 * rows * inner * columns


def listed(n, d, window, share, state, keys=None, met=None, gates=3):
    """Product by product, as they are computed."""
    keys = d // share if keys is None else keys
    made = [product(n, d, columns) for columns in (d, keys, keys, d)]
    table = [product(n, d, met or window), product(n, met or window, d)]
    gru = gates * (product(n, d, state) + product(n, state, state))
    return sum(made + table), gru


def by_costs(n, d, window, share, state):
    """The chapter's costs, less what is not computed here."""
    full = layer_cost("attention, naive", n, d).flops
    less = 4 * n * d * (d - d // share) + 4 * n * (n - window) * d
    return full - less, 6 * n * state * (d + state)


RIGHT = [
    listed,
    by_costs,
    lambda *sizes: torch.tensor(listed(*sizes)),
    lambda n, d, w, s, m: np.array(
        [4 * n * d * (d + d / s + w), 6.0 * n * m * (m + d)]
    ),
]
WRONG = [
    (
        "output_shared_too",
        lambda n, d, w, s, m: (
            listed(n, d, w, s, m)[0] - 2 * n * d * (d - d / s),
            listed(n, d, w, s, m)[1],
        ),
    ),
    (
        "both_sides_narrow",
        lambda n, d, w, s, m: (
            2 * n * (2 * d * d + 2 * d * d / s**2 + 2 * w * d),
            listed(n, d, w, s, m)[1],
        ),
    ),
    (
        "fewer_keys_at_the_start",
        lambda n, d, w, s, m: (
            listed(n, d, w, s, m)[0] - 2 * d * w * (w - 1),
            listed(n, d, w, s, m)[1],
        ),
    ),
    (
        "the_chapters",
        lambda n, d, w, share, m: tuple(
            layer_cost(k, n, d).flops for k in ("attention, fused", "GRU")
        ),
    ),
    ("no_window", lambda n, d, w, share, m: listed(n, d, w, share, m, met=n)),
    ("not_shared", lambda n, d, w, share, m: listed(n, d, w, share, m, keys=d)),
    (
        "only_multiplications",
        lambda *sizes: tuple(count / 2 for count in listed(*sizes)),
    ),
    (
        "table_shared",
        lambda n, d, w, s, m: (
            4 * n * d * (d + d / s + w / s),
            listed(n, d, w, s, m)[1],
        ),
    ),
    ("four_gates", lambda n, d, w, s, m: listed(n, d, w, s, m, gates=4)),
    ("no_proposal", lambda n, d, w, s, m: listed(n, d, w, s, m, gates=2)),
    (
        "gru_reads_four_times",
        lambda n, d, w, s, m: (
            listed(n, d, w, s, m)[0],
            listed(n, d, w, s, m)[1] + 2 * n * m * d,
        ),
    ),
    (
        "no_table",
        lambda n, d, w, s, m: (4 * n * d * (d + d // s), listed(n, d, w, s, m)[1]),
    ),
    (
        "gru_of_width_d",
        lambda n, d, w, s, m: (listed(n, d, w, s, m)[0], 12 * n * d**2),
    ),
]
PARTIAL = [(2, lambda n, d, w, s, m: (listed(n, d, w, s, m)[0], 12 * n * d * d))]
