"""`costs`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question
from course_utils.models.transformer import GPT


def costs(
    n_tokens: int, d_model: int, n_layers: int, length: int, tied: bool
) -> tuple[int, int]:
    return parameters(n_tokens, d_model, n_layers, length, tied), stored(
        d_model, n_layers, length
    )


def parameters(
    n_tokens: int,
    d_model: int,
    n_layers: int,
    length: int,
    tied: bool,
    tables: int | None = None,
    places: int = 1,
    last_norm: int = 2,
    biases: bool = True,
    attentions: int = 1,
    norms: int = 2,
    matrices: int = 4,
    wide: tuple[int, int] = (8, 5),
    head_bias: bool = False,
) -> int:
    """Count a GPT's parameters; the options leave something out or put it in twice.

    `wide` counts the feed-forward layer: its weights in d_model², biases in d_model.
    """
    tables = (1 if tied else 2) if tables is None else tables
    tables = (2 if tied else 1) if tables < 0 else tables
    attention = matrices * (d_model**2 + d_model * biases)
    feed_forward = wide[0] * d_model**2 + wide[1] * d_model * biases
    block = attentions * attention + feed_forward + norms * 2 * d_model
    return (
        tables * n_tokens * d_model
        + places * length * d_model
        + n_layers * block
        + last_norm * d_model
        + (n_tokens if head_bias and not tied else 0)
    )


def stored(d_model: int, n_layers: int, length: int) -> int:
    return 2 * n_layers * length * d_model * 4


def miscounted(name: str, hint: str, **options: Any) -> Mistake:
    """A mistake in the parameters, known whatever the bytes are."""

    def wrong(
        n_tokens: int, d_model: int, n_layers: int, length: int, tied: bool
    ) -> tuple[int, int]:
        return (
            parameters(n_tokens, d_model, n_layers, length, tied, **options),
            stored(d_model, n_layers, length),
        )

    return Mistake(name, hint, wrong, lambda args, value: value[0] == wrong(*args)[0])


def misstored(name: str, hint: str, change: Any) -> Mistake:
    """A mistake in the bytes, known whatever the parameters are."""

    def wrong(
        n_tokens: int, d_model: int, n_layers: int, length: int, tied: bool
    ) -> tuple[int, int]:
        right = stored(d_model, n_layers, length)
        return (
            parameters(n_tokens, d_model, n_layers, length, tied),
            int(change(right, d_model, n_layers, length)),
        )

    return Mistake(name, hint, wrong, lambda args, value: value[1] == wrong(*args)[1])


def draw_models(rng: np.random.Generator) -> list[Args]:
    return [
        (
            int(rng.integers(50, 90)),
            int(rng.integers(3, 6)) * 4,
            int(rng.integers(2, 5)),
            int(rng.integers(30, 45)),
            tied,
        )
        for tied in (True, False)
    ]


QUESTION = Question(
    id="13.5",
    title="Parameters and bytes",
    answer="costs",
    arguments=("n_tokens", "d_model", "n_layers", "length", "tied"),
    outputs=(Output("parameters"), Output("bytes")),
    reference=costs,
    tolerance=1e-7,
    difficulty="medium",
    minutes=12,
    next_step="tables, blocks, the last norm; then what a layer keeps of each token.",
    parts=(
        Part("parameters", 2, draw_models, view=lambda value: value[0]),
        Part("bytes of the cache", 2, draw_models, view=lambda value: value[1]),
    ),
    mistakes=(
        miscounted(
            "no_positions_and_no_last_norm",
            "the table of positions and the last norm are missing",
            places=0,
            last_norm=0,
        ),
        miscounted(
            "head_with_bias",
            "the table for writing is counted with a bias: it is a table like the one "
            "for reading, and only the matrices of the blocks have biases",
            head_bias=True,
        ),
        miscounted(
            "tied_turned_round",
            "`tied` is taken the wrong way round: a tied model has one table of tokens",
            tables=-1,
        ),
        miscounted(
            "two_wide_biases",
            "both biases of the feed-forward layer are counted as wide as its hidden "
            "layer: the second matrix leads back, so its bias is as wide as the model",
            wide=(8, 8),
        ),
        miscounted(
            "one_bias_in_the_feed_forward",
            "the feed-forward layer has two biases: one as wide as its hidden layer, "
            "and one as wide as the model",
            wide=(8, 4),
        ),
        miscounted(
            "always_two_tables",
            "a tied model has one table for reading and writing: it is counted twice",
            tables=2,
        ),
        miscounted(
            "always_one_table",
            "a model that is not tied has a second table, for writing",
            tables=1,
        ),
        miscounted(
            "hidden_twice",
            "the feed-forward layer is counted with 2 d_model hidden features: it has "
            "4 d_model",
            wide=(4, 3),
        ),
        miscounted(
            "no_positions",
            "the table of positions is missing: one row for each place",
            places=0,
        ),
        miscounted(
            "no_last_norm",
            "the norm after the last block is missing",
            last_norm=0,
        ),
        miscounted(
            "norms_without_shift",
            "a norm has a scale and a shift for each feature",
            last_norm=1,
            norms=1,
        ),
        miscounted(
            "twelve_squares",
            "a block is more than its matrices, 12 d_model²: they have biases, and "
            "there are two norms",
            biases=False,
            norms=0,
        ),
        miscounted(
            "twelve_squares_alone",
            "only matrices and tables are counted: the matrices of a block have "
            "biases, and norms have a scale and a shift, the last one too",
            biases=False,
            norms=0,
            last_norm=0,
        ),
        miscounted(
            "no_biases",
            "the matrices of attention and feed-forward layer have biases",
            biases=False,
        ),
        miscounted(
            "cross_attention",
            "every block is counted with a second attention: there is no memory to ask",
            attentions=2,
            norms=3,
        ),
        miscounted(
            "one_norm_a_block",
            "every block has two norms, one before the attention and one before the "
            "feed-forward layer",
            norms=1,
        ),
        miscounted(
            "no_norms",
            "the norms are missing: two in every block and one at the end, each with a "
            "scale and a shift",
            norms=0,
            last_norm=0,
        ),
        miscounted(
            "no_block_norms",
            "the norms inside the blocks are missing: two in each, with a scale and a "
            "shift",
            norms=0,
        ),
        miscounted(
            "three_matrices",
            "attention has a fourth matrix: after those of queries, keys and values "
            "the one that mixes the heads",
            matrices=3,
        ),
        miscounted(
            "narrow_feed_forward",
            "the feed-forward layer is counted as wide as the model: inside it is four "
            "times as wide",
            wide=(2, 2),
        ),
        miscounted(
            "one_way_feed_forward",
            "the feed-forward layer has two matrices: one makes a token four times as "
            "wide, the other brings it back",
            wide=(4, 4),
        ),
        miscounted(
            "short_biases",
            "a bias has one number for each output: the wide layer has four times "
            "d_model of them",
            wide=(8, 2),
        ),
        misstored(
            "keys_only",
            "the cache has half of its bytes: a token leaves a key *and* a value in "
            "each layer, and a float32 has four bytes; which of the two is it?",
            lambda right, *sizes: right / 2,
        ),
        misstored(
            "one_layer",
            "that is the cache of one layer; each layer has keys and values of its own",
            lambda right, d, layers, length: right / layers,
        ),
        misstored(
            "numbers_not_bytes",
            "that counts numbers; a float32 has four bytes",
            lambda right, *sizes: right / 4,
        ),
        misstored(
            "table_of_weights",
            "the weights of attention are not kept: they are made anew by each query; "
            "keys and values stay",
            lambda right, d, layers, length: 4 * layers * length**2,
        ),
        misstored(
            "queries_too",
            "queries are counted as well: an old token's query is never asked again",
            lambda right, *sizes: 1.5 * right,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def built(n_tokens, d_model, n_layers, length, tied):
    """Count what PyTorch has really made, and what the cache really holds."""
    model = GPT(n_tokens, length, d_model, 2, n_layers, tied=tied)
    caches = model.start(torch.zeros(1, 1, dtype=torch.long))
    stored = sum(c.keys.nbytes + c.values.nbytes for c in caches)
    return sum(p.numel() for p in model.parameters()), stored


def off_by(more=lambda n, d, layers, length, tied: 0, times=1.0):
    def answer(*sizes):
        parameters, stored = built(*sizes)
        return parameters + more(*sizes), round(stored * times)

    return answer


RIGHT = [built]
WRONG = [
    (
        "no_positions_and_no_last_norm",
        off_by(lambda n, d, layers, length, tied: -d * (length + 2)),
    ),
    ("head_with_bias", off_by(lambda n, d, layers, length, tied: n * (not tied))),
    (
        "tied_turned_round",
        off_by(lambda n, d, layers, length, tied: n * d if tied else -n * d),
    ),
    (
        "one_bias_in_the_feed_forward",
        off_by(lambda n, d, layers, length, tied: -d * layers),
    ),
    ("always_two_tables", off_by(lambda n, d, layers, length, tied: n * d * tied)),
    (
        "always_one_table",
        off_by(lambda n, d, layers, length, tied: -n * d * (not tied)),
    ),
    ("no_positions", off_by(lambda n, d, layers, length, tied: -length * d)),
    ("no_last_norm", off_by(lambda n, d, layers, length, tied: -2 * d)),
    ("no_biases", off_by(lambda n, d, layers, length, tied: -9 * d * layers)),
    ("one_norm_a_block", off_by(lambda n, d, layers, length, tied: -2 * d * layers)),
    ("no_norms", off_by(lambda n, d, layers, length, tied: -4 * d * layers - 2 * d)),
    ("no_block_norms", off_by(lambda n, d, layers, length, tied: -4 * d * layers)),
    (
        "three_matrices",
        off_by(lambda n, d, layers, length, tied: -(d + 1) * d * layers),
    ),
    (
        "narrow_feed_forward",
        off_by(lambda n, d, layers, length, tied: -3 * (2 * d + 1) * d * layers),
    ),
    (
        "one_way_feed_forward",
        off_by(lambda n, d, layers, length, tied: -(4 * d + 1) * d * layers),
    ),
    ("short_biases", off_by(lambda n, d, layers, length, tied: -3 * d * layers)),
    ("no_last_norm", off_by(lambda n, d, layers, length, tied: -2 * d, times=0.125)),
    ("keys_only", off_by(times=0.5)),
    ("numbers_not_bytes", off_by(times=0.25)),
    ("queries_too", off_by(times=1.5)),
]
