"""Scenes composed of scikit-learn's digit scans, which need no download.

1,797 handwritten digits of 8 x 8 pixels, split once into digits to train on and digits
to test on: no scan is in both. Scenes put them into the cells of a 3 x 3 grid, numbered
in reading order, and tell the `gold` cell that a model ought to look at.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from einops import rearrange
from torch import Generator, Tensor

from course_utils.data.corpus import EOS, PAD, SPECIALS
from course_utils.doors import check_arguments
from course_utils.shapes import Float, Int, require_sizes
from course_utils.tasks.synthetic import Labels, pick, random_ids, shuffled

SIDE = 8  # pixels of a digit
GRID = 3  # cells in a row
N_CELLS = GRID * GRID
N_TEST = 500

# ------------------------------------------------------------------------- the digits


def digits(split: str) -> tuple[Float[Tensor, "scan 8 8"], Int[Tensor, "scan"]]:
    """Return the scans (0 white to 1 black) and labels of `"train"` or `"test"`.

    Used in chapters 04 and 14.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split is {split!r}, expected 'train' or 'test'.")
    scans, labels = _all_digits()
    order = torch.randperm(len(scans), generator=torch.Generator().manual_seed(0))
    mine = order[:-N_TEST] if split == "train" else order[-N_TEST:]
    return scans[mine], labels[mine]


@lru_cache(maxsize=1)
def _all_digits() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits

    data = load_digits()
    scans = torch.tensor(data.images, dtype=torch.float32) / 16
    return scans, torch.tensor(data.target, dtype=torch.long)


def draw_digits(
    split: str, shape: tuple[int, ...], generator: Generator
) -> tuple[Float[Tensor, "*shape 8 8"], Int[Tensor, "*shape"]]:
    """Draw scans and their labels at random, in any shape."""
    scans, labels = digits(split)
    drawn = random_ids(len(scans), shape, generator)
    return scans[drawn], labels[drawn]


def compose(
    cells: Float[Tensor, "batch 9 channel 8 8"], noise: float, generator: Generator
) -> Float[Tensor, "batch channel 24 24"]:
    """Lay nine cells out as one image and add noise to it, if any."""
    if noise < 0:
        raise ValueError(f"noise is {noise}, expected 0 or more.")
    images = rearrange(cells, "b (r q) c y x -> b c (r y) (q x)", r=GRID, q=GRID)
    if noise == 0:
        return images
    return images + noise * torch.randn(images.shape, generator=generator)


# ------------------------------------------------------------------------- the scenes


def caption_scenes(
    batch: int,
    generator: Generator,
    split: str = "train",
    max_digits: int = 5,
    min_digits: int = 1,
    noise: float = 0.1,
) -> tuple[
    Float[Tensor, "batch 1 24 24"],
    Int[Tensor, "batch word"],
    Int[Tensor, "batch word"],
]:
    """Scatter a few digits over the grid; the caption reads them in order.

    Returns images, captions and gold cells. Digit d is word d + 4 (ids 0 to 3 are the
    specials of `Vocabulary`); a caption ends in <eos> and padding, and where no digit
    is read the gold cell is -1. Used in chapter 04.
    """
    require_sizes(batch=batch, min_digits=min_digits, max_digits=max_digits)
    if not min_digits <= max_digits <= N_CELLS:
        raise ValueError(
            f"caption_scenes got {min_digits} to {max_digits} digits, expected from 1 "
            f"to {N_CELLS} with min_digits <= max_digits."
        )
    count = min_digits + random_ids(max_digits - min_digits + 1, (batch,), generator)
    filled = shuffled(batch, N_CELLS, generator) < count[:, None]
    scans, labels = draw_digits(split, (batch, N_CELLS), generator)
    cells = scans * filled[:, :, None, None]

    reading = (~filled).long().argsort(dim=1, stable=True)[:, : max_digits + 1]
    place, count = torch.arange(max_digits + 1), count[:, None]
    if max_digits == N_CELLS:  # no tenth cell to read <eos> from: any will do
        reading = torch.cat([reading, torch.zeros_like(reading[:, :1])], dim=1)
    captions = (len(SPECIALS) + labels.gather(1, reading)).where(place < count, EOS)
    captions = captions.where(place <= count, PAD)
    gold = reading.where(place < count, -1)
    return compose(cells[:, :, None], noise, generator), captions, gold


