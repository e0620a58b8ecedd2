"""Leaks: find out which inputs an output really depends on, by changing them.

A mask promises that output i sees only some inputs. `leak_test` holds any module or
function to it: every input is changed alone, and what moved is compared with what was
allowed. It looks at numbers only, so it does not matter where a leak comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from course_utils.attention import causal_mask
from course_utils.shapes import Bool, Float, Shaped, require_mask, shape_of
from course_utils.symmetry import output_of

LARGEST_TABLE = 24  # positions a printed table may have; a larger one is left out
NAMED = 6  # leaks that a report names one by one


# ----------------------------------------------------------------------- the report


class Leak(NamedTuple):
    """An output that moved with an input it must not see, and by how much."""

    output: int
    input: int
    change: float
    batch: tuple[int, ...] = ()

    def __str__(self) -> str:
        row = f" of row {', '.join(map(str, self.batch))}" if self.batch else ""
        return (
            f"output {self.output}{row} moved by {self.change:.2g} when input "
            f"{self.input} changed"
        )


@dataclass(frozen=True)
class LeakReport:
    """What moved and what was allowed to; `print` it, or `assert not report.leaks`.

    `influence` holds how far each output moved with each input, `allowed` what it may
    see, both `(…, output, input)`; below `threshold` is rounding. Used in chapter 09.
    """

    influence: Float[Tensor, "*batch output input"]
    allowed: Bool[Tensor, "*batch output input"]
    threshold: float

    @property
    def moved(self) -> Bool[Tensor, "*batch output input"]:
        """Where an output depends on an input, allowed or not."""
        return self.influence > self.threshold

    @property
    def leaks(self) -> list[Leak]:
        """Every pair that moved and must not, the largest change first."""
        return sorted(
            self._pairs(self.moved & ~self.allowed), key=lambda leak: -leak.change
        )

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
        forbidden = int((~self.allowed).sum())
        if leaks:
            lines = [f"LEAK: {len(leaks)} of {forbidden} forbidden pairs moved."]
            lines += [f"  {leak}" for leak in leaks[:NAMED]]
            if len(leaks) > NAMED:
                lines.append(f"  and {len(leaks) - NAMED} more")
        else:
            lines = [f"no leak: none of {forbidden} forbidden pairs moved."]
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


# ---------------------------------------------------------------------- the experiment


def changed_at(
    x: Shaped[Tensor, "..."],
    j: int,
    generator: torch.Generator,
    n_tokens: int | None = None,
) -> Shaped[Tensor, "..."]:
    """Return `x` with every batch row's input `j` replaced, and nothing else touched.

    Whole numbers are token ids, inputs on the last axis: each becomes another token
    below `n_tokens` (unless given, below the largest of `x` plus one). Other numbers
    are vectors, inputs on the last axis but one: each becomes a normal one of the same
    mean and spread as `x`. Used in chapter 09.
    """
    if x.is_floating_point():
        noise = torch.randn(x[..., j, :].shape, generator=generator).to(x)
        spread = x.std() if x.numel() > 1 and x.std() > 0 else 1.0
        axis, fresh = x.dim() - 2, x.mean() + spread * noise
    else:
        n_tokens = int(x.max()) + 1 if n_tokens is None else n_tokens
        step = torch.randint(1, n_tokens, x[..., j].shape, generator=generator)
        axis, fresh = x.dim() - 1, (x[..., j] + step.to(x)) % n_tokens
    return x.index_copy(axis, torch.tensor([j], device=x.device), fresh.unsqueeze(axis))


def influence(
    function: Callable[[Tensor], Any],
    x: Shaped[Tensor, "..."],
    generator: torch.Generator,
    tries: int = 3,
    n_tokens: int | None = None,
) -> Float[Tensor, "*batch output input"]:
    """Measure how far every output moves when one input alone is changed.

    D_ij = max over tries of |f(x with another x_j)_i - f(x)_i|, the largest of the
    output's entries. Taught in chapter 09.
    """
    batch = x.shape[: -2 if x.is_floating_point() else -1]
    before, columns = output_of(function(x)), []
    for j in range(x.shape[len(batch)]):
        moved = []
        for _ in range(tries):
            after = output_of(function(changed_at(x, j, generator, n_tokens)))
            gap = (after.double() - before.double()).abs().nan_to_num(nan=torch.inf)
            moved.append(gap.reshape(*gap.shape[: len(batch) + 1], -1).amax(dim=-1))
        columns.append(torch.stack(moved).amax(dim=0))  # (*batch, output)
    return torch.stack(columns, dim=-1)


def leak_test(
    module: Callable[[Tensor], Any],
    x: Shaped[Tensor, "..."],
    allowed: Bool[Tensor, "..."] | None = None,
    *,
    tries: int = 3,
    n_tokens: int | None = None,
    tolerance: float | None = None,
    seed: int = 0,
) -> LeakReport:
    """Say which outputs moved, and by which input, though they may not see it.

    `x` is `(…, input)` token ids or `(…, input, feature)` numbers; the result (of a
    tuple the first) has one row for each output after the same batch axes. `allowed`
    broadcasts to (…, output, input); without it, output i may see inputs 0 to i. A
    change counts above `tolerance` times the largest output (unless given, some
    rounding of its dtype). A module is asked in `eval` mode and left as it was. That
    nothing moved is evidence, not proof: other inputs might. Used in chapter 09.
    """
    require_input(x, n_tokens, tries)
    batch = tuple(x.shape[: -2 if x.is_floating_point() else -1])
    with asking(module):
        before, again = (require_output(module(x), batch, x) for _ in range(2))
        if not torch.equal(before, again):
            raise ValueError(
                "the same input gave two different outputs, so a change proves "
                "nothing; switch dropout off with `.eval()`, or fix the random numbers."
            )
        n_outputs, n_inputs = before.shape[len(batch)], x.shape[len(batch)]
        if allowed is None:
            allowed = default_mask(n_outputs, n_inputs, before.device)
        require_mask(allowed, (*batch, n_outputs, n_inputs))
        generator = torch.Generator().manual_seed(seed)
        gaps = influence(module, x, generator, tries, n_tokens)
    allowed = allowed.to(gaps.device)
    if allowed.dim() <= 2:  # one mask for all rows: one table for all of them
        gaps = gaps.flatten(0, -3).amax(dim=0) if batch else gaps
    if tolerance is None:
        tolerance = 16 * torch.finfo(before.dtype).eps
    threshold = tolerance * max(before.abs().max().item(), 1e-30)
    return LeakReport(gaps, allowed.expand_as(gaps), threshold)


# ---------------------------------------------------------------------- clear errors


def default_mask(n_outputs: int, n_inputs: int, device: torch.device) -> Tensor:
    """Let each output see the inputs up to its own place, if they are as many."""
    if n_outputs != n_inputs:
        raise ValueError(
            f"{n_outputs} outputs for {n_inputs} inputs: which may see which? Give "
            "`allowed`, a boolean mask of shape (output, input), True = may see."
        )
    return causal_mask(n_outputs, device=device)


def require_input(x: Any, n_tokens: int | None, tries: int) -> None:
    """Refuse an input that can't be changed at one place alone."""
    if not isinstance(x, Tensor):
        raise ValueError(
            f"x is a {type(x).__name__}, expected a tensor; a module with several "
            "inputs is tested in one: `leak_test(lambda x: module(x, other), x)`."
        )
    least = 2 if x.is_floating_point() else 1
    if x.dim() < least or x.numel() == 0 or x.dtype == torch.bool:
        raise ValueError(
            f"x has shape {shape_of(x)} and dtype {x.dtype}, expected token ids "
            "(…, input) or numbers (…, input, feature), at least one of them."
        )
    if x.is_floating_point():
        if not x.isfinite().all():
            raise ValueError(
                "x holds NaN or infinity, and those can't be told from a leak; give "
                "finite numbers."
            )
    elif int(x.min()) < 0 or (int(x.max()) + 1 if n_tokens is None else n_tokens) < 2:
        raise ValueError(
            f"x holds the token ids {int(x.min())} to {int(x.max())} and n_tokens is "
            f"{n_tokens}, expected ids from 0 and at least two tokens to change one "
            "into another; give `n_tokens`, the size of the vocabulary."
        )
    elif n_tokens is not None and n_tokens <= int(x.max()):
        raise ValueError(
            f"x holds token id {int(x.max())}, but n_tokens is {n_tokens}; expected "
            "more than the largest id."
        )
    if tries < 1:
        raise ValueError(f"tries is {tries}, expected 1 or more.")


