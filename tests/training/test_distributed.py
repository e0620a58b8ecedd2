"""Training on many processes: the gradients, the losses and the end of one process."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest
import torch

import course_utils
from course_utils.data.texts import Text
from course_utils.evaluation.decoding import generate
from course_utils.training import checkpoints, distributed

SIZES = "--steps 6 --batch 8 --length 24 --pieces 270 --d-model 24 --heads 3"
SIZES = [*SIZES.split(), "--layers", "1", "--device", "cpu", "--every", "2"]
CPU = torch.device("cpu")


def torchrun(processes: int, *options: str, **how) -> subprocess.CompletedProcess[str]:
    """Run the script as `torchrun` does, offline and on this machine alone."""
    return subprocess.run(command(processes, *options), **settings(), **how)


def command(processes: int, *options: str) -> list[str]:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launch += ["--local_addr=127.0.0.1", f"--nproc_per_node={processes}"]
    return [*launch, "-m", "course_utils.training.distributed", *SIZES, *options]


def settings() -> dict:
    root = str(Path(course_utils.__file__).parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return {"env": environment, "text": True}


def kill_all(launcher: int, mark: str) -> None:
    """Kill the launcher, then the processes it started: those with `mark` as option."""
    os.kill(launcher, signal.SIGKILL)
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)


def visible(state: dict) -> dict:
    """Leave out the keys' bias: no softmax sees it, its gradient is rounding alone."""
    whole = {name: value for name, value in state.items() if "qkv.bias" not in name}
    for name in state.keys() - whole.keys():
        queries, _, values = state[name].chunk(3)
        whole[name] = torch.cat([queries, values])
    return whole


def gap(one: dict, two: dict) -> float:
    assert one.keys() == two.keys()
    return max((one[name] - two[name]).abs().max().item() for name in one)


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    """Six steps on one process, undisturbed."""
    folder = tmp_path_factory.mktemp("alone")
    out, gradient = str(folder / "gpt.pt"), str(folder / "gradient.pt")
    distributed.main([*SIZES, "--out", out, "--save-gradient", gradient])
    return folder


def same_end(path: Path, alone: Path, tolerance: float = 1e-4) -> None:
    mine, theirs = (checkpoints.read(p) for p in (path, alone / "gpt.pt"))
    for name in ("step", "lr"):
        columns = [run["history"]["columns"][name] for run in (mine, theirs)]
        assert columns[0] == columns[1]
    # The saved gradient is clipped, which hides its scale; the norm is not.
    for name, allowed in (("loss", tolerance / 10), ("grad_norm", tolerance)):
        found = [torch.tensor(r["history"]["columns"][name]) for r in (mine, theirs)]
        torch.testing.assert_close(*found, rtol=0, atol=allowed)
    assert gap(visible(mine["model"]), visible(theirs["model"])) < tolerance


