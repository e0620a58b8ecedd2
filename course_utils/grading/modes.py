"""Keep what a notebook turned on in PyTorch out of the run of an answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch

# PyTorch's modes: how many there are, take the last one off, put one on
MODES: list[tuple[Any, Any, Any]] = [
    (
        torch._C._len_torch_function_stack,
        torch._C._pop_torch_function_stack,
        torch._C._push_on_torch_function_stack,
    ),
    (
        torch._C._len_torch_dispatch_stack,
        partial(torch._C._pop_torch_dispatch_stack, None),
        torch._C._push_on_torch_dispatch_stack,
    ),
]


@contextmanager
def no_modes() -> Iterator[None]:
    """Put aside PyTorch's modes that a notebook left on; drop those left on inside.

    A mode that counts operations, say, is called for each of them, and would pass for
    a part of the answer.
    """
    before = [[pop() for _ in range(size())] for size, pop, _ in MODES]
    try:
        yield
    finally:
        for modes, (size, pop, push) in zip(before, MODES):
            for _ in range(size()):
                pop()
            for mode in reversed(modes):
                push(mode)


def uncompiled() -> Any:
    """Let compiled code run as it was written, where the compiler is loaded at all.

    A compiler takes what watches the answer for a part of it.
    """
    stance: Any = getattr(torch.compiler, "set_stance", None)
    loaded = "torch._dynamo" in sys.modules and stance is not None
    return stance("force_eager") if loaded else nullcontext()
