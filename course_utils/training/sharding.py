"""Split a model over processes: each holds a share of weights, gradients and AdamW.

PyTorch's `fully_shard` (FSDP2) gathers one block's weights when they are needed and
forgets them after; gradients are averaged and split in one go. The state is kept by
`torch.distributed.checkpoint`, every process writing its share, so that another number
of processes can go on. The script `distributed` does all of it:

    torchrun --nproc_per_node=2 -m course_utils.training.distributed --shard --out gpt …
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.training.checkpoints import ADVICE, require_same_settings
from course_utils.training.history import History

FORMAT = "course_utils sharded checkpoint 1"
KINDS = ("one process", "DDP", "FSDP")


def shard_model(model: nn.Module, device: torch.device) -> nn.Module:
    """Split every parameter over the processes, block by block; changes the model.

    Rank r keeps rows r n / W to (r + 1) n / W of each matrix of n rows. A block's whole
    weights exist only while it computes; those outside the blocks (the embedding) from
    the forward pass to the backward pass. With one process nothing is split.
    """
    if not dist.is_initialized():
        return model.to(device)
    from torch.distributed.fsdp import fully_shard  # from PyTorch 2.6 on

    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for block in blocks_of(model):  # the model comes from the CPU, one block at a time
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def blocks_of(model: nn.Module) -> list[nn.Module]:
    """Return the parts that are gathered one at a time."""
    blocks = getattr(model, "blocks", None)
    if not isinstance(blocks, nn.ModuleList):
        raise ValueError(
            "the model has no `blocks`, an nn.ModuleList: gathered as one, all of it "
            "would be in every process at once."
        )
    return list(blocks)


def whole(x: Tensor) -> Tensor:
    """Give all of a tensor that may be split; every process has to ask."""
    return x.full_tensor() if hasattr(x, "full_tensor") else x


# ------------------------------------------------------------------------ checkpoints


def save(
    path: str | Path,
    settings: dict[str, Any],
    *,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    history: History,
) -> None:
    """Write a checkpoint, a folder, each process its own share; all have to call it.

    The new state gets a folder of its own, and the file `latest` names it once it is
    whole. Then the older one goes.
    """
    path = Path(path)
    new = path / f"step-{len(history):08d}"
    weights, moments = get_state_dict(model, optimiser)
    alone = not dist.is_initialized()
    new.mkdir(parents=True, exist_ok=True)
    state = {"model": weights, "optimiser": moments}
    transfer(dcp.save, state, new)
    if alone or dist.get_rank() == 0:
        about = {"format": FORMAT, "settings": settings}
        torch.save(about | {"history": history.state_dict()}, new / "run.pt")
        (path / "latest.part").write_text(new.name, encoding="utf-8")
        os.replace(path / "latest.part", path / "latest")
        for old in path.glob("step-*"):
            if old != new:
                shutil.rmtree(old)
    if not alone:
        dist.barrier()


def read_about(path: str | Path) -> tuple[Path, dict[str, Any]] | None:
    """Return the folder of the last state and what it says of the run, if there is one.

    A file, or a folder of something else, is refused with a sentence.
    """
    path = Path(path)
    if not path.exists():
        return None
    if not (path / "latest").is_file():
        if path.is_dir() and all(p.name.startswith("step-") for p in path.iterdir()):
            return None  # stopped before the first state was whole
        raise ValueError(f"{path} is no sharded checkpoint, a folder: {ADVICE}")
    folder = path / (path / "latest").read_text(encoding="utf-8").strip()
    about = torch.load(folder / "run.pt", map_location="cpu", weights_only=True)
    if about.get("format") != FORMAT:
        raise ValueError(f"{path} was not written by this version: {ADVICE}")
    return folder, about


def resume(
    path: str | Path,
    settings: dict[str, Any],
    *,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    history: History,
) -> bool:
    """Go on from a checkpoint of any number of processes; False if nothing is there."""
    found = read_about(path)
    if found is None:
        return False
    folder, about = found
    require_same_settings(Path(path), about["settings"], settings)
    weights, moments = get_state_dict(model, optimiser)
    state: dict[str, Any] = {"model": weights, "optimiser": moments}
    transfer(dcp.load, state, folder)
    set_state_dict(
        model,
        optimiser,
        model_state_dict=state["model"],
        optim_state_dict=state["optimiser"],
    )
    optimiser.zero_grad()
    history.load_state_dict(about["history"])
    return True


def read_weights(path: str | Path, model: nn.Module) -> dict[str, Tensor]:
    """Return the whole weights of a sharded checkpoint of such a model; one process."""
    found = read_about(path)
    if found is None:
        raise ValueError(f"there is no sharded checkpoint at {path}.")
    weights = {name: torch.empty_like(x) for name, x in model.state_dict().items()}
    transfer(dcp.load, {"model": weights}, found[0])
    return weights


def transfer(work: Callable[..., Any], state: dict[str, Any], folder: Path) -> None:
    """Save or load, alone or with all others; alone is no reason for a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        work(state, checkpoint_id=folder, no_dist=not dist.is_initialized())


