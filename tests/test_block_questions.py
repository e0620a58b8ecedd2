"""The questions of chapter 11, answered rightly and wrongly by someone else."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from course_utils.attention import MultiHeadAttention
from course_utils.blocks import EncoderBlock, FeedForward, layer_norm
from course_utils.checks import PUBLIC_SEED, verdict
from course_utils.questions import find_question
from course_utils.questions.stream_and_depth import ALL, ITSELF, LATER, NOTICED

SEEDS = (PUBLIC_SEED, 0, 1, "a secret of the instructor")


def by_token(statistics):
    """Normalise every token in a loop, with its own mean and divisor."""

    def answer(x, gamma, beta, eps):
        rows = []
        for token in x.reshape(-1, x.shape[-1]):
            mean, divisor = statistics(token, eps)
            rows.append((token - mean) / divisor * gamma + beta)
        return torch.stack(rows).reshape(x.shape)

    return answer


def right_statistics(token, eps):
    mean = token.sum() / len(token)
    return mean, ((token - mean).pow(2).sum() / len(token) + eps) ** 0.5


def batch_norm(x, gamma, beta, eps):
    spread = x.std(dim=0, correction=0, keepdim=True)
    return (x - x.mean(0)) / (spread**2 + eps).sqrt() * gamma + beta


def zeroed(x, keep, factor):
    return torch.where(keep, x * factor, torch.zeros_like(x))


def normalised(x):
    return nn.LayerNorm(x.shape[-1])(x).detach()


def tanh_layer(x, w):
    return torch.einsum("...i,ij->...j", x, w).tanh()


def stacked(positive, negative):
    """Copies of −x and x, in the other order than the table's."""

    def answer(d_model, slope):
        eye = torch.eye(d_model)
        w_1 = torch.hstack([-3 * eye, eye])
        w_2 = torch.vstack([negative(slope) / 3 * eye, positive(slope) * eye])
        return w_1, w_2

    return answer


