"""Train the GPT of chapter 13 on one process or on many, with the same result.

    python -m course_utils.training.distributed --steps 200 --out gpt.pt
    torchrun --nproc_per_node=2 -m course_utils.training.distributed --steps 200

Every process takes its share of the rows of each batch. It holds the whole model, and
`DistributedDataParallel` averages the gradients, or its share (--shard). The batch of a
step is the same for any number of processes, so a run may even go on with another
number of them. On CPUs they talk by gloo, on GPUs by NCCL. `restored("gpt.pt")` gives
the trained model back. Taught in chapter 15, which see.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from course_utils.data.batches import DATA, NOISE, derive_seed, to_device
from course_utils.data.bpe import BytePairEncoder
from course_utils.data.corpus import pydoc_text, split_blocks
from course_utils.data.sequences import consecutive_windows, random_windows
from course_utils.data.texts import NAMES, load_text, split_documents
from course_utils.models.transformer import GPT
from course_utils.runtime import base_seed
from course_utils.runtime import device as best_device
from course_utils.training import checkpoints, sharding
from course_utils.training.floor import lr_with_floor
from course_utils.training.history import History, require_finite
from course_utils.training.loop import adamw, compute_gradients, seed_dropout
from course_utils.training.precision import (
    DTYPES,
    FP16_PATIENCE,
    chosen_precision,
    mixed_precision,
)

LEARN_PIECES_FROM = 4_000_000  # characters that are enough to learn the pieces from

# ----------------------------------------------------------------------- who am I?


class DistributedContext(NamedTuple):
    """Which of how many processes this is, and the device it computes on."""

    rank: int
    world: int
    device: torch.device

    def say(self, text: str) -> None:
        """Print on the first process only."""
        if self.rank == 0:
            print(text, flush=True)


LEFT: list[Any] = []  # groups: DDP, if it held the last reference, would never end


@contextmanager
def init_distributed(chosen: str | None = None) -> Iterator[DistributedContext]:
    """Join the other processes that torchrun started, and leave with them at the end.

    torchrun tells each process its number in the environment; without it there is one.
    """
    rank, world = (
        int(os.environ.get(k, d)) for k, d in (("RANK", 0), ("WORLD_SIZE", 1))
    )
    local = int(os.environ.get("LOCAL_RANK", 0))
    device = torch.device(chosen) if chosen else best_device()
    if world > 1 and device.type == "mps":
        device = torch.device("cpu")  # no way of averaging gradients there
    if device.type == "cuda":
        chosen_one = world == 1 and device.index is not None  # --device cuda:3
        index = device.index if chosen_one else local
        if index >= torch.cuda.device_count():
            raise ValueError(
                f"process {local} of this machine is to compute on its GPU {index}, "
                f"counted from 0, and there are {torch.cuda.device_count()}; start as "
                "many processes as there are GPUs, or add --device cpu."
            )
        device = torch.device("cuda", index)
        torch.cuda.set_device(device)
    if world == 1:
        yield DistributedContext(rank, world, device)
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    yield DistributedContext(rank, world, device)
    # Only if all went well: leaving waits for the others. After an error they may be
    # waiting for this process, and torchrun, which sees it end, will end them too.
    LEFT.append(dist.group.WORLD)
    dist.destroy_process_group()


def require_equal_shares(n_rows: int, world: int) -> None:
    """Refuse a batch that some process would have more rows of than another."""
    if n_rows % world:
        raise ValueError(
            f"a batch of {n_rows} rows cannot be shared equally by {world} processes, "
            "and with unequal shares the mean of their gradients is not the gradient "
            f"of the whole batch; choose a multiple of {world} for --batch."
        )


def shard(rows: Tensor, place: DistributedContext) -> Tensor:
    """Take this process's share of the rows of a batch: equal shares, in order."""
    require_equal_shares(len(rows), place.world)
    return rows.chunk(place.world)[place.rank]