@pytest.mark.slow
def test_two_processes_have_the_gradients_and_losses_of_one(tmp_path, alone):
    out, gradient = str(tmp_path / "gpt.pt"), str(tmp_path / "gradient.pt")
    done = torchrun(2, "--out", out, "--save-gradient", gradient, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "2 processes on cpu, 4 of 8 rows each" in done.stdout
    one = torch.load(alone / "gradient.pt", weights_only=True)
    two = torch.load(gradient, weights_only=True)
    assert gap(one, two) < 1e-6
    assert max(g.abs().max().item() for g in one.values()) > 1e-3
    same_end(tmp_path / "gpt.pt", alone)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for them in /proc")
def test_killed_processes_go_on_to_the_same_end(tmp_path):
    """Both are killed at the first checkpoint; one process takes over."""
    longer, out = ["--steps", "60"], tmp_path / "gpt.pt"
    distributed.main([*SIZES, *longer, "--out", str(tmp_path / "whole" / "gpt.pt")])
    how = settings() | {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run = subprocess.Popen(
        command(2, *longer, "--out", str(out)), start_new_session=True, **how
    )
    until = time.monotonic() + 120
    while not out.exists() and run.poll() is None and time.monotonic() < until:
        time.sleep(0.002)
    kill_all(run.pid, str(out))
    run.wait()
    assert 2 <= len(checkpoints.read(out)["history"]["columns"]["step"]) < 60
    assert len(distributed.main([*SIZES, *longer, "--out", str(out), "--resume"])) == 60
    same_end(out, tmp_path / "whole", tolerance=1e-3)


def test_a_run_that_stopped_goes_on_to_bit_equal_weights(tmp_path, alone):
    out = str(tmp_path / "gpt.pt")
    distributed.main([*SIZES, "--out", out, "--stop-after", "4"])
    history = distributed.main([*SIZES, "--out", out, "--resume"])
    whole = checkpoints.read(alone / "gpt.pt")
    assert gap(checkpoints.read(Path(out))["model"], whole["model"]) == 0
    assert history["loss"].tolist() == whole["history"]["columns"]["loss"]


def test_resuming_without_a_checkpoint_begins(tmp_path, alone):
    out = tmp_path / "new" / "gpt.pt"
    distributed.main([*SIZES, "--out", str(out), "--resume"])
    same_end(out, alone)


def test_a_checkpoint_of_other_settings_is_refused(tmp_path, alone):
    with pytest.raises(ValueError, match="seed was 0 and is 5"):
        distributed.main(
            [*SIZES, "--out", str(alone / "gpt.pt"), "--resume", "--seed", "5"]
        )


def test_the_precision_that_was_used_is_kept_and_not_the_word_auto(alone):
    assert checkpoints.read(alone / "gpt.pt")["settings"]["precision"] == "fp32"
    again = [*SIZES, "--out", str(alone / "gpt.pt"), "--resume", "--precision"]
    assert len(distributed.main([*again, "fp32"])) == 6
    with pytest.raises(ValueError, match="precision was 'fp32' and is 'bf16'"):
        distributed.main([*again, "bf16"])


def test_the_seconds_of_training_are_counted(alone):
    seconds = checkpoints.read(alone / "gpt.pt")["history"]["columns"]["seconds"]
    assert seconds == sorted(seconds)
    assert 0 == seconds[0] < seconds[-1]


@pytest.fixture
def second_of_two(monkeypatch) -> list:
    """The environment of a second process, and what it asks of PyTorch, in order."""
    asked: list = []
    for name, value in (("RANK", "1"), ("WORLD_SIZE", "2"), ("LOCAL_RANK", "1")):
        monkeypatch.setenv(name, value)
    note = {"init_process_group": "join", "destroy_process_group": "leave"}
    for name, word in note.items():
        monkeypatch.setattr(
            torch.distributed, name, lambda *a, word=word: asked.append((word, *a))
        )
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda d: asked.append(("on", d)))
    return asked


def test_each_process_takes_its_own_gpu_before_it_joins_the_others(second_of_two):
    with distributed.init_distributed("cuda") as place:
        assert place == (1, 2, torch.device("cuda", 1))
    own = torch.device("cuda", 1)
    assert second_of_two == [("on", own), ("join", "nccl"), ("leave",)]


def test_alone_a_process_takes_the_gpu_that_was_named(second_of_two, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("LOCAL_RANK", "0")
    with distributed.init_distributed("cuda:1") as place:
        assert place.device == torch.device("cuda", 1)
    with (
        pytest.raises(ValueError, match="on its GPU 2"),
        distributed.init_distributed("cuda:2"),
    ):
        pass


def test_after_an_error_no_process_waits_for_the_others(second_of_two):
    with pytest.raises(OSError, match="disk full"), distributed.init_distributed("cpu"):
        raise OSError("disk full")
    assert second_of_two == [("join", "gloo")]


def test_processes_that_found_different_checkpoints_are_refused(monkeypatch):
    def other_begins_at_zero(tensor, op):
        assert op == torch.distributed.ReduceOp.MAX
        tensor.copy_(torch.maximum(tensor, torch.tensor([0, 0])))

    monkeypatch.setattr(torch.distributed, "all_reduce", other_begins_at_zero)
    place = distributed.DistributedContext(0, 2, CPU)
    distributed.require_same_start(0, place)
    with pytest.raises(ValueError, match="from step 0 and some from step 6"):
        distributed.require_same_start(6, place)


@pytest.mark.parametrize("length", [4, 6])  # 9 windows, of which 6 are taken, and 6
def test_the_held_out_loss_does_not_depend_on_the_number_of_processes(
    length, monkeypatch
):
    torch.manual_seed(0)
    model = torch.nn.Embedding(5, 5)
    ids = torch.arange(37) * 3 % 5
    o = argparse.Namespace(length=length, batch=6)

    class Pair(torch.nn.Module):
        def forward(self, tokens):
            return model(tokens), None

    monkeypatch.setattr(distributed, "mean_over_processes", lambda value, place: value)
    found = {
        world: [
            distributed.validation_loss(
                Pair(), ids, o, distributed.DistributedContext(r, world, CPU)
            )
            for r in range(world)
        ]
        for world in (1, 2, 3, 8)
    }
    for shares in found.values():
        assert sum(shares) / len(shares) == pytest.approx(found[1][0])


def test_shares_are_equal_and_together_the_batch():
    rows = torch.arange(12)[:, None]
    shares = [
        distributed.shard(rows, distributed.DistributedContext(r, 3, CPU))
        for r in range(3)
    ]
    assert [len(share) for share in shares] == [4, 4, 4]
    assert torch.equal(torch.cat(shares), rows)


def test_unequal_shares_are_refused_before_anything_is_read(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="8 rows cannot be shared equally by 3"):
        distributed.shard(torch.zeros(8, 2), distributed.DistributedContext(0, 3, CPU))
    monkeypatch.setattr(distributed, "corpus", lambda n: pytest.fail("read the corpus"))
    o = distributed.options([*SIZES, "--out", str(tmp_path / "gpt.pt")])
    with pytest.raises(ValueError, match="8 rows cannot be shared equally by 3"):
        distributed.run(o, distributed.DistributedContext(0, 3, CPU))


def test_the_model_of_a_checkpoint_can_be_used(tmp_path, alone):
    model, encoder = distributed.restored(alone / "gpt.pt")
    saved = checkpoints.read(alone / "gpt.pt")["model"]
    assert gap(model.state_dict(), saved) == 0
    prompt = torch.tensor([encoder.encode("The ")])
    written = generate(model, prompt, 5, top_k=1)[0]
    assert len(written) == prompt.shape[1] + 5
    assert encoder.decode(written.tolist()).startswith("The ")
    other = tmp_path / "other.pt"
    checkpoints.save(other, {"steps": 3}, model=model)
    with pytest.raises(ValueError, match="was not written by this script"):
        distributed.restored(other)


def test_compiled_and_in_bfloat16_the_losses_stay_near(tmp_path, alone, monkeypatch):
    """As on a GPU, but for the kernels: traced into a graph, and 16-bit products."""
    compiled = []

    def traced(module, compile=torch.compile):
        compiled.append(module)
        return compile(module, backend="eager")

    monkeypatch.setattr(torch, "compile", traced)
    options = ["--compile", "--precision", "bf16", "--out", str(tmp_path / "gpt.pt")]
    losses = torch.tensor(distributed.main([*SIZES, *options])["loss"])
    whole = checkpoints.read(alone / "gpt.pt")["history"]["columns"]["loss"]
    assert len(compiled) == 1
    assert 0 < (losses - torch.tensor(whole)).abs().max() < 0.05


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--out", "x.pt"], "--steps"),
        (["--steps", "0", "--out", "x.pt"], "--steps is 0"),
        (["--steps", "2", "--out", "x.pt", "--heads", "7"], "do not divide"),
        (["--steps", "2", "--out", "x.pt", "--d-model", "0"], "--d-model is 0"),
        (["--steps", "2", "--out", "x.pt", "--stop-after", "0"], "--stop-after is 0"),
        (["--steps", "2", "--out", os.devnull], "exists: add --resume"),
        (["--steps", "2", "--out", "x.pt", "--pieces", "9"], "--pieces is 9"),
        (["--steps", "2", "--out", "x.pt", "--seed", "-1"], "--seed is -1"),
        (["--steps", "2", "--out", "x.pt", "--lr", "0"], "--lr 0.0"),
        (["--steps", "2", "--out", "x.pt", "--clip", "0"], "--clip 0.0"),
        (["--steps", "2", "--out", "x.pt", "--dropout", "1"], "--dropout 1.0"),
        (["--steps", "2", "--out", "x.pt", "--device", "gpu"], "--device is 'gpu'"),
        (["--steps", "2", "--out", "x.pt", "--precision", "int8"], "int8"),
    ],
)
def test_bad_options_are_refused_in_words(options, words, capsys):
    with pytest.raises(SystemExit):
        distributed.options(options)
    assert words in capsys.readouterr().err


