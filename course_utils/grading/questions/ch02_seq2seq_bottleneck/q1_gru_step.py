"""`gru_step`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from course_utils.grading.questions.draw import normal, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def gru_step(
    x: Tensor, state: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor
) -> Tensor:
    reset, update, new_x, new_h = gates(x, state, w_x, w_h, b_x, b_h)
    return mixed(update, torch.tanh(new_x + reset * new_h), state)


def gates(
    x: Tensor, state: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    reset_x, update_x, new_x = (x @ w_x.T + b_x).chunk(3, dim=-1)
    reset_h, update_h, new_h = (state @ w_h.T + b_h).chunk(3, dim=-1)
    reset, update = torch.sigmoid(reset_x + reset_h), torch.sigmoid(update_x + update_h)
    return reset, update, new_x, new_h


def mixed(update: Tensor, new: Tensor, state: Tensor) -> Tensor:
    return (1 - update) * new + update * state


def gates_swapped(*given: Tensor) -> Tensor:
    update, reset, new_x, new_h = gates(*given)
    return mixed(update, torch.tanh(new_x + reset * new_h), given[1])


def update_reversed(*given: Tensor) -> Tensor:
    reset, update, new_x, new_h = gates(*given)
    return mixed(1 - update, torch.tanh(new_x + reset * new_h), given[1])


def reset_before_the_matrix(*given: Tensor) -> Tensor:
    reset, update, new_x, _ = gates(*given)
    _, state, _, w_h, _, b_h = given
    _, _, w_n = w_h.chunk(3)
    past = (reset * state) @ w_n.T + b_h.chunk(3)[2]
    return mixed(update, torch.tanh(new_x + past), state)


def bias_not_reset(*given: Tensor) -> Tensor:
    reset, update, new_x, new_h = gates(*given)
    bias = given[5].chunk(3)[2]
    return mixed(update, torch.tanh(new_x + bias + reset * (new_h - bias)), given[1])


def everything_reset(*given: Tensor) -> Tensor:
    reset, update, new_x, new_h = gates(*given)
    return mixed(update, torch.tanh(reset * (new_x + new_h)), given[1])


def never_reset(*given: Tensor) -> Tensor:
    _, update, new_x, new_h = gates(*given)
    return mixed(update, torch.tanh(new_x + new_h), given[1])


def sigmoid_proposal(*given: Tensor) -> Tensor:
    reset, update, new_x, new_h = gates(*given)
    return mixed(update, torch.sigmoid(new_x + reset * new_h), given[1])


def old_state_lost(*given: Tensor) -> Tensor:
    reset, update, new_x, new_h = gates(*given)
    return (1 - update) * torch.tanh(new_x + reset * new_h)


def never_mixed(*given: Tensor) -> Tensor:
    reset, _, new_x, new_h = gates(*given)
    return torch.tanh(new_x + reset * new_h)


def draw_step(rng: np.random.Generator, biased: bool, gate: float = 0.0) -> Args:
    batch, d_in, d = sizes(rng, 3)
    biases = [normal(rng, 3 * d) * np.float32(biased) for _ in range(2)]
    biases[0][d : 2 * d] += np.float32(gate)
    return (
        normal(rng, batch, d_in),
        normal(rng, batch, d),
        normal(rng, 3 * d, d_in),
        normal(rng, 3 * d, d),
        *biases,
    )


QUESTION = Question(
    id="02.1",
    title="One step of a GRU",
    answer="gru_step",
    arguments=("x", "state", "weight_x", "weight_state", "bias_x", "bias_state"),
    outputs=(Output("state", "d_hidden"),),
    reference=gru_step,
    primitives=True,
    difficulty="easy",
    minutes=10,
    next_step="make both products, cut each into r, z and n, then mix old and new.",
    parts=(
        Part("without biases", 2, lambda rng: [draw_step(rng, False)] * 2),
        Part(
            "with biases",
            1,
            lambda rng: [draw_step(rng, True), draw_step(rng, True)],
            only_failure_hint="right without biases, wrong with them: each product "
            "has its bias before anything else is done with it",
        ),
        Part("a gate that is open", 1, lambda rng: [draw_step(rng, True, gate=40.0)]),
    ),
    mistakes=(
        Mistake(
            "gates_swapped",
            "reset and update gate have changed places: the rows of the weights come "
            "in the order reset, update, new",
            gates_swapped,
        ),
        Mistake(
            "update_reversed",
            "the update gate works the wrong way round: z near 1 must keep the old "
            "state, and here it throws it away",
            update_reversed,
        ),
        Mistake(
            "reset_before_the_matrix",
            "the reset gate multiplies the state before the matrix does: that is the "
            "GRU as first published; here it multiplies the finished product",
            reset_before_the_matrix,
        ),
        Mistake(
            "bias_not_reset",
            "the state's bias of the proposal escapes the reset gate: the gate "
            "multiplies the whole product, its bias included",
            bias_not_reset,
        ),
        Mistake(
            "everything_reset",
            "the reset gate multiplies the input's share too: it decides how much of "
            "the past the proposal sees, never how much of the present",
            everything_reset,
        ),
        Mistake(
            "never_reset",
            "the reset gate is not used: nothing can make the proposal forget the past",
            never_reset,
        ),
        Mistake(
            "sigmoid_proposal",
            "the proposal runs through a sigmoid, so that the state could never become "
            "negative; gates lie between 0 and 1, what they let through does not",
            sigmoid_proposal,
        ),
        Mistake(
            "old_state_lost",
            "the old state never gets through: what the update gate does not renew, it "
            "must keep",
            old_state_lost,
        ),
        Mistake(
            "never_mixed",
            "this is the proposal alone: the update gate still has to weigh it against "
            "the old state",
            never_mixed,
        ),
    ),
    packaged=("gru_step",),
)


# ----------------------------------------------------------------------- specimens


def cell(x, state, w_x, w_h, b_x, b_h):
    """PyTorch's own, with the weights put in."""
    made = nn.GRUCell(x.shape[1], state.shape[1])
    with torch.no_grad():
        for name, value in zip(("ih", "hh"), (w_x, w_h)):
            getattr(made, f"weight_{name}").copy_(value)
        made.bias_ih.copy_(b_x)
        made.bias_hh.copy_(b_h)
        return made(x, state)


