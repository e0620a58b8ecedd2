"""Does attention learn without the scale? Widths and learning rates, swept.

The task is the lookup of chapter 06: 64 symbols, 16 of them in the memory, each with
one of eight contents; a query names one symbol and wants its content. Three layers:

    scaled         scores q.k / sqrt(d_k)
    unscaled       scores q.k
    smaller start  scores q.k, but W_Q and W_K begin d_k^(1/4) times smaller, so that
                   its first scores are those of the scaled layer
"""

import torch
import torch.nn.functional as F
from torch import nn

from course_utils import runtime
from course_utils.tasks import synthetic
from course_utils.training.loop import train

LAYERS = ("scaled", "unscaled", "smaller start")
SETTINGS = {
    "widths": [16, 64, 256],
    "rates": [1e-3, 3e-3, 1e-2, 3e-2],
    "seeds": [0, 1, 2, 3, 4],
    "steps": 600,
}
SMOKE = {"widths": [16, 256], "rates": [1e-3, 3e-3, 1e-2], "seeds": [0], "steps": 600}


def points(settings):
    return [
        {"layer": layer, "d_k": d_k, "lr": lr, "seed": seed, "steps": settings["steps"]}
        for d_k in settings["widths"]
        for layer in LAYERS
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


class Lookup(nn.Module):
    def __init__(self, layer, d_k, d_model=32):
        super().__init__()
        self.symbol = nn.Embedding(64, d_model)
        self.content = nn.Embedding(9, d_model)  # eight contents, and "nothing"
        self.query = nn.Linear(d_model, d_k, bias=False)
        self.key = nn.Linear(d_model, d_k, bias=False)
        self.value = nn.Linear(d_model, d_model, bias=False)
        self.readout = nn.Linear(d_model, 8)
        self.scale = d_k**-0.5 if layer == "scaled" else 1.0
        if layer == "smaller start":
            with torch.no_grad():
                self.query.weight.mul_(d_k**-0.25)
                self.key.weight.mul_(d_k**-0.25)

    def forward(self, symbols, contents):
        x = self.symbol(symbols) + self.content(contents)
        queries, memory = self.query(x[:, -1:]), x[:, :-1]  # the last token asks
        scores = queries @ self.key(memory).transpose(-2, -1) * self.scale
        context = torch.softmax(scores, dim=-1) @ self.value(memory)
        return self.readout(context[:, 0])


def draw(n, generator):
    sizes = {"n_pairs": 16, "n_keys": 64, "n_values": 8}
    return synthetic.associative_recall(n, generator, **sizes)[:3]


def loss(model, symbols, contents, answers):
    return F.cross_entropy(model(symbols, contents), answers)


def accuracy(model, examples):
    symbols, contents, answers = examples
    with torch.no_grad():
        return (
            (model(symbols, contents).argmax(dim=-1) == answers).float().mean().item()
        )


def run(point):
    seed = point["seed"]
    runtime.seed(seed)
    model = Lookup(point["layer"], point["d_k"])
    how = {"steps": point["steps"], "lr": point["lr"], "seed": seed, "device": "cpu"}
    train(model, lambda step, own: draw(64, own), loss, progress=False, **how)
    return {
        "validation": accuracy(model, draw(2000, runtime.seed(1000 + seed))),
        "test": accuracy(model, draw(2000, runtime.seed(2000 + seed))),
    }


def check(points):
    def accuracies(layer, d_k, rates):
        of_layer = [p for p in points if p["layer"] == layer and p["d_k"] == d_k]
        return torch.tensor([p["test"] for p in of_layer if p["lr"] in rates])

    widths = sorted({p["d_k"] for p in points})
    *slower, fastest = rates = sorted({p["lr"] for p in points})
    wide = widths[-1]
    assert all(accuracies("scaled", d_k, rates).min() > 0.9 for d_k in widths)
    assert accuracies("unscaled", widths[0], slower).min() > 0.9
    assert accuracies("unscaled", wide, [fastest]).max() < 0.5
    assert max(accuracies("unscaled", wide, [lr]).mean() for lr in rates) > 0.8
    smaller = accuracies("smaller start", wide, rates)
    assert smaller.mean() > accuracies("unscaled", wide, rates).mean() + 0.05
    assert accuracies("smaller start", wide, [fastest]).mean() < 0.6
