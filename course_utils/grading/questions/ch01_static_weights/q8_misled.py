"""`misled`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

MARGIN = 1e-3  # a nearest document that is nearest by less is a tie


def misled() -> tuple[Tensor, Tensor, Tensor]:
    counts = torch.tensor(
        [
            [1.0, 0, 1, 0, 0],  # two topics, three names; each name in both topics
            [0, 1, 1, 0, 0],
            [1, 0, 0, 1, 0],
            [0, 1, 0, 1, 0],
            [1, 0, 0, 0, 1],
            [0, 1, 0, 0, 1],
        ]
    )
    weights = torch.tensor([1.0, 1, 0.1, 0.1, 0.1])
    return counts, torch.tensor([0.0, 1, 0, 1, 0, 1]), weights


def fits(value: Any) -> bool:
    """One label a document, one weight a term, counts and weights that can be such."""
    weighed = (np.asarray(value[2]) >= 0).all()
    return bool(same_sizes(value) and has_counts(value) and weighed)


def same_sizes(value: Any) -> bool:
    counts, labels, weights = value
    return bool(counts.shape == (len(labels), len(weights)))


def has_counts(value: Any) -> bool:
    counts = np.asarray(value[0])
    return bool(np.allclose(counts, np.round(counts)) and (counts >= 0).all())


def idf_of(counts: np.ndarray) -> np.ndarray:
    holding = (counts > 0).sum(0)
    return np.where(holding > 0, np.log(len(counts) / np.maximum(holding, 1)), 0.0)


def nearest(counts: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
    """The document most like each one, by the cosine; None if there is a tie."""
    rows = np.asarray(counts, np.float64) * np.asarray(weights, np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if (lengths < 1e-9).any():
        return None
    cosines = (rows / lengths) @ (rows / lengths).T
    np.fill_diagonal(cosines, -2)
    best = np.sort(cosines, axis=1)[:, -2:]
    # several that are equally near do no harm if they all have the same label
    return None if (best[:, 1] < MARGIN).any() else cosines


def share_right(value: Any, weights: np.ndarray) -> tuple[float, bool]:
    """How many documents have a neighbour of their label, and whether labels tie."""
    counts, labels = np.asarray(value[0], np.float64), np.asarray(value[1])
    cosines = nearest(counts, weights)
    if cosines is None:
        return -1.0, False
    right, tie = [], False
    for i, row in enumerate(cosines):
        found = set(labels[row > row.max() - MARGIN].tolist())
        tie = tie or len(found) > 1
        right.append(found == {labels[i].item()})
    return float(np.mean(right)), tie


def by_idf(value: Any) -> tuple[float, bool]:
    return share_right(value, idf_of(np.asarray(value[0])))


def by_weights(value: Any) -> tuple[float, bool]:
    return share_right(value, np.asarray(value[2]))


def has_two_labels(value: Any) -> bool:
    return len(set(np.asarray(value[1]).tolist())) == 2


def idf_fails(args: Args, value: Any) -> bool:
    return fits(value) and has_two_labels(value) and by_idf(value) == (0.0, False)


def weights_succeed(args: Args, value: Any) -> bool:
    return fits(value) and has_two_labels(value) and by_weights(value) == (1.0, False)


def changed(counts: Any = None, labels: Any = None, weights: Any = None) -> Any:
    """The solution with one of its three results replaced."""
    new = (counts, labels, weights)
    return lambda: tuple(
        old if x is None else torch.tensor(x, dtype=torch.float32)
        for old, x in zip(misled(), new)
    )


QUESTION = Question(
    id="01.8",
    title="A collection that misleads idf",
    answer="misled",
    arguments=(),
    outputs=(
        Output("counts", "document term", free=True),
        Output("labels", "document", free=True),
        Output("weights", "term", free=True),
    ),
    reference=misled,
    difficulty="hard",
    minutes=20,
    next_step="let a rare word join two documents that do not belong together.",
    parts=(
        Part("idf fails for all", 2, lambda rng: [()], accepts=idf_fails),
        Part(
            "the weights succeed for all",
            2,
            lambda rng: [()],
            accepts=lambda args, value: (
                idf_fails(args, value) and weights_succeed(args, value)
            ),
            only_failure_hint="idf is misled by every document; now find weights for "
            "the terms with which every nearest document has the right label",
        ),
    ),
    mistakes=(
        Mistake(
            "alone_with_its_label",
            "a label has a single document: no other one can be its neighbour with the "
            "same label; each label needs two at least",
            changed(labels=[0.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
            lambda args, value: (
                same_sizes(value)
                and has_two_labels(value)
                and min(Counter(np.asarray(value[1]).tolist()).values()) == 1
            ),
        ),
        Mistake(
            "do_not_fit",
            "these do not fit together: one label for each document (row), one weight "
            "for each term (column)",
            changed(weights=[1.0, 1.0, 0.1]),
            lambda args, value: not same_sizes(value),
        ),
        Mistake(
            "no_counts",
            "`counts` says how often a term stands in a document: whole numbers, none "
            "of them negative",
            lambda: (misled()[0] / 2, *misled()[1:]),
            lambda args, value: same_sizes(value) and not has_counts(value),
        ),
        Mistake(
            "negative_weight",
            "a weight is negative: a term may count for little, or for nothing",
            changed(weights=[1.0, 1.0, -0.1, -0.1, -0.1]),
            lambda args, value: same_sizes(value) and min(value[2]) < 0,
        ),
        Mistake(
            "one_label",
            "two labels are asked for: with one, or with three and more, the question "
            "is another one",
            changed(labels=[0.0] * 6),
            lambda args, value: fits(value) and not has_two_labels(value),
        ),
        Mistake(
            "empty_document",
            "some document has nothing left, or nothing in common with any other: it "
            "has no nearest one (idf gives 0 to a word that all documents hold)",
            changed(counts=np.eye(6, 5).tolist()),
            lambda args, value: (
                fits(value) and -1.0 in (by_idf(value)[0], by_weights(value)[0])
            ),
        ),
        Mistake(
            "one_term_left",
            "your weights leave a single term: all documents then point the same way, "
            "and every cosine is 1; each label needs a term of its own",
            changed(
                counts=np.hstack([np.ones((6, 1)), np.asarray(misled()[0])[:, 1:]]),
                weights=[1.0, 0.0, 0.0, 0.0, 0.0],
            ),
            lambda args, value: (
                fits(value)
                and by_weights(value)[1]
                and np.count_nonzero(np.asarray(value[2])) == 1
            ),
        ),
        Mistake(
            "a_tie",
            "for some document two others are equally near, with different labels: "
            "make the rarer word rarer, or the weights less equal",
            changed(weights=[1.0] * 5),
            lambda args, value: (
                fits(value) and (by_idf(value)[1] or by_weights(value)[1])
            ),
        ),
        Mistake(
            "idf_is_right",
            "idf finds the right neighbour for every document: here the rare words are "
            "the ones that tell; let them be shared across the labels",
            changed(labels=[0.0, 0, 1, 1, 0, 0]),
            lambda args, value: fits(value) and by_idf(value)[0] == 1.0,
        ),
        Mistake(
            "idf_is_partly_right",
            "idf still finds the right neighbour for some documents; it must fail for "
            "every one: each needs a rare word that it shares with the other label",
            changed(labels=[0.0, 1, 0, 1, 1, 1]),
            lambda args, value: fits(value) and 0 < by_idf(value)[0] < 1,
        ),
        Mistake(
            "weights_are_idf",
            "your weights rank the terms as idf does, and fail as idf fails: the word "
            "that is rarer must now count for less",
            changed(weights=[0.69, 0.69, 1.1, 1.1, 1.1]),
            lambda args, value: (
                fits(value) and by_weights(value)[0] == 0 and idf_fails(args, value)
            ),
        ),
        Mistake(
            "weights_partly_right",
            "idf fails as it should; with your weights some documents still have a "
            "neighbour of the other label: which term pulls them there?",
            changed(weights=[1.0, 1.0, 0.1, 0.1, 2.0]),
            lambda args, value: idf_fails(args, value) and 0 < by_weights(value)[0] < 1,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def larger():
    """Eight documents, whole-number arrays of NumPy; the names weigh nothing."""
    counts = np.zeros((8, 6), int)
    for i in range(8):
        counts[i, i % 2] = 2
        counts[i, 2 + i // 2] = 2
    return counts, np.arange(8) % 2, np.array([1, 1, 0, 0, 0, 0])


def as_lists():
    counts, labels, weights = (x.tolist() for x in misled())
    return counts, [3 * x + 1 for x in labels], [w / 2 for w in weights]


RIGHT = [larger, as_lists]
WRONG = [
    ("do_not_fit", lambda: (torch.eye(3), torch.tensor([0, 1]), torch.ones(3))),
    ("negative_weight", lambda: (*misled()[:2], -misled()[2])),
    ("no_counts", lambda: (misled()[0] - 1, *misled()[1:])),
    ("one_label", lambda: (misled()[0], torch.arange(6), misled()[2])),
    ("empty_document", lambda: (torch.ones(4, 3), torch.arange(4) % 2, torch.ones(3))),
    (
        "a_tie",
        lambda: (
            torch.tensor([[1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1], [0, 1, 0, 1]]),
            torch.tensor([0, 1, 0, 1]),
            torch.tensor([1, 1, 0, 0]),
        ),
    ),
    ("weights_are_idf", lambda: (*misled()[:2], torch.tensor([0, 0, 1, 1, 1]))),
]
PARTIAL = [(2, lambda: (*misled()[:2], torch.tensor([0.1, 0.1, 1, 1, 1])))]
