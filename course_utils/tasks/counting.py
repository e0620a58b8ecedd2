"""Counting as a language model, at its best: Kneser-Ney with a cache of the text.

Every function returns log-probabilities of *all* next tokens after *every* token of a
text, so that a network can be told what counting thinks. Chapter 13 writes the simple
form with dictionaries; this is the one of Chen and Goodman (1999), with a discount for
counts of 1, of 2 and of 3 or more, estimated from the counts themselves, in arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course_utils.data.corpus import Vocabulary, pydoc_text, split_blocks

Ids = NDArray[np.int64]
LogP = NDArray[np.float32]  # (token, n_tokens): of the token that follows

# The cache of the pydoc text: lengths of context, what the shorter one weighs at each,
# and how far back it looks. Chosen on the validation text.
LENGTHS, TRUST = (2, 3, 4, 5, 7, 10), (700.0, 35.0, 430.0, 8.0, 12.0, 3.0)
HISTORY, MOST = 2100, 46
FEW = 3  # contexts up to this length are few enough for a table of all


class KneserNey:
    """Interpolated, modified Kneser-Ney over n-grams of up to `order` tokens.

    An n-gram is known by its rank among the sorted keys (rank of its first n - 1
    tokens, last token); `suffix` is the rank of its last n - 1 tokens.
    """

    def __init__(self, texts: Sequence[Ids], order: int, n_tokens: int):
        if order < 1 or not texts or min(len(text) for text in texts) < order:
            raise ValueError(
                f"order is {order}, expected at least 1, and texts at least as long."
            )
        self.order, self.n_tokens = order, n_tokens
        self.keys: list[Ids] = [np.zeros(1, np.int64)]
        self.suffix: list[Ids] = [np.zeros(1, np.int64)]
        times: list[Ids] = [np.zeros(1, np.int64)]
        ranks = [np.zeros(len(text), np.int64) for text in texts]
        for n in range(1, order + 1):
            before = [rank if n == 1 else rank[:-1] for rank in ranks]
            now = [b * n_tokens + text[n - 1 :] for b, text in zip(before, texts)]
            keys, rank, count = np.unique(
                np.concatenate(now), return_inverse=True, return_counts=True
            )
            suffix = np.zeros(len(keys), np.int64)
            if n > 1:
                suffix[rank] = np.concatenate([r[1:] for r in ranks])
            ends = np.cumsum([len(found) for found in now])[:-1]
            ranks = np.split(rank, ends)
            self.keys.append(keys)
            self.suffix.append(suffix)
            times.append(count)
        self.levels = [self._level(n, times[n]) for n in range(1, order + 1)]

    def _level(self, n: int, times: Ids) -> tuple[Ids, Ids, LogP, LogP]:
        """Context, token and discounted share of each n-gram; what a context leaves."""
        if n < self.order:  # in how many contexts, not how often
            times = np.bincount(self.suffix[n + 1], minlength=len(self.keys[n]))
        discount = discounts(times)[np.minimum(times, 3)]
        context, token = np.divmod(self.keys[n], self.n_tokens)
        n_contexts = len(self.keys[n - 1])
        total = np.bincount(context, times, n_contexts)
        taken = np.bincount(context, discount, n_contexts)
        left = np.where(total > 0, taken / np.maximum(total, 1), 1.0)  # 0: at an end
        share = (times - discount) / np.maximum(total, 1)[context]
        return context, token, share.astype(np.float32), left.astype(np.float32)

    def ranks(self, ids: Ids) -> list[Ids]:
        """For each length, the rank of the context that ends here; -1 if never seen."""
        found = [np.zeros(len(ids), np.int64)]
        for n in range(1, self.order):
            shorter = found[-1] if n == 1 else np.r_[-1, found[-1][:-1]]
            key = np.where(shorter >= 0, shorter * self.n_tokens + ids, -1)
            place = np.searchsorted(self.keys[n], key)
            place[place == len(self.keys[n])] = 0
            known = (self.keys[n][place] == key) & (key >= 0)
            found.append(np.where(known, place, -1))
        return found

    def log_p(self, ids: Ids) -> LogP:
        """After each token of a text, the log-probability of every next one."""
        p = np.empty((len(ids), self.n_tokens), np.float32)
        table = np.full((1, self.n_tokens), 1 / self.n_tokens, np.float32)
        for length, rank in enumerate(self.ranks(ids)):
            context, token, share, left = self.levels[length]
            here = np.flatnonzero(rank >= 0)
            at = rank[here]
            if length <= FEW:
                table = table[self.suffix[length]] * left[:, None]
                table[context, token] += share
                p[here] = table[at]
                continue
            p[here] *= left[at][:, None]
            start = np.searchsorted(context, np.arange(len(left) + 1))
            many = start[at + 1] - start[at]
            which = np.repeat(start[at] - np.cumsum(many) + many, many)
            which += np.arange(many.sum())
            p[np.repeat(here, many), token[which]] += share[which]
        return np.log(p)

    def after(self, ids: Ids) -> LogP:
        """The probability of every next token after one text: its last context alone.

        Look-ups and no table, so that it is cheap enough to draft with (chapter 19).
        """
        p = np.full(self.n_tokens, 1 / self.n_tokens, np.float32)
        recent = ids[max(len(ids) - self.order + 1, 0) :]
        if len(recent) == 0:
            return self._mixed(p, 0, 0)
        for length, rank in enumerate(self.ranks(recent)):
            if rank[-1] < 0:
                break  # a longer context was not seen either
            p = self._mixed(p, length, int(rank[-1]))
        return p

    def _mixed(self, p: LogP, length: int, rank: int) -> LogP:
        """What followed one context, and for the rest what the shorter one says."""
        context, token, share, left = self.levels[length]
        first, end = np.searchsorted(context, (rank, rank + 1))
        p = p * left[rank]
        p[token[first:end]] += share[first:end]
        return p


def discounts(times: Ids) -> NDArray[np.float64]:
    """What to take from counts of 0, 1, 2 and 3 or more (Chen and Goodman, 1999)."""
    n1, n2, n3, n4 = (int(np.count_nonzero(times == k)) for k in (1, 2, 3, 4))
    if not min(n1, n2, n3, n4):
        return np.array([0, 0.5, 0.5, 0.5])
    y = n1 / (n1 + 2 * n2)
    found = [0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]
    return np.clip(found, 0, [0, 1, 2, 3])


def held_out_log_p(
    ids: Ids, order: int, n_tokens: int, folds: int = 8, blocks: int = 40
) -> LogP:
    """The same for the text that is counted: each block by the counts of others.

    A model that counted the answer is sure of it. A network that learned to trust such
    a model would be lost on new text.
    """
    edges = np.linspace(0, len(ids), blocks + 1).astype(int).tolist()
    spans = list(pairwise(edges))
    found = np.empty((len(ids), n_tokens), np.float32)
    for fold in range(folds):
        kept = [ids[a:b] for i, (a, b) in enumerate(spans) if i % folds != fold]
        counts = KneserNey(kept, order, n_tokens)
        for a, b in spans[fold::folds]:
            back = max(0, a - order)  # what stands before the block is only read
            found[a:b] = counts.log_p(ids[back:b])[a - back :]
    return found


def with_cache(log_p: LogP, ids: Ids, history: int = HISTORY) -> LogP:
    """Add what followed the same contexts in the last `history` tokens of this text.

    p <- (k + theta p) / (c + theta) for each length of context, from short to long: the
    context came c times, and k times this token followed.
    """
    p, n_tokens = np.exp(log_p), log_p.shape[1]
    gram = np.zeros(len(ids), np.int64)
    for length in range(1, max(LENGTHS) + 1):
        longer = np.r_[-1, gram[:-1]] if length > 1 else gram
        key = np.where(longer >= 0, longer * n_tokens + ids, -1)
        gram = np.where(key >= 0, np.unique(key, return_inverse=True)[1], -1)
        if length in LENGTHS:
            theta = TRUST[LENGTHS.index(length)]
            _add_recent(p, ids, gram, theta, history)
    return np.log(p)


def _add_recent(p: LogP, ids: Ids, gram: Ids, theta: float, history: int) -> None:
    """Mix in the followers of the same context among its latest occurrences."""
    order = np.argsort(gram, kind="stable")
    same = gram[order]
    times = np.zeros(len(ids), np.float32)
    at, followers = [], []
    for lag in range(1, min(MOST, len(ids) - 1) + 1):
        pair = (same[lag:] == same[:-lag]) & (same[lag:] >= 0)
        pair &= order[lag:] - order[:-lag] <= history
        now, before = order[lag:][pair], order[:-lag][pair]
        times[now] += 1
        at.append(now)
        followers.append(ids[before + 1])  # before < now: it is known by then
    met = np.flatnonzero(times)
    p[met] *= (theta / (times[met] + theta))[:, None]
    cells = np.concatenate(at) * p.shape[1] + np.concatenate(followers)
    cell, k = np.unique(cells, return_counts=True)
    where = cell // p.shape[1]
    p[where, cell % p.shape[1]] += (k / (times[where] + theta)).astype(np.float32)


@functools.cache
def counted_pydoc(order: int = 12, share: float = 1.0) -> dict[str, Any]:
    """Python's help topics as characters, with what two counting models think of them.

    `{"train": (ids, log_p), …}` with ids (token,) and log_p (model, token, character),
    Kneser-Ney without and with the cache, and `"n_tokens"`. Of the text, the first
    `share` is taken.
    """
    text = pydoc_text()
    split = split_blocks(text[: int(share * len(text))], 0.1, 0.1, seed=0)
    vocabulary = Vocabulary([split.train])
    ids = {k: np.array(vocabulary.encode(v)) for k, v in split._asdict().items()}
    counts = KneserNey([ids["train"]], order, len(vocabulary))
    found: dict[str, Any] = {"n_tokens": len(vocabulary)}
    for part, text_ids in ids.items():
        if part == "train":
            log_p = held_out_log_p(text_ids, order, len(vocabulary))
        else:
            log_p = counts.log_p(text_ids)
        found[part] = text_ids, np.stack([log_p, with_cache(log_p, text_ids)])
    return found


def bits(ids: Ids, log_p: LogP) -> float:
    """Bits per token that a counting model needs for a text, its first token aside."""
    taken = log_p[np.arange(len(ids) - 1), ids[1:]]
    return float(-taken.mean(dtype=np.float64) / np.log(2))