def marked_scenes(
    batch: int, generator: Generator, split: str = "train", noise: float = 0.1
) -> tuple[Float[Tensor, "batch 1 24 24"], Labels, Labels]:
    """Fill the grid with digits, one of them with a bar at its left: read that one.

    Returns images, answers, gold cells. Guessing gets 1 in 10. Used in chapter 14.
    """
    require_sizes(batch=batch)
    scans, labels = draw_digits(split, (batch, N_CELLS), generator)
    gold = random_ids(N_CELLS, (batch,), generator)
    marked = torch.arange(N_CELLS) == gold[:, None]
    bar = marked[:, :, None, None] & (torch.arange(SIDE) == 0)
    cells = scans.masked_fill(bar, 1.0)
    return compose(cells[:, :, None], noise, generator), pick(labels, gold), gold


CUES = torch.tensor(
    [
        [[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]],
        [[1, 0, 1, 0], [1, 0, 1, 0], [1, 0, 1, 0], [1, 0, 1, 0]],
        [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]],
    ],
    dtype=torch.float32,
)
"""The texture that names each of three channels: lines, columns, checks."""


def cue_strips(channel: Labels) -> Float[Tensor, "batch 1 4 16"]:
    """Draw the strip that asks for a channel; the same in all channels of an image."""
    return CUES[channel].repeat(1, 1, 4)[:, None]


def channel_scenes(
    batch: int, generator: Generator, split: str = "train", noise: float = 0.05
) -> tuple[
    Float[Tensor, "batch 3 16 16"], Labels, Labels, Int[Tensor, "batch channel"]
]:
    """Put a digit into each of three channels; a strip on top says which to read.

    Returns images, answers, the channels asked for, and all three digits. Without the
    strip nothing beats `majority_chance(3, 10)`. Used in chapter 14.
    """
    require_sizes(batch=batch)
    scans, labels = draw_digits(split, (batch, len(CUES)), generator)
    channel = random_ids(len(CUES), (batch,), generator)
    lower = torch.nn.functional.pad(scans, (4, 4, 4, 0))
    upper = cue_strips(channel).expand(-1, len(CUES), -1, -1)
    images = torch.cat([upper, lower], dim=2)
    images = images + noise * torch.randn(images.shape, generator=generator)
    return images, pick(labels, channel), channel, labels


COLOURS = {
    "red": (1, 0, 0),
    "green": (0, 1, 0),
    "blue": (0, 0, 1),
    "yellow": (1, 1, 0),
    "magenta": (1, 0, 1),
    "cyan": (0, 1, 1),
}
QUESTION_WORDS = (*map(str, range(10)), *COLOURS, "which-digit-is", "what-colour-is")
"""The words of `question_scenes`; the first 16 are its answers."""


def question_scenes(
    batch: int,
    generator: Generator,
    split: str = "train",
    n_objects: int = 6,
    noise: float = 0.0,
) -> tuple[Float[Tensor, "batch 3 24 24"], Int[Tensor, "batch 2"], Labels, Labels]:
    """Show different digits in different colours, and ask about one of them.

    A question is two words of `QUESTION_WORDS`, `which-digit-is red` or `what-colour-is
    7`, each half of the time; the answer is a digit (0 to 9) or a colour (10 to 15).
    Returns images, questions, answers, gold cells. Who sees the objects but not which
    is asked for gets 1 / n_objects. Used in chapter 14.
    """
    require_sizes(batch=batch, n_objects=n_objects)
    if n_objects > len(COLOURS):
        raise ValueError(
            f"n_objects is {n_objects}, expected at most {len(COLOURS)}: each has a "
            "colour of its own."
        )
    digit = shuffled(batch, 10, generator)[:, :n_objects]
    colour = shuffled(batch, len(COLOURS), generator)[:, :n_objects]
    cell = shuffled(batch, N_CELLS, generator)[:, :n_objects]
    paint = torch.tensor(list(COLOURS.values()), dtype=torch.float32)[colour]
    objects = _scans_of(digit, split, generator)[:, :, None] * paint[..., None, None]
    cells = torch.zeros(batch, N_CELLS, 3, SIDE, SIDE)
    cells[torch.arange(batch)[:, None], cell] = objects

    asked = random_ids(n_objects, (batch,), generator)
    of_colour = random_ids(2, (batch,), generator)
    d, c = pick(digit, asked), 10 + pick(colour, asked)
    about, answer = d.where(of_colour == 1, c), c.where(of_colour == 1, d)
    questions = torch.stack([16 + of_colour, about], dim=1)
    return compose(cells, noise, generator), questions, answer, pick(cell, asked)


def _scans_of(
    digit: Int[Tensor, "batch object"], split: str, generator: Generator
) -> Float[Tensor, "batch object 8 8"]:
    """Draw for every digit one of its scans."""
    scans, labels = digits(split)
    by_label, count = labels.argsort(stable=True), labels.bincount(minlength=10)
    first = count.cumsum(0) - count
    nth = (torch.rand(digit.shape, generator=generator) * count[digit]).long()
    return scans[by_label[first[digit] + nth]]


check_arguments(__name__)
