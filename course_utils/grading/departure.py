"""Where an answer leaves the path: its quantities beside those of the solution.

Both are recorded on the same inputs (`program`). From a wrong output the search goes
back through what it was made of, until it meets quantities that the solution has too:
between these and the output the answer went wrong. What is said holds in every case.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from course_utils.grading.comparison import alike, same
from course_utils.grading.program import Step

WORDS = {
    "matmul": "matrix product",
    "__matmul__": "matrix product",
    "__rmatmul__": "matrix product",
    "div": "division",
    "true_divide": "division",
    "__rdiv__": "division",
    "__rtruediv__": "division",
    "mul": "product",
    "__rmul__": "product",
    "add": "sum",
    "__radd__": "sum",
    "sub": "difference",
    "rsub": "difference",
    "__rsub__": "difference",
    "__getitem__": "selection",
    "__setitem__": "assignment",
    "__get__": "transposition",
    "__rpow__": "power",
    "neg": "minus sign",
    "exp": "exponential",
}
SILENT = {  # not worth to be called right
    *("eye", "ones", "zeros", "arange", "ones_like", "zeros_like", "full", "tensor"),
    *("__invert__", "bool", "float", "one_hot", "double", "long"),
}
POWERS = {"softmax", "sigmoid", "exp", "exp2", "log_softmax", "logsumexp", "expit"}
# a function, and those by which it could be written
SQUASHING = dict.fromkeys(POWERS, POWERS) | {"tanh": {"tanh"} | POWERS}
MAX_TEXT = 70


def telling(value: np.ndarray) -> bool:
    """Whether a quantity could not be the same by accident."""
    if value.size == 1:
        return bool((value != value.round()).all()) and bool(np.isfinite(value).all())
    return value.size > 1 and bool((value != value.flat[0]).any())


TURNS = ("__get__", "t", "transpose", "swapaxes", "permute", "movedim", "adjoint")
JOINS = ("stack", "cat", "concat", "vstack", "hstack", "column_stack")


class Path:
    """One answer's program beside the solution's, for one case."""

    def __init__(
        self, mine: Sequence[Step], theirs: Sequence[Step], arguments: Sequence[Any]
    ) -> None:
        self.mine, self.theirs = mine, theirs
        given = [x for x in arguments if isinstance(x, np.ndarray)]
        self.known = [any(alike(step.value, x) for x in given) for step in mine]
        self.right = [self.counterpart(step) for step in mine]
        self.given: list[bool] = []  # depends on more than numbers written down
        for step in mine:
            self.given.append(any(p < 0 or self.given[p] for p in step.parents))

    def counterpart(self, step: Step) -> tuple[int, str]:
        """The solution's quantity that equals this one, or -1, and how it does."""
        turned = -1
        if telling(step.value):
            for i in reversed(range(len(self.theirs))):
                how = alike(step.value, self.theirs[i].value)
                if how == "equal":
                    return i, how
                turned = i if how and turned < 0 else turned
        return (turned, "turned") if turned >= 0 else (-1, "")

    def find(self, steps: Sequence[Step], value: Any) -> int:
        """The last step that gave a value, or -1."""
        value = np.asarray(value, float)
        for i in reversed(range(len(steps))):
            if steps[i].value.shape == value.shape and same(
                steps[i].value, value, 1e-6
            ):
                return i
        return -1

    def behind(self, root: int) -> tuple[list[int], list[int]]:
        """What led to a step: where it is wrong, and what was still right before."""
        wrong, right, todo = set(), set(), [root]
        while todo:
            i = todo.pop()
            if i < 0 or i in wrong or i in right or self.known[i]:
                continue
            if self.right[i][0] >= 0 and i != root:
                right.add(i)
                continue
            if telling(self.mine[i].value) or self.is_levelled(i):
                wrong.add(i)
            todo += self.mine[i].parents
        return sorted(wrong), sorted(right)

    def is_levelled(self, i: int) -> bool:
        """Whether a step made one number of many, and the solution did not."""
        step = self.mine[i]
        of_numbers = step.floating and step.value.size > 1
        return of_numbers and self.given[i] and self.find(self.theirs, step.value) < 0

    def was_right_before(self, i: int) -> bool:
        """Whether the same piece of a line was right in an earlier round of a loop."""
        return any(
            self.right[j][0] >= 0 and self.mine[j].round < self.mine[i].round
            for j in range(i)
            if self.place(j) == self.place(i)
        )

    def place(self, i: int) -> tuple[int, int]:
        """The piece of a line that makes a step."""
        return self.mine[i].line, self.mine[i].at

    def ancestors(self, i: int) -> set[int]:
        """All quantities of the solution that one of them is made of."""
        found, todo = set(), [i]
        while todo:
            for parent in self.theirs[todo.pop()].parents:
                if parent >= 0 and parent not in found:
                    found.add(parent)
                    todo.append(parent)
        return found

    def is_foreign(self, j: int, output: int) -> bool:
        """Whether a right step equals none of the quantities that an output is made of.

        It is then another output's, say, and no beginning of this one.
        """
        if output < 0:
            return False
        made_of, value = self.ancestors(output) | {output}, self.mine[j].value
        return not any(alike(value, self.theirs[i].value) for i in made_of)

    def goes_on(self, j: int) -> bool:
        """Whether the solution repeats what a right step does, and the answer not."""
        there = self.right[j][0]
        if any(self.place(k) == self.place(j) for k in range(j + 1, len(self.mine))):
            return False
        step = self.theirs[there]
        alike_places = [
            other.round
            for other in self.theirs
            if (other.line, other.at) == (step.line, step.at)
        ]
        return any(number > step.round for number in alike_places)

    def passed(self) -> set[int]:
        """The solution's quantities that are there already, or behind one that is."""
        there = {i for i, _ in self.right if i >= 0}
        return there.union(*(self.ancestors(i) for i in there))

    def nearest(self, steps: Sequence[int], output: int) -> int:
        """Of some right steps the one from which the missing quantity is made."""
        passed = self.passed()
        wanted = self.ancestors(output) | {output} if output >= 0 else set()
        for i in sorted(wanted - passed):
            made_of = self.theirs[i].parents
            found = [j for j in steps if self.right[j][0] in made_of]
            if found:
                return found[-1]
        return steps[-1]

    def unused_result(self, root: int, output: int) -> int:
        """The step that has the right output although another one is returned, or -1.

        One that the returned value is made of was not forgotten, but changed.
        """
        made_of, todo = {root}, [root]
        while todo:
            for parent in self.mine[todo.pop()].parents:
                if parent >= 0 and parent not in made_of:
                    made_of.add(parent)
                    todo.append(parent)
        found = [i for i, x in enumerate(self.right) if x == (output, "equal")]
        left_out = [i for i in found if i not in made_of]
        return left_out[-1] if output >= 0 and len(left_out) == len(found) > 0 else -1

    def next_function(self, i: int, output: int) -> str:
        """What the solution does next to a right step, where the answer never does.

        An answer may do something else first (hide a score, then the softmax), or write
        a function in steps: nothing of its family may follow.
        """
        wanted = self.ancestors(output) | {output} if output >= 0 else set()
        there = self.right[i][0]
        made = [self.theirs[j] for j in wanted if there in self.theirs[j].parents]
        after = {step.function for step in made}
        only = next(iter(after)) if len(after) == 1 else ""
        family = SQUASHING.get(only, set())
        later = {i}
        for j in range(i + 1, len(self.mine)):
            if later & set(self.mine[j].parents):
                later.add(j)
        done = any(self.mine[j].function in family for j in later - {i})
        return only if family and not done else ""

    def missing(self, output: int, first: int) -> str:
        """The solution's quantity that the first wrong step should have been.

        It has a name, is made of what is there already and has that step's sizes.
        """
        passed = self.passed()
        sizes = sorted(self.mine[first].value.squeeze().shape)
        for i in sorted(self.ancestors(output)) if output >= 0 else ():
            step = self.theirs[i]
            if i not in passed and telling(step.value) and len(step.name) > 2:
                fits = sorted(step.value.squeeze().shape) == sizes
                return step.name if fits else ""
        return ""


