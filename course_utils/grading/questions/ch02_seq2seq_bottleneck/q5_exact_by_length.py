"""`exact_by_length`: the question, its mistakes and specimen answers."""

from __future__ import annotations

import numpy as np

from course_utils.grading.comparison import same
from course_utils.grading.questions.model import Args, Mistake, Output, Part, Question


def exact_by_length(
    hypotheses: list, references: list, lengths: list, buckets: list
) -> list[float]:
    return shares([h == r for h, r in zip(hypotheses, references)], lengths, buckets)


def shares(
    right: list, lengths: list, buckets: list, last: int = 1, first: int = 0
) -> list[float]:
    """Average what is right in each bucket that has a sentence."""
    found = []
    for low, high in buckets:
        rows = [r for r, n in zip(right, lengths) if low + first <= n < high + last]
        if rows:
            found.append(sum(rows) / len(rows))
    return found


def equal(hypotheses: list, references: list) -> list[bool]:
    return [h == r for h, r in zip(hypotheses, references)]


WORDS = ("le", "chat", "noir", "dort", "ne", "pas", "la", "reine", "chante", ".")


def draw_translations(rng: np.random.Generator, with_gap: bool) -> list[Args]:
    """Draw references, and hypotheses that fail in each of the ways there are.

    The middle bucket, where there is a gap, has no sentence, and the first no success.
    """
    buckets = [[4, 6], [7, 9], [10, 13]]
    lengths = [4, 5, 6, 6, 6, 10, 11, 12, 13, 13, 13]
    lengths += [] if with_gap else [7, 8, 8, 9, 9, 9]
    lengths = [int(n) for n in rng.permutation(lengths)]
    references, hypotheses = [], []
    for i, _ in enumerate(lengths):
        count = int(rng.integers(4, 14))
        reference = [str(rng.choice(WORDS)) for _ in range(count)]
        reference[:2] = ["le", "chat"]
        said = list(reference)
        way = i % 5
        if with_gap and lengths[i] < 7:  # a bucket in which all fail
            way = 1 + i % 3
        if way == 1:
            said = said[:-1]
        elif way == 2:
            said[0], said[1] = said[1], said[0]
        elif way == 3:
            said[int(rng.integers(2, count))] = "roi"
        references.append(reference)
        hypotheses.append(said)
    return [(hypotheses, references, lengths, buckets)]


def token_shares(hypotheses: list, references: list, lengths: list, b: list) -> list:
    same = [
        sum(x == y for x, y in zip(h, r)) / len(r)
        for h, r in zip(hypotheses, references)
    ]
    return shares(same, lengths, b)


def pooled_tokens(hypotheses: list, references: list, lengths: list, b: list) -> list:
    found = []
    for low, high in b:
        pairs = [
            (h, r)
            for h, r, n in zip(hypotheses, references, lengths)
            if low <= n <= high
        ]
        hits = sum(x == y for h, r in pairs for x, y in zip(h, r))
        if pairs:
            found.append(hits / sum(len(r) for _, r in pairs))
    return found


def with_empty(hypotheses: list, references: list, lengths: list, b: list) -> list:
    right = [h == r for h, r in zip(hypotheses, references)]
    return [
        sum(r for r, n in zip(right, lengths) if low <= n <= high)
        / max(1, sum(low <= n <= high for n in lengths))
        for low, high in b
    ]


def of_all(hypotheses: list, references: list, lengths: list, b: list) -> list:
    found = []
    for low, high in b:
        rows = [i for i, n in enumerate(lengths) if low <= n <= high]
        if rows:
            right = sum(hypotheses[i] == references[i] for i in rows)
            found.append(right / len(lengths))
    return found


def counts(hypotheses: list, references: list, lengths: list, b: list) -> list:
    found = of_all(hypotheses, references, lengths, b)
    return [share * len(lengths) for share in found]


