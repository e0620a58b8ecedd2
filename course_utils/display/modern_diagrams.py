"""Two blocks side by side: what today's block has that the minimal one lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from course_utils.display.drawing import Diagram, Drawing
from course_utils.display.trace import Trace, trace
from course_utils.models.modern import ModernBlock

NORMS = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm"}
ACTIVATIONS = ("relu", "gelu", "silu", "square")
HEADS = {"queries": "", "keys": ":2", "values": ":3"}  # where a pass splits its heads


class _Column:
    """One block from the bottom up, its stream at the left side."""

    def __init__(self, drawing: Drawing, left: float, record: Trace, title: str):
        self.drawing, self.record, self.left = drawing, record, left
        self.stream, self.branch = left + 14, left + 96
        d = drawing
        d.text(left + 82, 10, title, 13, bold=True)
        d.arrow((self.stream, 430), (self.stream, 24), role="stream", thick=7)
        y = self.attend(self.fork(414, "around_attention"))
        self.feed_forward(self.fork(y, "around_feed_forward"))

    def fork(self, y: float, around: str) -> float:
        """Leave the stream at `y` through a norm; return where its layer begins."""
        d = self.drawing
        (kind,) = [NORMS[n] for n in NORMS if f"{around}.norm.{n}" in self.record.steps]
        d.arrow((self.stream, y), (self.branch, y), (self.branch, y - 12))
        d.box(self.branch, y - 24, 124, 24, kind)
        return y - 36

    def join(self, y: float) -> float:
        """Add what leaves the branch at `y`; return where the next branch begins."""
        d = self.drawing
        d.arrow((self.branch, y), (self.branch, y - 16), (self.stream + 9, y - 16))
        d.plus(self.stream, y - 16)
        return y - 34

    def attend(self, y: float) -> float:
        """Draw as many squares as there are heads, what turns them, and attention."""
        d, steps = self.drawing, self.record.steps
        turned = "attention.cat" in steps
        for i, (role, number) in enumerate(HEADS.items()):
            x = self.branch + 42 * (i - 1)
            heads = steps[f"attention.permute{number}"].output
            d.arrow((x, y), (x, y - 14), role=role)
            for head in range(heads.shape[1]):
                at = x + 9 * (head - (heads.shape[1] - 1) / 2)
                d.box(at, y - 20, 8, 10, role=role, fill=0.8, thick=0)
            through = turned and role != "values"
            d.arrow((x, y - 27), (x, y - (38 if through else 74)), role=role)
            if through:
                d.arrow((x, y - 60), (x, y - 74), role=role)
        if turned:
            d.box(self.branch - 21, y - 49, 80, 22, "RoPE", learned=False)
        d.box(self.branch, y - 92, 124, 36, "attention")
        return self.join(y - 110)

    def feed_forward(self, y: float) -> float:
        """Draw two matrices, or three of which one opens a gate."""
        d, steps = self.drawing, self.record.steps
        (bend,) = [n for n in ACTIVATIONS if f"feed_forward.{n}" in steps]
        gated = "feed_forward.gate" in steps
        wide = steps["feed_forward.wide"].output
        sides = (-32, 32) if gated else (0,)
        for shift, name in zip(sides, ("$W_g$", "$W_1$") if gated else ("$W_1$",)):
            x = self.branch + shift
            d.arrow((x, y), (x, y - 12))
            d.funnel(x, y - 12, 22, y - 38, 56 if gated else 84, name)
        x = self.branch + sides[0]
        d.box(x, y - 52, 56, 22, bend, learned=False)
        begin = y - (78 if gated else 64)
        d.arrow((self.branch, begin), (self.branch, y - 106))
        if gated:
            d.line(f"M{x} {y - 64}V{y - 78}H{self.branch + 32}V{y - 40}")
            d.box(self.branch, y - 78, 18, 18, "×", learned=False, opaque=True)
        d.text(self.branch + 8, y - 97, d.names(wide[0]), 12, "start", "muted")
        d.funnel(self.branch, y - 107, 56, y - 133, 22, "$W_2$")
        return self.join(y - 133)


def two_blocks(blocks: Mapping[str, ModernBlock], x: Tensor, **options: Any) -> Diagram:
    """Draw two blocks side by side, each from a forward pass (chapter 16).

    `blocks` gives each a title; `options` are those of a pass, by title. The squares
    are heads of queries, keys and values.
    """
    if len(blocks) != 2:
        raise ValueError(f"two_blocks got {len(blocks)} blocks, expected two.")
    sizes = {"batch": len(x), "n": x.shape[1], "d_model": x.shape[2]}
    d = Drawing(356, 436)
    for i, (title, block) in enumerate(blocks.items()):
        d.sizes = sizes | {"d_hidden": block.feed_forward.wide.out_features}
        passed = options.get(title, {})
        _Column(d, 182 * i, trace(block, x, need_weights=True, **passed), title)
    return Diagram(d)