def require_output(result: Any, batch: tuple[int, ...], x: Tensor) -> Tensor:
    """Take the output of a result; refuse one that has no finite row per output."""
    output = output_of(result)
    if not isinstance(output, Tensor):
        raise ValueError(
            f"the module returned a {type(output).__name__}, expected a tensor or a "
            "tuple that begins with one; wrap it: `lambda x: module(x).logits`."
        )
    if output.shape[: len(batch)] != batch or output.dim() <= len(batch):
        raise ValueError(
            f"the module made {shape_of(output)} of {shape_of(x)}, expected the batch "
            f"axes {batch} first and then one row for each output; is the batch its "
            "second axis (`batch_first=True`), or the result pooled?"
        )
    output = output.detach() if output.is_floating_point() else output.detach().float()
    rows = output.reshape(*output.shape[: len(batch) + 1], -1)
    bad = ~rows.isfinite().all(dim=-1)
    if bad.any():
        where = sorted(set(bad.nonzero()[:, -1].tolist()))
        raise ValueError(
            f"NaN or infinity in the outputs {where}, before anything was changed: a "
            "query that may see nothing? Its softmax is 0 / 0; see `masked_softmax`."
        )
    return output


@contextmanager
def asking(module: Any) -> Iterator[None]:
    """Ask a module in `eval` mode without gradients, and leave all as it was."""
    parts = list(module.modules()) if isinstance(module, nn.Module) else []
    modes = [part.training for part in parts]
    try:
        for part in parts:
            part.training = False
        with torch.no_grad():
            yield
    finally:
        for part, mode in zip(parts, modes):
            part.training = mode
