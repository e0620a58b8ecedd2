"""From lists of ids to tensors: padding, batches of equal length, windows of text.

As in `course_utils.data.batches`, who is in a batch is a function of the step's number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.data.batches import ORDER, Batch, derive_seed
from course_utils.data.corpus import PAD, Vocabulary
from course_utils.doors import check_arguments
from course_utils.shapes import Int, shape_of


@runtime_checkable
class SentencePair(Protocol):
    """Anything with the tokens of a source sentence and of its translation."""

    @property
    def source(self) -> Sequence[str]: ...

    @property
    def target(self) -> Sequence[str]: ...


# ----------------------------------------------------------------------- translation


def pad_batch(
    sequences: Sequence[Sequence[int]], pad: int = PAD
) -> Int[Tensor, "batch token"]:
    """Make one rectangle of sequences of different lengths, filled up with `pad`.

    Taught in chapter 02; the mask that hides the filling, in chapter 09.
    """
    if not sequences:
        raise ValueError(
            "pad_batch got no sequence, expected at least one; is the batch empty?"
        )
    longest = max(map(len, sequences))
    rows = [[*ids, *[pad] * (longest - len(ids))] for ids in sequences]
    return torch.tensor(rows, dtype=torch.long)


def translation_batch(
    pairs: Sequence[SentencePair],
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
) -> tuple[Int[Tensor, "batch source"], Int[Tensor, "batch target"]]:
    """Turn sentence pairs into padded ids: source … <eos>, and <bos> … <eos>.

    The decoder reads `target[:, :-1]` and is to say `target[:, 1:]`.
    Taught in chapter 02.
    """
    return (
        pad_batch([source_vocabulary.encode(p.source, eos=True) for p in pairs]),
        pad_batch([target_vocabulary.encode(p.target, True, True) for p in pairs]),
    )


def batches_by_length(
    lengths: Sequence[int], batch_size: int, seed: int = 0, epoch: int = 0
) -> list[list[int]]:
    """Deal the examples of one epoch into batches of one length each: no padding.

    Returns indices into `lengths`; each example comes once, and the order is another in
    every epoch. A length's last batch may be smaller.
    """
    if batch_size < 1 or epoch < 0:
        raise ValueError(
            f"batches_by_length got batch_size={batch_size} and epoch={epoch}, "
            "expected a batch of at least 1 and an epoch from 0."
        )
    if not lengths:
        raise ValueError("batches_by_length got no lengths, expected one per example.")
    generator = torch.Generator().manual_seed(derive_seed(seed, ORDER, epoch))
    by_length: dict[int, list[int]] = {}
    for index in torch.randperm(len(lengths), generator=generator).tolist():
        by_length.setdefault(lengths[index], []).append(index)
    batches = [
        by_length[length][start : start + batch_size]
        for length in sorted(by_length)
        for start in range(0, len(by_length[length]), batch_size)
    ]
    order = torch.randperm(len(batches), generator=generator).tolist()
    return [batches[i] for i in order]


def epochs_by_length(
    lengths: Sequence[int], batch_size: int, seed: int = 0
) -> Callable[[int], list[int]]:
    """Turn examples of known lengths into `indices(step)`: who is in that batch.

    Epoch after epoch of `batches_by_length`, without end; any step can be asked for
    directly, which is what lets a training go on where it stopped.
    """
    lengths = tuple(lengths)
    per_epoch = len(batches_by_length(lengths, batch_size, seed))

    @lru_cache(maxsize=2)
    def batches(epoch: int) -> list[list[int]]:
        return batches_by_length(lengths, batch_size, seed, epoch)

    def indices(step: int) -> list[int]:
        if step < 0:
            raise ValueError(f"step is {step}, expected 0, 1, 2, …")
        epoch, place = divmod(step, per_epoch)
        return list(batches(epoch)[place])

    return indices


def translation_batches(
    pairs: Sequence[SentencePair],
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
    batch_size: int,
    seed: int = 0,
    multiple: int = 1,
) -> Batch:
    """Make `train`'s `batch` from sentence pairs, sources of one length in each.

    What `translation_batch` gives for the pairs that `epochs_by_length` chooses. With
    `multiple=16` lengths are rounded up to 16, 32, …: few shapes, for each of which a
    compiled model is compiled. Used in chapters 12 and 13.
    """
    if multiple < 1:
        raise ValueError(f"multiple is {multiple}, expected a whole number from 1.")
    rounded = [-(-(len(p.source) + 1) // multiple) for p in pairs]
    indices = epochs_by_length(rounded, batch_size, seed)

    def fill(ids: Tensor, length: int) -> Tensor:
        return F.pad(ids, (0, -length % multiple), value=PAD)

    def batch(step: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        chosen = [pairs[i] for i in indices(step)]
        source, target = translation_batch(chosen, source_vocabulary, target_vocabulary)
        # The decoder reads all tokens of a target but the last: that length is rounded.
        return fill(source, source.shape[1]), fill(target, target.shape[1] - 1)

    return batch


# -------------------------------------------------------------------- language models


def random_windows(
    ids: Int[Tensor, "token"], length: int, batch: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch length"], Int[Tensor, "batch length"]]:
    """Cut windows at random places of a text: what is read, and what comes next.

    $y_t = x_{t+1}$. To train a language model. Taught in chapter 13.
    """
    require_windows(ids, length)
    if batch < 1:
        raise ValueError(f"random_windows got batch={batch}, expected at least 1.")
    starts = torch.randint(len(ids) - length, (batch, 1), generator=generator)
    windows = ids[starts + torch.arange(length + 1)]
    return windows[:, :-1], windows[:, 1:]


def consecutive_windows(
    ids: Int[Tensor, "token"], length: int
) -> tuple[Int[Tensor, "window length"], Int[Tensor, "window length"]]:
    """Cut a text into neighbouring windows, so that each token is predicted once.

    To measure a language model; the last, incomplete window is left out.
    Taught in chapter 13.
    """
    require_windows(ids, length)
    n_windows = (len(ids) - 1) // length
    read = ids[: n_windows * length]
    following = ids[1 : n_windows * length + 1]
    return read.view(n_windows, length), following.view(n_windows, length)


def require_windows(ids: Tensor, length: int) -> None:
    """Refuse what is not one long text, or is too short for one window."""
    if ids.dim() != 1:
        raise ValueError(
            f"ids has shape {shape_of(ids)}, expected one long text (token,); join the "
            "texts before cutting windows."
        )
    if not 1 <= length < len(ids):
        raise ValueError(
            f"windows of length {length} do not fit into a text of {len(ids)} tokens "
            "(one more is needed, to be predicted); choose a shorter window."
        )


check_arguments(__name__)
