"""A vision transformer beside a small convolutional network, on a thousand digits.

Chapter 14: scans of 8 x 8 pixels, 1,000 to train on, 297 to choose the learning rate
by, 500 to test. Each network has three learning rates and five seeds.
"""

import torch
import torch.nn.functional as F
from torch import nn

from course_utils import experiments, runtime
from course_utils.models.vision import VisionTransformer, patchify
from course_utils.tasks import scenes
from course_utils.training.loop import train

SETTINGS = {"rates": [1e-3, 3e-3, 1e-2], "seeds": [0, 1, 2, 3, 4], "steps": 300}
SMOKE = {"rates": [3e-3], "seeds": [0], "steps": 200}


def points(settings):
    return [
        {"network": network, "lr": lr, "seed": seed, "steps": settings["steps"]}
        for network in ("ViT", "CNN")
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(128, 10),
        )

    def forward(self, images):
        return self.layers(images), None


def run(point):
    is_vit = point["network"] == "ViT"
    runtime.seed(point["seed"])
    model = VisionTransformer(16, 4, 10) if is_vit else SmallCNN()

    def scans(split):
        images, labels = scenes.digits(split)
        return patchify(images[:, None], 2) if is_vit else images[:, None], labels

    (x, labels), (test_x, test_labels) = scans("train"), scans("test")

    def draw(step, generator):
        rows = torch.randint(1000, (64,), generator=generator)
        return x[rows], labels[rows]

    def loss(model, x, labels):
        return F.cross_entropy(model(x)[0], labels)

    def accuracy(x, labels):
        right = (model(x)[0].argmax(dim=-1) == labels).float().mean()
        return round(right.item(), 4)

    how = {"steps": point["steps"], "lr": point["lr"], "seed": point["seed"]}
    train(model, draw, loss, device="cpu", progress=False, **how)
    return {
        "validation": accuracy(x[1000:], labels[1000:]),
        "test": accuracy(test_x, test_labels),
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def check(points):
    best = {}
    for network in ("ViT", "CNN"):
        runs = [p for p in points if p["network"] == network]
        tests = [p["test"] for p in experiments.at_best_rate(runs)]
        best[network] = sum(tests) / len(tests)
    assert 0.85 < best["ViT"] < best["CNN"] + 0.005
