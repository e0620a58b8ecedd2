"""`squeeze_excite`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.draw import first, normal, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

Pair = tuple[Tensor, Tensor]


def squeeze_excite(features: Tensor, w_1: Tensor, w_2: Tensor) -> Pair:
    gates = torch.sigmoid(torch.relu(features.mean(dim=(2, 3)) @ w_1) @ w_2)
    return features * gates[:, :, None, None], gates


def gated(features: Tensor, gates: Tensor) -> Pair:
    return features * gates[:, :, None, None], gates


def inside(features: Tensor, w_1: Tensor, w_2: Tensor) -> Tensor:
    return torch.relu(features.mean(dim=(2, 3)) @ w_1) @ w_2


def over_the_batch(features: Tensor, w_1: Tensor, w_2: Tensor) -> Pair:
    squeezed = features.mean(dim=(0, 2, 3), keepdim=True).flatten(1)
    gates = torch.sigmoid(torch.relu(squeezed @ w_1) @ w_2)
    return gated(features, gates.expand(len(features), -1))


def draw_features(rng: np.random.Generator) -> list[Args]:
    cases: list[Args] = []
    for _ in range(2):
        batch, channel, hidden, height, width = sizes(rng, 5, least=2)
        features = normal(rng, batch, channel, height, width) + normal(
            rng, batch, channel, 1, 1
        )
        w_1, w_2 = normal(rng, channel, hidden), normal(rng, hidden, channel)
        cases.append((features, w_1, w_2))
    return cases


QUESTION = Question(
    id="14.3",
    title="Squeeze and excite",
    answer="squeeze_excite",
    arguments=("features", "w_1", "w_2"),
    outputs=(Output("gated", "channel height width"), Output("gates", "channel")),
    reference=squeeze_excite,
    difficulty="easy",
    minutes=6,
    next_step="squeeze every channel to one number first: over which axes?",
    parts=(
        Part("the gates", 2, draw_features, view=second),
        Part("the gated map", 1, draw_features, view=first),
    ),
    mistakes=(
        Mistake(
            "softmax",
            "the gates of an image sum to one: channels do not compete here, each gate "
            "opens by itself",
            lambda f, a, b: gated(f, torch.softmax(inside(f, a, b), dim=-1)),
            lambda args, value: np.allclose(np.sum(value[1], -1), 1, atol=1e-3),
        ),
        Mistake(
            "no_sigmoid",
            "the gates are any numbers: a gate lies between 0 and 1",
            lambda f, a, b: gated(f, inside(f, a, b)),
        ),
        Mistake(
            "no_relu",
            "there is nothing between the two matrices: without the relu they are one "
            "matrix",
            lambda f, a, b: gated(f, torch.sigmoid(f.mean(dim=(2, 3)) @ a @ b)),
        ),
        Mistake(
            "relu_last",
            "relu and sigmoid have changed places: what comes last makes the gates",
            lambda f, a, b: gated(
                f, torch.relu(torch.sigmoid(f.mean(dim=(2, 3)) @ a) @ b)
            ),
        ),
        Mistake(
            "sigmoid_between",
            "there is a sigmoid between the two matrices as well: there stands a relu, "
            "and only the gates at the end are squeezed between 0 and 1",
            lambda f, a, b: gated(
                f, torch.sigmoid(torch.sigmoid(f.mean(dim=(2, 3)) @ a) @ b)
            ),
        ),
        Mistake(
            "relu_first",
            "the relu acts on the means: it belongs between the two matrices",
            lambda f, a, b: gated(
                f, torch.sigmoid(torch.relu(f.mean(dim=(2, 3))) @ a @ b)
            ),
        ),
        Mistake(
            "relu_before_the_sigmoid",
            "a relu stands right before the sigmoid: then no gate can fall below one "
            "half, and none can close",
            lambda f, a, b: gated(f, torch.sigmoid(torch.relu(inside(f, a, b)))),
        ),
        Mistake(
            "maximum",
            "each channel is squeezed into its largest value: this block takes another "
            "summary of all places",
            lambda f, a, b: gated(
                f, torch.sigmoid(torch.relu(f.amax(dim=(2, 3)) @ a) @ b)
            ),
        ),
        Mistake(
            "sum",
            "each channel is squeezed into its sum: the gates would depend on the size "
            "of the image",
            lambda f, a, b: gated(
                f, torch.sigmoid(torch.relu(f.sum(dim=(2, 3)) @ a) @ b)
            ),
        ),
        Mistake(
            "mean_over_the_batch",
            "all images get the same gates: the mean runs over the batch as well",
            over_the_batch,
            lambda args, value: (
                len(value[1]) > 1 and np.allclose(value[1], value[1][0])
            ),
        ),
        Mistake(
            "gates_not_used",
            "the gates are right, but the map comes back as it was: nothing is "
            "multiplied",
            lambda f, a, b: (f.clone(), squeeze_excite(f, a, b)[1]),
        ),
        Mistake(
            "gates_added",
            "the gates are added to the map: a gate scales its channel, and at 0 it "
            "closes it",
            lambda f, a, b: (
                f + squeeze_excite(f, a, b)[1][:, :, None, None],
                squeeze_excite(f, a, b)[1],
            ),
        ),
        Mistake(
            "map_added_again",
            "the map is added to the gated map: a gate at 0 would no longer close its "
            "channel",
            lambda f, a, b: (
                f + squeeze_excite(f, a, b)[0],
                squeeze_excite(f, a, b)[1],
            ),
        ),
        Mistake(
            "mean_returned",
            "the squeezed means are multiplied by the gates: it is the whole map, at "
            "every place, that is scaled",
            lambda f, a, b: (
                f.mean(dim=(2, 3)) * squeeze_excite(f, a, b)[1],
                squeeze_excite(f, a, b)[1],
            ),
        ),
    ),
    packaged=("SqueezeExcite",),
)


# ----------------------------------------------------------------------- specimens


def gates_of(features, w_1, w_2, squeeze=None, last=torch.sigmoid, middle=torch.relu):
    squeezed = features.flatten(2).mean(-1) if squeeze is None else squeeze(features)
    return last(middle(squeezed.matmul(w_1)).matmul(w_2))


def scale(features, gates):
    return torch.einsum("bcyx,bc->bcyx", features, gates), gates


RIGHT = [lambda f, a, b: scale(f, gates_of(f, a, b))]
WRONG = [
    (
        "softmax",
        lambda f, a, b: scale(f, gates_of(f, a, b, last=lambda z: F.softmax(z, -1))),
    ),
    ("no_sigmoid", lambda f, a, b: scale(f, gates_of(f, a, b, last=lambda z: z))),
    ("no_relu", lambda f, a, b: scale(f, gates_of(f, a, b, middle=lambda z: z))),
    (
        "sigmoid_between",
        lambda f, a, b: scale(f, gates_of(f, a, b, middle=torch.sigmoid)),
    ),
    (
        "relu_first",
        lambda f, a, b: scale(
            f,
            gates_of(
                f, a, b, lambda g: g.mean((2, 3)).clamp_min(0), middle=lambda z: z
            ),
        ),
    ),
    (
        "relu_before_the_sigmoid",
        lambda f, a, b: scale(
            f, gates_of(f, a, b, last=lambda z: z.clamp_min(0).sigmoid())
        ),
    ),
    (
        "map_added_again",
        lambda f, a, b: (
            f * (1 + gates_of(f, a, b)[..., None, None]),
            gates_of(f, a, b),
        ),
    ),
    (
        "maximum",
        lambda f, a, b: scale(
            f, gates_of(f, a, b, lambda g: F.adaptive_max_pool2d(g, 1)[..., 0, 0])
        ),
    ),
    (
        "sum",
        lambda f, a, b: scale(f, gates_of(f, a, b, lambda g: g.flatten(2).sum(-1))),
    ),
    ("gates_not_used", lambda f, a, b: (f * 1, gates_of(f, a, b))),
    (
        "mean_over_the_batch",
        lambda f, a, b: scale(
            f,
            gates_of(
                f, a, b, lambda g: g.flatten(2).mean(-1).mean(0).expand(len(g), -1)
            ),
        ),
    ),
]
