"""What a leak test found: which output moved, by which input, and how far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from course_utils.shapes import Bool, Float

LARGEST_TABLE = 24  # positions a printed table may have; a larger one is left out
NAMED = 6  # leaks that a report names one by one


class Leak(NamedTuple):
    """An output that moved with an input it must not see, and by how much.

    `batch` is the output's row of the batch, `source` the input's where it is another.
    """

    output: int
    input: int
    change: float
    batch: tuple[int, ...] = ()
    source: tuple[int, ...] = ()

    def __str__(self) -> str:
        return (
            f"output {self.output}{of_row(self.batch)} moved by {self.change:.2g} when "
            f"input {self.input}{of_row(self.source)} changed"
        )


def of_row(batch: tuple[int, ...]) -> str:
    """Name a row of the batch, if there is one."""
    return f" of row {', '.join(map(str, batch))}" if batch else ""


@dataclass(frozen=True)
class LeakReport:
    """What moved and what was allowed to; `print` it, or `assert not report.leaks`.

    `influence` holds how far each output moved with each input (rounding counts as 0),
    `allowed` what it may see, both `(…, output, input)`; `crossed` the outputs that
    moved with an input of another row of the batch.
    """

    influence: Float[Tensor, "*batch output input"]
    allowed: Bool[Tensor, "*batch output input"]
    crossed: tuple[Leak, ...] = ()

    @property
    def moved(self) -> Bool[Tensor, "*batch output input"]:
        """Where an output depends on an input, allowed or not."""
        return self.influence > 0

    @property
    def leaks(self) -> list[Leak]:
        """Every pair that moved and must not, the largest change first."""
        found = [*self._pairs(self.moved & ~self.allowed), *self.crossed]
        return sorted(found, key=lambda leak: -leak.change)

    @property
    def unseen(self) -> list[Leak]:
        """Every pair that was allowed and never moved: no leak, but a question."""
        return self._pairs(self.allowed & ~self.moved)

    def _pairs(self, where: Tensor) -> list[Leak]:
        return [
            Leak(i, j, self.influence[(*batch, i, j)].item(), tuple(batch))
            for *batch, i, j in where.nonzero().tolist()
        ]

    def table(self) -> str:
        """Draw rows of outputs and columns of inputs: + sees, ! leaks, o unseen."""
        signs = {(True, True): "+", (True, False): "!", (False, True): "o"}
        moved, allowed = (
            grid.reshape(-1, *grid.shape[-2:]).tolist()
            for grid in (self.moved, self.allowed)
        )
        parts = []
        for row, (moves, allows) in enumerate(zip(moved, allowed)):
            head = f"row {row} of the batch\n" if len(moved) > 1 else ""
            width = len(str(len(moves) - 1))
            lines = [
                f"output {i:{width}d}  "
                + " ".join(signs.get(pair, ".") for pair in zip(moves[i], allows[i]))
                for i in range(len(moves))
            ]
            parts.append(head + "\n".join(lines))
        return "\n".join(parts)

    def __str__(self) -> str:
        leaks, unseen = self.leaks, self.unseen
        forbidden, inside = int((~self.allowed).sum()), len(leaks) - len(self.crossed)
        if self.crossed:
            lines = [
                f"LEAK across the batch: {len(self.crossed)} times an output moved "
                f"with an input of another row; within rows, {inside} of {forbidden} "
                "forbidden pairs moved."
            ]
        elif inside:
            lines = [f"LEAK: {inside} of {forbidden} forbidden pairs moved."]
        else:
            lines = [f"no leak: none of {forbidden} forbidden pairs moved."]
        lines += [f"  {leak}" for leak in leaks[:NAMED]]
        if len(leaks) > NAMED:
            lines.append(f"  and {len(leaks) - NAMED} more")
        if unseen:
            lines.append(
                f"{len(unseen)} of {int(self.allowed.sum())} allowed pairs never "
                "moved: is the mask too strict?"
            )
        rows, columns = self.allowed[..., 0].numel(), self.allowed.shape[-1]
        if max(rows, columns) <= LARGEST_TABLE:
            lines.append(f"inputs from left to right: + sees, ! leaks{self._rest()}")
            lines.append(self.table())
        return "\n".join(lines)

    def _rest(self) -> str:
        return ", o allowed but unseen, . blocked" if self.unseen else ", . blocked"

    __repr__ = __str__
