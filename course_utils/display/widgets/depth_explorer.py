"""Choose a depth and a start, and see what happens along the layers of five stacks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor

from course_utils.display.interactive import Widget, script_of, select, slider, widget
from course_utils.models.residual_variants import KINDS, Sorter, profile
from course_utils.tasks import synthetic

SHOWN = ("gradient by layer", "size of the stream", "difference of the tokens")


def powers(values: Tensor) -> list[float]:
    """Write positive numbers as powers of ten; what overflowed is a very large one."""
    kept = values.nan_to_num(nan=1e30, posinf=1e30).clamp(1e-30, 1e30)
    return [round(power, 2) for power in kept.log10().tolist()]


@cache
def profiles(
    depths: tuple[int, ...], gains: tuple[float, ...]
) -> dict[str, list[list[float]]]:
    """Measure every stack at its start: for each, the three quantities by layer.

    Powers of ten to two digits, from one seed; the program's random numbers are left
    as they were.
    """
    made = {}
    with torch.random.fork_rng(devices=[]):
        for kind in KINDS:
            for depth in depths:
                for gain in gains:
                    torch.manual_seed(0)
                    generator = torch.Generator().manual_seed(0)
                    batch = synthetic.sort_tokens(16, generator, 6, 8)
                    found = profile(Sorter(kind, depth, gain).double(), *batch)
                    made[f"{kind}/{depth}/{gain:g}"] = [
                        powers(value)
                        for value in (found.gradient, found.size, found.difference)
                    ]
    return made


def depth_explorer(
    name: str = "depth-explorer",
    depths: Sequence[int] = (2, 6, 12, 24),
    gains: Sequence[float] = (0.25, 0.5, 0.7, 1.0, 1.4),
) -> Widget:
    """Choose a depth and an initialisation; see five wirings layer by layer.

    Gradient of the blocks, size of the stream and difference of the tokens of untrained
    stacks (`residual_variants.profile`), on a logarithmic axis. Used in chapter 11.
    """
    if not depths or not gains or min(depths) < 2 or min(gains) <= 0:
        raise ValueError(
            f"depth_explorer got depths = {list(depths)}, gains = {list(gains)}; "
            "expected at least one of each, depths from 2 and gains above 0."
        )
    start = 1.0 if 1.0 in gains else gains[0]
    return widget(
        name,
        "Five stacks before their first step: what gets through?",
        [
            slider("gain", "Gain", list(gains), value=start),
            slider("depth", "Layers", list(depths), value=max(depths)),
            select("shown", "Show", SHOWN),
        ],
        data={
            "kinds": KINDS,
            "shown": SHOWN,
            "profiles": profiles(tuple(depths), tuple(gains)),
        },
        script=script_of(__name__),
        alt="Gradient norm of each layer, size of the stream and difference of the "
        "tokens in untrained stacks, for five wirings. With 24 layers and gain 1 the "
        "plain stack's gradient vanishes, that of the residual stack without norm "
        "explodes, and with pre-norm and post-norm it stays near one; only pre-norm "
        "also keeps the tokens clearly different. With gain 0.5 the residual stack is "
        "tame without any norm.",
        height=300,
    )