# --------------------------------------------------------------------- counted bytes


class HeldBytes(NamedTuple):
    """What one process holds between two steps."""

    parameters: int
    gradients: int
    optimiser: int

    @property
    def total(self) -> int:
        """All three together: with AdamW in float32, 16 bytes a parameter."""
        return sum(self)


def held_bytes(model: nn.Module, optimiser: torch.optim.Optimizer) -> HeldBytes:
    """Count the bytes of this process: its weights, gradients and optimiser state."""
    parameters = list(model.parameters())
    gradients = [p.grad for p in parameters if p.grad is not None]
    moments = [x for state in optimiser.state.values() for x in state.values()]
    held = local_bytes(parameters), local_bytes(gradients), local_bytes(moments)
    return HeldBytes(*held)


def local_bytes(tensors: Iterable[Any]) -> int:
    """Add up the bytes that are here of tensors that may be split; no scalars."""
    local = (x.to_local() if hasattr(x, "to_local") else x for x in tensors)
    return sum(x.nbytes for x in local if isinstance(x, Tensor) and x.dim() > 0)


def step_bytes(model: nn.Module, n_processes: int, kind: str) -> tuple[int, int]:
    r"""Count what one process holds and what it sends in a step, in bytes.

    Of P bytes of weights on W processes, with AdamW: one process holds 4 P and sends
    nothing; DDP holds 4 P and sends 2 P (W - 1) / W, the gradients going round a ring
    twice; FSDP holds 4 P / W and sends 3 P (W - 1) / W: the weights of a block once for
    the forward and once for the backward pass, and its gradients once. Weights outside
    the blocks stay gathered in between: 2 P (W - 1) / W.
    """
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}, expected one of {KINDS}.")
    if n_processes < 1 or (kind == "one process" and n_processes > 1):
        raise ValueError(f"n_processes is {n_processes}, expected 1 or more, or one.")
    total = sum(p.nbytes for p in model.parameters())
    if kind == "one process":
        return 4 * total, 0
    share = (n_processes - 1) / n_processes
    if kind == "DDP":
        return 4 * total, round(2 * total * share)
    inside = sum(p.nbytes for block in blocks_of(model) for p in block.parameters())
    return 4 * total // n_processes, round((2 * total + inside) * share)


# How often a ring sends what it gathers, splits or averages: the call's name, the
# argument that is whole, and how often (W - 1) / W of it leaves each process.
RING = {
    "c10d._allgather_base_": (0, 1),
    "c10d._reduce_scatter_base_": (1, 1),
    "c10d.broadcast_": (0, 1),
    "c10d.allreduce_": (0, 2),
}


class SentBytes(TorchDispatchMode):
    """Count the bytes that a process sends inside a `with`, from the calls it makes.

    A ring of W processes sends n (W - 1) / W to gather n bytes, or to average and split
    them; twice that to average them and keep them whole.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, int]] = []

    @property
    def total(self) -> int:
        """The bytes of all calls."""
        return sum(sent for _, sent in self.calls)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = str(func).removesuffix(".default")
        if name in RING:
            which, times = RING[name]
            given = args[which]
            n = sum(x.nbytes for x in (given if isinstance(given, list) else [given]))
            world = dist.get_world_size()
            self.calls.append((name, times * n * (world - 1) // world))
        return func(*args, **(kwargs or {}))
