"""The questions of chapter 13, answered rightly and wrongly by someone else."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from course_utils.attention import KeyValueCache, fused_attention
from course_utils.checks import PUBLIC_SEED, verdict
from course_utils.decoding import keep_top_k, keep_top_p
from course_utils.questions.clean_splits import JUDGED
from course_utils.transformer import GPT

SEEDS = (PUBLIC_SEED, 0, 1, "a secret of the instructor")


# ------------------------------------------------------------ answers, written anew


def question_by_question(asks, per_row=False):
    """A loss that goes through the places one by one: asks(i, row, n_source)."""

    def answer(logits, tokens, n_source=0):
        rows = []
        for scores, row in zip(logits, tokens):
            losses = []
            for i in range(len(row)):
                j = asks(i, row, n_source)
                if j is not None:
                    p = torch.exp(scores[i]) / torch.exp(scores[i]).sum()
                    losses.append(-math.log(float(p[row[j]])))
            rows.append(losses)
        if per_row:
            means = [sum(losses) / len(losses) for losses in rows]
            return torch.tensor(sum(means) / len(means))
        every = [loss for losses in rows for loss in losses]
        return torch.tensor(sum(every) / len(every))

    return answer


def following(i, row, n_source, first=0, padding=True):
    """The place after i, if it is asked for."""
    inside = n_source + first <= i < len(row) - 1
    return i + 1 if inside and (padding or row[i + 1] != 0) else None


def asks(**options):
    return lambda i, row, n_source: following(i, row, n_source, **options)


def only_for(loss):
    return lambda logits, tokens: loss(logits, tokens)


def sorted_in_python(logits, k, share, extra=0, divide=True):
    p = torch.exp(logits) / torch.exp(logits).sum()
    ranked = sorted(range(len(p)), key=lambda i: -float(p[i]))[:k]
    total = sum(float(p[i]) for i in ranked)
    kept, reached = [], 0.0
    for i in ranked:
        if share < 1 and reached >= share:
            break
        kept.append(i)
        reached += float(p[i]) / total
    if share < 1:
        kept = ranked[: len(kept) + extra]
    total = sum(float(p[i]) for i in kept) if divide else 1.0
    return torch.tensor(
        [float(p[i]) / total if i in kept else 0.0 for i in range(len(p))]
    )


def by_mask(keep_of, divide=(True, True), kth=torch.ge):
    """Cut with masks: keep_of(p, share) says what top-p keeps, place by place."""

    def answer(logits, k, share):
        p = torch.softmax(logits, dim=0)
        p = p * kth(p, p.sort(descending=True).values[k - 1])
        p = p / p.sum() if divide[0] else p
        p = p * keep_of(p, share)
        return p / p.sum() if divide[1] else p

    return answer


def places_of(p, keep):
    """Bring what holds for the sorted pieces back to their places."""
    return keep(p.sort(descending=True).values)[p.argsort(descending=True).argsort()]


def reaching(p, share):
    return places_of(p, lambda ranked: ranked.cumsum(0) - ranked < share)


def by_the_package(logits, k, share):
    return torch.softmax(keep_top_p(keep_top_k(logits, k), share), dim=-1)


def whole_distribution(logits, k, share):
    return torch.softmax(keep_top_k(keep_top_p(logits, share), k), dim=-1)


def with_the_cache(x, w_q, w_k, w_v, keys, values):
    """The package's cache and kernel, with a head axis of one."""
    room = (len(x), 1, keys.shape[1] + 3)
    cache = KeyValueCache(
        torch.zeros(*room, keys.shape[2]), torch.zeros(*room, values.shape[2])
    )
    cache.extend(keys[:, None], values[:, None])
    every = cache.extend((x @ w_k)[:, None, None], (x @ w_v)[:, None, None])
    context, _ = fused_attention((x @ w_q)[:, None, None], *every)
    return context[:, 0, 0], every[0][:, 0], every[1][:, 0]


