"""`narrowest`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.draw import normal
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question

Pair = tuple[Tensor, Tensor]


def centred(scores: Tensor, dim: int = -1) -> Tensor:
    return scores - scores.mean(dim=dim, keepdim=True)


def rank(table: Tensor) -> int:
    s = torch.linalg.svdvals(table)
    return max(1, int((s > 1e-4 * s[0]).sum()))


def factored(
    table: Tensor,
    scaled: bool = True,
    d_k: int | None = None,
    threshold: float | None = None,
) -> Pair:
    """Queries and keys whose products are the table, as narrow as its rank."""
    u, s, vh = torch.linalg.svd(table, full_matrices=False)
    width = rank(table) if d_k is None else d_k
    if threshold is not None:
        width = int((s > threshold).sum())
    scale = math.sqrt(width) if scaled else 1.0
    return scale * u[:, :width] * s[:width], vh[:width].mT


def narrowest(scores: Tensor) -> Pair:
    return factored(centred(scores))


def as_they_are(scores: Tensor, scaled: bool = True) -> Pair:
    """One column for each key: the queries are the scores, the keys one-hot."""
    n_keys = scores.shape[-1]
    scale = math.sqrt(n_keys) if scaled else 1.0
    return scale * scores, torch.eye(n_keys)


def scaled_by(scores: Tensor, factor: Callable[[int], float]) -> Pair:
    """The right pair, but for a factor that depends on the width."""
    queries, keys = factored(centred(scores), scaled=False)
    return factor(queries.shape[1]) * queries, keys


def sizes_lost(scores: Tensor) -> Pair:
    queries, keys = factored(centred(scores))
    return F.normalize(queries, dim=0) * math.sqrt(queries.shape[1]), keys


# ------------------------------------------------------------------------- the judge


def softmaxed(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def weights_of(value: Any, scaled: bool = True) -> np.ndarray:
    queries, keys = (np.asarray(x, np.float64) for x in value)
    width = queries.shape[1] if scaled else 1
    return softmaxed(queries @ keys.T / math.sqrt(width))


def fits(args: Args, value: Any) -> bool:
    """As many queries as rows, as many keys as columns, and one width."""
    queries, keys = value
    sizes = (queries.shape[0], keys.shape[0])
    return sizes == args[0].shape and queries.shape[1] == keys.shape[1]


def same_weights(args: Args, value: Any, scaled: bool = True) -> bool:
    """Up to what rounding the scores can do; large ones are rounded more."""
    table = np.asarray(args[0], np.float64)
    atol = 1e-3 + 1e-6 * float(np.abs(table).max())
    found = fits(args, value) and weights_of(value, scaled)
    return fits(args, value) and np.allclose(found, softmaxed(table), atol=atol)


def width_is(found: Callable[[int, int, int], bool]) -> Any:
    """A sign: the right weights, with a width in this relation to rank and least."""

    def sign(args: Args, value: Any) -> bool:
        table = np.asarray(args[0], np.float64)
        ranks = [rank_of(x) for x in (table, table - table.mean(-1, keepdims=True))]
        if ranks[0] == min(table.shape):  # a probe: the table is just any table
            return same_weights(args, value)
        width = np.shape(value[0])[1]
        return same_weights(args, value) and found(width, ranks[1], ranks[0])

    return sign


def rank_of(table: np.ndarray) -> int:
    """The number of singular values above a ten-thousandth of the largest."""
    return int(np.linalg.matrix_rank(table, tol=1e-4 * np.linalg.norm(table, 2)))


narrow = width_is(lambda width, least, rank: width <= rank)
as_narrow_as_can_be = width_is(lambda width, least, rank: width <= least)


def draw_table(rng: np.random.Generator, n: int, m: int, rank: int) -> Args:
    """A table of this rank, and a number of its own added to every row."""
    table = normal(rng, n, rank) @ normal(rng, rank, m)
    return ((table + 2 * normal(rng, n, 1)).astype(np.float32),)


def draw_tables(rng: np.random.Generator) -> list[Args]:
    return [draw_table(rng, *x) for x in ((6, 5, 2), (5, 7, 3), (4, 9, 1))]


def draw_more_tables(rng: np.random.Generator) -> list[Args]:
    """The same, a table of large numbers and one of small ones."""
    (large,), (small,) = (draw_table(rng, *x) for x in ((5, 6, 2), (6, 7, 2)))
    return [*draw_tables(rng), (300 * large,), (np.float32(1e-5) * small,)]


def centred_array(table: np.ndarray) -> np.ndarray:
    return np.asarray(table - table.mean(-1, keepdims=True))


def products(value: Any) -> np.ndarray:
    queries, keys = (np.asarray(x, np.float64) for x in value)
    return np.asarray(queries @ keys.T / math.sqrt(queries.shape[1]))


def proportional(args: Args, value: Any) -> bool:
    """The products are the scores times a positive number, as the softmax sees both."""
    made, due = centred_array(products(value)), centred_array(args[0])
    factor = float((made * due).sum() / (due * due).sum())
    other = abs(factor - 1) > 1e-2 or np.shape(value[0])[1] == 1  # 1 has no other root
    return factor > 0 and other and nearly(made, factor * due)


def nearly(made: np.ndarray, due: np.ndarray) -> bool:
    """Equal, up to a thousandth of the largest number."""
    return np.allclose(made, due, atol=1e-3 * float(np.abs(due).max()))


def one_more(args: Args, value: Any) -> bool:
    """Whether the width is one more than the least, or the table just any table."""
    least = rank_of(centred_array(args[0]))
    is_probe = rank_of(args[0]) == min(args[0].shape)
    return fits(args, value) and (is_probe or np.shape(value[0])[1] == least + 1)


def extreme_subtracted(args: Args, value: Any) -> bool:
    table = np.asarray(args[0], np.float64)
    due = [table - table.max(-1, keepdims=True), table - table.min(-1, keepdims=True)]
    return fits(args, value) and any(nearly(products(value), x) for x in due)


def rows_proportional(table: np.ndarray, made: np.ndarray) -> bool:
    """Every row is another positive multiple of the table's, to the softmax."""
    made, due = centred_array(made), centred_array(np.asarray(table, np.float64))
    factor = (made * due).sum(-1, keepdims=True) / (due * due).sum(-1, keepdims=True)
    differ = factor.min() > 0 and np.ptp(factor) > 1e-2 * factor.max()
    return bool(differ) and nearly(made / factor, due)


