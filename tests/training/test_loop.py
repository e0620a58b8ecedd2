"""The training loop: exact resume above all, and what happens when it goes wrong."""

from __future__ import annotations

import itertools
import math
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from course_utils.data.batches import (
    batched,
    derive_seed,
    epochs,
    minibatches,
    to_device,
)
from course_utils.training import checkpoints, loop
from course_utils.training.history import (
    Diverged,
    History,
    TrainingInterrupted,
    require_finite,
)
from course_utils.training.loop import adamw, compute_gradients, lr_at, train
from course_utils.training.precision import chosen_precision, mixed_precision

CPU = torch.device("cpu")
STEPS, EVERY = 40, 10


def make_model(seed: int = 0, width: int = 8) -> nn.Module:
    """A model with all that resuming could lose: dropout, running means, a bias."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        hidden = [nn.Linear(6, width), nn.BatchNorm1d(width), nn.Dropout(0.3)]
        return nn.Sequential(*hidden, nn.ReLU(), nn.Linear(width, 1))


INPUTS = torch.randn(50, 6, generator=torch.Generator().manual_seed(1))
TARGETS = INPUTS[:, :1] * INPUTS[:, 1:2]
shuffled = minibatches(INPUTS, TARGETS, batch_size=8)


def noisy_batch(step: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Shuffled rows with noise drawn from the step's generator."""
    x, y = shuffled(step, generator)
    return x + 0.1 * torch.randn(x.shape, generator=generator), y


