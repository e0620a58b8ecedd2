"""`muon_step`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def equal_strength(matrices: Tensor) -> Tensor:
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    return u @ v


def muon_step(
    weight: Tensor, gradient: Tensor, momentum: Tensor, m: float, lr: float, parts: int
) -> tuple[Tensor, Tensor]:
    return step(weight, gradient, momentum, m, lr, parts)


def step(
    weight: Tensor,
    gradient: Tensor,
    momentum: Tensor,
    m: float,
    lr: float,
    parts: int,
    *,
    ahead: Any = lambda gradient, old, new, m: gradient + m * new,
    kept: Any = lambda gradient, old, m: m * old + gradient,
    evened: Any = equal_strength,
    cut: Any = lambda x, parts: x.unflatten(0, (parts, -1)),
) -> tuple[Tensor, Tensor]:
    """The step, or with one thing done otherwise."""
    new = kept(gradient, momentum, m)
    direction = ahead(gradient, momentum, new, m)
    return weight - lr * evened(cut(direction, parts)).reshape(weight.shape), new


def done_as(**change: Any) -> Any:
    return lambda *args: step(*args, **change)


def of_the_largest(matrices: Tensor) -> Tensor:
    """All singular values divided by the largest."""
    return matrices / torch.linalg.matrix_norm(matrices, 2, keepdim=True)


def polynomial(matrices: Tensor) -> Tensor:
    x = matrices / matrices.square().sum(dim=(-2, -1), keepdim=True).sqrt()
    for _ in range(5):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
    return x


def in_turn(weight: Tensor, g: Tensor, old: Tensor, m: float, lr: float, n: int) -> Any:
    new = m * old + g
    parts = (g + m * new).unflatten(0, (-1, n)).transpose(0, 1)
    moved = equal_strength(parts).transpose(0, 1).flatten(0, 1)
    return weight - lr * moved, new


def draw(rng: np.random.Generator, parts: int) -> Args:
    rows, columns = sizes(rng, 2)
    shape = parts * rows, columns
    weight, gradient, momentum = (normal(rng, *shape) for _ in range(3))
    m, lr = (float(x) for x in rng.uniform([0.5, 0.1], [0.9, 0.5]))
    return weight, gradient, momentum, m, lr, parts


QUESTION = Question(
    id="16.8",
    title="A step of equal strength",
    answer="muon_step",
    arguments=("weight", "gradient", "momentum", "m", "lr", "parts"),
    outputs=(Output("weight", "row column"), Output("momentum", "row column")),
    reference=muon_step,
    difficulty="medium",
    minutes=12,
    next_step="first the new momentum, then the direction, then its singular value "
    "decomposition, for each part by itself.",
    parts=(
        Part("one matrix", 2, lambda rng: [draw(rng, 1) for _ in range(3)]),
        Part(
            "several matrices in one",
            1,
            lambda rng: [draw(rng, 2), draw(rng, 3)],
            only_failure_hint="right for one matrix: queries, keys and values are "
            "three maps, and each has singular values of its own",
        ),
    ),
    mistakes=(
        Mistake(
            "divided_by_the_largest",
            "the singular values are divided by the largest, so that one becomes 1 and "
            "the others stay behind: all of them are to be 1",
            done_as(evened=of_the_largest),
        ),
        Mistake(
            "polynomial",
            "singular values come near 1, but not to 1: five steps of the chapter's "
            "polynomial are an approximation; use torch.linalg.svd",
            done_as(evened=polynomial),
        ),
        Mistake(
            "strengths_kept",
            "the step is the direction as it is: its singular values have to become 1",
            done_as(evened=lambda x: x),
        ),
        Mistake(
            "one_norm",
            "the direction is divided by its norm: that makes it shorter, and leaves "
            "the strengths as unequal as they were",
            done_as(evened=lambda x: x / x.norm(dim=(-2, -1), keepdim=True)),
        ),
        Mistake(
            "signs",
            "each entry is replaced by its sign: that evens out numbers; Muon evens "
            "out the singular values of the matrix",
            done_as(evened=torch.sign),
        ),
        Mistake(
            "momentum_alone",
            "the direction is the momentum alone: the gradient is added once more, to "
            "m times the new momentum",
            done_as(ahead=lambda gradient, old, new, m: new),
        ),
        Mistake(
            "gradient_alone",
            "the direction is the gradient alone: the momentum is left out",
            done_as(ahead=lambda gradient, old, new, m: gradient),
        ),
        Mistake(
            "momentum_averaged",
            "the momentum is an average, as in Adam: here the gradient is added whole",
            done_as(kept=lambda gradient, old, m: m * old + (1 - m) * gradient),
        ),
        Mistake(
            "uphill",
            "the step goes uphill: subtract it",
            lambda w, g, old, m, lr, n: step(w, g, old, m, -lr, n),
        ),
        Mistake(
            "not_cut",
            "the stacked matrices are taken as one: cut the rows into parts, and give "
            "each its own decomposition",
            lambda w, g, old, m, lr, n: step(w, g, old, m, lr, 1),
        ),
        Mistake(
            "in_turn",
            "the rows are dealt out to the parts in turn: a part's rows stand side by "
            "side",
            in_turn,
        ),
    ),
    packaged=("Muon", "orthogonalise"),
)


# ----------------------------------------------------------------------- specimens


def part_by_part(even=None, look=lambda g, new, m: g + new * m, down=1, cut=True):
    def answer(w, g, old, m, lr, n):
        new, moved = g + m * old, []
        for x in look(g, new, m).chunk(n if cut else 1):
            u, _, v = torch.linalg.svd(x.double())
            k = min(x.shape)
            moved.append((u[:, :k] @ v[:k]).float() if even is None else even(x))
        return w - down * lr * torch.cat(moved), new

    return answer


def over_the_largest(x):
    return x / torch.linalg.svdvals(x)[0]


RIGHT = [part_by_part()]
WRONG = [
    ("divided_by_the_largest", part_by_part(even=over_the_largest)),
    ("strengths_kept", part_by_part(even=lambda x: x)),
    ("one_norm", part_by_part(even=lambda x: x / x.square().sum() ** 0.5)),
    ("signs", part_by_part(even=torch.sign)),
    ("momentum_alone", part_by_part(look=lambda g, new, m: new)),
    ("uphill", part_by_part(down=-1)),
    ("not_cut", part_by_part(cut=False)),
]
PARTIAL = [(2, part_by_part(cut=False))]