def located(
    mine: Sequence[Step],
    theirs: Sequence[Step],
    arguments: Sequence[Any],
    got: Any,
    expected: Any,
    name: str,
    known: Collection[str] = (),
) -> str:
    """Say where one wrong output of one case leaves the path, or nothing.

    `known` are the names of the question; others of the solution are never said.
    """
    path = Path(mine, theirs, arguments)
    root, output = path.find(mine, got), path.find(theirs, expected)
    if root < 0:
        return ""
    there, how = path.right[root]
    if there >= 0 and there != output and how == "equal":
        what = theirs[there].name
        is_what = f"the right `{what}`" if what in known else "a right quantity"
        if output >= 0 and there not in path.ancestors(output):
            return (
                f"`{name}` is {is_what} ({line(mine[root])}), but not the one asked "
                f"for: `{name}` is not made of it."
            )
        return (
            f"`{name}` is {is_what} ({line(mine[root])}), but not yet the last one: a "
            "step is missing after it."
        )
    kept = path.unused_result(root, output)
    if kept >= 0:
        return (
            f"the right `{name}` is there ({line(mine[kept])}), but it is not what is "
            "returned."
        )
    wrong, right = path.behind(root)
    if not wrong or not right:
        return ""
    lines = sorted({mine[i].line for i in wrong})
    spoiled = [i for i in right if path.right[i][0] == output]
    # where wrong begins: made of right quantities and arguments alone
    sources = [i for i in wrong if not set(mine[i].parents) & set(wrong)]
    first = next((i for i in sources if path.given[i]), sources[0])
    if spoiled:
        last = mine[spoiled[-1]]
        after = next((i for i in wrong if i > spoiled[-1]), wrong[-1])
        same_line = mine[after].line == last.line
        where = "in the same line" if same_line else line(mine[after])
        return f"the right `{name}` is there ({line(last)}), but then changed: {where}."
    if path.was_right_before(first):
        return (
            f"{line(mine[first])}, is right when it runs first, not every later time: "
            "look at what changes in between."
        )
    missing = path.missing(output, first)
    never = f"; the right `{missing}` never appears" * (missing in known)
    foreign = [i for i in right if path.is_foreign(i, output)]
    if foreign and all(i in foreign for i in right):
        last = mine[foreign[-1]]
        what = matched(last, "", known).partition(" is still")[0]
        return (
            f"{what} is a quantity of the solution, but there `{name}` is not made of "
            "it: does it belong here?"
        )
    spoken = [i for i in right if mine[i].function not in SILENT and i not in foreign]
    before = [i for i in spoken if i in mine[first].parents]
    there_on = f"{'look at' if len(lines) == 1 else 'look from'} {line(mine[first])}"
    there_on += "" if len(lines) == 1 else " on"
    if before and len(lines) == 1:
        there_on = f"look from there to {line(mine[first])}"
    if before:
        place = path.nearest(before, output)
        last, counterpart = mine[place], path.right[place]
        start = matched(last, theirs[counterpart[0]].name, known)
        if path.goes_on(place) and last.line != mine[first].line:
            return (
                f"{start}, but the solution does the same again after it: does your "
                "loop run often enough?"
            )
        if counterpart[1] == "turned" and last.function not in TURNS:
            start += ", but for the order of its axes"
        squashed = path.next_function(place, output)
        if last.line == mine[first].line and not last.text.startswith("for "):
            next_step = f"the {word(mine[first])} after it"
            step = next_step if len(wrong) == 1 else "the rest"
            there_on = f"look at {step} of that line"
            if len(lines) > 1:  # the fault may be in a later one
                there_on = f"look from {step} of that line on"
        if mine[first].function in JOINS:
            there_on = (
                f"look at what {line(mine[first])}, puts together: which, and when"
            )
        if squashed:
            return (
                f"{start}; in the solution the next step is a `{squashed}`, in yours "
                "it is not."
            )
        return f"{start}{never}: {there_on}."
    if any(mine[i].line < mine[first].line for i in spoken):
        same_place = [path.place(i) == path.place(first) for i in range(len(mine))]
        if sum(same_place) > 1:
            there_on += ", and at what changes from one run of it to the next"
        return f"{there_on}: the tensors that go into it are right{never}."
    return ""


def line(step: Step) -> str:
    """Quote a line of the learner's code."""
    text = step.text if len(step.text) <= MAX_TEXT else f"{step.text[:MAX_TEXT]} …"
    return f"line {step.line}, `{text}`" if text else f"line {step.line}"


def is_piece(step: Step) -> bool:
    """Whether a quantity without a name is made by a piece of its line alone."""
    return not step.name and 0 < len(step.part) <= MAX_TEXT and step.part != step.text


def word(step: Step) -> str:
    """Name what a step does."""
    return WORDS.get(step.function, f"`{step.function}`")


def matched(step: Step, theirs: str, known: Collection[str]) -> str:
    """Say that one of the learner's quantities is the solution's too."""
    if is_piece(step):
        what = f"`{step.part}` (in line {step.line})"
    else:
        what = f"`{step.name}`" if step.name else f"the {word(step)}"
        what += f" ({line(step)})"
    if theirs and theirs == step.name:
        return f"{what} is right"
    is_what = f"the right `{theirs}`" if theirs in known else "still as in the solution"
    return f"{what} is {is_what}"
