"""`gpt_costs`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from course_utils.evaluation.costs import layer_cost
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def draw_gpt(rng: np.random.Generator) -> Args:
    n, d, hidden = rng.permutation(np.array([96, 160, 224, 352, 416, 608]))[:3]
    layers, pieces = int(rng.integers(3, 30)), int(rng.integers(700, 9000))
    return int(n), int(d), int(hidden), layers, pieces


def gpt_costs(
    n: int,
    d: int,
    hidden: int,
    layers: int,
    pieces: int,
    *,
    attention: float = 4,
    feed_forward: float = 3,
    scores: float = 4,
    embeddings: float = 2,
    outputs: float = 1,
    operations: float = 2,
    passes: float = 4,
    ends_again: float = 0,
) -> tuple[float, float, float]:
    """Count a model; the keywords are what a learner may get wrong.

    Matrices of d x d in a block's attention and d x hidden in its feed-forward layer,
    multiples of n^2 d for its table, tables of pieces held and multiplied, operations
    for a weight, forward passes that a training step costs for a block, and how many
    more than three for the output layer.
    """
    blocks = layers * (attention * d * d + feed_forward * d * hidden)
    parameters = embeddings * pieces * d + blocks
    in_blocks = operations * n * blocks + operations / 2 * scores * layers * n * n * d
    output = operations * n * outputs * pieces * d
    training = passes * in_blocks + (min(passes, 3) + ends_again) * output
    return parameters, in_blocks + output, training


def miscounted(**wrong: float) -> Callable[..., tuple[float, float, float]]:
    """The costs of a model with one thing counted otherwise."""
    return lambda n, d, hidden, layers, pieces: gpt_costs(
        n, d, hidden, layers, pieces, **wrong
    )


QUESTION = Question(
    id="15.7",
    title="A whole model, as they are built today",
    answer="gpt_costs",
    arguments=("n", "d", "hidden", "layers", "pieces"),
    outputs=(Output("parameters"), Output("forward"), Output("training")),
    reference=lambda n, d, hidden, layers, pieces: gpt_costs(
        n, d, hidden, layers, pieces
    ),
    difficulty="medium",
    minutes=12,
    next_step="count one block, multiply by the layers, and add the two ends.",
    parts=(
        Part(
            "parameters",
            1,
            lambda rng: [draw_gpt(rng) for _ in range(2)],
            lambda v: v[0],
        ),
        Part(
            "forward", 1, lambda rng: [draw_gpt(rng) for _ in range(2)], lambda v: v[1]
        ),
        Part(
            "training",
            1,
            lambda rng: [draw_gpt(rng) for _ in range(2)],
            lambda v: v[2],
            only_failure_hint="right but for the training: which products are computed "
            "a second time, and which are not? The backward pass comes on top",
        ),
    ),
    mistakes=(
        Mistake(
            "norms_counted",
            "the norms are counted: here positions, norms and biases are left out",
            lambda n, d, hidden, layers, pieces: (
                gpt_costs(n, d, hidden, layers, pieces)[0] + (2 * layers + 1) * d,
                *gpt_costs(n, d, hidden, layers, pieces)[1:],
            ),
            lambda args, value: any(
                float(value[0]) - gpt_costs(*args)[0] == norms * args[1]
                for layers in (args[3],)
                for norms in (2 * layers, 2 * layers + 1, 4 * layers, 4 * layers + 2)
            ),
        ),
        Mistake(
            "positions_counted",
            "a table of positions is counted: here positions, norms and biases are "
            "left out",
            lambda n, d, hidden, layers, pieces: (
                gpt_costs(n, d, hidden, layers, pieces)[0] + n * d,
                *gpt_costs(n, d, hidden, layers, pieces)[1:],
            ),
        ),
        Mistake(
            "gate_multiplied",
            "the gate's products, entry by entry, are counted: only products of "
            "matrices count",
            lambda n, d, hidden, layers, pieces: (
                gpt_costs(n, d, hidden, layers, pieces)[0],
                gpt_costs(n, d, hidden, layers, pieces)[1] + n * hidden * layers,
                gpt_costs(n, d, hidden, layers, pieces)[2] + 4 * n * hidden * layers,
            ),
        ),
        Mistake(
            "two_for_each_parameter",
            "two operations are counted for every parameter and token: the embedding "
            "is only looked up, and the scores of attention have no parameters",
            miscounted(scores=0, outputs=2),
        ),
        Mistake(
            "hidden_to_hidden",
            "one of the three matrices of the feed-forward layer is counted as hidden"
            " × hidden: two lead from d to hidden, one leads back",
            lambda n, d, hidden, layers, pieces: gpt_costs(
                n, d, hidden, layers, pieces, feed_forward=2 + hidden / d
            ),
        ),
        Mistake(
            "the_chapters",
            "this is the chapter's GPT: tied, with two matrices of d × 4d and nothing "
            "computed twice; here the feed-forward layer, the ends and training differ",
            lambda n, d, hidden, layers, pieces: gpt_costs(
                n, d, 4 * d, layers, pieces, feed_forward=2, embeddings=1, passes=3
            ),
        ),
        Mistake(
            "tied",
            "the embedding is held once, as if the output layer used the same numbers: "
            "here it has a table of its own",
            miscounted(embeddings=1),
        ),
        Mistake(
            "no_embedding",
            "the parameters are those of the blocks alone: both ends have a table with "
            "a vector for each piece",
            miscounted(embeddings=0),
        ),
        Mistake(
            "no_output_layer",
            "the forward pass ends before its last product: every token's vector meets "
            "the vectors of all pieces, to give their logits",
            miscounted(outputs=0),
        ),
        Mistake(
            "output_of_one_token",
            "the output layer is counted for one token: each of the n tokens is "
            "multiplied by its table",
            lambda n, d, hidden, layers, pieces: gpt_costs(
                n, d, hidden, layers, pieces, outputs=1 / n
            ),
        ),
        Mistake(
            "embedding_multiplied",
            "the embedding is counted as a product on the way in: there it is a "
            "look-up, which multiplies nothing",
            miscounted(outputs=2),
        ),
        Mistake(
            "no_scores",
            "two operations are counted for every weight and token, and nothing else: "
            "which products of attention have no weights?",
            miscounted(scores=0),
        ),
        Mistake(
            "half_the_table",
            "half of the part with n² is missing: the table is made by one product and "
            "used by another, and no mask saves work here; which was it?",
            miscounted(scores=2),
        ),
        Mistake(
            "no_output_matrix",
            "one matrix of attention is missing: queries, keys, values, and what mixes "
            "the heads",
            miscounted(attention=3),
        ),
        Mistake(
            "no_feed_forward",
            "a block is counted as attention alone; it has a feed-forward layer too",
            miscounted(feed_forward=0),
        ),
        Mistake(
            "not_gated",
            "the feed-forward layer is counted with two matrices, as the chapter's: "
            "this one has a gate, and the gate has a matrix of its own",
            miscounted(feed_forward=2),
        ),
        Mistake(
            "hidden_is_4d",
            "the feed-forward layer is counted with a width of 4d: here its width is "
            "`hidden`",
            lambda n, d, hidden, layers, pieces: gpt_costs(n, d, 4 * d, layers, pieces),
        ),
        Mistake(
            "one_block",
            "this is a model with a single block; there are `layers` of them",
            lambda n, d, hidden, layers, pieces: gpt_costs(n, d, hidden, 1, pieces),
        ),
        Mistake(
            "only_multiplications",
            "the operations are half of what they should be: every multiplication "
            "comes with an addition",
            miscounted(operations=1),
        ),
        Mistake(
            "nothing_recomputed",
            "training is three times the forward pass, as in the chapter: here the "
            "blocks are computed a second time before their gradients",
            miscounted(passes=3),
        ),
        Mistake(
            "all_recomputed",
            "training is four times the forward pass: the output layer's product is "
            "not computed again, only the blocks are",
            miscounted(ends_again=1),
        ),
        Mistake(
            "backward_as_forward",
            "training is one forward pass short: the backward pass needs two for each "
            "product, for the gradients of X and of W, and the blocks' second forward "
            "pass comes on top",
            lambda n, d, hidden, layers, pieces: (
                *gpt_costs(n, d, hidden, layers, pieces)[:2],
                gpt_costs(n, d, hidden, layers, pieces)[2]
                - gpt_costs(n, d, hidden, layers, pieces)[1],
            ),
        ),
        Mistake(
            "training_is_forward",
            "training is given the cost of the forward pass: what about the gradients?",
            miscounted(passes=1),
        ),
    ),
    tolerance=1e-6,
)


# ----------------------------------------------------------------------- specimens


def held(d, hidden, layers, pieces):
    """The numbers in a model's matrices."""
    return d * (2 * pieces + layers * (4 * d + 3 * hidden))


