"""The sentences about an answer that no table of mistakes holds: why there is no value,
what is wrong with its form, and where its numbers differ first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from course_utils.grading.answer_runner import Failure
from course_utils.grading.comparison import TIMES, relation, slip
from course_utils.grading.questions.model import Args, Output, Question

MAX_FREE_SIZE = 64  # a result of free shape stays small enough to be examined,
MAX_SHOWN = 12  # whole numbers of an input are shown as they are
MAX_FREE_NUMBER = 1e6  # and its numbers small enough to be computed with


@dataclass(frozen=True)
class Wrong:
    """One output of one case that is not what it should be."""

    case: int
    output: int
    args: Args
    got: Any
    right: Any


def outputs_of(question: Question, value: Any) -> list[Any]:
    """The outputs of an answer as a list, also when there is one."""
    return value if len(question.outputs) > 1 else [value]


def axes_of(output: Output, ndim: int) -> str:
    """Name the axes of a result: the last ones by the output, the leading as batch."""
    names = (output.axes or "").split()
    leading = {0: [], 1: ["batch"], 2: ["batch", "head"]}.get(ndim - len(names), ["…"])
    return f"({', '.join(leading + names)})"


def type_of(value: Any) -> str:
    """Name a plain value's type as the learner knows it."""
    if isinstance(value, np.ndarray):
        return "torch.Tensor"
    return "None" if value is None else type(value).__name__


def with_article(name: str) -> str:
    """Write "a list", "an int", but "None"."""
    return name if name == "None" else f"a{'n' * (name[0] in 'aeiou')} {name}"


