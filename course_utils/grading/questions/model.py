"""What a question is: its inputs, its right answer, its typical wrong ones.

A question never sees the learner's code. Its parts draw inputs from a seed as plain
values, the reference says what should come of them, and each `Mistake` is a plausible
wrong answer with the one line that names the misconception behind it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Args = tuple[Any, ...]


@dataclass(frozen=True)
class Mistake:
    """A plausible wrong answer, and the line that names the misconception behind it.

    It is recognised when the learner's values equal those of `wrong` in every case, or
    when `sign(args, value)` holds in every case that gave a value.
    """

    id: str
    hint: str
    wrong: Callable[..., Any]
    sign: Callable[[Args, Any], bool] | None = None


@dataclass(frozen=True)
class Output:
    """One thing an answer returns: its name and the names of its last axes.

    `axes=None` is a number or a text; `free` leaves the sizes to the learner.
    """

    name: str
    axes: str | None = None
    free: bool = False


@dataclass(frozen=True)
class Part:
    """A share of a question's points, earned when all its cases are right.

    `view` picks what of the result counts here; `accepts` judges results of which many
    are right; `constant_steps` asks for as many executed lines in every case;
    `only_failure_hint` is shown when nothing but this part fails.
    """

    name: str
    points: int
    cases: Callable[[np.random.Generator], list[Args]]
    view: Callable[[Any], Any] = lambda value: value
    accepts: Callable[[Args, Any], bool] | None = None
    constant_steps: bool = False
    only_failure_hint: str = ""


@dataclass(frozen=True)
class Case:
    """One call: the arguments, the part it counts for (None: only a probe)."""

    args: Args
    part: Part | None
    probe: str = ""  # the argument that was changed against the first case


@dataclass(frozen=True, eq=False)
class Question:
    """A graded question: what is called, with which inputs, and what is right."""

    id: str
    title: str
    answer: str
    arguments: tuple[str, ...]
    outputs: tuple[Output, ...]
    reference: Callable[..., Any]
    parts: tuple[Part, ...]
    mistakes: tuple[Mistake, ...]
    next_step: str
    difficulty: str = "medium"  # easy, medium or hard
    minutes: int = 10  # for a learner who has read the chapter
    primitives: bool = False
    tolerance: float = 1e-4
    packaged: tuple[str, ...] = ()  # what is the answer already, in this package
    allowed: tuple[str, ...] = ()  # of PyTorch, beyond the primitives
    variants: tuple[dict[str, Any], ...] = ()  # of an experiment, drawn by a name
    given: tuple[str, ...] = ()  # the functions that the exercise hands out

    @property
    def points(self) -> int:
        return sum(part.points for part in self.parts)

    @property
    def watched(self) -> bool:
        """Whether it matters how the answer comes by its result."""
        constant_steps = any(part.constant_steps for part in self.parts)
        return self.primitives or constant_steps or bool(self.packaged)

    def cases(self, seed: int | str) -> list[Case]:
        """Draw the inputs of a seed: every part's cases, then the probes.

        A probe repeats the first case with one argument changed, to see whether the
        result depends on it.
        """
        cases = [
            Case(args, part)
            for part in self.parts
            for args in part.cases(generator(seed, self.id, part.name))
        ]
        first = cases[0].args
        rng = generator(seed, self.id, "probes")
        for i, name in enumerate(self.arguments):
            other = changed(first[i], rng)
            if other is not None:
                args = (*first[:i], other, *first[i + 1 :])
                cases.append(Case(args, None, name))
        return cases


def changed(value: Any, rng: np.random.Generator) -> Any:
    """Another argument in the place of one, or None where that might not be allowed."""
    if isinstance(value, np.ndarray) and value.dtype == np.float32:
        return value + rng.standard_normal(value.shape, dtype=np.float32)
    if isinstance(value, np.ndarray) and value.dtype == bool and not value.all():
        return np.ones_like(value)
    return value / 2 if isinstance(value, float) and value else None


def generator(seed: int | str, *names: str) -> np.random.Generator:
    """Make the random generator that belongs to a seed and a name, and to no other."""
    text = "/".join(map(str, (seed, *names)))
    digest = hashlib.sha256(text.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))
