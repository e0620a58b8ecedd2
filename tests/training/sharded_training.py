"""Run by `test_sharding`: forks processes that train together, on one import of torch.

    python sharded_training.py FOLDER

writes into FOLDER what each way of training comes to, and bytes.json, what it counted.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from course_utils.models.transformer import GPT
from course_utils.training import distributed, sharding
from course_utils.training.loop import adamw

SIZES = "--steps 6 --batch 8 --length 24 --pieces 270 --d-model 24 --heads 3"
SIZES = [*SIZES.split(), "--layers", "2", "--device", "cpu", "--every", "3"]
CPU = torch.device("cpu")
FOLDER = Path(sys.argv[1])


def together(n: int, work: Callable[[], object]) -> None:
    """Do `work` in n processes that torch.distributed knows as one group."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    children = []
    for rank in range(n):
        child = os.fork()
        if child == 0:
            numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": n}
            os.environ.update({name: str(value) for name, value in numbers.items()})
            os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
            try:
                work()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        children.append(child)
    failed = [child for child in children if os.waitpid(child, 0)[1]]
    if failed:
        sys.exit(f"{len(failed)} of {n} processes failed")


def train(out: str, *options: str) -> None:
    distributed.main([*SIZES, "--out", str(FOLDER / out), *options])


def count(kind: str) -> None:
    """Count what a process holds after a step, and what the second step sent."""
    with distributed.init_distributed("cpu") as place:
        torch.manual_seed(0)
        model = GPT(50, 16, 24, 3, 2)
        expected = sharding.step_bytes(model, place.world, kind)
        parallel: torch.nn.Module = model
        if kind == "FSDP":
            sharding.shard_model(model, CPU)
        elif kind == "DDP":
            parallel = DistributedDataParallel(model, broadcast_buffers=False)
        optimiser = adamw(model, 1e-3, 0.1)
        tokens = torch.arange(2 * 16).view(2, 16) % 50
        for _ in range(2):
            optimiser.zero_grad()
            with sharding.SentBytes() as sent:
                distributed.next_token_loss(parallel, tokens, tokens).backward()
            optimiser.step()
        held = sharding.held_bytes(model, optimiser)
        gathered = torch.tensor([held.total])
        if place.world > 1:
            dist.all_reduce(gathered)
        found = {
            "expected": expected,
            "held": held._asdict(),
            "all": gathered.item(),
            "sent": sent.total,
            "calls": [name for name, _ in sent.calls],
        }
        (FOLDER / f"{kind}-{place.rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    torch.set_num_threads(1)
    text = distributed.corpus(270)
    distributed.corpus = lambda *_: text  # read once
    train("one.pt", "--save-gradient", str(FOLDER / "one-gradient.pt"))
    gradient = str(FOLDER / "two-gradient.pt")
    together(2, lambda: train("two", "--shard", "--save-gradient", gradient))
    together(2, lambda: train("two-one", "--shard", "--stop-after", "3"))
    train("two-one", "--shard", "--resume")
    train("one-two", "--shard", "--stop-after", "3")
    together(2, lambda: train("one-two", "--shard", "--resume"))
    count("one process")
    together(2, lambda: count("DDP"))
    together(2, lambda: count("FSDP"))
