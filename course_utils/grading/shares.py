"""Weights that are no shares: what their sums and signs tell, whatever made them."""

from __future__ import annotations

import numpy as np

from course_utils.grading.questions.model import Output, Question
from course_utils.grading.sentences import Wrong

SLACK = 1e-3
Axes = tuple[int, ...]


def are_shares(table: np.ndarray, axes: Axes) -> bool:
    """Whether numbers share out one unit along some axes, or nothing where none is."""
    if table.ndim < len(axes) or min(table.shape[axis] for axis in axes) < 2:
        return False
    sums = table.sum(axes)
    ones = np.isclose(sums, 1, atol=SLACK)
    return bool((table >= -1e-6).all() and ones.any() and (ones | (sums == 0)).all())


def are_level(table: np.ndarray) -> bool:
    """Whether all that is not zero in a row is the same, in each of several rows."""
    rows = [row[np.abs(row) > 1e-9] for row in table.reshape(-1, table.shape[-1])]
    return all(np.ptp(row) < 1e-6 for row in rows if row.size) and len(rows) > 1


def named(output: Output, axes: Axes) -> str:
    """Say along which axes the shares lie."""
    names = (output.axes or "").split()
    if len(names) < len(axes):
        return "along its last axis" if len(axes) == 1 else "over its last two axes"
    said = " and ".join(names[axis] for axis in axes)
    return f"along the axis {said}" if len(axes) == 1 else f"over {said} together"


def explain_shares(question: Question, wrong: list[Wrong]) -> str:
    """Say why an output cannot be the shares that it is to be, or nothing."""
    for i in dict.fromkeys(x.output for x in wrong):
        mine = [x for x in wrong if x.output == i]
        pairs = [(np.asarray(x.got), np.asarray(x.right)) for x in mine]
        if any(a.shape != b.shape or a.dtype.kind not in "fiu" for a, b in pairs):
            continue
        for axes in ((-1,), (-2, -1)):
            if not all(are_shares(due, axes) for _, due in pairs):
                continue
            name = f"`{question.outputs[i].name}`"
            if all((got < -SLACK).any() for got, _ in pairs):
                return f"some of {name} are negative: a share of one unit never is."
            off = [np.abs(got.sum(axes) - due.sum(axes)) for got, due in pairs]
            if all((x > SLACK).all() for x in off):
                first = float(np.ravel(pairs[0][0].sum(axes))[0])
                where = named(question.outputs[i], axes)
                return (
                    f"the numbers in {name} do not share out one unit: {where} "
                    f"they sum to {first:.3g} at first, not to 1."
                )
            if all(are_level(got) and not are_level(due) for got, due in pairs):
                return (
                    f"in {name} all that is not zero in a row is the same, as if the "
                    "scores had no effect."
                )
    return ""
