"""`gpt_costs`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from course_utils.evaluation.costs import layer_cost
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def draw_gpt(rng: np.random.Generator) -> Args:
    n, d = rng.permutation(np.array([96, 160, 224, 352, 416, 608]))[:2]
    return int(n), int(d), int(rng.integers(3, 30)), int(rng.integers(700, 9000))


def gpt_costs(
    n: int,
    d: int,
    layers: int,
    pieces: int,
    *,
    attention: float = 4,
    feed_forward: float = 8,
    scores: float = 4,
    embeddings: float = 1,
    outputs: float = 1,
    operations: float = 2,
    passes: float = 3,
) -> tuple[float, float, float]:
    """Count a GPT; the keywords are what a learner may get wrong.

    Matrices of d x d in a block's attention and feed-forward layer, multiples of n^2 d
    for its table, embeddings held, output layers multiplied, operations for a weight,
    forward passes in a training step.
    """
    blocks = layers * (attention + feed_forward) * d * d
    parameters = embeddings * pieces * d + blocks
    products = operations * n * (blocks + outputs * pieces * d)
    forward = products + operations / 2 * scores * layers * n * n * d
    return parameters, forward, passes * forward


def miscounted(**wrong: float) -> Callable[..., tuple[float, float, float]]:
    """The costs of a GPT with one thing counted otherwise."""
    return lambda n, d, layers, pieces: gpt_costs(n, d, layers, pieces, **wrong)


QUESTION = Question(
    id="15.7",
    title="A whole GPT",
    answer="gpt_costs",
    arguments=("n", "d", "layers", "pieces"),
    outputs=(Output("parameters"), Output("forward"), Output("training")),
    reference=lambda n, d, layers, pieces: gpt_costs(n, d, layers, pieces),
    difficulty="medium",
    minutes=10,
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
            only_failure_hint="right but for the training: how many products does the "
            "backward pass need for each one of the forward pass?",
        ),
    ),
    mistakes=(
        Mistake(
            "untied",
            "the embedding is held twice: the output layer uses the same numbers",
            miscounted(embeddings=2),
        ),
        Mistake(
            "no_embedding",
            "the parameters are those of the blocks alone: a vector for each piece has "
            "to be stored as well",
            miscounted(embeddings=0),
        ),
        Mistake(
            "no_output_layer",
            "the forward pass ends before its last product: every token's vector meets "
            "the vectors of all pieces, to give their logits",
            miscounted(outputs=0),
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
            "a block is counted as attention alone; it has a feed-forward layer, which "
            "is the larger part",
            miscounted(feed_forward=0),
        ),
        Mistake(
            "one_matrix_of_two",
            "the feed-forward layer has two matrices: one to the width 4d, and one "
            "back",
            miscounted(feed_forward=4),
        ),
        Mistake(
            "narrow_feed_forward",
            "the feed-forward layer is counted with two d × d matrices; between them "
            "the vectors are 4d wide",
            miscounted(feed_forward=2),
        ),
        Mistake(
            "one_block",
            "this is a model with a single block; there are `layers` of them",
            lambda n, d, layers, pieces: gpt_costs(n, d, 1, pieces),
        ),
        Mistake(
            "only_multiplications",
            "the operations are half of what they should be: every multiplication "
            "comes with an addition",
            miscounted(operations=1),
        ),
        Mistake(
            "forward_and_as_much_back",
            "training is given twice the forward pass. The backward pass alone costs "
            "that: for each product one for the gradient of X and one for that of W",
            miscounted(passes=2),
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


def held(d, layers, pieces):
    """The numbers in a GPT's matrices."""
    return d * (pieces + 12 * layers * d)


def work(n, d, layers, pieces):
    """Its operations forward, and in training."""
    block = layer_cost("attention, naive", n, d).flops + 16 * n * d * d
    forward = layers * block + 2 * n * pieces * d
    return forward, forward + 2 * forward


RIGHT = [lambda n, d, L, v: [held(d, L, v), *work(n, d, L, v)]]
WRONG = [
    ("untied", lambda n, d, L, v: (2 * v * d + 12 * L * d**2, *work(n, d, L, v))),
    ("no_embedding", lambda n, d, L, v: (12 * L * d**2, *work(n, d, L, v))),
    ("no_output_layer", lambda n, d, L, v: (held(d, L, v), *work(n, d, L, 0))),
    ("embedding_multiplied", lambda n, d, L, v: (held(d, L, v), *work(n, d, L, 2 * v))),
    (
        "no_scores",
        lambda n, d, L, v: tuple(k * held(d, L, v) for k in (1, 2 * n, 6 * n)),
    ),
    ("one_block", lambda n, d, L, v: (held(d, 1, v), *work(n, d, 1, v))),
    (
        "only_multiplications",
        lambda n, d, L, v: (held(d, L, v), *(w // 2 for w in work(n, d, L, v))),
    ),
    (
        "forward_and_as_much_back",
        lambda n, d, L, v: (held(d, L, v), *(work(n, d, L, v)[0] * k for k in (1, 2))),
    ),
    (
        "training_is_forward",
        lambda n, d, L, v: (held(d, L, v), *[work(n, d, L, v)[0]] * 2),
    ),
    (
        "one_matrix_of_two",
        lambda n, d, L, v: (
            held(d, L, v) - 4 * L * d**2,
            *(w - k * 8 * n * L * d**2 for w, k in zip(work(n, d, L, v), (1, 3))),
        ),
    ),
]
