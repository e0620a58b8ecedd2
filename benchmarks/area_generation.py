"""Area 4: one generated token, by the length of the text before it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch

from benchmarks.baseline_gpt import ConcatenatingCache, PlainGPT, same_weights
from benchmarks.results import Row, made
from benchmarks.tasks import Plan, Task
from benchmarks.timing import Work, ratio_of
from course_utils.models.transformer import GPT

AREA = "generation"
N_TOKENS, WIDTH, HEADS, LAYERS, MAX_LENGTH = 107, 384, 6, 6, 1152
LENGTHS = (32, 128, 512, 1024)
PEERS = {
    "concatenated": "a cache that grows by torch.cat, in our model",
    "plain": "a cache that grows by torch.cat, in nanoGPT's design",
    "none": "no cache (nanoGPT's design)",
}
IN_A_ROW = 16  # tokens, as in use: each finds its cache one token longer
WHY = (
    "Sixteen tokens are generated in a row. (One token, again and again from the same "
    "cache, measures what the system does with memory that was let go.) For one text, "
    "reading 42 MB of weights is a large part of a step, wherever keys and values are "
    "kept: what can be saved is the copy. With 8 texts at once the copy decides."
)
TARGETS = {  # by the length and the texts at once
    "concatenated": {(1024, 1): 0.90, (1024, 8): 0.50},
    "plain": {(1024, 1): 1.0, (1024, 8): 1.0},
    "none": {(1024, 1): 0.05},
}


def without_gradients(work: Work) -> Work:
    """The work, in inference mode."""

    def inside() -> Any:
        with torch.inference_mode():
            return work()

    return inside


def works(length: int, texts: int = 1) -> dict[str, Work]:
    """Tokens in a row with our cache, with concatenating ones and with none."""
    torch.manual_seed(0)
    tokens = torch.randint(N_TOKENS, (texts, length + IN_A_ROW))
    new = tokens[:, length:].unbind(1)
    ours = GPT(N_TOKENS, MAX_LENGTH, WIDTH, HEADS, LAYERS).eval()
    plain = PlainGPT(N_TOKENS, MAX_LENGTH, WIDTH, HEADS, LAYERS).eval()
    same_weights(ours, plain)
    growing = tuple(ConcatenatingCache() for _ in range(LAYERS))
    with torch.inference_mode():
        caches = ours.start(tokens[:, :length])
        plain(tokens[:, :length], growing)
    kept = [(cache.keys, cache.values) for cache in growing]

    def preallocated() -> torch.Tensor:
        for cache in caches:
            cache.length = length
        return [ours.step(token, caches)[0] for token in new][-1]

    def forget() -> None:
        for cache, (keys, values) in zip(growing, kept):
            cache.keys, cache.values = keys, values

    def concatenated() -> torch.Tensor:
        forget()
        return [ours.step(token, cast(Any, growing))[0] for token in new][-1]

    def concatenated_plain() -> torch.Tensor:
        forget()
        return [plain(token[:, None], growing)[:, -1] for token in new][-1]

    every = {"ours": preallocated, "concatenated": concatenated}

    def read_again() -> torch.Tensor:
        ends = range(length + 1, length + IN_A_ROW + 1)
        return [plain.next_logits(tokens[:, :end]) for end in ends][-1]

    every |= {"plain": concatenated_plain, "none": read_again}
    return {name: without_gradients(work) for name, work in every.items()}


def times(length: int, texts: int, plan: Plan) -> list[Row]:
    """Rows of one length; with several texts at once, of the caches alone."""
    work, baselines = works(length, texts), dict(PEERS)
    if texts > 1:
        del work["none"], baselines["none"]
    measured = plan.times(work)
    many = "" if texts == 1 else f", {texts} texts"
    rows = [
        made(
            AREA,
            "one token",
            f"after {length}{many}",
            ratio_of(measured["ours"], measured[name]),
            TARGETS[name].get((length, texts)),
            baseline,
            rounds=plan.rounds,
        )
        for name, baseline in baselines.items()
    ]
    return [replace(row, note=WHY) for row in rows]


def tasks(plan: Plan) -> list[Task]:
    """One task for each length; a quick run takes the shortest and the longest."""
    sizes = [(n, 1) for n in LENGTHS] + [(LENGTHS[-1], 8)]
    if plan.quick:
        sizes = [sizes[0], sizes[3]]
    return [
        Task(
            f"generation, {n} tokens",
            (0.5 + n / 250) * plan.rounds,
            partial(times, n, texts),
        )
        for n, texts in sizes
    ]
