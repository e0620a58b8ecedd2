"""The course's pieces do what an assignment on language models asks of a learner's.

The cases check what the tests of Stanford's CS336 check, written anew: each `run_…` is
an adapter from that assignment's interface to the package, compared with the formula in
float64. Sizes all differ, so that a swapped axis can't hide.
"""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from course_utils.data.bpe import BytePairEncoder
from course_utils.data.sequences import random_windows
from course_utils.models.attention import attention, causal_mask, masked_softmax
from course_utils.models.blocks import ACTIVATIONS
from course_utils.models.choices import LLAMA, Choices
from course_utils.models.modern import (
    GatedFeedForward,
    GroupedQueryAttention,
    ModernBlock,
    rms_norm,
)
from course_utils.models.modern_gpt import ModernGPT
from course_utils.models.positions import rotate, rotations
from course_utils.training import checkpoints
from course_utils.training.distributed import next_token_loss
from course_utils.training.floor import lr_with_floor
from course_utils.training.loop import adamw, compute_gradients
from course_utils.training.precision import mixed_precision

BATCH, TOKENS, D, HEADS, HIDDEN, VOCABULARY, LAYERS = 2, 7, 24, 3, 40, 29, 2
THETA = 500.0
CHOICES = Choices(**{**vars(LLAMA), "layout": "neighbours", "base": THETA})
near = partial(torch.testing.assert_close, rtol=1e-5, atol=1e-5, check_dtype=False)


