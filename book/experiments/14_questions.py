"""Who answers questions about a scene, after how many steps, each at its own rate?

The task of chapter 14: six digits in six colours, and a question of two words. The
words of one reader attend to the patches. The others make one vector of the image,
before they know the question:

    cross-attention  each word fetches a vector from the nine patches
    product          the mean of the patches times a projection of the question
    side by side     the mean of the patches, and beside it the question
    flattened        all nine patches in a row, and beside them the question
"""

import torch
import torch.nn.functional as F
from torch import nn

from course_utils import experiments, runtime
from course_utils.models.vision import CrossReader, PatchEncoder, patchify
from course_utils.tasks import scenes
from course_utils.training.loop import train

SETTINGS = {"rates": [1e-3, 3e-3, 8e-3], "seeds": [0, 1, 2], "steps": 2000}
SMOKE = {"rates": [3e-3], "seeds": [0], "steps": 1000}
READERS = {"product": 145, "side by side": 145, "flattened": 63}  # d_hidden


def points(settings):
    return [
        {"reader": reader, "lr": lr, "seed": seed, "steps": settings["steps"]}
        for reader in ("cross-attention", *READERS)
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


class VectorReader(nn.Module):
    def __init__(self, reader, d=64):
        super().__init__()
        self.reader, d_hidden = reader, READERS[reader]
        d_image = 9 * d if reader == "flattened" else d
        self.see, self.word = PatchEncoder(9, 192, d), nn.Embedding(18, d)
        self.norm = nn.LayerNorm(d_image)
        if reader == "product":
            self.image = nn.Linear(d_image, d_hidden)
            self.question = nn.Linear(2 * d, d_hidden)
        else:
            self.both = nn.Linear(d_image + 2 * d, d_hidden)
        self.layers = nn.Sequential(
            nn.Linear(d_hidden, d_hidden), nn.ReLU(), nn.Linear(d_hidden, 16)
        )

    def forward(self, patches, question):
        seen, words = self.see(patches), self.word(question).flatten(1)
        flat = self.reader == "flattened"
        image = self.norm(seen.flatten(1) if flat else seen.mean(dim=1))
        if self.reader == "product":
            return self.layers(self.image(image) * self.question(words)), None
        both = torch.relu(self.both(torch.cat([image, words], dim=-1)))
        return self.layers(both), None


def draw(step, generator):
    n_objects = int(torch.randint(1, 7, (1,), generator=generator))
    images, questions, answers, _ = scenes.question_scenes(
        128, generator, n_objects=n_objects
    )
    return patchify(images, 8), questions, answers


def loss(model, patches, questions, answers):
    return F.cross_entropy(model(patches, questions)[0], answers)


def run(point):
    seed = point["seed"]
    runtime.seed(seed)
    attends = point["reader"] == "cross-attention"
    model = CrossReader(18, 16, 9, 192) if attends else VectorReader(point["reader"])
    unseen = {}
    for name, first, split in (("validation", 1000, "train"), ("test", 2000, "test")):
        generator = runtime.seed(first + seed)
        images, questions, answers, _ = scenes.question_scenes(1000, generator, split)
        unseen[name] = patchify(images, 8), questions, answers

    def evaluate(model):
        return {
            name: (model(patches, questions)[0].argmax(dim=-1) == answers)
            .float()
            .mean()
            for name, (patches, questions, answers) in unseen.items()
        }

    how = {"steps": point["steps"], "lr": point["lr"], "seed": seed, "device": "cpu"}
    how |= {"every": 100, "evaluate": evaluate}
    history = train(model, draw, loss, progress=False, **how)
    curves = {name: [round(float(a), 4) for a in history[name]] for name in unseen}
    return {
        "validation": curves["validation"][-1],
        "test": curves["test"][-1],
        "steps_seen": history["evaluated"].tolist(),
        "curve": curves["test"],
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def check(points):
    def best(reader):
        runs = [p for p in points if p["reader"] == reader]
        return [p["test"] for p in experiments.at_best_rate(runs)]

    assert min(best("cross-attention")) > 0.9
    assert min(best("cross-attention")) > max(best("product"))
    assert min(best("product")) > max(best("side by side")) + 0.1
