"""Questions of chapter 02: a recurrent step, a summary past padding, a shifted target.

The later ones, on gradients, scores and what one vector can hold, are in
`fixed_vectors`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import first, normal, second, sizes

# ------------------------------------------------------------------------ 02.1 GRU step


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


GRU = Question(
    id="02.1",
    title="One step of a GRU",
    answer="gru_step",
    arguments=("x", "state", "weight_x", "weight_state", "bias_x", "bias_state"),
    outputs=(Output("state", "d_hidden"),),
    reference=gru_step,
    next_step="make both products, cut each into r, z and n, then mix old and new.",
    parts=(
        Part("without biases", 2, lambda rng: [draw_step(rng, False)] * 2),
        Part(
            "with biases",
            1,
            lambda rng: [draw_step(rng, True), draw_step(rng, True)],
            alone="right without biases, wrong with them: each product has its bias "
            "before anything else is done with it",
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

# ------------------------------------------------------- 02.2 the summary, past padding


def sentence_vector(states: Tensor, source: Tensor) -> Tensor:
    last = (source != 0).sum(dim=1) - 1
    return states[torch.arange(len(states)), last]


def draw_states(rng: np.random.Generator, padded: bool) -> list[Args]:
    cases = []
    for _ in range(2):
        batch, token, d = sizes(rng, 3)
        source = rng.integers(1, 30, (batch, token))
        lengths = [2, token, *rng.integers(1, token, batch - 2)]  # the second is full
        for row, length in enumerate(lengths if padded else ()):
            source[row, length:] = 0
        cases.append((normal(rng, batch, token, d), source))
    return cases


def real(source: Tensor) -> Tensor:
    return (source != 0)[:, :, None]


def one_too_far(states: Tensor, source: Tensor) -> Tensor:
    place = (source != 0).sum(dim=1).clamp(max=source.shape[1] - 1)
    return states[torch.arange(len(states)), place]


SUMMARY = Question(
    id="02.2",
    title="The last state that is real",
    answer="sentence_vector",
    arguments=("states", "source"),
    outputs=(Output("vector", "d_hidden"),),
    reference=sentence_vector,
    next_step="count the real tokens of every sentence, then pick one state of each.",
    parts=(
        Part("sentences of one length", 1, lambda rng: draw_states(rng, False)),
        Part("padded sentences", 2, lambda rng: draw_states(rng, True)),
    ),
    mistakes=(
        Mistake(
            "at_the_padding",
            "the state is taken at the end of the rectangle: a short sentence's reader "
            "has gone on over the padding by then",
            lambda states, source: states[:, -1],
        ),
        Mistake(
            "one_too_far",
            "the place is the number of tokens, one too far: places are counted from 0",
            one_too_far,
        ),
        Mistake(
            "out_of_range",
            "the place is the number of tokens, which runs out of the rectangle when a "
            "sentence fills it: places are counted from 0",
            lambda states, source: states[
                torch.arange(len(states)), (source != 0).sum(dim=1)
            ],
        ),
        Mistake(
            "one_length_for_all",
            "the first sentence's length is used for all: every sentence ends at a "
            "place of its own",
            lambda states, source: states[:, (source[0] != 0).sum() - 1],
        ),
        Mistake(
            "first_state",
            "this is the state after the first word: the reader had not yet seen "
            "anything else",
            lambda states, source: states[:, 0],
        ),
        Mistake(
            "all_states_averaged",
            "this averages the states over the whole rectangle; asked for is one of "
            "them, the one where the reader has just read the last word",
            lambda states, source: states.mean(dim=1),
        ),
        Mistake(
            "real_states_averaged",
            "this averages the states of the real words; asked for is one of them, the "
            "one where the reader has just read the last word",
            lambda states, source: (states * real(source)).sum(1) / real(source).sum(1),
        ),
        Mistake(
            "every_pair",
            "the places are used for every sentence, so that each gets the states of "
            "all; choose row and place together, one of each",
            lambda states, source: states[:, (source != 0).sum(dim=1) - 1],
        ),
    ),
)

# ----------------------------------------------------------------- 02.3 shifted targets


def teacher_forcing(target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return target[:, :-1], target[:, 1:], target[:, 1:] != 0


def draw_targets(rng: np.random.Generator) -> list[Args]:
    cases = []
    for _ in range(2):
        batch, token = sizes(rng, 2, least=4)
        target = np.zeros((batch, token + 2), np.int64)
        for row in range(batch):
            words = token if row == 0 else int(rng.integers(1, token))
            target[row, : words + 2] = [1, *rng.integers(3, 40, words), 2]
        cases.append((target,))
    return cases


TARGETS = Question(
    id="02.3",
    title="What the decoder reads and what it is to say",
    answer="teacher_forcing",
    arguments=("target",),
    outputs=(
        Output("target_in", "token"),
        Output("target_out", "token"),
        Output("counted", "token"),
    ),
    reference=teacher_forcing,
    next_step="write one target sentence on paper twice, shifted by one place.",
    parts=(
        Part("read", 1, draw_targets, view=first),
        Part("said", 1, draw_targets, view=second),
        Part("counted", 1, draw_targets, view=lambda value: value[2]),
    ),
    mistakes=(
        Mistake(
            "leak",
            "the decoder reads the very token that it is to say at that place: it "
            "learns to copy, and knows nothing when it has to speak by itself",
            lambda t: (t[:, 1:], t[:, 1:], t[:, 1:] != 0),
        ),
        Mistake(
            "leak_with_begin",
            "nothing is shifted: at every place the decoder reads the token that it is "
            "to say there",
            lambda t: (t[:, :-1], t[:, :-1], t[:, :-1] != 0),
        ),
        Mistake(
            "backwards",
            "the two have changed places: the decoder would read a token and be asked "
            "for the one before it",
            lambda t: (t[:, 1:], t[:, :-1], t[:, :-1] != 0),
        ),
        Mistake(
            "backwards_counted_right",
            "what is read and what is said have changed places: the decoder would read "
            "a token and be asked for the one before it",
            lambda t: (t[:, 1:], t[:, :-1], t[:, 1:] != 0),
        ),
        Mistake(
            "nothing_cut",
            "the whole target is read and the whole target is said: read all but the "
            "last token, say all but the first",
            lambda t: (t, t, t != 0),
        ),
        Mistake(
            "rolled",
            "rolling brings the first token round to the last place: the decoder would "
            "be asked for <bos> at the end; cut it off instead",
            lambda t: (t, t.roll(-1, dims=1), t.roll(-1, dims=1) != 0),
        ),
        Mistake(
            "across_the_batch",
            "the cut goes through the sentences, not through their tokens: the batch "
            "stays whole",
            lambda t: (t[:-1], t[1:], t[1:] != 0),
        ),
        Mistake(
            "two_apart",
            "what is read and what is said are two places apart: the decoder never "
            "sees the token just before the one it is to say",
            lambda t: (t[:, :-2], t[:, 2:], t[:, 2:] != 0),
        ),
        Mistake(
            "end_not_counted",
            "the end token does not count here: then nobody teaches the decoder when "
            "to stop",
            lambda t: (t[:, :-1], t[:, 1:], t[:, 1:] > 2),
        ),
        Mistake(
            "counted_where_read",
            "counted are the places where something real is read; what matters is "
            "whether something real is to be said",
            lambda t: (t[:, :-1], t[:, 1:], t[:, :-1] != 0),
        ),
        Mistake(
            "padding_counted",
            "the padding counts and the words do not: True marks what is to be said",
            lambda t: (t[:, :-1], t[:, 1:], t[:, 1:] == 0),
        ),
        Mistake(
            "all_counted",
            "everything counts, the padding too: the decoder would be paid for saying "
            "padding after the end",
            lambda t: (t[:, :-1], t[:, 1:], torch.ones_like(t[:, 1:]).bool()),
        ),
    ),
)

QUESTIONS = (GRU, SUMMARY, TARGETS)
