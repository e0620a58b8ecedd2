"""The plan of a training: counted operations, a measured speed, and when to compile."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.models.transformer import GPT
from course_utils.training import plan as planning
from course_utils.training.history import History
from course_utils.training.plan import (
    CompileTrial,
    Plan,
    count_operations,
    matmul_speed,
    plan,
    roughly,
    try_compiling,
)

TOKENS = torch.ones(3, 7, dtype=torch.long)
WINDOWS = (TOKENS[:, :-1], TOKENS[:, 1:])


def next_token_loss(model: Any, read: Tensor, following: Tensor) -> Tensor:
    return F.cross_entropy(model(read)[0].flatten(0, 1), following.flatten())


def gpt() -> GPT:
    torch.manual_seed(0)
    return GPT(11, 8, d_model=12, n_heads=3, n_layers=2)


PLAN = Plan("cpu", "fp32", 1000, 100, 5_000, 2**30, None, 1e4, readings=2.0)


# --------------------------------------------------------------------------- counting


def test_a_linear_layer_costs_six_operations_a_weight_and_row() -> None:
    """Two forward; two for the weight's gradient, and two for that of its input."""
    model = nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 3))
    counted = count_operations(
        model, (torch.zeros(10, 4),), lambda model, x: model(x).sum()
    )
    first, second = 10 * 4 * 5, 10 * 5 * 3
    assert (
        counted == 4 * first + 6 * second
    )  # the first layer's input needs no gradient


def test_gpt_costs_six_operations_a_weight_and_token_and_attention() -> None:
    model, rows, length, d, layers = gpt(), 3, 6, 12, 2
    matrices = sum(p.numel() for p in model.blocks.parameters() if p.dim() == 2)
    by_weights = 6 * rows * length * (matrices + 11 * d)
    by_attention = 3 * 4 * length**2 * d * layers * rows
    counted = count_operations(model, WINDOWS, next_token_loss)
    assert counted == by_weights + by_attention


def test_planning_computes_nothing_and_touches_nothing() -> None:
    model = gpt()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    plan(model, WINDOWS, next_token_loss, steps=5, readings=1.0, device="cpu")
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert all(p.grad is None and p.device.type == "cpu" for p in model.parameters())


def test_a_model_too_large_for_this_machine_can_be_planned() -> None:
    with torch.device("meta"):
        huge = GPT(5_000, 8, d_model=12_288, n_heads=96, n_layers=4)
    made = plan(huge, WINDOWS, next_token_loss, steps=10, readings=1.0, device="cpu")
    assert made.n_parameters > 7e9
    assert made.memory > 16 * 7e9


# ------------------------------------------------------------------------------- time


def test_seconds_are_operations_by_speed_and_compilation() -> None:
    assert PLAN.seconds == pytest.approx(100 * 5_000 / 1e4)
    assert replace(PLAN, compilation=30).seconds == pytest.approx(80)
    assert "+ 30 s compiling = 80 s at least" in str(replace(PLAN, compilation=30))


def test_the_speed_is_operations_by_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "timed", lambda work, device: 0.05)
    assert matmul_speed("cpu", (2, 3, 4)) == pytest.approx(2 * 2 * 3 * 4 / 0.05)


def test_a_real_product_is_timed_within_its_budget() -> None:
    started = time.perf_counter()
    assert matmul_speed("cpu", (64, 64, 64), seconds=0.05) > 0
    assert time.perf_counter() - started < 5


def test_the_planned_speed_is_that_of_the_precision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        planning, "matmul_speed", lambda *given: asked.append(given) or 1.0
    )
    common: dict[str, Any] = {"steps": 1, "readings": 1.0, "device": "cpu"}
    plan(gpt(), WINDOWS, next_token_loss, precision="bf16", **common)
    _, shape, precision = asked[0]
    assert precision == "bf16"
    assert shape[1:] in [(48, 12), (12, 48)]  # the largest matrix of the model


def test_the_plan_says_all_that_a_run_costs() -> None:
    said = str(PLAN)
    for part in (
        "1,000 parameters",
        "100 steps",
        "5.0e+03 operations a step",
        "1.0 GB",
    ):
        assert part in said
    assert "50 s at least" in said
    assert "read 2 times" in said


def test_many_readings_are_warned_of() -> None:
    assert "stop early" not in str(PLAN)
    assert "stop early" in str(replace(PLAN, readings=45.0))


def test_too_little_memory_is_warned_of() -> None:
    assert "more than is free" not in str(replace(PLAN, free=2**31))
    assert "more than is free" in str(replace(PLAN, free=2**29))


def test_a_run_is_compared_with_its_plan() -> None:
    history = History()
    assert "nothing to compare" in PLAN.compare(history)
    for step in range(10):
        history.record(step, torch.tensor(1.0), 0.1, torch.tensor(1.0))
    history.elapsed = 20.0
    assert "10 steps took 20 s; by the plan at least 5 s: 25%" in PLAN.compare(history)


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.5, "0.5 s"), (40, "40 s"), (600, "10 min"), (9e4, "25 h")]
)
def test_long_times_read_as_estimates(seconds: float, said: str) -> None:
    assert roughly(seconds) == said