def drawn(*shape: int, seed: int = 0, std: float = 1.0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * std


# ------------------------------------------------------- the formulas, in float64


def softmax_of(x: Tensor) -> Tensor:
    e = (x.double() - x.double().amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def norm_of(x: Tensor, gamma: Tensor) -> Tensor:
    x = x.double()
    return x / ((x * x).mean(-1, keepdim=True) + 1e-5).sqrt() * gamma


def silu_of(x: Tensor) -> Tensor:
    return x / (1 + (-x).exp())


def turned(x: Tensor, places: Tensor) -> Tensor:
    """Turn neighbouring features, pair i by position / theta^(2 i / d)."""
    d = x.shape[-1]
    angle = places.double()[:, None] / THETA ** (torch.arange(0, d, 2).double() / d)
    a, b = x[..., ::2], x[..., 1::2]
    pairs = [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()]
    return torch.stack(pairs, -1).flatten(-2)


def attention_of(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    scores = torch.einsum("...qd,...kd->...qk", q.double(), k.double())
    scores = scores / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    return torch.einsum("...qk,...kd->...qd", softmax_of(scores), v.double())


def heads_of(x: Tensor, w: dict[str, Tensor], places: Tensor | None) -> Tensor:
    """Causal attention of several heads, from four matrices, rows by head."""
    parts = {}
    for name in "qkv":
        projected = x.double() @ w[name].double().T
        parts[name] = projected.unflatten(-1, (HEADS, D // HEADS)).transpose(1, 2)
    if places is not None:
        parts |= {name: turned(parts[name], places) for name in "qk"}
    n = x.shape[1]
    past = torch.ones(n, n, dtype=torch.bool).tril()
    context = attention_of(parts["q"], parts["k"], parts["v"], past)
    return context.transpose(1, 2).flatten(-2) @ w["o"].double().T


def swiglu_of(x: Tensor, w: dict[str, Tensor]) -> Tensor:
    x = x.double()
    gate = silu_of(x @ w["gate"].double().T)
    return (gate * (x @ w["wide"].double().T)) @ w["narrow"].double().T


def block_of(x: Tensor, w: dict[str, Tensor]) -> Tensor:
    x = x.double()
    x = x + heads_of(norm_of(x, w["norm_1"]), w, torch.arange(x.shape[1]))
    return x + swiglu_of(norm_of(x, w["norm_2"]), w)


def block_weights(seed: int = 0) -> dict[str, Tensor]:
    square = {name: drawn(D, D, seed=seed + i) / 5 for i, name in enumerate("qkvo")}
    wide = {name: drawn(HIDDEN, D, seed=seed + 5) / 5 for name in ("gate", "wide")}
    wide["wide"] = drawn(HIDDEN, D, seed=seed + 6) / 5
    norms = {f"norm_{i}": 1 + drawn(D, seed=seed + 7 + i) / 3 for i in (1, 2)}
    return square | wide | norms | {"narrow": drawn(D, HIDDEN, seed=seed + 9) / 5}


# ---------------------------------------------------------------------- the adapters


def renamed(w: dict[str, Tensor]) -> dict[str, Tensor]:
    """Name the matrices as `ModernBlock` does."""
    return {
        "attention.qkv.weight": torch.cat([w["q"], w["k"], w["v"]]),
        "attention.output.weight": w["o"],
        "feed_forward.gate.weight": w["gate"],
        "feed_forward.wide.weight": w["wide"],
        "feed_forward.narrow.weight": w["narrow"],
        "around_attention.norm.weight": w["norm_1"],
        "around_feed_forward.norm.weight": w["norm_2"],
    }


def part(state: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    whole = name + "."
    return {n.removeprefix(whole): x for n, x in state.items() if n.startswith(whole)}


def run_heads(x: Tensor, w: dict[str, Tensor], places: Tensor | None) -> Tensor:
    layer = GroupedQueryAttention(D, HEADS, bias=False)
    layer.load_state_dict(part(renamed(w), "attention"))
    turn = None
    if places is not None:
        turn = partial(rotate, rotation=rotations(places, D // HEADS, THETA))
    return layer(x, causal=True, rotate=turn)[0]


# -------------------------------------------------------------------------- the cases


def test_softmax_also_of_large_numbers():
    x = drawn(3, 5)
    near(masked_softmax(x, None), softmax_of(x))
    near(masked_softmax(x + 1e4, None), softmax_of(x + 1e4))


@pytest.mark.parametrize("leading", [(2,), (2, 3)])
def test_scaled_dot_product_attention(leading):
    q, k, v = (
        drawn(*leading, *s, seed=i) for i, s in enumerate([(4, 6), (5, 6), (5, 8)])
    )
    mask = drawn(*leading, 4, 5, seed=9) > -0.5
    mask[..., 0] = True  # no row without a key
    near(attention(q, k, v, mask)[0], attention_of(q, k, v, mask))
    near(attention(q, k, v)[0], attention_of(q, k, v, None))


@pytest.mark.parametrize("places", [None, torch.arange(TOKENS), torch.arange(3, 10)])
def test_multi_head_attention_with_and_without_rope(places):
    x, w = drawn(BATCH, TOKENS, D), block_weights()
    near(run_heads(x, w, places), heads_of(x, w, places))


def test_rope_at_places_that_are_not_the_first():
    x, places = drawn(BATCH, 5, 8), torch.tensor([0, 3, 4, 9, 200])
    found = rotate(x, rotations(places, 8, THETA))
    near(found, turned(x.double(), places), atol=1e-4)


def test_rms_norm_silu_and_swiglu():
    x, w = drawn(BATCH, TOKENS, D), block_weights()
    near(rms_norm(x, w["norm_1"]), norm_of(x, w["norm_1"]))
    near(ACTIVATIONS["silu"](x), silu_of(x.double()))
    layer = GatedFeedForward(D, HIDDEN)
    layer.load_state_dict(part(renamed(w), "feed_forward"))
    near(layer(x), swiglu_of(x, w))


def test_a_block():
    x, w = drawn(BATCH, TOKENS, D), block_weights()
    block = ModernBlock(D, HEADS, HIDDEN, CHOICES)
    block.load_state_dict(renamed(w))
    turn = partial(rotate, rotation=rotations(torch.arange(TOKENS), D // HEADS, THETA))
    near(block(x, causal=True, rotate=turn)[0], block_of(x, w))


@pytest.mark.parametrize("n", [TOKENS, 4])
def test_a_language_model_also_of_a_shorter_text(n):
    layers = [block_weights(100 * i) for i in range(LAYERS)]
    table, head = drawn(VOCABULARY, D, seed=1), drawn(VOCABULARY, D, seed=2)
    gamma = 1 + drawn(D, seed=3) / 3
    model = ModernGPT(VOCABULARY, 16, D, HEADS, LAYERS, HIDDEN, CHOICES)
    state = {"embedding.weight": table, "head.weight": head, "norm.weight": gamma}
    for i, w in enumerate(layers):
        state |= {f"blocks.{i}.{name}": x for name, x in renamed(w).items()}
    model.load_state_dict(state)
    tokens = torch.arange(BATCH * TOKENS).view(BATCH, TOKENS)[:, :n] % VOCABULARY
    x = table[tokens]
    for w in layers:
        x = block_of(x, w)
    expected = norm_of(x, gamma) @ head.double().T
    near(model(tokens)[0], expected, rtol=1e-4, atol=1e-4)


def test_cross_entropy_also_of_large_logits():
    logits, following = drawn(BATCH, TOKENS, VOCABULARY), torch.arange(14).view(2, 7)

    def model_of(scale: float) -> nn.Module:
        model = nn.Module()
        model.forward = lambda tokens: (logits * scale, None)  # type: ignore[method-assign]
        return model

    for scale in (1.0, 1000.0):
        exact = (logits * scale).double()
        chosen = exact.gather(-1, following[..., None])[..., 0]
        largest = exact.amax(-1)
        total = (exact - largest[..., None]).exp().sum(-1).log() + largest
        expected = (total - chosen).mean()
        near(next_token_loss(model_of(scale), following, following), expected)


def test_adamw_takes_the_steps_of_its_formula():
    torch.manual_seed(0)
    layer, target = nn.Linear(3, 5, bias=False), drawn(4, 5)
    x, lr, decay, betas = drawn(4, 3, seed=1), 1e-2, 0.1, (0.9, 0.999)
    w = layer.weight.detach().double().clone()
    m, v = torch.zeros_like(w), torch.zeros_like(w)
    optimiser = adamw(layer, lr, decay)
    for t in range(1, 11):
        optimiser.zero_grad()
        (layer(x) - target).square().mean().backward()
        optimiser.step()
        error = x.double() @ w.T - target.double()
        g = 2 * error.T @ x.double() / error.numel()
        m, v = (b * s + (1 - b) * p for b, s, p in zip(betas, (m, v), (g, g * g)))
        w = w - lr * decay * w
        step = (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + 1e-8)
        w = w - lr * step
        near(layer.weight, w)


def test_the_cosine_schedule_warms_up_falls_to_its_floor_and_stays():
    """Theirs counts from 1: at t it is ours of step t - 1 while warming up."""
    low, high, n_warm, n = 0.1, 1.0, 7, 21
    for t in range(1, 26):
        rate = lr_with_floor(t if t >= n_warm else t - 1, n, high, n_warm, floor=low)
        if t < n_warm:
            expected = high * t / n_warm
        elif t <= n:
            turn = math.cos(math.pi * (t - n_warm) / (n - n_warm))
            expected = low + (1 + turn) / 2 * (high - low)
        else:
            expected = low
        assert rate == pytest.approx(expected)
    with pytest.raises(ValueError, match="floor is 2"):
        lr_with_floor(0, 9, 1.0, floor=2.0)


@pytest.mark.parametrize("most", [1e-2, 1e3])
def test_gradients_are_clipped_together(most):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 1))
    model[0].bias.requires_grad_(False)  # one without a gradient
    x = drawn(4, 3)

    def loss(model: nn.Module, x: Tensor) -> Tensor:
        return model(x).square().mean()

    loss(model, x).backward()
    free = {n: p.grad.clone() for n, p in model.named_parameters() if p.requires_grad}
    length = math.sqrt(sum(g.square().sum().item() for g in free.values()))
    optimiser = adamw(model, 1e-3, 0.0)
    autocast, scaler = mixed_precision("fp32", torch.device("cpu"))
    _, norm = compute_gradients(model, (x,), loss, optimiser, scaler, autocast, most)
    assert norm.item() == pytest.approx(length, rel=1e-5)
    for name, g in free.items():
        near(model.get_parameter(name).grad, g * min(1.0, most / length))


def test_byte_pairs_are_learned_with_ties_by_bytes_and_encode_back():
    text = "low low low low low lower lower widest widest widest newest newest newest "
    text += "newest newest newest"
    encoder = BytePairEncoder.train(text, 256 + 6, chunks="gpt2", ties="bytes")
    learned = encoder.pieces[256:]
    assert learned[:4] == [b"st", b"est", b"ow", b"low"]
    assert encoder.decode(encoder.encode(text)) == text
    end = "<|endoftext|>"
    with_end = BytePairEncoder.train(text + end + text, 270, [end], "gpt2", "bytes")
    ids = with_end.encode(f"low{end}low")
    assert ids.count(with_end.special_ids[end]) == 1
    assert not any(b"<|" in p for p in with_end.pieces if p != end.encode())


def test_a_batch_holds_windows_from_everywhere_and_what_follows_them():
    ids, starts = torch.arange(50), []
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        tokens, following = random_windows(ids, 7, 5, generator)
        assert tokens.shape == following.shape == (5, 7)
        assert torch.equal(following, tokens + 1)
        starts += tokens[:, 0].tolist()
    assert set(starts) == set(range(50 - 7))
    counts = torch.tensor(starts).bincount()
    expected = 1000 / 43  # each start equally often, within five standard deviations
    assert (counts - expected).abs().max() < 5 * math.sqrt(expected)


def test_a_checkpoint_brings_model_and_optimiser_back(tmp_path):
    def fresh(seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 1))
        return model, adamw(model, 1e-2, 0.1)

    def steps(model: nn.Module, optimiser: torch.optim.Optimizer, n: int) -> None:
        for i in range(n):
            optimiser.zero_grad()
            model(drawn(4, 3, seed=i)).square().mean().backward()
            optimiser.step()

    model, optimiser = fresh(0)
    steps(model, optimiser, 4)
    checkpoints.save(tmp_path / "a.pt", {}, model=model, optimiser=optimiser)
    again, other = fresh(1)
    assert checkpoints.resume(tmp_path / "a.pt", {}, model=again, optimiser=other)
    for m, o in ((model, optimiser), (again, other)):
        steps(m, o, 3)
    for one, two in zip(model.parameters(), again.parameters()):
        assert torch.equal(one, two)


def test_an_adapter_with_a_swapped_matrix_is_noticed():
    x, w = drawn(BATCH, TOKENS, D), block_weights()
    swapped = w | {"q": w["k"], "k": w["v"], "v": w["q"]}
    assert (run_heads(x, swapped, None) - heads_of(x, w, None)).abs().max() > 0.1
    assert causal_mask(TOKENS).sum() == TOKENS * (TOKENS + 1) // 2
