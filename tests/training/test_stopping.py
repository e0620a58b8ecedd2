"""Early stopping: it ends in time, keeps the best weights, and survives a power cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from test_loop import (
    EVERY,
    PowerCut,
    cut_at,
    make_model,
    noisy_batch,
    run,
    same_weights,
)

from course_utils.training.stopping import EarlyStopping, held_out_loss

FALLS_THEN_RISES = [3.0, 1.0, 2.0, 2.5, 0.5]  # at steps 10, 20, 30, 40, 50


def scripted(numbers: list[float], weights: dict[int, Any] | None = None) -> Any:
    """An `evaluate` that returns `numbers` one by one, and notes the weights."""
    left = iter(numbers)

    def evaluate(model: torch.nn.Module) -> dict[str, float]:
        value = next(left)
        if weights is not None:
            state = model.state_dict().items()
            weights[value] = {k: v.clone() for k, v in state}  # type: ignore[index]
        return {"validation": value}

    return evaluate


def test_it_ends_after_so_many_evaluations_without_a_lower_one() -> None:
    stop = EarlyStopping(patience=2)
    history = run(
        make_model(), steps=50, evaluate=scripted(FALLS_THEN_RISES), early_stop=stop
    )
    assert len(history) == 40
    assert stop.done
    assert (stop.best, stop.step) == (1.0, 20)


def test_the_model_gets_its_best_weights() -> None:
    seen: dict[Any, Any] = {}
    model, stop = make_model(), EarlyStopping(patience=2)
    run(model, steps=50, evaluate=scripted(FALLS_THEN_RISES, seen), early_stop=stop)
    assert all(torch.equal(v, seen[1.0][k]) for k, v in model.state_dict().items())
    assert any(not torch.equal(v, seen[2.5][k]) for k, v in model.state_dict().items())


def test_with_enough_patience_it_runs_to_the_end_and_still_takes_the_best() -> None:
    seen: dict[Any, Any] = {}
    model, stop = make_model(), EarlyStopping(patience=9)
    numbers = [3.0, 1.0, 2.0, 2.5, 2.0]
    history = run(model, steps=50, evaluate=scripted(numbers, seen), early_stop=stop)
    assert len(history) == 50
    assert all(torch.equal(v, seen[1.0][k]) for k, v in model.state_dict().items())


def test_the_same_call_after_a_power_cut_ends_at_the_same_step(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    whole, first = make_model(), EarlyStopping(patience=2)
    run(whole, steps=50, evaluate=scripted(FALLS_THEN_RISES), early_stop=first)
    options: dict[str, Any] = {"steps": 50, "checkpoint": path}
    with pytest.raises(PowerCut):
        run(
            make_model(),
            evaluate=scripted(FALLS_THEN_RISES),
            early_stop=EarlyStopping(patience=2),
            batch=cut_at(35, noisy_batch),
            **options,
        )
    model, second = make_model(), EarlyStopping(patience=2)
    rest = scripted(FALLS_THEN_RISES[3:])
    history = run(model, evaluate=rest, early_stop=second, **options)
    assert len(history) == 40
    assert same_weights(model, whole)


def test_what_ended_early_is_not_trained_on(tmp_path: Path) -> None:
    options: dict[str, Any] = {"steps": 50, "checkpoint": tmp_path / "run.pt"}
    one, other = make_model(), make_model(seed=3)
    for model in (one, other):
        stop = EarlyStopping(patience=2)
        evaluate = scripted(FALLS_THEN_RISES if model is one else [])
        history = run(model, evaluate=evaluate, early_stop=stop, **options)
        assert len(history) == 40
    assert same_weights(one, other)


def test_it_says_how_it_ended(capsys: pytest.CaptureFixture[str]) -> None:
    stop = EarlyStopping(patience=2)
    evaluate = scripted(FALLS_THEN_RISES)
    run(make_model(), steps=50, evaluate=evaluate, early_stop=stop, progress=True)
    said = capsys.readouterr().out
    assert "ended early" in said
    assert "lowest validation 1 after 20 steps" in said


def test_other_patience_is_another_training(tmp_path: Path) -> None:
    options: dict[str, Any] = {"steps": EVERY, "checkpoint": tmp_path / "run.pt"}
    run(make_model(), evaluate=scripted([1.0]), early_stop=EarlyStopping(), **options)
    with pytest.raises(ValueError, match="early_stop was 'validation, 3' and is None"):
        run(make_model(), evaluate=scripted([1.0]), **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EarlyStopping(patience=0), "patience is 0, expected"),
        (lambda: run(make_model(), early_stop=EarlyStopping()), "needs evaluate="),
        (
            lambda: run(
                make_model(), evaluate=scripted([1.0]), early_stop=EarlyStopping("bits")
            ),
            "looks at 'bits', and evaluate returned validation",
        ),
        (lambda: held_out_loss(lambda model: model, []), "got no batch"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_held_out_loss_is_the_mean_over_its_batches() -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(model.weight, 2.0)
    batches = [(torch.tensor([[1.0]]),), (torch.tensor([[3.0]]),)]
    evaluate = held_out_loss(lambda model, x: model(x).mean(), batches, "loss")
    assert evaluate(model) == {"loss": pytest.approx(4.0)}
