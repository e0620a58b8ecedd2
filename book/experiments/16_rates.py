"""Does QK-norm, or a soft cap, widen the range of learning rates that train?

The model and text of 16_changes; the learning rate goes up a hundredfold.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F

from course_utils import runtime
from course_utils.data import corpus
from course_utils.data.sequences import consecutive_windows, random_windows
from course_utils.models.choices import Choices
from course_utils.models.modern_gpt import ModernGPT
from course_utils.training.history import Diverged
from course_utils.training.loop import train

LENGTH, BASE = 64, Choices(positions="rotary")
MODELS = {
    "neither": BASE,
    "QK-norm": replace(BASE, qk_norm=True),
    "soft cap": replace(BASE, soft_cap=20.0),
}
RATES = [3e-3, 1e-2, 3e-2, 1e-1, 3e-1]
SETTINGS = {"steps": 150, "rates": RATES, "seeds": [0, 1, 2]}
SMOKE = {"steps": 60, "rates": [1e-2, 1e-1], "seeds": [0]}


def points(settings):
    return [
        {"model": model, "lr": lr, "seed": seed, "steps": settings["steps"]}
        for seed in settings["seeds"]
        for model in MODELS
        for lr in settings["rates"]
    ]


def loss_of(model, read, following):
    logits, _ = model(read)
    return F.cross_entropy(logits.flatten(0, 1), following.flatten())


def run(point):
    split = corpus.split_blocks(corpus.pydoc_text(), 0.1, 0.1, seed=0)
    letters = {c: i for i, c in enumerate(sorted(set("".join(split))))}
    ids, held = (torch.tensor([letters[c] for c in text]) for text in split[:2])
    runtime.seed(point["seed"])
    choices = MODELS[point["model"]]
    model = ModernGPT(len(letters), LENGTH, 64, 4, 2, choices=choices)

    def batch(step, generator):
        return random_windows(ids, LENGTH, 16, generator)

    how = {"steps": point["steps"], "lr": point["lr"], "seed": point["seed"]}
    try:
        train(model, batch, loss_of, device="cpu", progress=False, **how)
    except Diverged:
        return {"bits": 99.0}
    with torch.no_grad():
        nats = loss_of(model, *consecutive_windows(held, LENGTH))
    return {"bits": nats.item() / torch.log(torch.tensor(2.0)).item()}


def check(points):
    def bits(model, lr):
        return [p["bits"] for p in points if p["model"] == model and p["lr"] == lr]

    for lr in {p["lr"] for p in points if p["lr"] >= 0.1}:
        assert max(bits("QK-norm", lr)) < min(bits("neither", lr))
    at_best = [sum(bits(m, 1e-2)) / len(bits(m, 1e-2)) for m in ("QK-norm", "neither")]
    assert abs(at_best[0] - at_best[1]) < 0.1  # at a good rate it hardly matters
