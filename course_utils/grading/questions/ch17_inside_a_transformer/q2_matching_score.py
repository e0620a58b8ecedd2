"""`matching_score`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def score(weights: Tensor, tokens: Tensor, shift: int, over: str) -> Tensor:
    n = len(tokens)
    marked = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        for j in range(n):
            source = j - shift
            if 0 <= source < i and j <= i and tokens[source] == tokens[i]:
                marked[i, j] = True
    on_marked = (weights * marked).sum(dim=-1)
    if over == "all":
        return on_marked.mean()
    if over == "cells":
        return weights[marked].mean()
    if over == "sum":
        return on_marked.sum()
    return on_marked[marked.any(dim=-1)].mean()


def matching_score(weights: Tensor, tokens: Tensor) -> Tensor:
    return score(weights, tokens, 1, "queries")


def draw(rng: np.random.Generator) -> Args:
    n = int(rng.integers(9, 13))
    once = rng.permutation(20)[: n // 2]
    tokens = np.concatenate([once, rng.permutation([*once, 30])[: n - n // 2]])
    tokens[2] = tokens[0]  # one token has two earlier copies
    tokens[-1] = tokens[0]
    table = np.tril(rng.random((n, n)) + 0.05)
    weights = (table / table.sum(axis=1, keepdims=True)).astype(np.float32)
    return weights, tokens.astype(np.int64)


QUESTION = Question(
    id="17.2",
    title="The prefix-matching score",
    answer="matching_score",
    arguments=("weights", "tokens"),
    outputs=(Output("score"),),
    reference=matching_score,
    difficulty="medium",
    minutes=12,
    next_step="write down by hand which keys are marked for A B A.",
    parts=(Part("the score", 3, lambda rng: [draw(rng) for _ in range(3)]),),
    mistakes=(
        Mistake(
            "the_copy_itself",
            "the weight on the earlier copy of the token is counted: an induction head "
            "attends to the position after it",
            lambda weights, tokens: score(weights, tokens, 0, "queries"),
        ),
        Mistake(
            "before_the_copy",
            "the weight on the position before the copy is counted: it is the one "
            "after it that holds what comes next",
            lambda weights, tokens: score(weights, tokens, -1, "queries"),
        ),
        Mistake(
            "all_queries",
            "the mean is over all queries: those whose token has not come before have "
            "nothing to find, and are left out",
            lambda weights, tokens: score(weights, tokens, 1, "all"),
        ),
        Mistake(
            "mean_over_cells",
            "the mean is over the marked cells: where a token has two earlier copies "
            "their weights are added for that query first",
            lambda weights, tokens: score(weights, tokens, 1, "cells"),
        ),
        Mistake(
            "not_a_mean",
            "the weights are added up over the queries: a score is their mean",
            lambda weights, tokens: score(weights, tokens, 1, "sum"),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def marked(tokens, shift):
    n = len(tokens)
    earlier = (tokens[:, None] == tokens[None]).tril(-1)  # (query, earlier copy)
    there = torch.zeros(n, n, dtype=torch.bool)
    for i, j in earlier.nonzero().tolist():
        if 0 <= j + shift <= i:
            there[i, j + shift] = True
    return there


def rows(weights, tokens, shift=1):
    there = marked(tokens, shift)
    return (weights * there).sum(1), there.any(1)


RIGHT = [lambda w, t: rows(w, t)[0].sum() / rows(w, t)[1].sum()]
WRONG = [
    ("the_copy_itself", lambda w, t: rows(w, t, 0)[0].sum() / rows(w, t, 0)[1].sum()),
    ("before_the_copy", lambda w, t: rows(w, t, -1)[0].sum() / rows(w, t, -1)[1].sum()),
    ("all_queries", lambda w, t: rows(w, t)[0].mean()),
    ("mean_over_cells", lambda w, t: w[marked(t, 1)].mean()),
    ("not_a_mean", lambda w, t: (w * marked(t, 1)).sum()),
]
