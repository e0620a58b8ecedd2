"""Shapes, written in every signature, and clear words where they do not fit.

``Float[Tensor, "batch query d_k"]`` is checked at run time in the tests alone:
jaxtyping is a tool of the course's developers, not of its readers: where it is not
installed the annotations still say the same to a person and mean nothing to Python.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, Shaped
else:
    try:
        from jaxtyping import Bool, Float, Int, Shaped
    except ImportError:

        class _AnyShape:
            """Stands in for a jaxtyping type: ``Float[Tensor, "a b"]`` is ``Any``."""

            def __getitem__(self, _: object) -> object:
                return Any

        Bool = Float = Int = Shaped = _AnyShape()

__all__ = [
    "Bool",
    "Float",
    "Int",
    "Shaped",
    "require_additive",
    "require_mask",
    "require_qkv",
    "require_sequence",
    "shape_of",
]


def shape_of(tensor: Any) -> str:
    """Write a shape the way the course's error messages do: ``(2, 3, 4)``."""
    return str(tuple(tensor.shape))


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape that tensors of these shapes broadcast to, None if they do not.

    As `torch.broadcast_shapes`, which takes a hundred times as long: this is asked at
    every step of every loop.
    """
    first = tuple(shapes[0])
    if all(shape == first for shape in shapes[1:]):
        return first
    found = []
    for sizes in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        size = 1
        for other in sizes:
            if other != 1 and size not in (1, other):
                return None
            size = size if other == 1 else other
        found.append(size)
    return tuple(reversed(found))


def require_mask(mask: Tensor | None, scores_shape: tuple[int, ...]) -> None:
    """Refuse a mask that is not boolean or does not broadcast to the scores."""
    if mask is None:
        return
    if mask.dtype != torch.bool:
        raise ValueError(
            f"mask has dtype {mask.dtype}, expected torch.bool with True = may attend; "
            "write `mask.bool()` if 1 means may attend, `mask == 0` if 0 does."
        )
    if broadcast(mask.shape, scores_shape) != tuple(scores_shape):
        raise ValueError(
            f"mask has shape {shape_of(mask)}, which does not broadcast to the scores' "
            f"{tuple(scores_shape)} (…, query, key); add the missing axes with "
            "`mask[:, None, :]` or the like."
        )


def require_qkv(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None
) -> None:
    """Refuse queries, keys, values and a mask that do not fit together.

    Says what came, what was expected and what to do. Used in chapter 06.
    """
    for name, tensor in (("queries", queries), ("keys", keys), ("values", values)):
        if tensor.dim() < 2:
            raise ValueError(
                f"{name} has shape {shape_of(tensor)}, expected at least two axes "
                "(tokens, features); one token alone is `x[None, :]`."
            )
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(
            f"queries {shape_of(queries)} and keys {shape_of(keys)} differ in their "
            f"last axis, d_k ({queries.shape[-1]} against {keys.shape[-1]}); a dot "
            "product needs them equal: project both to the same d_k."
        )
    if keys.shape[-2] != values.shape[-2]:
        raise ValueError(
            f"keys {shape_of(keys)} and values {shape_of(values)} differ in their "
            f"key axis ({keys.shape[-2]} against {values.shape[-2]}); every key "
            "carries one value: make both from the same tokens."
        )
    batch = broadcast(queries.shape[:-2], keys.shape[:-2], values.shape[:-2])
    if batch is None:
        raise ValueError(
            f"the leading axes of queries {shape_of(queries)}, keys {shape_of(keys)} "
            f"and values {shape_of(values)} do not match; give all three the same "
            "batch (and head) axes."
        )
    require_mask(mask, (*batch, queries.shape[-2], keys.shape[-2]))


def require_additive(queries: Tensor, keys: Tensor, v: Tensor) -> None:
    """Refuse projected queries, keys and v that additive scores can't be made of.

    Used in chapter 03.
    """
    for name, tensor in (("queries", queries), ("keys", keys)):
        if tensor.dim() != 3:
            raise ValueError(
                f"{name} has shape {shape_of(tensor)}, expected (batch, token, "
                "d_score); one state per example alone is `s[:, None]`."
            )
    if queries.shape[-1] != keys.shape[-1] or v.shape != keys.shape[-1:]:
        raise ValueError(
            f"queries {shape_of(queries)}, keys {shape_of(keys)} and v {shape_of(v)} "
            "differ in their last axis; project states and annotations to the width "
            "of v first."
        )
    if len(queries) != len(keys):
        raise ValueError(
            f"queries {shape_of(queries)} and keys {shape_of(keys)} differ in their "
            "batch axis; every example asks its own source."
        )


def require_sequence(x: Tensor, d_model: int, name: str = "x") -> None:
    """Refuse anything but `(batch, token, d_model)`, naming what came."""
    if x.dim() != 3 or x.shape[-1] != d_model:
        raise ValueError(
            f"{name} has shape {shape_of(x)}, expected (batch, token, {d_model}); "
            "a single sequence needs a batch axis: `x[None]`."
        )


def require_source(source: Tensor, pad: int) -> None:
    """Refuse what is no batch of sentences, and padding before the end of one.

    The ids are looked at on a CPU alone: a GPU would have to wait for the answer.
    Used in chapter 02.
    """
    if source.dim() != 2 or source.shape[1] == 0:
        raise ValueError(
            f"source has shape {shape_of(source)}, expected (batch, source) token "
            "ids with at least one token."
        )
    real = source != pad
    if source.device.type == "cpu" and (real[:, 1:] & ~real[:, :-1]).any():
        raise ValueError(
            f"source has padding (id {pad}) before a token, expected it at the end of "
            "a sentence alone, where `pad_batch` puts it: what is read first counts."
        )


def require_real(x: Tensor, lengths: Tensor) -> None:
    """Refuse lengths that are not one for each sequence, or (on a CPU) too long."""
    if x.dim() != 3 or lengths.shape != x.shape[:1]:
        raise ValueError(
            f"x has shape {shape_of(x)} and lengths {shape_of(lengths)}, expected "
            "(batch, token, d) and one length for each sequence, (batch,)."
        )
    wrong = (lengths < 0) | (lengths > x.shape[1])
    if wrong.device.type == "cpu" and wrong.any():
        raise ValueError(
            f"lengths is {lengths.tolist()!s:.60}, expected whole numbers from 0 to "
            f"the {x.shape[1]} tokens of x."
        )


def require_heads(width: int, n_heads: int, parts: int = 1) -> None:
    """Refuse numbers of heads (and of parts) into which a width can't be cut."""
    for name, count in (("n_heads", n_heads), ("parts", parts)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(f"{name} is {count!r}, expected a whole number from 1.")
    if width < 1 or width % (parts * n_heads):
        cut = f"{n_heads} heads" if parts == 1 else f"{parts} parts of {n_heads} heads"
        raise ValueError(
            f"a width of {width} does not divide into {cut} of equal width; choose "
            "n_heads among its divisors."
        )


def require_sizes(**sizes: int) -> None:
    """Refuse sizes that are not whole numbers from 1, naming the first of them."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"{name} is {size!r}, expected a whole number from 1.")
