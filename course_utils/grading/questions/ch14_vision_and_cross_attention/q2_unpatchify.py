"""`unpatchify`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def unpatchify(patches: Tensor, size: int, stride: int, n_rows: int) -> Tensor:
    return laid(patches, size, stride, n_rows)


def laid(
    patches: Tensor,
    size: int,
    stride: int,
    n_rows: int,
    *,
    order: str = "(r q)",
    inside: str = "(c y x)",
    divide: str = "by how many",
) -> Tensor:
    """Lay the patches on top of each other; the keywords are what may go wrong."""
    patches = rearrange(
        patches, f"b {order} {inside} -> b r q c y x", r=n_rows, y=size, x=size
    )
    batch, rows, columns, channels = patches.shape[:4]
    sides = (stride * (rows - 1) + size, stride * (columns - 1) + size)
    total = patches.new_zeros(batch, channels, *sides)
    count = patches.new_zeros(sides)
    for r in range(rows):
        for q in range(columns):
            down = slice(r * stride, r * stride + size)
            right = slice(q * stride, q * stride + size)
            if divide == "last wins":
                total[:, :, down, right] = 0
            if divide != "first wins":
                total[:, :, down, right] += patches[:, r, q]
            else:
                free = (count[down, right] == 0).to(patches.dtype)
                total[:, :, down, right] += free * patches[:, r, q]
            count[down, right] += 1
    if divide == "by how many":
        return total / count.clamp(min=1)
    if divide == "by the most":
        return total / count.max()
    return total


def laid_with(**change: Any) -> Any:
    return lambda patches, size, stride, n_rows: laid(
        patches, size, stride, n_rows, **change
    )


def rows_for_columns(patches: Tensor, size: int, stride: int, n_rows: int) -> Tensor:
    return unpatchify(patches, size, stride, patches.shape[1] // n_rows)


def side_by_side(patches: Tensor, size: int, stride: int, n_rows: int) -> Tensor:
    """The chapter's function, as if no pixel belonged to two patches."""
    layout = "b (r q) (c y x) -> b c (r y) (q x)"
    return rearrange(patches, layout, r=n_rows, y=size, x=size)


def draw_patches(rng: np.random.Generator, touching: bool = False) -> list[Args]:
    cases: list[Args] = []
    for size, stride, channels in ((4, 2, 3), (3, 2, 1), (5, 2, 2)):
        rows, columns = sizes(rng, 2, least=2)
        shape = rows * columns, channels * size * size
        stride = size if touching else stride
        cases.append((normal(rng, 2, *shape), size, stride, rows))
    return cases


QUESTION = Question(
    id="14.2",
    title="Put the patches back, and average where they overlap",
    answer="unpatchify",
    arguments=("patches", "size", "stride", "n_rows"),
    outputs=(Output("images", "channel height width"),),
    reference=unpatchify,
    difficulty="medium",
    minutes=15,
    next_step="find the number of columns and of channels, and the sides of the image; "
    "add every patch where it belongs, and count how many came to each pixel.",
    parts=(
        Part(
            "patches that overlap",
            2,
            draw_patches,
            only_failure_hint="right where patches only touch, wrong where they "
            "overlap: a pixel is the mean of all patches that hold it",
        ),
        Part("patches that touch", 1, lambda rng: draw_patches(rng, touching=True)[:2]),
    ),
    mistakes=(
        Mistake(
            "the_chapters",
            "this is the chapter's `unpatchify`, which lays patches side by side: here "
            "they overlap, and the image is smaller",
            side_by_side,
        ),
        Mistake(
            "added_up",
            "where patches overlap they are added up: divide each pixel by the number "
            "of patches that hold it",
            laid_with(divide="not"),
        ),
        Mistake(
            "last_wins",
            "where patches overlap the last one wins: the pixel is their mean",
            laid_with(divide="last wins"),
        ),
        Mistake(
            "first_wins",
            "where patches overlap the first one wins: the pixel is their mean",
            laid_with(divide="first wins"),
        ),
        Mistake(
            "divided_alike",
            "all pixels are divided by the same number: at the edges and corners fewer "
            "patches meet than in the middle",
            laid_with(divide="by the most"),
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
            laid_with(order="(q r)"),
        ),
        Mistake(
            "pixels_transposed",
            "every patch is turned over its diagonal: its numbers run along the rows "
            "of pixels",
            laid_with(inside="(c x y)"),
        ),
        Mistake(
            "channels_last",
            "the numbers of a patch are read pixel by pixel: they come channel by "
            "channel",
            laid_with(inside="(y x c)"),
        ),
        Mistake(
            "sides_exchanged",
            "height and width have changed places: the image lies on its side",
            lambda p, s, t, n: unpatchify(p, s, t, n).mT,
        ),
    ),
    packaged=("unpatchify",),
)


