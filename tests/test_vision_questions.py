"""The questions of chapter 14, answered rightly and wrongly by someone else."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from course_utils.checks import PUBLIC_SEED, verdict
from course_utils.questions import find_question

SEEDS = (PUBLIC_SEED, 0, 1, "a secret of the instructor")


def squares(images, size):
    """All patches, cut out one after the other: (row, column) to a square."""
    rows, columns = images.shape[2] // size, images.shape[3] // size
    return {
        (r, q): images[:, :, r * size : (r + 1) * size, q * size : (q + 1) * size]
        for r in range(rows)
        for q in range(columns)
    }


def by_squares(images, size, flat=lambda s: s.reshape(len(s), -1), down=False):
    cut = squares(images, size)
    order = sorted(cut, key=lambda place: place[::-1]) if down else sorted(cut)
    return torch.stack([flat(cut[place]) for place in order], dim=1)


def by_fold(patches, size, n_rows):
    columns = patches.shape[1] // n_rows
    sides = n_rows * size, columns * size
    return F.fold(patches.mT, sides, kernel_size=size, stride=size)


def gates_of(features, w_1, w_2, squeeze=None, last=torch.sigmoid, middle=torch.relu):
    squeezed = features.flatten(2).mean(-1) if squeeze is None else squeeze(features)
    return last(middle(squeezed.matmul(w_1)).matmul(w_2))


def scale(features, gates):
    return torch.einsum("bcyx,bc->bcyx", features, gates), gates


def ask(words, patches, w_q, w_k, w_v, seen, weigh):
    scores = torch.einsum("bwk,bpk->bwp", words @ w_q, patches @ w_k)
    scores = scores * w_q.shape[1] ** -0.5
    weights = weigh(scores, seen.unsqueeze(1).expand_as(scores))
    return torch.einsum("bwp,bpv->bwv", weights, patches @ w_v), weights


def with_weights(weigh):
    return lambda *args: ask(*args, weigh)


def renormalised(scores, seen):
    powers = scores.exp() * seen
    return powers / powers.sum(-1, keepdim=True).clamp_min(1e-30)


def rescaled(factor):
    """Scores `factor(d, d_k)` times as large as they ought to be."""

    def answer(words, patches, w_q, w_k, w_v, seen):
        w_q = w_q * factor(*w_q.shape)
        return ask(words, patches, w_q, w_k, w_v, seen, renormalised)

    return answer


def unfolded_only(images, size):
    """Cut by `unfold`, and flattened with the channel axis still in front."""
    windows = images.unfold(2, size, size).unfold(3, size, size)
    return windows.reshape(len(images), -1, images.shape[1] * size * size)


def strips(patches, size, n_rows):
    """Split the axes, bring the channel in front, and flatten too early."""
    batch, count, width = patches.shape
    columns, channels = count // n_rows, width // (size * size)
    split = patches.view(batch, n_rows, columns, channels, size, size)
    laid = split.permute(0, 3, 1, 2, 4, 5)
    return laid.reshape(batch, channels, n_rows * size, columns * size)


def channels_from_the_tokens(patches, size, n_rows):
    batch, count, width = patches.shape
    columns, channels = count // n_rows, width // (size * size)
    split = patches.reshape(batch, channels, n_rows, columns, size, size)
    return split.transpose(3, 4).reshape(batch, channels, n_rows * size, -1)


WRONG = [
    (
        "14.1",
        "reshaped",
        lambda im, s: im.flatten().view(len(im), -1, im[0, :, :s, :s].numel()),
    ),
    ("14.1", "columns_first", lambda im, s: by_squares(im, s, down=True)),
    (
        "14.1",
        "pixels_transposed",
        lambda im, s: by_squares(im, s, lambda p: p.mT.reshape(len(p), -1)),
    ),
    (
        "14.1",
        "channels_last",
        lambda im, s: by_squares(im, s, lambda p: p.movedim(1, -1).flatten(1)),
    ),
    ("14.1", "patches_last", lambda im, s: F.unfold(im, s, stride=s)),
    ("14.1", "patches_not_flattened", lambda im, s: by_squares(im, s, lambda p: p)),
    (
        "14.1",
        "size_as_count",
        lambda im, s: torch.stack(
            [
                strip.flatten(1)
                for band in im.chunk(s, dim=2)
                for strip in band.chunk(s, dim=3)
            ],
            dim=1,
        ),
    ),
    ("14.1", "channel_stays_in_front", unfolded_only),
    (
        "14.1",
        "one_channel_a_token",
        lambda im, s: torch.cat([by_squares(c, s) for c in im.split(1, dim=1)], dim=1),
    ),
    ("14.2", "not_interleaved", strips),
    ("14.2", "channels_split_first", channels_from_the_tokens),
    (
        "14.2",
        "reshaped",
        lambda p, s, n: by_fold(p, s, n) * 0 + p.view(by_fold(p, s, n).shape),
    ),
    ("14.2", "rows_for_columns", lambda p, s, n: by_fold(p, s, p.shape[1] // n)),
    ("14.2", "sides_exchanged", lambda p, s, n: by_fold(p, s, n).transpose(2, 3)),
    (
        "14.3",
        "softmax",
        lambda f, a, b: scale(f, gates_of(f, a, b, last=lambda z: F.softmax(z, -1))),
    ),
    (
        "14.3",
        "no_sigmoid",
        lambda f, a, b: scale(f, gates_of(f, a, b, last=lambda z: z)),
    ),
    (
        "14.3",
        "no_relu",
        lambda f, a, b: scale(f, gates_of(f, a, b, middle=lambda z: z)),
    ),
    (
        "14.3",
        "sigmoid_between",
        lambda f, a, b: scale(f, gates_of(f, a, b, middle=torch.sigmoid)),
    ),
    (
        "14.3",
        "relu_first",
        lambda f, a, b: scale(
            f,
            gates_of(
                f, a, b, lambda g: g.mean((2, 3)).clamp_min(0), middle=lambda z: z
            ),
        ),
    ),
    (
        "14.3",
        "relu_before_the_sigmoid",
        lambda f, a, b: scale(
            f, gates_of(f, a, b, last=lambda z: z.clamp_min(0).sigmoid())
        ),
    ),
    (
        "14.3",
        "map_added_again",
        lambda f, a, b: (
            f * (1 + gates_of(f, a, b)[..., None, None]),
            gates_of(f, a, b),
        ),
    ),
    (
        "14.3",
        "maximum",
        lambda f, a, b: scale(
            f, gates_of(f, a, b, lambda g: F.adaptive_max_pool2d(g, 1)[..., 0, 0])
        ),
    ),
    (
        "14.3",
        "sum",
        lambda f, a, b: scale(f, gates_of(f, a, b, lambda g: g.flatten(2).sum(-1))),
    ),
    ("14.3", "gates_not_used", lambda f, a, b: (f * 1, gates_of(f, a, b))),
    (
        "14.3",
        "mean_over_the_batch",
        lambda f, a, b: scale(
            f,
            gates_of(
                f, a, b, lambda g: g.flatten(2).mean(-1).mean(0).expand(len(g), -1)
            ),
        ),
    ),
    ("14.4", "no_mask", with_weights(lambda s, m: s.softmax(2))),
    ("14.4", "inverted", with_weights(lambda s, m: renormalised(s, ~m))),
    (
        "14.4",
        "after_the_softmax",
        with_weights(lambda s, m: s.softmax(2).masked_fill(~m, 0)),
    ),
    (
        "14.4",
        "blocked_row_nan",
        with_weights(
            lambda s, m: s.masked_fill(m.logical_not(), float("-inf")).softmax(2)
        ),
    ),
    (
        "14.4",
        "blocked_row_uniform",
        with_weights(lambda s, m: torch.where(m, s, torch.tensor(-1e10)).softmax(2)),
    ),
    ("14.4", "no_scale", rescaled(lambda d, d_k: d_k**0.5)),
    ("14.4", "root_of_d", rescaled(lambda d, d_k: (d_k / d) ** 0.5)),
    ("14.4", "no_root", rescaled(lambda d, d_k: d_k**-0.5)),
    ("14.4", "mask_added", with_weights(lambda s, m: (s + m.float()).softmax(2))),
    (
        "14.4",
        "blocked_row_nan",
        with_weights(lambda s, m: s.exp() * m / (s.exp() * m).sum(2, keepdim=True)),
    ),
    ("14.5", "class_token_forgotten", lambda: (24, 192, 24 * 24, 16)),
    ("14.5", "channels_forgotten", lambda: [24, 8 * 8, 625, 16]),
    ("14.5", "factor_of_tokens", lambda: (24, 192, 625, torch.tensor(4))),
    ("14.5", "square_image", lambda: (36, 192, 37**2, 16)),
    ("14.5", "scores_not_pairs", lambda: (24.0, 192, 25, 16)),
    ("14.5", "class_token_is_no_patch", lambda: (25, 192, 625, 16)),
    ("14.5", "patches_of_the_last_question", lambda: (24, 192, 97 * 97, 16)),
    ("14.5", "patches_of_the_last_question", lambda: (8 * 12, 192, 97 * 97, 16)),
    ("14.5", "width_of_the_image", lambda: (24, 3 * 32 * 48, 625, 16)),
    ("14.5", "scores_times_width", lambda: (24, 192, 25 * 25 * 192, 16)),
    ("14.5", "factor_is_a_count", lambda: (24, 192, 625, 96 * 96)),
    ("14.5", "factor_with_class_token", lambda: (24, 192, 625, 97**2 / 25**2)),
    ("14.5", "factor_turned_round", lambda: (24, 192, 625, 24**2 / 96**2)),
    ("14.6", "donor_of_the_first_test", lambda: (7, 7, 5, 7)),
    ("14.6", "donor_of_the_first_test", lambda: (7, 7, 7, 8)),
    ("14.6", "answer_of_the_old_strip", lambda: (7, 5, 5, 8)),
    ("14.6", "selection_brings_the_digit", lambda: (7, 7, 8, 8)),
    ("14.6", "answer_stays_at_home", lambda: (7, 7, 5, 5)),
    ("14.6", "strip_is_not_seen", lambda: (5, 5, 5, 8)),
    ("14.6", "another_channel", lambda: (7, 7, 2, 8)),
]


@pytest.mark.parametrize(("identifier", "name", "answer"), WRONG)
def test_a_mistake_in_other_code_gets_its_hint(identifier, name, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.misconception == name, result.hint
        assert result.points < result.max_points


RIGHT = [
    ("14.1", by_squares),
    ("14.1", lambda im, s: F.unfold(im, s, stride=s).mT),
    ("14.2", by_fold),
    ("14.3", lambda f, a, b: scale(f, gates_of(f, a, b))),
    ("14.4", with_weights(renormalised)),
    (
        "14.4",
        with_weights(
            lambda s, m: s.masked_fill(~m, -torch.inf).softmax(-1).nan_to_num()
        ),
    ),
    ("14.5", lambda: (4 * 6, 3 * 64, torch.tensor(25 * 25), 2.0**4)),
    ("14.6", lambda: [torch.tensor(7), 7.0, 5, 8]),
]


@pytest.mark.parametrize(("identifier", "answer"), RIGHT)
def test_another_right_way_earns_every_point(identifier, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.points == result.max_points, result.hint


@pytest.mark.parametrize(
    ("identifier", "numbers"),
    [("14.5", {"24", "192", "625", "16"}), ("14.6", {"7", "8"})],
)
def test_the_hints_of_the_numbers_never_name_a_right_one(identifier, numbers):
    for mistake in find_question(identifier).mistakes:
        assert not numbers & set(mistake.hint.replace(",", " ").split())
