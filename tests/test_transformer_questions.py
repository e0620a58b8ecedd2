"""The questions of chapter 12, answered rightly and wrongly by someone else."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from course_utils.blocks import DecoderBlock, EncoderBlock
from course_utils.checks import PUBLIC_SEED, verdict
from course_utils.decoding import extend_beams
from course_utils.training import lr_at

SEEDS = (PUBLIC_SEED, 0, 1, "a secret of the instructor")


# ------------------------------------------------------------ answers, written anew


def read(x):
    return nn.LayerNorm(x.shape[-1], elementwise_affine=False)(x)


def look(asking, asked, w, hidden=None):
    """Softmax over the asked tokens, one weight at a time by exponentials."""
    scores = torch.einsum("...td,de,...se->...ts", asking, w, asked)
    powers = torch.exp(scores / math.sqrt(asked.shape[-1]))
    if hidden is not None:
        powers = powers * ~hidden
    return powers / powers.sum(-1, keepdim=True) @ asked


def later(n, m):
    return torch.arange(m) > torch.arange(n)[:, None]


def decoder(
    x,
    memory,
    w,
    blind=True,
    triangle=False,
    layers="bat",
    skip=True,
    normed=read,
    memory_norm=lambda m: m,
):
    n, m = x.shape[-2], memory.shape[-2]
    found = {
        "b": lambda y: look(y, y, w[0], later(n, n) if blind else None),
        "a": lambda y: look(
            y, memory_norm(memory), w[1], later(n, m) if triangle else None
        ),
        "t": lambda y: torch.clamp(y @ w[2], min=0),
    }
    for layer in layers:
        new = found[layer](normed(x))
        x = x + new if skip else new
    return x


def with_options(**options):
    return lambda x, memory, w: decoder(x, memory, w, **options)


def normed_afterwards(x, memory, w):
    n = x.shape[-2]
    x = read(x + look(x, x, w[0], later(n, n)))
    x = read(x + look(x, memory, w[1]))
    return read(x + torch.clamp(x @ w[2], min=0))


def half_normed(x, memory, w):
    n = x.shape[-2]
    x = x + look(read(x), x, w[0], later(n, n))
    x = x + look(read(x), memory, w[1])
    return x + torch.clamp(read(x) @ w[2], min=0)


def stream_lost(x, memory, w):
    n, x = x.shape[-2], read(x)
    x = read(x + look(x, x, w[0], later(n, n)))
    x = read(x + look(x, memory, w[1]))
    return x + torch.clamp(x @ w[2], min=0)


def in_parallel(x, memory, w):
    n, y = x.shape[-2], read(x)
    found = [look(y, y, w[0], later(n, n)), look(y, memory, w[1])]
    return x + sum(found) + torch.clamp(y @ w[2], min=0)


def two_masks(own=lambda i, j: j <= i, real=lambda j, i, length: j < length):
    """Both masks entry by entry."""

    def answer(lengths, n_source, n_target):
        square = [[own(i, j) for j in range(n_target)] for i in range(n_target)]
        cross = [
            [[real(j, i, int(n)) for j in range(n_source)] for i in range(n_target)]
            for n in lengths
        ]
        return torch.tensor(square), torch.tensor(cross)

    return answer


def parameters(block):
    return sum(p.numel() for p in block.parameters())


def built(d_model, d_hidden):
    """Count what PyTorch has really made."""
    kinds = (EncoderBlock, DecoderBlock)
    return tuple(parameters(kind(d_model, 1, d_hidden)) for kind in kinds)


def off_by(encoder, decoder):
    def answer(d_model, d_hidden):
        first, second = built(d_model, d_hidden)
        return first + encoder(d_model, d_hidden), second + decoder(d_model, d_hidden)

    return answer


def wanted(n_words, right, epsilon, others_only=False):
    """The distribution that smoothed labels ask for."""
    share = epsilon / (n_words - 1) if others_only else epsilon / n_words
    target = torch.full((len(right), n_words), share)
    target[torch.arange(len(right)), right] += 1 - epsilon - share * others_only
    return target


def smoothed(logits, right, epsilon, **options):
    target = wanted(logits.shape[1], right, epsilon, **options)
    log_p = logits - logits.logsumexp(dim=1, keepdim=True)
    return -(target * log_p).sum(dim=1).mean()


def climb_and_fall(rise, fall):
    def answer(step, steps, lr, warmup):
        if step + 1 <= warmup:
            return lr * rise(step, warmup)
        return lr * fall(step, steps, warmup)

    return answer


def up(step, warmup):
    return (1 + step) / warmup


def down(step, steps, warmup):
    return math.cos(math.pi / 2 * (step - warmup) / (steps - warmup)) ** 2


def all_ways(log_p, gain):
    """Every continuation, sorted in Python: (log p, beam, word), best first."""
    ways = [
        (float(log_p[i]) + float(gain[i, v]), i, v)
        for i in range(len(log_p))
        for v in range(gain.shape[1])
    ]
    return sorted(ways, reverse=True)


def as_tensors(ways):
    totals, parents, words = zip(*ways)
    return torch.tensor(parents), torch.tensor(words), torch.tensor(totals)


def best_ways(log_p, gain):
    return as_tensors(all_ways(log_p, gain)[: len(log_p)])


def with_ways(change):
    """The right continuations, returned in another form."""

    def answer(log_p, gain):
        return change(*best_ways(log_p, gain), gain.shape[1])

    return answer


def by_the_package(log_p, gain):
    ended = torch.zeros(1, len(log_p), dtype=torch.bool)
    none = torch.zeros(1, len(log_p))
    parent, word, total, _ = extend_beams(log_p[None], none, ended, gain, pad=0)
    return parent[0], word[0], total[0]


def one_for_each(log_p, gain):
    ways = all_ways(log_p, gain)
    return as_tensors(
        [next(w for w in ways if w[1] == beam) for beam in range(len(log_p))]
    )


def of_the_leader(log_p, gain):
    leader = max(range(len(log_p)), key=lambda i: float(log_p[i]))
    ways = [way for way in all_ways(log_p, gain) if way[1] == leader]
    return as_tensors(ways[: len(log_p)])


RIGHT = [
    ("12.1", decoder),
    ("12.2", two_masks()),
    ("12.3", built),
    ("12.4", smoothed),
    (
        "12.4",
        lambda logits, right, epsilon: nn.CrossEntropyLoss(label_smoothing=epsilon)(
            logits, right
        ),
    ),
    ("12.5", climb_and_fall(up, down)),
    ("12.5", lambda step, steps, lr, warmup: lr_at(step, steps, lr, warmup)),
    ("12.6", best_ways),
    ("12.6", by_the_package),
]

WRONG = [
    ("12.1", "not_causal", with_options(blind=False)),
    ("12.1", "causal_across", with_options(triangle=True)),
    ("12.1", "masks_exchanged", with_options(blind=False, triangle=True)),
    ("12.1", "no_cross_attention", with_options(layers="bt")),
    ("12.1", "no_self_attention", with_options(layers="at")),
    ("12.1", "nothing_thought", with_options(layers="ba")),
    ("12.1", "across_first", with_options(layers="abt")),
    ("12.1", "no_residual", with_options(skip=False)),
    ("12.1", "no_norm", with_options(normed=lambda x: x)),
    ("12.1", "memory_normed", with_options(memory_norm=read)),
    (
        "12.1",
        "one_matrix",
        lambda x, memory, w: decoder(x, memory, w[0].repeat(3, 1, 1)),
    ),
    ("12.1", "post_norm", normed_afterwards),
    ("12.1", "keys_as_they_are", half_normed),
    ("12.1", "added_to_the_normed", stream_lost),
    ("12.1", "side_by_side", in_parallel),
    ("12.1", "norm_at_the_end", lambda x, memory, w: read(decoder(x, memory, w))),
    ("12.2", "own_inverted", two_masks(own=lambda i, j: j > i)),
    ("12.2", "own_not_itself", two_masks(own=lambda i, j: j < i)),
    ("12.2", "own_transposed", two_masks(own=lambda i, j: j >= i)),
    ("12.2", "own_open", two_masks(own=lambda i, j: True)),
    ("12.2", "own_one_ahead", two_masks(own=lambda i, j: j <= i + 1)),
    ("12.2", "cross_inverted", two_masks(real=lambda j, i, n: j >= n)),
    ("12.2", "cross_one_too_many", two_masks(real=lambda j, i, n: j <= n)),
    ("12.2", "cross_open", two_masks(real=lambda j, i, n: True)),
    ("12.2", "cross_causal", two_masks(real=lambda j, i, n: j < n and j <= i)),
    (
        "12.3",
        "no_biases",
        off_by(lambda d, h: -(5 * d + h), lambda d, h: -(9 * d + h)),
    ),
    ("12.3", "one_norm_a_block", off_by(lambda d, h: -2 * d, lambda d, h: -4 * d)),
    (
        "12.3",
        "matrices_alone",
        off_by(lambda d, h: -(9 * d + h), lambda d, h: -(15 * d + h)),
    ),
    ("12.3", "hidden_bias_missing", off_by(lambda d, h: -h, lambda d, h: -h)),
    ("12.3", "hidden_bias_too_narrow", off_by(lambda d, h: d - h, lambda d, h: d - h)),
    (
        "12.3",
        "cross_has_no_matrices",
        off_by(lambda d, h: 0, lambda d, h: -4 * d * (d + 1)),
    ),
    ("12.3", "no_norms", off_by(lambda d, h: -4 * d, lambda d, h: -6 * d)),
    ("12.3", "norm_without_shift", off_by(lambda d, h: -2 * d, lambda d, h: -3 * d)),
    (
        "12.3",
        "no_output_matrix",
        off_by(lambda d, h: -d * (d + 1), lambda d, h: -2 * d * (d + 1)),
    ),
    ("12.3", "blocks_alike", lambda d, h: 2 * built(d, h)[:1]),
    ("12.3", "cross_without_norm", off_by(lambda d, h: 0, lambda d, h: -2 * d)),
    (
        "12.3",
        "two_feed_forwards",
        off_by(lambda d, h: 0, lambda d, h: 2 * d * h + d + h),
    ),
    ("12.4", "not_smoothed", lambda z, right, e: smoothed(z, right, 0.0)),
    (
        "12.4",
        "others_only",
        lambda z, right, e: smoothed(z, right, e, others_only=True),
    ),
    (
        "12.4",
        "own_share_missing",
        lambda z, right, e: (
            smoothed(z, right, e) - e / z.shape[1] * smoothed(z, right, 0)
        ),
    ),
    ("12.4", "weights_exchanged", lambda z, right, e: smoothed(z, right, 1 - e)),
    (
        "12.4",
        "softmax_over_tokens",
        lambda z, right, e: (
            -(wanted(z.shape[1], right, e) * (z - z.logsumexp(dim=0))).sum(1).mean()
        ),
    ),
    (
        "12.4",
        "no_softmax",
        lambda z, right, e: -(wanted(z.shape[1], right, e) * z).sum(1).mean(),
    ),
    ("12.4", "sign_missing", lambda z, right, e: 0 - smoothed(z, right, e)),
    (
        "12.4",
        "summed_over_tokens",
        lambda z, right, e: nn.functional.cross_entropy(
            z, right, label_smoothing=e, reduction="sum"
        ),
    ),
    ("12.5", "starts_at_zero", climb_and_fall(lambda s, w: s / w, down)),
    ("12.5", "no_warmup", climb_and_fall(lambda s, w: 1, down)),
    (
        "12.5",
        "cosine_from_the_start",
        climb_and_fall(up, lambda s, n, w: math.cos(math.pi / 2 * s / n) ** 2),
    ),
    (
        "12.5",
        "rest_not_shortened",
        climb_and_fall(up, lambda s, n, w: math.cos(math.pi / 2 * (s - w) / n) ** 2),
    ),
    ("12.5", "one_step_late", climb_and_fall(up, lambda s, n, w: down(s + 1, n, w))),
    (
        "12.5",
        "last_step_wasted",
        climb_and_fall(up, lambda s, n, w: down(s, n - 1, w)),
    ),
    (
        "12.5",
        "quarter_wave",
        climb_and_fall(up, lambda s, n, w: math.sqrt(down(s, n, w))),
    ),
    ("12.5", "whole_cosine", climb_and_fall(up, lambda s, n, w: 2 * down(s, n, w) - 1)),
    ("12.5", "straight_line", climb_and_fall(up, lambda s, n, w: (n - s) / (n - w))),
    ("12.5", "not_halved", climb_and_fall(up, lambda s, n, w: 2 * down(s, n, w))),
    ("12.5", "constant_after", climb_and_fall(up, lambda s, n, w: 1)),
    (
        "12.6",
        "worst_first",
        lambda log_p, gain: as_tensors(all_ways(log_p, gain)[: len(log_p)][::-1]),
    ),
    ("12.6", "exchanged", with_ways(lambda i, v, p, n: (v, i, p))),
    ("12.6", "flat_places", with_ways(lambda i, v, p, n: (i, i * n + v, p))),
    ("12.6", "as_probabilities", with_ways(lambda i, v, p, n: (i, v, p.exp()))),
    ("12.6", "each_its_own", one_for_each),
    ("12.6", "best_beam_only", of_the_leader),
    ("12.6", "past_forgotten", lambda log_p, gain: best_ways(0 * log_p, gain)),
    (
        "12.6",
        "worst_kept",
        lambda log_p, gain: as_tensors(all_ways(log_p, gain)[::-1][: len(log_p)]),
    ),
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
