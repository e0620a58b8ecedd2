"""The questions of chapter 07, attention sees a set, with their wrong answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import normal

# --------------------------------------------------------------------------- the inputs


def draw_order(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw an order that is not its own inverse: a swap would hide P for its transpose.

    Reading it backwards, or sorting it, gives another order too.
    """
    while True:
        order = rng.permutation(n)
        inverse = np.argsort(order)
        others = (np.arange(n), inverse, order[::-1], inverse[::-1])
        if not any(np.array_equal(order, other) for other in others):
            return order


def eye(n: int) -> Tensor:
    return torch.eye(n)


# ------------------------------------------------------------- 07.1 a matrix that sends


def sending_matrix(to: Tensor) -> tuple[Tensor, Tensor]:
    order = torch.argsort(to)
    return eye(len(to))[order], order


def order_of_sending(to: Tensor) -> Tensor:
    return torch.argsort(to)


def draw_targets(rng: np.random.Generator) -> list[Args]:
    return [(draw_order(rng, n),) for n in (4, 5, 6)]


SENDING = Question(
    id="07.1",
    title="A matrix that sends",
    answer="sending_matrix",
    arguments=("to",),
    outputs=(Output("matrix", "token token"), Output("order", "token")),
    reference=sending_matrix,
    next_step="in which row of the matrix must the one of token i stand?",
    parts=(
        Part("the matrix", 1, draw_targets, view=lambda value: value[0]),
        Part("the order", 1, draw_targets, view=lambda value: value[1]),
    ),
    mistakes=(
        Mistake(
            "fetches",
            "this matrix fetches: its row i brings token to[i]; the question is about "
            "sending, token i goes to place to[i]",
            lambda to: (eye(len(to))[to], to.clone()),
        ),
        Mistake(
            "matrix_fetches",
            "the order is right, the matrix is another one: compare `matrix @ x` with "
            "`x[order]` for a small x",
            lambda to: (eye(len(to))[to], order_of_sending(to)),
        ),
        Mistake(
            "order_is_to",
            "the matrix is right, the order is not: `to` says where each token goes, "
            "an order says who comes to each place",
            lambda to: (sending_matrix(to)[0], to.clone()),
        ),
        Mistake(
            "both_sides",
            "rows and columns are both rearranged: that undoes itself and leaves the "
            "identity, P I Pᵀ = I; only one of them moves",
            lambda to: (eye(len(to))[to][:, to], order_of_sending(to)),
        ),
        Mistake(
            "backwards",
            "the list is read from its end: that is another permutation; to undo one, "
            "ask of every place who was sent there",
            lambda to: (eye(len(to))[to.flip(0)], to.flip(0)),
        ),
        Mistake(
            "sorted",
            "sorting the targets gives 0, 1, 2, … and loses who goes where; what is "
            "needed is where in `to` each place stands",
            lambda to: (eye(len(to)), torch.sort(to).values),
        ),
        Mistake(
            "targets_on_the_diagonal",
            "the targets stand on the diagonal as numbers: that multiplies the tokens "
            "instead of moving them; the entries are 0 and 1",
            lambda to: (torch.diag(to).float(), order_of_sending(to)),
        ),
    ),
)


# -------------------------------------------------------- 07.2 the weights move as well


def reordered_weights(weights: Tensor, order: Tensor) -> Tensor:
    return weights[..., order, :][..., :, order]


def inverse(order: Tensor) -> Tensor:
    return torch.argsort(order)


def draw_weights(rng: np.random.Generator, n: int, *batch: int) -> Args:
    scores = np.exp(2 * normal(rng, *batch, n, n))
    return scores / scores.sum(-1, keepdims=True), draw_order(rng, n)


