"""Memory: what a step holds is counted, and a batch that does not fit is halved."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_loop import noisy_batch, same_weights
from torch import Tensor, nn

from course_utils.training.loop import train
from course_utils.training.memory import (
    OutOfMemory,
    halve_until_it_fits,
    is_out_of_memory,
    split_rows,
    training_bytes,
)

ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("MPS backend out of memory (MPS allocated: 8.0 GB)"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"),
]


def plain_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))


def loss_with_room_for(most: int, error: RuntimeError = ERRORS[0]) -> Any:
    """A mean over rows on a device that holds `most` of them."""

    def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        if len(x) > most:
            raise error
        return (model(x) - y).square().mean()

    return loss


def learn(model: nn.Module, loss: Any) -> Any:
    options: dict[str, Any] = {"steps": 12, "device": "cpu", "progress": False}
    return train(model, noisy_batch, loss, **options)


# ---------------------------------------------------------------------- out of memory


@pytest.mark.parametrize("error", ERRORS, ids=["cuda", "mps", "cpu"])
def test_a_batch_that_does_not_fit_is_halved_and_gradients_added_up(
    error: RuntimeError, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, halved = plain_model(), plain_model()
    history = learn(whole, loss_with_room_for(8))
    again = learn(halved, loss_with_room_for(3, error))  # 8 rows, then 4, then 2
    assert "2 of 8 rows at a time" in capsys.readouterr().out
    assert again["loss"] == pytest.approx(history["loss"], rel=1e-4)
    for one, other in zip(whole.parameters(), halved.parameters()):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    assert not same_weights(whole, plain_model())


def test_it_is_said_once_for_every_halving(capsys: pytest.CaptureFixture[str]) -> None:
    learn(plain_model(), loss_with_room_for(3))
    assert capsys.readouterr().out.count("Memory ran out") == 2


def test_where_no_row_fits_it_says_what_to_change() -> None:
    with pytest.raises(OutOfMemory, match="a smaller model or shorter sequences"):
        learn(plain_model(), loss_with_room_for(0))


def test_another_error_is_not_taken_for_it() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        learn(
            plain_model(),
            loss_with_room_for(0, RuntimeError("shapes cannot be multiplied")),
        )
    assert not is_out_of_memory(ValueError("out of memory"))


def test_the_failed_try_is_forgotten_before_the_next() -> None:
    """Its tensors hang on the error: kept, they would fill the memory again."""
    import weakref

    held: list[Any] = []

    def compute(parts: int) -> bool:
        if parts == 1:
            large = torch.zeros(1000)
            held.append(weakref.ref(large))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return held[0]() is None

    assert halve_until_it_fits(compute, 1, 4) == (True, 2)


@pytest.mark.parametrize("parts", [1, 2, 3, 5, 7])
def test_parts_are_all_rows_once_and_shares_sum_to_one(parts: int) -> None:
    x, shared = torch.arange(7), torch.ones(3)
    found = list(split_rows((x, "word", shared), parts))
    assert torch.equal(torch.cat([part[0] for part, _ in found]), x)
    assert sum(share for _, share in found) == pytest.approx(1)
    assert all(part[1] == "word" and part[2] is shared for part, _ in found)
    assert len(found) <= parts


# --------------------------------------------------------------------------- counting


def test_bytes_are_those_of_parameters_and_of_what_is_kept() -> None:
    model = nn.Linear(4, 3, bias=False)
    given = (torch.zeros(5, 4), torch.zeros(5, 3))

    def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return (model(x) * y).sum()

    # kept: x for the weight's gradient, y for that of the product (the output, for y's
    # own, is not: y needs no gradient)
    assert training_bytes(model, given, loss) == 16 * 12 + 4 * (5 * 4 + 5 * 3)


def test_twice_the_rows_keep_twice_as_much() -> None:
    model = plain_model()
    loss = loss_with_room_for(10**9)
    one, two, four = (
        training_bytes(model, (torch.zeros(n, 6), torch.zeros(n, 1)), loss)
        for n in (100, 200, 400)
    )
    weights = 2 * sum(4 * p.numel() for p in model.parameters())  # kept whatever n
    assert four - two == pytest.approx(2 * (two - one), abs=weights)
    assert all(p.device.type == "cpu" for p in model.parameters())
