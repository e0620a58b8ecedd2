"""Two recipes for a small language model, raced for the same seconds of processor time.

Both train 4 layers of width 128 on characters of Python's help topics. `published` is
nanoGPT's recipe for a CPU as its README gives it; `ours` is made of the package's
parts. Learning rates follow the share of the time that is spent, so that each recipe
ends its schedule when the race ends. Both are scored on the same windows of 64
characters.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.baseline_gpt import PlainGPT, plain_adamw
from course_utils.data.corpus import Split, Vocabulary, pydoc_text, split_blocks
from course_utils.data.sequences import consecutive_windows, random_windows
from course_utils.models.transformer import GPT
from course_utils.training.muon import Muon, block_matrices

WINDOW = 64  # characters that a prediction may see, in training and in scoring
WIDTH, HEADS, LAYERS = 128, 4, 4


@dataclass
class Recipe:
    """A model, its optimisers, its batches, and the learning rates over the race."""

    model: nn.Module
    optimisers: list[torch.optim.Optimizer]
    batch: int
    rate: Callable[[float], float]  # a factor, by the share of the time that is spent
    steps: int = 0

    def __post_init__(self) -> None:
        self.peaks = [[g["lr"] for g in o.param_groups] for o in self.optimisers]

    def logits(self, tokens: Tensor) -> Tensor:
        """Return the scores of every next token."""
        found = self.model(tokens)
        return found[0] if isinstance(found, tuple) else found

    def step(self, ids: Tensor, generator: torch.Generator, share: float) -> None:
        """Take one step of training."""
        factor = self.rate(share)
        for optimiser, peaks in zip(self.optimisers, self.peaks):
            for group, peak in zip(optimiser.param_groups, peaks):
                group["lr"] = peak * factor
            optimiser.zero_grad()
        read, following = random_windows(ids, WINDOW, self.batch, generator)
        loss = F.cross_entropy(self.logits(read).flatten(0, 1), following.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimiser in self.optimisers:
            optimiser.step()
        self.steps += 1


def cosine(share: float, warmup: float = 0.05, last: float = 0.1) -> float:
    """Rise in a line, then fall along a cosine to `last`."""
    if share < warmup:
        return max(share / warmup, 0.01)
    done = min((share - warmup) / (1 - warmup), 1.0)
    return last + (1 - last) * (1 + math.cos(math.pi * done)) / 2


def linear(share: float, warmup: float = 0.02, flat: float = 0.4) -> float:
    """Rise in a line, stay, then fall in a line to 0."""
    if share < warmup:
        return max(share / warmup, 0.01)
    return min(1.0, max(1 - share, 0.0) / (1 - flat))


def published(n_tokens: int, seed: int, lr: float = 1e-3) -> Recipe:
    """nanoGPT's recipe for a CPU: AdamW at 1e-3, batches of 12, 2000 steps in all.

    Its 100 steps of warm-up are the first twentieth, here of the time.
    """
    torch.manual_seed(seed)
    model = PlainGPT(n_tokens, WINDOW, WIDTH, HEADS, LAYERS)
    return Recipe(model, [plain_adamw(model, lr=lr)], batch=12, rate=cosine)


def ours(
    n_tokens: int,
    seed: int,
    batch: int = 16,
    muon: float = 0.01,
    adam: float = 8e-3,
    positions: str = "rotary",
    activation: str = "relu2",
) -> Recipe:
    """The package's model with rotary positions; Muon for its blocks' matrices."""
    torch.manual_seed(seed)
    model = GPT(
        n_tokens,
        WINDOW,
        WIDTH,
        HEADS,
        LAYERS,
        positions=positions,
        activation=activation,
    )
    fused, single = block_matrices(model.blocks)
    taken = {id(p) for p in fused + single}
    rest = [p for p in model.parameters() if id(p) not in taken]
    groups: list[dict[str, Any]] = [{"params": fused, "parts": 3}, {"params": single}]
    matrices = Muon(groups, lr=muon)
    others = torch.optim.AdamW(
        rest, lr=adam, betas=(0.9, 0.99), weight_decay=0.0, fused=True
    )
    return Recipe(model, [matrices, others], batch=batch, rate=linear)


def texts(seed: int = 0) -> tuple[int, Split]:
    """The corpus in three parts, and how many characters its vocabulary has."""
    split = split_blocks(pydoc_text(), validation=0.1, test=0.1, seed=seed)
    return len(Vocabulary([split.train])), split


def encoded(split: Split) -> dict[str, Tensor]:
    """The three parts as ids, by the vocabulary of the first."""
    vocabulary = Vocabulary([split.train])
    return {
        name: torch.tensor(vocabulary.encode(text))
        for name, text in split._asdict().items()
    }


def race(
    recipes: dict[str, Recipe], ids: Tensor, seconds: float, seed: int
) -> Iterator[float]:
    """Train all recipes for so much processor time each; yield the share done.

    The one that has used least takes the next step, so that whatever else the machine
    does falls on all of them.
    """
    spent = dict.fromkeys(recipes, 0.0)
    generators = {name: torch.Generator().manual_seed(seed) for name in recipes}
    while min(spent.values()) < seconds:
        name = min(spent, key=lambda n: spent[n])
        began = time.process_time()
        recipes[name].step(ids, generators[name], spent[name] / seconds)
        spent[name] += time.process_time() - began
        yield min(min(spent.values()) / seconds, 1.0)


@torch.inference_mode()
def score(recipe: Recipe, ids: Tensor) -> float:
    """The mean loss, in nats a character, over all windows of a text."""
    read, following = consecutive_windows(ids, WINDOW)
    total = 0.0
    for x, y in zip(read.split(64), following.split(64)):
        logits = recipe.logits(x).flatten(0, 1)
        total += F.cross_entropy(logits, y.flatten(), reduction="sum").item()
    return total / following.numel()