QUESTION = Question(
    id="02.5",
    title="Exact match by length",
    answer="exact_by_length",
    arguments=("hypotheses", "references", "lengths", "buckets"),
    outputs=(Output("shares"),),
    reference=exact_by_length,
    difficulty="easy",
    minutes=8,
    next_step="for each bucket: which sentences belong to it, and how many are equal?",
    parts=(
        Part("full buckets", 2, lambda rng: draw_translations(rng, False)),
        Part(
            "a bucket without a sentence",
            1,
            lambda rng: draw_translations(rng, True),
            only_failure_hint="right while every bucket has a sentence; one without "
            "any has no share, and is left out",
        ),
    ),
    mistakes=(
        Mistake(
            "end_excluded",
            "the upper end of a bucket is left out: both ends belong to it",
            lambda h, r, n, b: shares([x == y for x, y in zip(h, r)], n, b, last=0),
        ),
        Mistake(
            "tokens_counted",
            "this is the share of right tokens; here a sentence is right to the last "
            "token or not at all",
            token_shares,
        ),
        Mistake(
            "beginning_only",
            "a translation that stops too early counts as right: comparing word by "
            "word with zip never looks at what is missing",
            lambda h, r, n, b: shares(
                [all(u == v for u, v in zip(x, y)) for x, y in zip(h, r)], n, b
            ),
        ),
        Mistake(
            "order_ignored",
            "the right words in the wrong order count as right: compare the sentences "
            "as they stand",
            lambda h, r, n, b: shares(
                [sorted(x) == sorted(y) for x, y in zip(h, r)], n, b
            ),
        ),
        Mistake(
            "sets_compared",
            "the words are compared as sets, so that neither order nor repetition "
            "counts: compare the sentences as they stand",
            lambda h, r, n, b: shares([set(x) == set(y) for x, y in zip(h, r)], n, b),
        ),
        Mistake(
            "counts",
            "these are numbers of right sentences: divide each by the number of "
            "sentences in its bucket",
            counts,
        ),
        Mistake(
            "length_of_the_target",
            "the sentences are sorted into buckets by the length of the reference, or "
            "of the hypothesis; `lengths` holds the lengths to go by",
            lambda h, r, n, b: shares(
                [x == y for x, y in zip(h, r)], [len(y) for y in r], b
            ),
            lambda args, value: same(
                value, shares(equal(*args[:2]), [len(x) for x in args[0]], args[3])
            ),
        ),
        Mistake(
            "divided_by_all",
            "each bucket's right sentences are divided by the number of all sentences; "
            "a share is of the bucket's own",
            of_all,
        ),
        Mistake(
            "percent",
            "these are percentages: a share runs from 0 to 1",
            lambda h, r, n, b: [100 * s for s in exact_by_length(h, r, n, b)],
        ),
        Mistake(
            "empty_is_zero",
            "a bucket without a sentence gets the share 0, as if all had failed: leave "
            "it out",
            with_empty,
        ),
        Mistake(
            "tokens_pooled",
            "the words of a bucket are counted, not its sentences: a sentence is right "
            "to the last word or not at all",
            pooled_tokens,
        ),
        Mistake(
            "start_excluded",
            "the lower end of a bucket is left out: both ends belong to it",
            lambda h, r, n, b: shares(equal(h, r), n, b, first=1),
        ),
        Mistake(
            "ends_excluded",
            "both ends of a bucket are left out: both belong to it",
            lambda h, r, n, b: shares(equal(h, r), n, b, last=0, first=1),
        ),
        Mistake(
            "lengths_compared",
            "it is only compared whether hypothesis and reference are equally long: "
            "compare the words",
            lambda h, r, n, b: shares([len(x) == len(y) for x, y in zip(h, r)], n, b),
        ),
        Mistake(
            "first_words",
            "only the first words are compared: a translation is right to the last one",
            lambda h, r, n, b: shares([x[0] == y[0] for x, y in zip(h, r)], n, b),
        ),
        Mistake(
            "failures",
            "this is the share of wrong translations: asked for is that of the right "
            "ones",
            lambda h, r, n, b: shares([x != y for x, y in zip(h, r)], n, b),
        ),
        Mistake(
            "share_of_the_right",
            "each bucket's right sentences are divided by the number of all right "
            "sentences; a share is of the bucket's own",
            lambda h, r, n, b: [x / sum(equal(h, r)) for x in counts(h, r, n, b)],
        ),
        Mistake(
            "whole_numbers",
            "the division gives whole numbers (`//` or `int`), so that nearly every "
            "share is 0",
            lambda h, r, n, b: [int(x) for x in exact_by_length(h, r, n, b)],
        ),
        Mistake(
            "from_the_shortest",
            "every bucket begins at the shortest sentence: its lower end is not used",
            lambda h, r, n, b: [
                x
                for low, high in b
                if any(low <= y <= high for y in n)
                for x in shares(equal(h, r), n, [(0, high)])
            ],
        ),
        Mistake(
            "counts_of_all",
            "these are counts of the right sentences, one for a bucket without any, "
            "too: divide by the sentences of the bucket, where there are some",
            lambda h, r, n, b: [
                sum(x for x, y in zip(equal(h, r), n) if low <= y <= high)
                for low, high in b
            ],
        ),
        Mistake(
            "failures_left_out",
            "a bucket whose sentences all failed is left out: its share is 0; only a "
            "bucket without any sentence has none",
            lambda h, r, n, b: [x for x in exact_by_length(h, r, n, b) if x],
        ),
        Mistake(
            "named",
            "each share comes with its bucket: return the shares alone, in order",
            lambda h, r, n, b: [
                (bucket, x) for bucket in b for x in shares(equal(h, r), n, [bucket])
            ],
        ),
        Mistake(
            "by_the_place",
            "the sentences are sorted into buckets by their place in the list; "
            "`lengths` holds the lengths to go by",
            lambda h, r, n, b: shares(equal(h, r), list(range(len(h))), b),
        ),
        Mistake(
            "first_bucket_only",
            "only the first bucket has a share: a `return` inside the loop ends it "
            "after the first round",
            lambda h, r, n, b: exact_by_length(h, r, n, b)[:1],
        ),
    ),
    packaged=("by_length",),
)


