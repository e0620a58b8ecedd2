"""`most_missed`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def right_without(terms: Tensor, right: Tensor, by: str = "mean") -> Tensor:
    """The share of right answers without each head, its mean or zero in its place."""
    shares = []
    for head in range(len(terms)):
        changed = terms.clone()
        changed[head] = terms[head].mean(dim=0) if by == "mean" else 0.0
        named = changed.sum(dim=0).argmax(dim=-1)
        shares.append((named == right).float().mean())
    return torch.stack(shares)


def most_missed(terms: Tensor, right: Tensor) -> int:
    return int(right_without(terms, right).argmin())


def draw(rng: np.random.Generator) -> Args:
    """One head knows the answer; another is larger; one adds much to every row."""
    n, n_answers = 60, 6
    order, right = rng.permutation(5), rng.integers(n_answers, size=n)
    terms = 0.3 * rng.standard_normal((5, n, n_answers))
    gold = np.eye(n_answers)[right]
    terms[order[0]] += 3.0 * gold  # the one that is needed
    terms[order[1]] += 9.0 * np.eye(n_answers)[0]  # a constant, which the next undoes
    terms[order[2]] -= 9.0 * np.eye(n_answers)[0]
    terms[order[3]] += 6.0 * rng.standard_normal((n, 1))  # large, the same for all
    return terms.astype(np.float32), right.astype(np.int64)


def by_logit(terms: Tensor, right: Tensor) -> Tensor:
    return terms[:, torch.arange(len(right)), right].mean(dim=1)


QUESTION = Question(
    id="17.4",
    title="The head that matters",
    answer="most_missed",
    arguments=("terms", "right"),
    outputs=(Output("head"),),
    reference=most_missed,
    difficulty="medium",
    minutes=12,
    next_step="replace one head by its mean, count the right answers, and compare.",
    parts=(Part("the head", 3, lambda rng: [draw(rng) for _ in range(6)]),),
    mistakes=(
        Mistake(
            "zero_ablation",
            "zeros are put in the place of the head: that also removes what it adds to "
            "every row alike; put in its mean over the rows",
            lambda terms, right: int(right_without(terms, right, "zero").argmin()),
        ),
        Mistake(
            "least_missed",
            "this head is missed least: the head that matters is the one without which "
            "fewest answers are right",
            lambda terms, right: int(right_without(terms, right).argmax()),
        ),
        Mistake(
            "largest",
            "this is the head that writes the largest numbers: size says nothing about "
            "what is missed, for it may be the same for all answers",
            lambda terms, right: int(terms.square().sum(dim=(1, 2)).argmax()),
        ),
        Mistake(
            "smallest_logit",
            "this is the head that lowers the right logits most: take each head away "
            "and count the answers",
            lambda terms, right: int(by_logit(terms, right).argmin()),
        ),
        Mistake(
            "counted_from_one",
            "the head is right, but heads are counted from 0",
            lambda terms, right: most_missed(terms, right) + 1,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def counted(put, choose=min):
    def answer(terms, right):
        whole = terms.sum(0)

        def hits(h):
            left = whole - terms[h] + put(terms[h])
            return int((left.argmax(-1) == right).sum())

        return choose(range(len(terms)), key=hits)

    return answer


RIGHT = [counted(lambda t: t.mean(0, keepdim=True))]
WRONG = [
    ("zero_ablation", counted(lambda t: 0)),
    ("least_missed", counted(lambda t: t.mean(0), max)),
    ("largest", lambda t, r: t.flatten(1).norm(dim=1).argmax().item()),
    (
        "smallest_logit",
        lambda t, r: (
            t.gather(2, r.expand(5, -1)[..., None]).sum((1, 2)).argmin().item()
        ),
    ),
    ("counted_from_one", lambda t, r: 1 + counted(lambda x: x.mean(0))(t, r)),
]
