"""More questions of chapter 11: what flows along a stack of blocks, and how far.

Their answers are two tensors, two matrices, a table and three numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question

# ------------------------------------------------------ 11.4 a sum that nobody notices


def shape_of_sum(value: Any) -> tuple[int, ...] | None:
    """The shape that the two have when added, or None where they can't be."""
    try:
        return np.broadcast_shapes(value[0].shape, value[1].shape)
    except ValueError:
        return None


def unnoticed(args: Args, value: Any) -> bool:
    x, found = value
    return (
        x.shape != found.shape
        and shape_of_sum(value) == x.shape
        and bool(np.abs(found).max() > 1e-3)
    )


def silent_error() -> tuple[Tensor, Tensor]:
    return torch.zeros(3, 4), torch.ones(1, 4)


SILENT = Question(
    id="11.4",
    title="A wrong sum that nobody notices",
    answer="silent_error",
    arguments=(),
    outputs=(
        Output("x", "token d_model", free=True),
        Output("found", "token d_model", free=True),
    ),
    reference=silent_error,
    next_step="choose two shapes with two axes each, and try `(x + found).shape`.",
    parts=(Part("shapes that differ", 2, lambda rng: [()], accepts=unnoticed),),
    mistakes=(
        Mistake(
            "equal_shapes",
            "the two have the same shape: that is how it should be, there is no "
            "mistake to miss",
            lambda: (torch.ones(3, 4), torch.ones(3, 4)),
            lambda args, value: value[0].shape == value[1].shape,
        ),
        Mistake(
            "refused",
            "PyTorch refuses to add these two: that mistake would be noticed at once",
            lambda: (torch.ones(3, 4), torch.ones(3, 5)),
            lambda args, value: shape_of_sum(value) is None,
        ),
        Mistake(
            "stream_changes_shape",
            "the sum has another shape than the stream: the next layer, or the loss, "
            "would notice",
            lambda: (torch.ones(1, 4), torch.ones(3, 4)),
            lambda args, value: shape_of_sum(value) not in (None, value[0].shape),
        ),
        Mistake(
            "nothing_added",
            "the layer found zeros: the sum is right whatever shape they have",
            lambda: (torch.ones(3, 4), torch.zeros(1, 4)),
            lambda args, value: (
                shape_of_sum(value) == value[0].shape
                and bool(np.abs(value[1]).max() <= 1e-3)
            ),
        ),
    ),
)


# -------------------------------------------------- 11.5 a feed-forward layer by hand


def leaky_weights(d_model: int, slope: float) -> tuple[Tensor, Tensor]:
    eye = torch.eye(d_model)
    return torch.cat([eye, -eye], dim=1), torch.cat([eye, -slope * eye], dim=0)


def leaky(x: np.ndarray, slope: float) -> np.ndarray:
    return np.where(x > 0, x, slope * x)


def fit(args: Args, value: Any) -> bool:
    w_1, w_2 = value
    d_model = args[0]
    return w_1.shape == w_2.shape[::-1] and w_1.shape[0] == d_model


def computes(target: Any) -> Any:
    """Tell whether relu(x w_1) w_2 is `target(x, slope)` on many tokens."""

    def check(args: Args, value: Any) -> bool:
        if not fit(args, value):
            return False
        x = np.random.default_rng(0).standard_normal((50, args[0]))
        made = np.maximum(x @ np.asarray(value[0], float), 0) @ np.asarray(value[1])
        return np.allclose(made, target(x, args[1]), atol=1e-4)

    return check


def put_together(first: Any, second: Any) -> Any:
    """Weights that copy x and −x, then take `first` and `second` of the two."""

    def answer(d_model: int, slope: float) -> tuple[Tensor, Tensor]:
        eye = torch.eye(d_model)
        return torch.cat([eye, -eye], 1), torch.cat(
            [first(slope) * eye, second(slope) * eye]
        )

    return answer


def draw_slopes(rng: np.random.Generator) -> list[Args]:
    return [(3, float(rng.uniform(0.2, 0.4))), (5, float(-rng.uniform(0.4, 0.6)))]


