"""Questions of chapter 14: patches, their inverse, and gates on channels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from einops import rearrange
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import first, normal, second, sizes

Pair = tuple[Tensor, Tensor]

# -------------------------------------------------------------------- 14.1 patches


def patchify(images: Tensor, size: int) -> Tensor:
    return rearrange(images, "b c (r y) (q x) -> b (r q) (c y x)", y=size, x=size)


def cut(layout: str) -> Any:
    """Cut into patches, with the axes of the result in another order."""

    def wrong(images: Tensor, size: int) -> Tensor:
        return rearrange(images, f"b c (r y) (q x) -> {layout}", y=size, x=size)

    return wrong


def dilated(images: Tensor, size: int) -> Tensor:
    return rearrange(images, "b c (y r) (x q) -> b (r q) (c y x)", y=size, x=size)


def size_as_count(images: Tensor, size: int) -> Tensor:
    return rearrange(images, "b c (r y) (q x) -> b (r q) (c y x)", r=size, q=size)


def channel_stays_in_front(images: Tensor, size: int) -> Tensor:
    return cut("b c r q y x")(images, size).reshape(patchify(images, size).shape)


def draw_images(channels: int) -> Any:
    def draw(rng: np.random.Generator) -> list[Args]:
        cases: list[Args] = []
        for size in (2, 3):
            rows, columns = sizes(rng, 2, least=2)
            shape = channels, size * rows, size * columns
            cases.append((normal(rng, 2, *shape), size))
        return cases

    return draw


PATCHIFY = Question(
    id="14.1",
    title="An image as a sentence of patches",
    answer="patchify",
    arguments=("images", "size"),
    outputs=(Output("patches", "patch d_patch"),),
    reference=patchify,
    next_step="name the four axes inside height and width, then put them in order.",
    parts=(
        Part("grey images", 2, draw_images(1)),
        Part(
            "images in colour",
            1,
            draw_images(3),
            alone="right for one channel, wrong for three: in a patch all numbers of "
            "the first channel come first, then those of the second",
        ),
    ),
    mistakes=(
        Mistake(
            "reshaped",
            "the numbers are taken as they lie in memory: a token is a strip of one "
            "row of the image, and the pixels below it are missing",
            lambda im, s: im.reshape(len(im), -1, im.shape[1] * s * s),
        ),
        Mistake(
            "columns_first",
            "the patches are listed column by column: reading order goes along a row "
            "of patches first",
            cut("b (q r) (c y x)"),
        ),
        Mistake(
            "pixels_transposed",
            "inside a patch the pixels run down its columns: reading order goes along "
            "a row of pixels first",
            cut("b (r q) (c x y)"),
        ),
        Mistake(
            "all_columns_first",
            "patches and pixels both run down the columns: it is the patches of the "
            "image turned over its diagonal",
            cut("b (q r) (c x y)"),
        ),
        Mistake(
            "channels_last",
            "in a patch the channels of one pixel stand side by side: this question "
            "asks for channel by channel",
            cut("b (r q) (y x c)"),
        ),
        Mistake(
            "every_nth_pixel",
            "a token holds pixels from all over the image, each a step apart: in the "
            "pattern the patch's number comes before the pixel's place in it",
            dilated,
        ),
        Mistake(
            "patches_last",
            "features and patches have changed places: every row is to be one patch, "
            "as attention reads tokens from rows",
            cut("b (c y x) (r q)"),
        ),
        Mistake(
            "patches_not_flattened",
            "the patches are cut, but still pictures: a token is one row of numbers",
            cut("b (r q) c y x"),
        ),
        Mistake(
            "size_as_count",
            "`size` is used as the number of patches along a side: it is the number of "
            "pixels along the side of a patch",
            size_as_count,
        ),
        Mistake(
            "channel_stays_in_front",
            "right for one channel; with three, the first tokens hold nothing but the "
            "first channel: move the channel axis behind the two axes that count the "
            "patches before you flatten",
            channel_stays_in_front,
        ),
        Mistake(
            "one_channel_a_token",
            "right for one channel; with three, every channel makes tokens of its own: "
            "a token is to hold the numbers of all channels of its patch",
            cut("b (c r q) (y x)"),
        ),
    ),
    packaged=("patchify",),
)

# ---------------------------------------------------------------- 14.2 the way back


def unpatchify(patches: Tensor, size: int, n_rows: int) -> Tensor:
    layout = "b (r q) (c y x) -> b c (r y) (q x)"
    return rearrange(patches, layout, r=n_rows, y=size, x=size)


def lay(source: str, target: str = "b c (r y) (q x)") -> Any:
    """Lay the patches out as if their axes had been in another order."""

    def wrong(patches: Tensor, size: int, n_rows: int) -> Tensor:
        layout = f"b {source} -> {target}"
        return rearrange(patches, layout, r=n_rows, y=size, x=size)

    return wrong


def reshaped(patches: Tensor, size: int, n_rows: int) -> Tensor:
    return patches.reshape(unpatchify(patches, size, n_rows).shape)


def not_interleaved(patches: Tensor, size: int, n_rows: int) -> Tensor:
    strips = lay("(r q) (c y x)", "b c (r q y x)")(patches, size, n_rows)
    return strips.reshape(unpatchify(patches, size, n_rows).shape)


def channels_split_first(patches: Tensor, size: int, n_rows: int) -> Tensor:
    layout, c = "b (c r q y x) -> b c (r y) (q x)", patches.shape[2] // size**2
    return rearrange(patches.flatten(1), layout, c=c, r=n_rows, y=size, x=size)


def rows_for_columns(patches: Tensor, size: int, n_rows: int) -> Tensor:
    return unpatchify(patches, size, patches.shape[1] // n_rows)


def draw_patches(rng: np.random.Generator) -> list[Args]:
    cases: list[Args] = []
    for size, channels in ((2, 3), (3, 1), (3, 2)):
        rows, columns = sizes(rng, 2, least=2)
        shape = rows * columns, channels * size * size
        cases.append((normal(rng, 2, *shape), size, rows))
    return cases


UNPATCHIFY = Question(
    id="14.2",
    title="Put the patches back",
    answer="unpatchify",
    arguments=("patches", "size", "n_rows"),
    outputs=(Output("images", "channel height width"),),
    reference=unpatchify,
    next_step="find the number of columns and of channels; turn the pattern round.",
    parts=(
        Part("one image", 1, lambda rng: draw_patches(rng)[:1]),
        Part(
            "any sizes",
            2,
            draw_patches,
            alone="right for one size of the image, wrong for others",
        ),
    ),
    mistakes=(
        Mistake(
            "reshaped",
            "the numbers are only given a new shape: the first patch then fills the "
            "first row of the image, instead of a square",
            reshaped,
        ),
        Mistake(
            "rows_for_columns",
            "n_rows is used as the number of patches in a row: it counts the rows of "
            "patches",
            rows_for_columns,
        ),
        Mistake(
            "columns_first",
            "the patches are laid out column by column: patchify listed them row by "
            "row",
            lay("(q r) (c y x)"),
        ),
        Mistake(
            "pixels_transposed",
            "every patch is turned over its diagonal: its numbers run along the rows "
            "of pixels",
            lay("(r q) (c x y)"),
        ),
        Mistake(
            "channels_last",
            "the numbers of a patch are read pixel by pixel: they come channel by "
            "channel",
            lay("(r q) (y x c)"),
        ),
        Mistake(
            "pixels_interleaved",
            "neighbouring pixels of a patch end up far apart: in the height, the "
            "patch's row comes before the pixel's",
            lay("(r q) (c y x)", "b c (y r) (x q)"),
        ),
        Mistake(
            "sides_exchanged",
            "height and width have changed places: the image lies on its side",
            lambda p, s, n: unpatchify(p, s, n).mT,
        ),
        Mistake(
            "not_interleaved",
            "one patch is written out after the other, as a strip: before you flatten, "
            "the pixels' row belongs right behind the patches' row, and the pixels' "
            "column behind the patches' column",
            not_interleaved,
        ),
        Mistake(
            "channels_split_first",
            "right for one channel; with more, the tokens are shared out among the "
            "channels: every patch holds numbers of all channels",
            channels_split_first,
        ),
    ),
    packaged=("unpatchify",),
)

# ------------------------------------------------------------------------- 14.3 gates


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


GATES = Question(
    id="14.3",
    title="Squeeze and excite",
    answer="squeeze_excite",
    arguments=("features", "w_1", "w_2"),
    outputs=(Output("gated", "channel height width"), Output("gates", "channel")),
    reference=squeeze_excite,
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

QUESTIONS = (PATCHIFY, UNPATCHIFY, GATES)