def test_the_rate_ends_at_its_floor(tmp_path):
    out = ["--out", str(tmp_path / "gpt.pt")]
    rates = distributed.main([*SIZES, *out, "--min-lr", "1e-3", "--steps", "40"])["lr"]
    assert rates[3] == max(rates) == 3e-3
    assert 1e-3 < rates[-1] < 1.02e-3


# --------------------------------------------------------------- the line to copy


def test_the_printed_command_is_one_that_the_script_takes(tmp_path):
    chosen = {
        "steps": 7,
        "out": tmp_path / "gpt.pt",
        "corpus": "library",
        "d_model": 24,
    }
    line = distributed.torchrun_command(2, **chosen)
    launcher, _, rest = line.partition(" -m course_utils.training.distributed ")
    assert launcher == "torchrun --nproc_per_node=2"
    o = distributed.options(rest.split())
    assert (o.steps, o.corpus, o.d_model) == (7, "library", 24)


def test_a_command_needs_a_process():
    with pytest.raises(ValueError, match="n_processes is 0"):
        distributed.torchrun_command(0, steps=1)


def test_another_text_is_learned_from_whole_documents(monkeypatch):
    documents = [f"def f{i}(x):\n    return x + {i}\n" for i in range(40)]
    monkeypatch.setattr(distributed, "load_text", lambda name: Text(name, documents))
    found = distributed.corpus(300, "library")
    learned = found.encoder.decode(found.train.tolist())
    held_out = found.encoder.decode(found.validation.tolist())
    assert sum(d.strip() in learned for d in documents) >= 36
    assert not any(d in learned for d in held_out.split("\n\n"))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks processes")
