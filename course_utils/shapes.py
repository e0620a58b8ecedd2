"""Shape annotations: ``Float[Tensor, "batch query d_k"]``, checked only in the tests.

jaxtyping is a tool of the course's developers, not of its readers: where it is not
installed the annotations still say the same to a person and mean nothing to Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

__all__ = ["Bool", "Float", "Int", "Shaped", "shape_of"]


def shape_of(tensor: Any) -> str:
    """Write a shape the way the course's error messages do: ``(2, 3, 4)``."""
    return str(tuple(tensor.shape))
