"""Cut one image into patches of a size of your choice, and read the tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from course_utils.display.interactive import Widget, script_of, slider, toggle, widget


def darkest_patch(pixels: np.ndarray, size: int) -> int:
    """Which patch, in reading order, holds most ink: the one to show first."""
    rows, columns = (side // size for side in pixels.shape)
    return int(pixels.reshape(rows, size, columns, size).sum((1, 3)).argmax())


def patch_slider(name: str, image: Any) -> Widget:
    """Choose the size of a patch, see the tokens, and press one to read its numbers.

    A grey image (side, side) with values from 0 to 1; the sizes are the divisors of its
    side. Used in chapter 14.
    """
    pixels = np.asarray(image, dtype=float)
    if pixels.ndim != 2 or pixels.shape[0] != pixels.shape[1]:
        raise ValueError(
            f"widget {name!r} got an image of shape {pixels.shape}, expected (side, "
            "side): one channel, as high as wide."
        )
    side = len(pixels)
    sizes = [size for size in range(1, side + 1) if side % size == 0]
    start = 2 if 2 in sizes else sizes[0]
    return widget(
        name,
        "From an image to a sentence of patches",
        [
            slider("size", "Patch size", sizes, value=start),
            toggle("apart", "pull the patches apart", value=True),
        ],
        data={
            "pixels": (100 * pixels.clip(0, 1)).round().astype(int),
            "side": side,
            "darkest": {size: darkest_patch(pixels, size) for size in sizes},
        },
        script=script_of(__name__),
        alt="A handwritten digit cut into square patches. With a smaller patch size "
        "there are more tokens, each of fewer numbers: their product stays the same, "
        "and the number of scores grows with the square of the number of tokens. The "
        "numbers of the patch that is chosen stand below the image.",
        height=330,
    )
