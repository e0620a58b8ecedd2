"""Every module runs where its parameters are, in bfloat16, and compiled.

There is no GPU here: on the `meta` device any tensor that stayed on the CPU raises, as
it would on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from course_utils.evaluation.decoding import select_rows
from course_utils.models.attention import (
    CrossAttention,
    MultiHeadAttention,
    SelfAttention,
)
from course_utils.models.blocks import DecoderBlock, EncoderBlock
from course_utils.models.positions import RelativeBias, alibi, rotary, sinusoidal
from course_utils.models.rnn import GRULanguageModel, Seq2Seq, Seq2SeqAttention
from course_utils.models.transformer import GPT, Transformer
from course_utils.training.loop import adamw, compute_gradients
from course_utils.training.precision import mixed_precision

D, HEADS = 12, 3


def vectors(device: str) -> tuple[Tensor, Tensor]:
    return torch.zeros(2, 3, D, device=device), torch.zeros(2, 5, D, device=device)


def ids(device: str) -> tuple[Tensor, Tensor]:
    return (
        torch.ones(2, 5, dtype=torch.long, device=device),
        torch.ones(2, 4, dtype=torch.long, device=device),
    )


def one(inputs: Callable[[str], tuple[Tensor, ...]]) -> Callable[[str], tuple]:
    return lambda device: inputs(device)[:1]


class WithPositions(nn.Module):
    """Attention told of positions in every way that acts on the scores."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = RelativeBias(HEADS, 2)
        self.attention = MultiHeadAttention(D, HEADS)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        n = x.shape[1]
        where = torch.arange(n, device=x.device)
        return self.attention(
            x + sinusoidal(n, D, x.device),
            causal=True,
            bias=self.bias(n) + alibi(HEADS, n, device=x.device),
            rotate=lambda part: rotary(part, where),
        )


CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[str], tuple]]] = {
    "self-attention": (lambda: SelfAttention(D, 4, 6), one(vectors)),
    "cross-attention": (lambda: CrossAttention(D, D, 4, 6), vectors),
    "multi-head": (lambda: MultiHeadAttention(D, HEADS), vectors),
    "positions": (WithPositions, one(vectors)),
    "encoder block": (lambda: EncoderBlock(D, HEADS, 10), one(vectors)),
    "decoder block": (lambda: DecoderBlock(D, HEADS, 10, "post"), vectors),
    "seq2seq": (lambda: Seq2Seq(11, 13, 5, 6), ids),
    "bahdanau": (lambda: Seq2SeqAttention(11, 13, 5, 6), ids),
    "bahdanau, zeros": (lambda: Seq2SeqAttention(11, 13, 5, 6, "zeros"), ids),
    "gru": (lambda: GRULanguageModel(11, 5, 6), one(ids)),
    "transformer": (lambda: Transformer(11, 13, D, HEADS, 10, dropout=0.1), ids),
    "gpt": (lambda: GPT(11, 8, D, HEADS), one(ids)),
    "gpt, rotary": (lambda: GPT(11, 8, D, HEADS, positions="rotary"), one(ids)),
}
EVERY = pytest.mark.parametrize("name", CASES)


def train_a_step(model: nn.Module, inputs: tuple) -> Tensor:
    optimiser = torch.optim.AdamW(model.parameters())
    output = model(*inputs)[0]
    output.square().sum().backward()
    optimiser.step()
    return output


@EVERY
def test_a_training_step_stays_on_the_models_device(name):
    build, inputs = CASES[name]
    model = build().to("meta")
    assert train_a_step(model, inputs("meta")).device.type == "meta"
    missed = [n for n, p in model.named_parameters() if p.grad is None]
    assert not missed


@pytest.mark.parametrize("name", ["transformer", "gpt"])
def test_asking_for_weights_stays_on_the_models_device(name):
    build, inputs = CASES[name]
    logits, weights = build().to("meta")(*inputs("meta"), need_weights=True)
    assert logits.device.type == "meta"
    assert all(w.device.type == "meta" for w in weights)


@pytest.mark.parametrize(
    "name", ["seq2seq", "bahdanau", "gru", "transformer", "gpt", "gpt, rotary"]
)
def test_stepping_stays_on_the_models_device(name):
    build, inputs = CASES[name]
    model, given = build().to("meta"), inputs("meta")
    state = model.start(given[0])
    for t in range(2):
        logits, state, _ = model.step(given[-1][:, t], state)
        assert logits.device.type == "meta"


def test_a_tensor_left_on_the_cpu_raises():
    """The check of this file can fail."""
    model = Transformer(11, 13, D, HEADS, 10).to("meta")
    model.positions = sinusoidal(256, D)
    with pytest.raises(ValueError, match="device"):
        model(*ids("meta"))


