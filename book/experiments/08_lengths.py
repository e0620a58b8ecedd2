"""Which positional encodings still work beyond the training length?

One layer of four heads, trained on sentences of 16 tokens and tested on 64, in four
stretches of 16 positions. Two tasks: the last capital so far, and the token before.
Every encoding gets the same steps and its own best learning rate of three, chosen on
other sentences of 16 tokens.
"""

import torch
import torch.nn.functional as F
from torch import nn

from course_utils import experiments, runtime
from course_utils.models import positions
from course_utils.models.attention import MultiHeadAttention
from course_utils.models.blocks import FeedForward
from course_utils.tasks import synthetic
from course_utils.training.loop import train

KINDS = ["none", "none, no mask", "sinusoidal", "learned"]
KINDS += ["relative bias", "RoPE", "ALiBi", "steep ALiBi"]
SETTINGS = {
    "kinds": KINDS,
    "tasks": ["last capital", "token before"],
    "rates": [3e-3, 1e-2, 3e-2],
    "seeds": [0, 1, 2, 3, 4],
    "steps": 240,
}
SMOKE = SETTINGS | {"tasks": ["token before"], "rates": [1e-2], "seeds": [0]}
SMOKE |= {"steps": 160}


def points(settings):
    return [
        {"kind": kind, "task": task, "lr": lr, "seed": seed, "steps": settings["steps"]}
        for kind in settings["kinds"]
        for task in settings["tasks"]
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


class Reader(nn.Module):
    def __init__(self, kind, d_model=32, n_heads=4):
        super().__init__()
        self.kind, self.n_heads, self.d_head = kind, n_heads, d_model // n_heads
        self.word = nn.Embedding(16, d_model)
        self.learned = positions.LearnedPositions(64, d_model)
        self.relative = positions.RelativeBias(n_heads, max_distance=8, scale=10.0)
        self.attend = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, 64)
        self.readout = nn.Linear(d_model, 8)

    def forward(self, tokens):
        n, x, options = tokens.shape[1], self.word(tokens), {}
        if self.kind == "sinusoidal":
            x = x + positions.sinusoidal(n, x.shape[-1])
        elif self.kind == "learned":
            x = x + self.learned(n)
        elif self.kind == "relative bias":
            options["bias"] = self.relative(n)
        elif self.kind == "RoPE":
            turns = positions.rotations(torch.arange(n), self.d_head)
            options["rotate"] = lambda part: positions.rotate(part, turns)
        elif "ALiBi" in self.kind:
            steepness = 16 if self.kind == "steep ALiBi" else 1
            options["bias"] = steepness * positions.alibi(self.n_heads, n)
        options["causal"] = self.kind != "none, no mask"
        x = x + self.attend(x, **options)[0]
        return self.readout(x + self.feed_forward(x))  # (batch, token, answer)


def draw(task, n, generator, n_tokens):
    if task == "token before":
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
    task, seed = point["task"], point["seed"]
    runtime.seed(seed)
    model = Reader(point["kind"])
    how = {"steps": point["steps"], "lr": point["lr"], "seed": seed, "device": "cpu"}

    def batch(step, own):
        return draw(task, 32, own, 16)

    train(model, batch, loss, progress=False, **how)
    seen = accuracy(model, *draw(task, 400, runtime.seed(1000 + seed), 16))
    far = accuracy(model, *draw(task, 400, runtime.seed(2000 + seed), 64))
    stretches = far.unflatten(0, (4, 16)).nanmean(dim=1)
    return {
        "validation": round(seen.nanmean().item(), 4),
        "test": [round(share, 4) for share in stretches.tolist()],
    }


def check(points):
    def at_best(kind):
        runs = [p for p in points if p["kind"] == kind and p["task"] == task]
        return torch.tensor([p["test"] for p in experiments.at_best_rate(runs)])

    for task in sorted({p["task"] for p in points}):
        none, rope = at_best("none").mean(dim=0), at_best("RoPE")
        for absolute in (at_best("sinusoidal"), at_best("learned")):
            assert absolute[:, 0].min() > 0.95
            assert absolute[:, 1].max() < 0.7
            assert (absolute.mean(dim=0)[2:] < none[2:] + 0.05).all()
        assert rope[:, :2].min() > 0.9
        assert rope[:, 3].mean() < none[3]
        assert at_best("relative bias")[:, 3].min() > 0.85
        assert (at_best("ALiBi")[:, 3].min() > 0.8) == (task == "last capital")
