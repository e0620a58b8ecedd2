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
    reset, update, new_x, _ = gates(x, state, w_x, w_h, b_x, b_h)
    past = (reset * state) @ w_h.chunk(3)[2].T + b_h.chunk(3)[2]
    return mixed(update, torch.tanh(new_x + past), state)


def gates(
    x: Tensor, state: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    reset_x, update_x, new_x = (x @ w_x.T + b_x).chunk(3, dim=-1)
    reset_h, update_h, new_h = (state @ w_h.T + b_h).chunk(3, dim=-1)
    reset, update = torch.sigmoid(reset_x + reset_h), torch.sigmoid(update_x + update_h)
    return reset, update, new_x, new_h


def mixed(update: Tensor, new: Tensor, state: Tensor) -> Tensor:
    return (1 - update) * new + update * state


def of_past(state: Tensor, w_h: Tensor, b_h: Tensor) -> Tensor:
    """What a state, reset or not, adds to the proposal."""
    return state @ w_h.chunk(3)[2].T + b_h.chunk(3)[2]


def proposed(*given: Tensor, gate: Tensor | None = None) -> Tensor:
    """The proposal, with another gate in the place of the reset gate."""
    reset, _, new_x, _ = gates(*given)
    reset = reset if gate is None else gate
    return torch.tanh(new_x + of_past(reset * given[1], given[3], given[5]))


def reset_after_the_matrix(*given: Tensor) -> Tensor:
    reset, update, new_x, new_h = gates(*given)
    return mixed(update, torch.tanh(new_x + reset * new_h), given[1])


def bias_not_reset(*given: Tensor) -> Tensor:
    reset, update, new_x, new_h = gates(*given)
    bias = given[5].chunk(3)[2]
    return mixed(update, torch.tanh(new_x + bias + reset * (new_h - bias)), given[1])


def bias_lost(*given: Tensor) -> Tensor:
    reset, update, new_x, _ = gates(*given)
    past = (reset * given[1]) @ given[3].chunk(3)[2].T
    return mixed(update, torch.tanh(new_x + past), given[1])


def gates_swapped(*given: Tensor) -> Tensor:
    update, reset, _, _ = gates(*given)
    return mixed(update, proposed(*given, gate=reset), given[1])


def update_for_reset(*given: Tensor) -> Tensor:
    _, update, _, _ = gates(*given)
    return mixed(update, proposed(*given, gate=update), given[1])


def update_reversed(*given: Tensor) -> Tensor:
    _, update, _, _ = gates(*given)
    return mixed(1 - update, proposed(*given), given[1])


def everything_reset(*given: Tensor) -> Tensor:
    reset, update, new_x, new_h = gates(*given)
    return mixed(update, torch.tanh(reset * (new_x + new_h)), given[1])


def never_reset(*given: Tensor) -> Tensor:
    _, update, new_x, new_h = gates(*given)
    return mixed(update, torch.tanh(new_x + new_h), given[1])


def reset_twice(*given: Tensor) -> Tensor:
    reset, update, _, _ = gates(*given)
    return mixed(update, proposed(*given), reset * given[1])


def sigmoid_proposal(*given: Tensor) -> Tensor:
    reset, update, new_x, _ = gates(*given)
    past = of_past(reset * given[1], given[3], given[5])
    return mixed(update, torch.sigmoid(new_x + past), given[1])


def old_state_lost(*given: Tensor) -> Tensor:
    return (1 - gates(*given)[1]) * proposed(*given)


def turned(*given: Tensor, blocks: tuple[int, ...] = (0, 1, 2)) -> Tensor:
    """The step with some of the square blocks of U used as they lie."""
    lying = given[3].chunk(3)
    u = torch.cat([x.T if i in blocks else x for i, x in enumerate(lying)])
    x, state, w_x, _, b_x, b_h = given
    return gru_step(x, state, w_x, u, b_x, b_h)


def update_from_the_reset_state(*given: Tensor) -> Tensor:
    x, state, *rest = given
    reset = gates(*given)[0]
    update = gates(x, reset * state, *rest)[1]
    return mixed(update, proposed(*given), state)


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
    title="One step of a GRU, as in the paper",
    answer="gru_step",
    arguments=("x", "state", "weight_x", "weight_state", "bias_x", "bias_state"),
    outputs=(Output("state", "d_hidden"),),
    reference=gru_step,
    primitives=True,
    difficulty="medium",
    minutes=12,
    next_step="make the two gates first; the proposal needs a product of its own.",
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
            "reset_after_the_matrix",
            "this is the chapter's step, and PyTorch's: the reset gate multiplies the "
            "finished product; here it multiplies the state, before the matrix does",
            reset_after_the_matrix,
        ),
        Mistake(
            "bias_not_reset",
            "the reset gate still multiplies a finished product, only its bias is "
            "left out: here it multiplies the state, before the matrix does",
            bias_not_reset,
        ),
        Mistake(
            "bias_lost",
            "the proposal's product with the state has lost its bias: it is added "
            "after the product, as everywhere",
            bias_lost,
        ),
        Mistake(
            "gates_swapped",
            "reset and update gate have changed places: the rows of the weights come "
            "in the order reset, update, new",
            gates_swapped,
        ),
        Mistake(
            "update_for_reset",
            "the update gate stands where the reset gate belongs: it is r that "
            "multiplies the state inside the proposal",
            update_for_reset,
        ),
        Mistake(
            "update_reversed",
            "the update gate works the wrong way round: z near 1 must keep the old "
            "state, and here it throws it away",
            update_reversed,
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
            "reset_twice",
            "the state that is kept is reset as well: the reset gate acts inside the "
            "proposal alone, the last line mixes in the old state as it was",
            reset_twice,
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
            proposed,
        ),
        Mistake(
            "state_not_transposed",
            "the blocks of `weight_state` are multiplied as they lie: they are "
            "transposes, and square, so that nothing complains",
            turned,
        ),
        Mistake(
            "proposal_not_transposed",
            "in the proposal the block of `weight_state` is multiplied as it lies: it "
            "is a transpose, and square, so that nothing complains",
            lambda *given: turned(*given, blocks=(2,)),
        ),
        Mistake(
            "update_from_the_reset_state",
            "the update gate is made from the reset state: both gates see the state as "
            "it was, the proposal alone sees it reset",
            update_from_the_reset_state,
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


def by_hand(
    order="rzn", keep="z", outside=True, whole=False, squash=torch.tanh, lying=""
):
    def answer(x, state, w_x, w_h, b_x, b_h):
        d = state.shape[1]
        rows = {name: slice(i * d, i * d + d) for i, name in enumerate(order)}

        def of_x(name):
            return nn.functional.linear(x, w_x[rows[name]], b_x[rows[name]])

        def of_h(name, h=state):
            u = w_h[rows[name]]
            return h @ (u if name in lying else u.T) + b_h[rows[name]]

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


def by_einsum(x, state, w_x, w_h, b_x, b_h):
    """Every gate by its own matrices, in double precision."""
    x, state = x.double(), state.double()
    of_x = [w.double() for w in w_x.reshape(3, -1, x.shape[1])]
    of_h = [w.double() for w in w_h.reshape(3, -1, state.shape[1])]
    b = b_x.reshape(3, -1) + b_h.reshape(3, -1)

    def both(i, h):
        return (
            torch.einsum("bi,di->bd", x, of_x[i])
            + torch.einsum("bi,di->bd", h, of_h[i])
            + b[i]
        )

    r, z = both(0, state).sigmoid(), torch.special.expit(both(1, state))
    return z * state + (1 - z) * both(2, r * state).tanh()


def row_by_row(*given):
    x, state, *rest = given
    rows = [by_hand()(x[[i]], state[[i]], *rest)[0] for i in range(len(x))]
    return torch.stack(rows)


def in_numpy(x, state, w_x, w_h, b_x, b_h):
    x, h, w, u, b, c = (y.numpy() for y in (x, state, w_x, w_h, b_x, b_h))
    d = h.shape[1]
    gate = 1 / (
        1 + np.exp(-(x @ w[: 2 * d].T + b[: 2 * d] + h @ u[: 2 * d].T + c[: 2 * d]))
    )
    r, z = gate[:, :d], gate[:, d:]
    n = np.tanh(x @ w[2 * d :].T + b[2 * d :] + (r * h) @ u[2 * d :].T + c[2 * d :])
    return n + z * (h - n)


RIGHT = [by_hand(), by_einsum, row_by_row, in_numpy]
WRONG = [
    ("library", cell),
    ("reset_after_the_matrix", by_hand(outside=False)),
    ("gates_swapped", by_hand(order="zrn")),
    ("update_reversed", by_hand(keep="1 - z")),
    ("everything_reset", by_hand(whole=True)),
    ("never_reset", no_gates),
    ("sigmoid_proposal", by_hand(squash=torch.sigmoid)),
    ("state_not_transposed", by_hand(lying="rzn")),
    ("proposal_not_transposed", by_hand(lying="n")),
    ("bias_lost", lambda x, h, w, u, b, c: biasless(x, h, w, u, b, c)),
]


def biasless(x, state, w_x, w_h, b_x, b_h):
    """As by hand, without the last third of the state's biases."""
    kept = torch.cat([b_h[: -state.shape[1]], torch.zeros(state.shape[1])])
    return by_hand()(x, state, w_x, w_h, b_x, kept)
