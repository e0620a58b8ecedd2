"""`patchify`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question
from course_utils.models.vision import patchify as package_patchify


def patchify(images: Tensor, size: int, stride: int) -> Tensor:
    return cut("b (r q) (c y x)")(images, size, stride)


def cut(layout: str) -> Any:
    """Cut into patches that may overlap, with their axes in any order."""

    def answer(images: Tensor, size: int, stride: int) -> Tensor:
        windows = images.unfold(2, size, stride).unfold(3, size, stride)
        return rearrange(windows, f"b c r q y x -> {layout}")

    return answer


def channel_stays_in_front(images: Tensor, size: int, stride: int) -> Tensor:
    shape = patchify(images, size, stride).shape
    return cut("b c r q y x")(images, size, stride).reshape(shape)


def dilated(images: Tensor, size: int, stride: int) -> Tensor:
    """Patches next to each other, of pixels that lie `stride` apart."""
    reach = (size - 1) * stride + 1
    windows = images.unfold(2, reach, 1).unfold(3, reach, 1)[..., ::stride, ::stride]
    return rearrange(windows, "b c r q y x -> b (r q) (c y x)")


def every_start(images: Tensor, size: int, stride: int) -> Tensor:
    """A patch at every multiple of the stride, filled up with zeros at the edge."""
    down, right = (
        (math.ceil(n / stride) - 1) * stride + size - n for n in images.shape[2:]
    )
    return patchify(F.pad(images, (0, right, 0, down)), size, stride)


def rounded_up(images: Tensor, size: int, stride: int) -> Tensor:
    """The last patch is kept where a part of it lies inside the image."""
    down, right = (-(n - size) % stride for n in images.shape[2:])
    return patchify(F.pad(images, (0, right, 0, down)), size, stride)


def twice_the_stride(images: Tensor, size: int, stride: int) -> Tensor:
    """As many patches as if each overlapped the next by one stride."""
    rows, columns = (n // stride - 1 for n in images.shape[2:])
    height, width = (stride * (n - 1) + size for n in (rows, columns))
    down, right = height - images.shape[2], width - images.shape[3]
    return patchify(F.pad(images, (0, right, 0, down)), size, stride)


def draw_images(channels: int) -> Any:
    def draw(rng: np.random.Generator) -> list[Args]:
        cases: list[Args] = []
        for size, stride, left_over in ((4, 2, 0), (5, 2, 1), (5, 3, 0)):
            height, width = (
                stride * (n - 1) + size + left_over for n in sizes(rng, 2, least=4)
            )
            cases.append((normal(rng, 2, channels, height, width), size, stride))
        return cases

    return draw


def draw_apart(rng: np.random.Generator) -> list[Args]:
    """Patches that touch, and patches with a gap between them."""
    return [(normal(rng, 2, 3, 6, 12), 3, 3), (normal(rng, 2, 2, 7, 12), 2, 5)]


QUESTION = Question(
    id="14.1",
    title="An image as a sentence of patches that overlap",
    answer="patchify",
    arguments=("images", "size", "stride"),
    outputs=(Output("patches", "patch d_patch"),),
    reference=patchify,
    difficulty="medium",
    minutes=10,
    next_step="how many patches fit in a row? Cut them out, put them in reading order, "
    "and flatten each.",
    parts=(
        Part("grey images", 1, draw_images(1)),
        Part(
            "images in colour",
            1,
            draw_images(3),
            only_failure_hint="right for one channel, wrong for three: in a patch all "
            "numbers of the first channel come first, then those of the second",
        ),
        Part(
            "patches that touch, or lie apart",
            1,
            draw_apart,
            only_failure_hint="right where patches overlap, wrong where they touch or "
            "lie apart: count the starts, 0, stride, 2·stride, …, with room for a "
            "whole patch",
        ),
    ),
    mistakes=(
        Mistake(
            "one_fewer_each_way",
            "each way there is one patch fewer than fits: between the first patch and "
            "the last lie (side - size) / stride steps, and there is one patch more",
            lambda im, size, stride: patchify(
                im[..., : (im.shape[2] - size) // stride * stride + size - 1, :][
                    ..., : (im.shape[3] - size) // stride * stride + size - 1
                ],
                size,
                stride,
            ),
        ),
        Mistake(
            "the_chapters",
            "this is the chapter's `patchify`, whose patches stand side by side: here "
            "a new one begins every `stride` pixels",
            lambda images, size, stride: cut("b (r q) (c y x)")(images, size, size),
        ),
        Mistake(
            "size_and_stride_exchanged",
            "`size` and `stride` have changed places: `size` is the side of a patch, "
            "`stride` the way from one start to the next",
            lambda im, size, stride: patchify(im, stride, size),
        ),
        Mistake(
            "stride_as_size",
            "the patches are `stride` pixels wide: a patch is `size` wide, and reaches "
            "into the next",
            lambda im, size, stride: patchify(im, stride, stride),
        ),
        Mistake(
            "every_pixel",
            "a patch begins at every pixel: the starts lie `stride` apart",
            lambda im, size, stride: patchify(im, size, 1),
        ),
        Mistake(
            "last_missing",
            "the last row and the last column of patches are missing: a patch may end "
            "at the very edge of the image",
            lambda im, size, stride: patchify(im[..., :-1, :-1], size, stride),
        ),
        Mistake(
            "beyond_the_edge",
            "there are patches that reach beyond the edge, filled up with zeros: only "
            "those that lie inside the image count",
            every_start,
        ),
        Mistake(
            "rounded_up",
            "where the last patch doesn't fit there is one all the same, filled up "
            "with zeros: only patches that lie inside the image count",
            rounded_up,
        ),
        Mistake(
            "twice_the_stride",
            "the number of patches is right where they overlap by one stride alone: "
            "count the starts that leave room for `size` pixels",
            twice_the_stride,
        ),
        Mistake(
            "dilated",
            "the stride lies between the pixels of a patch: its pixels are neighbours, "
            "and the *patches* begin `stride` apart",
            dilated,
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


def squares(images, size, stride):
    """All patches, cut out one after the other: (row, column) to a square."""
    height, width = images.shape[2:]
    return {
        (y, x): images[:, :, y : y + size, x : x + size]
        for y in range(0, height - size + 1, stride)
        for x in range(0, width - size + 1, stride)
    }


def by_squares(images, size, stride, flat=lambda s: s.reshape(len(s), -1), down=False):
    cut = squares(images, size, stride)
    order = sorted(cut, key=lambda place: place[::-1]) if down else sorted(cut)
    return torch.stack([flat(cut[place]) for place in order], dim=1)


def unfolded_only(images, size, stride):
    """Cut by `unfold`, and flattened with the channel axis still in front."""
    windows = images.unfold(2, size, stride).unfold(3, size, stride)
    return windows.reshape(len(images), -1, images.shape[1] * size * size)


def in_numpy(images, size, stride):
    """Windows at every pixel, then every stride-th of them."""
    view = np.lib.stride_tricks.sliding_window_view(
        images.numpy(), (size, size), (2, 3)
    )
    picked = view[:, :, ::stride, ::stride].transpose(0, 2, 3, 1, 4, 5)
    return picked.reshape(len(picked), picked.shape[1] * picked.shape[2], -1).copy()


def by_index(images, size, stride):
    """All rows and columns of all patches as two tables of numbers."""
    height, width = images.shape[2:]
    ys, xs = (
        torch.arange(0, n - size + 1, stride)[:, None] + torch.arange(size)
        for n in (height, width)
    )
    cut = images.double()[:, :, ys[:, None, :, None], xs[None, :, None, :]]
    return cut.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def filled(images, size, stride):
    """The image with zeros behind it, so that the patches fit."""
    sides = [size + stride * math.ceil((n - size) / stride) for n in images.shape[2:]]
    wide = torch.zeros(*images.shape[:2], *sides)
    wide[:, :, : images.shape[2], : images.shape[3]] = images
    return wide


def padded_squares(images, size, stride):
    height, width = images.shape[2:]
    wide = torch.zeros(*images.shape[:2], height + size, width + size)
    wide[:, :, :height, :width] = images
    rows = [
        wide[:, :, y : y + size, x : x + size].flatten(1)
        for y in range(0, height, stride)
        for x in range(0, width, stride)
    ]
    return torch.stack(rows, dim=1)


RIGHT = [by_squares, lambda im, s, t: F.unfold(im, s, stride=t).mT, in_numpy, by_index]
WRONG = [
    (
        "one_fewer_each_way",
        lambda im, s, t: torch.stack(
            [
                im[:, :, t * i : t * i + s, t * j : t * j + s].flatten(1)
                for i in range((im.shape[2] - s) // t)
                for j in range((im.shape[3] - s) // t)
            ],
            dim=1,
        ),
    ),
    ("the_chapters", lambda im, s, t: by_squares(im, s, s)),
    ("every_pixel", lambda im, s, t: F.unfold(im, s).mT),
    (
        "last_missing",
        lambda im, s, t: torch.stack(
            [
                im[:, :, y : y + s, x : x + s].flatten(1)
                for y in range(0, im.shape[2] - s, t)
                for x in range(0, im.shape[3] - s, t)
            ],
            dim=1,
        ),
    ),
    ("beyond_the_edge", padded_squares),
    ("rounded_up", lambda im, s, t: F.unfold(filled(im, s, t), s, stride=t).mT),
    ("columns_first", lambda im, s, t: by_squares(im, s, t, down=True)),
    (
        "pixels_transposed",
        lambda im, s, t: by_squares(im, s, t, lambda p: p.mT.reshape(len(p), -1)),
    ),
    (
        "channels_last",
        lambda im, s, t: by_squares(im, s, t, lambda p: p.movedim(1, -1).flatten(1)),
    ),
    ("patches_last", lambda im, s, t: F.unfold(im, s, stride=t)),
    ("patches_not_flattened", lambda im, s, t: by_squares(im, s, t, lambda p: p)),
    ("channel_stays_in_front", unfolded_only),
    (
        "one_channel_a_token",
        lambda im, s, t: torch.cat(
            [by_squares(c, s, t) for c in im.split(1, dim=1)], dim=1
        ),
    ),
]
PARTIAL = [(0, lambda im, s, t: package_patchify(im, s))]