WRONG = [
    ("11.1", "over_the_batch", batch_norm),
    (
        "11.1",
        "unbiased_variance",
        by_token(lambda t, eps: (t.mean(), (t.var() + eps).sqrt())),
    ),
    (
        "11.1",
        "eps_outside_the_root",
        by_token(lambda t, eps: (t.mean(), t.std(correction=0) + eps)),
    ),
    (
        "11.1",
        "eps_missing",
        by_token(lambda t, eps: (t.mean(), t.std(correction=0))),
    ),
    (
        "11.1",
        "divided_by_the_variance",
        by_token(lambda t, eps: (t.mean(), t.var(correction=0) + eps)),
    ),
    (
        "11.1",
        "not_centred",
        by_token(lambda t, eps: (0, math.sqrt(t.square().mean() + eps))),
    ),
    (
        "11.1",
        "over_the_tokens",
        lambda x, g, b, eps: (
            layer_norm(x.mT, torch.ones(x.shape[-2]), torch.zeros(x.shape[-2]), eps).mT
            * g
            + b
        ),
    ),
    (
        "11.1",
        "gamma_and_beta_missing",
        lambda x, g, b, eps: nn.functional.layer_norm(x, g.shape, eps=eps),
    ),
    (
        "11.1",
        "over_everything",
        lambda x, g, b, eps: (
            (x - x.mean()) / (x.var(correction=0) + eps) ** 0.5 * g + b
        ),
    ),
    (
        "11.1",
        "std_as_torch_has_it",
        by_token(lambda t, eps: (t.mean(), t.std() + eps)),
    ),
    (
        "11.1",
        "squares_not_averaged",
        by_token(lambda t, eps: (t.mean(), ((t - t.mean()).pow(2).sum() + eps).sqrt())),
    ),
    (
        "11.1",
        "gamma_and_beta_exchanged",
        lambda x, g, b, eps: by_token(right_statistics)(x, b, g, eps),
    ),
    (
        "11.1",
        "gamma_on_beta_too",
        lambda x, g, b, eps: by_token(right_statistics)(x, 1, b, eps) * g,
    ),
    ("11.2", "not_scaled", lambda x, k, p, on: zeroed(x, k, 1) if on else x * 1),
    ("11.2", "scaled_by_p", lambda x, k, p, on: zeroed(x, k, 1 / p) if on else x * 1),
    ("11.2", "made_smaller", lambda x, k, p, on: zeroed(x, k, 1 - p) if on else x * 1),
    (
        "11.2",
        "mask_inverted",
        lambda x, k, p, on: x.masked_fill(k, 0) / (1 - p) if on else x * 1,
    ),
    ("11.2", "always_on", lambda x, k, p, on: zeroed(x, k, 1 / (1 - p))),
    (
        "11.2",
        "scaled_afterwards",
        lambda x, k, p, on: zeroed(x, k, 1) if on else x - p * x,
    ),
    (
        "11.2",
        "scaled_in_both",
        lambda x, k, p, on: zeroed(x, k if on else k | True, 1 / (1 - p)),
    ),
    (
        "11.2",
        "made_up_for_twice",
        lambda x, k, p, on: zeroed(x, k, 1 / (1 - p)) if on else x - p * x,
    ),
    (
        "11.2",
        "cases_exchanged",
        lambda x, k, p, on: x * 1 if on else zeroed(x, k, 1 / (1 - p)),
    ),
    (
        "11.2",
        "counted_coins",
        lambda x, k, p, on: zeroed(x, k, k.numel() / k.sum()) if on else x * 1,
    ),
    (
        "11.3",
        "orders_swapped",
        lambda x, w, order: (
            x + tanh_layer(normalised(x), w)
            if order == "post"
            else normalised(tanh_layer(x, w) + x)
        ),
    ),
    (
        "11.3",
        "no_residual",
        lambda x, w, order: (
            tanh_layer(normalised(x), w)
            if order == "pre"
            else normalised(tanh_layer(x, w))
        ),
    ),
    (
        "11.3",
        "no_residual",  # in one order only
        lambda x, w, order: (
            x + tanh_layer(normalised(x), w)
            if order == "pre"
            else normalised(tanh_layer(x, w))
        ),
    ),
    (
        "11.3",
        "norm_twice",  # in one order only
        lambda x, w, order: normalised(
            x + tanh_layer(normalised(x) if order == "pre" else x, w)
        ),
    ),
    (
        "11.3",
        "past_normed_alone",
        lambda x, w, order: (
            x + tanh_layer(normalised(x), w)
            if order == "pre"
            else normalised(x) + tanh_layer(x, w)
        ),
    ),
    (
        "11.3",
        "norm_on_the_branch",
        lambda x, w, order: (
            x + tanh_layer(normalised(x), w)
            if order == "pre"
            else x + normalised(tanh_layer(x, w))
        ),
    ),
    ("11.3", "always_post", lambda x, w, order: normalised(x + tanh_layer(x, w))),
    ("11.3", "no_norm", lambda x, w, order: x + tanh_layer(x, w)),
    ("11.4", "equal_shapes", lambda: (torch.randn(5, 2), torch.randn(5, 2))),
    ("11.4", "refused", lambda: (torch.randn(5, 2), torch.randn(2, 5))),
    ("11.4", "stream_changes_shape", lambda: (torch.randn(5, 1), torch.randn(1, 3))),
    ("11.4", "nothing_added", lambda: (torch.randn(5, 3), torch.zeros(1, 1))),
    (
        "11.5",
        "one_copy",
        lambda d, s: (2 * torch.eye(d).flip(0), torch.eye(d).flip(0) / 2),
    ),
    ("11.5", "slope_ignored", stacked(lambda s: 1, lambda s: -1)),
    ("11.5", "sign_lost", stacked(lambda s: 1, lambda s: s)),
    ("11.5", "slope_on_the_positive", stacked(lambda s: s, lambda s: -1)),
    (
        "11.5",
        "laid_out_as_in_nn_linear",
        lambda d, s: (torch.ones(3 * d, d), torch.ones(d, 3 * d)),
    ),
    (
        "11.5",
        "slope_before_the_relu",
        lambda d, s: (
            torch.hstack([-2 * s * torch.eye(d), torch.eye(d)]),
            torch.vstack([-torch.eye(d) / 2, torch.eye(d)]),
        ),
    ),
    ("11.5", "do_not_fit", lambda d, s: (torch.ones(d, 2 * d), torch.ones(d, 3 * d))),
    ("11.6", "not_all_or_other_words", lambda: NOTICED | {"layer_norm": "Itself"}),
    (
        "11.6",
        "feed_forward_mixes",
        lambda: NOTICED | {"feed_forward": ALL, "residual_feed_forward": ALL},
    ),
    ("11.6", "mask_forgotten", lambda: NOTICED | {"causal_attention": ITSELF}),
    ("11.6", "block_without_attention", lambda: NOTICED | {"encoder_block": LATER}),
    ("11.7", "sizes_added", lambda: (torch.tensor(9.0), 16, 1)),
    ("11.7", "start_forgotten", lambda: [math.sqrt(8), 16.0, 1.0]),
    ("11.7", "variances_throughout", lambda: (9.0, 256.0, 1.0)),
    ("11.7", "residual_miscounted", lambda: (3.0, 2**4.5, 1.0)),
    ("11.7", "variance", lambda: (3, 2**8, 1)),
    ("11.7", "post_norm_grows", lambda: (3, 16, math.sqrt(2))),
]


