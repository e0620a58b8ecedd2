"""GPT, GPT with an output table of its own, and a GRU: the same text, tokens and steps.

The models are those of chapter 13's page: byte pairs of Python's help topics, windows
of 64 tokens, 16 windows a step.
"""

import torch
import torch.nn.functional as F

from course_utils import runtime
from course_utils.data import corpus
from course_utils.data.bpe import BytePairEncoder
from course_utils.data.sequences import consecutive_windows, random_windows
from course_utils.evaluation.metrics import bits_per_character
from course_utils.experiments import best_tests
from course_utils.models.rnn import GRULanguageModel
from course_utils.models.transformer import GPT
from course_utils.training.loop import train

LENGTH = 64
MODELS = {
    "GPT": lambda: GPT(512, LENGTH, d_model=64),
    "GPT, untied": lambda: GPT(512, LENGTH, d_model=64, tied=False),
    "GRU": lambda: GRULanguageModel(512, 96, 128),
}
SETTINGS = {"rates": [3e-3, 6e-3, 1.2e-2], "runs": [[300, 0], [300, 1], [300, 2]]}
SETTINGS["runs"] += [[700, 0]]  # steps and seed
SMOKE = {"rates": [6e-3], "runs": [[100, 0]]}


def points(settings):
    return [
        {"model": model, "lr": lr, "seed": seed, "steps": steps}
        for steps, seed in settings["runs"]
        for model in MODELS
        for lr in settings["rates"]
    ]


def loss(model, read, following):
    logits, _ = model(read)
    return F.cross_entropy(logits.flatten(0, 1), following.flatten())


def bits_on(model, text, encoder):
    ids = torch.tensor(encoder.encode(text))
    windows = consecutive_windows(ids, LENGTH)
    with torch.no_grad():
        nats = [loss(model, *pair) for pair in zip(*(w.split(1) for w in windows))]
    return bits_per_character(torch.stack(nats).mean().item(), len(ids), len(text))


def run(point):
    split = corpus.split_blocks(corpus.pydoc_text(), 0.1, 0.1, seed=0)
    encoder = BytePairEncoder.train(split.train, n_pieces=512)
    ids = torch.tensor(encoder.encode(split.train))
    runtime.seed(point["seed"])
    model = MODELS[point["model"]]()

    def batch(step, generator):
        return random_windows(ids, LENGTH, 16, generator)

    how = {"steps": point["steps"], "lr": point["lr"], "seed": point["seed"]}
    train(model, batch, loss, device="cpu", progress=False, **how)
    return {
        "validation": -bits_on(model, split.validation, encoder),  # to be highest
        "test": bits_on(model, split.test, encoder),
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def check(points):
    models, steps = ("GPT", "GPT, untied", "GRU"), points[0]["steps"]
    tied, own, gru = (best_tests(points, model=m, steps=steps) for m in models)
    assert min(tied) > max(own) + 0.02
    assert min(own) > max(gru) + 0.02
    assert min(gru) > 1.75  # counting is ahead of all
