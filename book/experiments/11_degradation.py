"""Do ten layers find what two layers find?

The task of chapter 11: 16 random numbers are to be returned as they are ("copy"), or
turned by a fixed rotation. Stacks of feed-forward layers in four wirings, 2 and 10
layers deep, each with three gains and four learning rates of its own. The norm of
"norm only" stands between the layers, not after the last one.
"""

import torch
import torch.nn.functional as F
from torch import nn

from course_utils import experiments, runtime
from course_utils.models.blocks import FeedForward
from course_utils.models.residual_variants import Wiring, set_gain
from course_utils.training.history import Diverged
from course_utils.training.loop import train

SETTINGS = {
    "kinds": ["plain", "norm only", "residual", "pre-norm"],
    "depths": [2, 10],
    "targets": ["copy", "rotation"],
    "gains": [0.5, 1.0, 1.19],
    "rates": [1e-3, 3e-3, 1e-2, 3e-2],
    "seeds": [0, 1, 2],
    "steps": 200,
}
SMOKE = SETTINGS | {"gains": [1.0], "rates": [3e-3], "seeds": [0]}
WORST = 10.0  # errors are cut here: always answering zero has an error of 1


def points(settings):
    return [
        {"kind": kind, "n_layers": depth, "target": target, "gain": gain, "lr": lr}
        | {"seed": seed, "steps": settings["steps"]}
        for kind in settings["kinds"]
        for depth in settings["depths"]
        for target in settings["targets"]
        for gain in settings["gains"]
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


class Stack(nn.Module):
    def __init__(self, kind, n_layers, gain, d_model=16):
        super().__init__()
        self.layers = nn.ModuleList(
            FeedForward(d_model, 2 * d_model) for _ in range(n_layers)
        )
        self.wirings = nn.ModuleList(Wiring(d_model, kind) for _ in range(n_layers))
        set_gain(self.layers, gain)
        if kind == "norm only":  # between the layers, not after the last
            self.wirings[-1] = Wiring(d_model, "plain")

    def forward(self, x):
        for layer, wiring in zip(self.layers, self.wirings):
            x = wiring.after(x, layer(wiring.before(x)))
        return x


def matrix(target):
    """The identity, or a rotation: orthogonal, with determinant 1."""
    if target == "copy":
        return torch.eye(16)
    turn = torch.linalg.qr(torch.randn(16, 16, generator=runtime.seed(7)))[0]
    turn[:, 0] *= torch.linalg.det(turn).sign()
    return turn


def run(point):
    turn, seed = matrix(point["target"]), point["seed"]

    def draw(step, own):
        return (torch.randn(64, 16, generator=own),)

    def loss(model, x):
        return F.mse_loss(model(x), x @ turn)

    runtime.seed(seed)
    model = Stack(point["kind"], point["n_layers"], point["gain"])
    how = {"steps": point["steps"], "lr": point["lr"], "seed": seed, "warmup": 0}
    how |= {"clip": None, "schedule": "constant", "device": "cpu", "progress": False}
    try:
        train(model, draw, loss, **how)
    except Diverged:  # a loss or a gradient that is not finite
        return {"validation": 1 - WORST, "test": WORST}
    errors = [
        min(loss(model, torch.randn(4000, 16, generator=runtime.seed(s))).item(), WORST)
        for s in (1000 + seed, 2000 + seed)
    ]
    return {"validation": round(1 - errors[0], 4), "test": round(errors[1], 5)}


def check(points):
    def at_best(kind, n_layers, target):  # gain and rate
        where = {"kind": kind, "n_layers": n_layers, "target": target}
        runs = [
            p | {"start": (p["gain"], p["lr"])}
            for p in points
            if where.items() <= p.items()
        ]
        return [p["test"] for p in experiments.at_best_rate(runs, rate="start")]

    for target in ("copy", "rotation"):
        for kind in ("plain", "norm only", "residual", "pre-norm"):
            two, ten = (at_best(kind, n, target) for n in (2, 10))
            assert max(two) < min(ten)  # two layers are better than ten
            if kind in ("residual", "pre-norm"):
                assert max(ten) < 0.7
            else:
                assert min(ten) > 0.7