@pytest.mark.parametrize(("identifier", "name", "answer"), WRONG)
def test_a_mistake_in_other_code_gets_its_hint(identifier, name, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.misconception == name, result.hint
        assert result.points < result.max_points


RIGHT = [
    ("11.1", by_token(right_statistics)),
    ("11.1", lambda x, g, b, eps: nn.functional.layer_norm(x, g.shape, g, b, eps)),
    ("11.2", lambda x, k, p, on: zeroed(x, k, 1 / (1 - p)) if on else x + 0),
    (
        "11.3",
        lambda x, w, order: {
            "pre": x + tanh_layer(normalised(x), w),
            "post": normalised(x + tanh_layer(x, w)),
        }[order],
    ),
    ("11.4", lambda: (torch.randn(7, 3), torch.randn(7, 1))),
    ("11.4", lambda: (torch.zeros(2, 9), torch.full((1, 1), 0.5))),
    ("11.5", stacked(lambda s: 1, lambda s: -s)),
    ("11.6", lambda: dict(reversed(NOTICED.items()))),
    ("11.7", lambda: (np.float64(3), torch.tensor(16), 1)),
]


@pytest.mark.parametrize(("identifier", "answer"), RIGHT)
def test_another_right_way_earns_every_point(identifier, answer):
    for seed in SEEDS:
        result = verdict(identifier, answer, seed, learners=False)
        assert result.points == result.max_points, result.hint


def test_the_layers_notice_what_the_answer_says():
    """Change one token in the middle, and see whose output moved."""
    torch.manual_seed(0)
    attend, think = MultiHeadAttention(8, 2), FeedForward(8, 16)
    block, ones, zeros = EncoderBlock(8, 2, 16), torch.ones(8), torch.zeros(8)

    def normed(x):
        return layer_norm(x, ones, zeros)

    layers = {
        "layer_norm": normed,
        "batch_norm": lambda x: (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True),
        "feed_forward": think,
        "residual_feed_forward": lambda x: x + think(normed(x)),
        "self_attention": lambda x: attend(x)[0],
        "causal_attention": lambda x: attend(x, causal=True)[0],
        "encoder_block": lambda x: block(x)[0],
    }
    x = torch.randn(1, 5, 8)
    other = x.clone()
    other[0, 2] = torch.randn(8)
    moved = {ITSELF: [2], LATER: [2, 3, 4], ALL: [0, 1, 2, 3, 4]}
    assert layers.keys() == NOTICED.keys()
    for name, layer in layers.items():
        change = (layer(x) - layer(other)).abs().amax(-1)[0] > 1e-6
        assert change.nonzero()[:, 0].tolist() == moved[NOTICED[name]], name


def test_the_sizes_are_those_of_independent_sub_layers():
    g = torch.Generator().manual_seed(0)
    start = torch.randn(100_000, generator=g)
    pre, bare = start, start
    for _ in range(8):
        pre = pre + torch.randn(start.shape, generator=g)
        bare = bare + bare.std() * torch.randn(start.shape, generator=g)
    sizes = [x.square().mean().sqrt().item() for x in (pre, bare)]
    assert find_question("11.7").reference()[:2] == pytest.approx(sizes, rel=0.02)


def test_the_hints_of_the_sizes_never_name_a_right_number():
    for mistake in find_question("11.7").mistakes:
        words = set(mistake.hint.replace(",", " ").replace(":", " ").split())
        assert not {"3", "16", "three", "sixteen"} & words