def test_a_model_that_outlives_its_group_ends(tmp_path: Path):
    """Sixty groups are left while DistributedDataParallel still refers to them."""
    script = """
        import os, sys, torch
        from torch.nn.parallel import DistributedDataParallel
        from course_utils.training.distributed import init_distributed

        def once():
            with init_distributed("cpu"):
                model = DistributedDataParallel(torch.nn.Linear(50, 50))
                model(torch.ones(4, 50)).sum().backward()
                torch.distributed.all_reduce(torch.ones(1))

        child = os.fork()
        os.environ["RANK"] = "0" if child else "1"
        os.environ |= {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
        for port in sys.argv[1].split(","):
            os.environ["MASTER_PORT"] = port
            once()
        if child:
            sys.exit(os.waitpid(child, 0)[1])
        os._exit(0)
    """
    taken = b"EADDRINUSE"  # by another program, since the port was found free
    for _ in range(3):
        code, said = run_on_free_ports(dedent(script), 60)
        if not (code and taken in said):
            break
    assert code == 0, said.decode()[-2000:]


def run_on_free_ports(script: str, count: int) -> tuple[int, bytes]:
    """Run a script on free ports; return its exit code and what it complained of."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = ",".join(str(each.getsockname()[1]) for each in sockets)
    for each in sockets:
        each.close()
    process = subprocess.Popen(
        [sys.executable, "-c", script, ports],
        start_new_session=True,
        stderr=subprocess.PIPE,
    )
    try:
        _, said = process.communicate(timeout=200)
        return process.returncode, said
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
