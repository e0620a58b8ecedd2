"""Loss against parameters, data and compute: GPTs of eight widths, bytes of text.

Two layers and four heads, windows of 64 bytes, 32 windows a step; the learning rate
falls to zero over each run, so every number of tokens is a run of its own. A width's
rate is the best of four on the validation text, with half a million tokens and a seed
that is not reported. Whole files of the library are held out.
"""

import numpy as np
import torch
import torch.nn.functional as F

from course_utils import runtime
from course_utils.data.sequences import consecutive_windows, random_windows
from course_utils.data.texts import load_text, split_documents
from course_utils.models.transformer import GPT
from course_utils.training.loop import train

LENGTH, ROWS = 64, 32
SETTINGS = {
    "corpus": ["library", 4_000_000],
    "rates": [3e-3, 6e-3, 1.2e-2, 2.4e-2],
    "rate_tokens": 500_000,
    "rate_seed": 9,
    "widths": [8, 12, 16, 24, 32, 48, 64, 96],
    "chosen": [
        [8, 2.4e-2],
        [12, 4.8e-2],
        *([width, 1.2e-2] for width in (16, 24, 32, 48)),
        *([width, 6e-3] for width in (64, 96)),
    ],
    "tokens": [250_000, 500_000, 1_000_000, 2_000_000],
    "seeds": [0, 1, 2],
    # higher rates where the highest was best; the largest model with most data
    "more": [
        [8, 500_000, 4.8e-2],
        *([12, 500_000, lr] for lr in (4.8e-2, 9.6e-2)),
        *([96, 2_000_000, lr] for lr in (3e-3, 6e-3, 1.2e-2)),
    ],
}
SMOKE = {
    "corpus": ["help", 300_000],
    "rates": [6e-3, 1.2e-2],
    "rate_tokens": 100_000,
    "rate_seed": 9,
    "widths": [32],
    "chosen": [[8, 1.2e-2], [32, 1.2e-2]],
    "tokens": [100_000, 300_000],
    "seeds": [0],
    "more": [],
}


def points(settings):
    text, seed = settings["corpus"], settings["rate_seed"]
    tried = [
        ("rate", width, settings["rate_tokens"], lr, seed)
        for width in settings["widths"]
        for lr in settings["rates"]
    ]
    tried += [
        ("rate", width, tokens, lr, seed) for width, tokens, lr in settings["more"]
    ]
    tried += [
        ("grid", width, tokens, lr, seed)
        for tokens in settings["tokens"]
        for width, lr in settings["chosen"]
        for seed in settings["seeds"]
    ]
    names = ("role", "width", "tokens", "lr", "seed")
    return [{"corpus": text, **dict(zip(names, point))} for point in tried]


def loss(model, read, following):
    logits, _ = model(read)
    return F.cross_entropy(logits.flatten(0, 1), following.flatten())


def as_bytes(text):
    return torch.tensor(np.frombuffer(text.encode(), np.uint8), dtype=torch.long)


def held_out(model, text):
    windows = (w[:1600].split(100) for w in consecutive_windows(as_bytes(text), LENGTH))
    with torch.no_grad():
        nats = [loss(model, *pair) for pair in zip(*windows)]
    return torch.stack(nats).mean().item()


def run(point):
    split = split_documents(load_text(*point["corpus"]).documents, 0.05, 0.05)
    ids, seed = as_bytes(split.train), point["seed"]
    runtime.seed(seed)
    model = GPT(256, LENGTH, d_model=point["width"], n_heads=4, n_layers=2)

    def batch(step, generator):
        return random_windows(ids, LENGTH, ROWS, generator)

    how = {"steps": round(point["tokens"] / (LENGTH * ROWS)), "lr": point["lr"]}
    train(model, batch, loss, seed=seed, device="cpu", progress=False, **how)
    tables = model.embedding.weight.numel() + model.positions.table.numel()
    every = sum(p.numel() for p in model.parameters())
    found = {"validation": -held_out(model, split.validation)}  # to be highest
    found |= {"test": held_out(model, split.test)}
    return found | {"parameters": every - tables, "with_tables": every}


def check(points):
    def mean(**where):
        grid = [p for p in points if p["role"] == "grid"]
        found = [p["test"] for p in grid if all(p[k] == v for k, v in where.items())]
        return sum(found) / len(found)

    grid = [p for p in points if p["role"] == "grid"]
    widths, tokens = (sorted({p[k] for p in grid}) for k in ("width", "tokens"))
    for n in tokens:
        losses = [mean(width=w, tokens=n) for w in widths]
        assert losses == sorted(losses, reverse=True)  # larger is better
    for w in widths:
        losses = [mean(width=w, tokens=n) for n in tokens]
        assert losses == sorted(losses, reverse=True)  # so is longer
