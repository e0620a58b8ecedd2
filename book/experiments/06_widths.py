"""How much does a lookup find with narrow keys, or with narrow values?

The task of chapter 06: 64 symbols, 16 of them in the memory, each with one of eight
contents; a query names one symbol and wants its content. Keys from 1 to 8 wide (with
values 32 wide), then values from 1 to 4 wide (with keys 8 wide).
"""

import torch.nn.functional as F
from torch import nn

from course_utils import experiments, runtime
from course_utils.models.attention import CrossAttention
from course_utils.tasks import synthetic
from course_utils.training.loop import train

SETTINGS = {
    "widths": [[1, 32], [2, 32], [3, 32], [4, 32], [8, 32], [8, 1], [8, 2], [8, 4]],
    "rates": [3e-3, 1e-2, 3e-2, 1e-1],
    "seeds": [0, 1, 2, 3, 4],
    "steps": 1500,
}
SMOKE = {"widths": [[1, 32], [2, 32], [8, 32], [8, 1], [8, 4]], "rates": [1e-2]}
SMOKE |= {"seeds": [0], "steps": 600}


def points(settings):
    return [
        {"d_k": d_k, "d_v": d_v, "lr": lr, "seed": seed, "steps": settings["steps"]}
        for d_k, d_v in settings["widths"]
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


class Lookup(nn.Module):
    def __init__(self, d_k, d_v, d_model=32):
        super().__init__()
        self.symbol = nn.Embedding(64, d_model)
        self.content = nn.Embedding(9, d_model)  # eight contents, and "nothing"
        self.attend = CrossAttention(d_model, d_model, d_k, d_v)
        self.readout = nn.Linear(d_v, 8)

    def forward(self, symbols, contents):
        x = self.symbol(symbols) + self.content(contents)
        context, _ = self.attend(x[:, -1:], x[:, :-1])  # the last token asks the others
        return self.readout(context[:, 0])


def draw(n, generator):
    sizes = {"n_pairs": 16, "n_keys": 64, "n_values": 8}
    return synthetic.associative_recall(n, generator, **sizes)[:3]


def loss(model, symbols, contents, answers):
    return F.cross_entropy(model(symbols, contents), answers)


def run(point):
    seed = point["seed"]
    runtime.seed(seed)
    model = Lookup(point["d_k"], point["d_v"])
    unseen = {
        "validation": draw(4000, runtime.seed(1000 + seed)),
        "test": draw(4000, runtime.seed(2000 + seed)),
    }

    def evaluate(model):
        return {
            name: (model(symbols, contents).argmax(dim=-1) == answers).float().mean()
            for name, (symbols, contents, answers) in unseen.items()
        }

    how = {"steps": point["steps"], "lr": point["lr"], "seed": seed, "device": "cpu"}
    how |= {"every": 300, "evaluate": evaluate}
    history = train(model, lambda step, own: draw(64, own), loss, progress=False, **how)
    return {name: round(float(history[name][-1]), 4) for name in unseen}


def check(points):
    def at_best(d_k, d_v=32):
        runs = [p for p in points if p["d_k"] == d_k and p["d_v"] == d_v]
        return [p["test"] for p in experiments.at_best_rate(runs)]

    assert min(at_best(1)) > 0.26 + 0.04  # more than equal weights
    assert min(at_best(2)) > max(at_best(1)) + 0.1
    assert min(at_best(8)) > max(at_best(2)) + 0.05
    assert min(at_best(8)) > 0.99
    assert min(at_best(8, d_v=1)) > 0.95  # one number carries eight contents