def mean_over_processes(value: Tensor, place: DistributedContext) -> Tensor:
    """Average a number over all processes (each gets the average)."""
    value = value.detach().clone()
    if place.world > 1:
        dist.all_reduce(value)
    return value / place.world


def require_same_start(start: int, place: DistributedContext) -> None:
    """Refuse to go on from different steps: the processes would mix their states."""
    if place.world == 1:
        return
    ends = torch.tensor([start, -start], device=place.device)
    dist.all_reduce(ends, op=dist.ReduceOp.MAX)
    last, first = ends[0].item(), -ends[1].item()
    if first != last:
        raise ValueError(
            f"some processes would go on from step {first} and some from step {last}; "
            "--out must name one file that every machine can read."
        )


# --------------------------------------------------------------------- what is trained


class Corpus(NamedTuple):
    """Ids of the text to learn from and of the text held out, and what they mean."""

    train: Tensor
    validation: Tensor
    encoder: BytePairEncoder

    def sign(self) -> dict[str, str]:
        """Tell this text from that of another Python: other help topics, other ids."""
        return {"text": f"{len(self.train)} + {len(self.validation)} pieces"}


def corpus(n_pieces: int, name: str = "help") -> Corpus:
    """Read a text as pieces; every process comes to the same ones.

    "help" is Python's help topics, the others are those of `texts.load_text`.
    """
    if name == "help":
        text = split_blocks(pydoc_text(), validation=0.1)
    else:
        text = split_documents(load_text(name).documents)
    encoder = BytePairEncoder.train(text.train[:LEARN_PIECES_FROM], n_pieces)
    learned, held_out = (
        torch.tensor(encoder.encode(part)) for part in (text.train, text.validation)
    )
    return Corpus(learned, held_out, encoder)


def build(o: argparse.Namespace, n_tokens: int) -> GPT:
    """Build the model that the options describe, with random weights."""
    sizes = {"d_model": o.d_model, "n_heads": o.heads, "n_layers": o.layers}
    return GPT(n_tokens, o.length, **sizes, dropout=o.dropout)


def restored(path: str | Path) -> tuple[GPT, BytePairEncoder]:
    """Return the model of a checkpoint, ready to write, and the encoder of its text.

    `generate(model, torch.tensor([encoder.encode("The ")]), 50)` of `decoding` goes on
    from a beginning, and `encoder.decode` makes it text.
    """
    sharded = sharding.read_about(path) if Path(path).is_dir() else None
    saved = sharded[1] if sharded else checkpoints.read(Path(path))
    if "pieces" not in saved["settings"]:
        raise ValueError(
            f"the checkpoint {path} was not written by this script, and does not say "
            "how its model was built; build that model and load `['model']` into it."
        )
    o = argparse.Namespace(**saved["settings"])
    text = corpus(o.pieces, getattr(o, "corpus", "help"))
    checkpoints.require_same_settings(Path(path), {"text": o.text}, text.sign())
    model = build(o, len(text.encoder))
    weights = sharding.read_weights(path, model) if sharded else saved["model"]
    model.load_state_dict(weights)
    return model.eval(), text.encoder


def next_token_loss(model: nn.Module, tokens: Tensor, following: Tensor) -> Tensor:
    """Return the mean cross-entropy of every next token."""
    logits, _ = model(tokens)
    return F.cross_entropy(logits.flatten(0, 1), following.flatten())


def validation_loss(
    model: nn.Module, ids: Tensor, o: Any, place: DistributedContext
) -> float:
    """Measure the first windows of the held-out text, as many as a batch has rows.

    Each process takes its share; if they cannot be shared equally, each takes them all.
    """
    windows = [part[: o.batch] for part in consecutive_windows(ids, o.length)]
    if len(windows[0]) % place.world == 0:
        windows = [shard(part, place) for part in windows]
    model.eval()
    with torch.no_grad():
        value = next_token_loss(model, *to_device(windows, place.device))
    model.train()
    return mean_over_processes(value, place).item()