def squared_error(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return (model(x) - y).square().mean()


def run(model: nn.Module, **changes: Any) -> History:
    usual = {"steps": STEPS, "every": EVERY, "device": "cpu", "progress": False}
    call: dict[str, Any] = {"batch": noisy_batch, "loss": squared_error, **usual}
    return train(model, **{**call, **changes})


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    """Whether every parameter and buffer of two models is bit-equal."""
    pairs = zip(one.state_dict().values(), other.state_dict().values())
    return all(torch.equal(a, b) for a, b in pairs)


def same_history(one: History, other: History) -> bool:
    """Whether two histories agree in all but the time they took."""
    names = [name for name in one.columns if name != "seconds"]
    return list(one.columns) == list(other.columns) and all(
        np.array_equal(one[name], other[name], equal_nan=True) for name in names
    )


class PowerCut(Exception):
    """Stands for whatever ends a process between two steps."""


def cut_at(step: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a `batch` that fails when `step` is reached."""

    def batch(now: int, generator: torch.Generator) -> Any:
        if now == step:
            raise PowerCut
        return function(now, generator)

    return batch


@pytest.fixture
def ctrl_c() -> Iterator[Callable[..., Any]]:
    """A `batch` during which Ctrl-C is pressed at the given step."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def pressed_at(step: int, times: int = 1) -> Callable[..., Any]:
        def batch(now: int, generator: torch.Generator) -> Any:
            for _ in range(times if now == step else 0):
                signal.raise_signal(signal.SIGINT)
            return noisy_batch(now, generator)

        return batch

    yield pressed_at
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


# ----------------------------------------------------------------- training and history


def test_training_lowers_the_loss() -> None:
    history = run(make_model(), steps=300, lr=2e-2)
    assert history["loss"][-20:].mean() < 0.6 * history["loss"][:20].mean()


def test_history_holds_one_number_for_each_step() -> None:
    history = run(make_model(), evaluate=lambda model: {"zero": 0, "one": 1.0})
    assert len(history) == STEPS
    assert history["step"].tolist() == list(range(STEPS))
    for name in ("loss", "lr", "grad_norm", "seconds"):
        assert history[name].shape == (STEPS,)
        assert history[name].dtype == np.float64
    assert (np.diff(history["seconds"]) > 0).all()
    assert history["evaluated"].tolist() == [10, 20, 30, 40]
    assert history["one"].tolist() == [1.0] * 4


def test_the_last_weights_are_evaluated_even_off_the_beat() -> None:
    history = run(make_model(), steps=7, every=5, evaluate=lambda model: {"one": 1})
    assert history["evaluated"].tolist() == [5, 7]


def test_history_names_what_it_has() -> None:
    with pytest.raises(ValueError, match="no 'accuracy'; it has step, loss, lr"):
        run(make_model(), steps=1)["accuracy"]


def test_history_reads_as_one_line() -> None:
    assert repr(History()) == "no steps yet"
    history = run(make_model(), steps=3)
    assert repr(history).startswith("3 steps in 0.")
    assert repr(history).endswith(f"loss {history['loss'][-1]:.4g}")


def test_the_first_loss_is_that_of_the_untrained_model() -> None:
    model = make_model().requires_grad_(True)
    x, y = INPUTS[:8], TARGETS[:8]
    expected = squared_error(make_model().eval(), x, y).item()
    history = run(model, batch=lambda *_: (x, y), loss=eval_error, steps=1)
    assert history["loss"][0] == pytest.approx(expected)


def eval_error(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return squared_error(model.eval(), x, y)


def test_evaluation_sees_no_dropout_no_gradient_and_leaves_no_trace() -> None:
    modes: list[tuple[bool, bool]] = []

    def evaluate(model: nn.Module) -> dict[str, float]:
        modes.append((model.training, torch.is_grad_enabled()))
        return {"noise": torch.randn(1).item()}  # draws from the global generator

    watched, alone = make_model(), make_model()
    run(watched, evaluate=evaluate, every=7)
    run(alone)
    assert set(modes) == {(False, False)}
    assert same_weights(watched, alone)


def test_training_leaves_eval_mode_no_gradients_and_the_global_generator() -> None:
    torch.rand(1)  # away from where another training may have left the generator
    model, state = make_model(), torch.get_rng_state()
    run(model)
    assert not any(module.training for module in model.modules())
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(torch.get_rng_state(), state)


def test_dropout_is_on_while_training() -> None:
    seen: list[bool] = []

    def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        seen.append(model.training)
        return squared_error(model, x, y)

    run(make_model().eval(), loss=loss, evaluate=lambda model: {"one": 1}, every=2)
    assert seen == [True] * STEPS


def test_the_seed_decides_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    first, again, other, course = (make_model() for _ in range(4))
    run(first)
    torch.rand(3)  # what was drawn before must not matter
    run(again)
    run(other, seed=1)
    monkeypatch.setenv("COURSE_SEED", "1")
    run(course)
    assert same_weights(first, again)
    assert not same_weights(first, other)
    assert not same_weights(first, course)


def test_looking_less_often_gives_the_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    often, seldom = make_model(), make_model()
    one = run(often, steps=37)
    monkeypatch.setitem(loop.LOOK_EVERY, "cpu", 10)  # as on a GPU
    other = run(seldom, steps=37)
    assert same_weights(often, seldom)
    assert same_history(one, other)


# ------------------------------------------------------------------------- exact resume


@pytest.mark.parametrize("step", [0, 1, EVERY - 1, EVERY, EVERY + 1, STEPS - 1])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_broken_off_run_ends_in_the_same_weights(
    step: int, precision: str, tmp_path: Path
) -> None:
    whole, broken, resumed = make_model(), make_model(), make_model()
    settings = {
        "precision": precision,
        "evaluate": lambda model: {"bias": model[4].bias.item()},
    }
    expected = run(whole, **settings)
    settings["checkpoint"] = tmp_path / "run.pt"
    with pytest.raises(PowerCut):
        run(broken, batch=cut_at(step, noisy_batch), **settings)
    history = run(resumed, **settings)
    assert same_weights(whole, resumed)
    assert same_history(expected, history)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no SIGKILL")
def test_killed_at_any_point_training_ends_in_bit_equal_weights(tmp_path: Path) -> None:
    kept_after = [
        ("batch:3", 0),  # before there is any checkpoint
        ("write", 0),  # half of the first one is on the disk
        ("batch:10", 10),
        ("loss:17", 10),
        ("write", 10),  # half of the second one lies beside the first
        ("before rename", 10),
        ("after rename", 20),
        ("evaluate", 20),
        ("backward:25", 20),  # some parameters have their gradient, some do not
        ("batch:39", 30),  # the last step
        ("write", 30),
    ]
    here = Path(__file__).parent
    script = [sys.executable, str(here / "killed_training.py"), str(tmp_path)]
    package = Path(checkpoints.__file__).parents[2]  # the one that is tested here
    environment = {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{package}"}
    points = [point for point, _ in kept_after]
    result = subprocess.run(
        script + points, env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [str(steps) for _, steps in kept_after]
    whole, killed = (
        torch.load(tmp_path / name, weights_only=True)
        for name in ("whole.end", "killed.end")
    )
    for name, weights in whole["model"].items():
        assert torch.equal(weights, killed["model"][name]), name
    for name, column in whole["history"]["columns"].items():
        assert name == "seconds" or column == killed["history"]["columns"][name], name
    assert not (tmp_path / "killed.pt.part").exists()


def test_a_finished_training_is_not_trained_again(tmp_path: Path) -> None:
    first, second = make_model(), make_model(seed=9)
    path = tmp_path / "run.pt"
    expected = run(first, checkpoint=path)
    before = path.read_bytes()
    history = run(second, checkpoint=path, batch=cut_at(0, cut_at(STEPS, noisy_batch)))
    assert same_weights(first, second)
    assert same_history(expected, history)
    assert history["seconds"].tolist() == expected["seconds"].tolist()
    assert history.elapsed == expected.elapsed
    assert path.read_bytes() == before
    assert not second.training


def test_a_checkpoint_is_made_in_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    run(make_model(), steps=2, checkpoint=str(tmp_path / "new" / "folder" / "run.pt"))
    assert [file.name for file in (tmp_path / "new" / "folder").iterdir()] == ["run.pt"]


def test_a_full_disk_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.pt"
    with pytest.raises(PowerCut):
        run(make_model(), checkpoint=path, batch=cut_at(15, noisy_batch))
    before = path.read_bytes()

    def full(content: Any, file: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.warns(UserWarning, match="the disk is full"):
        history = run(model := make_model(), checkpoint=path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    assert len(history) == STEPS  # and no paid step is lost
    monkeypatch.undo()
    run(whole := make_model())
    assert same_weights(model, whole)


def test_any_other_trouble_with_the_file_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(content: Any, file: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(torch, "save", refuse)
    with pytest.raises(OSError, match="Input/output"):
        run(make_model(), checkpoint=tmp_path / "run.pt")


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "flipped", "foreign"])
def test_a_damaged_or_foreign_checkpoint_is_refused(
    damage: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.pt"
    run(make_model(width=64), steps=2, checkpoint=path)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    if damage == "cut":
        del content[middle:]
    elif damage == "empty":
        content.clear()
    elif damage == "text":
        content = bytearray(b"a letter to a friend")
    elif damage == "flipped":
        content[middle] ^= 1
    path.write_bytes(content)
    if damage == "foreign":
        torch.save({"weights": torch.zeros(3)}, path)
    model = make_model(width=64)
    with pytest.raises(ValueError, match=r"run\.pt .*delete the file .*another name"):
        run(model, steps=2, checkpoint=path)
    assert same_weights(model, make_model(width=64))


def test_a_folder_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder, expected the name of a file"):
        run(make_model(), checkpoint=tmp_path)


def test_a_checkpoint_runs_no_code(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "sprung"),)

    torch.save({"format": checkpoints.FORMAT, "trap": Trap()}, tmp_path / "run.pt")
    with pytest.raises(ValueError, match="is damaged or is not a checkpoint"):
        run(make_model(), checkpoint=tmp_path / "run.pt")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("name", "value", "was"),
    [
        ("steps", 80, "40"),
        ("lr", 1e-3, "0.003"),
        ("warmup", 5, "4"),
        ("schedule", "linear", "'cosine'"),
        ("clip", None, "1.0"),
        ("weight_decay", 0.1, "0.0"),
        ("seed", 1, "0"),
        ("precision", "bf16", "'fp32'"),
    ],
)
def test_other_settings_are_refused_by_name(
    name: str, value: Any, was: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.pt"
    with pytest.raises(PowerCut):
        run(make_model(), checkpoint=path, batch=cut_at(15, noisy_batch))
    with pytest.raises(ValueError, match=f"{name} was {was} and is {value!r}"):
        run(make_model(), checkpoint=path, **{name: value})


def test_another_course_seed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(make_model(), steps=2, checkpoint=tmp_path / "run.pt")
    monkeypatch.setenv("COURSE_SEED", "3")
    with pytest.raises(ValueError, match="COURSE_SEED was 0 and is 3"):
        run(make_model(), steps=2, checkpoint=tmp_path / "run.pt")


def test_another_model_is_refused_by_the_tensor_that_differs(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    run(make_model(), steps=2, checkpoint=path)
    with pytest.raises(
        ValueError, match=r"0\.weight is \(8, 6\) there and \(9, 6\) here"
    ):
        run(make_model(width=9), steps=2, checkpoint=path)
    with pytest.raises(ValueError, match=r"1\.weight is \(8,\) there and absent"):
        run(nn.Sequential(nn.Linear(6, 8), nn.ReLU()), steps=2, checkpoint=path)
    frozen = make_model()
    frozen[0].requires_grad_(False)
    with pytest.raises(ValueError, match="trainable was 81 and is 25"):
        run(frozen, steps=2, checkpoint=path)
    assert same_weights(frozen, make_model())


# ----------------------------------------------------------------------------- Ctrl-C


def test_ctrl_c_keeps_what_was_trained(ctrl_c: Callable[..., Any]) -> None:
    model, cut = make_model(), make_model()
    with pytest.raises(TrainingInterrupted, match="after 7 of 40 steps") as stopped:
        run(model, batch=ctrl_c(6))
    assert len(stopped.value.history) == 7  # the step in hand is finished
    assert "give train checkpoint=" in "".join(stopped.value._render_traceback_())
    with pytest.raises(PowerCut):
        run(cut, batch=cut_at(7, noisy_batch))
    assert same_weights(model, cut)
    assert not model.training


def test_after_ctrl_c_the_same_call_goes_on(
    ctrl_c: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, model, path = make_model(), make_model(), tmp_path / "run.pt"
    expected = run(whole, evaluate=lambda model: {"bias": model[4].bias.item()})
    settings = {
        "evaluate": lambda model: {"bias": model[4].bias.item()},
        "checkpoint": path,
    }
    again = re.escape(f"run the cell again, and it goes on from {path}")
    with pytest.raises(TrainingInterrupted, match=again):
        run(model, batch=ctrl_c(16), **settings)
    history = run(model, **settings, progress=True)
    assert f"(the first 17 from {path})" in capsys.readouterr().out
    assert same_weights(whole, model)
    assert same_history(expected, history)


def test_a_run_that_goes_on_says_from_where_before_it_does(
    ctrl_c: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(loop.Progress, "say", lambda _, line: said.append(line))
    path = tmp_path / "run.pt"
    with pytest.raises(TrainingInterrupted):
        run(make_model(), batch=ctrl_c(16), checkpoint=path)
    assert said == []
    run(make_model(), checkpoint=path)
    assert said == [f"Going on from {path}: 17 of {STEPS} steps are done."]


def test_a_folder_that_cannot_be_flushed_still_gets_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_folders(descriptor: int, flush: Any = os.fsync) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, "Invalid argument")  # as a mounted drive may answer
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    run(make_model(), steps=2, checkpoint=tmp_path / "run.pt")
    assert checkpoints.read(tmp_path / "run.pt")["settings"]["steps"] == 2


def test_a_second_ctrl_c_stops_at_once(ctrl_c: Callable[..., Any]) -> None:
    model = make_model()
    with pytest.raises(KeyboardInterrupt):
        run(model, batch=ctrl_c(6, times=2))
    assert not model.training


def test_an_ignored_ctrl_c_stays_ignored(ctrl_c: Callable[..., Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as under nohup
    try:
        assert len(run(make_model(), batch=ctrl_c(6))) == STEPS
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_training_works_outside_the_main_thread() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert len(pool.submit(run, make_model()).result()) == STEPS


# ----------------------------------------------------------------- losses that blow up


def bad_after(step: int, bad: float) -> Callable[..., Any]:
    def batch(now: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        x, y = noisy_batch(now, generator)
        return (x, y * bad) if now >= step else (x, y)

    return batch


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_with_advice(bad: float) -> None:
    model, before = make_model(), make_model()
    with pytest.raises(Diverged) as stopped:
        run(model, batch=bad_after(6, bad), warmup=0, schedule="constant")
    message, history = str(stopped.value), stopped.value.history
    assert f"the loss is {bad} at step 6, after a loss of" in message
    assert f"{history['loss'][5]:.4g} and with lr 0.003" in message
    assert "try a lower lr, a longer warmup, or clip=1.0 or less" in message
    assert "weights are still finite" in message
    with pytest.raises(PowerCut):
        run(before, batch=cut_at(6, noisy_batch), warmup=0, schedule="constant")
    pairs = zip(model.parameters(), before.parameters())
    assert all(torch.equal(a, b) for a, b in pairs)
    assert isinstance(stopped.value, FloatingPointError)


def test_seen_late_it_still_names_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(loop.LOOK_EVERY, "cpu", 10)  # as on a GPU
    with pytest.raises(Diverged, match=r"at step 12, .* are spoilt: build it anew"):
        run(make_model(), batch=bad_after(12, math.nan), every=100)


def test_spoilt_weights_are_never_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(loop.LOOK_EVERY, "cpu", 100)
    path = tmp_path / "run.pt"
    with pytest.raises(Diverged):
        run(make_model(), batch=bad_after(12, math.nan), checkpoint=path)
    content = checkpoints.read(path)
    assert len(content["history"]["columns"]["step"]) == 10
    assert all(value.isfinite().all() for value in content["model"].values())


def test_at_the_first_step_the_data_are_suspected() -> None:
    with pytest.raises(Diverged, match="already at step 0: look for inf, nan, log"):
        run(make_model(), batch=bad_after(0, math.nan))


def test_a_gradient_that_is_not_finite_stops_too() -> None:
    def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return (0 * squared_error(model, x, y)).sqrt() + 1  # sqrt has no slope at 0

    with pytest.raises(Diverged, match=r"gradient is not finite \(the loss is 1\)"):
        run(make_model(), loss=loss)


def test_fp16_may_overflow_for_a_while_but_not_for_ever() -> None:
    history, model = History(), nn.Linear(1, 1)
    for step in range(24):
        history.record(step, torch.tensor(1.0), 0.1, torch.tensor(math.inf))
        require_finite(history, model, patience=25)
    history.record(24, torch.tensor(1.0), 0.1, torch.tensor(1.0))
    require_finite(history, model, patience=25)
    for step in range(25, 50):
        require_finite(history, model, patience=25)
        history.record(step, torch.tensor(1.0), 0.1, torch.tensor(math.nan))
    with pytest.raises(Diverged, match="at step 49"):
        require_finite(history, model, patience=25)


# ------------------------------------------------------------ schedule, clipping, decay


def test_warmup_rises_in_a_line_to_the_full_rate() -> None:
    rates = [lr_at(step, 100, 0.8, warmup=4) for step in range(5)]
    assert rates == pytest.approx([0.2, 0.4, 0.6, 0.8, 0.8])


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [1, 1, 1]),
        ("linear", [1, 0.5, 0.01]),
        ("cosine", [1, 0.5, (1 + math.cos(math.pi * 0.99)) / 2]),
        ("inverse_sqrt", [math.sqrt(10 / 11), math.sqrt(10 / 61), math.sqrt(10 / 110)]),
    ],
)
def test_the_schedule_falls_as_its_formula_says(
    schedule: str, expected: list[float]
) -> None:
    rates = [lr_at(step, 110, 1.0, 10, schedule) for step in (10, 60, 109)]
    assert rates == pytest.approx(expected)


def test_past_its_end_a_schedule_stays_where_it_ended() -> None:
    beyond = range(110, 400, 17)
    for schedule in ("linear", "cosine"):
        assert [lr_at(step, 110, 1.0, 10, schedule) for step in beyond] == [0.0] * 18
    assert [lr_at(step, 110, 1.0, 10, "constant") for step in beyond] == [1.0] * 18
    falling = [lr_at(step, 110, 1.0, 10, "inverse_sqrt") for step in beyond]
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] > 0


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_the_schedule_is_pytorchs(schedule: str) -> None:
    """Linear past its end too; PyTorch's cosine would rise again there."""
    optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.5)
    theirs: torch.optim.lr_scheduler.LRScheduler
    if schedule == "linear":
        theirs = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, 60)
    else:
        theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 60)
    expected = []
    for _ in range(90 if schedule == "linear" else 61):
        expected.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        theirs.step()
    ours = [lr_at(step, 60, 0.5, schedule=schedule) for step in range(len(expected))]
    assert ours == pytest.approx(expected, abs=1e-9)


def test_the_optimiser_gets_the_rate_of_the_schedule() -> None:
    history = run(make_model(), lr=0.5, warmup=8, schedule="linear")
    expected = [lr_at(step, STEPS, 0.5, 8, "linear") for step in range(STEPS)]
    assert history["lr"].tolist() == expected
    slope = nn.ParameterList([nn.Parameter(torch.tensor(0.0))])
    history = run(slope, batch=lambda *_: (), loss=lambda model: model[0] * 1.0)
    # Under a constant gradient every step of Adam is as long as its learning rate.
    assert slope[0].item() == pytest.approx(-history["lr"].sum(), rel=1e-4)


def test_warmup_is_a_tenth_of_the_steps_unless_given() -> None:
    assert run(make_model(), lr=1.0)["lr"].argmax() == STEPS // 10 - 1
    assert run(make_model(), lr=1.0, warmup=0)["lr"][0] == 1.0
    assert run(make_model(), steps=1, lr=1.0)["lr"][0] == 1.0


@pytest.mark.parametrize(("clip", "length"), [(0.01, 0.01), (1e6, None), (None, None)])
def test_a_long_gradient_is_cut_to_clip(clip: float | None, length: Any) -> None:
    model = make_model().eval()
    loss = squared_error(model, INPUTS, TARGETS)
    free = torch.autograd.grad(loss, list(model.parameters()))
    norm = torch.cat([g.flatten() for g in free]).norm()
    autocast, scaler = mixed_precision("fp32", CPU)
    optimiser = adamw(model, 0.1, 0.0)
    examples = (INPUTS, TARGETS)
    for _ in range(2):  # the second must not add to the first
        value, before = compute_gradients(
            model, examples, squared_error, optimiser, scaler, autocast, clip
        )
    assert before.item() == pytest.approx(norm.item())
    assert value.item() == pytest.approx(loss.item())
    after = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()  # type: ignore[union-attr]
    assert after.item() == pytest.approx(length or norm.item(), rel=1e-4)


def test_train_clips_and_records_the_length_before() -> None:
    free, clipped = make_model(), make_model()
    one, other = run(free, clip=None), run(clipped, clip=1e-9)
    assert one["grad_norm"][0] == other["grad_norm"][0] > 0.01
    assert not same_weights(free, clipped)


def test_weights_decay_and_biases_do_not() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    nn.init.ones_(model[0].bias)  # type: ignore[arg-type]
    before = [p.detach().clone() for p in model.parameters()]

    def nothing(model: nn.Module) -> Tensor:
        return sum(0 * p.sum() for p in model.parameters())  # type: ignore[return-value]

    run(
        model,
        batch=lambda *_: (),
        loss=nothing,
        steps=1,
        lr=0.1,
        warmup=0,
        weight_decay=0.5,
    )
    decayed = [before[0] * 0.95, *before[1:]]
    for parameter, expected in zip(model.parameters(), decayed):
        torch.testing.assert_close(parameter.detach(), expected)


def test_frozen_parameters_stay() -> None:
    model = make_model()
    model[0].requires_grad_(False)
    run(model)
    assert torch.equal(model[0].weight, make_model()[0].weight)
    assert not torch.equal(model[4].weight, make_model()[4].weight)


# ---------------------------------------------------------------- devices and precision


def test_a_step_runs_on_another_device_and_reads_nothing_back() -> None:
    meta = torch.device("meta")
    model = make_model().to(meta)
    examples = to_device(noisy_batch(0, torch.Generator()), meta)
    autocast, scaler = mixed_precision("fp32", meta)
    optimiser = adamw(model, 0.1, 0.01)
    history = History()
    value, norm = compute_gradients(
        model, examples, squared_error, optimiser, scaler, autocast, 1.0
    )
    history.record(0, value, 0.1, norm)
    scaler.step(optimiser)
    scaler.update()
    assert value.device == norm.device == meta
    assert all(p.grad is not None and p.grad.device == meta for p in model.parameters())


def test_a_cpu_never_gets_fewer_bits_unless_asked() -> None:
    assert chosen_precision("auto", CPU) == "fp32"
    assert chosen_precision("auto", torch.device("mps")) == "fp32"
    assert chosen_precision("bf16", CPU) == "bf16"


@pytest.mark.parametrize(
    ("capability", "expected"),
    [((9, 0), "bf16"), ((8, 0), "bf16"), ((7, 5), "fp16"), ((6, 1), "fp32")],
)
def test_a_gpu_gets_what_it_has_units_for(
    capability: tuple[int, int], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    assert chosen_precision("auto", torch.device("cuda")) == expected


@pytest.mark.parametrize(
    ("precision", "dtype"),
    [("auto", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)],
)
def test_the_forward_pass_runs_in_the_precision_asked_for(
    precision: str, dtype: torch.dtype
) -> None:
    seen: set[torch.dtype] = set()

    def loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        output = model(x)
        seen.add(output.dtype)
        return (output.float() - y).square().mean()

    model = make_model()
    history = run(model, loss=loss, precision=precision, steps=100, lr=1e-2)
    assert seen == {dtype}
    assert all(p.dtype == torch.float32 for p in model.parameters())
    assert history["loss"][-20:].mean() < history["loss"][:20].mean()


def test_fp16_scales_the_loss_so_that_small_gradients_survive() -> None:
    def tiny(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return model(x).float().mean() * 1e-9  # gradients below the smallest fp16

    unscaled, scaled = make_model(), make_model()
    history = run(scaled, loss=tiny, precision="fp16", steps=3)
    exact = run(unscaled, loss=tiny, precision="fp32", steps=3)
    assert history["grad_norm"][0] == pytest.approx(exact["grad_norm"][0], rel=0.05)


def test_fp16_leaves_out_a_step_that_overflowed() -> None:
    def steep(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return model(x).float().mean() * 100  # times 65536: beyond the largest fp16

    model = make_model()
    history = run(model, loss=steep, precision="fp16", steps=12, clip=1.0)
    overflowed = ~np.isfinite(history["grad_norm"])
    assert overflowed[0]
    assert not overflowed[-1]
    assert all(p.isfinite().all() for p in model.parameters())


def test_compile_is_left_out_where_it_does_not_pay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(model: nn.Module) -> nn.Module:
        raise AssertionError("torch.compile was called on a CPU")

    monkeypatch.setattr(torch, "compile", refuse)
    assert len(run(make_model(), compile=True, steps=2)) == 2


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_a_gpu_that_is_not_there_is_refused_in_a_sentence(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(ValueError, match=f"device is '{kind}', and PyTorch finds no"):
        run(make_model(), device=kind)


def test_a_copy_to_a_gpu_is_pinned_and_does_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[Any, ...]] = []
    gpu = torch.device("cuda")
    monkeypatch.setattr(
        Tensor, "pin_memory", lambda self: calls.append(("pin",)) or self
    )
    monkeypatch.setattr(
        Tensor, "to", lambda self, *a, **k: calls.append((a, k)) or self
    )
    to_device((INPUTS,), gpu)
    assert calls == [("pin",), ((gpu,), {"non_blocking": True})]


def test_what_is_no_tensor_passes_to_the_loss_untouched() -> None:
    word = to_device((INPUTS, "word", None), CPU)[1:]
    assert word == ("word", None)


# ------------------------------------------------------------------------------ batches


@pytest.mark.parametrize(
    ("size", "batch_size"), [(50, 8), (48, 8), (5, 8), (3, 20), (1, 1)]
)
def test_every_epoch_sees_each_example_once(size: int, batch_size: int) -> None:
    indices = epochs(size, batch_size)
    steps = 3 * size  # whole epochs: 3 * batch_size of them
    drawn = torch.cat([indices(step) for step in range(steps)])
    assert all(len(indices(step)) == batch_size for step in range(steps))
    for epoch in drawn.split(size):
        assert epoch.sort().values.tolist() == list(range(size))


def test_the_order_is_new_each_epoch_and_known_from_the_step_alone() -> None:
    indices = epochs(40, 10)
    orders = [torch.cat([indices(4 * e + i) for i in range(4)]) for e in range(3)]
    assert not any(torch.equal(a, b) for a, b in itertools.combinations(orders, 2))
    assert torch.equal(epochs(40, 10)(9), indices(9))
    assert not torch.equal(epochs(40, 10, seed=1)(9), indices(9))


def test_minibatches_keep_rows_together() -> None:
    batch = minibatches(INPUTS, TARGETS, batch_size=7)
    x, y = batch(3, torch.Generator())
    assert x.shape == (7, 6)
    torch.testing.assert_close(x[:, :1] * x[:, 1:2], y)


def test_numbers_differ_by_seed_purpose_and_index() -> None:
    drawn = {
        derive_seed(*key) for key in itertools.product(range(5), range(3), range(50))
    }
    assert len(drawn) == 5 * 3 * 50


def test_batched_gives_what_one_call_gives() -> None:
    sizes: list[int] = []

    def double(x: Tensor) -> Tensor:
        sizes.append(len(x))
        assert not torch.is_grad_enabled()
        return 2 * x

    torch.testing.assert_close(batched(double, INPUTS, size=20), 2 * INPUTS)
    assert sizes == [20, 20, 10]


# ------------------------------------------------------------------------- clear errors


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps is 0, expected a whole number, 1 or more"),
        ({"every": 0}, "every is 0, expected a whole number, 1 or more"),
        ({"seed": -1}, "seed is -1, expected a whole number, 0 or more"),
        ({"warmup": -1}, "warmup is -1, expected a whole number, 0 or more"),
        ({"warmup": 41}, "warmup is 41, more than the 40 steps"),
        ({"lr": 0.0}, "lr is 0.0, expected a number above 0"),
        ({"lr": math.nan}, "lr is nan, expected a number above 0"),
        ({"clip": 0.0}, "clip is 0.0, expected a number above 0"),
        ({"weight_decay": -0.1}, "weight_decay is -0.1, expected 0 or a number above"),
        ({"schedule": "cosin"}, "schedule is 'cosin', expected one of"),
        ({"precision": "fp8"}, "precision is 'fp8', expected one of .*'bf16'"),
        ({"batch": lambda *_: INPUTS}, r"returned a Tensor, expected .* is `\(x,\)`"),
        ({"loss": lambda model, x, y: model(x)}, r"shape \(8, 1\), expected a tensor"),
        (
            {"loss": lambda model, x, y: 0.5},
            "loss returned 0.5, expected a tensor with",
        ),
        ({"loss": lambda model, x, y: y.sum()}, "depends on no trainable parameter"),
        ({"evaluate": lambda model: 0.5}, "evaluate returned a float, expected a dict"),
        ({"evaluate": lambda model: {"loss": 0.5}}, r"the names \['loss'\], expected"),
    ],
)
def test_a_wrong_argument_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(make_model(), **changes)


def test_evaluate_must_keep_its_names() -> None:
    names = iter("ab")
    with pytest.raises(ValueError, match=r"the names \['b'\], expected the same"):
        run(make_model(), evaluate=lambda model: {next(names): 1.0})


def test_a_model_with_nothing_to_train_is_refused() -> None:
    with pytest.raises(ValueError, match="no parameter to train"):
        run(make_model().requires_grad_(False))


def test_wrong_batches_are_named() -> None:
    with pytest.raises(ValueError, match="got 0 examples in batches of 4"):
        epochs(0, 4)
    with pytest.raises(ValueError, match=r"shapes \['\(50, 6\)', '\(3,\)'\]"):
        minibatches(INPUTS, torch.zeros(3), batch_size=4)
    with pytest.raises(ValueError, match="expected one or more"):
        minibatches(batch_size=4)
    with pytest.raises(ValueError, match="size = 0"):
        batched(torch.exp, INPUTS, size=0)
