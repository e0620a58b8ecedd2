"""Recurrences, online softmax and costs: equal to the plain way, on any device."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from course_utils.display.widgets.cost_calculator import cost_calculator
from course_utils.evaluation import costs
from course_utils.models.attention import attention
from course_utils.models.online_softmax import chunked_attention, online_softmax
from course_utils.models.recurrences import (
    CausalConvolution,
    StateSpace,
    linear_scan,
    scan_by_doubling,
)

LAYERS = {
    "fixed": lambda: StateSpace(12, selective=False),
    "selective": lambda: StateSpace(12),
    "convolution": lambda: CausalConvolution(12),
}
EVERY = pytest.mark.parametrize("name", LAYERS)


def normal(*shape: int, seed: int = 0, dtype=torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype)


def one_by_one(decay, added):
    states = [torch.zeros_like(added[:, 0])]
    for t in range(added.shape[1]):
        states.append(decay[:, t] * states[-1] + added[:, t])
    return torch.stack(states[1:], 1)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 200])
@pytest.mark.parametrize("chunk", [1, 5, 64, 300])
def test_a_scan_is_the_loop_and_so_are_its_gradients(n, chunk):
    decay = torch.sigmoid(normal(2, n, 3, dtype=torch.float64)).requires_grad_()
    added = normal(2, n, 3, seed=1, dtype=torch.float64).requires_grad_()
    expected = one_by_one(decay, added)
    found = linear_scan(decay, added, chunk)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(scan_by_doubling(decay, added)[1], expected)
    weight = normal(2, n, 3, seed=2, dtype=torch.float64)
    wanted = torch.autograd.grad((expected * weight).sum(), (decay, added))
    for a, b in zip(
        torch.autograd.grad((found * weight).sum(), (decay, added)), wanted
    ):
        torch.testing.assert_close(a, b)


def test_a_scan_returns_the_products_of_the_decays():
    decay = torch.rand(2, 10, 3)
    products = scan_by_doubling(decay, torch.zeros(2, 10, 3))[0]
    torch.testing.assert_close(products, decay.cumprod(1))


@pytest.mark.parametrize("selective", [True, False])
def test_steps_give_what_the_whole_gives(selective):
    layer, x = StateSpace(6, selective), normal(2, 70, 6)
    state, outputs = torch.zeros(2, 6), []
    for token in x.unbind(1):
        output, state = layer.step(token, state)
        outputs.append(output)
    torch.testing.assert_close(torch.stack(outputs, 1), layer(x))


@EVERY
def test_no_layer_sees_the_future(name):
    layer, x = LAYERS[name](), normal(2, 90, 12)
    changed = x.clone()
    changed[:, 50:] += 1
    torch.testing.assert_close(layer(x)[:, :50], layer(changed)[:, :50])
    assert not torch.allclose(layer(x)[:, 50:], layer(changed)[:, 50:])


def test_a_convolution_sees_its_reach_and_no_more():
    layer = CausalConvolution(4)
    x = normal(20, 40, 4).requires_grad_()
    layer(x)[:, -1].sum().backward()
    felt = x.grad.abs().sum((0, 2))
    assert layer.reach == 15
    assert (felt[-15:] > 0).all()
    assert (felt[:-15] == 0).all()


@EVERY
def test_a_training_step_stays_on_the_device_of_the_layer(name):
    layer = LAYERS[name]().to("meta")
    optimiser = torch.optim.AdamW(layer.parameters())
    output = layer(torch.zeros(2, 70, 12, device="meta"))
    output.sum().backward()
    optimiser.step()
    assert output.device.type == "meta"
    assert all(p.grad is not None for p in layer.parameters())


@EVERY
def test_bfloat16_gives_finite_gradients_near_the_exact_ones(name):
    torch.manual_seed(0)
    layer, x = LAYERS[name](), normal(2, 70, 12)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = layer(x)
    half.float().square().sum().backward()
    assert all(p.grad.isfinite().all() for p in layer.parameters())
    torch.testing.assert_close(half.float(), layer(x), rtol=0.05, atol=0.05)


@pytest.mark.slow
@EVERY
def test_compiled_layers_give_the_same_numbers(name):
    layer, x = LAYERS[name](), normal(2, 70, 12)
    traced = torch.compile(layer, backend="eager", fullgraph=True)
    torch.testing.assert_close(traced(x), layer(x))


@pytest.mark.parametrize("size", [1.0, 1000.0])
def test_one_pass_finds_the_softmax(size):
    scores = size * normal(2, 3, 20)
    largest, total = online_softmax(scores)
    weights = torch.exp(scores - largest[..., None]) / total[..., None]
    torch.testing.assert_close(weights, scores.softmax(-1))


@pytest.mark.parametrize("chunk", [1, 4, 20, 99])
def test_chunks_give_attention_and_its_gradients(chunk):
    inputs = [normal(2, 3, n, 4, seed=n).requires_grad_() for n in (5, 20, 20)]
    expected, found = attention(*inputs)[0], chunked_attention(*inputs, chunk)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found, F.scaled_dot_product_attention(*inputs))
    wanted = torch.autograd.grad(expected.square().sum(), inputs)
    for a, b in zip(torch.autograd.grad(found.square().sum(), inputs), wanted):
        torch.testing.assert_close(a, b)


def test_the_peak_counts_what_is_held_at_once():
    mega = 2**18  # numbers of 4 bytes: one megabyte

    def two_then_one():
        both = [torch.ones(mega), torch.ones(mega)]
        del both
        torch.ones(mega)

    assert costs.peak_bytes(two_then_one) == 2 * 2**20
    assert costs.peak_bytes(lambda: None) == 0


def test_flops_of_a_product_are_two_for_each_multiplication():
    a, b = torch.ones(3, 5), torch.ones(5, 7)
    assert costs.count_flops(lambda: a @ b) == 2 * 3 * 5 * 7


@pytest.mark.parametrize("power", [0.5, 1, 2, 3])
def test_the_exponent_of_a_power_is_found(power):
    sizes = [10, 20, 40]
    assert costs.fitted_exponent(sizes, [3 * n**power for n in sizes]) == pytest.approx(
        power
    )


def test_the_least_time_of_a_call_is_measured():
    calls: list[int] = []
    assert 0 <= costs.cpu_seconds(lambda: calls.append(1), 2, at_least=0) < 1
    assert len(calls) == 3  # the first only warms up


WRONG = [
    (lambda: linear_scan(torch.ones(2, 3, 4), torch.ones(2, 3, 5)), "one shape"),
    (lambda: linear_scan(torch.ones(3, 4), torch.ones(3, 4)), "batch, token, d"),
    (lambda: linear_scan(torch.ones(1, 3, 4), torch.ones(1, 3, 4), 0), "chunk is 0"),
    (lambda: StateSpace(4)(torch.ones(2, 3, 5)), "expected"),
    (lambda: StateSpace(0), "d_model"),
    (lambda: CausalConvolution(4)(torch.ones(2, 3, 5)), "expected"),
    (lambda: CausalConvolution(4, kernel=0), "kernel"),
    (lambda: chunked_attention(*[torch.ones(2, 0, 4)] * 3), "at least one key"),
    (lambda: chunked_attention(*[torch.ones(2, 3, 4)] * 3, chunk=0), "chunk is 0"),
    (lambda: costs.fitted_exponent([1, 2], [1]), "as many"),
    (lambda: costs.fitted_exponent([3, 3], [1, 2]), "two different"),
    (lambda: costs.fitted_exponent([1, 2], [0, 1]), "above 0"),
    (lambda: costs.layer_cost("LSTM", 8, 8), "LSTM"),
    (lambda: costs.layer_cost("GRU", 0, 8), "n_tokens"),
    (lambda: costs.cpu_seconds(lambda: None, 0), "rounds"),
    (lambda: cost_calculator(longest=8), "1024"),
]


@pytest.mark.parametrize(("call", "words"), WRONG)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
