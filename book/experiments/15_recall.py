"""Who learns to recall one of sixteen pairs, after how many steps, at its own rate?

The task of chapter 15: sixteen pairs of a key and a value, then one key; name its
value. One block with a slot for the mixing layer, which is

    attention         softmax attention with four heads, no positions
    linear attention  the same projections, with a product in place of the softmax: each
                      head keeps a table of 16 x 16 sums
    GRU, convolution, state space
                      as in the chapter

Each is trained at three learning rates and examined every 100 steps.
"""

import torch.nn.functional as F
from torch import nn

from course_utils import experiments, runtime
from course_utils.models.attention import MultiHeadAttention
from course_utils.models.blocks import FeedForward, Residual
from course_utils.models.recurrences import CausalConvolution, StateSpace
from course_utils.tasks import synthetic
from course_utils.training.loop import train

SETTINGS = {"rates": [2e-3, 4e-3, 8e-3], "seeds": [0, 1, 2], "steps": 1000}
SMOKE = {"rates": [4e-3], "seeds": [0], "steps": 200}
D = 64


def points(settings):
    return [
        {"layer": layer, "lr": lr, "seed": seed, "steps": settings["steps"]}
        for layer in LAYERS
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


class Attention(MultiHeadAttention):
    def forward(self, x):
        return super().forward(x, causal=True)[0]


class LinearAttention(nn.Module):
    def __init__(self, d_model, n_heads=4):
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x):
        heads = self.qkv(x).unflatten(-1, (3, self.n_heads, -1))
        queries, keys, values = heads.permute(2, 0, 3, 1, 4)
        queries, keys = F.elu(queries) + 1, F.elu(keys) + 1
        weights = (
            queries @ keys.mT
        ).tril()  # as sums over the past, no table is needed
        context = weights @ values / weights.sum(dim=-1, keepdim=True)
        return self.output(context.transpose(1, 2).flatten(2))


class GRU(nn.GRU):
    def forward(self, x):
        return super().forward(x)[0]


LAYERS = {
    "attention": lambda: Attention(D, 4),
    "linear attention": lambda: LinearAttention(D),
    "state space": lambda: StateSpace(D),
    "GRU": lambda: GRU(D, D, batch_first=True),
    "convolution": lambda: CausalConvolution(D),
}


class OneBlock(nn.Module):
    def __init__(self, mixer):
        super().__init__()
        self.key, self.value = nn.Embedding(40, D), nn.Embedding(17, D)
        self.mixer, self.feed_forward = mixer, FeedForward(D, 2 * D, "gelu")
        self.around = nn.ModuleList([Residual(D), Residual(D)])
        self.output = nn.Sequential(nn.LayerNorm(D), nn.Linear(D, 16))

    def forward(self, keys, values):
        x = self.key(keys) + self.value(values)
        for around, layer in zip(self.around, (self.mixer, self.feed_forward)):
            x = around.after(x, layer(around.before(x)))
        return self.output(x[:, -1])


def draw(n, generator):
    return synthetic.associative_recall(n, generator, n_pairs=16)[:3]


def loss(model, keys, values, answers):
    return F.cross_entropy(model(keys, values), answers)


def run(point):
    seed = point["seed"]
    runtime.seed(seed)
    model = OneBlock(LAYERS[point["layer"]]())
    unseen = {
        name: draw(2000, runtime.seed(first + seed))
        for name, first in (("validation", 1000), ("test", 2000))
    }

    def evaluate(model):
        return {
            name: (model(keys, values).argmax(dim=-1) == answers).float().mean()
            for name, (keys, values, answers) in unseen.items()
        }

    how = {"steps": point["steps"], "lr": point["lr"], "seed": seed, "device": "cpu"}
    how |= {"every": 100, "evaluate": evaluate}
    history = train(model, lambda _, own: draw(48, own), loss, progress=False, **how)
    curves = {name: [round(float(a), 4) for a in history[name]] for name in unseen}
    return {
        "validation": curves["validation"][-1],
        "test": curves["test"][-1],
        "steps_seen": history["evaluated"].tolist(),
        "curve": curves["test"],
    }


def check(points):
    def best(layer):
        runs = [p for p in points if p["layer"] == layer]
        return [p["test"] for p in experiments.at_best_rate(runs)]

    assert min(best("attention")) > 0.95
    for layer in ("state space", "GRU", "convolution"):
        assert max(best(layer)) < 0.8