# ------------------------------------------------------------------------- compilation


def slow_compiler(cost: float, factor: float, shapes: set[Any]) -> Any:
    """Stands for torch.compile: the first call of each shape takes `cost` seconds."""

    def compiler(model: nn.Module) -> Any:
        def forward(read: Tensor) -> Any:
            if read.shape not in shapes:
                shapes.add(read.shape)
                clock.now += cost
            clock.now -= (1 - factor) * STEP
            return model(read)

        return forward

    return compiler


class Clock:
    """Time that passes only where the test says so: STEP for every measured step."""

    now = 0.0


clock, STEP = Clock(), 1.0


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    def timed(work: Any, device: torch.device) -> float:
        began = clock.now
        work()
        clock.now += STEP
        return clock.now - began

    monkeypatch.setattr(planning, "timed", timed)


TWO_SHAPES = [WINDOWS, (TOKENS[:, :4], TOKENS[:, 1:5])]


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize(("steps", "pays"), [(1000, True), (200, False)])
def test_compiling_pays_in_a_run_that_is_long_enough(steps: int, pays: bool) -> None:
    """100 s for each of two shapes; half a second saved a step: 400 steps are even."""
    seen: set[Any] = set()
    trial = try_compiling(
        gpt(), TWO_SHAPES, next_token_loss, steps, slow_compiler(100, 0.5, seen)
    )
    assert trial.compilation == pytest.approx(200)
    assert (trial.eager, trial.compiled) == (pytest.approx(1), pytest.approx(0.5))
    assert trial.pays is pays
    assert len(seen) == 2


@pytest.mark.usefixtures("simulated")
def test_a_short_run_is_not_even_tried() -> None:
    def never(model: nn.Module) -> Any:
        raise AssertionError("compiled")

    trial = try_compiling(gpt(), TWO_SHAPES, next_token_loss, 20, never)
    assert not trial.pays
    assert str(trial) == "not compiled: 20 s are too short"


@pytest.mark.usefixtures("simulated")
def test_a_slower_compiled_model_is_not_used() -> None:
    compiler = slow_compiler(1, 1.5, set())
    trial = try_compiling(gpt(), TWO_SHAPES, next_token_loss, 10**6, compiler)
    assert not trial.pays
    assert "not compiled" in str(trial)


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize("at", ["eager", "compiled"])
def test_where_memory_runs_out_the_training_goes_on_uncompiled(at: str) -> None:
    def short(model: Any, *rest: Any) -> Tensor:
        if at == "eager" or not isinstance(model, nn.Module):
            raise torch.OutOfMemoryError("CUDA out of memory")
        return next_token_loss(model, *rest)

    model = gpt().eval()
    compiler = slow_compiler(1, 0.5, set())
    trial = try_compiling(model, TWO_SHAPES, short, 1000, compiler)
    assert not trial.pays
    assert str(trial) == "not compiled: memory has no room for a whole batch"
    assert not model.training
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.usefixtures("simulated")
def test_a_compiler_that_fails_is_named_and_not_used() -> None:
    def broken(model: nn.Module) -> Any:
        def forward(read: Tensor) -> Any:
            raise RuntimeError("Cannot find a working triton installation.")

        return forward

    trial = try_compiling(gpt(), TWO_SHAPES, next_token_loss, 1000, broken)
    assert not trial.pays
    assert "torch.compile failed (RuntimeError: Cannot find a working" in str(trial)


@pytest.mark.usefixtures("simulated")
def test_an_error_of_the_model_itself_is_no_trouble_of_the_compiler() -> None:
    def wrong(model: Any, *rest: Any) -> Tensor:
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes do not fit"):
        try_compiling(gpt(), TWO_SHAPES, wrong, 1000)


@pytest.mark.usefixtures("simulated")
def test_the_trial_leaves_weights_mode_gradients_and_random_numbers() -> None:
    model = gpt().eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    try_compiling(
        model, TWO_SHAPES, next_token_loss, 1000, slow_compiler(1, 0.5, set())
    )
    assert torch.equal(torch.rand(3), wanted)
    assert not model.training
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


def test_the_sentence_says_cost_and_saving() -> None:
    trial = CompileTrial(60.0, 1.0, 0.8, 1000)
    assert str(trial) == "compiling takes 60 s and saves 200 s in 1,000 steps: compiled"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: matmul_speed("cpu", (0, 1, 1)), "expected three sizes"),
        (
            lambda: plan(gpt(), WINDOWS, next_token_loss, steps=0, readings=1.0),
            "steps=0",
        ),
        (lambda: try_compiling(gpt(), [], next_token_loss, 5), "0 batches"),
        (
            lambda: try_compiling(gpt(), [WINDOWS], next_token_loss, "5"),
            "steps is '5', expected a whole number",
        ),
        (
            lambda: plan(gpt(), WINDOWS, next_token_loss, steps=1.5, readings=1.0),
            "steps is 1.5, expected a whole number",
        ),
    ],
)
def test_bad_input_is_answered_in_a_sentence(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
