"""`rows_for`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.grading.questions.draw import first, normal, second
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


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


QUESTION = Question(
    id="08.4",
    title="Rows of a learned table, and how many are missing",
    answer="rows_for",
    arguments=("table", "n_tokens", "first"),
    outputs=(Output("rows", "token d_model"), Output("missing")),
    reference=rows_for,
    difficulty="easy",
    minutes=6,
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
        Mistake(
            "arguments_exchanged",
            "`n_tokens` and `first` have changed places: the rows begin at `first`, "
            "and `n_tokens` says how many are asked for",
            lambda table, n, first: rows_for(table, first, n),
        ),
        Mistake(
            "one_late",
            "the rows begin one place late: after `first` tokens, counted from 0, the "
            "next one stands at place `first`",
            lambda table, n, first: rows_for(table, n, first + 1),
        ),
        Mistake(
            "one_early",
            "the rows begin one place early, at the last token that was read: the "
            "first new one stands at place `first`",
            lambda table, n, first: rows_for(table, n, max(first - 1, 0)),
        ),
        Mistake(
            "to_the_end",
            "all rows from `first` to the end of the table: only `n_tokens` of them "
            "are asked for",
            lambda table, n, first: (table[first:], rows_for(table, n, first)[1]),
        ),
        Mistake(
            "one_row_less",
            "one row too few is taken: a slice ends *before* its second number",
            lambda table, n, first: (
                table[first : first + n - 1],
                n - len(table[first : first + n - 1]),
            ),
        ),
        Mistake(
            "one_row_more",
            "one row too many is taken: a slice ends *before* its second number, so "
            "that nothing has to be added to it",
            lambda table, n, first: (
                table[first : first + n + 1],
                rows_for(table, n, first)[1],
            ),
        ),
        Mistake(
            "filled_up",
            "the rows that are missing are filled up with zeros: as many rows as the "
            "table has are asked for, perhaps none",
            lambda table, n, first: (
                F.pad(
                    rows_for(table, n, first)[0],
                    (0, 0, 0, rows_for(table, n, first)[1]),
                ),
                rows_for(table, n, first)[1],
            ),
        ),
        Mistake(
            "one_missing_too_few",
            "one row too few is missing: a table of 5 rows ends with place 4, so place "
            "5 has none",
            lambda table, n, first: (
                rows_for(table, n, first)[0],
                int((places_asked(n, first) > len(table)).sum()),
            ),
        ),
        Mistake(
            "from_the_end",
            "the last rows of the table are taken: the new tokens stand at the places "
            "from `first` on, wherever the table ends",
            lambda table, n, first: (table[-n:], rows_for(table, n, first)[1]),
        ),
        Mistake(
            "all_or_nothing",
            "if one row is missing, none is returned: as many of the new tokens' rows "
            "as the table has are asked for",
            lambda table, n, first: (
                (table[:0], n) if first + n > len(table) else rows_for(table, n, first)
            ),
        ),
        Mistake(
            "rows_left_over",
            "the second number counts the rows of the table that nobody asks for: it "
            "is to count the tokens that have no row",
            lambda table, n, first: (
                rows_for(table, n, first)[0],
                max(0, len(table) - first - n),
            ),
        ),
    ),
)


# ----------------------------------------------------------------------- specimens


def first_rows(table, n):
    return table[:n], max(0, n - table.shape[0])


def read(table, places, n):
    rows = table[[place for place in places if place < len(table)]]
    return rows, n - len(rows)


RIGHT = [
    lambda table, n, first: (
        table[[p for p in range(first, first + n) if p < len(table)]],
        sum(p >= len(table) for p in range(first, first + n)),
    )
]
WRONG = [
    (
        "from_the_end",
        lambda t, n, first: (
            t.flip(0)[:n].flip(0),
            sum(first + i >= len(t) for i in range(n)),
        ),
    ),
    (
        "all_or_nothing",
        lambda t, n, first: (
            read(t, range(first, first + n), n)
            if first + n <= t.shape[0]
            else (t.new_zeros(0, t.shape[1]), n)
        ),
    ),
    (
        "rows_left_over",
        lambda t, n, first: (
            t[first : first + n],
            sum(place >= first + n for place in range(first, len(t))),
        ),
    ),
    ("to_the_end", lambda t, n, first: (t[first:], max(0, n - len(t[first:])))),
    ("one_row_less", lambda t, n, first: read(t, range(first, first + n - 1), n)),
    (
        "one_row_more",
        lambda t, n, first: (
            read(t, range(first, first + n + 1), n)[0],
            read(t, range(first, first + n), n)[1],
        ),
    ),
    ("arguments_exchanged", lambda t, n, first: read(t, range(n, n + first), first)),
    ("one_late", lambda t, n, first: read(t, range(first + 1, first + n + 1), n)),
    (
        "one_early",
        lambda t, n, first: read(
            t, range(max(0, first - 1), first + n - 1 + (not first)), n
        ),
    ),
    (
        "filled_up",
        lambda t, n, first: (
            torch.cat([t[first : first + n], t.new_zeros(99, t.shape[1])])[:n],
            max(0, min(n, first + n - len(t))),
        ),
    ),
    (
        "one_missing_too_few",
        lambda t, n, first: (
            t[first:][:n],
            sum(first + i > len(t) for i in range(n)),
        ),
    ),
    ("first_ignored", lambda table, n, first: first_rows(table, n)),
    (
        "wraps_around",
        lambda table, n, first: (
            torch.stack([table[(first + i) % len(table)] for i in range(n)]),
            0,
        ),
    ),
    (
        "last_row_repeated",
        lambda table, n, first: (
            torch.stack([table[min(first + i, len(table) - 1)] for i in range(n)]),
            torch.tensor(0),
        ),
    ),
    (
        "more_missing_than_asked",
        lambda table, n, first: (
            table[first:][:n],
            first + n - len(table) if first + n > len(table) else 0,
        ),
    ),
]
