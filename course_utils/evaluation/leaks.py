"""Leaks: find out which inputs an output really depends on, by changing them.

A mask promises that output i sees only some inputs. `leak_test` holds any module or
function to it: every input is changed alone, and what moved is compared with what was
allowed. It looks at numbers only, so it does not matter where a leak comes from.
Rows of a batch are separate texts: that one moves with another is a leak as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.doors import check_arguments
from course_utils.evaluation.leak_report import Leak, LeakReport
from course_utils.evaluation.symmetry import output_of
from course_utils.models.attention import causal_mask
from course_utils.shapes import Bool, Float, Shaped, require_mask, shape_of

ROWS_TRIED = 8  # rows of a batch that are changed alone, to see whether others move
ROUNDING = 64  # changes below so many units in the last place are rounding


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
        other = (x[..., j].long() + step.to(x.device)) % n_tokens
        axis, fresh = x.dim() - 1, other.to(x.dtype)
    return x.index_copy(axis, torch.tensor([j], device=x.device), fresh.unsqueeze(axis))


def influence(
    function: Callable[[Tensor], Any],
    x: Shaped[Tensor, "..."],
    generator: torch.Generator,
    tries: int = 3,
    n_tokens: int | None = None,
) -> Float[Tensor, "*batch output input"]:
    """Measure how far every output moves when one input alone is changed.

    $D_ij = max |f(x')_i - f(x)_i|$ over tries, $x'$ being $x$ with another $x_j$: the
    largest of the output's entries. Taught in chapter 09.
    """
    before, columns = output_of(function(x)), []
    for j in range(x.shape[batch_axes(x)]):
        moved = []
        for _ in range(tries):
            after = output_of(function(changed_at(x, j, generator, n_tokens)))
            moved.append(largest_change(before, after, batch_axes(x)))
        columns.append(torch.stack(moved).amax(dim=0))  # (*batch, output)
    return torch.stack(columns, dim=-1)


def batch_axes(x: Shaped[Tensor, "..."]) -> int:
    """Count the axes in front: all but (input,) of ids, (input, feature) of vectors."""
    return x.dim() - (2 if x.is_floating_point() else 1)


def largest_change(
    before: Shaped[Tensor, "..."], after: Shaped[Tensor, "..."], n_batch: int
) -> Float[Tensor, "*batch output"]:
    """Measure how far each output moved, the largest of its entries; NaN is infinite.

    An output is one row after `n_batch` batch axes. Used in chapter 09.
    """
    gap = (after.cpu().double() - before.cpu().double()).abs().nan_to_num(nan=torch.inf)
    return gap.reshape(*gap.shape[: n_batch + 1], -1).amax(dim=-1)


def crossings(
    function: Callable[[Tensor], Any],
    x: Shaped[Tensor, "..."],
    generator: torch.Generator,
    n_tokens: int | None = None,
) -> list[Leak]:
    """Name the outputs that move when an input of another row of the batch changes.

    The first rows are changed whole, one at a time; where another row moves, their
    inputs are changed one by one to find which it was.
    """
    n_batch, before, found = batch_axes(x), output_of(function(x)), []
    n_inputs, whole = x.shape[n_batch], x
    for j in range(n_inputs):
        whole = changed_at(whole, j, generator, n_tokens)

    def moved_with(row: tuple[int, ...], other: Tensor) -> Tensor:
        fresh = x.clone()
        fresh[row] = other[row]
        moved = largest_change(before, output_of(function(fresh)), n_batch)
        moved[row] = 0.0  # of itself a row may know
        return moved

    for row in list(product(*map(range, x.shape[:n_batch])))[:ROWS_TRIED]:
        if not moved_with(row, whole).any():
            continue
        for j in range(n_inputs):
            moved = moved_with(row, changed_at(x, j, generator, n_tokens))
            for *other, i in moved.nonzero().tolist():
                change = moved[(*other, i)].item()
                found.append(Leak(i, j, change, tuple(other), row))
    return found


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
    change counts above `tolerance` times the size of the entry or of its row (unless
    given, some rounding of its dtype). Other rows of the batch may never be seen. A
    module is asked in `eval` mode and left as it was. That nothing moved is evidence,
    not proof: other inputs, and other lengths, might. Used in chapter 09.
    """
    require_input(x, n_tokens, tries, tolerance)
    n_batch, batch = batch_axes(x), tuple(x.shape[: batch_axes(x)])
    with asking(module):
        first, again = (require_output(ask(module, x), batch, x) for _ in range(2))
        if not torch.equal(first, again):
            raise ValueError(
                "the same input gave two different outputs, so a change proves "
                "nothing; switch dropout off with `.eval()`, fix the random numbers, "
                "or empty what the module remembers of the call before."
            )
        n_outputs, n_inputs = first.shape[n_batch], x.shape[n_batch]
        if allowed is None:
            allowed = default_mask(n_outputs, n_inputs)
        if not isinstance(allowed, Tensor):
            raise ValueError(
                f"allowed is a {type(allowed).__name__}, expected a boolean tensor "
                "(…, output, input), True = may see."
            )
        require_mask(allowed, (*batch, n_outputs, n_inputs))
        if tolerance is None:
            tolerance = rounding(first.dtype)
        before = first.cpu().double()
        threshold = tolerance * sizes(before, n_batch)

        def steady(x: Tensor) -> Tensor:
            """The output, with what is only rounding taken back."""
            after = output_of(ask(module, x)).detach().cpu().double()
            return torch.where((after - before).abs() <= threshold, before, after)

        generator = torch.Generator().manual_seed(seed)
        gaps = influence(steady, x, generator, tries, n_tokens)
        crossed = crossings(steady, x, generator, n_tokens) if n_batch else []
    if allowed.dim() <= 2:  # one mask for all rows: one table for all of them
        gaps = gaps.flatten(0, -3).amax(dim=0) if batch else gaps
    return LeakReport(gaps, allowed.to(gaps.device).expand_as(gaps), tuple(crossed))


def ask(module: Callable[[Tensor], Any], x: Tensor) -> Any:
    """Call a module with a copy of `x`, and keep a copy of what it said.

    So a module that writes into its input, or always into the same output, can't hide
    a change.
    """
    try:
        result = output_of(module(x.clone()))
    except TypeError as error:
        raise ValueError(
            f"the module could not be called with x alone ({error}); give its other "
            "inputs in a function: `leak_test(lambda x: module(x, other), x)`."
        ) from error
    return result.clone() if isinstance(result, Tensor) else result


def rounding(dtype: torch.dtype) -> float:
    """The relative change that rounding explains; whole numbers are exact."""
    return ROUNDING * torch.finfo(dtype).eps if dtype.is_floating_point else 0.0


def sizes(before: Tensor, n_batch: int) -> Tensor:
    """How large each entry is, or its row or the whole is typically: the larger.

    Medians, so that a few huge entries (logits of −1e9) don't hide the others.
    """
    size = before.abs()
    rows = size.reshape(*size.shape[: n_batch + 1], -1)
    typical = torch.maximum(rows.median(dim=-1, keepdim=True).values, size.median())
    return torch.maximum(rows, typical).reshape(size.shape)


# ---------------------------------------------------------------------- clear errors


def default_mask(n_outputs: int, n_inputs: int) -> Tensor:
    """Let each output see the inputs up to its own place, if they are as many."""
    if n_outputs != n_inputs:
        raise ValueError(
            f"{n_outputs} outputs for {n_inputs} inputs: which may see which? Give "
            "`allowed`, a boolean mask of shape (output, input), True = may see."
        )
    return causal_mask(n_outputs)


def require_input(
    x: Any, n_tokens: int | None, tries: int, tolerance: float | None
) -> None:
    """Refuse an input that can't be changed at one place alone."""
    if not isinstance(x, Tensor):
        raise ValueError(
            f"x is a {type(x).__name__}, expected a tensor; a module with several "
            "inputs is tested in one: `leak_test(lambda x: module(x, other), x)`."
        )
    least = 2 if x.is_floating_point() else 1
    known = x.dtype != torch.bool and not x.is_complex()
    if x.dim() < least or x.numel() == 0 or not known:
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
        if n_tokens is not None:
            raise ValueError(
                f"n_tokens is {n_tokens}, but x holds vectors, not token ids; leave it "
                "away."
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
    if not isinstance(tries, int) or tries < 1:
        raise ValueError(f"tries is {tries}, expected a whole number, 1 or more.")
    if tolerance is not None and not 0 <= tolerance < 1:
        raise ValueError(f"tolerance is {tolerance}, expected 0 or more, below 1.")


def require_output(result: Any, batch: tuple[int, ...], x: Tensor) -> Tensor:
    """Take the output of a result; refuse one that has no finite row per output."""
    output = output_of(result)
    if isinstance(output, Tensor) and output.is_complex():
        raise ValueError(
            "the module returned complex numbers, expected real ones; wrap it: "
            "`lambda x: torch.view_as_real(module(x))`."
        )
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
    output = output.detach()
    rows = output.reshape(*output.shape[: len(batch) + 1], -1)
    bad = ~rows.isfinite().all(dim=-1)
    if bad.any():
        where = sorted(set(bad.nonzero()[:, -1].tolist()))
        raise ValueError(
            f"NaN or infinity in the outputs {where}, before anything was changed: a "
            "query that may see nothing? Its softmax is 0 / 0; see `masked_softmax`. "
            "(Where −∞ is written on purpose, test what comes before.)"
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


check_arguments(__name__)
