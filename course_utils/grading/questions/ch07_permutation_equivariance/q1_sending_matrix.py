"""`sending_matrix`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.evaluation.symmetry import permutation_matrix
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def draw_order(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw an order that is not its own inverse: a swap would hide P for its transpose.

    Reading it backwards, or sorting it, gives another order too.
    """
    while True:
        order = rng.permutation(n)
        inverse = np.argsort(order)
        others = (np.arange(n), inverse, order[::-1], inverse[::-1])
        if not any(np.array_equal(order, other) for other in others):
            return order


def eye(n: int) -> Tensor:
    return torch.eye(n)


def sending_matrix(to: Tensor) -> tuple[Tensor, Tensor]:
    order = torch.argsort(to)
    return eye(len(to))[order], order


def order_of_sending(to: Tensor) -> Tensor:
    return torch.argsort(to)


def draw_targets(rng: np.random.Generator) -> list[Args]:
    return [(draw_order(rng, n),) for n in (4, 5, 6)]


QUESTION = Question(
    id="07.1",
    title="A matrix that sends",
    answer="sending_matrix",
    arguments=("to",),
    outputs=(Output("matrix", "token token"), Output("order", "token")),
    reference=sending_matrix,
    difficulty="medium",
    minutes=8,
    next_step="in which row of the matrix must the one of token i stand?",
    parts=(
        Part("the matrix", 1, draw_targets, view=lambda value: value[0]),
        Part("the order", 1, draw_targets, view=lambda value: value[1]),
    ),
    mistakes=(
        Mistake(
            "fetches",
            "this matrix fetches: its row i brings token to[i]; the question is about "
            "sending, token i goes to place to[i]",
            lambda to: (eye(len(to))[to], to.clone()),
        ),
        Mistake(
            "matrix_fetches",
            "the order is right, the matrix is another one: compare `matrix @ x` with "
            "`x[order]` for a small x",
            lambda to: (eye(len(to))[to], order_of_sending(to)),
        ),
        Mistake(
            "order_is_to",
            "the matrix is right, the order is not: `to` says where each token goes, "
            "an order says who comes to each place",
            lambda to: (sending_matrix(to)[0], to.clone()),
        ),
        Mistake(
            "both_sides",
            "rows and columns are both rearranged: that undoes itself and leaves the "
            "identity, P I Pᵀ = I; only one of them moves",
            lambda to: (eye(len(to))[to][:, to], order_of_sending(to)),
        ),
        Mistake(
            "backwards",
            "the list is read from its end: that is another permutation; to undo one, "
            "ask of every place who was sent there",
            lambda to: (eye(len(to))[to.flip(0)], to.flip(0)),
        ),
        Mistake(
            "sorted",
            "sorting the targets gives 0, 1, 2, … and loses who goes where; what is "
            "needed is where in `to` each place stands",
            lambda to: (eye(len(to)), torch.sort(to).values),
        ),
        Mistake(
            "targets_on_the_diagonal",
            "the targets stand on the diagonal as numbers: that multiplies the tokens "
            "instead of moving them; the entries are 0 and 1",
            lambda to: (torch.diag(to).float(), order_of_sending(to)),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def sent(to):
    """Carry every token to its place, one by one."""
    matrix, order = torch.zeros(len(to), len(to)), [0] * len(to)
    for token, place in enumerate(to.tolist()):
        matrix[place, token] = 1
        order[place] = token
    return matrix, torch.tensor(order)


RIGHT = [sent, lambda to: (permutation_matrix(to).T, torch.argsort(to))]
WRONG = [
    ("fetches", lambda to: (permutation_matrix(to), to.long())),
    ("fetches", lambda to: (sent(to)[0].T, torch.argsort(sent(to)[1]))),
    ("matrix_fetches", lambda to: (sent(to)[0].T, sent(to)[1])),
    ("order_is_to", lambda to: (sent(to)[0], to)),
    ("both_sides", lambda to: (torch.eye(len(to)), sent(to)[1])),
]