def work(n, d, hidden, layers, pieces):
    """Its operations forward, and in training."""
    block = layer_cost("attention, naive", n, d).flops + 6 * n * d * hidden
    blocks, output = layers * block, 2 * n * pieces * d
    return blocks + output, 3 * (blocks + output) + blocks


def costs(n, d, m, layers, v):
    return held(d, m, layers, v), *work(n, d, m, layers, v)


def product_by_product(n, d, m, layers, v):
    """A list of all products, each with its three sizes."""
    block = [(n, d, d)] * 4 + [(n, d, n), (n, n, d)] + [(n, d, m)] * 2 + [(n, m, d)]
    blocks = layers * sum(2 * a * b * c for a, b, c in block)
    ends = 2 * n * d * v
    weights = layers * (4 * d * d + 3 * d * m) + 2 * v * d
    return weights, blocks + ends, 4 * blocks + 3 * ends


def short(n, d, m, layers, v):
    output = 2 * n * v * d
    return 3 * (work(n, d, m, layers, v)[0] - output) + 2 * output


def output_once(n, d, m, layers, v):
    numbers, forward, training = costs(n, d, m, layers, v)
    less = 2 * v * d * (n - 1)
    return numbers, forward - less, training - 3 * less


RIGHT = [
    costs,
    product_by_product,
    lambda *sizes: torch.tensor(costs(*sizes)),
    lambda *sizes: np.array(product_by_product(*sizes), float),
]
WRONG = [
    (
        "norms_counted",
        lambda n, d, m, L, v: (
            costs(n, d, m, L, v)[0] + 2 * L * d + d,
            *costs(n, d, m, L, v)[1:],
        ),
    ),
    (
        "gate_multiplied",
        lambda n, d, m, L, v: (
            costs(n, d, m, L, v)[0],
            costs(n, d, m, L, v)[1] + L * n * m,
            costs(n, d, m, L, v)[2] + 4 * L * n * m,
        ),
    ),
    (
        "tied",
        lambda n, d, m, L, v: (costs(n, d, m, L, v)[0] - v * d, *work(n, d, m, L, v)),
    ),
    (
        "the_chapters",
        lambda n, d, m, L, v: (
            v * d + 12 * L * d**2,
            2 * n * (12 * L * d**2 + v * d) + 4 * L * n**2 * d,
            6 * n * (12 * L * d**2 + v * d) + 12 * L * n**2 * d,
        ),
    ),
    (
        "nothing_recomputed",
        lambda *sizes: (*costs(*sizes)[:2], 3 * costs(*sizes)[1]),
    ),
    ("all_recomputed", lambda *sizes: (*costs(*sizes)[:2], 4 * costs(*sizes)[1])),
    ("training_is_forward", lambda *sizes: (*costs(*sizes)[:2], costs(*sizes)[1])),
    ("backward_as_forward", lambda *sizes: (*costs(*sizes)[:2], short(*sizes))),
    ("output_of_one_token", lambda *sizes: output_once(*sizes)),
    ("one_block", lambda n, d, m, L, v: costs(n, d, m, 1, v)),
    ("hidden_is_4d", lambda n, d, m, L, v: costs(n, d, 4 * d, L, v)),
    ("not_gated", lambda n, d, m, L, v: costs(n, d, 2 * m / 3, L, v)),
    (
        "only_multiplications",
        lambda *sizes: (costs(*sizes)[0], *(x / 2 for x in costs(*sizes)[1:])),
    ),
]
PARTIAL = [(2, lambda *sizes: (*costs(*sizes)[:2], 3 * costs(*sizes)[1]))]