def number_of(number: int, one: str, many: str = "") -> str:
    """Write "1 axis", "2 axes"."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def explain_failure(failure: Failure, question: Question) -> str:
    """Say why there is no value to judge."""
    call = f"`{question.answer}`"
    if failure.kind == "unanswered":
        if failure.type:
            return (
                f"not answered yet: {call} calls `{failure.type}`; answer that first."
            )
        return f"not answered yet: {question.next_step}"
    if failure.kind == "not_callable":
        return (
            f"check got a {failure.type}, expected the function {call} itself, "
            "without parentheses after it."
        )
    if failure.kind == "type":
        return (
            f"{call} returned {with_article(failure.type)}, expected "
            f"{returns(question)}; return PyTorch tensors and plain numbers."
        )
    if failure.kind == "exception":
        where = f" at `{failure.line}`" if failure.line else ""
        return f"{call} raised {failure.type}: {failure.message}{where}"
    if failure.kind == "missing":
        return f"there is no {call} in the notebook: keep the name the exercise gives."
    if failure.kind == "time":
        loop = "look for a loop that never ends, or has far too many rounds"
        if question.variants:
            loop = (
                "run the experiment in a cell of its own, once, and return the number "
                "that came out; the check never trains"
            )
        return f"{call} did not finish in time: {loop}."
    return f"{call} ended the program that ran it ({failure.message})."


def returns(question: Question) -> str:
    """Say what an answer should return."""
    names = ", ".join(output.name for output in question.outputs)
    return f"({names})" if len(question.outputs) > 1 else names


def explain_form(
    question: Question,
    value: Any,
    expected: Any,
    counted: tuple[int, ...] | None = None,
) -> tuple[str, str] | None:
    """Find a wrong type, number of results, shape or non-finite number.

    `counted` are the outputs to look at: all, if nothing is said.
    """
    call, many = f"`{question.answer}`", len(question.outputs) > 1
    if many and not (isinstance(value, list) and len(value) == len(expected)):
        came = with_article(type_of(value))
        came = number_of(len(value), "result") if isinstance(value, list) else came
        return "type", f"{call} returned {came}, expected {returns(question)}."
    rows = zip(outputs_of(question, value), outputs_of(question, expected))
    flags_booleans = all(part.name != "boolean" for part in question.parts)
    for i, (output, (got, right)) in enumerate(zip(question.outputs, rows)):
        if counted is None or i in counted:
            found = explain_output(output, got, right, flags_booleans)
            if found:
                return found
    return None


def explain_output(
    output: Output, got: Any, right: Any, booleans: bool = True
) -> tuple[str, str] | None:
    """Find what is wrong with the form of one output."""
    name = f"`{output.name}`"
    if not isinstance(right, np.ndarray):
        number = isinstance(right, int | float) and not isinstance(right, bool)
        fits = isinstance(got, np.ndarray | int | float) and np.ndim(got) == 0
        if number and isinstance(got, np.ndarray) and got.ndim:
            return "shape", f"{name} has shape {got.shape}, expected a single number."
        if number and (not fits or isinstance(got, bool)):
            return "type", f"{name} is {with_article(type_of(got))}, expected a number."
        if not number and type(got) is not type(right):
            came, expected = (with_article(type_of(x)) for x in (got, right))
            return "type", f"{name} is {came}, expected {expected}."
    elif isinstance(got, list) and is_ragged(got):
        return "type", (
            f"{name} is a list whose rows have different lengths: they have to be "
            "alike, or no tensor can be made of it."
        )
    elif not isinstance(got, np.ndarray):
        return (
            "type",
            f"{name} is {with_article(type_of(got))}, expected a torch.Tensor.",
        )
    elif output.free:
        if got.ndim != right.ndim or not all(0 < n <= MAX_FREE_SIZE for n in got.shape):
            return "shape", (
                f"{name} has shape {got.shape}, expected "
                f"{number_of(right.ndim, 'axis', 'axes')} "
                f"{axes_of(output, right.ndim)} of 1 to {MAX_FREE_SIZE} each."
            )
        if np.isfinite(got).all() and np.abs(got).max(initial=0) > MAX_FREE_NUMBER:
            return "too_large", (
                f"{name} holds numbers beyond {MAX_FREE_NUMBER:,.0f}, where rounding "
                "decides what is larger: choose small ones."
            )
    elif got.shape != right.shape and not right.ndim:
        return "shape", f"{name} has shape {got.shape}, expected a single number."
    elif got.shape != right.shape:
        return "shape", (
            f"{name} has shape {got.shape}, expected {right.shape} = "
            f"{axes_of(output, right.ndim)}{about_shape(output, got, right)}."
        )
    elif booleans and right.dtype == bool and got.dtype != bool:
        return "type", (
            f"{name} holds numbers, expected True and False: finish it with `.bool()` "
            "or a comparison."
        )
    elif booleans and right.dtype != bool and got.dtype == bool:
        return "type", f"{name} holds True and False, expected numbers: use `.float()`."
    if isinstance(got, np.ndarray | float) and not np.isfinite(got).all():
        if not (np.isnan(got) | np.isposinf(got)).any():
            return "not_finite", (
                f"{name} holds −∞, as a mask or the logarithm of 0 gives it: every "
                "number of it is to be finite."
            )
        return "not_finite", (
            f"{name} holds NaN or infinity: something overflowed or was divided by "
            f"zero."
        )
    return None


def is_ragged(value: list) -> bool:
    """Whether the rows of a list, or what is in them, have different lengths."""
    rows = [x for x in value if isinstance(x, list)]
    return len({len(x) for x in rows}) > 1 or any(is_ragged(x) for x in rows)


def about_shape(output: Output, got: np.ndarray, right: np.ndarray) -> str:
    """Say how a shape differs, where that is simple."""
    names = axes_of(output, right.ndim).strip("()").split(", ")
    names = names if len(names) == right.ndim else [f"{i}" for i in range(right.ndim)]
    if got.ndim == right.ndim:
        other = [i for i in range(got.ndim) if got.shape[i] != right.shape[i]]
        if len(other) == 2 and sorted(got.shape) == sorted(right.shape):
            return f": the axes {names[other[0]]} and {names[other[1]]} are exchanged"
        if len(other) > 2 and sorted(got.shape) == sorted(right.shape):
            return ": the axes stand in another order"
        if len(other) == 1:
            i, more = other[0], got.shape[other[0]] - right.shape[other[0]]
            if got.shape[i] == 1:
                return f": along the axis {names[i]} there is a single entry for all"
            return f": {too_many(more)} along the axis {names[i]}"
        more_each = [got.shape[i] - right.shape[i] for i in other]
        said = (f"{too_many(m)} along {names[i]}" for m, i in zip(more_each, other))
        return f": {', '.join(dict.fromkeys(said))}"
    if got.squeeze().shape == right.squeeze().shape:
        return ": an axis of size 1 is " + (
            "missing" if got.ndim < right.ndim else "too many"
        )
    for i in range(right.ndim):
        if right.shape[:i] + right.shape[i + 1 :] == got.shape:
            return f": the axis {names[i]} is missing"
    for i, n in enumerate(got.shape):
        if got.shape[:i] + got.shape[i + 1 :] == right.shape:
            pairs = [name for name, size in zip(names, right.shape) if size == n]
            every = f": each {pairs[0]} meets every {pairs[0]}" if pairs else ""
            return f": axis {i}, of size {n}, is too many{every}"
    return ""


def too_many(more: int) -> str:
    """Say by how much a size is wrong."""
    return f"{abs(more)} too {'many' if more > 0 else 'few'}"


def entry(index: Any, output: Output, ndim: int) -> str:
    """Name an entry of an output: `weights[0, 2]` (query 0, key 2)."""
    if not ndim:
        return f"`{output.name}`"
    where = ", ".join(map(str, index))
    axes = axes_of(output, ndim).strip("()").split(", ")
    named = ", ".join(f"{axis} {i}" for axis, i in zip(axes, index))
    return f"`{output.name}[{where}]`" + (f" ({named})" if len(axes) == ndim else "")


def inputs_of(question: Question, args: Args) -> str:
    """Say with which inputs: numbers and texts as they are, the rest by its shape."""
    said: list[str] = []
    for name, x in zip(question.arguments, args):
        if isinstance(x, np.ndarray) and x.dtype.kind in "biu" and x.size <= MAX_SHOWN:
            said.append(f"{name} = {x.tolist()}")
        elif isinstance(x, np.ndarray) and len(said) < 3:
            said.append(f"{name} of shape {x.shape}")
        elif isinstance(x, int | float | str):
            said.append(f"{name}={x!r}")
    return f" with {', '.join(said)}" if said else ""


def explain_values(question: Question, wrong: list[Wrong]) -> tuple[str, str]:
    """Show how the first wrong output differs, and the first entry that does."""
    i = wrong[0].output
    output = question.outputs[i]
    mine = [x for x in wrong if x.output == i]
    if not question.arguments:  # the expected value is the answer
        word = "number" if isinstance(mine[0].right, int | float) else "answer"
        near = slip(mine[0].got, mine[0].right)
        if near:
            stop = "" if near.endswith("?") else "."
            return "slip", f"`{output.name}` is not right: {near}{stop}"
        some_are_right = len({x.output for x in wrong}) < len(question.outputs)
        begin = f" Begin again from here: {question.next_step}" * (not some_are_right)
        return "values", f"`{output.name}` is not the right {word}.{begin}"
    numbers = all(
        isinstance(x, np.ndarray | int | float) and not isinstance(x, bool)
        for x in (mine[0].got, mine[0].right)
    )
    where = inputs_of(question, mine[0].args)
    if isinstance(mine[0].got, list) and isinstance(mine[0].right, list):
        found, wanted = len(mine[0].got), len(mine[0].right)
        if found != wanted:
            holds = f"`{output.name}` holds {number_of(found, 'entry', 'entries')}"
            return "values", f"{holds}, expected {wanted}{where}."
    if not numbers:
        came, due = (f"{x!r}"[:60] for x in (mine[0].got, mine[0].right))
        return "values", f"`{output.name}` is {came}, expected {due}{where}."
    got, right = np.asarray(mine[0].got, float), np.asarray(mine[0].right, float)
    how = {relation(x.got, x.right) for x in mine}
    one = next(iter(how)) if len(how) == 1 else ""
    said = f"`{output.name}` {one}; " if one else ""
    if len(how) > 1 and got.size > 1 and all(x.endswith(TIMES) for x in how):
        factors = " and ".join(sorted(words.split()[1] for words in how)[:2])
        said = (
            f"`{output.name}` is right but for a factor, another in each case "
            f"({factors} in two of them); "
        )
    close = np.isclose(
        got, right, question.tolerance, question.tolerance / 10, equal_nan=True
    )
    index = tuple(int(n) for n in np.argwhere(~close)[0]) if not close.all() else ()
    share = f", {int((~close).sum())} of {close.size} entries differ" * (close.size > 1)
    first = entry(index, output, right.ndim)
    return "values", (
        f"{said}{first} is {got[index]:.5g}, expected {right[index]:.5g}{where}{share}."
    )
