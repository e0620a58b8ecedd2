"""`unpatchify`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


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


QUESTION = Question(
    id="14.2",
    title="Put the patches back",
    answer="unpatchify",
    arguments=("patches", "size", "n_rows"),
    outputs=(Output("images", "channel height width"),),
    reference=unpatchify,
    difficulty="medium",
    minutes=8,
    next_step="find the number of columns and of channels; turn the pattern round.",
    parts=(
        Part("one image", 1, lambda rng: draw_patches(rng)[:1]),
        Part(
            "any sizes",
            2,
            draw_patches,
            only_failure_hint="right for one size of the image, wrong for others",
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


# ----------------------------------------------------------------------- specimens


def by_fold(patches, size, n_rows):
    columns = patches.shape[1] // n_rows
    sides = n_rows * size, columns * size
    return F.fold(patches.mT, sides, kernel_size=size, stride=size)


def strips(patches, size, n_rows):
    """Split the axes, bring the channel in front, and flatten too early."""
    batch, count, width = patches.shape
    columns, channels = count // n_rows, width // (size * size)
    split = patches.view(batch, n_rows, columns, channels, size, size)
    laid = split.permute(0, 3, 1, 2, 4, 5)
    return laid.reshape(batch, channels, n_rows * size, columns * size)


def channels_from_the_tokens(patches, size, n_rows):
    batch, count, width = patches.shape
    columns, channels = count // n_rows, width // (size * size)
    split = patches.reshape(batch, channels, n_rows, columns, size, size)
    return split.transpose(3, 4).reshape(batch, channels, n_rows * size, -1)


RIGHT = [by_fold]
WRONG = [
    ("not_interleaved", strips),
    ("channels_split_first", channels_from_the_tokens),
    ("reshaped", lambda p, s, n: by_fold(p, s, n) * 0 + p.view(by_fold(p, s, n).shape)),
    ("rows_for_columns", lambda p, s, n: by_fold(p, s, p.shape[1] // n)),
    ("sides_exchanged", lambda p, s, n: by_fold(p, s, n).transpose(2, 3)),
]
