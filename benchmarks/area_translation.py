"""Areas 3 and 5: a training step of the models that translate.

The transformer against PyTorch's own with the same optimiser, and Bahdanau's model
against designs that project and read out at every step.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from benchmarks.peer_translation import (
    LibraryTransformer,
    StepwiseBahdanau,
    same_transformer,
)
from benchmarks.rows import Row, made
from benchmarks.tasks import Plan, Task, training_step
from benchmarks.timing import Work, ratio_of
from course_utils.rnn import Seq2SeqAttention
from course_utils.training import adamw
from course_utils.transformer import Transformer
from course_utils.translation import translation_loss

N_WORDS, BATCH, LONGEST = 2000, 64, 24


class Size(NamedTuple):
    """A transformer's size."""

    width: int
    heads: int
    hidden: int
    layers: int
    seconds: float

    @property
    def label(self) -> str:
        return f"{self.layers} + {self.layers} layers, width {self.width}"


SIZES = (Size(64, 4, 128, 2, 0.8), Size(256, 8, 1024, 3, 6.0))
TARGET = 0.95
BAHDANAU = {
    "all in the loop (bentrevett)": (False, 0.50),
    "projections in the loop (d2l)": (True, 1.00),
}


def batch() -> tuple[Tensor, Tensor]:
    """A batch of sentences of random words, from half the length to all of it."""
    generator = torch.Generator().manual_seed(0)
    pair = []
    for extra in (0, 1):
        shape = (BATCH, LONGEST + extra)
        tokens = torch.randint(4, N_WORDS, shape, generator=generator)
        lengths = torch.randint(LONGEST // 2, shape[1] + 1, (BATCH,), generator=generator)
        lengths[0] = shape[1]
        pair.append(tokens * (torch.arange(shape[1]) < lengths[:, None]))
    return pair[0], pair[1]


def step(model: nn.Module) -> Work:
    """A step of a model that translates, by the package's loss and optimiser."""
    source, target = batch()
    return training_step(
        model, lambda: translation_loss(model, source, target), adamw(model, 1e-4, 0.0)
    )


def transformers(size: Size) -> dict[str, nn.Module]:
    """Our model and PyTorch's, with the same weights."""
    torch.manual_seed(0)
    shape = (N_WORDS, N_WORDS, *size[:4])
    ours = Transformer(*shape)
    return {"ours": ours, "library": same_transformer(ours, LibraryTransformer(*shape))}


def transformer_rows(size: Size, plan: Plan) -> list[Row]:
    """The row of one size."""
    models = transformers(size)
    measured = plan.times({name: step(model) for name, model in models.items()})
    ratio = ratio_of(measured["ours"], measured["library"])
    peer = "nn.Transformer (PyTorch), the same optimiser"
    return [
        made(
            "translation", "step", size.label, ratio, TARGET, peer, rounds=plan.rounds
        )
    ]


def recurrent(width: int = 128) -> dict[str, nn.Module]:
    """Our Bahdanau model and the two other designs of it, with the same weights."""
    torch.manual_seed(0)
    ours = Seq2SeqAttention(N_WORDS, N_WORDS, width, width)
    models: dict[str, nn.Module] = {"ours": ours}
    for name, (at_end, _) in BAHDANAU.items():
        models[name] = StepwiseBahdanau(copy.deepcopy(ours), at_end)
    return models


def recurrent_rows(plan: Plan) -> list[Row]:
    """One row for each other design."""
    works = {name: step(model) for name, model in recurrent().items()}
    measured = plan.times(works)
    size = f"width 128, {LONGEST} words, {N_WORDS} in the vocabulary"
    return [
        made(
            "bahdanau",
            "step",
            size,
            ratio_of(measured["ours"], measured[name]),
            target,
            name,
            rounds=plan.rounds,
        )
        for name, (_, target) in BAHDANAU.items()
    ]


def transformer_tasks(plan: Plan) -> list[Task]:
    """Both sizes, or the small one alone."""
    sizes = SIZES[:1] if plan.quick else SIZES
    return [
        Task(
            f"encoder-decoder, width {size.width}",
            size.seconds * plan.rounds,
            partial(transformer_rows, size),
        )
        for size in sizes
    ]


def recurrent_tasks(plan: Plan) -> list[Task]:
    """One task: the three designs in turns."""
    return [Task("Bahdanau's attention", 2.0 * plan.rounds, recurrent_rows)]
