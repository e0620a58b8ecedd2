"""`who_notices`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

ALL, ITSELF, LATER = "all", "itself", "itself and later"
NOTICED = {
    "layer_norm": ITSELF,
    "sentence_norm": ALL,
    "feed_forward": ITSELF,
    "residual_feed_forward": ITSELF,
    "self_attention": ALL,
    "causal_attention": LATER,
    "encoder_block": ALL,
}


def those(answer: str) -> Any:
    """Look at which layers get one answer: no more and no fewer may."""
    return lambda value: [value.get(name) == answer for name in NOTICED]


def noticed_as(**wrong: str) -> Any:
    return lambda: NOTICED | wrong


def says(name: str, *answers: str) -> Any:
    return lambda args, value: value[name] in answers


def incomplete(args: Args, value: Any) -> bool:
    return set(value) != set(NOTICED) or not set(value.values()) <= {ALL, ITSELF, LATER}


QUESTION = Question(
    id="11.6",
    title="Who notices a change?",
    answer="who_notices",
    arguments=(),
    outputs=(Output("noticed"),),
    reference=lambda: dict(NOTICED),
    difficulty="easy",
    minutes=6,
    next_step="ask of each layer whether it ever looks at another token.",
    parts=(
        Part("only the token itself", 1, lambda rng: [()], view=those(ITSELF)),
        Part("those after it as well", 1, lambda rng: [()], view=those(LATER)),
        Part("all tokens", 1, lambda rng: [()], view=those(ALL)),
    ),
    mistakes=(
        Mistake(
            "not_all_or_other_words",
            "the answer names each of the seven layers once, and says “itself”, "
            "“itself and later” or “all”",
            lambda: {"layer_norm": ITSELF},
            incomplete,
        ),
        Mistake(
            "feed_forward_mixes",
            "the feed-forward layer is taken to see other tokens: it applies the same "
            "two matrices to every token by itself",
            noticed_as(feed_forward=ALL),
            says("feed_forward", ALL, LATER),
        ),
        Mistake(
            "layer_norm_mixes",
            "layer_norm is taken to see other tokens: over which axis do its mean and "
            "variance run?",
            noticed_as(layer_norm=ALL),
            says("layer_norm", ALL, LATER),
        ),
        Mistake(
            "residual_mixes",
            "the residual sum is taken to mix tokens: to each token is added what was "
            "found for that token",
            noticed_as(residual_feed_forward=ALL),
            says("residual_feed_forward", ALL, LATER),
        ),
        Mistake(
            "sentence_norm_is_layer_norm",
            "sentence_norm is taken for layer_norm: its mean and variance run over the "
            "tokens, so that they share them",
            noticed_as(sentence_norm=ITSELF),
            says("sentence_norm", ITSELF, LATER),
        ),
        Mistake(
            "attention_is_private",
            "self_attention is where tokens hear of each other: a changed token is a "
            "changed key and value for everybody",
            noticed_as(self_attention=ITSELF),
            says("self_attention", ITSELF, LATER),
        ),
        Mistake(
            "mask_forgotten",
            "causal_attention hides some tokens from some: who may look at the one "
            "that changed?",
            noticed_as(causal_attention=ALL),
            says("causal_attention", ALL, ITSELF),
        ),
        Mistake(
            "block_without_attention",
            "the encoder_block has a layer in it that mixes tokens",
            noticed_as(encoder_block=ITSELF),
            says("encoder_block", ITSELF, LATER),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens

RIGHT = [
    lambda: NOTICED | {"layer_norm": "Itself"},  # capitals make no other word
    lambda: dict(reversed(NOTICED.items())),
]
WRONG = [
    ("not_all_or_other_words", lambda: NOTICED | {"layer_norm": "own"}),
    (
        "feed_forward_mixes",
        lambda: NOTICED | {"feed_forward": ALL, "residual_feed_forward": ALL},
    ),
    ("mask_forgotten", lambda: NOTICED | {"causal_attention": ITSELF}),
    ("block_without_attention", lambda: NOTICED | {"encoder_block": LATER}),
]