# ----------------------------------------------------------------------- specimens


def by_bucket(is_right, inside=lambda low, n, high: low <= n <= high):
    def answer(hypotheses, references, lengths, buckets):
        found = []
        for low, high in buckets:
            chosen = [i for i, n in enumerate(lengths) if inside(low, n, high)]
            right = [i for i in chosen if is_right(hypotheses[i], references[i])]
            found += [len(right) / len(chosen)] if chosen else []
        return found

    return answer


def starts_alike(hypothesis, reference):
    return reference[: len(hypothesis)] == hypothesis


def cumulative(hypotheses, references, lengths, buckets):
    found = []
    for low, high in buckets:
        rows = [i for i, n in enumerate(lengths) if n <= high]
        right = sum(hypotheses[i] == references[i] for i in rows)
        if any(n >= low for n in lengths if n <= high):
            found.append(right / len(rows))
    return found


RIGHT = [by_bucket(list.__eq__)]
WRONG = [
    ("beginning_only", by_bucket(starts_alike)),
    ("end_excluded", by_bucket(list.__eq__, lambda lo, n, hi: n in range(lo, hi))),
    ("order_ignored", by_bucket(lambda h, r: sorted(r) == sorted(h))),
]
WRONG += [
    (
        "start_excluded",
        by_bucket(list.__eq__, lambda lo, n, hi: n in range(lo + 1, hi + 1)),
    ),
    ("from_the_shortest", cumulative),
    ("lengths_compared", by_bucket(lambda h, r: len(h) - len(r) == 0)),
    ("failures", by_bucket(list.__ne__)),
    (
        "counts_of_all",
        lambda h, r, n, b: [
            len([i for i, y in enumerate(n) if y in range(lo, hi + 1) and h[i] == r[i]])
            for lo, hi in b
        ],
    ),
    ("whole_numbers", lambda *given: [x // 1 for x in by_bucket(list.__eq__)(*given)]),
    ("failures_left_out", lambda *given: [*filter(None, exact_by_length(*given))]),
]
NOT_IN_HINTS = {"== r"}
