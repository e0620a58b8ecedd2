"""The questions of chapter 15 that count: operations, paths, bytes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from course_utils.questions import Args, Mistake, Output, Part, Question

# ---------------------------------------------------------------------- 15.1 operations


def draw_sizes(rng: np.random.Generator) -> Args:
    n, d = rng.permutation(np.array([96, 160, 224, 352, 416, 608]))[:2]
    return int(n), int(d)


def operations(n: int, d: int) -> tuple[int, int]:
    return 8 * n * d * d + 4 * n * n * d, 12 * n * d * d


def half(n: int, d: int) -> tuple[int, int]:
    attention, gru = operations(n, d)
    return attention // 2, gru // 2


OPERATIONS = Question(
    id="15.1",
    title="Operations of a layer",
    answer="operations",
    arguments=("n", "d"),
    outputs=(Output("attention"), Output("gru")),
    reference=operations,
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


# -------------------------------------------------------------------------- 15.2 paths


def draw_distance(rng: np.random.Generator, low: int, high: int) -> Args:
    return (int(rng.integers(low, high)),)


def dilated(k: int) -> int:
    layers = 1
    while 2 * (2**layers - 1) < k:
        layers += 1
    return layers


def paths(k: int) -> tuple[int, int, int, int]:
    return 1, k, math.ceil(k / 2), dilated(k)


def with_path(place: int, value: Any) -> Any:
    """The right paths of a distance, but for one of them."""

    def wrong(k: int) -> tuple[Any, ...]:
        right = list(paths(k))
        right[place] = value(k)
        return tuple(right)

    return wrong


PATHS = Question(
    id="15.2",
    title="How long is the way back?",
    answer="paths",
    arguments=("k",),
    outputs=tuple(
        Output(name) for name in ("attention", "gru", "convolutions", "dilated")
    ),
    reference=paths,
    next_step="work out for each kind how far one layer or one step reaches back.",
    parts=(
        Part(
            "attention and GRU",
            1,
            lambda rng: [draw_distance(rng, 30, 200) for _ in range(2)],
            lambda v: v[:2],
        ),
        Part(
            "convolutions",
            1,
            lambda rng: [(2 * draw_distance(rng, 20, 90)[0] + odd,) for odd in (0, 1)],
            lambda v: v[2],
            alone="right but for the plain convolutions: try k = 2, 3 and 4 by hand",
        ),
        Part(
            "dilated convolutions",
            1,
            lambda rng: [(14,), (15,), (62,), (64,), draw_distance(rng, 100, 900)],
            lambda v: v[3],
            alone="right but for the dilated ones: three of them reach 14 tokens back, "
            "as in the chapter; what do four reach?",
        ),
    ),
    mistakes=(
        Mistake(
            "kernel_reaches_three",
            "a kernel of 3 sees three tokens, its own among them: so how far back does "
            "one layer reach?",
            with_path(2, lambda k: math.ceil(k / 3)),
        ),
        Mistake(
            "rounded_down",
            "the layers are rounded down, so that the last token is not quite reached",
            with_path(2, lambda k: k // 2),
        ),
        Mistake(
            "one_token_a_layer",
            "the plain convolutions move one token a layer: a kernel of 3 does more",
            with_path(2, lambda k: k),
        ),
        Mistake(
            "one_layer_too_many",
            "for an even k, one plain convolution too many: k = 2 is reached by the "
            "first layer already",
            with_path(2, lambda k: k // 2 + 1),
        ),
        Mistake(
            "not_whole",
            "layers come whole: the formula gives a number with a fraction, and a "
            "layer that is used in part is needed all the same",
            lambda k: (1, k, k / 2, math.log2(k / 2 + 1)),
        ),
        Mistake(
            "own_token_counted",
            "the dilated stack is compared with the number of tokens *seen*, the own "
            "one included; k counts the tokens back",
            with_path(3, lambda k: dilated(k - 1)),
        ),
        Mistake(
            "dilated_rounded_down",
            "the dilated layers are rounded down, so that the last token is not quite "
            "reached",
            with_path(3, lambda k: dilated(k + 1) - 1),
        ),
        Mistake(
            "gap_only",
            "one gap is counted for each dilated layer: a kernel of 3 has a token two "
            "gaps back as well",
            with_path(3, lambda k: next(n for n in range(1, 99) if 2**n > k)),
        ),
        Mistake(
            "dilated_does_not_add",
            "only the last layer's own reach is counted; a message may step back in "
            "every layer, so the reaches add up",
            with_path(3, lambda k: math.ceil(math.log2(k))),
        ),
        Mistake(
            "attention_for_nothing",
            "attention is given no step at all: one weighted average brings the token, "
            "and that is a step",
            with_path(0, lambda k: 0),
        ),
        Mistake(
            "attention_walks",
            "attention is given a way that grows with the distance: what lies between "
            "two tokens there?",
            with_path(0, lambda k: k),
        ),
        Mistake(
            "gru_jumps",
            "the GRU is given a way of one step: its state passes through every token "
            "in between",
            with_path(1, lambda k: 1),
        ),
        Mistake(
            "gru_tokens_between",
            "in the GRU only the tokens in between are counted; the last step, into "
            "the token that listens, is one too",
            with_path(1, lambda k: k - 1),
        ),
        Mistake(
            "gru_both_ends",
            "in the GRU both ends are counted: from one token to the next is *one* "
            "step",
            with_path(1, lambda k: k + 1),
        ),
    ),
    tolerance=1e-6,
)


# -------------------------------------------------------------------------- 15.3 bytes


def draw_model(rng: np.random.Generator) -> Args:
    n = int(rng.integers(100, 9000))
    d, layers = int(64 * rng.integers(2, 30)), int(rng.integers(3, 40))
    return n, d, layers, int(rng.integers(2, 9)), int(rng.choice([2, 4]))


def bytes_kept(n: int, d: int, layers: int, batch: int, size: int) -> tuple[int, int]:
    return 2 * n * d * layers * batch * size, d * layers * batch * size


BYTES = Question(
    id="15.3",
    title="Cache against state",
    answer="bytes_kept",
    arguments=("n", "d", "layers", "batch", "size"),
    outputs=(Output("cache"), Output("state")),
    reference=bytes_kept,
    next_step="how many numbers does one layer keep for one text? Then multiply.",
    parts=(
        Part(
            "cache", 1, lambda rng: [draw_model(rng), draw_model(rng)], lambda v: v[0]
        ),
        Part(
            "state", 1, lambda rng: [draw_model(rng), draw_model(rng)], lambda v: v[1]
        ),
    ),
    mistakes=(
        Mistake(
            "keys_only",
            "the cache holds only half of what attention needs of an earlier token: it "
            "has to be found, and it has to hand something over",
            lambda n, d, layers, batch, size: (
                n * d * layers * batch * size,
                d * layers * batch * size,
            ),
        ),
        Mistake(
            "queries_too",
            "queries are cached as well: an earlier token has asked already, and never "
            "asks again",
            lambda n, d, layers, batch, size: (
                3 * n * d * layers * batch * size,
                d * layers * batch * size,
            ),
        ),
        Mistake(
            "one_layer",
            "the bytes are those of one layer; every layer keeps its own",
            lambda n, d, layers, batch, size: (
                2 * n * d * batch * size,
                d * batch * size,
            ),
        ),
        Mistake(
            "one_text",
            "the bytes are those of one text; each text of the batch has its own past",
            lambda n, d, layers, batch, size: (
                2 * n * d * layers * size,
                d * layers * size,
            ),
        ),
        Mistake(
            "numbers_not_bytes",
            "these are numbers, not bytes: each takes `size` bytes",
            lambda n, d, layers, batch, size: (
                2 * n * d * layers * batch,
                d * layers * batch,
            ),
        ),
        Mistake(
            "state_grows",
            "the state is counted once for every token: does a recurrence keep its "
            "earlier states when it generates?",
            lambda n, d, layers, batch, size: (
                2 * n * d * layers * batch * size,
                n * d * layers * batch * size,
            ),
        ),
        Mistake(
            "state_of_one_layer",
            "the state is that of one layer; every recurrent layer keeps its own",
            lambda n, d, layers, batch, size: (
                2 * n * d * layers * batch * size,
                d * batch * size,
            ),
        ),
        Mistake(
            "state_twice",
            "the state is counted twice: it has no keys and values, only one vector",
            lambda n, d, layers, batch, size: (
                2 * n * d * layers * batch * size,
                2 * d * layers * batch * size,
            ),
        ),
        Mistake(
            "order",
            "the two have changed places: the cache first, then the state",
            lambda *args: bytes_kept(*args)[::-1],
        ),
        Mistake(
            "weights_kept",
            "a table of n × n weights is counted: it is made for each new token and "
            "thrown away; what has to be *kept*?",
            lambda n, d, layers, batch, size: (
                n * n * layers * batch * size,
                d * layers * batch * size,
            ),
        ),
    ),
    tolerance=1e-6,
)


QUESTIONS = (OPERATIONS, PATHS, BYTES)