def cut(table: np.ndarray, width: int) -> np.ndarray:
    """The table from so many of its singular values."""
    u, s, vh = np.linalg.svd(np.asarray(table, np.float64), full_matrices=False)
    return np.asarray((u[:, :width] * s[:width]) @ vh[:width])


def is_cut(args: Args, value: Any) -> bool:
    """The products are the table, or the centred one, at some width."""
    width, tables = np.shape(value[0])[1], (args[0], centred_array(args[0]))
    return any(nearly(products(value), cut(x, width)) for x in tables)


def keys_elsewhere(args: Args, value: Any) -> bool:
    """The queries stay among the table's columns, the keys leave its rows."""
    table, (queries, keys) = args[0], value
    if same_weights(args, value):
        return False  # whatever the keys are, nothing is wrong with them
    inside = rank_of(np.hstack([unit(table), unit(queries)])) == rank_of(table)
    rows = np.vstack([unit(table), np.ones((1, table.shape[1]))])
    if len(keys) != table.shape[1] or rank_of(rows) == table.shape[1]:
        return inside
    return inside and rank_of(np.vstack([rows, unit(keys).T])) > rank_of(rows)


def one_column_each(args: Args, value: Any) -> bool:
    """The right weights, from as many columns as there are keys or queries."""
    wide = width_is(lambda width, least, rank: width > rank)
    return bool(wide(args, value)) and np.shape(value[0])[1] >= min(args[0].shape)


def wider_than_needed(args: Args, value: Any) -> bool:
    """The right weights of tables like those of the task, and too many columns."""
    table = np.asarray(args[0], np.float64)
    if rank_of(table) == min(table.shape):  # a probe: the table is just any table
        return fits(args, value)
    width = np.shape(value[0])[1]
    return same_weights(args, value) and width > rank_of(centred_array(table))


