"""Five wirings of one stack, what is measured in it, and what blocks refuse."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from course_utils.display.widgets.depth_explorer import depth_explorer, powers, profiles
from course_utils.models.blocks import EncoderBlock, FeedForward, Residual, layer_norm
from course_utils.models.residual_variants import (
    KINDS,
    Sorter,
    Wiring,
    profile,
    set_gain,
)
from course_utils.tasks import synthetic


def batch(size: int = 4):
    return synthetic.sort_tokens(size, torch.Generator().manual_seed(0), 6, 8)


# ------------------------------------------------------------------------- wirings


def test_the_five_wirings_are_the_five_formulas():
    torch.manual_seed(0)
    x, norm, f = torch.randn(2, 3, 8), nn.LayerNorm(8), torch.tanh
    wanted = {
        "plain": f(x),
        "norm only": norm(f(x)),
        "residual": x + f(x),
        "post-norm": norm(x + f(x)),
        "pre-norm": x + f(norm(x)),
    }
    assert wanted.keys() == set(KINDS)
    for kind, expected in wanted.items():
        wiring = Wiring(8, kind)
        torch.testing.assert_close(wiring.after(x, f(wiring.before(x))), expected)


@pytest.mark.parametrize("order", ["pre", "post"])
def test_a_residual_is_the_wiring_of_its_name(order):
    torch.manual_seed(0)
    x, residual, wiring = (
        torch.randn(2, 3, 8),
        Residual(8, order),
        Wiring(8, f"{order}-norm"),
    )
    ours = residual.after(x, residual.before(x).sin())
    torch.testing.assert_close(ours, wiring.after(x, wiring.before(x).sin()))


def test_the_gain_is_the_spread_times_the_root_of_the_inputs():
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(64, 300), nn.ReLU(), nn.Linear(300, 50))
    set_gain(layers, 0.7)
    for layer in (layers[0], layers[2]):
        spread = layer.weight.std().item() * math.sqrt(layer.in_features)
        assert spread == pytest.approx(0.7, rel=0.05)
        assert layer.bias.abs().max() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_profile_is_what_autograd_and_the_streams_say(kind):
    torch.manual_seed(0)
    model, (tokens, answers) = Sorter(kind, 3), batch()
    found = profile(model, tokens, answers)
    logits, streams = model(tokens)
    assert all(parameter.grad is None for parameter in model.parameters())
    nn.functional.cross_entropy(logits.flatten(0, 1), answers.flatten()).backward()
    for layer, block in enumerate(model.blocks):
        squares = [p.grad.pow(2).sum() for p in block.parameters() if p.dim() == 2]
        torch.testing.assert_close(found.gradient[layer], sum(squares).sqrt())
    assert len(streams) == len(found.size) == len(found.difference) == 4
    last = streams[-1].detach()
    torch.testing.assert_close(found.size[-1], last.pow(2).mean().sqrt())
    apart = last - last.mean(1, keepdim=True)
    torch.testing.assert_close(found.difference[-1], apart.norm() / last.norm())


def test_tokens_that_are_all_alike_have_no_difference():
    model, (tokens, answers) = Sorter("residual", 2), batch()
    with torch.no_grad():
        model.place.table.zero_()
        model.symbol.weight.fill_(1.0)
    assert profile(model, tokens, answers).difference.max() < 1e-6


# -------------------------------------------------------------------- the interactive


def test_the_explorer_measures_every_stack_and_leaves_the_random_numbers_alone():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    made = profiles((2, 3), (0.5, 1.0))
    assert torch.equal(before, torch.random.get_rng_state())
    assert len(made) == len(KINDS) * 2 * 2
    gradient, size, difference = made["residual/3/1"]
    assert (len(gradient), len(size), len(difference)) == (3, 4, 4)
    assert depth_explorer(depths=(2, 3), gains=(0.5, 1.0)).html.count("<select") == 1


def test_what_overflowed_is_shown_as_a_large_number():
    values = torch.tensor([1.0, 100.0, 0.0, math.inf, math.nan])
    assert powers(values) == [0, 2, -30, 30, 30]


# ------------------------------------------------------------------------ clear errors


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Wiring(8, "sandwich"),
            "wiring is 'sandwich', expected one of 'plain'",
        ),
        (lambda: Sorter("both", 2), "wiring is 'both'"),
        (lambda: Sorter("plain", 0), "n_layers is 0, expected a whole number"),
        (lambda: Sorter("plain", 2, gain=0.0), "gain is 0.0, expected a number above"),
        (lambda: set_gain(nn.Linear(2, 2), math.nan), "gain is nan"),
        (lambda: Sorter("plain", 2)(torch.zeros(2, 7).long()), "7 tokens"),
        (lambda: depth_explorer(depths=()), "at least one of each"),
        (lambda: depth_explorer(gains=(-1.0,)), "gains above 0"),
        (lambda: FeedForward(4, 0), "d_hidden is 0, expected a whole number"),
        (lambda: FeedForward(4, 8, "swish"), "activation is 'swish', expected one of"),
        (
            lambda: FeedForward(4, 8)(torch.zeros(2, 3, 5)),
            r"x has shape \(2, 3, 5\), expected \(…, 4\)",
        ),
        (
            lambda: layer_norm(torch.zeros(2, 3), torch.ones(1), torch.zeros(3)),
            r"gamma has shape \(1,\), expected \(…, 3\)",
        ),
        (
            lambda: layer_norm(torch.zeros(2, 3), torch.ones(3), torch.tensor(0.0)),
            r"beta has shape \(\), expected",
        ),
        (lambda: Residual(4, "sandwich"), "norm is 'sandwich', expected 'pre'"),
        (
            lambda: Residual(4).after(torch.zeros(2, 3, 4), torch.zeros(2, 1, 4)),
            r"the layer gave \(2, 1, 4\) for a stream of \(2, 3, 4\)",
        ),
        (
            lambda: Wiring(4, "plain").after(torch.zeros(3, 4), torch.zeros(3, 1)),
            r"the layer gave \(3, 1\)",
        ),
        (
            lambda: EncoderBlock(4, 2, 8)(torch.zeros(3, 4)),
            r"x has shape \(3, 4\), expected \(batch, token, 4\)",
        ),
        (
            lambda: EncoderBlock(4, 2, 8)(torch.zeros(2, 3, 5)),
            r"x has shape \(2, 3, 5\), expected \(batch, token, 4\)",
        ),
        (lambda: EncoderBlock(4, 3, 8), "does not divide into 3 heads"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
