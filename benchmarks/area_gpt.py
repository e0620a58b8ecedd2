"""Area 2: a training step of GPT, against nanoGPT's design and the matmul floor."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.baseline_gpt import PlainGPT, plain_adamw
from benchmarks.results import Row, made
from benchmarks.tasks import Plan, Task, training_step
from benchmarks.timing import Work, ratio_of
from course_utils.models.transformer import GPT
from course_utils.training.loop import adamw

AREA = "gpt"
N_TOKENS = 107
PEERS = {  # whether it has biases, as ours has
    "nanoGPT's design, the same parameters": True,
    "nanoGPT's design, no biases": False,
}
FLOOR = "the matmul floor"
UPDATE = "the update alone, "  # the optimiser's part of a step
SIDE = 1024  # of the square matrices whose product measures the machine's best rate


class Size(NamedTuple):
    """A model, its batch, and what its step should reach."""

    name: str
    layers: int
    width: int
    heads: int
    length: int
    batch: int
    step_target: float
    floor_target: float
    seconds: float
    more: int = 1  # times the usual rounds, where a step is near its target

    @property
    def label(self) -> str:
        return f"{self.layers} layers, width {self.width}, {self.batch} × {self.length}"


SIZES = (
    Size("small", 4, 128, 4, 128, 32, 1.00, 1.9, 1.5, more=2),
    Size("large", 6, 384, 6, 256, 8, 1.00, 1.5, 7.0, more=2),
)


def operations(size: Size) -> int:
    """Multiplications and additions that a step cannot do without.

    Each matrix entry serves every token once forward and twice backward; a causal query
    meets half of the keys, in two products forward and four backward.
    """
    tokens = size.batch * size.length
    matrices = size.layers * 12 * size.width**2 + N_TOKENS * size.width
    pairs = size.layers * size.width * size.length // 2
    return 2 * 3 * tokens * matrices + 2 * 6 * tokens * pairs


def loss_of(plain: PlainGPT, tokens: Tensor, following: Tensor) -> Tensor:
    """The cross-entropy of the next tokens under nanoGPT's design."""
    return F.cross_entropy(plain(tokens).flatten(0, 1), following)


def works(size: Size) -> dict[str, Work]:
    """Our step, nanoGPT's, and the product of two large matrices."""
    torch.manual_seed(0)
    tokens = torch.randint(N_TOKENS, (size.batch, size.length + 1))
    read, following = tokens[:, :-1], tokens[:, 1:].flatten()
    shape = (N_TOKENS, size.length, size.width, size.heads, size.layers)
    ours = GPT(*shape)
    optimisers = {"ours": adamw(ours, 1e-4, 0.1)}
    found = {
        "ours": training_step(
            ours,
            lambda: F.cross_entropy(ours(read)[0].flatten(0, 1), following),
            optimisers["ours"],
        )
    }
    for name, bias in PEERS.items():
        plain = PlainGPT(*shape, bias=bias)
        optimisers[name] = plain_adamw(plain, 1e-4)
        found[name] = training_step(
            plain,
            partial(loss_of, plain, read, following),
            optimisers[name],
        )
    for name, optimiser in optimisers.items():  # with the gradients of the last step
        found[UPDATE + name] = optimiser.step
    a, b = torch.randn(2, SIDE, SIDE)
    return found | {FLOOR: lambda: a @ b}


def where_they_differ(measured: dict[str, list[float]], peer: str, label: str) -> str:
    """What of a step is left to a design, in a sentence with the measured share."""
    share = ratio_of(measured[UPDATE + peer], measured[peer]).median
    return (
        f"{label}: the two designs call the same kernels but for the update of the "
        f"weights, and that takes {share:.1%} of a step of nanoGPT's design. If ours "
        f"took no time at all, the ratio would be {1 - share:.3f}."
    )


def times(size: Size, plan: Plan) -> list[Row]:
    """Rows of one size."""
    measured = plan.times(works(size), size.more)
    rounds = size.more * plan.rounds
    products = operations(size) / (2 * SIDE**3)
    measured[FLOOR] = [products * t for t in measured[FLOOR]]
    same, lean = PEERS
    targets = {same: size.step_target, lean: 1.05, FLOOR: size.floor_target}
    rows = [
        made(
            AREA,
            "step",
            size.label,
            ratio_of(measured["ours"], measured[name]),
            target,
            name,
            rounds=rounds,
        )
        for name, target in targets.items()
    ]
    update = made(
        AREA,
        "update of the weights alone",
        size.label,
        ratio_of(measured[UPDATE + "ours"], measured[UPDATE + same]),
        None,
        same,
        rounds=rounds,
        note=where_they_differ(measured, same, size.label),
    )
    return [*rows, update]


def tasks(plan: Plan) -> list[Task]:
    """One task for each size; a quick run leaves the large one out."""
    sizes = SIZES[:1] if plan.quick else SIZES
    return [
        Task(
            f"GPT's step, {s.name}", s.seconds * s.more * plan.rounds, partial(times, s)
        )
        for s in sizes
    ]
