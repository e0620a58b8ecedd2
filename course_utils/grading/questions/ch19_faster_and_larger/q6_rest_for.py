"""`rest_for`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.draw import sizes
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def rest_for(p: Tensor, q: Tensor, accept: Tensor) -> Tensor:
    missing = p - q * accept
    return missing / (1 - (q * accept).sum())


def usual(p: Tensor, q: Tensor, accept: Tensor) -> Tensor:
    rest = (p - q).clamp(min=0)
    return rest / rest.sum()


def shares_of(rest: Tensor) -> Tensor:
    return rest / rest.sum()


def draft_forgotten(p: Tensor, q: Tensor, accept: Tensor) -> Tensor:
    rest = (p - accept).clamp(min=0)
    return rest / rest.sum()


def rejected(p: Tensor, q: Tensor, accept: Tensor) -> Tensor:
    rest = q * (1 - accept)
    return rest / rest.sum()


def draw(rng: np.random.Generator) -> Args:
    (n,) = sizes(rng, 1, least=4)
    found = rng.dirichlet(np.full(n, 2.0), size=2) + 0.02
    p, q = found / found.sum(axis=1, keepdims=True)
    accept = np.minimum(1, p / q) * rng.uniform(0.2, 0.9, size=n)
    accept[int(np.argmax(p))] = 0.05  # so that p - accept leaves something
    return tuple(x.astype(np.float32) for x in (p, q, accept))


QUESTION = Question(
    id="19.6",
    title="The rest that any rule needs",
    answer="rest_for",
    arguments=("p", "q", "accept"),
    outputs=(Output("rest", "token"),),
    reference=rest_for,
    difficulty="hard",
    minutes=15,
    next_step="with which probability does token y come out? Solve for the rest.",
    parts=(Part("the rest", 4, lambda rng: [draw(rng) for _ in range(3)]),),
    mistakes=(
        Mistake(
            "exchanged",
            "p and q have changed places: q is what was drafted from, p what is wanted",
            lambda p, q, accept: shares_of((q - p * accept).clamp(min=0)),
        ),
        Mistake(
            "usual",
            "this is the rest of the usual rule: here fewer tokens are accepted, so "
            "more is missing; what is p minus what comes out by acceptance?",
            usual,
        ),
        Mistake(
            "draft_forgotten",
            "a token must be drafted before it can be accepted: by acceptance it comes "
            "out with q times accept, not with accept",
            draft_forgotten,
        ),
        Mistake(
            "the_smaller_of_both",
            "by acceptance a token comes out with q times accept, also where q is "
            "larger than p: `accept` is small there already",
            lambda p, q, accept: shares_of(p - torch.minimum(p, q) * accept),
        ),
        Mistake(
            "as_a_ratio",
            "p / q - accept is what is missing for *each time a token is drafted*: it "
            "is drafted with q, so multiply by that",
            lambda p, q, accept: shares_of(p / q - accept),
            lambda args, value: (
                min(x.min() for x in args) <= 0  # a probe
                or np.allclose(value, shares_of(args[0] / args[1] - args[2]), 1e-3)
            ),
        ),
        Mistake(
            "accept_averaged",
            "the probability of a rejection is taken from the plain mean of `accept`: "
            "tokens are drafted with q, so the mean is weighted with that",
            lambda p, q, accept: (p - q * accept) / (1 - accept.mean()),
        ),
        Mistake(
            "share_of_p",
            "by acceptance a token comes out with q times accept: it is the draft that "
            "draws it, not the model",
            lambda p, q, accept: shares_of(p - p * accept),
        ),
        Mistake(
            "rejected",
            "this is what was rejected: those tokens came too often already; draw what "
            "is missing from p",
            rejected,
        ),
        Mistake(
            "not_renormalised",
            "the rest does not sum to 1: divide by the probability of a rejection",
            lambda p, q, accept: p - q * accept,
        ),
        Mistake(
            "redraw_from_p",
            "you draw from p: what was accepted already then comes too often",
            lambda p, q, accept: p,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def looped(missing, share=True):
    def answer(p, q, accept):
        left = [
            missing(*numbers) for numbers in zip(*(x.tolist() for x in (p, q, accept)))
        ]
        total = sum(left) if share else 1
        return torch.tensor([x / total for x in left])

    return answer


RIGHT = [looped(lambda p, q, a: p - q * a)]
WRONG = [
    ("the_smaller_of_both", looped(lambda p, q, a: p - min(p, q) * a)),
    ("as_a_ratio", looped(lambda p, q, a: p / q - a)),
    ("share_of_p", looped(lambda p, q, a: p * (1 - a))),
    ("usual", looped(lambda p, q, a: max(p - q, 0))),
    ("draft_forgotten", looped(lambda p, q, a: max(p - a, 0))),
    ("rejected", looped(lambda p, q, a: q - q * a)),
    ("not_renormalised", looped(lambda p, q, a: p - q * a, share=False)),
    ("redraw_from_p", looped(lambda p, q, a: p, share=False)),
]
