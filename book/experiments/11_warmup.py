"""Does warm-up help a deep stack, or is it the lower rate that helps?

The task of chapter 11, sorting six symbols, with stacks at a gain of 0.8. With warm-up
the rate rises in a line through the first half of the steps and then stays; without it
the rate is constant. Each of the two chooses its own rate from the same list.
Attention is computed by the plain formula (`SDPBackend.MATH`).
"""

import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from course_utils import experiments, runtime
from course_utils.models.residual_variants import Sorter
from course_utils.tasks import synthetic
from course_utils.training.history import Diverged
from course_utils.training.loop import train

SETTINGS = {
    "stacks": [["post-norm", 12], ["post-norm", 24], ["pre-norm", 12]],
    "rates": [5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2],
    "seeds": [0, 1, 2, 3, 4],
    "steps": 60,
}
SMOKE = {"stacks": [["post-norm", 12], ["pre-norm", 12]], "rates": [1e-3, 5e-3]}
SMOKE |= {"seeds": [0], "steps": 60}


def points(settings):
    steps = settings["steps"]
    return [
        {"kind": kind, "n_layers": n_layers, "warmup": warmup, "lr": lr, "seed": seed}
        | {"steps": steps}
        for kind, n_layers in settings["stacks"]
        for warmup in (0, steps // 2)
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
    model = Sorter(point["kind"], point["n_layers"], gain=0.8)
    how = {name: point[name] for name in ("steps", "lr", "seed", "warmup")}
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
    def runs(**where):
        return [p for p in points if where.items() <= p.items()]

    def at_best(kind, warmup):
        chosen = runs(kind=kind, n_layers=12, warmup=warmup)
        return [p["test"] for p in experiments.at_best_rate(chosen)]

    half = max(p["warmup"] for p in points)
    cold, warm = (
        [p["test"] for p in runs(kind="post-norm", n_layers=12, lr=5e-3, warmup=warmup)]
        for warmup in (0, half)
    )
    assert min(warm) > max(cold) + 0.2  # warm-up rescues this rate
    for kind in ("post-norm", "pre-norm"):  # but brings no better result
        constant, warm = at_best(kind, 0), at_best(kind, half)
        assert sum(constant) > sum(warm) - 0.05 * len(warm)
