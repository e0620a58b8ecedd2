"""`two_leaks`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def two_leaks() -> tuple[Tensor, Tensor]:
    turned = torch.eye(3).flip(0).bool()
    return turned, torch.ones(3, 3).tril().flip(1).bool()


def tables(value: Any) -> list[np.ndarray]:
    return [np.asarray(x).astype(bool) for x in value]


def fit(args: Args, value: Any) -> bool:
    """Two square boolean masks of one size, in which every query sees something."""
    first, second = value
    return (
        first.shape == second.shape
        and first.shape[0] == first.shape[1] >= 3
        and first.dtype == second.dtype == np.bool_
        and all(x.any(axis=1).all() for x in tables(value))
    )


def leaks(mask: np.ndarray) -> bool:
    return bool(np.triu(mask, 1).any())


def reach(value: Any, turned: bool = False) -> np.ndarray:
    """What the outputs of the second layer depend on, without residual paths."""
    first, second = (x.astype(int) for x in tables(value))
    return (first @ second if turned else second @ first) > 0


def both_leak(args: Args, value: Any) -> bool:
    return fit(args, value) and all(leaks(x) for x in tables(value))


def stack_is_tight(args: Args, value: Any) -> bool:
    return both_leak(args, value) and not leaks(reach(value))


def stack_sees_all(args: Args, value: Any) -> bool:
    whole = np.tri(len(value[0]), dtype=bool)
    return stack_is_tight(args, value) and bool((reach(value) == whole).all())


LOWER, UPPER = torch.ones(3, 3).tril().bool(), torch.ones(3, 3).triu().bool()
TURN = torch.eye(3).flip(0).bool()
QUESTION = Question(
    id="09.9",
    title="Two leaks that cancel",
    answer="two_leaks",
    arguments=(),
    outputs=(
        Output("first", "query key", free=True),
        Output("second", "query key", free=True),
    ),
    reference=two_leaks,
    difficulty="hard",
    minutes=15,
    next_step="write both masks as matrices of 0 and 1: which product is the reach of "
    "two layers, and how can the second factor undo what the first one did?",
    parts=(
        Part("both masks leak", 1, lambda rng: [()], accepts=both_leak),
        Part("the stack does not", 2, lambda rng: [()], accepts=stack_is_tight),
        Part("and sees all it may", 1, lambda rng: [()], accepts=stack_sees_all),
    ),
    mistakes=(
        Mistake(
            "not_boolean",
            "the masks are to be boolean: finish them with `.bool()`",
            lambda: (TURN.float(), LOWER.flip(1).float()),
            lambda args, value: any(x.dtype != np.bool_ for x in value),
        ),
        Mistake(
            "not_square",
            "the two masks are square and have one size, at least three tokens: both "
            "layers read the same text",
            lambda: (torch.ones(2, 2).bool(), torch.ones(3, 3).bool()),
            lambda args, value: (
                any(x.shape != (len(value[0]),) * 2 for x in value) or len(value[0]) < 3
            ),
        ),
        Mistake(
            "sees_nothing",
            "some query of a layer may see no key at all: leave every row one True",
            lambda: (TURN, UPPER & ~torch.eye(3).bool()),
            lambda args, value: not all(x.any(axis=1).all() for x in tables(value)),
        ),
        Mistake(
            "one_is_causal",
            "one of the two masks does not leak by itself: each needs a True above the "
            "diagonal",
            lambda: (LOWER, TURN),
            lambda args, value: not all(leaks(x) for x in tables(value)),
        ),
        Mistake(
            "other_order",
            "the other way round it would work: the first mask acts first, so that an "
            "output sees the keys of `second`, and through each of them those of "
            "`first`",
            lambda: (LOWER.flip(1), TURN),
            lambda args, value: (
                fit(args, value)
                and bool((reach(value, True) == np.tri(len(value[0]))).all())
                and leaks(reach(value))
            ),
        ),
        Mistake(
            "elementwise",
            "the two masks have only causal pairs in common, but a message need not "
            "take one pair twice: i → l in the second layer, then l → j in the first",
            lambda: (LOWER.flip(1), LOWER | torch.eye(3).roll(1, 1).bool()),
            lambda args, value: (
                fit(args, value)
                and not leaks(np.logical_and(*tables(value)))
                and leaks(reach(value))
            ),
        ),
        Mistake(
            "stack_leaks",
            "the stack still leaks: follow one output through both layers; some key of "
            "`second` has, in `first`, a key that comes after the output",
            lambda: (UPPER, UPPER),
            lambda args, value: fit(args, value) and leaks(reach(value)),
        ),
        Mistake(
            "itself_lost",
            "nothing leaks, but some output no longer depends on its own token: it "
            "should reach itself and every token before it",
            lambda: (TURN, torch.tensor([[0, 0, 1], [0, 0, 1], [0, 1, 0]]).bool()),
            lambda args, value: (
                stack_is_tight(args, value) and not np.diag(reach(value)).all()
            ),
        ),
        Mistake(
            "past_lost",
            "nothing leaks, and every output reaches its own token, but some output "
            "misses a token before it",
            lambda: (TURN, TURN),
            lambda args, value: (
                stack_is_tight(args, value) and not stack_sees_all(args, value)
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def shuffled(n, order):
    """The first layer moves the tokens about, the second one knows where they went."""
    moved = torch.eye(n)[list(order)].bool()
    causal = torch.tensor([[j <= i for j in range(n)] for i in range(n)])
    return moved, (causal.float() @ moved.T.float()) > 0


RIGHT = [
    lambda: shuffled(5, [1, 2, 3, 4, 0]),
    lambda: shuffled(3, [1, 0, 2]),
    lambda: [
        np.array([[0, 1, 0], [1, 0, 0], [0, 1, 1]], bool),
        np.array([[0, 1, 0], [1, 1, 0], [1, 1, 1]], bool),
    ],
]
WRONG = [
    ("one_is_causal", lambda: (torch.ones(4, 4).tril().bool(), torch.eye(4).bool())),
    ("not_boolean", lambda: tuple(x.int() for x in shuffled(4, [3, 2, 1, 0]))),
    ("not_square", lambda: (torch.eye(2).flip(0).bool(),) * 2),
    ("past_lost", lambda: (torch.eye(4).flip(0).bool(),) * 2),
    ("other_order", lambda: shuffled(4, [1, 2, 3, 0])[::-1]),
    ("stack_leaks", lambda: (torch.ones(4, 4).tril(1).bool(),) * 2),
    ("sees_nothing", lambda: (torch.ones(3, 3).triu(1).bool(), torch.eye(3).bool())),
]
PARTIAL = [(3, lambda: (torch.eye(4).flip(0).bool(),) * 2)]
