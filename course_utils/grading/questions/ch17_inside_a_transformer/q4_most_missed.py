"""`most_missed`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

N_ROWS, N_ANSWERS = 60, 6


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


def one_hot(answers: np.ndarray) -> np.ndarray:
    return np.eye(N_ANSWERS)[answers]


def shuffled(rng: np.random.Generator, heads: list, right: np.ndarray) -> Args:
    terms = np.stack(heads)[rng.permutation(len(heads))]
    return terms.astype(np.float32), right.astype(np.int64)


def draw_constant(rng: np.random.Generator) -> Args:
    """One head knows the answer; another is larger; one adds much to every row."""
    right = rng.integers(N_ANSWERS, size=N_ROWS)
    terms = 0.3 * rng.standard_normal((5, N_ROWS, N_ANSWERS))
    terms[0] += 3.0 * one_hot(right)  # the one that is needed
    terms[1] += 9.0 * np.eye(N_ANSWERS)[0]  # a constant, which the next undoes
    terms[2] -= 9.0 * np.eye(N_ANSWERS)[0]
    terms[3] += 6.0 * rng.standard_normal((N_ROWS, 1))  # large, the same for all
    return shuffled(rng, list(terms), right)


def draw_joint(rng: np.random.Generator) -> Args:
    """Twins know the answer; one head undoes what another does, and is missed."""
    right = rng.integers(N_ANSWERS, size=N_ROWS)
    other = (right + rng.integers(1, N_ANSWERS, size=N_ROWS)) % N_ANSWERS
    rows = np.arange(N_ROWS)[:, None]
    some, last = rows < 0.6 * N_ROWS, rows >= 0.8 * N_ROWS
    terms = 0.02 * rng.standard_normal((6, N_ROWS, N_ANSWERS))
    terms[0] += 1.5 * one_hot(right)  # in most rows either of the twins would do;
    terms[1] += 2.0 * one_hot(right) + 2.5 * last * one_hot(other)  # this is louder
    terms[2] += 5.0 * some * one_hot(other)
    terms[3] -= 5.0 * some * one_hot(other)  # useless alone; the one that is needed
    terms[4] += 3.8 * np.eye(N_ANSWERS)[0]  # a constant, which the next undoes
    terms[5] -= 3.8 * np.eye(N_ANSWERS)[0]
    return shuffled(rng, list(terms), right)


def draw_wrong_rows(rng: np.random.Generator) -> Args:
    """In many rows the model is wrong, whatever one of its heads does there.

    Another head saves a few rows from a very large loss.
    """
    right = rng.integers(N_ANSWERS, size=N_ROWS)
    step = rng.integers(1, N_ANSWERS - 1, size=N_ROWS)
    one, two = (right + step) % N_ANSWERS, (right + step + 1) % N_ANSWERS
    rows = np.arange(N_ROWS)[:, None]
    terms = 0.1 * rng.standard_normal((6, N_ROWS, N_ANSWERS))
    terms[0] += 5.0 * (rows < 28) * one_hot(one)  # wrong with it,
    terms[1] += 3.0 * (rows < 28) * one_hot(two)  # and without it
    terms[2] += 3.0 * ((rows >= 28) & (rows < 52)) * one_hot(right)  # it is needed
    terms[3] += 3.0 * (rows >= 52) * one_hot(right)
    terms[4] += 15.0 * (rows >= 54) * one_hot(one)  # a large loss in six rows,
    terms[5] -= 15.0 * (rows >= 54) * one_hot(one)  # which this prevents
    return shuffled(rng, list(terms), right)


def draw_all(rng: np.random.Generator) -> list[Args]:
    kinds = (draw_constant, draw_joint, draw_wrong_rows)
    return [draw(rng) for draw in kinds for _ in range(3)]


def without(terms: Tensor) -> Tensor:
    """All logits without each head, its mean in its place: (head, row, answer)."""
    return terms.sum(dim=0) - terms + terms.mean(dim=1, keepdim=True)


def most_wrong_of(logits: Tensor, right: Tensor) -> int:
    """The head whose logits, (head, row, answer), name fewest right answers."""
    return int((logits.argmax(dim=-1) == right).float().mean(dim=1).argmin())


def only_one(terms: Tensor) -> Tensor:
    means = terms.mean(dim=1, keepdim=True)
    return terms + means.sum(dim=0) - means


def never_put_back(terms: Tensor, right: Tensor) -> int:
    left, logits = terms.clone(), []
    for head in range(len(terms)):
        left[head] = left[head].mean(dim=0)
        logits.append(left.sum(dim=0))
    return most_wrong_of(torch.stack(logits), right)


def largest_loss(terms: Tensor, right: Tensor) -> int:
    log_p = without(terms).log_softmax(dim=-1)
    return int(by_logit(log_p, right).argmin())


def most_changed(terms: Tensor, right: Tensor) -> int:
    changed = without(terms).argmax(dim=-1) != terms.sum(dim=0).argmax(dim=-1)
    return int(changed.float().mean(dim=1).argmax())


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
    parts=(Part("the head", 3, draw_all),),
    mistakes=(
        Mistake(
            "the_number_right",
            "this is the number of answers that are right without that head: return "
            "which head it is",
            lambda terms, right: int(
                (without(terms).argmax(-1) == right).sum(-1).min()
            ),
        ),
        Mistake(
            "only_one_kept",
            "one head is kept and the means stand in for all others: it is the other "
            "way round, one mean and all others as they are",
            lambda terms, right: most_wrong_of(only_one(terms), right),
        ),
        Mistake(
            "never_put_back",
            "the heads that were replaced are never put back, so that more and more "
            "are missing: begin from all heads each time",
            never_put_back,
        ),
        Mistake(
            "zero_ablation",
            "zeros are put in the place of the head, or what is the same for all "
            "answers: that also removes what it adds to every row alike; put in its "
            "mean over the rows",
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
        Mistake(
            "attribution",
            "this is the head that adds most to the right logits: another may do the "
            "same, and then it isn't missed; take each head away and count",
            lambda terms, right: int(by_logit(terms, right).argmax()),
        ),
        Mistake(
            "alone",
            "this is the head that does best alone: a head may be needed for what it "
            "does together with others; take away one and keep the rest",
            lambda terms, right: int(
                (terms.argmax(-1) == right).float().mean(1).argmax()
            ),
        ),
        Mistake(
            "largest_loss",
            "this is the head without which the mean loss is largest: a few rows with "
            "a large loss decide it; count the right answers",
            largest_loss,
        ),
        Mistake(
            "most_changed",
            "this is the head without which most answers change: some of them were "
            "wrong already; count the right ones that are left",
            most_changed,
        ),
        Mistake(
            "mean_over_heads",
            "the mean of all heads is put in the place of the head: put in its own, "
            "over the rows",
            lambda terms, right: most_wrong_of(
                terms.sum(dim=0) - terms + terms.mean(dim=0), right
            ),
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


def loss(terms, right, head):
    left = torch.cat([terms[:head], terms[head].mean(0).expand_as(terms[:1])])
    left = torch.cat([left, terms[head + 1 :]]).sum(0)
    return F.cross_entropy(left, right).item()


def changes(terms):
    left = torch.stack(
        [terms.sum(0) - terms[h] + terms[h].mean(0) for h in range(len(terms))]
    )
    return (left.argmax(-1) != terms.sum(0).argmax(-1)).sum(1)


RIGHT = [counted(lambda t: t.mean(0, keepdim=True))]
WRONG = [
    ("zero_ablation", counted(lambda t: 0)),
    ("least_missed", counted(lambda t: t.mean(0), max)),
    ("largest", lambda t, r: t.flatten(1).norm(dim=1).argmax().item()),
    (
        "smallest_logit",
        lambda t, r: (
            t.gather(2, r.expand(len(t), -1)[..., None]).sum((1, 2)).argmin().item()
        ),
    ),
    ("attribution", lambda t, r: int(t[:, range(len(r)), r].sum(1).argmax())),
    ("alone", lambda t, r: int((t.argmax(2) == r).sum(1).argmax())),
    ("largest_loss", lambda t, r: max(range(len(t)), key=lambda h: loss(t, r, h))),
    ("most_changed", lambda t, r: int(changes(t).argmax())),
    (
        "mean_over_heads",
        lambda t, r: int(((t.sum(0) - t + t.mean(0)).argmax(-1) == r).sum(1).argmin()),
    ),
    ("counted_from_one", lambda t, r: 1 + counted(lambda x: x.mean(0))(t, r)),
]
