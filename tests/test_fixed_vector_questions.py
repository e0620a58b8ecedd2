"""The questions of chapter 02, answered rightly and wrongly by someone else."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from course_utils.checks import PUBLIC_SEED, verdict
from course_utils.questions import find_question

SEEDS = (PUBLIC_SEED, 0, 1, "a secret of the instructor")


# ------------------------------------------------------------------ 02.1, row by row


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


# -------------------------------------------------------------------- 02.2, sentence by
#                                                                      sentence


def picked(place):
    def answer(states, source):
        return torch.stack(
            [row[place(int((ids > 0).sum()))] for row, ids in zip(states, source)]
        )

    return answer


def gathered(states, source):
    last = source.ne(0).long().sum(1).sub(1)[:, None, None]
    return states.gather(1, last.expand(-1, 1, states.shape[2])).squeeze(1)


# ------------------------------------------------------------------ 02.3, list by list


def lists(read, said):
    def answer(target):
        rows = target.tolist()
        inputs = torch.tensor([read(row) for row in rows])
        outputs = torch.tensor([said(row) for row in rows])
        return inputs, outputs, outputs.bool()

    return answer


# -------------------------------------------------------------------- 02.4, by autograd


def differentiated(weight, states):
    """Rebuild the network from its states, and let autograd take the gradients."""
    before = torch.cat([torch.zeros(1), states[:-1]])
    inputs = torch.atanh(states.double()) - weight * before.double()
    state, kept = torch.zeros((), dtype=torch.float64), []
    for x in inputs:
        state = torch.tanh(weight * state + x).requires_grad_()
        state.retain_grad()
        kept.append(state)
    state.backward()
    return torch.stack([h.grad for h in kept]).float()


def products(factor):
    def answer(weight, states):
        w, h = weight, states.tolist()
        steps = range(len(h))
        return torch.tensor(
            [
                math.prod(factor(w, h[j - 1], h[j]) for j in steps[t + 1 :])
                for t in steps
            ]
        )

    return answer


# ------------------------------------------------------------------------ 02.5 and 02.6


def by_bucket(is_right, inside=lambda low, n, high: low <= n <= high):
    def answer(hypotheses, references, lengths, buckets):
        found = []
        for low, high in buckets:
            chosen = [i for i, n in enumerate(lengths) if inside(low, n, high)]
            right = [i for i in chosen if is_right(hypotheses[i], references[i])]
            found += [len(right) / len(chosen)] if chosen else []
        return found

    return answer


def starts_alike(hypothesis, reference):
    return reference[: len(hypothesis)] == hypothesis


WRONG = [
    ("02.1", "gates_swapped", by_hand(order="zrn")),
    ("02.1", "update_reversed", by_hand(keep="1 - z")),
    ("02.1", "reset_before_the_matrix", by_hand(outside=True)),
    ("02.1", "everything_reset", by_hand(whole=True)),
    ("02.1", "never_reset", no_gates),
    ("02.1", "sigmoid_proposal", by_hand(squash=torch.sigmoid)),
    ("02.2", "at_the_padding", lambda states, source: states.unbind(1)[-1]),
    ("02.2", "at_the_padding", picked(lambda length: -1)),
    ("02.2", "first_state", picked(lambda length: 0)),
    ("02.2", "one_length_for_all", lambda s, x: s[:, int((x[0] != 0).sum()) - 1, :]),
    ("02.2", "all_states_averaged", lambda s, x: s.sum(1) / s.shape[1]),
    ("02.3", "leak", lists(lambda r: r[1:], lambda r: r[1:])),
    ("02.3", "leak_with_begin", lists(lambda r: r[:-1], lambda r: r[:-1])),
    ("02.3", "backwards", lists(lambda r: r[1:], lambda r: r[:-1])),
    ("02.3", "rolled", lists(lambda r: r, lambda r: r[1:] + r[:1])),
    ("02.3", "two_apart", lists(lambda r: r[:-2], lambda r: r[2:])),
    (
        "02.3",
        "all_counted",
        lambda t: (t[:, :-1], t[:, 1:], torch.full_like(t[:, 1:], True).bool()),
    ),
    ("02.4", "tanh_forgotten", products(lambda w, before, after: w)),
    ("02.4", "weight_forgotten", products(lambda w, before, after: 1 - after**2)),
    ("02.4", "slope_not_squared", products(lambda w, before, after: w * (1 - after))),
    ("02.4", "slope_at_the_start", products(lambda w, b, after: w * (1 - b**2))),
    ("02.5", "beginning_only", by_bucket(starts_alike)),
    (
        "02.5",
        "end_excluded",
        by_bucket(list.__eq__, lambda lo, n, hi: n in range(lo, hi)),
    ),
    ("02.5", "order_ignored", by_bucket(lambda h, r: sorted(r) == sorted(h))),
    ("02.6", "unknown_word", lambda: (["a", "mouse"], ["the", "dog"])),
    ("02.6", "unknown_word", lambda: ([], ["the", "dog"])),
    ("02.6", "same_sentence", lambda: (["the", "dog"], ["the", "dog"])),
    ("02.6", "lengths_differ", lambda: (["sees", "the", "the"], ["cat", "the"])),
    ("02.6", "other_order", lambda: (["dog", "sees", "cat"], ["cat", "sees", "dog"])),
    ("02.6", "vectors_differ", lambda: (["the", "dog"], ["the", "cat"])),
]
RIGHT = [
    ("02.1", cell),
    ("02.1", by_hand()),
    ("02.2", gathered),
    ("02.2", picked(lambda length: length - 1)),
    ("02.3", lists(lambda r: r[:-1], lambda r: r[1:])),
    ("02.4", differentiated),
    ("02.4", products(lambda w, before, after: w * (1 - after**2))),
    ("02.5", by_bucket(list.__eq__)),
    ("02.6", lambda: (["dog", "the", "sees"], ["cat", "a", "sees"])),
    ("02.6", lambda: (("a", "sees"), ("dog", "cat"))),
]


@pytest.mark.parametrize(("identifier", "name", "answer"), WRONG)
def test_a_wrong_answer_of_another_hand_gets_the_hint(identifier, name, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.points < result.max_points
        assert result.misconception == name


@pytest.mark.parametrize(("identifier", "answer"), RIGHT)
def test_a_right_answer_of_another_hand_earns_every_point(identifier, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert (result.points, result.hint) == (result.max_points, "")


@pytest.mark.parametrize("identifier", [f"02.{i + 1}" for i in range(6)])
def test_hints_never_hold_the_answer(identifier):
    for mistake in find_question(identifier).mistakes:
        for code in ("[:, :-1]", "1 - h", "sum(dim", "== r", '"dog", "the"'):
            assert code not in mistake.hint