def row_by_row(
    sees=lambda n: range(n),
    size=lambda query, x: math.sqrt(len(query)),
    order=lambda old, new: old + new,
):
    """Attention with Python sums: `sees` says which of the n keys count."""

    def answer(x, w_q, w_k, w_v, keys, values):
        contexts, new_keys, new_values = [], [], []
        for b in range(len(x)):
            own_keys = order(list(keys[b]), [x[b] @ w_k])
            own_values = order(list(values[b]), [x[b] @ w_v])
            query = x[b] @ w_q
            seen = list(sees(len(own_keys)))
            scores = [float(query @ own_keys[j]) / size(query, x[b]) for j in seen]
            powers = [math.exp(score - max(scores)) for score in scores]
            mix = sum(p * own_values[j] for p, j in zip(powers, seen)) / sum(powers)
            contexts.append(mix)
            new_keys.append(torch.stack(own_keys))
            new_values.append(torch.stack(own_values))
        return torch.stack(contexts), torch.stack(new_keys), torch.stack(new_values)

    return answer


def built(n_tokens, d_model, n_layers, length, tied):
    """Count what PyTorch has really made, and what the cache really holds."""
    model = GPT(n_tokens, length, d_model, 2, n_layers, tied=tied)
    caches = model.start(torch.zeros(1, 1, dtype=torch.long))
    stored = sum(c.keys.nbytes + c.values.nbytes for c in caches)
    return sum(p.numel() for p in model.parameters()), stored


def off_by(more=lambda n, d, layers, length, tied: 0, times=1.0):
    def answer(*sizes):
        parameters, stored = built(*sizes)
        return parameters + more(*sizes), round(stored * times)

    return answer


def but(**other):
    return lambda: {**JUDGED, **other}


shifted = question_by_question(asks())
joined = question_by_question(asks(padding=False))

RIGHT = [
    ("13.1", only_for(shifted)),
    (
        "13.1",
        lambda logits, tokens: nn.CrossEntropyLoss()(
            logits.transpose(1, 2)[:, :, :-1], tokens[:, 1:]
        ),
    ),
    ("13.2", joined),
    ("13.3", by_mask(reaching)),
    ("13.3", sorted_in_python),
    ("13.3", by_the_package),
    ("13.4", with_the_cache),
    ("13.4", row_by_row()),
    ("13.5", built),
    ("13.6", but()),
]

