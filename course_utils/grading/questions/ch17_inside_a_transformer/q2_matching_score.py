"""`matching_score`: the question, its mistakes and specimen answers."""

from __future__ import annotations

from collections.abc import Callable

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


def score_of(
    mark: Callable[[Tensor], Tensor], positive: bool = False
) -> Callable[..., Tensor]:
    """The score with keys marked by another rule; a rule gives (query, key)."""

    def wrong(weights: Tensor, tokens: Tensor) -> Tensor:
        marked = mark(tokens).bool()
        sums = (weights * marked).sum(dim=-1)
        return sums[sums > 0 if positive else marked.any(dim=-1)].mean()

    return wrong


def follows(tokens: Tensor) -> Tensor:
    """Where the token before a key is that of the query, whichever comes first."""
    same = tokens[:, None] == tokens[None, :]
    return torch.cat([torch.zeros_like(same[:, :1]), same[:, :-1]], dim=1)


def ahead(tokens: Tensor) -> Tensor:
    """Where the token after a key is that of the query."""
    same = tokens[:, None] == tokens[None, :]
    return torch.cat([same[:, 1:], torch.zeros_like(same[:, :1])], dim=1)


def before_both(tokens: Tensor) -> Tensor:
    """Where the tokens before the key and before the query are the same."""
    n = len(tokens)
    same = torch.zeros(n, n, dtype=torch.bool)
    same[1:, 1:] = tokens[:-1, None] == tokens[None, :-1]
    return same.tril(-1)


def last_of(marked: Tensor) -> Tensor:
    """The last marked key of each query."""
    return marked & (marked.flip(1).cumsum(1).flip(1) == 1)


def wrapped(tokens: Tensor) -> Tensor:
    return (tokens[:, None] == tokens.roll(1)[None, :]).tril()


def queries_shifted(tokens: Tensor) -> Tensor:
    same = tokens[:, None] == tokens[None, :]
    return torch.cat([torch.zeros_like(same[:1]), same[:-1]]).tril()


def draw(rng: np.random.Generator) -> Args:
    """A token with two earlier copies, one beside its copy, one with nothing on it."""
    n = int(rng.integers(10, 14))
    once = rng.permutation(20)[: n // 2]
    tokens = np.concatenate([once, rng.permutation([*once, 30])[: n - n // 2]])
    tokens[2] = tokens[0]  # one token has two earlier copies
    tokens[-1] = tokens[0]
    tokens[4] = tokens[3] = 40  # neighbours: the marked key is the query itself
    tokens[6], tokens[7] = 41, 41 + int(rng.integers(1, 5))
    tokens[-2] = 41
    table = np.tril(rng.random((n, n)) + 0.05)
    table[-2, 7] = 0.0  # marked, and not attended to
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
            "tokens_before_both",
            "the tokens before the key and before the query are compared: the token "
            "before the key has to be that *at* the query",
            score_of(before_both),
        ),
        Mistake(
            "next_token",
            "the token *after* a key is compared with that of the query: it is the "
            "token before the key",
            score_of(lambda tokens: ahead(tokens).tril()),
        ),
        Mistake(
            "last_copy_only",
            "one key is marked for each query, that after the last copy: a token may "
            "have come before several times, and all those keys count",
            score_of(lambda tokens: last_of(follows(tokens).tril())),
        ),
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
        Mistake(
            "later_keys",
            "keys after the query are marked too, so that queries without an earlier "
            "copy count: a key is marked only if j ≤ i",
            score_of(follows),
        ),
        Mistake(
            "not_itself",
            "the query's own position is never marked: it is when its token stands at "
            "the position before as well, for then j = i",
            score_of(lambda tokens: follows(tokens).tril(-1)),
        ),
        Mistake(
            "zeros_left_out",
            "queries whose marked keys have the weight 0 are left out: they had "
            "something to find and missed it, so they count as 0",
            score_of(lambda tokens: follows(tokens).tril(), positive=True),
        ),
        Mistake(
            "wraps_around",
            "`roll` wraps around: the first key is given the last token as the one "
            "before it, and has none",
            score_of(wrapped),
        ),
        Mistake(
            "weights_transposed",
            "the weights are read with queries and keys exchanged: a row of `weights` "
            "belongs to a query",
            lambda weights, tokens: matching_score(weights.T, tokens),
        ),
        Mistake(
            "queries_shifted",
            "the table of equal tokens is shifted along the queries: it is the token "
            "before the key that is compared, so shift it along the keys",
            score_of(queries_shifted),
        ),
        Mistake(
            "fixed_distance",
            "the weights at a fixed distance are averaged, as if the sequence were "
            "written twice: compare the tokens to find which keys are marked",
            lambda weights, tokens: weights.diagonal(1 - len(tokens) // 2).mean(),
        ),
        Mistake(
            "previous_token",
            "this is the previous-token score, the weight on the position just before "
            "the query: here a key is marked by its tokens",
            lambda weights, tokens: weights.diagonal(-1).mean(),
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


def after(tokens):
    there = torch.zeros(len(tokens), len(tokens), dtype=torch.bool)
    there[:, 1:] = tokens[:, None] == tokens[:-1]
    return there


def by_table(weights, table):
    return (weights * table).sum(1)[table.any(1)].mean()


def positive(sums):
    return sums[sums > 0].mean()


RIGHT = [lambda w, t: rows(w, t)[0].sum() / rows(w, t)[1].sum()]
WRONG = [
    ("tokens_before_both", lambda w, t: by_table(w[1:, 1:], marked(t[:-1], 0))),
    ("the_copy_itself", lambda w, t: rows(w, t, 0)[0].sum() / rows(w, t, 0)[1].sum()),
    ("before_the_copy", lambda w, t: rows(w, t, -1)[0].sum() / rows(w, t, -1)[1].sum()),
    ("all_queries", lambda w, t: rows(w, t)[0].mean()),
    ("mean_over_cells", lambda w, t: w[marked(t, 1)].mean()),
    ("not_a_mean", lambda w, t: (w * marked(t, 1)).sum()),
    ("later_keys", lambda w, t: by_table(w, after(t))),
    ("not_itself", lambda w, t: by_table(w, after(t).tril(-1))),
    ("zeros_left_out", lambda w, t: positive((w * marked(t, 1)).sum(1))),
    ("wraps_around", lambda w, t: by_table(w, (t[:, None] == t.roll(1)).tril())),
    ("weights_transposed", lambda w, t: by_table(w.mT, marked(t, 1))),
    ("queries_shifted", lambda w, t: by_table(w, after(t).mT.tril())),
    ("fixed_distance", lambda w, t: w.diag(1 - len(t) // 2).mean()),
    ("previous_token", lambda w, t: torch.stack([*w.diagonal(-1)]).sum() / len(w[1:])),
]