def columns_moved(args: Args, value: Any) -> bool:
    """The products are the scores, but for one number in each column."""
    table = centred_array(args[0])
    moved = centred_array(products(value)) - table
    atol = 1e-3 * float(np.abs(table).max())
    return bool(np.abs(moved).max() > atol and np.allclose(moved, moved[:1], atol=atol))


def unit(table: np.ndarray) -> np.ndarray:
    """A table whose largest singular value is one."""
    return np.asarray(table / max(np.linalg.norm(table, 2), 1e-30))


def spans_alike(args: Args, value: Any) -> bool:
    """The products have the table's rows and columns, in other proportions."""
    made, due = centred_array(products(value)), centred_array(args[0])
    if nearly(made, due):
        return rank_of(due) == 1  # where a factor may be one
    made, due = unit(made), unit(due)
    stacked = (np.hstack([made, due]), np.vstack([made, due]))
    least = rank_of(due)
    return rank_of(made) == least and all(rank_of(x) == least for x in stacked)


QUESTION = Question(
    id="06.9",
    title="The narrowest layer with these weights",
    answer="narrowest",
    arguments=("scores",),
    outputs=(
        Output("queries", "query d_k", free=True),
        Output("keys", "key d_k", free=True),
    ),
    reference=narrowest,
    difficulty="hard",
    minutes=25,
    next_step="first any pair with these weights, then as few columns as you can.",
    parts=(
        Part("the weights", 1, draw_tables, accepts=same_weights),
        Part("as narrow as the table", 1, draw_tables, accepts=narrow),
        Part(
            "as narrow as can be",
            2,
            draw_more_tables,
            accepts=as_narrow_as_can_be,
            only_failure_hint="not as narrow as can be, or wrong for tables of large "
            "or small numbers: subtract what no weight notices, then count the "
            "singular values that are not tiny beside the largest",
        ),
    ),
    mistakes=(
        Mistake(
            "do_not_fit",
            "these do not fit together: one query for each row of the table, one key "
            "for each column, and one width d_k for both",
            lambda scores: factored(centred(scores))[::-1],
            lambda args, value: not fits(args, value),
        ),
        Mistake(
            "not_scaled",
            "q·k is the score itself: the layer divides by the root of d_k, and you "
            "choose d_k, so your queries have to make up for it",
            lambda scores: factored(centred(scores), scaled=False),
            lambda args, value: same_weights(args, value, scaled=False),
        ),
        Mistake(
            "one_column_a_key",
            "the weights are right, with as many columns as there are keys (or "
            "queries): that always works; how many does this table need?",
            as_they_are,
            one_column_each,
        ),
        Mistake(
            "centred_and_one_more",
            "the weights are right and the rows are centred, but d_k is one more than "
            "the rank of the centred table: its last singular value is zero",
            lambda scores: factored(centred(scores), d_k=1 + rank(centred(scores))),
            lambda args, value: (
                one_more(args, value)
                and nearly(products(value), centred_array(args[0]))
            ),
        ),
        Mistake(
            "extreme_subtracted",
            "weights and scale are right, but d_k is often one too high: a row's "
            "largest (or smallest) score is subtracted, which can add a direction; its "
            "mean can't",
            lambda scores: factored(scores - scores.amax(dim=-1, keepdim=True)),
            extreme_subtracted,
        ),
        Mistake(
            "rank_of_the_table",
            "the weights are right and d_k is the rank of the table; one column can "
            "still go: which changes of a row does the softmax not see?",
            factored,
            width_is(lambda width, least, rank: least < width <= rank),
        ),
        Mistake(
            "absolute_threshold",
            "right for tables of moderate numbers; with large or small ones the "
            "singular values that count as zero are those tiny beside the largest",
            lambda scores: factored(centred(scores), threshold=1e-4),
        ),
        Mistake(
            "centred_down_the_columns",
            "something was taken away from the columns: that changes the scores of one "
            "query against each other, and so its weights",
            lambda scores: factored(centred(scores, dim=0)),
            lambda args, value: fits(args, value) and columns_moved(args, value),
        ),
        Mistake(
            "too_narrow",
            "some of what the weights need was cut off: d_k is smaller than this table "
            "allows; look at which singular values are zero",
            lambda scores: factored(centred(scores), d_k=1),
            lambda args, value: (
                fits(args, value)
                and np.shape(value[0])[1] < rank_of(centred_array(args[0]))
            ),
        ),
        Mistake(
            "weights_factored",
            "the weights themselves were factored: the layer takes a softmax of the "
            "products, so these have to be scores",
            lambda scores: factored(torch.softmax(scores, -1)),
            lambda args, value: (
                fits(args, value)
                and np.allclose(products(value), softmaxed(args[0]), atol=1e-3)
            ),
        ),
        Mistake(
            "scaled_otherwise",
            "your products are the scores, but for a factor: the layer divides once by "
            "the root of *your* d_k, so q·k has to be the score times that root",
            lambda scores: scaled_by(scores, lambda d_k: d_k),
            lambda args, value: fits(args, value) and proportional(args, value),
        ),
        Mistake(
            "rows_divided",
            "each row is multiplied by a number of its own (divided by its standard "
            "deviation, say): weights depend on how far apart the scores of a row are",
            lambda scores: factored(centred(scores) / scores.std(dim=-1, keepdim=True)),
            lambda args, value: (
                fits(args, value) and rows_proportional(args[0], products(value))
            ),
        ),
        Mistake(
            "table_cut",
            "the table itself was factored, with a column less than its rank: what is "
            "cut off is not zero; take out what no weight notices before the SVD",
            lambda scores: factored(scores, d_k=rank(scores) - 1),
            lambda args, value: (
                fits(args, value)
                and np.shape(value[0])[1] == rank_of(args[0]) - 1
                and nearly(products(value), cut(args[0], np.shape(value[0])[1]))
            ),
        ),
        Mistake(
            "wider_than_needed",
            "the weights are right, but more columns than they need: which singular "
            "values are zero, once what no weight notices is taken out?",
            lambda scores: factored(scores, d_k=1 + rank(scores)),
            wider_than_needed,
        ),
        Mistake(
            "width_of_some",
            "d_k fits some of the tables only: it has to follow from each table, as "
            "the number of singular values of the centred table that are not zero",
            lambda scores: factored(scores, d_k=2),
            lambda args, value: fits(args, value) and is_cut(args, value),
        ),
        Mistake(
            "sizes_lost",
            "the directions of queries and keys are right, their sizes are not: each "
            "singular value must enter the product once, neither twice nor not at all",
            sizes_lost,
            lambda args, value: fits(args, value) and spans_alike(args, value),
        ),
        Mistake(
            "keys_of_columns",
            "the queries' directions are the table's, the keys' are not: of an SVD "
            "u, s, vh the *rows* of vh belong to the singular values, not its columns",
            lambda scores: (
                factored(centred(scores))[0],
                torch.linalg.svd(centred(scores))[2][:, : rank(centred(scores))],
            ),
            keys_elsewhere,
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def by_numpy(scores):
    """The first key's score is taken away instead of the mean, in NumPy."""
    table = scores.double().numpy()
    table = table - table[:, :1]
    u, s, vh = np.linalg.svd(table)
    d_k = int((s > 1e-4 * s[0]).sum())
    root = np.sqrt(s[:d_k])
    return u[:, :d_k] * root * d_k**0.5, (vh[:d_k].T * root)


def by_pivots(scores):
    """Columns of the table itself as queries, the others written by them."""
    table = (scores - scores[:, -1:]).double()
    chosen: list[int] = []
    for j in range(table.shape[1]):
        columns = table[:, [*chosen, j]]
        if torch.linalg.matrix_rank(columns, rtol=1e-5) > len(chosen):
            chosen.append(j)
    queries = table[:, chosen]
    keys = torch.linalg.lstsq(queries, table).solution.T
    return (queries * len(chosen) ** 0.5).tolist(), keys.float()


def plain_svd(scores):
    u, s, v = torch.svd(scores)
    rank = int(torch.linalg.matrix_rank(scores, rtol=1e-4))
    return u[:, :rank] @ torch.diag(s[:rank]), v[:, :rank] * rank**0.5


def halved(scores, factor):
    """Each of the two takes the root of the singular values."""
    u, s, vh = torch.linalg.svd(scores - scores.mean(1, keepdim=True))
    d_k = int((s > 1e-4 * s[0]).sum())
    root = s[:d_k].sqrt()
    return u[:, :d_k] * root * factor(d_k), vh[:d_k].T * root


def by_svd(prepare=lambda s: s - s.mean(1, keepdim=True), width=lambda d: d):
    """Each step of the solution, with one of them done otherwise."""

    def answer(scores):
        u, s, vh = torch.linalg.svd(prepare(scores), full_matrices=False)
        d = width(int((s > 1e-4 * s[0]).sum()))
        return d**0.5 * u[:, :d] * s[:d], vh[:d].T

    return answer


def as_it_is(scores):
    return scores


def rank_of_another(scores):
    """The rank of the centred table, the SVD of the table itself."""
    d = torch.linalg.matrix_rank(scores - scores.mean(1, keepdim=True), rtol=1e-4)
    return by_svd(as_it_is, lambda _: int(d))(scores)


def columns_of_vh(full):
    def answer(scores):
        table = scores - scores.mean(1, keepdim=True)
        u, s, vh = torch.linalg.svd(table, full_matrices=full)
        d = int((s > 1e-4 * s[0]).sum())
        return d**0.5 * u[:, :d] * s[:d], vh[:, :d]

    return answer


def above(threshold):
    def answer(scores):
        u, s, vh = torch.linalg.svd(scores - scores.mean(1, keepdim=True))
        d = int((s > threshold).sum())
        return d**0.5 * u[:, :d] * s[:d], vh[:d].T

    return answer


def one_more_than_its_rank(scores):
    """The width of the table itself and one more, in a scale that counts on it."""
    u, s, vh = torch.linalg.svd(scores - scores.mean(1, keepdim=True))
    d = torch.linalg.matrix_rank(scores).item() + 1
    s = torch.nn.functional.pad(s, (0, d))
    u, v = (torch.nn.functional.pad(x, (0, d)) for x in (u, vh.T))
    return d**0.5 * u[:, :d] * s[:d], v[:, :d] * 1.0


RIGHT = [by_numpy, by_pivots, by_svd()]
WRONG = [
    ("do_not_fit", lambda scores: (scores, scores)),
    ("rank_of_the_table", lambda s: plain_svd(s)),
    ("centred_down_the_columns", lambda s: as_they_are(s - s.mean(dim=0))),
    ("not_scaled", lambda scores: (scores, torch.eye(scores.shape[1]))),
    ("one_column_a_key", lambda s: (torch.eye(len(s)) * len(s) ** 0.5, s.T)),
    ("one_column_a_key", lambda s: (s * s.shape[1] ** 0.5, torch.eye(s.shape[1]))),
    ("not_scaled", lambda s: halved(s, lambda d_k: 1.0)),
    ("scaled_otherwise", lambda s: halved(s, lambda d_k: d_k)),
    ("scaled_otherwise", lambda s: halved(s, lambda d_k: 1 / d_k**0.5)),
    ("scaled_otherwise", lambda s: halved(s, lambda d_k: s.shape[1] ** 0.5)),
    ("weights_factored", lambda s: as_they_are(torch.softmax(s, dim=-1))),
    ("extreme_subtracted", by_svd(lambda s: s - s.amax(1, keepdim=True))),
    ("extreme_subtracted", by_svd(lambda s: s - s.amin(1, keepdim=True))),
    ("centred_and_one_more", by_svd(width=lambda d: d + 1)),
    ("table_cut", by_svd(as_it_is, lambda d: d - 1)),
    ("table_cut", rank_of_another),
    ("width_of_some", by_svd(as_it_is, lambda d: 2)),
    ("width_of_some", by_svd(width=lambda d: 2)),
    ("wider_than_needed", by_svd(width=lambda d: 4)),
    ("rows_divided", by_svd(lambda s: F.normalize(s - s.mean(1, keepdim=True)))),
    ("keys_of_columns", columns_of_vh(False)),
    ("keys_of_columns", columns_of_vh(True)),
    ("wider_than_needed", one_more_than_its_rank),
]
PARTIAL = [(1, as_they_are), (2, factored), (2, above(1e-4))]