WRONG = [
    ("13.1", "not_shifted", only_for(question_by_question(lambda i, row, n: i))),
    (
        "13.1",
        "shifted_back",
        only_for(question_by_question(lambda i, row, n: i - 1 if i else None)),
    ),
    (
        "13.1",
        "around_the_end",
        only_for(question_by_question(lambda i, row, n: (i + 1) % len(row))),
    ),
    (
        "13.1",
        "last_only",
        only_for(
            question_by_question(lambda i, row, n: i + 1 if i + 2 == len(row) else None)
        ),
    ),
    ("13.1", "sign_missing", lambda logits, tokens: -shifted(logits, tokens)),
    (
        "13.1",
        "summed",
        lambda logits, tokens: nn.CrossEntropyLoss(reduction="sum")(
            logits.transpose(1, 2)[:, :, :-1], tokens[:, 1:]
        ),
    ),
    (
        "13.1",
        "softmax_twice",
        lambda logits, tokens: shifted(torch.softmax(logits, -1), tokens),
    ),
    (
        "13.1",
        "no_logarithm",
        lambda logits, tokens: (
            -torch.softmax(logits, -1)[:, :-1].gather(-1, tokens[:, 1:, None]).mean()
        ),
    ),
    (
        "13.1",
        "both_without_the_first",
        only_for(question_by_question(lambda i, row, n: i or None)),
    ),
    (
        "13.1",
        "both_without_the_last",
        only_for(
            question_by_question(lambda i, row, n: i if i + 1 < len(row) else None)
        ),
    ),
    (
        "13.1",
        "axes_not_joined",
        lambda logits, tokens: nn.CrossEntropyLoss()(
            logits.narrow(1, 0, tokens.shape[1] - 1),
            tokens.narrow(1, 1, tokens.shape[1] - 1),
        ),
    ),
    (
        "13.1",
        "not_averaged",
        lambda logits, tokens: torch.cat(
            [
                nn.CrossEntropyLoss(reduction="none")(scores[:-1], row[1:])
                for scores, row in zip(logits, tokens)
            ]
        ),
    ),
    (
        "13.1",
        "in_bits",
        lambda logits, tokens: (
            -torch.log2(torch.softmax(logits, -1))[:, :-1]
            .gather(-1, tokens[:, 1:, None])
            .mean()
        ),
    ),
    (
        "13.2",
        "not_shifted_after_begin",
        question_by_question(lambda i, row, n: i if i > n and row[i] != 0 else None),
    ),
    (
        "13.2",
        "end_not_asked",
        question_by_question(
            lambda i, row, n: (
                i + 1 if i >= n and (row[i + 1 : i + 2] > 2).any() else None
            )
        ),
    ),
    (
        "13.2",
        "axes_not_joined",
        lambda logits, tokens, n_source: nn.CrossEntropyLoss(ignore_index=0)(
            logits[:, :-1][:, n_source:], tokens[:, 1:][:, n_source:]
        ),
    ),
    (
        "13.2",
        "summed",
        lambda logits, tokens, n_source: (
            joined(logits, tokens, n_source)
            * int((tokens[:, n_source + 1 :] > 0).sum())
        ),
    ),
    (
        "13.2",
        "divided_by_sentences",
        lambda logits, tokens, n_source: (
            nn.CrossEntropyLoss(ignore_index=0, reduction="sum")(
                logits.transpose(1, 2)[:, :, n_source:-1], tokens[:, n_source + 1 :]
            )
            / len(logits)
        ),
    ),
    (
        "13.2",
        "source_counted",
        lambda logits, tokens, n_source: joined(logits, tokens, 0),
    ),
    ("13.2", "begin_asked", question_by_question(asks(first=-1, padding=False))),
    (
        "13.2",
        "first_word_not_asked",
        question_by_question(asks(first=1, padding=False)),
    ),
    ("13.2", "padding_counted", question_by_question(asks())),
    ("13.2", "mean_of_means", question_by_question(asks(padding=False), per_row=True)),
    (
        "13.2",
        "not_shifted",
        question_by_question(
            lambda i, row, n: i if i >= n and row[i] != 0 else None,
        ),
    ),
    (
        "13.2",
        "everything_counted",
        lambda logits, tokens, n_source: shifted(logits, tokens),
    ),
    (
        "13.3",
        "places_lost",
        lambda p, k, share: by_the_package(p, k, share).sort(descending=True).values,
    ),
    ("13.3", "not_divided", lambda *args: sorted_in_python(*args, divide=False)),
    ("13.3", "one_too_few", lambda *args: sorted_in_python(*args, extra=-1)),
    ("13.3", "one_too_many", lambda *args: sorted_in_python(*args, extra=1)),
    ("13.3", "k_ignored", lambda p, k, share: by_the_package(p, len(p), share)),
    ("13.3", "share_ignored", lambda p, k, share: by_the_package(p, k, 1.0)),
    ("13.3", "share_first", whole_distribution),
    ("13.3", "kth_dropped", by_mask(reaching, kth=torch.gt)),
    ("13.3", "share_first", by_mask(reaching, divide=(False, True))),
    ("13.3", "last_not_divided", by_mask(reaching, divide=(True, False))),
    (
        "13.3",
        "one_too_few",
        by_mask(lambda p, s: places_of(p, lambda ranked: ranked.cumsum(0) < s)),
    ),
    (
        "13.3",
        "one_too_few",
        by_mask(lambda p, s: places_of(p, lambda ranked: ranked.cumsum(0) <= s)),
    ),
    ("13.3", "not_sorted", by_mask(lambda p, s: p.cumsum(0) - p < s)),
    (
        "13.3",
        "sorted_mask",
        by_mask(lambda p, s: reaching(p.sort(descending=True).values, s)),
    ),
    (
        "13.3",
        "sorted_again",
        by_mask(
            lambda p, s: reaching(p.sort(descending=True).values, s)[
                p.argsort(descending=True)
            ]
        ),
    ),
    (
        "13.3",
        "scores_returned",
        lambda logits, k, share: keep_top_p(keep_top_k(logits, k), share),
    ),
    ("13.4", "itself_not_seen", row_by_row(sees=lambda n: range(n - 1))),
    ("13.4", "itself_only", row_by_row(sees=lambda n: [n - 1])),
    ("13.4", "first_key_only", row_by_row(sees=lambda n: [0])),
    ("13.4", "put_first", row_by_row(order=lambda old, new: new + old)),
    ("13.4", "overwritten", row_by_row(order=lambda old, new: old[:-1] + new)),
    ("13.4", "no_scale", row_by_row(size=lambda query, x: 1.0)),
    ("13.4", "root_missing", row_by_row(size=lambda query, x: len(query))),
    (
        "13.4",
        "scaled_by_width",
        row_by_row(size=lambda query, x: math.sqrt(len(x))),
    ),
    (
        "13.4",
        "exchanged",
        lambda x, w_q, w_k, *rest: with_the_cache(x, w_k, w_q, *rest),
    ),
    (
        "13.4",
        "not_kept",
        lambda *args: (with_the_cache(*args)[0], *args[4:]),
    ),
    (
        "13.5",
        "always_two_tables",
        off_by(lambda n, d, layers, length, tied: n * d * tied),
    ),
    (
        "13.5",
        "always_one_table",
        off_by(lambda n, d, layers, length, tied: -n * d * (not tied)),
    ),
    ("13.5", "no_positions", off_by(lambda n, d, layers, length, tied: -length * d)),
    ("13.5", "no_last_norm", off_by(lambda n, d, layers, length, tied: -2 * d)),
    ("13.5", "no_biases", off_by(lambda n, d, layers, length, tied: -9 * d * layers)),
    (
        "13.5",
        "one_norm_a_block",
        off_by(lambda n, d, layers, length, tied: -2 * d * layers),
    ),
    (
        "13.5",
        "no_norms",
        off_by(lambda n, d, layers, length, tied: -4 * d * layers - 2 * d),
    ),
    (
        "13.5",
        "three_matrices",
        off_by(lambda n, d, layers, length, tied: -(d + 1) * d * layers),
    ),
    (
        "13.5",
        "narrow_feed_forward",
        off_by(lambda n, d, layers, length, tied: -3 * (2 * d + 1) * d * layers),
    ),
    (
        "13.5",
        "one_way_feed_forward",
        off_by(lambda n, d, layers, length, tied: -(4 * d + 1) * d * layers),
    ),
    (
        "13.5",
        "short_biases",
        off_by(lambda n, d, layers, length, tied: -3 * d * layers),
    ),
    (
        "13.5",
        "no_last_norm",
        off_by(lambda n, d, layers, length, tied: -2 * d, times=0.125),
    ),
    ("13.5", "keys_only", off_by(times=0.5)),
    ("13.5", "numbers_not_bytes", off_by(times=0.25)),
    ("13.5", "queries_too", off_by(times=1.5)),
    ("13.6", "topics_trusted", but(by_topic="clean")),
    ("13.6", "each_part_trusted", but(once_in_each_part="clean")),
    ("13.6", "pieces_overlooked", but(pieces_from_all="clean")),
    ("13.6", "windows_trusted", but(sliding_windows="clean")),
    ("13.6", "best_of_many", but(chosen_on_test="clean")),
    ("13.6", "validation_distrusted", but(chosen_on_validation="leaks")),
    ("13.6", "memory_distrusted", but(short_memory="leaks")),
    ("13.6", "not_all_or_other_words", lambda: {"by_topic": "leaks"}),
]


@pytest.mark.parametrize(("identifier", "answer"), RIGHT)
def test_another_right_way_earns_every_point(identifier, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.points == result.max_points, result.hint


@pytest.mark.parametrize(("identifier", "name", "answer"), WRONG)
def test_a_wrong_answer_written_another_way_gets_its_hint(identifier, name, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.misconception == name, result.hint
        assert result.points < result.max_points
