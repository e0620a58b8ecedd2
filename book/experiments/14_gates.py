"""What do channel gates carry: a choice of channel, or the answer?

The task of chapter 14: three channels with a digit each, and a strip that says which to
read. Three networks: no gates, squeeze-and-excitation as published (`original`), and
the chapter's variant, which normalises the means over the batch (`normalised`).
Four shares of the test images, at several numbers of steps:

    curve  the network is right
    own    with the gates of another image with the same strip it names its own digit,
    donor  or that image's digit (both where the two differ)
    blank  an image with no digits, and the gates of the full image: it is right
"""

import torch
import torch.nn.functional as F
from torch import nn

from course_utils import experiments, runtime
from course_utils.models.vision import SqueezeExcite
from course_utils.tasks import scenes
from course_utils.training.loop import train

SETTINGS = {"rates": [2e-3, 4e-3, 8e-3], "seeds": [0, 1, 2], "steps": 1200}
SMOKE = {"rates": [4e-3], "seeds": [0], "steps": 300}
GATES = ("none", "original", "normalised")
EVERY = 300


def points(settings):
    return [
        {"gates": gates, "lr": lr, "seed": seed, "steps": settings["steps"]}
        for gates in GATES
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


def convolution(d_in, d_out, window=3, stride=1):
    padding = (window - 1) // 2
    layer = nn.Conv2d(d_in, d_out, window, stride=stride, padding=padding)
    return nn.Sequential(layer, nn.BatchNorm2d(d_out), nn.ReLU())


class GatedReader(nn.Module):
    def __init__(self, gates, channels=48):
        super().__init__()
        self.features = nn.Sequential(
            convolution(3, channels, 4, 2), convolution(channels, channels)
        )
        self.gate = None if gates == "none" else SqueezeExcite(channels, channels // 2)
        if gates == "original":
            self.gate.norm = nn.Identity()
        self.last = convolution(channels, 2 * channels, window=1)
        self.readout = nn.Linear(2 * channels, 10)

    def forward(self, images, gates=None):
        features = self.features(images)
        own = torch.ones(features.shape[:2])
        if self.gate is not None:
            own = self.gate(features)[1]
        gates = own if gates is None else gates
        gated = features * gates[:, :, None, None]
        return self.readout(self.last(gated).mean(dim=(2, 3))), own


def measure(model, images, answers, asked):
    logits, gates = model(images)
    donor = torch.arange(len(asked))
    for channel in range(3):
        rows = (asked == channel).nonzero()[:, 0]
        donor[rows] = rows.roll(1)  # another image with the same strip
    swapped = model(images, gates[donor])[0].argmax(dim=-1)
    differ = answers != answers[donor]
    blank = images.clone()
    blank[:, :, 4:] = 0
    unseen = model(blank, gates)[0].argmax(dim=-1)
    shares = {
        "curve": logits.argmax(dim=-1) == answers,
        "own": (swapped == answers)[differ],
        "donor": (swapped == answers[donor])[differ],
        "blank": unseen == answers,
    }
    return {name: share.float().mean().item() for name, share in shares.items()}


def draw(step, generator):
    return scenes.channel_scenes(64, generator)[:2]


def loss(model, images, answers):
    return F.cross_entropy(model(images)[0], answers)


def run(point):
    seed = point["seed"]
    runtime.seed(seed)
    model = GatedReader(point["gates"])
    unseen = {
        "validation": scenes.channel_scenes(1000, runtime.seed(1000 + seed), "train"),
        "test": scenes.channel_scenes(1000, runtime.seed(2000 + seed), "test"),
    }

    def evaluate(model):
        shares = measure(model, *unseen["test"][:3])
        validation = measure(model, *unseen["validation"][:3])["curve"]
        return {"validation": validation, **shares}

    how = {"steps": point["steps"], "lr": point["lr"], "seed": seed, "device": "cpu"}
    how |= {"every": EVERY, "evaluate": evaluate}
    history = train(model, draw, loss, progress=False, **how)
    names = ("curve", "own", "donor", "blank")
    curves = {name: [round(float(a), 4) for a in history[name]] for name in names}
    return {
        "validation": round(float(history["validation"][-1]), 4),
        "test": curves["curve"][-1],
        "steps_seen": history["evaluated"].tolist(),
        **curves,
    }


def check(points):
    def best(gates):
        return experiments.at_best_rate([p for p in points if p["gates"] == gates])

    kinds = ("none", "original", "normalised")
    none, original, normalised = (best(gates) for gates in kinds)
    assert min(p["test"] for p in normalised) > max(p["test"] for p in none) + 0.05
    for p in normalised:  # the answer goes with the gates, and needs no digits
        assert p["donor"][-1] > p["own"][-1] + 0.3
        assert p["blank"][-1] > 0.4
    for p in original:  # a mixture: neither names the donor's digit alone
        assert p["donor"][-1] < min(q["donor"][-1] for q in normalised) - 0.1
