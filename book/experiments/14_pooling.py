"""How well do attention, mean and maximum read the marked digit of nine, each tuned?

The task of chapter 14: nine digits in a grid, one with a bar at its left; name it.
Three networks share their convolutions and differ in how a map of features becomes one
vector. Each is trained at three learning rates, for a short and a long budget.
"""

import torch.nn.functional as F
from torch import nn

from course_utils import experiments, runtime
from course_utils.models.vision import SpatialAttention
from course_utils.tasks import scenes
from course_utils.training.loop import train

SETTINGS = {
    "budgets": [120, 480],
    "rates": [4e-3, 1.2e-2, 3e-2],
    "seeds": [0, 1, 2, 3, 4],
}
SMOKE = {"budgets": [120], "rates": [4e-3, 1.2e-2], "seeds": [0]}
POOLS = {  # the pooling and its number of channels: all three have about one size
    "attention": (lambda: SpatialAttention(32), 32),
    "mean": (lambda: lambda f: (f.mean(dim=(2, 3)), None), 33),
    "maximum": (lambda: lambda f: (f.amax(dim=(2, 3)), None), 33),
}


def points(settings):
    return [
        {"pool": pool, "steps": steps, "lr": lr, "seed": seed}
        for pool in POOLS
        for steps in settings["budgets"]
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


def convolution(d_in, d_out, window=3, stride=1):
    padding = (window - 1) // 2
    layer = nn.Conv2d(d_in, d_out, window, stride=stride, padding=padding)
    return nn.Sequential(layer, nn.BatchNorm2d(d_out), nn.ReLU())


class MarkReader(nn.Module):
    def __init__(self, pool):
        super().__init__()
        make, channels = POOLS[pool]
        self.pool = make()
        self.features = nn.Sequential(
            convolution(1, 16, 4, 2),
            convolution(16, 32, 4, 2),
            convolution(32, channels),
        )
        self.readout = nn.Linear(channels, 10)

    def forward(self, images):
        return self.readout(self.pool(self.features(images))[0])


def draw(step, generator):
    return scenes.marked_scenes(64, generator)[:2]


def loss(model, images, answers):
    return F.cross_entropy(model(images), answers)


def run(point):
    seed = point["seed"]
    runtime.seed(seed)
    model = MarkReader(point["pool"])
    how = {"steps": point["steps"], "lr": point["lr"], "seed": seed, "device": "cpu"}
    train(model, draw, loss, progress=False, **how)

    def accuracy(first, split):
        generator = runtime.seed(first + seed)
        images, answers, _ = scenes.marked_scenes(1000, generator, split)
        right = (model(images).argmax(dim=-1) == answers).float().mean()
        return round(right.item(), 4)

    # validation scenes are new scenes of the scans to train on; a test scan is new too
    return {"validation": accuracy(1000, "train"), "test": accuracy(2000, "test")}


def check(points):
    def mean(pool, rates):
        runs = [p for p in points if p["pool"] == pool and p["steps"] == 120]
        best = experiments.at_best_rate([p for p in runs if p["lr"] in rates])
        return sum(p["test"] for p in best) / len(best)

    rates = {p["lr"] for p in points}
    one_rate = mean("attention", [4e-3]) - mean("mean", [4e-3])
    own_rates = mean("attention", rates) - mean("mean", rates)
    assert one_rate > own_rates + 0.05  # much of the gap was the learning rate
    assert mean("mean", rates) > 0.8
