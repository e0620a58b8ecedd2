"""`squeeze_excite`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.draw import first, normal, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

Pair = tuple[Tensor, Tensor]
Squeeze = Callable[[Tensor, Tensor], Tensor]


def squeeze_excite(features: Tensor, w_1: Tensor, w_2: Tensor, valid: Tensor) -> Pair:
    squeezed = masked_mean(features, valid)
    gates = torch.sigmoid(torch.relu(squeezed @ w_1) @ w_2)
    return features * gates[:, :, None, None], gates


def masked_mean(features: Tensor, valid: Tensor) -> Tensor:
    """The mean of each channel over the places that are part of the image."""
    total = (features * valid[:, None]).sum(dim=(2, 3))
    return total / valid.sum(dim=(1, 2))[:, None]


def gated(features: Tensor, gates: Tensor) -> Pair:
    return features * gates[:, :, None, None], gates


def inside(features: Tensor, w_1: Tensor, w_2: Tensor, valid: Tensor) -> Tensor:
    return torch.relu(masked_mean(features, valid) @ w_1) @ w_2


def squeezed_by(squeeze: Squeeze) -> Callable[..., Pair]:
    """The block with another summary of a channel."""

    def wrong(features: Tensor, w_1: Tensor, w_2: Tensor, valid: Tensor) -> Pair:
        hidden = torch.relu(squeeze(features, valid) @ w_1)
        return gated(features, torch.sigmoid(hidden @ w_2))

    return wrong


def over_the_batch(features: Tensor, valid: Tensor) -> Tensor:
    total = (features * valid[:, None]).sum(dim=(0, 2, 3)) / valid.sum()
    return total.expand(len(features), -1)


def draw_features(rng: np.random.Generator) -> list[Args]:
    cases: list[Args] = []
    for _ in range(2):
        batch, channel, hidden, height, width = sizes(rng, 5, least=3)
        features = normal(rng, batch, channel, height, width) + normal(
            rng, batch, channel, 1, 1
        )
        rows, columns = np.arange(height)[:, None], np.arange(width)
        ends = [(height - n % 3, width - 1 - n % 2) for n in range(batch)]
        valid = np.stack([(rows < y) & (columns < x) for y, x in ends])
        features = np.where(valid[:, None], features, np.float32(3))
        w_1, w_2 = normal(rng, channel, hidden), normal(rng, hidden, channel)
        cases.append((features, w_1, w_2, valid))
    return cases


QUESTION = Question(
    id="14.3",
    title="Squeeze and excite, for images of different sizes",
    answer="squeeze_excite",
    arguments=("features", "w_1", "w_2", "valid"),
    outputs=(Output("gated", "channel height width"), Output("gates", "channel")),
    reference=squeeze_excite,
    difficulty="easy",
    minutes=8,
    next_step="squeeze every channel to one number first: over which places?",
    parts=(
        Part("the gates", 2, draw_features, view=second),
        Part("the gated map", 1, draw_features, view=first),
    ),
    mistakes=(
        Mistake(
            "the_chapters",
            "this is the chapter's block: its means run over all places; here only "
            "those count that `valid` marks as part of the image",
            squeezed_by(lambda f, v: f.mean(dim=(2, 3))),
        ),
        Mistake(
            "divided_by_all",
            "the places outside add nothing, but the sum is divided by the number of "
            "all places: divide by the number of valid ones",
            squeezed_by(lambda f, v: (f * v[:, None]).mean(dim=(2, 3))),
        ),
        Mistake(
            "sum_of_all",
            "the sum runs over all places, and only the divisor counts the valid ones: "
            "leave the others out of the sum too",
            squeezed_by(
                lambda f, v: f.sum(dim=(2, 3)) / v.sum(dim=(1, 2))[:, None],
            ),
        ),
        Mistake(
            "inverted",
            "the means run over the places outside the image: True in `valid` means "
            "that a place is part of it",
            squeezed_by(lambda f, v: masked_mean(f, ~v)),
        ),
        Mistake(
            "one_count_for_all",
            "all images are divided by the same number of places: each has its own "
            "number of valid ones",
            squeezed_by(
                lambda f, v: (f * v[:, None]).sum(dim=(2, 3)) / (v.sum() / len(v))
            ),
        ),
        Mistake(
            "softmax",
            "the gates of an image sum to one: channels do not compete here, each gate "
            "opens by itself",
            lambda f, a, b, v: gated(f, torch.softmax(inside(f, a, b, v), dim=-1)),
            lambda args, value: np.allclose(np.sum(value[1], -1), 1, atol=1e-3),
        ),
        Mistake(
            "no_sigmoid",
            "the gates are any numbers: a gate lies between 0 and 1",
            lambda f, a, b, v: gated(f, inside(f, a, b, v)),
        ),
        Mistake(
            "no_relu",
            "there is nothing between the two matrices: without the relu they are one "
            "matrix",
            lambda f, a, b, v: gated(f, torch.sigmoid(masked_mean(f, v) @ a @ b)),
        ),
        Mistake(
            "relu_last",
            "relu and sigmoid have changed places: what comes last makes the gates",
            lambda f, a, b, v: gated(
                f, torch.relu(torch.sigmoid(masked_mean(f, v) @ a) @ b)
            ),
        ),
        Mistake(
            "sigmoid_between",
            "there is a sigmoid between the two matrices as well: there stands a relu, "
            "and only the gates at the end are squeezed between 0 and 1",
            lambda f, a, b, v: gated(
                f, torch.sigmoid(torch.sigmoid(masked_mean(f, v) @ a) @ b)
            ),
        ),
        Mistake(
            "relu_first",
            "the relu acts on the means: it belongs between the two matrices",
            lambda f, a, b, v: gated(
                f, torch.sigmoid(torch.relu(masked_mean(f, v)) @ a @ b)
            ),
        ),
        Mistake(
            "relu_before_the_sigmoid",
            "a relu stands right before the sigmoid: then no gate can fall below one "
            "half, and none can close",
            lambda f, a, b, v: gated(f, torch.sigmoid(torch.relu(inside(f, a, b, v)))),
        ),
        Mistake(
            "maximum",
            "each channel is squeezed into its largest value: this block takes another "
            "summary of all places",
            squeezed_by(
                lambda f, v: f.masked_fill(~v[:, None], -torch.inf).amax(dim=(2, 3))
            ),
        ),
        Mistake(
            "sum",
            "each channel is squeezed into its sum: the gates would depend on the size "
            "of the image",
            squeezed_by(lambda f, v: (f * v[:, None]).sum(dim=(2, 3))),
        ),
        Mistake(
            "mean_over_the_batch",
            "all images get the same gates: the mean runs over the batch as well",
            squeezed_by(over_the_batch),
            lambda args, value: (
                len(value[1]) > 1 and np.allclose(value[1], value[1][0])
            ),
        ),
        Mistake(
            "gates_not_used",
            "the gates are right, but the map comes back as it was: nothing is "
            "multiplied",
            lambda f, a, b, v: (f.clone(), squeeze_excite(f, a, b, v)[1]),
        ),
        Mistake(
            "gates_added",
            "the gates are added to the map: a gate scales its channel, and at 0 it "
            "closes it",
            lambda f, a, b, v: (
                f + squeeze_excite(f, a, b, v)[1][:, :, None, None],
                squeeze_excite(f, a, b, v)[1],
            ),
        ),
        Mistake(
            "map_added_again",
            "the map is added to the gated map: a gate at 0 would no longer close its "
            "channel",
            lambda f, a, b, v: (
                f + squeeze_excite(f, a, b, v)[0],
                squeeze_excite(f, a, b, v)[1],
            ),
        ),
        Mistake(
            "mean_returned",
            "the squeezed means are multiplied by the gates: it is the whole map, at "
            "every place, that is scaled",
            lambda f, a, b, v: (
                masked_mean(f, v) * squeeze_excite(f, a, b, v)[1],
                squeeze_excite(f, a, b, v)[1],
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def gates_of(
    features, w_1, w_2, valid, squeeze=None, last=torch.sigmoid, middle=torch.relu
):
    squeezed = mean_by_loop(features, valid) if squeeze is None else squeeze(features)
    return last(middle(squeezed.matmul(w_1)).matmul(w_2))


def mean_by_loop(features, valid):
    """Image by image, over what the mask picks."""
    return torch.stack([f[:, v].mean(-1) for f, v in zip(features, valid)])


def scale(features, gates):
    return torch.einsum("bcyx,bc->bcyx", features, gates), gates


def by_nan(features, w_1, w_2, valid):
    """Places outside become NaN, and a mean that skips them."""
    known = torch.where(valid[:, None], features, torch.nan).flatten(2)
    gates = gates_of(features, w_1, w_2, valid, lambda f: known.nanmean(-1))
    return features * gates[..., None, None], gates


def by_weights(features, w_1, w_2, valid):
    """The mean as a product with weights that sum to one, in double precision."""
    f, weights = features.double().flatten(2), valid.flatten(1).double()
    weights = weights / weights.sum(-1, keepdim=True)
    squeezed = torch.einsum("bcp,bp->bc", f, weights)
    hidden = (squeezed @ w_1.double()).clamp(min=0)
    gates = 1 / (1 + torch.exp(-hidden @ w_2.double()))
    return (f * gates[..., None]).view(features.shape), gates


def in_numpy(features, w_1, w_2, valid):
    f, a, b, v = (x.numpy() for x in (features, w_1, w_2, valid))
    means = np.array([[c[m].mean() for c in image] for image, m in zip(f, v)])
    gates = 1 / (1 + np.exp(-np.maximum(means @ a, 0) @ b))
    return f * gates[:, :, None, None], gates


RIGHT = [
    lambda f, a, b, v: scale(f, gates_of(f, a, b, v)),
    by_nan,
    by_weights,
    in_numpy,
]
WRONG = [
    (
        "the_chapters",
        lambda f, a, b, v: scale(f, gates_of(f, a, b, v, lambda g: g.mean((-1, -2)))),
    ),
    (
        "divided_by_all",
        lambda f, a, b, v: scale(
            f, gates_of(f, a, b, v, lambda g: g.where(v[:, None], 0).mean((2, 3)))
        ),
    ),
    ("inverted", lambda f, a, b, v: scale(f, gates_of(f, a, b, ~v))),
    (
        "softmax",
        lambda f, a, b, v: scale(
            f, gates_of(f, a, b, v, last=lambda z: F.softmax(z, -1))
        ),
    ),
    ("no_sigmoid", lambda f, a, b, v: scale(f, gates_of(f, a, b, v, last=lambda z: z))),
    ("no_relu", lambda f, a, b, v: scale(f, gates_of(f, a, b, v, middle=lambda z: z))),
    (
        "sigmoid_between",
        lambda f, a, b, v: scale(f, gates_of(f, a, b, v, middle=torch.sigmoid)),
    ),
    (
        "relu_before_the_sigmoid",
        lambda f, a, b, v: scale(
            f, gates_of(f, a, b, v, last=lambda z: z.clamp_min(0).sigmoid())
        ),
    ),
    (
        "map_added_again",
        lambda f, a, b, v: (
            f * (1 + gates_of(f, a, b, v)[..., None, None]),
            gates_of(f, a, b, v),
        ),
    ),
    (
        "sum",
        lambda f, a, b, v: scale(
            f, gates_of(f, a, b, v, lambda g: g.where(v[:, None], 0).sum((2, 3)))
        ),
    ),
    ("gates_not_used", lambda f, a, b, v: (f * 1, gates_of(f, a, b, v))),
]
