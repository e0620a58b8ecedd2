"""A model split over two processes: half the bytes each, and the end of one process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from torch import nn

import course_utils
from course_utils.models.transformer import GPT
from course_utils.training import checkpoints, distributed, sharding

SCRIPT = Path(__file__).with_name("sharded_training.py")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks processes")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    root = str(Path(course_utils.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPT), str(folder)]
    with (folder / "said.txt").open("w+") as said:
        process = subprocess.Popen(
            command, env=environment, stdout=said, stderr=said, start_new_session=True
        )
        try:
            code = process.wait(timeout=300)
        finally:  # those that it forked, too
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        said.seek(0)
        assert code == 0, said.read()[-3000:]
    return folder


def visible(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Leave out the keys' bias: no softmax sees it, its gradient is rounding alone."""
    cut = {n: x.chunk(3) for n, x in state.items() if "qkv.bias" in n}
    return state | {n: torch.cat([q, v]) for n, (q, _, v) in cut.items()}


def gap(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> float:
    assert one.keys() == two.keys()
    return max((one[name] - two[name]).abs().max().item() for name in one)


def test_the_gathered_gradient_is_that_of_one_process(runs):
    one, two = (
        torch.load(runs / f"{name}-gradient.pt", weights_only=True)
        for name in ("one", "two")
    )
    assert gap(one, two) < 1e-6
    assert max(g.abs().max().item() for g in one.values()) > 1e-3


@pytest.mark.parametrize("name", ["two", "two-one", "one-two"])
def test_losses_and_weights_are_those_of_one_process(runs, name):
    """Also where two processes went on from one, and one from two."""
    found = sharding.read_about(runs / name)
    assert found is not None
    mine = found[1]["history"]["columns"]
    theirs = checkpoints.read(runs / "one.pt")
    columns = theirs["history"]["columns"]
    assert mine["step"] == columns["step"] == list(range(6))
    for what in ("loss", "grad_norm", "validation"):
        both = [torch.tensor(c[what]) for c in (mine, columns)]
        torch.testing.assert_close(*both, rtol=0, atol=1e-5)
    model, _ = distributed.restored(runs / name)
    assert gap(visible(model.state_dict()), visible(theirs["model"])) < 1e-4
    untrained = torch.tensor(columns["loss"][0]) - torch.tensor(columns["loss"][-1])
    assert untrained > 0.1  # something was learned that could differ


def test_only_the_last_state_is_kept(runs):
    folders = sorted(p.name for p in (runs / "two").iterdir())
    assert folders == ["latest", "step-00000006"]
    shares = list((runs / "two" / "step-00000006").glob("*.distcp"))
    sizes = [p.stat().st_size for p in shares]
    assert len(sizes) == 2
    assert max(sizes) < 2 / 3 * sum(sizes)  # neither wrote it all


def counted(runs: Path, kind: str) -> list[dict]:
    return [json.loads(p.read_text()) for p in sorted(runs.glob(f"{kind}-*.json"))]


def test_each_of_two_processes_holds_half(runs):
    (one,) = counted(runs, "one process")
    for found in counted(runs, "DDP"):
        assert found["held"] == one["held"]
    halves = counted(runs, "FSDP")
    assert len(halves) == 2
    for part in one["held"]:
        for half in halves:
            assert half["held"][part] == pytest.approx(one["held"][part] / 2, rel=0.03)
    assert halves[0]["all"] == sum(one["held"].values())


@pytest.mark.parametrize("kind", sharding.KINDS)
def test_counted_bytes_are_those_of_the_formula(runs, kind):
    for found in counted(runs, kind):
        held, sent = found["expected"]
        assert sum(found["held"].values()) == pytest.approx(held, rel=0.03)
        assert found["sent"] == pytest.approx(sent, rel=0.03)


def test_a_block_is_gathered_twice_and_its_gradient_sent_once(runs):
    for found in counted(runs, "FSDP"):
        calls = found["calls"]
        # two blocks twice, and what is outside of them once
        assert calls.count("c10d._allgather_base_") == 2 * 2 + 1
        assert calls.count("c10d._reduce_scatter_base_") == 3


def test_splitting_sends_more_and_holds_less_than_copies():
    model = GPT(50, 16, 24, 3, 2)
    for n in (2, 4, 8):
        copies, shares = (sharding.step_bytes(model, n, k) for k in ("DDP", "FSDP"))
        assert shares[0] == copies[0] // n
        assert copies[1] < shares[1] < 1.5 * copies[1]
    with pytest.raises(ValueError, match="kind is 'ZeRO'"):
        sharding.step_bytes(model, 2, "ZeRO")
    with pytest.raises(ValueError, match="n_processes is 0"):
        sharding.step_bytes(model, 0, "DDP")


def test_what_cant_be_split_or_resumed_is_refused(runs, tmp_path):
    with pytest.raises(ValueError, match="has no `blocks`"):
        sharding.blocks_of(nn.Linear(2, 2))
    with pytest.raises(ValueError, match=r"one\.pt is no sharded checkpoint"):
        sharding.read_about(runs / "one.pt")
    assert sharding.read_about(tmp_path / "nothing") is None
    (tmp_path / "step-00000003").mkdir()  # stopped while the first was written
    assert sharding.read_about(tmp_path) is None
    other = ["--steps", "9", "--shard", "--resume", "--out", str(runs / "two")]
    with pytest.raises(ValueError, match="steps was 6 and is 9"):
        distributed.main([*other, "--device", "cpu", "--batch", "8"])
