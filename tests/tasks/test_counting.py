"""Counting in arrays is the counting of the formula, and sees nothing too early."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from course_utils.tasks import counting

N = 7  # different tokens


def text(n: int = 900, seed: int = 0) -> np.ndarray:
    """Tokens that often follow their neighbours, so that contexts come again."""
    generator = np.random.default_rng(seed)
    steps = generator.choice([1, 1, 1, 2, 5], size=n)
    return np.cumsum(steps) % N


def by_formula(ids: list[int], order: int):
    """p(token, context) by dictionaries: slow, and as the paper has it."""
    grams = [
        Counter(tuple(ids[i : i + n]) for i in range(len(ids) - n + 1))
        for n in range(1, order + 1)
    ]
    kinds = [Counter(g[1:] for g in longer) for longer in grams[1:]] + [grams[-1]]
    taken = [counting.discounts(np.array([*k.values()])) for k in kinds]

    def p(token: int, context: tuple[int, ...]) -> float:
        shorter = p(token, context[1:]) if context else 1 / N
        level = len(context)
        row = {g[-1]: k for g, k in kinds[level].items() if g[:-1] == context}
        if not row:
            return shorter
        discounts = taken[level]
        left = sum(discounts[min(k, 3)] for k in row.values())
        k = row.get(token, 0)
        return (k - discounts[min(k, 3)] + left * shorter) / sum(row.values())

    return p


@pytest.mark.parametrize("order", [1, 3, 6])
def test_it_is_the_formula_of_kneser_and_ney(order):
    ids, new = text(), text(40, seed=1)
    log_p = counting.KneserNey([ids], order, N).log_p(new)
    p = by_formula(ids.tolist(), order)
    for t in range(order, len(new)):
        context = tuple(new[t - order + 2 : t + 1].tolist()) if order > 1 else ()
        expected = [p(token, context) for token in range(N)]
        assert np.exp(log_p[t]) == pytest.approx(expected, rel=1e-4)


def test_everything_is_a_distribution():
    ids, new = text(), text(300, seed=1)
    plain = counting.KneserNey([ids[:400], ids[400:]], 6, N).log_p(new)
    held = counting.held_out_log_p(ids, 6, N, folds=4, blocks=12)
    for log_p in (plain, held, counting.with_cache(plain, new)):
        assert np.exp(log_p).sum(axis=1) == pytest.approx(1, abs=1e-4)


def test_the_cache_knows_nothing_of_what_follows():
    ids, new = text(), text(300, seed=1)
    plain = counting.KneserNey([ids], 6, N).log_p(new)
    cached = counting.with_cache(plain, new)
    changed = new.copy()
    changed[200:] = (changed[200:] + 3) % N
    again = counting.with_cache(plain, changed)
    assert np.array_equal(cached[:200], again[:200])
    assert not np.allclose(cached[200:], again[200:])
    assert not np.allclose(cached, plain)  # and it changes something


def test_counts_of_its_own_block_are_not_in_a_held_out_prediction():
    """In noise nothing can be predicted, unless the answer was counted."""
    ids = np.random.default_rng(0).integers(N, size=2000)
    naive = counting.KneserNey([ids], 6, N).log_p(ids)
    held = counting.held_out_log_p(ids, 6, N, folds=4, blocks=12)
    assert counting.bits(ids, naive) < 1 < 2.5 < counting.bits(ids, held)


def test_a_text_shorter_than_the_order_is_refused():
    with pytest.raises(ValueError, match="at least as long"):
        counting.KneserNey([text(4)], 6, N)


def test_one_context_alone_gets_the_probabilities_of_the_whole_text():
    rng = np.random.default_rng(0)
    text, new = rng.integers(6, size=400), rng.integers(6, size=30)
    for order in (1, 2, 4):
        counts = counting.KneserNey([text], order, 6)
        expected = np.exp(counts.log_p(new))
        for end in range(1, len(new) + 1):
            np.testing.assert_allclose(counts.after(new[:end]), expected[end - 1], 1e-5)
        assert counts.after(new[:0]).sum() == pytest.approx(1, abs=1e-5)
