"""Which wirings of twelve blocks learn to sort, from which start, at which rate?

The task of chapter 11: six symbols out of eight are to be sorted. Five wirings, five
gains (the size of the first weights), and a learning rate for each from a list of four.
Every stack ends in a norm before its read-out, so that none has one more than another.
Attention is computed by the plain formula (`SDPBackend.MATH`): from a stream that has
exploded, the gradient of PyTorch's fused kernel overflows, and this one does not.
"""

import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from course_utils import experiments, runtime
from course_utils.models.residual_variants import KINDS, Sorter
from course_utils.tasks import synthetic
from course_utils.training.history import Diverged
from course_utils.training.loop import train

SETTINGS = {
    "kinds": list(KINDS),
    "n_layers": 12,
    "gains": [0.02, 0.1, 0.5, 1.0, 2.0],
    "rates": [3e-4, 1e-3, 3e-3, 1e-2],
    "seeds": [0, 1, 2],
    "steps": 100,
}
SMOKE = {"kinds": list(KINDS), "n_layers": 12, "gains": [0.02, 0.5, 1.0]}
SMOKE |= {"rates": [1e-3], "seeds": [0], "steps": 60}


def points(settings):
    fixed = {"n_layers": settings["n_layers"], "steps": settings["steps"]}
    return [
        {"kind": kind, "gain": gain, "lr": lr, "seed": seed} | fixed
        for kind in settings["kinds"]
        for gain in settings["gains"]
        for lr in settings["rates"]
        for seed in settings["seeds"]
    ]


def draw(n, generator):
    return synthetic.sort_tokens(n, generator, n_tokens=6, n_symbols=8)


def loss(model, tokens, answers):
    return F.cross_entropy(model(tokens)[0].transpose(1, 2), answers)


def run(point):
    seed = point["seed"]
    runtime.seed(seed)
    model = Sorter(point["kind"], point["n_layers"], point["gain"])
    model.norm = nn.LayerNorm(32)
    how = {"steps": point["steps"], "lr": point["lr"], "seed": seed, "warmup": 0}
    how |= {"clip": None, "schedule": "constant", "device": "cpu", "progress": False}
    unseen = {"validation": draw(1000, runtime.seed(1000 + seed))}
    unseen |= {"test": draw(1000, runtime.seed(2000 + seed))}
    with sdpa_kernel(SDPBackend.MATH):
        try:
            train(model, lambda step, own: draw(32, own), loss, **how)
        except Diverged:  # a loss or a gradient that is not finite
            return dict.fromkeys(unseen, 0.0)
        return {
            name: round((model(x)[0].argmax(-1) == y).float().mean().item(), 4)
            for name, (x, y) in unseen.items()
        }


def check(points):
    def at_best(kind, gain):
        runs = [p for p in points if p["kind"] == kind and p["gain"] == gain]
        return [p["test"] for p in experiments.at_best_rate(runs)]

    for gain in {p["gain"] for p in points}:
        assert max(at_best("plain", gain) + at_best("norm only", gain)) < 0.4
        assert gain > 1 or min(at_best("pre-norm", gain)) > 0.55
        for kind in ("residual", "post-norm"):
            right = at_best(kind, gain)
            assert min(right) > 0.55 if gain < 1 else max(right) < 0.4