WEIGHTS = Question(
    id="07.2",
    title="The weights of the reordered sentence",
    answer="reordered_weights",
    arguments=("weights", "order"),
    outputs=(Output("weights", "query key"),),
    reference=reordered_weights,
    next_step="say in words what the row and the column of the new table's first "
    "entry belong to.",
    parts=(
        Part(
            "one sentence",
            1,
            lambda rng: [draw_weights(rng, 4), draw_weights(rng, 6)],
        ),
        Part(
            "a batch",
            1,
            lambda rng: [draw_weights(rng, 5, 3), draw_weights(rng, 4, 2, 3)],
            alone="right for one sentence, wrong when batch and head axes stand in "
            "front: count axes from the end (-1, -2)",
        ),
    ),
    mistakes=(
        Mistake(
            "rows_only",
            "only the rows have moved: the queries have, but the keys they look at are "
            "still listed in the old order",
            lambda weights, order: weights[..., order, :],
        ),
        Mistake(
            "columns_only",
            "only the columns have moved: the keys have, but the queries still stand "
            "in the old order",
            lambda weights, order: weights[..., :, order],
        ),
        Mistake(
            "inverse",
            "both axes move, but the other way round: `order` says who comes to each "
            "place, here tokens were sent to the places it names",
            lambda weights, order: reordered_weights(weights, inverse(order)),
        ),
        Mistake(
            "p_on_both_sides",
            "rows and columns move in opposite directions, as in P A P: from the right "
            "it is the transpose that reorders columns as P reorders rows",
            lambda weights, order: weights[..., order, :][..., :, inverse(order)],
        ),
        Mistake(
            "unchanged",
            "the table is as it was: each token keeps its weights, but stands in "
            "another row and another column now",
            lambda weights, order: weights.clone(),
        ),
        Mistake(
            "transposed",
            "the table is turned over: rows are still queries, columns still keys",
            lambda weights, order: reordered_weights(weights, order).mT,
        ),
        Mistake(
            "axes_from_the_left",
            "the axes are counted from the left: right for one sentence, but with a "
            "batch axis in front the wrong ones move; count from the end",
            lambda weights, order: weights[order][:, order],
        ),
    ),
)


# -------------------------------------------------------------- 07.3 the gap of a layer


def layer(x: Tensor, mix: Tensor) -> Tensor:
    return torch.tanh(mix @ x)


def difference(mix: Tensor, x: Tensor, order: Tensor) -> Tensor:
    return layer(x[order], mix) - layer(x, mix)[order]


def gap(mix: Tensor, x: Tensor, order: Tensor) -> float:
    return difference(mix, x, order).abs().max().item()


def draw_layer(rng: np.random.Generator) -> list[Args]:
    """Draw inputs and their negatives: tanh is odd, so that a sign can't hide."""
    cases: list[Args] = []
    for n, d_model in ((4, 6), (5, 3)):
        mix, x, order = normal(rng, n, n), normal(rng, n, d_model), draw_order(rng, n)
        cases += [(mix, x, order), (mix, -x, order)]
    return cases


def draw_equivariant(rng: np.random.Generator) -> list[Args]:
    cases: list[Args] = []
    for n in (4, 6):
        own, others = rng.uniform(0.3, 1, 2)
        mix = (own * np.eye(n) + others / n).astype(np.float32)
        cases.append((mix, normal(rng, n, n + 2), draw_order(rng, n)))
    return cases


def wrong_side(mix: Tensor, x: Tensor, order: Tensor) -> Tensor:
    return (layer(x[:, order], mix) - layer(x, mix)[:, order]).abs().max()


GAP = Question(
    id="07.3",
    title="How far from equivariant?",
    answer="gap",
    arguments=("mix", "x", "order"),
    outputs=(Output("gap"),),
    reference=gap,
    next_step="compute both sides of f(P X) = P f(X), then the largest difference.",
    parts=(
        Part("a layer that is not equivariant", 2, draw_layer),
        Part("a layer that is", 1, draw_equivariant),
    ),
    mistakes=(
        Mistake(
            "invariance",
            "the output in the first order is compared as it is: that asks for "
            "invariance; outputs are meant to follow their tokens",
            lambda m, x, o: (layer(x[o], m) - layer(x, m)).abs().max(),
        ),
        Mistake(
            "output_sent_the_other_way",
            "the output is moved the other way round, P on one side and Pᵀ on the "
            "other: both sides are reordered alike",
            lambda m, x, o: (layer(x[o], m) - layer(x, m)[inverse(o)]).abs().max(),
        ),
        Mistake(
            "wrong_side",
            "features change places, not tokens: this is zero for any mixing of "
            "tokens; tokens are the rows, so P acts from the left",
            wrong_side,
        ),
        Mistake(
            "input_not_moved",
            "the layer never sees the reordered tokens: only its output is moved",
            lambda m, x, o: (layer(x, m) - layer(x, m)[o]).abs().max(),
        ),
        Mistake(
            "layer_moved_too",
            "this is zero for every layer: as if the layer's own matrix were reordered "
            "along with the tokens; its weights stay as they are",
            lambda m, x, o: (layer(x[o], m[o][:, o]) - layer(x, m)[o]).abs().max(),
        ),
        Mistake(
            "no_absolute_value",
            "the largest difference with its sign: one of −3 is larger than one of 2",
            lambda m, x, o: difference(m, x, o).max(),
        ),
        Mistake(
            "mean",
            "this is the mean of the differences; the largest one was asked for, since "
            "a single wrong entry is enough",
            lambda m, x, o: difference(m, x, o).abs().mean(),
        ),
        Mistake(
            "sum",
            "this is the sum of the differences; the largest one was asked for",
            lambda m, x, o: difference(m, x, o).abs().sum(),
        ),
    ),
    packaged=("equivariance_gap",),
)


