"""A watched training: what was reached can be drawn and read, whenever it ends."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from torch import Tensor, nn

from course_utils.display import watch as watching
from course_utils.display.watch import Watch, against_seconds, show_against_seconds
from course_utils.training import progress
from course_utils.training.history import TrainingInterrupted
from course_utils.training.loop import train

X = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))


def batch(step: int, generator: torch.Generator) -> tuple[Tensor]:
    return (X[torch.randint(40, (8,), generator=generator)],)


def loss(model: nn.Module, x: Tensor) -> Tensor:
    return (model(x) - x.sum(dim=1, keepdim=True)).square().mean()


def learn(watch: Watch, steps: int = 30, **options: Any) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Linear(3, 1)

    def evaluate(model: nn.Module) -> dict[str, float]:
        return {"validation": loss(model, X).item()}

    options = {"every": 10, "evaluate": evaluate, "progress": False, **options}
    train(model, options.pop("batch", batch), loss, steps=steps, watch=watch, **options)
    return model


def test_both_losses_are_drawn() -> None:
    watch = Watch()
    learn(watch)
    training, held_out = watch.plot("title").get_lines()
    assert np.allclose(training.get_ydata(), watch.history["loss"])
    assert list(held_out.get_xdata()) == [10, 20, 30]
    assert np.allclose(held_out.get_ydata(), watch.history["validation"])


def test_two_trainings_are_drawn_in_bits_against_their_seconds() -> None:
    watched = {"GPT, small": Watch(), "GPT, large": Watch()}
    for watch in watched.values():
        learn(watch)
    axes = against_seconds(watched)
    for line, watch in zip(axes.get_lines(), watched.values(), strict=True):
        seconds = watch.history["seconds"][[9, 19, 29]]
        assert np.allclose(line.get_xdata(), seconds)
        bits = watch.history["validation"] / np.log(2)
        assert np.allclose(line.get_ydata(), bits)
    assert [line.get_linestyle() for line in axes.get_lines()] == ["--", "-"]


def test_the_words_below_say_which_is_which(capsys: pytest.CaptureFixture[str]) -> None:
    watched = {"GPT, small": Watch(), "GPT, large": Watch()}
    for watch in watched.values():
        learn(watch)
    show_against_seconds(watched)
    assert "solid: GPT, large; dashed: GPT, small" in capsys.readouterr().out


def test_a_run_without_an_evaluation_has_no_curve() -> None:
    watched = {"GPT, small": Watch(), "GPT, large": Watch()}
    learn(watched["GPT, small"])
    assert len(against_seconds(watched).get_lines()) == 1
    del watched["GPT, small"]
    with pytest.raises(ValueError, match="no training has a held-out loss"):
        against_seconds(watched)


def test_a_long_curve_is_drawn_as_means_of_some_steps() -> None:
    watch = Watch()
    learn(watch, steps=500)
    training, _ = watch.plot().get_lines()
    y = np.asarray(training.get_ydata())
    assert len(y) == watching.POINTS
    assert y[0] == pytest.approx(watch.history["loss"][:5].mean())


def test_a_sample_comes_every_so_often_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = iter(range(0, 10_000, 10))  # every look at the clock is ten seconds later
    monkeypatch.setattr(watching.time, "monotonic", lambda: float(next(now)))
    watch = Watch(lambda model: f"{model.weight.norm():.6f}", every=60)
    learn(watch)
    steps = [sample.step for sample in watch.samples]
    assert 3 <= len(steps) < 30
    assert steps[-1] == 30
    assert len({sample.text for sample in watch.samples}) == len(set(steps))
    assert f"after {steps[0]} steps" in watch.read()


def test_watching_changes_no_weight() -> None:
    def noisy(model: nn.Module) -> str:
        torch.rand(3)
        return "text"

    one, other = learn(Watch()), learn(Watch(noisy, every=1e-9))
    assert torch.equal(one.weight, other.weight)


def test_after_an_interrupt_it_holds_what_was_reached(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def pressed(step: int, generator: torch.Generator) -> tuple[Tensor]:
        if step == 12:
            signal.raise_signal(signal.SIGINT)
        return batch(step, generator)

    watch = Watch(lambda model: "what it writes")
    path = tmp_path / "run.pt"
    try:
        with pytest.raises(TrainingInterrupted, match="run the cell again") as stopped:
            learn(watch, batch=pressed, checkpoint=path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert "Stopped after 13 of 30 steps" in str(stopped.value)
    assert len(watch.history) == 13
    assert watch.samples[-1].step == 13
    assert watch.plot().get_lines()
    learn(watch, checkpoint=path)  # only the same call goes on
    assert len(watch.history) == 30


# --------------------------------------------------------------------- in a notebook


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """What a kernel's shell is given to display."""
    shell = InteractiveShell.instance()
    publisher = CapturingDisplayPublisher()
    monkeypatch.setattr(shell, "display_pub", publisher)
    monkeypatch.setattr(progress, "place", lambda: "notebook")
    monkeypatch.setitem(sys.modules, "IPython", sys.modules["IPython"])
    yield publisher.outputs
    InteractiveShell.clear_instance()


def test_the_drawing_is_renewed_in_place(
    outputs: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "REDRAW", 0.0)
    learn(Watch(lambda model: "<b> & so on"), steps=6)
    assert len(outputs) == 6  # from the second step on, and once more at the end
    ids = {output["transient"]["display_id"] for output in outputs}
    assert len(ids) == 1
    assert not outputs[0].get("update")
    assert all(output["update"] for output in outputs[1:])
    page = outputs[-1]["data"]["text/html"]
    assert "<svg" in page
    assert watching.ALT in page
    assert "&lt;b&gt; &amp; so on" in page


def test_nowhere_nothing_is_drawn(
    outputs: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "place", lambda: "nowhere")
    monkeypatch.setattr(watching, "REDRAW", 0.0)
    learn(Watch(), steps=6)
    assert not outputs


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Watch(every=0), "every is 0, expected seconds"),
        (lambda: Watch(every="1 min"), "every is '1 min', expected seconds"),
        (lambda: Watch().plot(), "nothing was watched yet"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