@EVERY
def test_bfloat16_autocast_gives_finite_gradients(name):
    torch.manual_seed(0)
    build, inputs = CASES[name]
    model = build()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = model(*inputs("cpu"))[0]
    assert output.isfinite().all()
    output.float().square().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_bfloat16_autocast_is_near_full_precision():
    torch.manual_seed(0)
    model, tokens = GPT(11, 8, D, HEADS), torch.randint(0, 11, (2, 6))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = model(tokens)[0].float()
    torch.testing.assert_close(half, model(tokens)[0], rtol=0.05, atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transformer", "gpt", "gpt, rotary"])
def test_compiled_models_give_the_same_numbers(name):
    torch.manual_seed(0)
    build, inputs = CASES[name]
    model, given = build().eval(), inputs("cpu")
    compiled = torch.compile(model, backend="eager")
    torch.testing.assert_close(compiled(*given)[0], model(*given)[0])
    loss = F.cross_entropy(compiled(*given)[0].flatten(0, 1), given[-1].flatten())
    loss.backward()
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transformer", "gpt"])
def test_compilation_needs_no_break_in_the_graph(name):
    build, inputs = CASES[name]
    compiled = torch.compile(build(), backend="eager", fullgraph=True)
    compiled(*inputs("cpu"))


# ----------------------------------------------- the translator of chapter 12's preset


def smoothed(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    """The loss of chapter 12's larger model."""
    logits, _ = model(source, target[:, :-1])
    wanted = target[:, 1:].flatten()
    return F.cross_entropy(
        logits.flatten(0, 1), wanted, ignore_index=0, label_smoothing=0.1
    )


def padded(n_source: int, n_target: int) -> tuple[Tensor, Tensor]:
    """Two pairs of ids, the second shorter on both sides."""
    source = torch.randint(3, 11, (2, n_source))
    target = torch.randint(3, 13, (2, n_target))
    source[1, -2:], target[1, -1:] = 0, 0
    return source, target


def test_the_gpu_preset_makes_a_whole_step_where_its_parameters_are():
    """With its sizes, dropout, label smoothing, clipping, and AdamW."""
    meta = torch.device("meta")
    model = Transformer(6000, 7000, 256, 8, 1024, 3, dropout=0.1).to(meta)
    given = [torch.ones(128, n, dtype=torch.long, device=meta) for n in (17, 20)]
    autocast, scaler = mixed_precision("fp32", meta)
    optimiser = adamw(model, 1e-3, 0.0)
    value, norm = compute_gradients(
        model, tuple(given), smoothed, optimiser, scaler, autocast, 1.0
    )
    scaler.step(optimiser)
    assert value.device == norm.device == meta
    assert all(p.grad is not None and p.grad.device == meta for p in model.parameters())


def test_beams_are_put_in_order_where_the_translator_is():
    model = Transformer(11, 13, D, HEADS, 10).to("meta")
    source, target = ids("meta")
    rows = torch.tensor([0, 0, 1, 1], device="meta")
    state = select_rows(model.start(source), rows)
    logits, state, _ = model.step(target[:, 0][rows], state)
    assert logits.device.type == "meta"
    assert logits.shape == (4, 13)
    assert select_rows(state, rows).memory_mask.device.type == "meta"


def test_the_translators_loss_in_bfloat16_is_near_that_in_full_precision():
    torch.manual_seed(0)
    model, given = Transformer(11, 13, D, HEADS, 10), padded(6, 7)
    exact = smoothed(model, *given)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = smoothed(model, *given)
    assert rounded.dtype == torch.float32  # the loss itself is not rounded
    torch.testing.assert_close(rounded, exact, rtol=0.02, atol=0.02)


@pytest.mark.slow
def test_the_compiled_translator_takes_batches_of_other_lengths():
    torch.manual_seed(0)
    model = Transformer(11, 13, D, HEADS, 10)
    compiled = torch.compile(model, backend="eager")
    for lengths in ((5, 6), (8, 7), (4, 9)):
        given = padded(*lengths)
        wanted = torch.autograd.grad(smoothed(model, *given), model.parameters())
        made = torch.autograd.grad(smoothed(compiled, *given), model.parameters())
        torch.testing.assert_close(made, wanted)


# ------------------------------------------------------ the GPT of chapter 13's preset


def next_token_loss(model: nn.Module, read: Tensor, following: Tensor) -> Tensor:
    """The loss of chapter 13."""
    logits, _ = model(read)
    return F.cross_entropy(logits.flatten(0, 1), following.flatten())


def large_gpt(device: str) -> tuple[GPT, tuple[Tensor, Tensor]]:
    with torch.device(device):
        model = GPT(4096, 256, 384, 6, 6, positions="rotary", dropout=0.1)
        return model, (torch.zeros(64, 256, dtype=torch.long),) * 2


def test_the_gpu_preset_of_gpt_makes_a_whole_step_where_its_parameters_are():
    meta = torch.device("meta")
    model, given = large_gpt("meta")
    autocast, scaler = mixed_precision("fp32", meta)
    optimiser = adamw(model, 1e-3, 0.1)
    value, norm = compute_gradients(
        model, given, next_token_loss, optimiser, scaler, autocast, 1.0, parts=4
    )
    scaler.step(optimiser)
    assert value.device == norm.device == meta
    assert all(p.grad is not None and p.grad.device == meta for p in model.parameters())


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_gpu_preset_of_gpt_makes_a_step_with_fake_tensors(precision):
    """Shapes, dtypes and devices as in a real run, and no number computed."""
    cpu = torch.device("cpu")
    with FakeTensorMode():
        model, given = large_gpt("cpu")
        autocast, _ = mixed_precision(precision, cpu)
        with autocast:
            value = next_token_loss(model, *given)
        value.backward()
    assert isinstance(value, FakeTensor)
    assert value.dtype == torch.float32  # the loss itself is not rounded
    assert all(
        p.grad is not None and p.grad.shape == p.shape for p in model.parameters()
    )