# ----------------------------------------------------------------- 07.4 sort the layers

KINDS = ("equivariant", "invariant", "neither")
SORTED = {
    "centre": "equivariant",
    "first_token": "neither",
    "largest": "invariant",
    "ranked": "invariant",
    "running_sum": "neither",
    "over_queries": "equivariant",
    "scores": "neither",
    "products": "invariant",
}


def kinds_of(kind: str) -> Any:
    """Look only at the layers of one kind."""
    names = [name for name, own in SORTED.items() if own == kind]
    return lambda value: [value.get(name) for name in names]


def sorted_as(**wrong: str) -> Any:
    return lambda: SORTED | wrong


def says(name: str, *kinds: str) -> Any:
    return lambda args, value: value[name] in kinds


SORT = Question(
    id="07.4",
    title="Equivariant, invariant or neither?",
    answer="sort_layers",
    arguments=(),
    outputs=(Output("kinds"),),
    reference=lambda: dict(SORTED),
    next_step="take each function's formula and put P X in place of X.",
    parts=tuple(
        Part(f"what is {kind}", 1, lambda rng: [()], view=kinds_of(kind))
        for kind in KINDS
    ),
    mistakes=(
        Mistake(
            "not_all_or_other_words",
            "every one of the eight names needs one of the three words: 'equivariant', "
            "'invariant', 'neither'",
            lambda: dict.fromkeys(SORTED, "set"),
            lambda args, value: any(value.get(name) not in KINDS for name in SORTED),
        ),
        Mistake(
            "scores_follow",
            "look at `scores` again: its columns are tokens too, and they move as "
            "well; compare f(PX) with P f(X) entry by entry",
            sorted_as(scores="equivariant"),
            says("scores", "equivariant", "invariant"),
        ),
        Mistake(
            "first_is_pooled",
            "`first_token` returns one row, but who stands there? Run it on two orders "
            "of the same tokens",
            sorted_as(first_token="invariant"),
            says("first_token", "equivariant", "invariant"),
        ),
        Mistake(
            "ranked_has_rows",
            "`ranked` returns as many rows as there are tokens, but do they belong to "
            "tokens? Ask where the smallest number ends up",
            sorted_as(ranked="equivariant"),
            says("ranked", "equivariant", "neither"),
        ),
        Mistake(
            "wrong_axis_breaks_it",
            "`over_queries` divides by another sum than attention does; being wrong "
            "as attention does not give it a sense of order",
            sorted_as(over_queries="neither"),
            says("over_queries", "invariant", "neither"),
        ),
        Mistake(
            "mean_breaks_it",
            "`centre` uses all tokens, by way of their mean: what does the mean do "
            "when tokens move, and what do the rows do?",
            sorted_as(centre="neither"),
            says("centre", "invariant", "neither"),
        ),
        Mistake(
            "sum_over_the_past",
            "`running_sum` adds up those before: that is another set of tokens when "
            "the order is another",
            sorted_as(running_sum="equivariant"),
            says("running_sum", "equivariant", "invariant"),
        ),
        Mistake(
            "pooled_follows",
            "`largest` has no row for each token, so nothing in it could follow one; "
            "what does happen to it?",
            sorted_as(largest="equivariant"),
            says("largest", "equivariant", "neither"),
        ),
        Mistake(
            "products_are_a_table",
            "`products` looks like `scores` and is not: its rows and columns are "
            "features, and the sum inside runs over tokens",
            sorted_as(products="neither"),
            says("products", "equivariant", "neither"),
        ),
    ),
)

QUESTIONS = (SENDING, WEIGHTS, GAP, SORT)
