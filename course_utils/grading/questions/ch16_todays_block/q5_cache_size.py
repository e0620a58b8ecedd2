"""`cache_size`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

Formula = Callable[..., float]


def cache_size(
    n_layers: int, d_model: int, n_heads: int, n_kv_heads: int, length: int, window: int
) -> int:
    tokens = (n_layers // 2) * (length + min(length, window - 1))
    return 2 * tokens * n_kv_heads * (d_model // n_heads) * 2


def both(f: Formula, tokens: Callable[[int, int], float]) -> Formula:
    """Bytes from what a pair of layers keeps, and from the width of a key."""
    return lambda layers, d, h, g, n, w: f(d, h, g) * tokens(n, w) * layers // 2


def per_token(d: int, h: int, g: int) -> int:
    return 4 * g * d // h


def pair(n: int, w: int) -> int:
    return n + min(n, w - 1)


def draw_models(rng: np.random.Generator) -> list[Args]:
    drawn: list[Args] = []
    for share in (2, 4, 8):
        groups, d_head = (int(n) for n in rng.permutation([3, 5, 7])[:2])
        heads = groups * share
        layers, window = 2 * int(rng.integers(2, 9)), int(rng.integers(20, 40))
        length = window * int(rng.integers(3, 6))
        drawn.append((layers, heads * 2 * d_head, heads, groups, length, window))
    return drawn


def draw_short(rng: np.random.Generator) -> list[Args]:
    return [(*args[:4], args[5] // 2, args[5]) for args in draw_models(rng)]


QUESTION = Question(
    id="16.5",
    title="What a model's cache weighs",
    answer="cache_size",
    arguments=("n_layers", "d_model", "n_heads", "n_kv_heads", "length", "window"),
    outputs=(Output("bytes"),),
    reference=cache_size,
    difficulty="medium",
    minutes=8,
    next_step="how many numbers does one layer keep for one token? Then count tokens, "
    "for a layer with a window and one without.",
    parts=(
        Part("long texts", 2, draw_models),
        Part(
            "texts shorter than the window",
            1,
            draw_short,
            only_failure_hint="right for long texts: a window can't hold more tokens "
            "than the text has",
        ),
    ),
    mistakes=(
        Mistake(
            "one_wide_head",
            "a head is taken to be d_model / n_kv_heads wide, and one is kept: its "
            "width is d_model / n_heads, and `n_kv_heads` of them are kept",
            both(lambda d, h, g: 4 * d // g, pair),
        ),
        Mistake(
            "keys_only",
            "this is half of it: keys and values are kept, and a number of 16 bits is "
            "two bytes",
            both(lambda d, h, g: 2 * g * d // h, pair),
        ),
        Mistake(
            "heads_of_queries",
            "as many heads are kept as there are of queries: only the key-value heads "
            "are, each as wide as a head of queries",
            both(lambda d, h, g: 4 * d, pair),
        ),
        Mistake(
            "four_bytes",
            "this is twice as much: a number of 16 bits has two bytes, keys and values "
            "are two numbers, and each kind of layer makes half of all layers",
            both(lambda d, h, g: 8 * g * d // h, pair),
        ),
        Mistake(
            "window_ignored",
            "every layer keeps the whole text: every second one has a window",
            both(per_token, lambda n, w: 2 * n),
        ),
        Mistake(
            "window_everywhere",
            "every layer keeps a window only: every second one sees the whole text",
            both(per_token, lambda n, w: 2 * min(n, w - 1)),
        ),
        Mistake(
            "one_more_in_the_window",
            "a layer with a window keeps one token too many: the next token itself is "
            "one of those it sees",
            both(per_token, lambda n, w: n + min(n, w)),
        ),
        Mistake(
            "bits",
            "these are bits: a byte has eight of them",
            both(lambda d, h, g: 32 * g * d // h, pair),
        ),
        Mistake(
            "window_misread",
            "a layer with a window keeps too many tokens: it holds at most `window` - "
            "1, and never more than the text has",
            both(per_token, lambda n, w: n + max(n, w - 1)),
            lambda args, value: any(
                float(value) == wrong(*args)
                for wrong in (
                    both(per_token, lambda n, w: n + max(n, w - 1)),
                    both(per_token, lambda n, w: n + min(n, w + 1)),
                    both(per_token, lambda n, w: n + w),
                    both(per_token, lambda n, w: n + w + 1),
                )
            ),
        ),
        Mistake(
            "new_token_left_out",
            "the last token is left out: after `length` tokens all of them are kept, "
            "and the next one comes on top",
            both(per_token, lambda n, w: n - 1 + min(n - 1, w - 1)),
        ),
        Mistake(
            "one_layer",
            "this is one layer with and one without a window: the model has more",
            lambda layers, d, h, g, n, w: per_token(d, h, g) * pair(n, w),
        ),
        Mistake(
            "width_not_divided",
            "a key is taken to be as wide as the model: the heads of queries share "
            "that width",
            both(lambda d, h, g: 4 * g * d, pair),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def layer_by_layer(n_layers, d_model, n_heads, n_kv_heads, length, window):
    total = 0
    for layer in range(n_layers):
        kept = min(length, window - 1) if layer % 2 == 0 else length
        total += 2 * n_kv_heads * (d_model / n_heads) * kept * 2
    return total


RIGHT = [layer_by_layer, lambda *a: np.float64(layer_by_layer(*a))]
WRONG = [
    (
        "one_wide_head",
        lambda a, b, c, d, n, w: layer_by_layer(a, b * c // d, c, d, n, w) // d,
    ),
    ("bits", lambda *a: layer_by_layer(*a) * 8),
    (
        "window_misread",
        lambda a, b, c, d, n, w: layer_by_layer(a, b, c, d, n, w + 2),
    ),
    (
        "new_token_left_out",
        lambda a, b, c, d, n, w: layer_by_layer(a, b, c, d, n - 1, w),
    ),
    ("keys_only", lambda *a: layer_by_layer(*a) / 2),
    ("four_bytes", lambda *a: layer_by_layer(*a) * 2),
    ("heads_of_queries", lambda a, b, c, d, e, f: layer_by_layer(a, b, c, c, e, f)),
    ("window_ignored", lambda a, b, c, d, e, f: layer_by_layer(a, b, c, d, e, e + 1)),
    (
        "one_more_in_the_window",
        lambda a, b, c, d, n, w: layer_by_layer(a, b, c, d, n, w + 1),
    ),
]
PARTIAL = [(2, lambda a, b, c, d, n, w: a * (n + w - 1) * 2 * d * b // c)]