# ----------------------------------------------------------------------- specimens


def by_fold(patches, size, stride, n_rows, divide=True):
    columns = patches.shape[1] // n_rows
    sides = (n_rows - 1) * stride + size, (columns - 1) * stride + size
    options = {"output_size": sides, "kernel_size": size, "stride": stride}
    count = F.fold(torch.ones_like(patches).mT, **options)
    return F.fold(patches.mT, **options) / (count if divide else 1)


def in_numpy(patches, size, stride, n_rows):
    """Pixel by pixel: the mean of what all patches say."""
    table = patches.double().numpy()
    batch, n, width = table.shape
    columns, channels = n // n_rows, width // size**2
    table = table.reshape(batch, n_rows, columns, channels, size, size)
    height, length = (stride * (k - 1) + size for k in (n_rows, columns))
    image = np.empty((batch, channels, height, length))
    for y in range(height):
        for x in range(length):
            said = [
                table[:, r, q, :, y - r * stride, x - q * stride]
                for r in range(n_rows)
                for q in range(columns)
                if 0 <= y - r * stride < size and 0 <= x - q * stride < size
            ]
            image[:, :, y, x] = np.mean(said, axis=0)
    return image


def by_numbers(patches, size, stride, n_rows):
    """Each number of a patch knows the number of its pixel."""
    columns = patches.shape[1] // n_rows
    height, width = (stride * (k - 1) + size for k in (n_rows, columns))
    numbers = torch.arange(height * width).view(1, 1, height, width).float()
    where = F.unfold(numbers, size, stride=stride).mT.long()[0]  # (patch, pixel)
    parts = patches.unflatten(-1, (-1, size * size)).transpose(1, 2).flatten(2)
    index = where.flatten().expand_as(parts)
    total = parts.new_zeros(*parts.shape[:2], height * width).scatter_add(
        2, index, parts
    )
    count = torch.bincount(where.flatten(), minlength=height * width)
    return (total / count).view(*parts.shape[:2], height, width)


def by_einsum(patches, size, stride, n_rows):
    """The mean as two matrices, one for the rows and one for the columns."""
    columns = patches.shape[1] // n_rows
    placed = []
    for k in (n_rows, columns):
        row = torch.arange(k)[:, None, None] * stride + torch.arange(size)[:, None]
        table = (row == torch.arange(stride * (k - 1) + size)).float()
        placed.append(table / table.sum((0, 1)))  # (patch, pixel, place)
    cut = patches.view(len(patches), n_rows, columns, -1, size, size)
    return torch.einsum("brqcyx,ryh,qxw->bchw", cut, *placed)


RIGHT = [by_fold, in_numpy, by_numbers, by_einsum]
WRONG = [
    (
        "the_chapters",
        lambda p, s, t, n: by_fold(p, s, s, n),
    ),
    ("added_up", lambda p, s, t, n: by_fold(p, s, t, n, divide=False)),
    ("rows_for_columns", lambda p, s, t, n: by_fold(p, s, t, p.shape[1] // n)),
    ("sides_exchanged", lambda p, s, t, n: by_fold(p, s, t, n).transpose(2, 3)),
    (
        "pixels_transposed",
        lambda p, s, t, n: by_fold(p.unflatten(2, (-1, s, s)).mT.flatten(2), s, t, n),
    ),
    (
        "channels_last",
        lambda p, s, t, n: by_fold(p.unflatten(2, (s * s, -1)).mT.flatten(2), s, t, n),
    ),
    (
        "columns_first",
        lambda p, s, t, n: by_fold(
            p.unflatten(1, (-1, n)).transpose(1, 2).flatten(1, 2), s, t, n
        ),
    ),
]
PARTIAL = [(1, side_by_side)]