# --------------------------------------------------------------------------- the loop


def run(o: argparse.Namespace, place: DistributedContext) -> History:
    """Train as the options say, from the start or from where the checkpoint ends."""
    require_equal_shares(o.batch, place.world)
    text = corpus(o.pieces, o.corpus)
    # the same weights in every process
    torch.manual_seed(derive_seed(o.seed, NOISE, 0))
    model = build(o, len(text.encoder))
    n_parameters = sum(p.numel() for p in model.parameters())
    if o.shard:
        sharding.shard_model(model, place.device)
    else:
        model.to(place.device)
    optimiser = adamw(model, o.lr, o.weight_decay)
    precision = chosen_precision(o.precision, place.device)
    autocast, scaler = mixed_precision(precision, place.device)
    if o.shard and scaler.is_enabled():
        raise ValueError("fp16 is not for --shard; choose --precision bf16 or fp32.")
    history = History()
    state: dict[str, Any] = {"model": model, "optimiser": optimiser}
    state |= {"history": history} | ({} if o.shard else {"scaler": scaler})
    store: Any = sharding if o.shard else checkpoints
    settings = {name: value for name, value in vars(o).items() if name not in FREE}
    settings |= {"COURSE_SEED": base_seed(), "precision": precision}  # never "auto"
    settings |= text.sign()
    if o.resume:
        store.resume(o.out, settings, **state)
    require_same_start(len(history), place)
    parallel: nn.Module = model
    if place.world > 1 and not o.shard:
        one = [place.device] if place.device.type == "cuda" else None
        parallel = DistributedDataParallel(model, device_ids=one)
    forward = torch.compile(parallel) if o.compile else parallel
    start, stop = len(history), min(o.stop_after or o.steps, o.steps)
    place.say(
        f"{n_parameters:,} parameters, {place.world} process{'es' * (place.world > 1)} "
        f"on {place.device.type}, {o.batch // place.world} of {o.batch} rows each, "
        f"{precision}; from step {start}"
    )

    model.train()
    for step in range(start, stop):
        started = time.perf_counter()
        rate = lr_with_floor(step, o.steps, o.lr, o.steps // 10, floor=o.min_lr or 0.0)
        for group in optimiser.param_groups:
            group["lr"] = rate
        seed_dropout(
            derive_seed(o.seed, NOISE, step * place.world + place.rank), place.device
        )
        generator = torch.Generator().manual_seed(derive_seed(o.seed, DATA, step))
        whole = random_windows(text.train, o.length, o.batch, generator)
        mine = to_device([shard(part, place) for part in whole], place.device)
        value, norm = compute_gradients(
            forward, mine, next_token_loss, optimiser, scaler, autocast, o.clip
        )
        norm = sharding.whole(norm)
        history.record(step, mean_over_processes(value, place), rate, norm)
        if step == 0 and o.save_gradient:
            save_gradient(model, o.save_gradient, place)
        due = (step + 1) % o.every == 0 or step + 1 == stop
        if due:
            require_finite(history, model, FP16_PATIENCE if scaler.is_enabled() else 1)
        scaler.step(optimiser)
        scaler.update()
        history.elapsed += time.perf_counter() - started
        if due:
            held_out = validation_loss(model, text.validation, o, place)
            history.record_evaluation(step + 1, {"validation": held_out})
            learned = history["loss"][-1]
            place.say(f"step {step + 1}: loss {learned:.4f}, held out {held_out:.4f}")
            if o.shard or place.rank == 0:  # each its share, or one the state of all
                store.save(o.out, settings, **state)
    model.eval()
    return history


def save_gradient(model: nn.Module, path: str, place: DistributedContext) -> None:
    """Write the gradient as it is now, by the parameters' names, for any device."""
    named = ((name, p.grad) for name, p in model.named_parameters())
    found = {name: sharding.whole(g).cpu() for name, g in named if g is not None}
    if place.rank == 0:
        torch.save(found, path)


# ------------------------------------------------------------------------ the command


# May differ between a run and its continuation; the others decide the result.
FREE = {"out", "resume", "stop_after", "save_gradient", "device", "compile", "every"}
FREE.add("shard")


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line, and refuse numbers with which no training is possible."""
    parser = argparse.ArgumentParser(
        prog="course_utils.training.distributed",
        description="Train a GPT on a text, on one process or on many.",
    )
    add = parser.add_argument
    add("--steps", type=int, required=True, help="updates in all")
    add("--out", required=True, help="the checkpoint file, written every so often")
    add("--resume", action="store_true", help="go on from --out, if it is there")
    add("--stop-after", type=int, help="stop after this step (to go on later)")
    add("--batch", type=int, default=32, help="rows a step, over all processes")
    add("--length", type=int, default=128, help="tokens a row")
    add("--corpus", default="help", choices=NAMES, help="the text to learn from")
    add("--pieces", type=int, default=512, help="size of the vocabulary")
    add("--d-model", type=int, default=128)
    add("--heads", type=int, default=4)
    add("--layers", type=int, default=4)
    add("--dropout", type=float, default=0.0, help="differs by number of processes")
    add("--lr", type=float, default=3e-3)
    add("--min-lr", type=float, help="where the rate ends; 0, if not given")
    add("--weight-decay", type=float, default=0.1)
    add("--clip", type=float, default=1.0)
    add("--seed", type=int, default=0)
    add("--every", type=int, default=100, help="steps between two checkpoints")
    add("--device", help="cpu, cuda, mps; the best there is, if not given")
    add("--precision", default="auto", choices=("auto", *DTYPES))
    add("--compile", action="store_true", help="torch.compile; pays on a GPU")
    add("--shard", action="store_true", help="split the model; --out is a folder")
    add("--save-gradient", help="a file for the gradient of the first step")
    o = parser.parse_args(arguments)
    least = dict.fromkeys(("batch", "length", "d_model", "heads", "layers"), 1)
    least |= {"steps": 1, "every": 1, "stop_after": 1, "seed": 0, "pieces": 256}
    for name, at_least in least.items():
        value = getattr(o, name)
        if value is not None and value < at_least:
            name = name.replace("_", "-")
            parser.error(f"--{name} is {value}, expected {at_least} or more")
    if not (o.lr > 0 and o.clip > 0 and o.weight_decay >= 0 and 0 <= o.dropout < 1):
        parser.error(
            f"--lr {o.lr} and --clip {o.clip} must be above 0, --weight-decay "
            f"{o.weight_decay} not below, --dropout {o.dropout} from 0 to below 1"
        )
    if o.device and o.device.split(":")[0] not in ("cpu", "cuda", "mps"):
        parser.error(f"--device is {o.device!r}, expected cpu, cuda, cuda:1 or mps")
    if o.d_model % o.heads:
        parser.error(f"--heads {o.heads} do not divide --d-model {o.d_model}")
    if Path(o.out).exists() and not o.resume:
        parser.error(f"{o.out} exists: add --resume to go on, or choose another --out")
    return o


def torchrun_command(n_processes: int, **chosen: Any) -> str:
    """Write the line that starts this training on several GPUs of one machine.

    `torchrun_command(2, steps=100, out="gpt.pt")`. Used in chapter 13.
    """
    if n_processes < 1:
        raise ValueError(f"n_processes is {n_processes}, expected 1 or more.")
    written = " ".join(f"--{k.replace('_', '-')} {v}" for k, v in chosen.items())
    module = "course_utils.training.distributed"
    return f"torchrun --nproc_per_node={n_processes} -m {module} {written}"


def main(arguments: Sequence[str] | None = None) -> History:
    """Train on this process, together with those that torchrun started beside it."""
    o = options(arguments)
    with init_distributed(o.device) as place:
        return run(o, place)


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        sys.exit(f"course_utils.training.distributed: {error}")
