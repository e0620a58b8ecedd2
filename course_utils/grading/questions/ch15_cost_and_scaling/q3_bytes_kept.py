"""`bytes_kept`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np

from course_utils.grading.questions.draw import first, second
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def draw_models(rng: np.random.Generator) -> list[Args]:
    """Two models, one for each size of a number."""
    return [(*draw_model(rng), size) for size in (2, 4)]


def draw_model(rng: np.random.Generator) -> Args:
    n = int(rng.integers(100, 9000))
    d, layers = int(64 * rng.integers(2, 30)), int(rng.integers(3, 40))
    return n, d, layers, int(rng.integers(2, 9))


def bytes_kept(n: int, d: int, layers: int, batch: int, size: int) -> tuple[int, int]:
    return 2 * n * d * layers * batch * size, d * layers * batch * size


QUESTION = Question(
    id="15.3",
    title="Cache against state",
    answer="bytes_kept",
    arguments=("n", "d", "layers", "batch", "size"),
    outputs=(Output("cache"), Output("state")),
    reference=bytes_kept,
    difficulty="easy",
    minutes=5,
    next_step="how many numbers does one layer keep for one text? Then multiply.",
    parts=(
        Part("cache", 1, draw_models, first),
        Part("state", 1, draw_models, second),
    ),
    mistakes=(
        Mistake(
            "state_is_a_matrix",
            "the state is counted as d × d numbers: this recurrence keeps one vector "
            "of d numbers",
            lambda n, d, layers, batch, size: (
                2 * n * d * layers * batch * size,
                d * d * layers * batch * size,
            ),
        ),
        Mistake(
            "one_token_too_many",
            "one token too many is in the cache: n tokens are there, and the next one "
            "comes after",
            lambda n, d, layers, batch, size: (
                2 * (n + 1) * d * layers * batch * size,
                d * layers * batch * size,
            ),
        ),
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
        Mistake(
            "always_four_bytes",
            "a number is taken to have four bytes, wherever that is: `size` says how "
            "many it has",
            lambda n, d, layers, batch, size: bytes_kept(n, d, layers, batch, 4),
        ),
    ),
    tolerance=1e-6,
)


# ----------------------------------------------------------------------- specimens

RIGHT = [lambda n, d, L, b, s: (s * b * L * n * (d + d), s * b * L * d)]
WRONG = [
    (
        "one_token_too_many",
        lambda n, d, L, b, s: (s * b * L * d * (2 * n + 2), b * L * d * s),
    ),
    ("keys_only", lambda n, d, L, b, s: (b * L * n * d * s, b * L * d * s)),
    ("queries_too", lambda n, d, L, b, s: (b * L * n * d * s * 3, b * L * d * s)),
    ("one_layer", lambda n, d, L, b, s: (b * 2 * n * d * s, b * d * s)),
    ("one_text", lambda n, d, L, b, s: (L * 2 * n * d * s, L * d * s)),
    ("numbers_not_bytes", lambda n, d, L, b, s: (b * L * 2 * n * d, b * L * d)),
    ("state_grows", lambda n, d, L, b, s: (2 * b * L * n * d * s, b * L * n * d * s)),
    ("state_of_one_layer", lambda n, d, L, b, s: (2 * b * L * n * d * s, b * d * s)),
    ("state_twice", lambda n, d, L, b, s: (2 * b * L * n * d * s, b * L * (d + d) * s)),
    ("order", lambda n, d, L, b, s: (b * L * d * s, 2 * b * L * d * s * n)),
    ("weights_kept", lambda n, d, L, b, s: (b * L * n**2 * s, b * L * d * s)),
]
