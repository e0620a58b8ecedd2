"""Weights, keys and values in few bits: whole numbers, and a scale for each row."""

from __future__ import annotations

import copy
from typing import NamedTuple

import torch
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.models.attention import KeyValueCache
from course_utils.models.transformer import GPT
from course_utils.shapes import Float, Int


def to_whole(
    x: Float[Tensor, "*row column"], bits: int = 8
) -> tuple[Tensor, Float[Tensor, "*row 1"]]:
    """Round the last axis to whole numbers of `bits` bits, and return its scales.

    $w = round(x / s)$, $s = max |x| / (2^(bits - 1) - 1)$: no number moves by more
    than s / 2. Taught in chapter 19.
    """
    if not 2 <= bits <= 8:
        raise ValueError(f"bits is {bits}, expected 2 to 8: a byte holds no more.")
    scales = x.abs().amax(dim=-1, keepdim=True) / (2 ** (bits - 1) - 1)
    safe = torch.where(scales > 0, scales, torch.ones_like(scales))
    return (x / safe).round().to(torch.int8), scales


class Rounded(NamedTuple):
    """A model with rounded weights, and the bytes that hold them."""

    model: nn.Module
    n_bytes: int


def round_weights(model: nn.Module, bits: int = 8, by_row: bool = True) -> Rounded:
    """Copy a model, its matrices rounded to `bits` bits; vectors stay as they are.

    Each row of a matrix has a scale of 4 bytes; without `by_row`, each matrix has one.
    The copy computes with the rounded numbers in 32 bits. Used in chapter 19.
    """
    model, n_bytes = copy.deepcopy(model), 0
    for parameter in model.parameters():  # a table used twice comes once
        if parameter.dim() < 2:
            n_bytes += parameter.nbytes
            continue
        rows = parameter.detach().flatten(0 if not by_row else 1)
        whole, scales = to_whole(rows if by_row else rows[None], bits)
        parameter.data = (whole * scales).view_as(parameter)
        n_bytes += parameter.numel() * bits // 8 + scales.numel() * 4
    return Rounded(model, n_bytes)


class EightBitCache(KeyValueCache):
    """Keys and values in 8 bits, a scale for each token and head: a quarter of 32.

    They are made real numbers again when they are read.
    """

    def __init__(self, keys: Tensor, values: Tensor, length: int = 0, bits: int = 8):
        super().__init__(keys.to(torch.int8), values.to(torch.int8), length)
        self.bits = bits
        self.key_scales = keys.new_zeros((*keys.shape[:-1], 1))
        self.value_scales = torch.zeros_like(self.key_scales)

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Round and store the new tokens' keys and values, and return those of all."""
        scales = [to_whole(x, self.bits) for x in (keys, values)]
        first = self.length
        (keys, key_scales), (values, value_scales) = scales
        keys, values = super().extend(keys, values)  # whole numbers, of all tokens
        self.key_scales[:, :, first : self.length] = key_scales
        self.value_scales[:, :, first : self.length] = value_scales
        return (
            keys * self.key_scales[:, :, : self.length],
            values * self.value_scales[:, :, : self.length],
        )

    def select(self, rows: Int[Tensor, "row"]) -> EightBitCache:
        """Copy the given rows of the batch."""
        found = EightBitCache(
            self.keys[rows].float(), self.values[rows].float(), self.length, self.bits
        )
        found.key_scales = self.key_scales[rows]
        found.value_scales = self.value_scales[rows]
        return found

    @property
    def n_bytes(self) -> int:
        """The bytes of keys, values and scales."""
        held = (self.keys, self.values, self.key_scales, self.value_scales)
        return sum(x.nbytes for x in held)


def eight_bit_caches(
    model: GPT, batch: int, bits: int = 8
) -> tuple[EightBitCache, ...]:
    """Set aside rounded caches for every layer: `model.read(tokens, caches)`.

    Used in chapter 19.
    """
    empty = model.start(torch.zeros(batch, 0, dtype=torch.long))
    return tuple(EightBitCache(c.keys, c.values, bits=bits) for c in empty)


check_arguments(__name__)