LEAKY = Question(
    id="11.5",
    title="A feed-forward layer by hand",
    answer="leaky_weights",
    arguments=("d_model", "slope"),
    outputs=(
        Output("w_1", "d_model d_hidden", free=True),
        Output("w_2", "d_hidden d_model", free=True),
    ),
    reference=leaky_weights,
    next_step="which numbers do you need behind the ReLU, to put the answer together?",
    parts=(
        Part("slope 0.1", 2, lambda rng: [(4, 0.1)], accepts=computes(leaky)),
        Part(
            "any slope and width",
            1,
            draw_slopes,
            accepts=computes(leaky),
            alone="right for slope 0.1, wrong for another slope or width",
        ),
    ),
    mistakes=(
        Mistake(
            "one_copy",
            "negative numbers are lost: the ReLU leaves nothing of them in one copy of "
            "x, so a second set of hidden numbers is needed",
            lambda d_model, slope: (torch.eye(d_model), torch.eye(d_model)),
            computes(lambda x, slope: np.maximum(x, 0)),
        ),
        Mistake(
            "slope_ignored",
            "this is the identity of the chapter: negative numbers come through whole",
            lambda d_model, slope: leaky_weights(d_model, 1.0),
            computes(lambda x, slope: x),
        ),
        Mistake(
            "sign_lost",
            "negative numbers come out with the wrong sign: behind the ReLU stands −x, "
            "which is positive",
            put_together(lambda slope: 1, lambda slope: slope),
            computes(lambda x, slope: np.where(x > 0, x, -slope * x)),
        ),
        Mistake(
            "slope_on_the_positive",
            "the slope acts on the positive numbers; they should come through as they "
            "are",
            put_together(lambda slope: slope, lambda slope: -1),
            computes(lambda x, slope: np.where(x > 0, slope * x, x)),
        ),
        Mistake(
            "slope_before_the_relu",
            "the slope stands before the ReLU: a negative one turns the sign there, "
            "and the wrong half is cut off; put it behind, into the second matrix",
            lambda d_model, slope: (
                torch.cat([torch.eye(d_model), -slope * torch.eye(d_model)], 1),
                torch.cat([torch.eye(d_model), -torch.eye(d_model)]),
            ),
            computes(
                lambda x, slope: np.maximum(x, 0) - np.maximum(-slope * x, 0),
            ),
        ),
        Mistake(
            "laid_out_as_in_nn_linear",
            "the matrices lie as nn.Linear stores them, one row for each output; here "
            "they stand to the right of x, with d_model rows in the first",
            lambda d_model, slope: tuple(w.T for w in leaky_weights(d_model, slope)),
            lambda args, value: (
                not fit(args, value)
                and value[0].shape == value[1].shape[::-1]
                and value[0].shape[1] == args[0]
            ),
        ),
        Mistake(
            "do_not_fit",
            "the two matrices do not fit: w_1 has d_model rows, w_2 has d_model "
            "columns, and w_2 has as many rows as w_1 has columns",
            lambda d_model, slope: (
                torch.cat([torch.eye(d_model), -torch.eye(d_model)], 1),
                torch.eye(d_model),
            ),
            lambda args, value: not fit(args, value),
        ),
    ),
)


# ----------------------------------------------------------- 11.6 who notices a change?

ALL, ITSELF, LATER = "all", "itself", "itself and later"
NOTICED = {
    "layer_norm": ITSELF,
    "batch_norm": ALL,
    "feed_forward": ITSELF,
    "residual_feed_forward": ITSELF,
    "self_attention": ALL,
    "causal_attention": LATER,
    "encoder_block": ALL,
}


def those(answer: str) -> Any:
    names = [name for name, own in NOTICED.items() if own == answer]
    return lambda value: [value.get(name) for name in names]


def noticed_as(**wrong: str) -> Any:
    return lambda: NOTICED | wrong


def says(name: str, *answers: str) -> Any:
    return lambda args, value: value[name] in answers


