"""How fast do three captioners learn, each at its own rate, and what do they memorise?

The task of chapter 04: name the one to four digits of an image in reading order. The
captioners have one decoder:

    attention  nine cells and an additive score: the decoder looks again for every word
    mean       nine cells and equal scores
    flat       all cells, squeezed into one vector of 64 numbers
    wide flat  the same with 128, and a decoder twice as wide

"learn": 3,000 images, six learning rates, a curve on new images. "memorise": 250
images, three rates, with their own captions or with captions shuffled among them.
"""

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn

from course_utils import experiments, runtime
from course_utils.data.corpus import BOS, PAD
from course_utils.models.scores import AdditiveScore, attend
from course_utils.tasks import scenes
from course_utils.training.loop import train

KINDS = ["attention", "mean", "flat"]  # and "wide flat", to memorise
MEMORISE = [("attention", False), ("wide flat", False), ("wide flat", True)]
SETTINGS = {
    "rates": [2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2, 6.4e-2],
    "seeds": [0, 1],
    "steps": 200,
    "memory_rates": [4e-3, 8e-3, 1.6e-2],
    "memory_seeds": [0, 1],
    "memory_steps": 200,
}
SMOKE = {
    "rates": [4e-3],
    "seeds": [0],
    "steps": 100,
    "memory_rates": [4e-3],
    "memory_seeds": [0],
    "memory_steps": 200,
}


def points(settings):
    learn = [
        {"part": "learn", "kind": kind, "lr": lr, "seed": seed}
        | {"n_images": 3000, "shuffled": False, "steps": settings["steps"]}
        for kind in KINDS
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]
    return learn + [
        {"part": "memorise", "kind": kind, "lr": lr, "seed": seed}
        | {"n_images": 250, "shuffled": mixed, "steps": settings["memory_steps"]}
        for kind, mixed in MEMORISE
        for lr in settings["memory_rates"]
        for seed in settings["memory_seeds"]
    ]


def equal_scores(queries, keys):
    return torch.zeros(*queries.shape[:-1], keys.shape[-2])


class Eye(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 128, 8, stride=8),  # 24 x 24 pixels -> 3 x 3 cells
            nn.BatchNorm2d(128),
            nn.ReLU(),
            nn.Conv2d(128, d, 1),
            nn.BatchNorm2d(d),
            nn.ReLU(),
        )
        self.place = nn.Parameter(0.5 * torch.randn(9, d))
        self.mix = nn.Linear(d, d)

    def forward(self, images):
        cells = rearrange(self.layers(images), "b d y x -> b (y x) d")
        return torch.relu(self.mix(cells + self.place))  # (batch, key 9, d)


class Captioner(nn.Module):
    def __init__(self, score, squeeze=None, d=64, d_word=32):
        super().__init__()
        self.eye, self.score = Eye(), score
        self.squeeze = nn.Identity() if squeeze is None else squeeze
        self.word = nn.Embedding(14, d_word)  # four specials, ten digits
        self.first = nn.Linear(d, d)
        self.combine = nn.Linear(d_word + d, d)
        self.cell = nn.GRUCell(d, d)
        self.readout = nn.Linear(2 * d, 14)

    def forward(self, images, captions=None, n_words=5):
        memory = self.squeeze(self.eye(images))
        state = torch.tanh(self.first(memory.mean(dim=1)))
        token, logits = torch.full((len(images),), BOS), []
        for t in range(n_words):
            word = self.word(token)
            query = torch.cat([state, word], dim=-1)[:, None]
            context, _ = attend(query, memory, memory, self.score)
            z = torch.relu(self.combine(torch.cat([word, context[:, 0]], dim=-1)))
            state = self.cell(z, state)
            logits.append(self.readout(torch.cat([state, z], dim=-1)))
            token = logits[-1].argmax(-1) if captions is None else captions[:, t]
        return torch.stack(logits, dim=1)


def captioner(kind):
    def flatten_to(width):
        layers = nn.Flatten(1), nn.Linear(9 * 64, width), nn.Unflatten(1, (1, width))
        return nn.Sequential(*layers)

    if kind == "attention":
        return Captioner(AdditiveScore(64 + 32, 64, 64))
    if kind == "mean":
        return Captioner(equal_scores)
    if kind == "flat":
        return Captioner(equal_scores, flatten_to(64))
    return Captioner(equal_scores, flatten_to(128), d=128)


def caption_loss(model, images, captions):
    return F.cross_entropy(model(images, captions).mT, captions, ignore_index=PAD)


def read_right(model, images, captions):
    model.eval()
    with torch.no_grad():
        words = model(images).argmax(dim=-1)
    model.train()
    return ((words == captions) | (captions == PAD)).all(dim=1).float().mean().item()


def run(point):
    own, n = runtime.seed(point["seed"]), point["n_images"]
    images, captions, _ = scenes.caption_scenes(n, own, "train", max_digits=4)
    if point["shuffled"]:
        captions = captions[torch.randperm(n, generator=own)]
    unseen = {
        name: scenes.caption_scenes(400, own, "test", max_digits=4)[:2]
        for name in ("validation", "test")
    }
    model = captioner(point["kind"])

    def batch(step, own):
        rows = torch.randint(n, (64,), generator=own)
        return images[rows], captions[rows]

    def evaluate(model):
        return {name: read_right(model, *unseen[name]) for name in unseen}

    how = {"steps": point["steps"], "lr": point["lr"], "seed": point["seed"]}
    how |= {"every": 50, "evaluate": evaluate, "device": "cpu"}
    history = train(model, batch, caption_loss, progress=False, **how)
    curves = {name: [round(float(a), 4) for a in history[name]] for name in unseen}
    return {
        "trained_on": round(read_right(model, images, captions), 4),
        "validation": curves["validation"][-1],
        "test": curves["test"][-1],
        "steps_seen": history["evaluated"].tolist(),
        "curve": curves["test"],
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def check(points):
    def test(kind, **where):
        where |= {"kind": kind}
        runs = [p for p in points if all(p[key] == where[key] for key in where)]
        return torch.tensor(
            [[p["test"], p["trained_on"]] for p in experiments.at_best_rate(runs)]
        ).T

    again = test("attention", part="learn")[0]
    for single in ("mean", "flat"):
        assert again.min() > test(single, part="learn")[0].max() + 0.1
    new, trained_on = test("attention", part="memorise", shuffled=False)
    flat_new, flat_trained_on = test("wide flat", part="memorise", shuffled=False)
    assert min(trained_on.min(), flat_trained_on.min()) > 0.9  # both memorise
    assert new.min() > flat_new.max() + 0.15
    shuffled_new, shuffled_trained_on = test("wide flat", shuffled=True)
    assert shuffled_trained_on.min() > 0.9  # even what means nothing
    assert shuffled_new.max() < 0.1