def by_hand(order="rzn", keep="z", outside=False, whole=False, squash=torch.tanh):
    def answer(x, state, w_x, w_h, b_x, b_h):
        d = state.shape[1]
        rows = {name: slice(i * d, i * d + d) for i, name in enumerate(order)}

        def of_x(name):
            return nn.functional.linear(x, w_x[rows[name]], b_x[rows[name]])

        def of_h(name, h=state):
            return nn.functional.linear(h, w_h[rows[name]], b_h[rows[name]])

        r = 1 / (1 + (-(of_x("r") + of_h("r"))).exp())
        z = 1 / (1 + (-(of_x("z") + of_h("z"))).exp())
        past = of_h("n", r * state) if outside else r * of_h("n")
        n = squash(r * (of_x("n") + of_h("n")) if whole else of_x("n") + past)
        return torch.lerp(n, state, z if keep == "z" else 1 - z)

    return answer


def no_gates(x, state, w_x, w_h, b_x, b_h):
    d = state.shape[1]
    z = torch.sigmoid(
        x @ w_x[d : 2 * d].T + b_x[d : 2 * d] + state @ w_h[d : 2 * d].T + b_h[d:][:d]
    )
    n = torch.tanh(x @ w_x[-d:].T + b_x[-d:] + state @ w_h[-d:].T + b_h[-d:])
    return n + z * (state - n)


RIGHT = [by_hand()]
WRONG = [
    ("library", cell),
    ("gates_swapped", by_hand(order="zrn")),
    ("update_reversed", by_hand(keep="1 - z")),
    ("reset_before_the_matrix", by_hand(outside=True)),
    ("everything_reset", by_hand(whole=True)),
    ("never_reset", no_gates),
    ("sigmoid_proposal", by_hand(squash=torch.sigmoid)),
]