def incomplete(args: Args, value: Any) -> bool:
    return set(value) != set(NOTICED) or not set(value.values()) <= {ALL, ITSELF, LATER}


WHO = Question(
    id="11.6",
    title="Who notices a change?",
    answer="who_notices",
    arguments=(),
    outputs=(Output("noticed"),),
    reference=lambda: dict(NOTICED),
    next_step="ask of each layer whether it ever looks at another token.",
    parts=(
        Part("only the token itself", 1, lambda rng: [()], view=those(ITSELF)),
        Part("those behind it as well", 1, lambda rng: [()], view=those(LATER)),
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
            "batch_norm_is_layer_norm",
            "batch_norm is taken for layer_norm: its mean and variance run over the "
            "tokens, so that they share them",
            noticed_as(batch_norm=ITSELF),
            says("batch_norm", ITSELF, LATER),
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


# -------------------------------------------------------------- 11.7 predict the sizes

SIZES = (3.0, 16.0, 1.0)


def size_is(index: int, *wrong: float) -> Any:
    return lambda args, value: any(
        abs(float(value[index]) - number) < 0.01 * number for number in wrong
    )


def sized(index: int) -> Any:
    return lambda value: value[index]


PREDICT = Question(
    id="11.7",
    title="How large is the stream?",
    answer="predict_sizes",
    arguments=(),
    outputs=(Output("pre_norm"), Output("residual"), Output("post_norm")),
    reference=lambda: SIZES,
    tolerance=0.01,
    next_step="follow the variance from one sub-layer to the next, then take the root.",
    parts=(
        Part("pre-norm", 1, lambda rng: [()], view=sized(0)),
        Part("residual without norm", 1, lambda rng: [()], view=sized(1)),
        Part("post-norm", 1, lambda rng: [()], view=sized(2)),
    ),
    mistakes=(
        Mistake(
            "variances_throughout",
            "these are variances: right as such, and the size is the root of each",
            lambda: (9, 256, 1),
            lambda args, value: (
                size_is(0, 9)(args, value) and size_is(1, 256)(args, value)
            ),
        ),
        Mistake(
            "sizes_added",
            "the first number adds sizes: of independent numbers it is the variances "
            "that add up",
            lambda: (9, 16, 1),
            size_is(0, 9, 8),
        ),
        Mistake(
            "start_forgotten",
            "the first number leaves out what the stream held before the first "
            "sub-layer",
            lambda: (8**0.5, 16, 1),
            size_is(0, 8**0.5),
        ),
        Mistake(
            "pre_norm_grows_like_residual",
            "the first number doubles the variance each time: here a sub-layer reads "
            "normed tokens, so what it adds does not grow with the stream",
            lambda: (16, 16, 1),
            size_is(0, 16, 256),
        ),
        Mistake(
            "stream_is_normed",
            "the first number is that of a normed stream: in the pre order the norm "
            "stands on the branch, the stream itself is never normed",
            lambda: (1, 16, 1),
            size_is(0, 1),
        ),
        Mistake(
            "variance",
            "the second number is the variance; the size is its root",
            lambda: (3, 256, 1),
            size_is(1, 256),
        ),
        Mistake(
            "residual_miscounted",
            "the second number has one doubling of the variance too few or too many: "
            "count one for each sub-layer",
            lambda: (3, 2**3.5, 1),
            size_is(1, 2**3.5, 2**4.5),
        ),
        Mistake(
            "residual_grows_slowly",
            "the second number adds the same each time: without a norm a sub-layer "
            "adds as much as the stream holds by then",
            lambda: (3, 3, 1),
            size_is(1, 3, 9),
        ),
        Mistake(
            "post_norm_grows",
            "the last number grows: what is the last thing that happens to the stream "
            "in the post order?",
            lambda: (3, 16, 3),
            size_is(2, 3, 2**0.5, 2, 16),
        ),
    ),
)

QUESTIONS = (SILENT, LEAKY, WHO, PREDICT)
