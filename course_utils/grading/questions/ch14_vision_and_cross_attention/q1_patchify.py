"""`patchify`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


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


QUESTION = Question(
    id="14.1",
    title="An image as a sentence of patches",
    answer="patchify",
    arguments=("images", "size"),
    outputs=(Output("patches", "patch d_patch"),),
    reference=patchify,
    difficulty="medium",
    minutes=8,
    next_step="name the four axes inside height and width, then put them in order.",
    parts=(
        Part("grey images", 2, draw_images(1)),
        Part(
            "images in colour",
            1,
            draw_images(3),
            only_failure_hint="right for one channel, wrong for three: in a patch all "
            "numbers of the first channel come first, then those of the second",
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


# ----------------------------------------------------------------------- specimens


def squares(images, size):
    """All patches, cut out one after the other: (row, column) to a square."""
    rows, columns = images.shape[2] // size, images.shape[3] // size
    return {
        (r, q): images[:, :, r * size : (r + 1) * size, q * size : (q + 1) * size]
        for r in range(rows)
        for q in range(columns)
    }


def by_squares(images, size, flat=lambda s: s.reshape(len(s), -1), down=False):
    cut = squares(images, size)
    order = sorted(cut, key=lambda place: place[::-1]) if down else sorted(cut)
    return torch.stack([flat(cut[place]) for place in order], dim=1)


def unfolded_only(images, size):
    """Cut by `unfold`, and flattened with the channel axis still in front."""
    windows = images.unfold(2, size, size).unfold(3, size, size)
    return windows.reshape(len(images), -1, images.shape[1] * size * size)


RIGHT = [by_squares, lambda im, s: F.unfold(im, s, stride=s).mT]
WRONG = [
    (
        "reshaped",
        lambda im, s: im.flatten().view(len(im), -1, im[0, :, :s, :s].numel()),
    ),
    ("columns_first", lambda im, s: by_squares(im, s, down=True)),
    (
        "pixels_transposed",
        lambda im, s: by_squares(im, s, lambda p: p.mT.reshape(len(p), -1)),
    ),
    (
        "channels_last",
        lambda im, s: by_squares(im, s, lambda p: p.movedim(1, -1).flatten(1)),
    ),
    ("patches_last", lambda im, s: F.unfold(im, s, stride=s)),
    ("patches_not_flattened", lambda im, s: by_squares(im, s, lambda p: p)),
    (
        "size_as_count",
        lambda im, s: torch.stack(
            [
                strip.flatten(1)
                for band in im.chunk(s, dim=2)
                for strip in band.chunk(s, dim=3)
            ],
            dim=1,
        ),
    ),
    ("channel_stays_in_front", unfolded_only),
    (
        "one_channel_a_token",
        lambda im, s: torch.cat([by_squares(c, s) for c in im.split(1, dim=1)], dim=1),
    ),
]
