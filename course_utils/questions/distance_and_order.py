"""More questions of chapter 08: tables of rows and distances, and what they tell."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.questions import Args, Mistake, Output, Part, Question
from course_utils.questions.queries_keys_values import first, normal, second

# --------------------------------------------------------------- 08.4 rows of a table


def rows_for(table: Tensor, n_tokens: int, first: int) -> tuple[Tensor, int]:
    rows = table[first : first + n_tokens]
    return rows, n_tokens - len(rows)


def places_asked(n_tokens: int, first: int) -> Tensor:
    return torch.arange(first, first + n_tokens)


def draw_rows(rng: np.random.Generator) -> list[Args]:
    return [
        (normal(rng, 9, 4), int(rng.integers(2, 5)), int(rng.integers(2, 5)))
        for _ in range(3)
    ]


def draw_too_long(rng: np.random.Generator) -> list[Args]:
    cases: list[Args] = []
    for rows, n_tokens, start in ((5, 7, 0), (6, 4, 4), (5, 3, 9)):
        cases.append((normal(rng, rows, 3), n_tokens + int(rng.integers(0, 2)), start))
    return cases


ROWS = Question(
    id="08.4",
    title="Rows of a learned table, and how many are missing",
    answer="rows_for",
    arguments=("table", "n_tokens", "first"),
    outputs=(Output("rows", "token d_model"), Output("missing")),
    reference=rows_for,
    next_step="take the rows from `first` on, and count those that are not there.",
    parts=(
        Part("inside the table: rows", 1, draw_rows, view=first),
        Part("inside the table: nothing missing", 1, draw_rows, view=second),
        Part("beyond the table", 1, draw_too_long),
    ),
    mistakes=(
        Mistake(
            "first_ignored",
            "the rows always begin at 0: when a text is continued, the new tokens "
            "stand behind those already read",
            lambda table, n, first: (table[:n], max(n - len(table), 0)),
        ),
        Mistake(
            "wraps_around",
            "after the last row the table begins anew: two places would share a row "
            "and could not be told apart",
            lambda table, n, first: (table[places_asked(n, first) % len(table)], 0),
        ),
        Mistake(
            "last_row_repeated",
            "all places beyond the table get its last row: they could not be told "
            "apart; say instead how many are missing",
            lambda table, n, first: (
                table[places_asked(n, first).clamp(max=len(table) - 1)],
                0,
            ),
        ),
        Mistake(
            "missing_without_first",
            "the number of missing rows forgets where the tokens begin: it is the end "
            "that lies beyond the table",
            lambda table, n, first: (
                table[first : first + n],
                max(n - len(table), 0),
            ),
        ),
        Mistake(
            "negative_missing",
            "when all rows are there the number of missing ones is negative: nothing "
            "is missing then",
            lambda table, n, first: (table[first : first + n], first + n - len(table)),
        ),
        Mistake(
            "more_missing_than_asked",
            "more rows are missing than were asked for: rows before `first` were not "
            "asked for",
            lambda table, n, first: (
                table[first : first + n],
                max(first + n - len(table), 0),
            ),
        ),
        Mistake(
            "end_taken_for_count",
            "`n_tokens` is used as the place where to end: it says how many, counted "
            "from `first`",
            lambda table, n, first: (table[first:n], max(n - len(table), 0)),
        ),
    ),
)

# --------------------------------------------------------------- 08.5 a relative bias


def relative_bias(table: Tensor, n_queries: int, n_keys: int) -> Tensor:
    return table[:, entries(table, n_queries, n_keys)]


def entries(table: Tensor, n_queries: int, n_keys: int, ahead: int = 0) -> Tensor:
    """The entry of every pair; `ahead` moves the queries away from the last keys."""
    most = table.shape[1] // 2
    queries = torch.arange(n_queries) + n_keys - n_queries - ahead
    return (queries[:, None] - torch.arange(n_keys)).clamp(-most, most) + most


def biased(entry: Callable[[Tensor, int], Tensor], ahead: bool = False) -> Any:
    """The bias by other entries: a function of the right ones and of max_distance."""

    def wrong(table: Tensor, n_queries: int, n_keys: int) -> Tensor:
        aligned = entries(table, n_queries, n_keys, (n_keys - n_queries) * ahead)
        return table[:, entry(aligned, table.shape[1] // 2)]

    return wrong


def draw_square(rng: np.random.Generator) -> list[Args]:
    return [(normal(rng, h, 2 * m + 1), n, n) for h, m, n in ((2, 3, 7), (3, 2, 5))]


def draw_oblong(rng: np.random.Generator) -> list[Args]:
    return [
        (normal(rng, h, 2 * m + 1), q, k) for h, m, q, k in ((3, 2, 4, 6), (2, 4, 1, 8))
    ]


BIAS = Question(
    id="08.5",
    title="A relative bias",
    answer="relative_bias",
    arguments=("table", "n_queries", "n_keys"),
    outputs=(Output("bias", "head query key"),),
    reference=relative_bias,
    next_step="make the table of distances, cut it off, and look each one up.",
    parts=(
        Part("as many keys as queries", 2, draw_square),
        Part(
            "more keys than queries",
            1,
            draw_oblong,
            alone="right for as many keys as queries, wrong for more keys: where does "
            "the last query stand?",
        ),
    ),
    mistakes=(
        Mistake(
            "sign",
            "before and behind have changed places: the distance is the query's place "
            "minus the key's",
            biased(lambda entry, m: 2 * m - entry),
        ),
        Mistake(
            "first_query_at_first_key",
            "the first query stands at the first key: with more keys than queries it "
            "is the last query that stands at the last key",
            biased(lambda entry, m: entry, ahead=True),
        ),
        Mistake(
            "absolute",
            "a key ahead gets the same number as one equally far behind: the table "
            "has entries for both",
            biased(lambda entry, m: (entry - m).abs() + m),
        ),
        Mistake(
            "ahead_is_zero",
            "all keys ahead get the entry of distance zero: they have entries of "
            "their own",
            biased(lambda entry, m: entry.clamp(min=m)),
        ),
        Mistake(
            "zero_at_the_left",
            "distance 0 takes the first entry of the table: the entries begin at -m, "
            "so that of distance 0 stands in the middle",
            biased(lambda entry, m: entry - m),
        ),
        Mistake(
            "cut_too_early",
            "the outermost entries of the table are never used: the cut comes one "
            "distance too early",
            biased(lambda entry, m: entry.clamp(1, 2 * m - 1)),
        ),
        Mistake(
            "heads_last",
            "the heads stand on the last axis: the bias is added to scores of the "
            "shape (head, query, key)",
            lambda table, q, k: relative_bias(table, q, k).permute(1, 2, 0),
        ),
        Mistake(
            "one_head",
            "all heads got the numbers of the first head: each has its own row of the "
            "table",
            lambda table, q, k: relative_bias(table[:1].expand_as(table), q, k),
        ),
    ),
    packaged=("RelativeBias",),
)


# ---------------------------------------------------------------- 08.6 what is hidden

KINDS = ("every reordering", "the mirror image", "nothing")
HIDDEN = {
    "none": KINDS[0],
    "same_vector": KINDS[0],
    "bias_at_the_start": KINDS[0],
    "symmetric_alibi": KINDS[1],
    "from_the_middle": KINDS[1],
    "sinusoidal": KINDS[2],
    "alibi": KINDS[2],
    "rope": KINDS[2],
    "causal": KINDS[2],
}


def of_kind(kind: str) -> Any:
    names = [name for name, own in HIDDEN.items() if own == kind]
    return lambda value: [value.get(name) for name in names]


ASKED_AGAIN = {
    "same_vector": ((1, 2), "does it make any two places different?"),
    "bias_at_the_start": ((1, 2), "which numbers does its table hold before training?"),
    "symmetric_alibi": ((2, 0), "near and far differ; what keeps every distance?"),
    "from_the_middle": ((2, 0), "which two places are equally far from the middle?"),
    "sinusoidal": ((1, 0), "no two places get the same vector"),
    "alibi": ((1, 0), "only keys behind are penalised; where are they in a mirror?"),
    "rope": ((1, 0), "are the scores at distance k and at −k the same?"),
    "causal": ((0, 1), "who sees whom depends on the order, though nothing is added"),
    "none": ((1, 2), "chapter 07 has the theorem"),
}


def missorted(name: str, wrong: tuple[int, int], hint: str) -> Mistake:
    """The mistake of giving `name` one of the wrong kinds."""
    kinds = [KINDS[index] for index in wrong]
    return Mistake(
        name,
        f"look at `{name}` again: {hint}",
        lambda: HIDDEN | {name: kinds[0]},
        lambda args, value: value[name] in kinds,
    )


SORT = Question(
    id="08.6",
    title="What stays hidden?",
    answer="sort_encodings",
    arguments=(),
    outputs=(Output("hidden"),),
    reference=lambda: dict(HIDDEN),
    next_step="ask for each: what does it add to token t, or to the score of i and j?",
    parts=tuple(
        Part(f"hidden: {kind}", 1, lambda rng: [()], view=of_kind(kind))
        for kind in KINDS
    ),
    mistakes=(
        Mistake(
            "not_all_or_other_words",
            "each of the nine names needs one of the three texts, letter by letter",
            lambda: dict.fromkeys(HIDDEN, "order"),
            lambda args, value: any(value.get(name) not in KINDS for name in HIDDEN),
        ),
        *(missorted(name, *again) for name, again in ASKED_AGAIN.items()),
    ),
)


# ------------------------------------------------------------------ 08.7 three numbers

NUMBERS = (8.0, 328, math.exp(2))


MISCOUNTED: tuple[tuple[int, str, tuple[float, ...], str], ...] = (
    (
        0,
        "every_feature_one",
        (math.sqrt(128), 128),
        "counts every feature as one: what gives one is sine² + cosine² of a wave",
    ),
    (0, "square", (64,), "is the square of the norm"),
    (1, "one_side", (168, 160, 21, 20), "counts distances to one side only"),
    (1, "zero_forgotten", (320, 40), "forgets the distance of a token to itself"),
    (1, "one_table", (41,), "is that of a single head"),
    (1, "by_length", (80_000, 10_000, 800, 1592), "grows with the length of the text"),
    (2, "score_not_weight", (2,), "compares the scores, and not yet the weights"),
    (2, "by_distance", (5,), "divides the distances: the weight fades by powers"),
    (2, "turned_round", (math.exp(-2),), "is turned round: near weighs more than far"),
    (2, "slope_forgotten", (math.exp(8), 8, 32), "leaves the slope out, or the power"),
    (2, "one_token_only", (math.exp(2.5), math.exp(0.5)), "looks at one token alone"),
)


def miscounted(index: int, name: str, wrong: tuple[float, ...], hint: str) -> Mistake:
    """The mistake of one wrong number among three."""
    numbers = (*NUMBERS[:index], wrong[0], *NUMBERS[index + 1 :])
    return Mistake(
        name,
        f"the {('first', 'second', 'third')[index]} number {hint}",
        lambda: numbers,
        lambda args, value: any(
            math.isclose(float(value[index]), each, rel_tol=0.01) for each in wrong
        ),
    )


PREDICT = Question(
    id="08.7",
    title="Three numbers without running anything",
    answer="predict_numbers",
    arguments=(),
    outputs=(Output("norm"), Output("parameters"), Output("factor")),
    reference=lambda: NUMBERS,
    tolerance=1e-2,
    next_step="take the properties one by one: norm of a row, entries, fading.",
    parts=(
        Part("norm of a row", 1, lambda rng: [()], view=first),
        Part("parameters", 1, lambda rng: [()], view=second),
        Part("fading", 1, lambda rng: [()], view=lambda value: value[2]),
    ),
    mistakes=tuple(miscounted(*each) for each in MISCOUNTED),
)

QUESTIONS = (ROWS, BIAS, SORT, PREDICT)
