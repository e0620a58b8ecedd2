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

from benchmarks.baseline_translation import (
    BroadcastBahdanau,
    LibraryTransformer,
    StepwiseBahdanau,
    same_transformer,
)
from benchmarks.results import Row, made
from benchmarks.tasks import Plan, Task, training_step
from benchmarks.timing import Work, ratio_of
from course_utils.models.rnn import Seq2SeqAttention
from course_utils.models.transformer import Transformer
from course_utils.tasks.translation import translation_loss
from course_utils.training.loop import adamw

BATCH, LONGEST = 64, 24


class Size(NamedTuple):
    """A transformer's size, and how many words both languages have."""

    width: int
    heads: int
    hidden: int
    layers: int
    words: tuple[int, int]
    seconds: float

    @property
    def label(self) -> str:
        stacks = f"{self.layers} + {self.layers} layers"
        return f"{stacks}, width {self.width}, {self.words[1]} words"


# The first is that of chapter 12.
SIZES = (Size(64, 4, 128, 2, (183, 299), 0.4), Size(256, 8, 1024, 3, (2000, 2000), 3.0))
TARGET = 0.95
# Width and words: the first are those of chapter 03.
RECURRENT_SIZES = ((64, (183, 299)), (256, (2000, 2000)))
BAHDANAU = {
    "all in the loop (bentrevett)": StepwiseBahdanau,
    "projections in the loop (d2l)": BroadcastBahdanau,
}
BAHDANAU_TARGETS = {  # by design and width
    ("all in the loop (bentrevett)", 64): 1.00,
    ("all in the loop (bentrevett)", 256): 0.50,
    ("projections in the loop (d2l)", 64): 0.75,
    ("projections in the loop (d2l)", 256): 0.60,
}


def batch(words: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """A batch of sentences of random words, from half the length to all of it."""
    generator = torch.Generator().manual_seed(0)
    pair = []
    for extra, count in enumerate(words):
        shape = (BATCH, LONGEST + extra)
        tokens = torch.randint(4, count, shape, generator=generator)
        lengths = torch.randint(
            LONGEST // 2, shape[1] + 1, (BATCH,), generator=generator
        )
        lengths[0] = shape[1]
        pair.append(tokens * (torch.arange(shape[1]) < lengths[:, None]))
    return pair[0], pair[1]


def step(model: nn.Module, words: tuple[int, int]) -> Work:
    """A step of a model that translates, by the package's loss and optimiser."""
    source, target = batch(words)
    return training_step(
        model, lambda: translation_loss(model, source, target), adamw(model, 1e-4, 0.0)
    )


def transformers(size: Size) -> dict[str, nn.Module]:
    """Our model and PyTorch's, with the same weights."""
    torch.manual_seed(0)
    shape = (*size.words, *size[:4])
    ours = Transformer(*shape)
    return {"ours": ours, "library": same_transformer(ours, LibraryTransformer(*shape))}


def transformer_rows(size: Size, plan: Plan) -> list[Row]:
    """The row of one size."""
    works = {name: step(m, size.words) for name, m in transformers(size).items()}
    measured = plan.times(works)
    ratio = ratio_of(measured["ours"], measured["library"])
    peer = "nn.Transformer (PyTorch), the same optimiser"
    return [
        made("translation", "step", size.label, ratio, TARGET, peer, rounds=plan.rounds)
    ]


def recurrent(width: int, words: tuple[int, int]) -> dict[str, nn.Module]:
    """Our Bahdanau model and the two other designs of it, with the same weights."""
    torch.manual_seed(0)
    ours = Seq2SeqAttention(*words, width, width)
    models: dict[str, nn.Module] = {"ours": ours}
    for name, design in BAHDANAU.items():
        models[name] = design(copy.deepcopy(ours))
    return models


def recurrent_rows(width: int, words: tuple[int, int], plan: Plan) -> list[Row]:
    """One row for each other design."""
    works = {name: step(m, words) for name, m in recurrent(width, words).items()}
    measured = plan.times(works)
    return [
        made(
            "bahdanau",
            "step",
            f"width {width}, {words[1]} words",
            ratio_of(measured["ours"], measured[name]),
            BAHDANAU_TARGETS[name, width],
            name,
            rounds=plan.rounds,
        )
        for name in BAHDANAU
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
    """The three designs in turns, at both sizes or at the small one."""
    sizes = RECURRENT_SIZES[:1] if plan.quick else RECURRENT_SIZES
    return [
        Task(
            f"Bahdanau's attention, width {width}",
            width / 80 * plan.rounds,
            partial(recurrent_rows, width, words),
        )
        for width, words in sizes
    ]
