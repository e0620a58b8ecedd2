"""`accept_or_redraw`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import first, second, sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def rest_of(p: Tensor, q: Tensor) -> Tensor:
    rest = (p - q).clamp(min=0)
    return rest / rest.sum()


def accept_or_redraw(p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    return (p / q).clamp(max=1), rest_of(p, q)


def draw(rng: np.random.Generator) -> Args:
    (n,) = sizes(rng, 1, least=4)
    found = rng.dirichlet(np.full(n, 2.0), size=2) + 0.01
    p, q = (found / found.sum(axis=1, keepdims=True)).astype(np.float32)
    return p, q


def cases(rng: np.random.Generator) -> list[Args]:
    return [draw(rng) for _ in range(3)]


QUESTION = Question(
    id="19.1",
    title="Accept or redraw",
    answer="accept_or_redraw",
    arguments=("p", "q"),
    outputs=(Output("accept", "token"), Output("rest", "token")),
    reference=accept_or_redraw,
    difficulty="easy",
    minutes=8,
    next_step="when is a drafted token sure to be accepted, and what is drawn instead?",
    parts=(
        Part("how likely it is accepted", 2, cases, view=first),
        Part("what is drawn instead", 2, cases, view=second),
    ),
    mistakes=(
        Mistake(
            "not_divided",
            "min(p, q) is how often a token is drafted *and* accepted: given that it "
            "was drafted, divide by q",
            lambda p, q: (torch.minimum(p, q), rest_of(p, q)),
        ),
        Mistake(
            "all_of_p",
            "the rest is p itself where p is larger: the draft offers q of that "
            "already; take p - q",
            lambda p, q: ((p / q).clamp(max=1), p * (p > q) / (p * (p > q)).sum()),
        ),
        Mistake(
            "accept_if_larger",
            "a token is accepted if p > q and never otherwise: one that the draft "
            "likes too much is still right now and then, with probability p / q",
            lambda p, q: ((p > q).float(), rest_of(p, q)),
        ),
        Mistake(
            "redraw_from_p",
            "after a rejection you draw from p: tokens that could be accepted get a "
            "second chance; draw from what the draft offers too rarely, p - q above 0",
            lambda p, q: ((p / q).clamp(max=1), p),
        ),
        Mistake(
            "not_renormalised",
            "the rest does not sum to 1: max(p - q, 0) must be divided by its sum",
            lambda p, q: ((p / q).clamp(max=1), (p - q).clamp(min=0)),
        ),
        Mistake(
            "divided_by_acceptance",
            "the rest is divided by the probability of an acceptance: it is divided by "
            "its own sum, which is that of a rejection",
            lambda p, q: (
                (p / q).clamp(max=1),
                (p - q).clamp(min=0) / torch.minimum(p, q).sum(),
            ),
        ),
        Mistake(
            "upside_down",
            "p and q have changed places: q is what was drawn from, p what is wanted",
            lambda p, q: ((q / p).clamp(max=1), rest_of(q, p)),
        ),
        Mistake(
            "above_one",
            "a probability is above 1: where p > q the token is always accepted, "
            "min(1, p / q)",
            lambda p, q: (p / q, rest_of(p, q)),
        ),
        Mistake(
            "absolute",
            "the rest has mass where the draft has too much already: take max(p - q, "
            "0), not the absolute difference",
            lambda p, q: (
                (p / q).clamp(max=1),
                (p - q).abs() / (p - q).abs().sum(),
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_hand(chance, left, share=True):
    def answer(p, q):
        rest = torch.stack([left(a, b) for a, b in zip(p, q)])
        accept = torch.stack([chance(a, b) for a, b in zip(p, q)])
        return accept, rest / rest.sum() if share else rest

    return answer


def least(a, b):
    return torch.minimum(torch.ones(()), a / b)


def more(a, b):
    return torch.maximum(torch.zeros(()), a - b)


RIGHT = [by_hand(least, more)]
WRONG = [
    ("accept_if_larger", by_hand(lambda a, b: (a > b).double(), more)),
    ("redraw_from_p", by_hand(least, lambda a, b: a, share=False)),
    ("not_renormalised", by_hand(least, more, share=False)),
    ("upside_down", by_hand(lambda a, b: least(b, a), lambda a, b: more(b, a))),
    ("above_one", by_hand(lambda a, b: a / b, more)),
    ("absolute", by_hand(least, lambda a, b: (a - b).abs())),
]
