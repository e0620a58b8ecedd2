"""How far does RoPE reach beyond its training length, and what does its base do?

One causal layer of four heads with eight features each: four pairs of features, and
pair i turns by base^(-i/4) radians a position. Trained on sentences of 10, 16 or 24
tokens, tested on 64, in 16 stretches of four positions. Two tasks: the token before,
for which exactly one distance counts, and the last capital, which may be far away.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_utils import runtime
from course_utils.models.attention import MultiHeadAttention
from course_utils.models.blocks import FeedForward
from course_utils.models.positions import rotate, rotations
from course_utils.tasks import synthetic
from course_utils.training.loop import train

SETTINGS = {
    "bases": [1e2, 1e3, 1e4, 1e5, 1e6],
    "tasks": [["before", 10], ["before", 16], ["before", 24], ["capital", 16]],
    "rates": [1e-2],
    "seeds": [0, 1, 2, 3, 4],
    "steps": 160,
}
SMOKE = {"bases": [1e3, 1e4, 1e6], "tasks": [["before", 16]], "rates": [1e-2]}
SMOKE |= {"seeds": [0], "steps": 160}


def points(settings):
    return [
        {"base": base, "task": task, "length": length, "lr": lr, "seed": seed}
        | {"steps": settings["steps"]}
        for base in settings["bases"]
        for task, length in settings["tasks"]
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


class Reader(nn.Module):
    def __init__(self, base, d_model=32, n_heads=4):
        super().__init__()
        self.base, self.d_head = base, d_model // n_heads
        self.word = nn.Embedding(16, d_model)
        self.attend = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, 64)
        self.readout = nn.Linear(d_model, 8)

    def forward(self, tokens):
        x = self.word(tokens)
        turns = rotations(torch.arange(tokens.shape[1]), self.d_head, self.base)
        x = x + self.attend(x, causal=True, rotate=lambda part: rotate(part, turns))[0]
        return self.readout(x + self.feed_forward(x))  # (batch, token, answer)


def draw(task, n, generator, n_tokens):
    if task == "before":
        return synthetic.previous_token(n, generator, n_tokens, n_symbols=8)
    sizes = {"n_tokens": n_tokens, "n_symbols": 8, "rate": 1 / 4}
    letters, capital, answers, _ = synthetic.last_marked(n, generator, **sizes)
    return letters + 8 * capital, answers


def loss(model, tokens, answers):
    return F.cross_entropy(model(tokens).flatten(0, 1), answers.flatten())


def accuracy(model, tokens, answers):
    """The share of right answers at every position; NaN where none is asked for."""
    with torch.no_grad():
        right = (model(tokens).argmax(dim=-1) == answers).float()
    return right.masked_fill(answers == synthetic.IGNORE, torch.nan).nanmean(dim=0)


def run(point):
    task, length, seed = point["task"], point["length"], point["seed"]
    runtime.seed(seed)
    model = Reader(point["base"])
    how = {"steps": point["steps"], "lr": point["lr"], "seed": seed, "device": "cpu"}

    def batch(step, own):
        return draw(task, 32, own, length)

    train(model, batch, loss, progress=False, **how)
    seen = accuracy(model, *draw(task, 400, runtime.seed(1000 + seed), length))
    far = accuracy(model, *draw(task, 400, runtime.seed(2000 + seed), 64))
    stretches = far.unflatten(0, (16, 4)).nanmean(dim=1)
    return {
        "validation": round(seen.nanmean().item(), 4),
        "test": [round(share, 4) for share in stretches.tolist()],
    }


def reach(points, base, length):
    """Up to which position the mean accuracy stays above 0.9, in steps of four."""
    chosen = [p for p in points if (p["base"], p["length"]) == (base, length)]
    runs = [p["test"] for p in chosen if p["task"] == "before"]
    above = torch.tensor(runs).mean(dim=0) > 0.9
    return 4 * int(above.int().cumprod(dim=0).sum())


def check(points):
    """The larger of training length and half a wave of the second pair: that far."""
    runs = [p for p in points if p["task"] == "before" and p["base"] >= 1e3]
    for base, length in sorted({(p["base"], p["length"]) for p in runs}):
        predicted = min(max(length, math.pi * base**0.25), 64)
        assert abs(reach(points, base, length) - predicted) <= 4
